//! The source's own statements: quoting, and reading simple answers.
//!
//! Every function and operator in them is qualified. In a session whose `search_path` has another
//! schema before `pg_catalog`, an unqualified name may be somebody else's, and so may the operators
//! behind `IN` and `IS DISTINCT FROM`.

use dray_postgres::{CancelCheck as SocketCheck, Error as PostgresError, Session, Socket};

use crate::error::{Error, ErrorKind, Result};

/// A string literal. The text has no backslashes.
pub(super) fn quoted(text: &str) -> String {
    debug_assert!(!text.contains('\\'), "backslashes may be escapes in this session");
    format!("'{}'", text.replace('\'', "''"))
}

/// An array of names.
pub(super) fn name_array<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names = names.into_iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(",");
    format!("ARRAY[{names}]::pg_catalog.name[]")
}

/// The oid of a table, as an expression.
pub(super) fn oid_of(table: &str) -> String {
    format!("{}::pg_catalog.regclass::pg_catalog.oid", quoted(table))
}

/// The first value of an answer; empty if there is none.
pub(super) fn ask_one(
    session: &mut Session<Socket>,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<String, PostgresError> {
    Ok(ask_optional(session, sql, check)?.unwrap_or_default())
}

/// The first value of an answer, if there is one.
pub(super) fn ask_optional(
    session: &mut Session<Socket>,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<Option<String>, PostgresError> {
    Ok(session.ask(sql, check)?.into_iter().flatten().flatten().next())
}

/// A time of the server in microseconds since 1970, as an expression. `time` is a function of
/// `pg_catalog` without arguments.
pub(super) fn epoch_us(time: &str) -> String {
    format!(
        "(pg_catalog.date_part('epoch', pg_catalog.{time}()) \
         OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8"
    )
}

/// The server's time, in microseconds since 1970, from the answer to [`epoch_us`].
pub(super) fn clock_us(answer: &str) -> Result<u64> {
    answer.parse().map_err(|_| {
        Error::new(ErrorKind::Protocol, format!("the server's clock says {answer:?}"))
            .with_hint("set its clock to a time after 1970")
    })
}

/// The lines of a statement's plan.
pub(super) fn explain(
    session: &mut Session<Socket>,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<Vec<String>, PostgresError> {
    let statement = session.enclosable(sql).unwrap_or(sql);
    let plan = session.ask(&format!("EXPLAIN {statement}"), check)?;
    Ok(plan.into_iter().flatten().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_no_time_after_1970() {
        assert_eq!(clock_us("17").unwrap(), 17);
        for answer in ["", "-5", "soon"] {
            let error = clock_us(answer).unwrap_err();
            assert!(error.message().contains("clock"), "{error}");
        }
    }
}
