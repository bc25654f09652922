//! Where the programs of bridges are.

use std::path::PathBuf;

/// The program `name`, which is beside the one that runs, or on PATH.
pub(crate) fn program(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|running| running.with_file_name(name));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}
