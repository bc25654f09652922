//! One snapshot for several connections. A server has no snapshot to hand over, so the connections
//! begin theirs while nobody can commit.
//!
//! ```text
//!   coordinator   a named lock · … ── lock commits ─────── unlock · … ────── bye
//!   worker        the same settings?  begin · open table   the same lock? · ranges …
//!   worker        the same settings?  begin · open table   the same lock? · ranges …
//! ```
//!
//! MariaDB locks commits alone, with `BACKUP STAGE`, and for less than a millisecond; older
//! versions with a binary log only those that it gets. Other servers have `FLUSH TABLES WITH READ
//! LOCK`, which also waits for statements that run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, Server, TableScan};
use dray_wire::partition::RandomId;

use super::connection::{Connection, Endpoint};
use super::reason::Reason;
use super::settings::Settings;
use crate::error::{Error, ErrorKind, Result};
use crate::watch::{CancelCheck, Verdict};

/// How long commits may wait for workers that begin.
const LOCKED_MAX: Duration = Duration::from_secs(2);
/// No lock is waited for longer, since others wait behind it, in seconds.
const LOCK_WAIT: u32 = 1;
/// The server drops a coordinator, and its lock, that says nothing for this many seconds.
const SILENCE_MAX: u32 = 5;
/// How long to wait before looking whether the statement was cancelled.
const TICK: Duration = Duration::from_millis(2);
const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
/// Asks for a statement that has run for long, of those that the user may see.
const LONG_STATEMENT: &str = "SELECT ID FROM information_schema.PROCESSLIST \
     WHERE COMMAND IN ('Query', 'Execute') AND TIME >= 5 AND ID <> CONNECTION_ID() LIMIT 1";
/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
const ACCESS_DENIED: u16 = 1227;

/// How commits are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitLock {
    BackupStage,
    FlushTables,
}

impl CommitLock {
    /// The lock that a server has.
    pub(super) fn of(connection: &Connection) -> Self {
        let server = connection.session.server();
        match server.is_mariadb() && server.number() >= (10, 4, 1) {
            true => Self::BackupStage,
            false => Self::FlushTables,
        }
    }

    fn lock(self) -> &'static str {
        match self {
            Self::BackupStage => "BACKUP STAGE BLOCK_COMMIT",
            Self::FlushTables => "FLUSH TABLES WITH READ LOCK",
        }
    }

    fn unlock(self) -> &'static str {
        match self {
            Self::BackupStage => "BACKUP STAGE END",
            Self::FlushTables => "UNLOCK TABLES",
        }
    }

    /// The least privilege that allows the lock. To unlock needs none.
    fn privilege(self, server: &Server) -> &'static str {
        match self {
            Self::FlushTables if !server.is_mariadb() && server.number() >= (8, 0, 23) => {
                "FLUSH_TABLES"
            }
            Self::FlushTables | Self::BackupStage => "RELOAD",
        }
    }
}

/// What workers need to begin.
#[derive(Debug)]
pub(super) struct SnapshotJob<'a> {
    pub(super) endpoint: Endpoint,
    pub(super) scan: &'a TableScan,
    /// The settings of the user's session.
    pub(super) settings: &'a Settings,
    pub(super) workers: usize,
    pub(super) lock: CommitLock,
}

/// Connections that see one snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) workers: Vec<Connection>,
    /// Why others could not begin.
    pub(super) failures: Vec<String>,
}

