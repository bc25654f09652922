//! Sources: databases that statements are passed on to.
//!
//! ```text
//!   connection ── statement ─▶ a session's thread: run ─▶ ResultSink ─▶ Rows ─▶ produce: chunks …
//!                                     │                    one batch waits here
//!                                     └── the database
//! ```
//!
//! A session belongs to one client's connection, from its first statement until the client leaves,
//! so nothing that a statement leaves behind in it reaches another client. It has a thread of its
//! own, since a [`Driver`] blocks.

mod plans;
mod session;
mod sink;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dray_driver::Driver;
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{debug, info, warn};

use self::plans::HeldPlans;
pub(crate) use self::plans::{HeldPlan, PartReader};
use self::session::source_thread;
pub(crate) use self::session::{PlanTask, RelaySession};
pub(crate) use self::sink::{Begun, ResultSink, Rows, lost};
use crate::engine;
use crate::metrics::SourceMetrics;
use crate::options::SourceOptions;
use crate::slots::Waiting;
use crate::tickets::PlanId;

/// A source, and what limits its use.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) name: String,
    pub(crate) metrics: Arc<SourceMetrics>,
    driver: Arc<dyn Driver>,
    connections_max: usize,
    connections: Arc<Semaphore>,
    /// Clients that wait for a connection.
    waiting: AtomicUsize,
    /// Whose turn it is to wait for one beside its session.
    turn: Mutex<()>,
    plans: HeldPlans,
}

impl Relay {
    pub(crate) fn new(options: &SourceOptions) -> Self {
        let connections_max = options.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            name: options.name.clone(),
            metrics: Arc::default(),
            driver: options.driver.clone(),
            connections_max,
            connections: Arc::new(Semaphore::new(connections_max)),
            waiting: AtomicUsize::new(0),
            turn: Mutex::default(),
            plans: HeldPlans::default(),
        }
    }

    pub(crate) fn dialect(&self) -> &'static str {
        self.driver.dialect()
    }

    pub(crate) fn has_unfit_values(&self) -> bool {
        self.driver.has_unfit_values()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A session, which connects when it gets its first statement, and has `permit` until it ends.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(crate) fn session(
        &self,
        permit: OwnedSemaphorePermit,
    ) -> Result<RelaySession, ServerError> {
        let started = RelaySession::start(self.name.clone(), self.driver.clone(), permit);
        started.map_err(session::no_thread)
    }

    /// The permits for so many connections to the source, once all of them are free.
    ///
    /// # Errors
    /// If they are not for this time.
    pub(crate) async fn connections(
        &self,
        count: u32,
        timeout: Duration,
    ) -> Result<OwnedSemaphorePermit, ServerError> {
        if let Ok(permits) = self.connections.clone().try_acquire_many_owned(count) {
            return Ok(permits);
        }
        let _waiting = Waiting::new(&self.waiting);
        let acquired = self.connections.clone().acquire_many_owned(count);
        match tokio::time::timeout(timeout, acquired).await {
            Ok(Ok(permits)) => Ok(permits),
            _ => Err(self.busy(count, timeout)),
        }
    }

    /// The permit for a second connection of a client, beside that of its session. If all clients
    /// had one and wanted another, nobody would get it. So one client at a time waits for a permit,
    /// and the others wait for their turn. None if `idle`, which tells when such a client has to
    /// give way, ends first.
    ///
    /// # Errors
    /// If none is free for this time.
    pub(crate) async fn another_connection(
        &self,
        timeout: Duration,
        idle: impl Future<Output = ()>,
    ) -> Result<Option<OwnedSemaphorePermit>, ServerError> {
        let acquired = async {
            let _turn = tokio::select! {
                biased;
                turn = self.turn.lock() => turn,
                () = idle => return Ok(None),
            };
            self.connections(1, timeout).await.map(Some)
        };
        tokio::time::timeout(timeout, acquired).await.unwrap_or_else(|_| Err(self.busy(1, timeout)))
    }

    /// Adds to the permits of a plan, up to `at_most`. Half of the free connections are left to
    /// others.
    pub(crate) fn add_connections(&self, permits: &mut OwnedSemaphorePermit, at_most: usize) {
        let more = at_most.saturating_sub(permits.num_permits());
        let more = more.min(self.connections.available_permits() / 2);
        let more = u32::try_from(more).ok().filter(|more| *more > 0);
        let more = more.and_then(|more| self.connections.clone().try_acquire_many_owned(more).ok());
        if let Some(more) = more {
            permits.merge(more);
        }
    }

    /// Whether the source may have so many connections.
    ///
    /// # Errors
    /// If it may not, since `what` needs them.
    pub(crate) fn check_allows(&self, connections: usize, what: &str) -> Result<(), ServerError> {
        if connections <= self.connections_max {
            return Ok(());
        }
        let what = format!(
            "{what} needs {connections} connections to {}, and the server allows {}",
            self.name, self.connections_max
        );
        let hint = "run the statement as a whole, or raise the server's --source-connections";
        Err(engine::error(ErrorKind::Resources, "53300", what, hint))
    }

    /// The two ends of a result of this source, and where its columns come first.
    pub(crate) fn channel(
        &self,
    ) -> (ResultSink, oneshot::Receiver<Result<Begun, ServerError>>, Rows) {
        sink::channel(self.connections.clone())
    }

    /// Holds a plan until its lease ends.
    pub(crate) fn hold(self: &Arc<Self>, plan: PlanId, lease: Duration, held: HeldPlan) {
        self.plans.insert(plan, held);
        let relay = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(lease).await;
            relay.release(plan).await;
        });
    }

    /// Gives a plan up. It closes connections, which may take a moment.
    pub(crate) async fn release(&self, plan: PlanId) {
        self.plans.release(plan).await;
    }

    /// A plan; None if it is not one of this source, or its lease is over.
    pub(crate) fn held(&self, plan: PlanId) -> Option<Arc<HeldPlan>> {
        self.plans.get(plan)
    }

    fn busy(&self, count: u32, timeout: Duration) -> ServerError {
        let (name, most) = (&self.name, self.connections_max);
        let what = match count {
            1 => format!(
                "the statement waited {timeout:?} for a connection to {name}: others use all {most}"
            ),
            _ => format!(
                "the statement waited {timeout:?} for {count} connections to {name}: others use \
                 its {most}"
            ),
        };
        let hint = "try again later, or raise the server's --source-connections";
        engine::error(ErrorKind::Resources, "53300", what, hint)
    }

    /// Connects once, by a thread, to tell the log whether the source is there.
    pub(crate) fn check(self: &Arc<Self>) {
        let relay = self.clone();
        // Without a thread, the log does not tell.
        let _ = source_thread().spawn(move || relay.connect_once());
    }

    fn connect_once(&self) {
        // Without a free connection, clients have seen that it is there.
        let Ok(permit) = self.connections.try_acquire() else { return };
        let source = self.name.as_str();
        let opened = self.driver.open(&mut || true).map(|session| session.server().to_owned());
        // Whoever reads the log may count connections.
        drop(permit);
        match opened {
            Ok(server) => info!(source, server, "the source is there"),
            Err(error) => {
                warn!(source, "{}; statements for it will fail until it is there", error.message);
                debug!(source, "{}", error.hint);
            }
        }
    }
}
