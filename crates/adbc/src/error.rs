//! Errors of the client as errors of ADBC: a status, an SQLSTATE, and one sentence with a hint.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use adbc_core::error::{Error, Result, Status};
use dray_client::{ErrorKind, panic_text};

/// The detail that is the number of a MySQL server's error, in decimal digits.
const VENDOR_CODE: &str = "vendor_code";

/// An error of this driver itself.
pub(crate) fn failed(status: Status, message: impl Into<String>) -> Error {
    // C strings end at a NUL.
    Error::with_message_and_status(message.into().replace('\0', " "), status)
}

/// The error of something that this driver does not do.
pub(crate) fn not_implemented(message: impl Into<String>) -> Error {
    failed(Status::NotImplemented, message)
}

/// The error of a call at the wrong moment.
pub(crate) fn invalid_state(message: impl Into<String>) -> Error {
    failed(Status::InvalidState, message)
}

/// The error of a bad argument.
pub(crate) fn invalid_argument(message: impl Into<String>) -> Error {
    failed(Status::InvalidArguments, message)
}

/// The error of Arrow data that can't be made or read.
pub(crate) fn bad_data(error: &arrow::error::ArrowError) -> Error {
    failed(Status::InvalidData, error.to_string())
}

/// The error of the client as one of ADBC.
pub(crate) fn of_client(error: &dray_client::Error) -> Error {
    let sqlstate = error.sqlstate().unwrap_or_default();
    let mut converted = failed(status(error), error.to_string());
    for (to, from) in converted.sqlstate.iter_mut().zip(sqlstate.bytes()) {
        *to = from as c_char;
    }
    if let Some(code) = error.code().and_then(|code| i32::try_from(code).ok()) {
        converted.vendor_code = code;
        // Callers of ADBC 1.1 have a mark of that version in its place, and read details.
        converted.details = Some(vec![(VENDOR_CODE.to_owned(), code.to_string().into_bytes())]);
    }
    converted
}

/// The text of a converted error's SQLSTATE; empty without one.
#[cfg(test)]
fn sqlstate_of(error: &Error) -> String {
    error.sqlstate.iter().map(|c| char::from(*c as u8)).filter(|c| *c != '\0').collect()
}

fn status(error: &dray_client::Error) -> Status {
    if error.is_read_timeout() {
        return Status::Timeout;
    }
    // MySQL's `max_execution_time`, and a lock that was waited for too long: their SQLSTATE says
    // nothing.
    if matches!(error.code(), Some(3024 | 1205)) {
        return Status::Timeout;
    }
    let by_sqlstate =
        error.sqlstate().and_then(|sqlstate| status_of_sqlstate(sqlstate, error.message()));
    by_sqlstate.unwrap_or(match error.kind() {
        ErrorKind::Connection | ErrorKind::Protocol | ErrorKind::Resources => Status::IO,
        ErrorKind::Authentication => Status::Unauthenticated,
        ErrorKind::Query | ErrorKind::Usage => Status::InvalidArguments,
        ErrorKind::Execution | ErrorKind::Limit => Status::InvalidData,
        ErrorKind::Cancelled => Status::Cancelled,
        _ => Status::Internal,
    })
}

/// The status of an SQLSTATE that says more than the kind of the error.
fn status_of_sqlstate(sqlstate: &str, message: &str) -> Option<Status> {
    Some(match sqlstate {
        // A table, object, function, database or schema that does not exist.
        "42P01" | "42S02" | "42704" | "42883" | "3D000" | "3F000" => Status::NotFound,
        // One that exists already, a column among them.
        "42P07" | "42S01" | "42P06" | "42P04" | "42710" | "42701" | "42723" => {
            Status::AlreadyExists
        }
        // MariaDB cancels by itself after `max_statement_time`.
        "70100" if message.contains("max_statement_time") => Status::Timeout,
        "70100" => Status::Cancelled,
        "42501" => Status::Unauthorized,
        // The server cancels by itself after `statement_timeout`.
        "57014" if message.contains("timeout") => Status::Timeout,
        "57014" => Status::Cancelled,
        "55P03" => Status::Timeout,
        _ => match sqlstate.get(..2)? {
            "0A" => Status::NotImplemented,
            "23" => Status::Integrity,
            "25" => Status::InvalidState,
            // Serialization failures and deadlocks: the same transaction may succeed the next time.
            "40" => Status::Unknown,
            _ => return None,
        },
    })
}

/// Runs a call of the driver. A panic becomes an error of this call alone: `adbc_ffi` would refuse
/// every later call of the process.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let what = panic_text(&*panic);
        Err(failed(Status::Internal, format!("{what} (this is a defect; please report it)")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_have_their_status() {
        for (sqlstate, status) in [
            ("42P01", Some(Status::NotFound)),
            ("42P07", Some(Status::AlreadyExists)),
            ("42501", Some(Status::Unauthorized)),
            ("23505", Some(Status::Integrity)),
            ("25P02", Some(Status::InvalidState)),
            ("0A000", Some(Status::NotImplemented)),
            ("57014", Some(Status::Cancelled)),
            ("22012", None),
            ("", None),
        ] {
            assert_eq!(status_of_sqlstate(sqlstate, ""), status, "{sqlstate}");
        }
        let message = "canceling statement due to statement timeout";
        assert_eq!(status_of_sqlstate("57014", message), Some(Status::Timeout));
    }

    #[test]
    fn a_client_error_keeps_its_text() {
        let error = "oracle://host".parse::<dray_client::Uri>().unwrap_err();
        let converted = of_client(&error);
        assert_eq!(converted.status, Status::InvalidArguments);
        assert!(converted.message.contains("(dray://host:port"), "{}", converted.message);
        assert_eq!(sqlstate_of(&converted), "");
    }

    #[test]
    fn a_panic_spoils_one_call() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let error = guarded(|| -> Result<()> { panic!("no\0pe") }).unwrap_err();
        std::panic::set_hook(hook);
        assert_eq!(error.status, Status::Internal);
        assert!(error.message.contains("no pe"), "{}", error.message);
        assert_eq!(guarded(|| Ok(5)).unwrap(), 5);
    }
}
