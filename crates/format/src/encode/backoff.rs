//! Exponential backoff, counted in chunks.

/// The longest wait in chunks, plus one.
const WAIT_MAX: u8 = 16;

/// How often an encoding was tried without success. After each failure the wait is about twice as
/// long, because the sample of the next chunk would suggest the same trial again.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u8,
    wait: u8,
}

impl Backoff {
    /// Whether to try again. Asked once a chunk.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    /// Records how a trial went.
    pub(super) fn record(&mut self, won: bool) {
        self.failures =
            if won { 0 } else { self.failures.saturating_add(1).min(WAIT_MAX.ilog2() as u8) };
        self.wait = (1 << self.failures) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_retried_ever_more_rarely() {
        let mut backoff = Backoff::default();
        let mut tries = Vec::new();
        for chunk in 0..60 {
            if backoff.is_due() {
                tries.push(chunk);
                backoff.record(false);
            }
        }
        assert_eq!(tries, [0, 2, 6, 14, 30, 46]);
        backoff.record(true);
        assert!(backoff.is_due() && backoff.is_due());
    }
}
