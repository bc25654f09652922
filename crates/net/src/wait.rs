//! Waiting for a connection.

use std::io;
use std::time::Instant;

/// The deadline of a connection that is being made, and whether to keep waiting for it.
pub struct Wait<'a> {
    deadline: Instant,
    /// Once false, always false.
    keep_waiting: &'a mut dyn FnMut() -> bool,
}

impl std::fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<'a> Wait<'a> {
    /// Waits until `deadline`, while `keep_waiting` returns true. Once it has returned false, it
    /// must not return true again.
    pub fn new(deadline: Instant, keep_waiting: &'a mut dyn FnMut() -> bool) -> Self {
        Self { deadline, keep_waiting }
    }

    /// The same wait, with an earlier end.
    pub fn until(&mut self, deadline: Instant) -> Wait<'_> {
        Wait { deadline: deadline.min(self.deadline), keep_waiting: &mut *self.keep_waiting }
    }

    /// The same wait for the first of `attempts_left` attempts, each of which gets its share of the
    /// time.
    pub fn share(&mut self, attempts_left: usize) -> Wait<'_> {
        let now = Instant::now();
        let rest = self.deadline.saturating_duration_since(now);
        self.until(now + rest / u32::try_from(attempts_left.max(1)).unwrap_or(u32::MAX))
    }

    /// The deadline.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Fails once the deadline has passed or nobody waits any longer.
    ///
    /// # Errors
    /// `TimedOut` or `Other`; neither is a tick to [`is_timeout`](super::is_timeout).
    pub fn check(&mut self) -> io::Result<()> {
        if !(self.keep_waiting)() {
            return Err(io::Error::other("connecting was cancelled"));
        }
        match self.is_over() {
            false => Ok(()),
            true => Err(io::Error::new(io::ErrorKind::TimedOut, "the time to connect is over")),
        }
    }
}
