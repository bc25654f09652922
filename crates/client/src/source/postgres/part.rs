//! Reading a part of a plan: a transaction under the planner's snapshot, on whatever connection.

use dray_postgres::{CancelCheck as SocketCheck, Session, Socket, TableScan};
use dray_wire::partition::{HeldSnapshot, PartDescriptor, PartSource, PostgresPart};

use super::super::{Event, ReceiveContext, Source, decode_parameters};
use super::PostgresSource;
use super::held::{LockedRelations, ServerRun, policy_settings, settings, sorted_oids};
use super::import::{Whose, begin_under, check_lease, explain_lock};
use super::parameters::parameters;
use super::snapshot::{ONE_PLAN, leaves};
use super::sql::{ask_one, explain, oid_of};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ParameterTyping;
use crate::watch::CancelCheck;

/// A part that is being read.
#[derive(Debug)]
pub(super) struct OpenPart {
    /// The table of a range, and its relations as the planner saw them.
    table: Option<RangeTable>,
}

#[derive(Debug)]
struct RangeTable {
    name: String,
    only: bool,
    relations: String,
}

impl PostgresSource {
    /// Begins the transaction of a part, and returns the statement to run in it. The transaction
    /// ends with the statement.
    ///
    /// # Errors
    /// When the server is another one, the lease is over, or this session would see something else
    /// than the planner.
    pub(super) fn open_part(
        &mut self,
        part: &PartDescriptor,
        cancel: CancelCheck<'_>,
    ) -> Result<String> {
        if self.is_running() || !self.is_usable() {
            return Err(Error::usage("the connection is busy or broken")
                .with_hint("read its result to the end, or connect again"));
        }
        if self.is_in_transaction() {
            return Err(Error::usage("a part can't be read in a transaction of another snapshot")
                .with_hint("end the transaction first, or use another connection"));
        }
        let PartSource::Postgres(of_server) = &part.source else {
            return Err(Error::usage("the part is of a Dray server, and this is PostgreSQL"));
        };
        let opened = self
            .connection
            .run(cancel, |connection, check| open(&mut connection.session, part, of_server, check));
        match opened {
            Ok((sql, open)) => {
                self.part = Some(open);
                Ok(sql)
            }
            Err(error) => {
                if self.connection.session.is_in_transaction() {
                    // The first error counts.
                    let _ = self.connection.end_transaction("ROLLBACK", cancel);
                }
                Err(error)
            }
        }
    }

    /// Gives up the part that is being read, if there is one.
    pub(super) fn abandon_part(&mut self, cancel: CancelCheck<'_>) {
        if self.part.take().is_some() && self.connection.is_usable() {
            // If this fails, the connection is given up.
            let _ = self.connection.end_transaction("ROLLBACK", cancel);
        }
    }

    /// The next event of a part. Its transaction ends with it.
    pub(super) fn next_of_part(
        &mut self,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        let event = self.next_of_scan(context, cancel);
        let Some(part) = self.part.take_if(|_| matches!(event, Ok(Event::Finished { .. }))) else {
            if event.is_err() {
                self.abandon_part(cancel);
            }
            return event;
        };
        let checked = self.connection.run(cancel, |connection, check| match &part.table {
            Some(table) => table.check(&mut connection.session, check),
            None => Ok(()),
        });
        let how = if checked.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.end_transaction(how, cancel);
        checked.and(ended)?;
        event
    }
}

