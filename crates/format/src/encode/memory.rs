//! What was tried on a column, chunk after chunk.

/// The most chunks for which a way that failed is not tried again, plus one.
const WAIT_MAX: u8 = 16;

/// The ways to write a column that cost a pass over its values before they are known to be worth
/// it.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(super) runs: Vain,
    pub(super) delta: Vain,
    pub(super) dictionary: Vain,
    pub(super) decimals: Vain,
    pub(super) relative: Vain,
}

/// How often a way was tried in vain: the more often in a row, the longer it is left alone, for a
/// look at a few values will promise the same of the next chunk.
#[derive(Debug, Default)]
pub(super) struct Vain {
    failures: u8,
    wait: u8,
}

impl Vain {
    /// Whether to try again. It is to be asked once a chunk.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

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
    fn what_fails_is_tried_more_and_more_seldom() {
        let mut vain = Vain::default();
        let mut tries = Vec::new();
        for chunk in 0..60 {
            if vain.is_due() {
                tries.push(chunk);
                vain.record(false);
            }
        }
        assert_eq!(tries, [0, 2, 6, 14, 30, 46]);
        vain.record(true);
        assert!(vain.is_due() && vain.is_due());
    }
}
