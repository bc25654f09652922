//! Checks of the repository that compilers and linters do not make.

use std::process::ExitCode;

mod dependencies;
mod text;

const USAGE: &str = "usage: xtask dependencies|text";

fn main() -> ExitCode {
    let checked = match std::env::args().nth(1).as_deref() {
        Some("dependencies") => dependencies::check(),
        Some("text") => text::check(),
        _ => Err(USAGE.into()),
    };
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("xtask: {what}");
            ExitCode::FAILURE
        }
    }
}
