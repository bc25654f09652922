//! `dray manual`: writes the manual pages, for those whose package did not install them.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples:
  dray manual ~/.local/share/man/man1";

/// Write the manual pages of dray and its commands
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// The folder to write them to
    folder: PathBuf,
}

/// Runs the command, for this program.
pub(crate) fn run(arguments: &Arguments, program: Command) -> Result<(), Failure> {
    let unwritten =
        |cause: std::io::Error| Failure::output(&arguments.folder.display().to_string(), &cause);
    std::fs::create_dir_all(&arguments.folder).map_err(unwritten)?;
    clap_mangen::generate_to(program, &arguments.folder).map_err(unwritten)
}
