//! Plans of partitions: a connection that holds a snapshot, and the parts that others read under
//! it.

use std::time::Duration;

use dray_format::arrow::schema_from_arrow;
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket, TableScan, is_query, shareable};
use dray_wire::partition::{
    BlockRange, HeldSnapshot, PARTS_MAX, PartDescriptor, PartSource, PostgresPart, RandomId,
};

use super::super::Event;
use super::super::frames::DecoderCache;
use super::super::{Holder, PlannedParts, Source, encode_parameters};
use super::PostgresSource;
use super::connection::Connection;
use super::held::{LockedRelations, ServerRun, settings, snapshot_digest, sorted_oids};
use super::parameters::{parameters, surplus};
use super::reason::{Decision, Reason};
use super::serial::SerialScan;
use super::snapshot::{BEGIN, NO_IDLE_TIMEOUT, Snapshot};
use super::sql::{ask_one, ask_optional, oid_of};
use super::table::{Requested, Table, called_function};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ParameterTyping, QueryOptions};
use crate::partition::PlanOptions;
use crate::source::ReceiveContext;
use crate::watch::{CancelCheck, Verdict};

/// The fewest blocks of a table that are worth a part.
const PART_BLOCKS_MIN: u64 = 128;
/// The bytes of a table in a part, if the user does not say how many parts there are.
const PART_BYTES: u64 = 64 << 20;
/// The most parts that the server is asked about one by one.
const PARTS_ESTIMATED_MAX: usize = 1024;
/// How often a snapshot is taken anew if a table was rewritten at the same moment.
const ATTEMPTS: usize = 5;

/// The connection that holds a plan's snapshot. Dropping it gives the snapshot up.
#[derive(Debug)]
struct SnapshotHolder {
    connection: Connection,
    process: u32,
}

impl Holder for SnapshotHolder {}

impl Drop for SnapshotHolder {
    fn drop(&mut self) {
        // A forked child shares the socket, and leaves it to its parent.
        if std::process::id() != self.process {
            self.connection.session.break_off();
            return;
        }
        // If the server has ended the transaction, there is nothing to do.
        let _ = self.connection.end_transaction("ROLLBACK", &mut || Verdict::Continue);
    }
}

/// A statement that is being planned.
struct Planning<'a> {
    sql: &'a str,
    query: &'a QueryOptions,
    plan: &'a PlanOptions,
}

/// The snapshot is exported; this is what readers read.
struct Exported {
    snapshot: HeldSnapshot,
    ranges: Vec<BlockRange>,
    /// The table and statements of `ranges`.
    scan: Option<TableScan>,
    /// Why there is one part.
    reason: Option<Reason>,
    deadline_us: u64,
}

impl PostgresSource {
    /// Plans a statement over a connection of its own.
    ///
    /// # Errors
    /// When the statement is not a query or does not plan, when another session may not see what
    /// this one sees, and when another connection can't be made.
    pub(super) fn plan_statement(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        self.check_plannable(sql, query)?;
        let endpoint = self.connection.endpoint.clone();
        let mut keep_waiting = || cancel() == Verdict::Continue;
        let mut planner = Connection::connect(&endpoint.uri, &endpoint.options, &mut keep_waiting)?;
        let own = self.connection.run(cancel, |connection, check| {
            Ok((
                ServerRun::of(&mut connection.session, check)?.name,
                settings(&mut connection.session, &[], check)?,
            ))
        })?;
        let attributes = self.policy.attributes();
        let planning = Planning { sql, query, plan };
        let planned = planner.run(cancel, |planner, check| {
            let run = ServerRun::of(&mut planner.session, check)?;
            let same = run.name == own.0 && settings(&mut planner.session, &[], check)? == own.1;
            if !same {
                let what = "another connection reached another server, or has other settings";
                return Err(differs(what));
            }
            if !attributes.is_empty() {
                let question = format!("SELECT {}", called_function(attributes));
                if let Some(function) = ask_optional(&mut planner.session, &question, check)? {
                    return Err(differs(&Reason::EarlierCall(function).to_string()));
                }
            }
            let exported = planning.export(planner, attributes, check)?;
            planning.describe(planner, run.name, exported, check)
        });
        let (schema, parts, reason) = planned?;
        let holder = SnapshotHolder { connection: planner, process: std::process::id() };
        let holder: Option<Box<dyn Holder>> = Some(Box::new(holder));
        Ok(PlannedParts { parts, schema, reason: reason.map(|why| why.to_string()), holder })
    }

