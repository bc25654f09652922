//! The ranges of a table, which workers read under the coordinator's snapshot.
//!
//! ```text
//!   coordinator   BEGIN · LOCK TABLE · export snapshot · … keeps the transaction … · COMMIT
//!   worker        import snapshot · range · range · …
//!   worker        import snapshot · range · range · …
//! ```

use std::time::Instant;

use dray_postgres::TableScan;

use super::super::frames::DecoderCache;
use super::super::partitioned::RangeScan;
use super::super::{Event, ReceiveContext};
use super::connection::{Connection, Endpoint};
use super::policy::decide_extension;
use super::serial::SerialScan;
use super::snapshot::{Snapshot, limit_statement};
use crate::error::{Error, ErrorKind, Result};
use crate::options::QueryOptions;
use crate::watch::{CancelCheck, Verdict};

/// A table to read over several connections.
#[derive(Debug)]
pub(super) struct TableRanges {
    /// How workers connect.
    pub(super) endpoint: Endpoint,
    pub(super) scan: TableScan,
    pub(super) snapshot: Snapshot,
    /// A statement for each range of the table, in the table's order.
    pub(super) ranges: Vec<String>,
    /// The options of these statements.
    pub(super) options: QueryOptions,
    /// When `statement_timeout` would end the user's statement.
    pub(super) deadline: Option<Instant>,
    pub(super) workers: usize,
    /// Whether batches arrive in the order of the ranges.
    pub(super) ordered: bool,
}

impl RangeScan for TableRanges {
    type Connection = Connection;
    type Scan = SerialScan;

    fn ranges(&self) -> usize {
        self.ranges.len()
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn connect(&self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<Connection> {
        let Self { endpoint, snapshot, scan, .. } = self;
        let deadline = endpoint.pooled_timeout.map(|max| (Instant::now() + max, max));
        let is_over = || deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline);
        let mut keep_waiting = || keep_waiting() && !is_over();
        let joined = endpoint.connect(&mut keep_waiting).and_then(|mut connection| {
            connection.run_setup(&mut keep_waiting, |session, check| {
                snapshot.join(session, scan, check)
            })?;
            Ok(connection)
        });
        joined.map_err(|error| match deadline {
            Some((_, max)) if error.kind() == ErrorKind::Connection && is_over() => Error::new(
                ErrorKind::Connection,
                format!("the pooler gave no other connection within {max:?}"),
            ),
            _ => error,
        })
    }

    fn is_usable(connection: &Connection) -> bool {
        connection.is_usable()
    }

    fn start(
        &self,
        range: usize,
        connection: &mut Connection,
        decoders: &mut DecoderCache,
        cancel: CancelCheck<'_>,
    ) -> Result<SerialScan> {
        if let Some(deadline) = self.deadline {
            let mut keep_waiting = || cancel() == Verdict::Continue;
            connection.run_setup(&mut keep_waiting, |session, check| {
                limit_statement(session, deadline, check)
            })?;
        }
        let (sql, options) = (&self.ranges[range], &self.options);
        let extension = decide_extension(&connection.extension, sql, options.postgres.extension);
        let (scan, _) = connection.run(cancel, |connection, check| {
            SerialScan::start(connection, extension, sql, options, decoders, check)
        })?;
        Ok(scan)
    }

    fn next(
        scan: &mut SerialScan,
        connection: &mut Connection,
        decoders: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        connection.run(cancel, |connection, check| scan.next(connection, decoders, context, check))
    }
}
