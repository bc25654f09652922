//! The `dray` program: serves files, and fetches results from servers.

#![forbid(unsafe_code)]

mod serve;
mod size;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Hauls query results.
#[derive(Debug, Parser)]
#[command(name = "dray", version, about)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
}

fn main() -> ExitCode {
    let ended = match Program::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dray: {error}");
            ExitCode::FAILURE
        }
    }
}
