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

use dray_driver::{Driver, Parts};
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{debug, info, warn};

use self::plans::HeldPlans;
pub(crate) use self::session::RelaySession;
use self::session::source_thread;
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
    /// Clients that wait for a session.
    waiting: AtomicUsize,
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
            plans: HeldPlans::default(),
        }
    }

    pub(crate) fn dialect(&self) -> &'static str {
        self.driver.dialect()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A session, which connects when it gets its first statement.
    ///
    /// # Errors
    /// If none is free for this time, or there is no thread for it.
    pub(crate) async fn session(&self, timeout: Duration) -> Result<RelaySession, ServerError> {
        let permit = self.connection(timeout).await?;
        RelaySession::start(self.name.clone(), self.driver.clone(), permit).map_err(|cause| {
            let what = format!("the server can't start a thread for the source: {cause}");
            engine::error(ErrorKind::Resources, "53000", what, "try again later")
        })
    }

    /// The permit for a connection to the source.
    ///
    /// # Errors
    /// If none is free for this time.
    async fn connection(&self, timeout: Duration) -> Result<OwnedSemaphorePermit, ServerError> {
        if let Ok(permit) = self.connections.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = Waiting::new(&self.waiting);
        let acquired = self.connections.clone().acquire_owned();
        match tokio::time::timeout(timeout, acquired).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.busy(timeout)),
        }
    }

    /// The permits for the connections that a plan may hold: one, and more if they are free.
    ///
    /// # Errors
    /// If none is free for this time.
    pub(crate) async fn connections_of_plan(
        &self,
        timeout: Duration,
        at_most: usize,
    ) -> Result<OwnedSemaphorePermit, ServerError> {
        let mut permits = self.connection(timeout).await?;
        while permits.num_permits() < at_most
            && let Ok(more) = self.connections.clone().try_acquire_owned()
        {
            permits.merge(more);
        }
        Ok(permits)
    }

    /// The two ends of a result of this source, and where its columns come first.
    pub(crate) fn channel(
        &self,
    ) -> (ResultSink, oneshot::Receiver<Result<Begun, ServerError>>, Rows) {
        sink::channel(self.connections.clone())
    }

    /// Holds the parts of a plan until its lease ends.
    pub(crate) fn hold(
        self: &Arc<Self>,
        plan: PlanId,
        lease: Duration,
        parts: Arc<dyn Parts>,
        permits: OwnedSemaphorePermit,
    ) {
        self.plans.insert(plan, parts, permits);
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

    /// The parts of a plan; None if it is not one of this source, or its lease is over.
    pub(crate) fn held(&self, plan: PlanId) -> Option<Arc<dyn Parts>> {
        self.plans.get(plan)
    }

    fn busy(&self, timeout: Duration) -> ServerError {
        let what = format!(
            "the statement waited {timeout:?} for a connection to {}: others use all {}",
            self.name, self.connections_max
        );
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
