//! Detects clients that stop reading.

use std::time::{Duration, Instant};

use tracing::info;

use super::{Closed, Shared};

/// How often to check that the client still reads.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Watches one write: it fails once the client has read nothing for too long.
pub(crate) struct StallDetector {
    unsent_bytes: usize,
    /// When `unsent_bytes` last changed.
    since: Instant,
    checks: tokio::time::Interval,
}

impl StallDetector {
    pub(crate) fn new(unsent_bytes: usize) -> Self {
        let first = tokio::time::Instant::now() + CHECK_INTERVAL;
        let checks = tokio::time::interval_at(first, CHECK_INTERVAL);
        Self { unsent_bytes, since: Instant::now(), checks }
    }

    /// Waits for the next check.
    pub(crate) async fn tick(&mut self) {
        self.checks.tick().await;
    }

    /// Fails if `unsent_bytes` has not changed for the stall timeout.
    pub(crate) fn check(&mut self, unsent_bytes: usize, shared: &Shared) -> Result<(), Closed> {
        debug_assert!(unsent_bytes <= self.unsent_bytes);
        if unsent_bytes != self.unsent_bytes {
            (self.unsent_bytes, self.since) = (unsent_bytes, Instant::now());
            return Ok(());
        }
        let timeout = shared.stall_timeout();
        if self.since.elapsed() < timeout {
            return Ok(());
        }
        info!("closed: the client read nothing for {timeout:?}");
        Err(Closed)
    }
}
