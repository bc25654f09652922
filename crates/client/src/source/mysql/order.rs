//! Rows of a table in the order of its primary key, over one connection.
//!
//! A server sends the rows of a table in the order of the index that it has read them by: a short
//! one that has all columns of the statement, or one that suits the condition. If it is told the
//! order, it reads by the primary key, or sorts what few rows another index has found.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session, TableScan};

use super::table::{PRIMARY, is_table, is_temporary, quoted};
use super::{MysqlSource, is_refusal};
use crate::error::Result;
use crate::options::QueryOptions;
use crate::watch::CancelCheck;

impl MysqlSource {
    /// A statement of one table whose rows come in the order of the primary key, if they were asked
    /// for in order; None if they were not, or the statement is another.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn in_order(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<Option<String>> {
        if !options.postgres.ordered || options.plan_only || options.parameters.is_some() {
            return Ok(None);
        }
        let Ok(scan) = TableScan::parse(sql, self.connection.session.escapes()) else {
            return Ok(None);
        };
        self.run(cancel, |connection, check| {
            match by_primary_key(&mut connection.session, &scan, check) {
                // If the user's statement is wrong, running it will say so.
                Err(error) if is_refusal(&error) && connection.session.is_usable() => Ok(None),
                ordered => ordered,
            }
        })
    }
}

/// The statement of a scan in the order of its table's primary key; None without one.
fn by_primary_key(
    session: &mut Session<Socket>,
    scan: &TableScan,
    check: SocketCheck<'_>,
) -> Result<Option<String>> {
    let question = format!(
        "SELECT s.COLUMN_NAME, s.COLLATION FROM information_schema.STATISTICS s \
         WHERE {} AND s.INDEX_NAME = '{PRIMARY}' ORDER BY s.SEQ_IN_INDEX",
        is_table(scan, "s")
    );
    let columns = session.ask(&question, check)?.into_iter().map(|row| {
        let mut row = row.into_iter();
        let (name, collation) = (row.next()??, row.next().flatten());
        let direction = if collation.as_deref() == Some("D") { " DESC" } else { "" };
        Some(format!("{}{direction}", quoted(&name)))
    });
    let columns = columns.collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty());
    Ok(match columns {
        Some(columns) if !is_temporary(session, scan, check)? => Some(scan.in_order(&columns)),
        _ => None,
    })
}
