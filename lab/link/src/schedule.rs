//! The schedule of a direction: its rate over time, and when it stalls or is cut.
//!
//! The schedule is known in advance, so the time at which a packet leaves the line can be computed
//! when the packet arrives.

/// Nanoseconds since the start of the schedule or of the emulator.
pub type Nanoseconds = u64;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// A half-open interval: `from` is in it, `until` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The start.
    pub from: Nanoseconds,
    /// The end.
    pub until: Nanoseconds,
}

impl Interval {
    fn contains(&self, moment: Nanoseconds) -> bool {
        (self.from..self.until).contains(&moment)
    }

    fn after(&self, start: Nanoseconds) -> Self {
        Self { from: self.from.saturating_add(start), until: self.until.saturating_add(start) }
    }
}

/// A rate that applies until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// The start of the step.
    pub from: Nanoseconds,
    /// Never 0; use a stall instead.
    pub bits_per_second: u64,
}

/// The rates, stalls and cuts of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// In ascending order. The first rate also applies before it begins.
    pub rates: Vec<RateStep>,
    /// When nothing leaves the queue.
    pub stalls: Vec<Interval>,
    /// When packets that leave the queue are lost.
    pub cuts: Vec<Interval>,
}

impl Schedule {
    /// The first rate only, as before the schedule starts.
    pub fn at_rest(&self) -> Self {
        Self {
            rates: self.rates.iter().take(1).copied().collect(),
            stalls: Vec::new(),
            cuts: Vec::new(),
        }
    }

    /// The schedule, shifted to begin at `start`.
    pub fn after(&self, start: Nanoseconds) -> Self {
        let shifted = |intervals: &[Interval]| {
            intervals.iter().map(|interval| interval.after(start)).collect()
        };
        Self {
            rates: self
                .rates
                .iter()
                .map(|step| RateStep { from: step.from.saturating_add(start), ..*step })
                .collect(),
            stalls: shifted(&self.stalls),
            cuts: shifted(&self.cuts),
        }
    }

    /// Whether a packet that leaves the queue at `moment` is lost.
    pub fn is_cut(&self, moment: Nanoseconds) -> bool {
        self.cuts.iter().any(|cut| cut.contains(moment))
    }

    /// When the last bit of a packet has left, if its first bit leaves at `begin` or later.
    pub fn leaves(&self, begin: Nanoseconds, bytes: usize) -> Nanoseconds {
        let mut now = begin;
        // In units of bits × nanoseconds per second, so that no division loses a fraction of a bit.
        let mut work = bytes as u128 * 8 * u128::from(NANOSECONDS_PER_SECOND);
        loop {
            if let Some(stall) = self.stalls.iter().find(|stall| stall.contains(now)) {
                now = stall.until;
                continue;
            }
            let rate = u128::from(self.rate(now).max(1));
            let change = self.next_change(now);
            let until_change = rate * u128::from(change - now);
            if work <= until_change || change == Nanoseconds::MAX {
                return now.saturating_add(
                    u64::try_from(work.div_ceil(rate)).unwrap_or(Nanoseconds::MAX),
                );
            }
            work -= until_change;
            now = change;
        }
    }

    /// Bits per second outside of stalls.
    fn rate(&self, moment: Nanoseconds) -> u64 {
        let begun = self.rates.iter().rev().find(|step| step.from <= moment);
        begun.or(self.rates.first()).map_or(1, |step| step.bits_per_second)
    }