impl SnapshotJob<'_> {
    /// Connections that all see the same snapshot, and have the table open so that it keeps its
    /// definition.
    ///
    /// # Errors
    /// When the statement is cancelled, or the user's own connection breaks.
    pub(super) fn take(
        &self,
        user: &mut Connection,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<Snapshot, Reason>> {
        let name = format!("dray-{:032x}", u128::from_le_bytes(RandomId::random()?.0));
        let taken = self.take_named(&name, user, cancel);
        match taken {
            Ok(Ok(snapshot)) => Ok(Ok(snapshot)),
            _ if cancel() != Verdict::Continue => Err(super::super::cancelled()),
            Ok(Err(reason)) => Ok(Err(reason)),
            Err(error) if !user.session.is_usable() => Err(error),
            Err(error) => Ok(Err(Reason::NoOtherConnection(error.to_string()))),
        }
    }

    fn take_named(
        &self,
        name: &str,
        user: &mut Connection,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<Snapshot, Reason>> {
        let mut keep_waiting = || cancel() == Verdict::Continue;
        let mut coordinator = self.endpoint.connect(&mut keep_waiting)?;
        if let Some(reason) = self.coordinate(name, &mut coordinator, &mut keep_waiting)? {
            return Ok(Err(reason));
        }
        let id = coordinator.session.server().connection_id;
        // The user's connection has to be as good as before, also if this is cancelled.
        if !user.run(cancel, |user, check| holds(user, name, id, check))? {
            return Ok(Err(Reason::OtherServer));
        }
        let keep_waiting: &mut dyn FnMut() -> bool = &mut || cancel() == Verdict::Continue;
        let joined = each(vec![(); self.workers], keep_waiting, |(), keep_waiting| {
            worker(&self.endpoint, self.settings, Some(LOCK_WAIT), keep_waiting)
        });
        let mut workers = Vec::with_capacity(joined.len());
        let mut failures = Vec::new();
        let mut refused = None;
        for worker in joined {
            let reason = match worker {
                Ok(Ok(worker)) => {
                    workers.push(worker);
                    continue;
                }
                Ok(Err(reason)) => Ok(reason),
                Err(error) => Err(error),
            };
            failures.push(reason.as_ref().map_or_else(Error::to_string, Reason::to_string));
            refused = Some(reason);
        }
        if let Some(refused) = refused.filter(|_| workers.len() < 2) {
            return refused.map(Err);
        }
        if let Some(reason) = self.run(&mut coordinator, self.lock.lock(), keep_waiting)? {
            return Ok(Err(reason));
        }
        let deadline = Instant::now() + LOCKED_MAX;
        let begun = each(workers, keep_waiting, |mut worker, keep_waiting| {
            let mut keep_waiting = || keep_waiting() && Instant::now() < deadline;
            worker.run_setup(&mut keep_waiting, |worker, check| self.begin(worker, check))?;
            Ok(worker)
        });
        self.run(&mut coordinator, self.lock.unlock(), keep_waiting)?;
        let begun = begun.into_iter().collect::<Result<Vec<_>>>()?;
        // A proxy may send a transaction to another server than what came before it.
        let checked = each(begun, keep_waiting, |mut worker, keep_waiting| {
            let holds =
                worker.run_setup(keep_waiting, |worker, check| holds(worker, name, id, check))?;
            Ok(holds.then_some(worker))
        });
        let checked = checked.into_iter().collect::<Result<Option<Vec<_>>>>()?;
        Ok(checked.map(|workers| Snapshot { workers, failures }).ok_or(Reason::OtherServer))
    }

    /// Sets up the coordinator. It holds a lock of this name, so that others can tell whether they
    /// are on the same server. Returns why it can't lock commits, if that is known already.
    fn coordinate(
        &self,
        name: &str,
        coordinator: &mut Connection,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Reason>> {
        coordinator.run_setup(keep_waiting, |coordinator, check| {
            let settings = format!(
                "SET SESSION lock_wait_timeout = {LOCK_WAIT}, SESSION wait_timeout = {SILENCE_MAX}"
            );
            coordinator.session.ask(&settings, check)?;
            let locked =
                coordinator.session.ask(&format!("SELECT GET_LOCK('{name}', 0)"), check)?;
            match locked.into_iter().flatten().flatten().next().as_deref() {
                Some("1") => Ok(()),
                _ => Err(Error::new(ErrorKind::Execution, "the server gives no named lock")),
            }
        })?;
        if !locks_all_commits(coordinator.session.server())
            && let Some(reason) = self.filters(coordinator, keep_waiting)?
        {
            return Ok(Some(reason));
        }
        match self.lock {
            // This holds nobody back.
            CommitLock::BackupStage => self.run(coordinator, "BACKUP STAGE START", keep_waiting),
            CommitLock::FlushTables => {
                let long = coordinator.run_setup(keep_waiting, |coordinator, check| {
                    Ok(coordinator.session.ask(LONG_STATEMENT, check)?)
                })?;
                Ok((!long.is_empty()).then_some(Reason::LongStatement))
            }
        }
    }

    /// Whether the binary log leaves out some databases, whose commits would pass the lock.
    fn filters(
        &self,
        coordinator: &mut Connection,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Reason>> {
        coordinator.run_setup(keep_waiting, |coordinator, check| {
            let is_on = coordinator.session.ask("SELECT @@log_bin", check)?;
            if is_on.into_iter().flatten().flatten().next().as_deref() != Some("1") {
                return Ok(None);
            }
            match coordinator.session.ask("SHOW MASTER STATUS", check) {
                // File, position, binlog_do_db, binlog_ignore_db.
                Ok(rows) => {
                    let mut filters = rows.into_iter().flat_map(|row| row.into_iter().skip(2));
                    let is_any =
                        filters.any(|filter| filter.is_some_and(|names| !names.is_empty()));
                    Ok(is_any.then_some(Reason::BinlogFilter))
                }
                Err(error) if error.code() == Some(ACCESS_DENIED) => {
                    Ok(Some(Reason::NoPrivilege("REPLICATION CLIENT", self.settings.user())))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Runs a statement of the lock. Returns the reason if the user may not.
    fn run(
        &self,
        coordinator: &mut Connection,
        statement: &str,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Reason>> {
        coordinator.run_setup(keep_waiting, |coordinator, check| {
            match coordinator.session.ask(statement, check) {
                Ok(_) => Ok(None),
                Err(error) if error.code() == Some(ACCESS_DENIED) => {
                    let privilege = self.lock.privilege(coordinator.session.server());
                    Ok(Some(Reason::NoPrivilege(privilege, self.settings.user())))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Begins a snapshot, and opens the table, which nobody can change then before the transaction
    /// ends.
    fn begin(&self, worker: &mut Connection, check: SocketCheck<'_>) -> Result<()> {
        worker.session.ask(BEGIN, check)?;
        worker.session.ask(&format!("SELECT 1 FROM {} LIMIT 0", self.scan.table), check)?;
        Ok(())
    }
}

/// Whether no commit passes a server's lock. MariaDB's lets those pass that a filter keeps out of a
/// binary log; those that are known to be mended begin with these.
fn locks_all_commits(server: &Server) -> bool {
    !server.is_mariadb()
        || match server.number() {
            (10, 11, patch) => patch >= 19,
            (11, 4, patch) => patch >= 5,
            // 11.5, 11.6 and 11.7.1 were released before 11.4.5.
            number => number >= (11, 7, 2),
        }
}

/// A connection that can begin a snapshot, and has these settings, and the limits and the time of
/// their session. It waits `lock_wait` seconds for a lock, if that is not the session's limit.
fn worker(
    endpoint: &Endpoint,
    settings: &Settings,
    lock_wait: Option<u32>,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Result<Connection, Reason>> {
    let mut worker = endpoint.connect(keep_waiting)?;
    let same = worker.run_setup(keep_waiting, |worker, check| {
        let found = Settings::of(&mut worker.session, check)?;
        let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        worker.session.ask(isolation, check)?;
        let set = settings.to_another(&found, worker.session.server(), lock_wait);
        worker.session.ask(&set, check)?;
        Ok(found.mean_the_same(settings))
    })?;
    Ok(if same { Ok(worker) } else { Err(Reason::OtherSettings) })
}

/// A connection with these settings that has begun a snapshot of its own.
///
/// # Errors
/// When it can't connect, or `keep_waiting` returns false.
pub(super) fn alone(
    endpoint: &Endpoint,
    settings: &Settings,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Result<Connection, Reason>> {
    let mut worker = match worker(endpoint, settings, None, keep_waiting)? {
        Ok(worker) => worker,
        Err(reason) => return Ok(Err(reason)),
    };
    worker.run_setup(keep_waiting, |worker, check| Ok(worker.session.ask(BEGIN, check)?))?;
    Ok(Ok(worker))
}

/// Whether connection `id` holds the lock of this name on the server of `connection`.
fn holds(connection: &mut Connection, name: &str, id: u32, check: SocketCheck<'_>) -> Result<bool> {
    let rows = connection.session.ask(&format!("SELECT IS_USED_LOCK('{name}')"), check)?;
    let holder = rows.into_iter().flatten().flatten().next();
    Ok(holder.and_then(|holder| holder.parse().ok()) == Some(id))
}

/// Runs `work` for each item in a thread of its own, while `keep_waiting` returns true.
fn each<T: Send, R: Send>(
    items: Vec<T>,
    keep_waiting: &mut dyn FnMut() -> bool,
    work: impl Fn(T, &mut dyn FnMut() -> bool) -> R + Sync,
) -> Vec<R> {
    let (stopped, work) = (AtomicBool::new(false), &work);
    thread::scope(|scope| {
        let threads = items.into_iter().map(|item| {
            let stopped = &stopped;
            scope.spawn(move || work(item, &mut || !stopped.load(Ordering::SeqCst)))
        });
        let threads = threads.collect::<Vec<_>>();
        while threads.iter().any(|thread| !thread.is_finished()) {
            stopped.fetch_or(!keep_waiting(), Ordering::SeqCst);
            thread::sleep(TICK);
        }
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_versions() {
        for (version, locks_all) in [
            ("5.6.51", true),
            ("8.0.36", true),
            ("10.3.39-MariaDB", false),
            ("5.5.5-10.11.5-MariaDB-log", false),
            ("10.11.19-MariaDB-0+deb12u1", true),
            ("11.2.6-MariaDB", false),
            ("11.4.4-MariaDB", false),
            ("11.4.5-MariaDB", true),
            ("11.5.2-MariaDB", false),
            ("11.6.9-MariaDB", false),
            ("11.7.1-MariaDB", false),
            ("11.7.2-MariaDB", true),
            ("11.8.1-MariaDB", true),
            ("12.1.0-MariaDB", true),
        ] {
            assert_eq!(locks_all_commits(&Server::new(version, 1, 0, 0)), locks_all, "{version}");
        }
    }

    #[test]
    fn privileges_of_versions() {
        use CommitLock::{BackupStage, FlushTables};
        for (version, lock, privilege) in [
            ("5.7.44", FlushTables, "RELOAD"),
            ("8.0.22", FlushTables, "RELOAD"),
            ("8.0.23", FlushTables, "FLUSH_TABLES"),
            ("8.4.3", FlushTables, "FLUSH_TABLES"),
            ("5.5.5-10.3.39-MariaDB", FlushTables, "RELOAD"),
            ("11.8.3-MariaDB", BackupStage, "RELOAD"),
        ] {
            assert_eq!(lock.privilege(&Server::new(version, 1, 0, 0)), privilege, "{version}");
        }
    }
}
