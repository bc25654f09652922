//! `dray-adbc`: reads a database through its ADBC driver for `dray serve`, which starts this
//! program for each session and speaks `spec/bridge.md` with it.
//!
//! ```text
//!   dray serve ── frames ──▶ dray_bridge::program::serve ─▶ Session ─▶ the driver's library
//! ```

#![forbid(unsafe_code)]

mod batch;
mod error;
mod session;
mod source;

use std::process::ExitCode;

use dray_bridge::program::{Database, Opener, serve};
use dray_bridge::{Failure, Open};

use self::session::Session;
use self::source::Source;

/// Opens databases by ADBC drivers.
struct Adbc;

impl Opener for Adbc {
    fn open(&self, open: &Open) -> Result<Box<dyn Database>, Failure> {
        let source = Source::parse(&open.uri)?;
        Ok(Box::new(Session::open(source, open.writable)?))
    }
}

fn main() -> ExitCode {
    match serve(&Adbc) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dray-adbc: {error}");
            ExitCode::FAILURE
        }
    }
}
