//! The program `dray-odbc`: a bridge (`spec/bridge.md`) to databases by their ODBC drivers.
//!
//! ```text
//!   frames ─▶ Source::run ─▶ odbc::Statement ─▶ the driver manager ─▶ the driver
//!   frames ◀── Output ◀── Rows: Buffers ─▶ Builders ◀── blocks of rows ──┘
//! ```
//!
//! Drivers are foreign code in this process. What they say of lengths, counts and types is checked,
//! and what they write beyond a buffer they write into this process only.

#![deny(unsafe_code)]

mod builder;
mod column;
mod connection_string;
mod decimal;
mod failure;
mod fetch;
mod odbc;
mod parameters;
mod source;
mod time;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        println!(
            "dray-odbc {}: `dray serve --source NAME=odbc:DSN=…` starts this program for each \
             session of a source",
            env!("CARGO_PKG_VERSION")
        );
        return ExitCode::SUCCESS;
    }
    match dray_bridge::program::serve(&source::Opener) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dray-odbc: {error}");
            ExitCode::FAILURE
        }
    }
}
