//! Clients that stop reading.

use std::time::{Duration, Instant};

use tracing::info;

use super::{Closed, Shared};

/// How often to look whether a client still reads.
const STALL_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches that a client reads what is sent to it.
pub(crate) struct Stall {
    unsent_bytes: usize,
    since: Instant,
    looks: tokio::time::Interval,
}

impl Stall {
    /// So much is to be sent.
    pub(crate) fn begin(unsent_bytes: usize) -> Self {
        let looks = tokio::time::interval_at(
            tokio::time::Instant::now() + STALL_LOOK_EVERY,
            STALL_LOOK_EVERY,
        );
        Self { unsent_bytes, since: Instant::now(), looks }
    }

    /// Waits until it is time for a look.
    pub(crate) async fn look(&mut self) {
        self.looks.tick().await;
    }

    /// Fails when nothing has been read for too long: so much is unsent now.
    pub(crate) fn check(&mut self, unsent_bytes: usize, shared: &Shared) -> Result<(), Closed> {
        if unsent_bytes != self.unsent_bytes {
            (self.unsent_bytes, self.since) = (unsent_bytes, Instant::now());
            return Ok(());
        }
        let limit = shared.stall_limit();
        if self.since.elapsed() < limit {
            return Ok(());
        }
        info!("closed: the client read nothing for {limit:?}");
        Err(Closed)
    }
}
