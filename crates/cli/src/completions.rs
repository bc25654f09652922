//! `dray completions`: what a shell needs to complete this program's arguments.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples:
  dray completions bash > ~/.local/share/bash-completion/completions/dray
  dray completions zsh > ~/.zfunc/_dray
  dray completions fish > ~/.config/fish/completions/dray.fish";

/// Print a script by which a shell completes the arguments of dray
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the command, for this program.
pub(crate) fn run(arguments: &Arguments, mut program: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "dray", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::output("standard output", &cause))
}
