//! Where the programs of bridges are.

use dray_bridge::Command;

/// The program `name`, which is beside the one that runs, or on PATH.
pub(crate) fn command(name: &str) -> Command {
    let beside = std::env::current_exe().ok().map(|running| running.with_file_name(name));
    Command {
        program: beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into()),
        arguments: Vec::new(),
        install: format!("whoever runs the Dray server can install {name} beside it"),
    }
}
