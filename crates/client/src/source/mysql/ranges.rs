//! The ranges of a table, which workers read over connections that have begun one snapshot.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dray_wire::Estimate;

use super::super::frames::DecoderCache;
use super::super::partitioned::RangeScan;
use super::super::{Event, ReceiveContext};
use super::connection::Connection;
use super::scan::Scan;
use super::settings::limit_statement;
use crate::error::{Error, ErrorKind, Result};
use crate::options::QueryOptions;
use crate::watch::{CancelCheck, Verdict};

/// A table to read over several connections.
#[derive(Debug)]
pub(super) struct TableRanges {
    /// Those that no worker has taken. No other can begin their snapshot.
    connections: Mutex<Vec<Connection>>,
    workers: usize,
    /// A statement for each range, in the order of the primary key.
    ranges: Vec<String>,
    /// The options of these statements.
    options: QueryOptions,
    /// When the session's limit would end the user's statement.
    deadline: Option<Instant>,
}

impl TableRanges {
    pub(super) fn new(
        connections: Vec<Connection>,
        ranges: Vec<String>,
        options: QueryOptions,
        deadline: Option<Instant>,
    ) -> Self {
        let workers = connections.len();
        Self { connections: Mutex::new(connections), workers, ranges, options, deadline }
    }
}

impl RangeScan for TableRanges {
    type Connection = Connection;
    type Scan = Scan;

    fn ranges(&self) -> usize {
        self.ranges.len()
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn is_ordered(&self) -> bool {
        self.options.postgres.ordered
    }

    fn connect(&self, _: &mut dyn FnMut() -> bool) -> Result<Connection> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.pop().ok_or_else(|| {
            let what = "a connection that read a part of the table has ended, and its snapshot \
                        with it";
            Error::new(ErrorKind::Execution, what)
                .with_hint("read the table again, or with one connection (partitions=1)")
        })
    }

    fn is_usable(connection: &Connection) -> bool {
        connection.session.is_usable()
    }

    fn start(
        &self,
        range: usize,
        connection: &mut Connection,
        decoders: &mut DecoderCache,
        cancel: CancelCheck<'_>,
    ) -> Result<Scan> {
        if let Some(deadline) = self.deadline {
            let mut keep_waiting = || cancel() == Verdict::Continue;
            connection.run_setup(&mut keep_waiting, |connection, check| {
                limit_statement(&mut connection.session, deadline, check)
            })?;
        }
        connection.run(cancel, |connection, check| {
            let (sql, estimate) = (&self.ranges[range], Estimate::default());
            Scan::start(connection, sql, &self.options, estimate, decoders, check)
        })
    }

    fn next(
        scan: &mut Scan,
        connection: &mut Connection,
        _: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        connection.run(cancel, |connection, check| scan.next(connection, context, check))
    }
}
