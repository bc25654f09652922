//! Parts of a statement over connections that this process holds.

use std::time::Duration;

use dray_mysql::shared_tables;
use dray_wire::Estimate;

use super::super::{HeldParts, Source};
use super::connection::Connection;
use super::reason::Reason;
use super::scan::Scan;
use super::settings::Settings;
use super::snapshot::alone;
use super::table::is_temporary;
use super::{MysqlSource, Size};
use crate::error::{Error, ErrorKind, Result};
use crate::held_plan::HoldOptions;
use crate::options::{Partitions, QueryOptions};
use crate::source::frames::DecoderCache;
use crate::watch::{CancelCheck, Verdict};

/// A server must not end a held connection before the lease is over. MariaDB's limits of idle
/// transactions are off ([`Settings::to_another`]).
const SILENCE_BEYOND_LEASE: Duration = Duration::from_secs(60);

impl MysqlSource {
    /// Divides a statement into parts over connections that begin one snapshot.
    ///
    /// # Errors
    /// Those of [`Source::hold_parts`].
    pub(super) fn hold(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        hold: &HoldOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<HeldParts> {
        if !self.is_usable() || self.is_in_transaction() {
            return Err(Error::usage("the connection is busy, broken or in a transaction")
                .with_hint("end what it does, or connect again"));
        }
        self.estimate = Estimate::default();
        let ranges_max = hold.at_most.map_or(usize::MAX, |parts| parts as usize);
        let divided = match connections(hold, ranges_max) {
            Err(reason) => Err(reason),
            Ok(partitions) => {
                let mut query = query.clone();
                query.postgres.partitions = partitions;
                let HoldOptions { connections_max, may_lock, .. } = *hold;
                let size = Size { connections_max, ranges_max, may_lock };
                self.divide(sql, &query, size, cancel)?
            }
        };
        let (mut connections, statements, reason) = match divided {
            Ok(divided) => (divided.snapshot.workers, divided.table.ranges, None),
            Err(reason) => {
                self.check_shared(sql, cancel)?;
                let ordered = self.in_order(sql, query, cancel)?;
                let connection = self.alone(cancel)?;
                let statement = ordered.unwrap_or_else(|| sql.to_owned());
                let reason = format!("{reason}{}", self.unordered());
                (vec![connection], vec![statement], Some(reason))
            }
        };
        for connection in &mut connections {
            keep(connection, hold.lease, cancel)?;
        }
        let first = connections
            .first_mut()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a snapshot without a connection"))?;
        let options = QueryOptions { plan_only: true, ..query.clone() };
        let estimate = self.estimate;
        let planned = first.run(cancel, |connection, check| {
            Scan::start(connection, sql, &options, estimate, &mut DecoderCache::default(), check)
        })?;
        let Some(schema) = planned.schema().filter(|schema| !schema.fields().is_empty()) else {
            return Err(Error::usage("the statement has no rows, so it has no parts"));
        };
        let sources = connections.into_iter().map(|connection| {
            let source: Box<dyn Source> = Box::new(Self::over(connection));
            source
        });
        Ok(HeldParts { connections: sources.collect(), statements, schema, estimate, reason })
    }

    /// Checks that another connection reads what this one would.
    ///
    /// # Errors
    /// Usage, if it may not, and when the connection breaks or planning is cancelled.
    fn check_shared(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<()> {
        let tables = shared_tables(sql, self.connection.session.escapes());
        let tables = tables.map_err(|why| differs(&why.to_string()))?;
        let temporary = self.run(cancel, |connection, check| {
            for table in tables {
                match is_temporary(&mut connection.session, &table, check) {
                    Ok(true) => return Ok(Some(table)),
                    Ok(false) => {}
                    // It is no table. If it has to be one, describing the statement says so.
                    Err(error)
                        if error.kind() != ErrorKind::Cancelled
                            && connection.session.is_usable() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        })?;
        match temporary {
            Some(table) => Err(differs(&format!("{table} is a temporary table"))),
            None => Ok(()),
        }
    }

    /// Another connection with a snapshot of its own, which sees what this one would.
    fn alone(&mut self, cancel: CancelCheck<'_>) -> Result<Connection> {
        let settings =
            self.run(cancel, |connection, check| Settings::of(&mut connection.session, check))?;
        let mut keep_waiting = || cancel() == Verdict::Continue;
        alone(&self.connection.endpoint, &settings, &mut keep_waiting)?.map_err(|reason| {
            Error::new(ErrorKind::Execution, format!("parts need another connection: {reason}"))
        })
    }
}

/// The error of a statement that only its own session can read.
fn differs(why: &str) -> Error {
    Error::usage(format!("other connections may read something else than this one: {why}"))
        .with_hint("run the statement with query()")
}

/// How many connections to ask for; a reason if one is enough.
fn connections(hold: &HoldOptions, ranges_max: usize) -> std::result::Result<Partitions, Reason> {
    match (hold.at_most, u8::try_from(hold.connections_max.min(ranges_max))) {
        (Some(1), _) => Err(Reason::OneAsked),
        (_, Ok(0 | 1)) => Err(Reason::OneConnection),
        (None, _) => Ok(Partitions::Auto),
        (Some(_), count) => Ok(Partitions::Exactly(count.unwrap_or(u8::MAX))),
    }
}

/// Lets the server wait for the next statement for as long as the lease lasts.
fn keep(connection: &mut Connection, lease: Duration, cancel: CancelCheck<'_>) -> Result<()> {
    let seconds = lease.saturating_add(SILENCE_BEYOND_LEASE).as_secs();
    connection.run(cancel, |connection, check| {
        connection.session.ask(&format!("SET SESSION wait_timeout = {seconds}"), check)?;
        Ok(())
    })
}