/// Begins a transaction that sees what the planner saw, in the order of spec/partitions.md section
/// 3.
fn open(
    session: &mut Session<Socket>,
    part: &PartDescriptor,
    of_server: &PostgresPart,
    check: SocketCheck<'_>,
) -> Result<(String, OpenPart)> {
    let HeldSnapshot { server, settings: expected, relations, .. } = &of_server.snapshot;
    let run = ServerRun::of(session, check)?;
    if run.name != *server {
        let what = "the part's server is another one, or was restarted or promoted since the plan \
                    was made";
        return Err(gone(what).with_hint("connect to the planner's server, or plan again"));
    }
    check_lease(&run, part, Whose::OfPart)?;
    let (scan, sql) = statement(session, part, of_server)?;
    begin_under(session, &of_server.snapshot, Whose::OfPart, check)?;
    let own = settings(session, &policy_settings(expected), check)?;
    if let Some((one, other)) = own.iter().zip(expected).find(|(one, other)| one != other) {
        let what = match one.0 == other.0 {
            true => {
                format!("the reader's {} is {:?}, the planner's was {:?}", one.0, one.1, other.1)
            }
            false => "the plan was made by another version of Dray".to_owned(),
        };
        return Err(Error::usage(what)
            .with_hint("log in as the planner did; settings can be in the uri (options=…)"));
    }
    let locked = match &scan {
        Some(scan) => lock_table(session, scan, &sql, check),
        None => {
            let row = decode_parameters(&part.parameters)?;
            let values = parameters(row.as_ref(), ParameterTyping::Values)?;
            LockedRelations::of(session, &part.sql, &values, check).map(|(locked, _)| locked.oids)
        }
    };
    if locked.map_err(explain_lock)? != *relations {
        return Err(changed());
    }
    session.ask("SET LOCAL lock_timeout TO DEFAULT", check)?;
    let table = scan.map(|scan| RangeTable {
        name: scan.table,
        only: scan.only,
        relations: relations.clone(),
    });
    Ok((sql, OpenPart { table }))
}

/// The statement of a part, with its table if it reads a range of it.
fn statement(
    session: &Session<Socket>,
    part: &PartDescriptor,
    of_server: &PostgresPart,
) -> Result<(Option<TableScan>, String)> {
    let Some(range) = &of_server.range else { return Ok((None, part.sql.clone())) };
    let scan = match range.partial {
        true => session.aggregate_scan(&part.sql),
        false => session.table_scan(&part.sql),
    };
    let mut scan = scan.map_err(|why| {
        Error::usage(format!("this version of Dray does not divide the plan's statement: {why}"))
            .with_hint("read it with the version that planned it")
    })?;
    if scan.table.contains('\\') {
        return Err(Error::usage("the part's table has a backslash in its name"));
    }
    scan.only = range.only;
    let sql = scan.block_range(range.from, range.to);
    Ok((Some(scan), sql))
}

/// Locks a table, and returns the oids of it and its partitions. The plan has to read a range in
/// the order of the table.
fn lock_table(
    session: &mut Session<Socket>,
    scan: &TableScan,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<String> {
    let TableScan { table, only, .. } = scan;
    session.ask(&format!("LOCK TABLE {table} IN ACCESS SHARE MODE; {ONE_PLAN}"), check)?;
    // EXPLAIN locks the indexes, too.
    if !scan.is_range_plan(&explain(session, sql, check)?) {
        let what = "the server plans the part in another way than the planner's connection";
        return Err(Error::new(ErrorKind::Execution, what).with_hint("plan again"));
    }
    relations_of(session, table, *only, check)
}

fn relations_of(
    session: &mut Session<Socket>,
    table: &str,
    only: bool,
    check: SocketCheck<'_>,
) -> Result<String> {
    let question = match only {
        true => format!("SELECT {}", oid_of(table)),
        false => leaves(table),
    };
    Ok(sorted_oids(&ask_one(session, &question, check)?))
}

impl RangeTable {
    /// Checks that no partition was added while the part was read.
    fn check(&self, session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<()> {
        match relations_of(session, &self.name, self.only, check)? == self.relations {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// The error of a part that can't be read any more.
fn gone(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Execution, what).with_hint("make a new plan")
}

fn changed() -> Error {
    let what = "the tables of the statement are not those of the plan: others were made, or \
                partitions were added";
    Error::new(ErrorKind::Execution, what).with_hint("make a new plan")
}
