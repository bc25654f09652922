//! The clock that times encoding.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Returns the time since a fixed moment.
pub type Clock = fn() -> Duration;

/// The wall-clock time since the first call.
pub(crate) fn wall_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
