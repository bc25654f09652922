//! Plans of partitions: a connection that holds a snapshot, and the parts that others read under
//! it.

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
use super::import::{EarlierPlan, LOCK_TIMEOUT, check_unchanged, explain_lock};
use super::parameters::{parameters, surplus};
use super::reason::{Decision, Reason};
use super::serial::SerialScan;
use super::snapshot::{BEGIN, NO_IDLE_TIMEOUT, Snapshot};
use super::sql::{ask_one, ask_optional, clock_us, epoch_us, oid_of};
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
    /// Whose snapshot this plan has, too.
    earlier: Option<EarlierPlan<'a>>,
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
        let mut planner = endpoint.connect(&mut keep_waiting)?;
        let own = self.connection.run(cancel, |connection, check| {
            Ok((
                ServerRun::of(&mut connection.session, check)?.name,
                settings(&mut connection.session, &[], check)?,
            ))
        })?;
        let attributes = self.policy.attributes();
        let earlier = EarlierPlan::of(plan)?;
        let planning = Planning { sql, query, plan, earlier };
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
            if let Some(earlier) = &earlier {
                earlier.check_server(&run)?;
                // Looking at a table's size waits for locks, too.
                planner.session.ask(LOCK_TIMEOUT, check)?;
            }
            let exported = planning.export(planner, attributes, check)?;
            let relations = exported.snapshot.relations.clone();
            Ok((relations, planning.describe(planner, run.name, exported, check)?))
        });
        let (relations, (schema, parts, reason)) = planned?;
        if earlier.is_some() {
            check_unchanged(&mut planner, &mut self.connection, &relations, cancel)?;
        }
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
    /// What begins the transaction that holds the snapshot. If it is that of an earlier plan, the
    /// transaction has begun already.
    fn begin(&self, session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<String> {
        match &self.earlier {
            None => Ok(format!("{BEGIN}; {NO_IDLE_TIMEOUT}; ")),
            Some(earlier) => earlier.begin(session, check).map(|()| String::new()),
        }
    }

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
        let scan = match self.plan.partial {
            true => session.aggregate_scan(self.sql),
            false => session.table_scan(self.sql),
        };
        let mut scan = match scan {
            Ok(scan) => scan,
            Err(why) => return Ok(Decision::Refused(Reason::NotSplittable(why))),
        };
        // Readers are not this machine's: its processors don't count.
        let requested =
            Requested { connections: Some(usize::MAX), at_most: usize::MAX, ordered: false };
        let table = match Table::inspect(session, &mut scan, attributes, requested, check)? {
            Decision::Run(table) => table,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        let count = self.plan.at_most.map_or(table.bytes.div_ceil(PART_BYTES), u64::from);
        let count = count.min(table.blocks / PART_BLOCKS_MIN).min(PARTS_MAX.into());
        if count < 2 {
            return Ok(Decision::Refused(Reason::SmallForParts));
        }
        let begin = self.begin(session, check)?;
        // The bytes of a part come sooner by an index than by a scan of the table.
        let taken = match Snapshot::take(session, &begin, &scan, self.sql, Some(PART_BYTES), check)?
        {
            Decision::Run(taken) => taken,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        let bound = |i: u64| u32::try_from(table.blocks * i / count).unwrap_or(u32::MAX - 1);
        let ranges = (0..count).map(|i| BlockRange {
            from: bound(i),
            // The table may have grown.
            to: (i + 1 < count).then(|| bound(i + 1)),
            only: scan.only,
            partial: scan.aggregates,
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
            deadline_us: self.begin_lease(session, check)?,
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
            let begin = self.begin(session, check)?;
            if !begin.is_empty() {
                session.ask(&begin, check)?;
            }
            let locked = LockedRelations::of(session, self.sql, &values, check);
            let (locked, _) = locked.map_err(explain_lock)?;
            if let Some(table) = locked.foreign {
                let what = format!("{table} is a foreign table, which no snapshot covers");
                return Err(
                    Error::new(ErrorKind::Query, what).with_hint("read the statement with query()")
                );
            }
            // Under an earlier plan's snapshot, it is asked later what has changed.
            if locked.changed && self.earlier.is_none() {
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
                deadline_us: self.begin_lease(session, check)?,
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
        let uri = endpoint.uri.reveal();
        let shared = shareable(uri, &planner.place, &planner.user, self.plan.include_password)?;
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

    /// Lets the server end the transaction when the lease is over, whatever becomes of this
    /// process. Returns that time by the server's clock.
    fn begin_lease(&self, session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<u64> {
        if self.earlier.is_some() {
            // Locks were not waited for.
            session.ask("SET LOCAL lock_timeout TO DEFAULT", check)?;
        }
        let lease = self.plan.lease;
        let ms = lease.as_millis().max(1);
        let limit = format!(
            "SELECT pg_catalog.set_config(s.name, '{ms}', true) FROM pg_catalog.pg_settings s \
             WHERE s.name OPERATOR(pg_catalog.=) ANY \
                 ('{{idle_in_transaction_session_timeout,transaction_timeout}}'::pg_catalog.text[])"
        );
        session.ask(&limit, check)?;
        let now = ask_one(session, &format!("SELECT {}", epoch_us("clock_timestamp")), check)?;
        let now_us = clock_us(&now)?;
        Ok(now_us.saturating_add(u64::try_from(lease.as_micros()).unwrap_or(u64::MAX)))
    }
}