    fn check_plannable(&self, sql: &str, query: &QueryOptions) -> Result<()> {
        if self.is_running() || !self.is_usable() {
            return Err(Error::usage("the connection is busy or broken")
                .with_hint("read its result to the end, or connect again"));
        }
        let session = &self.connection.session;
        if session.is_in_transaction() {
            return Err(differs("a transaction is open, whose changes no other session sees"));
        }
        if !self.policy.is_session_unchanged() {
            return Err(differs(&Reason::SessionMayDiffer.to_string()));
        }
        if !is_query(sql) {
            return Err(Error::usage(
                "only queries become partitions: SELECT, VALUES, TABLE, WITH",
            )
            .with_hint("run other statements with query()"));
        }
        let given = query.parameters.as_ref().map_or(0, |row| row.num_columns());
        match session.parameters_in(sql) {
            Some(highest) if given > highest => Err(surplus(highest, given)),
            _ => Ok(()),
        }
    }
}

/// The error of a session that others may not be able to stand in for.
fn differs(why: &str) -> Error {
    Error::usage(format!("this session can't be planned for: {why}")).with_hint(
        "plan with a new connection, outside of a transaction; settings can be in its uri \
         (options=-c%20search_path%3Dshop)",
    )
}

impl Planning<'_> {
    /// Takes and exports a snapshot: for ranges of a table if the statement allows it, else for all
    /// of it.
    fn export(
        &self,
        planner: &mut Connection,
        attributes: &std::collections::BTreeSet<String>,
        check: SocketCheck<'_>,
    ) -> Result<Exported> {
        let reason = match self.export_ranges(planner, attributes, check)? {
            Decision::Run(exported) => return Ok(exported),
            Decision::Refused(reason) => reason,
        };
        if planner.session.is_in_transaction() {
            planner.session.ask("ROLLBACK", check)?;
        }
        self.export_whole(&mut planner.session, reason, check)
    }

    fn export_ranges(
        &self,
        planner: &mut Connection,
        attributes: &std::collections::BTreeSet<String>,
        check: SocketCheck<'_>,
    ) -> Result<Decision<Exported>> {
        let session = &mut planner.session;
        if self.plan.at_most == Some(1) {
            return Ok(Decision::Refused(Reason::OneConnectionAsked));
        }
        if self.query.parameters.as_ref().is_some_and(|row| row.num_columns() > 0) {
            return Ok(Decision::Refused(Reason::Parameters));
        }
        let mut scan = match session.table_scan(self.sql) {
            Ok(scan) => scan,
            Err(why) => return Ok(Decision::Refused(Reason::NotSplittable(why))),
        };
        // Readers are not this machine's: its processors don't count.
        let requested = Requested { connections: Some(usize::MAX), ordered: false };
        let table = match Table::inspect(session, &mut scan, attributes, requested, check)? {
            Decision::Run(table) => table,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        let count = self.plan.at_most.map_or(table.bytes.div_ceil(PART_BYTES), u64::from);
        let count = count.min(table.blocks / PART_BLOCKS_MIN).min(PARTS_MAX.into());
        if count < 2 {
            return Ok(Decision::Refused(Reason::SmallForParts));
        }
        let taken = match Snapshot::take(session, &scan, self.sql, check)? {
            Decision::Run(taken) => taken,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        let bound = |i: u64| u32::try_from(table.blocks * i / count).unwrap_or(u32::MAX - 1);
        let ranges = (0..count).map(|i| BlockRange {
            from: bound(i),
            // The table may have grown.
            to: (i + 1 < count).then(|| bound(i + 1)),
            only: scan.only,
        });
        let relations = match taken.leaves {
            Some(leaves) => leaves,
            None => ask_one(session, &format!("SELECT {}", oid_of(&scan.table)), check)?,
        };
        let of_policies = taken.settings.into_iter().collect::<Vec<_>>();
        let snapshot = HeldSnapshot {
            server: String::new(),
            settings: settings(session, &of_policies, check)?,
            name: taken.id,
            digest: snapshot_digest(session, check)?,
            relations: sorted_oids(&relations),
        };
        Ok(Decision::Run(Exported {
            snapshot,
            ranges: ranges.collect(),
            scan: Some(scan),
            reason: None,
            deadline_us: begin_lease(session, self.plan.lease, check)?,
        }))
    }

    fn export_whole(
        &self,
        session: &mut Session<Socket>,
        reason: Reason,
        check: SocketCheck<'_>,
    ) -> Result<Exported> {
        let values = parameters(self.query.parameters.as_ref(), ParameterTyping::Values)?;
        for _ in 0..ATTEMPTS {
            session.ask(&format!("{BEGIN}; {NO_IDLE_TIMEOUT}"), check)?;
            let (locked, _) = LockedRelations::of(session, self.sql, &values, check)?;
            if let Some(table) = locked.foreign {
                let what = format!("{table} is a foreign table, which no snapshot covers");
                return Err(
                    Error::new(ErrorKind::Query, what).with_hint("read the statement with query()")
                );
            }
            if locked.changed {
                session.ask("ROLLBACK", check)?;
                continue;
            }
            let snapshot = HeldSnapshot {
                server: String::new(),
                settings: settings(session, &[], check)?,
                name: ask_one(session, "SELECT pg_catalog.pg_export_snapshot()", check)?,
                digest: snapshot_digest(session, check)?,
                relations: locked.oids,
            };
            return Ok(Exported {
                snapshot,
                ranges: Vec::new(),
                scan: None,
                reason: Some(reason),
                deadline_us: begin_lease(session, self.plan.lease, check)?,
            });
        }
        let what = "tables of the statement are rewritten again and again";
        Err(Error::new(ErrorKind::Execution, what).with_hint("plan the statement later"))
    }

    /// The columns, the parts' descriptors, and why there is only one.
    fn describe(
        &self,
        planner: &mut Connection,
        server: String,
        exported: Exported,
        check: SocketCheck<'_>,
    ) -> Result<(arrow::datatypes::SchemaRef, Vec<PartDescriptor>, Option<Reason>)> {
        let Exported { mut snapshot, ranges, scan, reason, deadline_us } = exported;
        snapshot.server = server;
        let schema = self.schema(planner, check)?;
        let endpoint = &planner.endpoint;
        let shared =
            shareable(&endpoint.uri, &planner.place, &planner.user, self.plan.include_password)?;
        let count = ranges.len().max(1);
        let of_server = PostgresPart {
            numeric: self.query.postgres.numeric.to_string(),
            nonfinite: self.query.postgres.nonfinite.to_string(),
            snapshot,
            range: None,
        };
        let mut part = PartDescriptor {
            plan: RandomId::random()?,
            index: 0,
            count: u32::try_from(count).unwrap_or(PARTS_MAX),
            deadline_us,
            rows: None,
            bytes: None,
            has_password: shared.has_password,
            uri: shared.uri.into(),
            sql: self.sql.to_owned(),
            parameters: encode_parameters(self.query.parameters.as_ref())?,
            schema: schema_from_arrow(&schema)?,
            source: PartSource::Postgres(of_server.clone()),
        };
        let mut parts = Vec::with_capacity(count);
        for i in 0..count {
            part.index = u32::try_from(i).unwrap_or(PARTS_MAX);
            let range = ranges.get(i).copied();
            part.source = PartSource::Postgres(PostgresPart { range, ..of_server.clone() });
            let sql = match (&scan, range) {
                (Some(scan), Some(range)) => Some(scan.block_range(range.from, range.to)),
                _ => part.parameters.is_empty().then(|| self.sql.to_owned()),
            };
            let estimate = match sql.filter(|_| count <= PARTS_ESTIMATED_MAX) {
                Some(sql) => planner.session.estimate(&sql, check)?,
                None => None,
            };
            part.rows = estimate.map(|(rows, _)| rows);
            part.bytes = estimate.map(|(rows, row_bytes)| rows.saturating_mul(row_bytes));
            parts.push(part.clone());
        }
        Ok((schema, parts, reason))
    }

    fn schema(
        &self,
        planner: &mut Connection,
        check: SocketCheck<'_>,
    ) -> Result<arrow::datatypes::SchemaRef> {
        let mut decoders = DecoderCache::default();
        let (mut memory, mut profile) = Default::default();
        let mut context =
            ReceiveContext { memory: &mut memory, profile: &mut profile, layout: None };
        let mut described = SerialScan::plan(planner, self.sql, self.query, &mut decoders, check)?;
        match described.next(planner, &mut decoders, &mut context, check)? {
            Event::Started(start) => Ok(start.schema),
            _ => Err(super::super::out_of_turn()),
        }
    }
}

/// Lets the server end the transaction when the lease is over, whatever becomes of this process.
/// Returns that time by the server's clock.
fn begin_lease(
    session: &mut Session<Socket>,
    lease: Duration,
    check: SocketCheck<'_>,
) -> Result<u64> {
    let ms = lease.as_millis().max(1);
    let limit = format!(
        "SELECT pg_catalog.set_config(s.name, '{ms}', true) FROM pg_catalog.pg_settings s \
         WHERE s.name OPERATOR(pg_catalog.=) ANY \
             ('{{idle_in_transaction_session_timeout,transaction_timeout}}'::pg_catalog.text[])"
    );
    session.ask(&limit, check)?;
    let now = "SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) \
         OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8";
    let now_us: u64 = ask_one(session, now, check)?.parse().unwrap_or_default();
    Ok(now_us.saturating_add(u64::try_from(lease.as_micros()).unwrap_or(u64::MAX)))
}
