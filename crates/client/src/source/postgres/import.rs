//! Beginning a transaction under the snapshot that a planner holds, and whether what it reads is
//! still what that snapshot saw: `spec/partitions.md` sections 3 and 9.

use std::fmt;
use std::time::Duration;

use dray_postgres::{CancelCheck as SocketCheck, Error as PostgresError, Session, Socket};
use dray_wire::partition::{HeldSnapshot, PartDescriptor, PartSource};

use super::connection::Connection;
use super::held::{ServerRun, snapshot_digest};
use super::snapshot::{BEGIN, NO_IDLE_TIMEOUT};
use crate::error::{Error, ErrorKind, Result};
use crate::partition::PlanOptions;
use crate::watch::CancelCheck;

/// The SQLSTATE of a snapshot that has ended.
pub(super) const SNAPSHOT_ENDED: &str = "72000";

/// Under the snapshot of another one, no lock is waited for long: whoever is ahead in the queue
/// waits for its planner, which may wait for this session.
pub(super) const LOCK_TIMEOUT: &str = "SET lock_timeout = '1s'";
const MAKE_ANEW: &str = "make all plans anew that must see the same, the first without it";

/// Whose snapshot it is, as errors say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of the plan of a part, which is read.
    OfPart,
    /// That of an earlier plan, under which another one is made.
    OfEarlier,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OfPart => "the plan",
            Self::OfEarlier => "the earlier plan",
        })
    }
}

impl Whose {
    /// The error of a snapshot that nothing can be read under any more.
    fn ended(self, what: impl Into<String>) -> Error {
        let hint = match self {
            Self::OfPart => "make a new plan",
            Self::OfEarlier => MAKE_ANEW,
        };
        Error::new(ErrorKind::Execution, what).with_hint(hint).with_sqlstate(SNAPSHOT_ENDED)
    }
}

/// The snapshot of an earlier plan, which a new one is to have, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlierPlan<'a> {
    part: &'a PartDescriptor,
    held: &'a HeldSnapshot,
}

impl<'a> EarlierPlan<'a> {
    /// # Errors
    /// Usage, if the plan is not one of PostgreSQL.
    pub(super) fn of(plan: &'a PlanOptions) -> Result<Option<Self>> {
        let Some(part) = plan.snapshot.as_ref().map(|part| &part.0) else { return Ok(None) };
        match &part.source {
            PartSource::Postgres(of_server) => Ok(Some(Self { part, held: &of_server.snapshot })),
            PartSource::Dray(_) => {
                Err(Error::usage("the earlier plan is of a Dray server, and this is PostgreSQL")
                    .with_hint("plans have one snapshot if they are made over one uri"))
            }
        }
    }

    /// Checks that this is the earlier plan's server, and that its lease is not over.
    ///
    /// # Errors
    /// Execution.
    pub(super) fn check_server(&self, run: &ServerRun) -> Result<()> {
        if run.name != self.held.server {
            let what = "this is another server or database than the earlier plan's, or it was \
                        restarted or promoted since";
            return Err(Whose::OfEarlier.ended(what));
        }
        check_lease(run, self.part, Whose::OfEarlier)
    }

    /// Begins a transaction under its snapshot.
    ///
    /// # Errors
    /// When the snapshot has ended, or the connection breaks.
    pub(super) fn begin(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        begin_under(session, self.held, Whose::OfEarlier, check)
    }
}

/// # Errors
/// Execution, if the plan's lease is over by the server's clock.
pub(super) fn check_lease(run: &ServerRun, part: &PartDescriptor, whose: Whose) -> Result<()> {
    if run.now_us < part.deadline_us {
        return Ok(());
    }
    let late = Duration::from_micros(run.now_us - part.deadline_us);
    Err(whose.ended(format!("{whose}'s lease ended {} s ago", late.as_secs())))
}

