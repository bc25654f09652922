//! What drivers say, as failures of a bridge.

use dray_bridge::{Failure, FailureKind};

use crate::odbc::Diagnostic;

/// `program_limit_exceeded`.
const LIMIT: &str = "54000";

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::new(kind(&diagnostic.sqlstate), &diagnostic.sqlstate, diagnostic.message)
    }
}

/// By the SQLSTATE's class, which databases and the driver manager share.
fn kind(sqlstate: &str) -> FailureKind {
    let (class, _) = sqlstate.split_at_checked(2).unwrap_or((sqlstate, ""));
    match (class, sqlstate) {
        ("08" | "57", _) | (_, "HYT01" | "IM002" | "IM003" | "01000") if sqlstate != "57014" => {
            FailureKind::Connection
        }
        (_, "57014" | "HY008") => FailureKind::Cancelled,
        (_, "HY001" | "HY013" | "HY014") | ("53", _) => FailureKind::Resources,
        ("54", _) => FailureKind::Limit,
        ("07" | "0A" | "21" | "25" | "26" | "28" | "34" | "37" | "3D" | "3F" | "42" | "44", _) => {
            FailureKind::Query
        }
        ("S0", _) | (_, "HYC00" | "HY090") => FailureKind::Query,
        _ => FailureKind::Execution,
    }
}

/// A value that makes a row larger than the client accepts. The columns before it have `earlier`
/// bytes.
pub(crate) fn too_long(column: &str, bytes: usize, earlier: u64, bytes_max: u64) -> Failure {
    let beside = match earlier {
        0 => String::new(),
        earlier => format!(" beside {earlier} bytes in the columns before it"),
    };
    let message = format!(
        "the column {column:?} has a value of {bytes} bytes{beside}, and the client accepts rows \
         of {bytes_max} bytes at most; raise row_bytes_max"
    );
    Failure::new(FailureKind::Limit, LIMIT, message)
}

/// A length that no value of a column can have.
pub(crate) fn wrong_length(column: &str, length: isize) -> Failure {
    let message = match length {
        isize::MIN => format!("the driver gave a value of the column {column:?} no length"),
        length => format!("the driver gave a value of the column {column:?} the length {length}"),
    };
    Failure::new(FailureKind::Execution, "HY000", message)
}
