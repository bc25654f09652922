//! Rows of a table in the order of its primary key, over one connection.
//!
//! A server sends the rows of a table in the order of the index that it has read them by: a short
//! one that has all columns of the statement, or one that suits the condition. If it is told the
//! order, it reads by the primary key, or sorts what few rows another index has found.

use dray_mysql::TableScan;

use super::table::primary_key;
use super::{MysqlSource, is_refusal};
use crate::error::Result;
use crate::options::QueryOptions;
use crate::watch::CancelCheck;

impl MysqlSource {
    /// A statement of one table whose rows come in the order of the primary key, if they were asked
    /// for in order; None if they were not, or can't be told to come so, for [`Self::unordered`].
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn in_order(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<Option<String>> {
        self.unordered = None;
        if !options.postgres.ordered || options.plan_only {
            return Ok(None);
        }
        let session = &self.connection.session;
        let scan = match TableScan::parse_for_order(sql, session.escapes()) {
            // The question for the key would replace what it reads.
            Ok(_) if session.reads_what_is_left(sql) => {
                self.unordered = Some("it reads what the statement before has left".to_owned());
                return Ok(None);
            }
            Ok(scan) => scan,
            Err(why) => {
                self.unordered = Some(why.to_string());
                return Ok(None);
            }
        };
        let columns = self.run(cancel, |connection, check| {
            match primary_key(&mut connection.session, &scan, check) {
                // If the user's statement is wrong, running it will say so.
                Err(error) if is_refusal(&error) && connection.session.is_usable() => Ok(vec![]),
                columns => columns,
            }
        })?;
        if columns.is_empty() {
            self.unordered = Some("it reads no table with a primary key".to_owned());
            return Ok(None);
        }
        Ok(Some(scan.in_order(&columns)))
    }

    /// Why the rows of the last statement have no order that was asked for, as the end of a
    /// sentence.
    pub(super) fn unordered(&self) -> String {
        let why = self.unordered.as_ref();
        why.map(|why| format!("; ordered has no effect: {why}")).unwrap_or_default()
    }
}