    /// The next time at which the rate changes or a stall begins.
    fn next_change(&self, moment: Nanoseconds) -> Nanoseconds {
        let steps = self.rates.iter().map(|step| step.from);
        let stalls = self.stalls.iter().map(|stall| stall.from);
        steps.chain(stalls).filter(|change| *change > moment).min().unwrap_or(Nanoseconds::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanoseconds = 1_000_000;

    fn schedule(rates: &[(Nanoseconds, u64)]) -> Schedule {
        let rates = rates
            .iter()
            .map(|&(from, bits_per_second)| RateStep { from, bits_per_second })
            .collect();
        Schedule { rates, stalls: Vec::new(), cuts: Vec::new() }
    }

    #[test]
    fn a_constant_rate_takes_the_bits_over_the_rate() {
        // 1,250 bytes are 10,000 bits: 1 ms at 10 Mbit/s.
        assert_eq!(schedule(&[(0, 10_000_000)]).leaves(7, 1250), 7 + MS);
    }

    #[test]
    fn a_packet_across_a_step_takes_both_rates() {
        // Half of its bits leave at 10 Mbit/s in 0.5 ms, the others at 1 Mbit/s in 5 ms.
        let schedule = schedule(&[(0, 10_000_000), (2 * MS, 1_000_000)]);
        assert_eq!(schedule.leaves(2 * MS - MS / 2, 1250), 7 * MS);
    }

    #[test]
    fn a_packet_may_span_many_steps() {
        // 10,000 bits: 1,000 in each of the first two milliseconds, 8,000 at 8 Mbit/s.
        let schedule = schedule(&[(0, 1_000_000), (MS, 1_000_000), (2 * MS, 8_000_000)]);
        assert_eq!(schedule.leaves(0, 1250), 3 * MS);
    }

    #[test]
    fn the_first_rate_holds_before_it_begins() {
        assert_eq!(schedule(&[(50 * MS, 10_000_000)]).leaves(0, 1250), MS);
    }

    #[test]
    fn a_stall_holds_what_would_leave() {
        let mut schedule = schedule(&[(0, 10_000_000)]);
        schedule.stalls.push(Interval { from: MS, until: 5 * MS });
        // Begun before, half way through, and inside.
        assert_eq!(schedule.leaves(0, 1250), MS);
        assert_eq!(schedule.leaves(MS / 2, 1250), 5 * MS + MS / 2);
        assert_eq!(schedule.leaves(2 * MS, 1250), 6 * MS);
        assert_eq!(schedule.leaves(5 * MS, 1250), 6 * MS);
    }

    #[test]
    fn stalls_may_follow_each_other() {
        let mut schedule = schedule(&[(0, 10_000_000)]);
        schedule.stalls.push(Interval { from: 2 * MS, until: 3 * MS });
        schedule.stalls.push(Interval { from: 3 * MS, until: 4 * MS });
        assert_eq!(schedule.leaves(2 * MS, 1250), 5 * MS);
    }

    #[test]
    fn a_cut_has_its_first_moment_and_not_its_last() {
        let mut schedule = schedule(&[(0, 1)]);
        schedule.cuts.push(Interval { from: 3, until: 5 });
        assert_eq!([2, 3, 4, 5].map(|moment| schedule.is_cut(moment)), [false, true, true, false]);
    }

    #[test]
    fn at_rest_nothing_is_scheduled() {
        let mut planned = schedule(&[(0, 10_000_000), (MS, 1)]);
        planned.stalls.push(Interval { from: 0, until: MS });
        planned.cuts.push(Interval { from: 0, until: MS });
        assert_eq!(planned.at_rest(), schedule(&[(0, 10_000_000)]));
    }

    #[test]
    fn a_schedule_is_moved_to_its_start() {
        let mut planned = schedule(&[(0, 10_000_000), (MS, 1_000_000)]);
        planned.cuts.push(Interval { from: 0, until: MS });
        let started = planned.after(100 * MS);
        assert_eq!(started.leaves(100 * MS, 1250), 101 * MS);
        assert_eq!(started.leaves(101 * MS, 1250), 111 * MS);
        assert!(started.is_cut(100 * MS) && !started.is_cut(101 * MS));
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        assert_eq!(schedule(&[(0, 1)]).leaves(Nanoseconds::MAX - 1, usize::MAX), Nanoseconds::MAX);
    }
}
