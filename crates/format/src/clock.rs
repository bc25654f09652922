//! Clocks that encoding is timed by.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time since some moment, the same one at every call.
pub type Clock = fn() -> Duration;

/// The wall-clock time since the first call.
pub(crate) fn wall_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
