//! Several connections that fill one new table, which gets its name at the end.
//!
//! ```text
//!   coordinator   create a staging table · rows ─┬─ all have ended ─▶ drop the old table, rename
//!   worker                       connect · rows ─┤
//!   worker                       connect · rows ─┘
//! ```
//!
//! The rows of each connection are a transaction of their own, but in a table that nobody knows:
//! the coordinator's last statement makes all rows appear, or none. After a failure the staging
//! table is dropped. If this process ends in the middle, the staging table stays, and its name says
//! what it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Look;
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::watch::Verdict;
use crate::write::{WriteMode, WriteOptions, WriteStats};

/// The most connections.
const CONNECTIONS_MAX: usize = 64;
/// How long the coordinator sleeps between looks at its workers.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Checks that the connections that the options want can write.
///
/// # Errors
/// Usage, if not.
pub(in crate::source) fn check_connections(
    options: &WriteOptions,
    is_in_transaction: bool,
) -> Result<()> {
    let connections = options.connections;
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        let what = format!("{connections} connections, expected 1 to {CONNECTIONS_MAX}");
        return Err(Error::usage(what));
    }
    let why = if connections == 1 {
        return Ok(());
    } else if is_in_transaction {
        "a transaction is open, and rows of other connections could not belong to it"
    } else if options.temporary {
        "a temporary table belongs to one connection"
    } else if matches!(options.mode, WriteMode::Append | WriteMode::CreateAppend) {
        "rows that several connections append would be several transactions, of which some may fail"
    } else {
        return Ok(());
    };
    Err(Error::usage(why).with_hint(
        "write over one connection; several can create or replace a table, outside a transaction",
    ))
}

/// The coordinator writes over its connection by `own`, and each worker by `other`, over one that
/// it makes. Returns the sums of what they have written, or the first failure, after which the
/// others stop.
///
/// # Errors
/// The first of `own` and `other`, or when a thread can't be started.
pub(in crate::source) fn write(
    connections: usize,
    look: Look<'_>,
    own: impl FnOnce(Look<'_>) -> Result<WriteStats>,
    other: impl Fn(Look<'_>) -> Result<WriteStats> + Sync,
) -> Result<WriteStats> {
    let writers = Writers::default();
    let look = || writers.look_after(look());
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 2..=connections {
            let worker = thread::Builder::new().name(format!("dray-write-{number}"));
            let work = || writers.note(other(&|| writers.verdict()));
            match worker.spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(cause) => {
                    let what = "can't start a thread for each connection";
                    writers.note(Err(Error::new(ErrorKind::Resources, what).with_cause(cause)));
                    break;
                }
            }
        }
        writers.note(own(&look));
        while workers.iter().any(|worker| !worker.is_finished()) {
            look();
            thread::sleep(LOOK_INTERVAL);
        }
        for worker in workers {
            if let Err(panic) = worker.join() {
                writers.note(Err(Error::new(ErrorKind::Internal, panic_text(&*panic))));
            }
        }
    });
    writers.outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a worker's connection, while its look says to go on.
///
/// # Errors
/// Those of `connect`.
pub(in crate::source) fn connect<C>(
    look: Look<'_>,
    connect: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<C>,
) -> Result<C> {
    connect(&mut || look() == Verdict::Continue).map_err(|error| {
        let what = "another connection to write over can't be made";
        let sqlstate = error.sqlstate().unwrap_or_default().to_owned();
        Error::new(error.kind(), what).with_sqlstate(sqlstate).with_cause(error)
    })
}

/// What the threads share.
struct Writers {
    /// One has failed, or the watch has cancelled.
    stopped: AtomicBool,
    /// Nobody waits for the server.
    abandoned: AtomicBool,
    /// The sums of those that have ended, or the first failure.
    outcome: Mutex<Result<WriteStats>>,
}

impl Default for Writers {
    fn default() -> Self {
        Self {
            stopped: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            outcome: Mutex::new(Ok(WriteStats::default())),
        }
    }
}

impl Writers {
    /// Notes how a writer has ended. The others stop after a failure.
    fn note(&self, ended: Result<WriteStats>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *outcome, ended) {
            (Ok(sum), Ok(stats)) => sum.add(&stats),
            (Ok(_), Err(error)) => {
                self.stopped.store(true, Ordering::SeqCst);
                *outcome = Err(error);
            }
            (Err(_), _) => {}
        }
    }

    /// What a worker has to do.
    fn verdict(&self) -> Verdict {
        match (self.abandoned.load(Ordering::SeqCst), self.stopped.load(Ordering::SeqCst)) {
            (true, _) => Verdict::Abandon,
            (false, true) => Verdict::Cancel,
            (false, false) => Verdict::Continue,
        }
    }

    /// The same for the coordinator, whose watch has decided this.
    fn look_after(&self, verdict: Verdict) -> Verdict {
        self.stopped.fetch_or(verdict > Verdict::Continue, Ordering::SeqCst);
        self.abandoned.fetch_or(verdict == Verdict::Abandon, Ordering::SeqCst);
        self.verdict()
    }
}
