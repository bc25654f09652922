//! The functions of ODBC, with ownership and errors. All unsafe code of this program is here.
//!
//! Texts are UTF-16 both ways, so that no locale has a say. Numbers that a driver gives are checked
//! where they are used.

#![allow(unsafe_code, reason = "ODBC is a C interface")]

mod buffer;
mod connection;
mod diagnostics;
mod statement;

use odbc_sys::{HDbc, HEnv, HStmt, Handle, HandleType, SqlReturn};

pub(crate) use self::buffer::{Buffer, Cell};
pub(crate) use self::connection::Connection;
pub(crate) use self::diagnostics::Diagnostic;
pub(crate) use self::statement::{Cancel, Described, Parameter, Statement};

/// What a function that did not fail says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Success,
    /// There is a warning.
    Info,
    NoData,
}

fn env(handle: HEnv) -> (HandleType, Handle) {
    (HandleType::Env, handle.as_handle())
}

fn dbc(handle: HDbc) -> (HandleType, Handle) {
    (HandleType::Dbc, handle.as_handle())
}

fn stmt(handle: HStmt) -> (HandleType, Handle) {
    (HandleType::Stmt, handle.as_handle())
}

/// What a function returned for a handle.
fn check(
    returned: SqlReturn,
    handle: (HandleType, Handle),
    function: &str,
) -> Result<Outcome, Diagnostic> {
    match returned {
        SqlReturn::SUCCESS => Ok(Outcome::Success),
        SqlReturn::SUCCESS_WITH_INFO => Ok(Outcome::Info),
        SqlReturn::NO_DATA => Ok(Outcome::NoData),
        SqlReturn::ERROR => Err(Diagnostic::first(handle, function)),
        SqlReturn(code) => {
            Err(Diagnostic::driver(format!("the driver's {function} returned {code}")))
        }
    }
}

/// A text as functions of ODBC take it, with a zero at its end.
fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// A text in a buffer: up to the first zero, or `length` if that is less.
fn narrow(buffer: &[u16], length: impl TryInto<usize>) -> String {
    let length = length.try_into().unwrap_or(buffer.len()).min(buffer.len());
    let text = buffer.get(..length).unwrap_or_default();
    let text = text.split(|unit| *unit == 0).next().unwrap_or_default();
    String::from_utf16_lossy(text)
}