/// Begins a transaction that sees what the planner sees. No lock is waited for long: whoever is
/// ahead in the queue waits for the planner, which may wait for this transaction.
///
/// # Errors
/// When the planner's transaction has ended, the snapshot is not the planner's, or the connection
/// breaks.
pub(super) fn begin_under(
    session: &mut Session<Socket>,
    HeldSnapshot { name, digest, .. }: &HeldSnapshot,
    whose: Whose,
    check: SocketCheck<'_>,
) -> Result<()> {
    if !name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(Error::usage(format!("the name of {whose}'s snapshot is not a server's")));
    }
    let begin = format!(
        "{BEGIN}; SET TRANSACTION SNAPSHOT '{name}'; {NO_IDLE_TIMEOUT}; \
         SET LOCAL lock_timeout = '1s'"
    );
    let begun: Result<_, PostgresError> = session.ask(&begin, check);
    begun.map_err(|error| match error.sqlstate() {
        // Which of these the server says depends on its version and on the moment.
        Some("22023" | "42704" | "55000") => whose.ended(format!(
            "{whose}'s snapshot is gone: {whose} was released or its planner has ended"
        )),
        _ => error.into(),
    })?;
    match snapshot_digest(session, check)? == *digest {
        true => Ok(()),
        false => Err(whose.ended("the snapshot is not the planner's")),
    }
}

/// What to say if a lock is not to be had soon.
pub(super) fn explain_lock(error: Error) -> Error {
    match error.sqlstate() {
        Some("55P03") => Error::new(
            ErrorKind::Execution,
            "another session waits to change a table of the plan, and readers wait behind it",
        )
        .with_hint("end what waits there, or plan again after it")
        .with_sqlstate("55P03"),
        _ => error,
    }
}

/// Checks that relations, which the planner has locked after its snapshot was taken, are still what
/// the snapshot saw. Rows of others would be missing or too many under it: those of a table that
/// was emptied, or of a partition that was attached meanwhile. `other` has no transaction, so it
/// sees the present.
///
/// # Errors
/// Execution, if one of them was changed; when a connection breaks.
pub(super) fn check_unchanged(
    planner: &mut Connection,
    other: &mut Connection,
    relations: &str,
    cancel: CancelCheck<'_>,
) -> Result<()> {
    let asked = definitions(relations);
    let then = planner.run(cancel, |planner, check| Ok(planner.session.ask(&asked, check)?))?;
    let now = other.run(cancel, |other, check| Ok(other.session.ask(&asked, check)?))?;
    match then.iter().zip(&now).find(|(then, now)| then != now) {
        None if then.len() == now.len() => Ok(()),
        different => {
            let table = different.and_then(|(then, _)| then.first()?.as_deref());
            let what = format!(
                "{} was made, emptied, rewritten or altered after the earlier plan's snapshot was \
                 taken, which does not have its rows",
                table.unwrap_or("a table of the statement")
            );
            Err(Error::new(ErrorKind::Execution, what).with_hint(MAKE_ANEW))
        }
    }
}

/// Asks what relations are: their files, columns, partitions and rules. The rows of catalogs are
/// those of the transaction's snapshot, so two transactions tell what has changed between theirs.
/// The columns of partitions are those of their tables.
fn definitions(relations: &str) -> String {
    let [equal, least] = ["=", ">"].map(|name| format!("OPERATOR(pg_catalog.{name})"));
    let oids = relations.replace(' ', ",");
    format!(
        "SELECT o.oid::pg_catalog.regclass::pg_catalog.text,
             (SELECT pg_catalog.concat_ws(' ', c.relkind, c.relfilenode, c.relispartition)
                 FROM pg_catalog.pg_class c WHERE c.oid {equal} o.oid),
             (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attnum, a.attname, \
                     a.atttypid, a.atttypmod, a.attisdropped), ',' ORDER BY a.attnum)
                 FROM pg_catalog.pg_attribute a
                 JOIN pg_catalog.pg_class c ON c.oid {equal} a.attrelid
                 WHERE a.attrelid {equal} o.oid AND NOT c.relispartition
                     AND a.attnum {least} '0'::pg_catalog.int2),
             (SELECT pg_catalog.string_agg(i.inhrelid::pg_catalog.text, ' ' ORDER BY i.inhrelid)
                 FROM pg_catalog.pg_inherits i WHERE i.inhparent {equal} o.oid),
             (SELECT pg_catalog.string_agg(r.ev_action::pg_catalog.text, ' ' ORDER BY r.oid)
                 FROM pg_catalog.pg_rewrite r WHERE r.ev_class {equal} o.oid)
         FROM pg_catalog.unnest('{{{oids}}}'::pg_catalog.oid[]) o(oid) ORDER BY o.oid"
    )
}
