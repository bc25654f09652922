//! Shapes one direction: a bounded queue, a line with a rate, and a delay.
//!
//! ```text
//!  offered ──► queue (drop-tail, bytes) ──► line (rate, stalls) ──► cut? lost? ───┐
//!                                                                                 │
//!  arrives ◄── delay (longer if reordered) ◄──────────────────────────────────────┘
//! ```
//!
//! A lost packet occupies the line as any other does. This module has no I/O and no clock: the
//! caller passes the time.

use std::collections::VecDeque;

use crate::chance::Chance;
use crate::schedule::{Nanoseconds, Schedule};

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Rates, stalls and cuts, relative to the start of the schedule.
    pub schedule: Schedule,
    /// Time between leaving the line and arriving.
    pub delay: Nanoseconds,
    /// Probability that a packet is lost, independent of all others.
    pub loss: f64,
    /// Probability that a packet has an additional delay, so that later ones overtake it.
    pub reorder: f64,
    /// The additional delay.
    pub reorder_delay: Nanoseconds,
    /// Capacity of the queue, including the packet on the line. A packet that does not fit is
    /// dropped.
    pub queue_bytes: usize,
    /// Seed of loss and reordering.
    pub seed: u64,
}

/// Counters of one direction. Bytes are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that reached the queue.
    pub offered: u64,
    /// Bytes that reached the queue.
    pub offered_bytes: u64,
    /// Packets that have arrived or are in flight.
    pub passed: u64,
    /// Bytes that have arrived or are in flight.
    pub passed_bytes: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets lost by chance.
    pub lost: u64,
    /// Packets lost in a cut.
    pub cut: u64,
    /// Packets with an additional delay.
    pub reordered: u64,
}

/// A packet in the queue or on the line.
struct Waiting {
    leaves: Nanoseconds,
    bytes: usize,
}

/// One direction of the link.
pub struct Shaper {
    settings: Settings,
    /// The current schedule: the first rate until the schedule is started.
    schedule: Schedule,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    chance: Chance,
    counters: Counters,
}

impl Shaper {
    /// A direction at its first rate, with its schedule not started.
    pub fn new(settings: Settings) -> Self {
        Self {
            schedule: settings.schedule.at_rest(),
            chance: Chance::new(settings.seed),
            settings,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Starts or restarts the schedule. Packets already in the queue keep their times.
    pub fn start(&mut self, now: Nanoseconds) {
        self.schedule = self.settings.schedule.after(now);
    }

    /// When a packet that is offered now arrives at the other end; `None` if it is lost or dropped.
    pub fn offer(&mut self, now: Nanoseconds, bytes: usize) -> Option<Nanoseconds> {
        self.counters.offered += 1;
        self.counters.offered_bytes += bytes as u64;
        self.dequeue(now);
        if self.waiting_bytes.saturating_add(bytes) > self.settings.queue_bytes {
            self.counters.overflowed += 1;
            return None;
        }
        let leaves = self.enqueue(now, bytes);
        // Each packet draws twice, so that changing one probability does not shift the draws of the
        // other.
        let is_lost = self.chance.happens(self.settings.loss);
        let is_overtaken = self.chance.happens(self.settings.reorder);
        if self.schedule.is_cut(leaves) {
            self.counters.cut += 1;
            return None;
        }
        if is_lost {
            self.counters.lost += 1;
            return None;
        }
        self.counters.passed += 1;
        self.counters.passed_bytes += bytes as u64;
        self.counters.reordered += u64::from(is_overtaken);
        let delay =
            self.settings.delay + if is_overtaken { self.settings.reorder_delay } else { 0 };
        Some(leaves.saturating_add(delay))
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn enqueue(&mut self, now: Nanoseconds, bytes: usize) -> Nanoseconds {
        let begin = self.waiting.back().map_or(now, |last| last.leaves);
        let leaves = self.schedule.leaves(begin, bytes);
        self.waiting.push_back(Waiting { leaves, bytes });
        self.waiting_bytes += bytes;
        leaves
    }

    fn dequeue(&mut self, now: Nanoseconds) {
        while let Some(first) = self.waiting.front().filter(|first| first.leaves <= now) {
            self.waiting_bytes -= first.bytes;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Interval, RateStep};

    const MS: Nanoseconds = 1_000_000;
    /// 1 ms at the rate below.
    const PACKET_BYTES: usize = 1250;

    fn settings() -> Settings {
        Settings {
            schedule: Schedule {
                rates: vec![RateStep { from: 0, bits_per_second: 10_000_000 }],
                stalls: Vec::new(),
                cuts: Vec::new(),
            },
            delay: 20 * MS,
            loss: 0.0,
            reorder: 0.0,
            reorder_delay: 0,
            queue_bytes: 4 * PACKET_BYTES,
            seed: 1,
        }
    }

    fn offers(shaper: &mut Shaper, now: Nanoseconds, packets: usize) -> Vec<Option<Nanoseconds>> {
        (0..packets).map(|_| shaper.offer(now, PACKET_BYTES)).collect()
    }

    #[test]
    fn packets_leave_one_after_the_other() {
        let mut shaper = Shaper::new(settings());
        assert_eq!(offers(&mut shaper, 0, 3), [Some(21 * MS), Some(22 * MS), Some(23 * MS)]);
        // An idle line saves no time for later packets.
        assert_eq!(shaper.offer(100 * MS, PACKET_BYTES), Some(121 * MS));
    }

    #[test]
    fn a_full_queue_drops_its_tail_until_one_has_left() {
        let mut shaper = Shaper::new(settings());
        assert_eq!(offers(&mut shaper, 0, 6).iter().flatten().count(), 4);
        assert_eq!(shaper.offer(MS - 1, PACKET_BYTES), None);
        assert_eq!(shaper.offer(MS, PACKET_BYTES), Some(25 * MS));
        let counters = shaper.counters();
        assert_eq!((counters.offered, counters.passed, counters.overflowed), (8, 5, 3));
        assert_eq!((counters.offered_bytes, counters.passed_bytes), (10_000, 6_250));
    }

    #[test]
    fn a_lost_packet_occupies_the_line() {
        let mut shaper = Shaper::new(Settings { loss: 0.5, queue_bytes: 1_000_000, ..settings() });
        let arrivals = offers(&mut shaper, 0, 200);
        for (number, arrival) in arrivals.iter().enumerate() {
            assert!(arrival.is_none_or(|moment| moment == (21 + number as u64) * MS));
        }
        assert_eq!(
            shaper.counters().lost as usize,
            arrivals.iter().filter(|arrival| arrival.is_none()).count()
        );
        assert!((70..130).contains(&shaper.counters().lost));
    }

    #[test]
    fn the_same_seed_loses_the_same_packets() {
        let lost = |seed| {
            let mut shaper =
                Shaper::new(Settings { loss: 0.1, queue_bytes: 1_000_000, seed, ..settings() });
            offers(&mut shaper, 0, 100)
        };
        assert_eq!(lost(5), lost(5));
        assert_ne!(lost(5), lost(6));
    }

    #[test]
    fn a_reordered_packet_arrives_later_than_the_next() {
        let mut shaper = Shaper::new(Settings {
            reorder: 0.2,
            reorder_delay: 3 * MS / 2,
            queue_bytes: 1_000_000,
            ..settings()
        });
        let arrivals: Vec<_> = offers(&mut shaper, 0, 100).into_iter().flatten().collect();
        let overtaken = arrivals.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert_eq!(arrivals.len(), 100);
        assert!(overtaken > 0 && overtaken as u64 <= shaper.counters().reordered);
    }

    #[test]
    fn a_cut_waits_for_the_start() {
        let mut planned = settings();
        planned.schedule.cuts.push(Interval { from: 0, until: 3 * MS });
        let mut shaper = Shaper::new(planned);
        assert_eq!(shaper.offer(0, PACKET_BYTES), Some(21 * MS));
        shaper.start(10 * MS);
        // The packets that leave at 11 and 12 ms are lost, and the one at 13 ms passes.
        assert_eq!(offers(&mut shaper, 10 * MS, 3), [None, None, Some(33 * MS)]);
        assert_eq!(shaper.counters().cut, 2);
    }

    #[test]
    fn a_stall_holds_packets_and_fills_the_queue() {
        let mut planned = settings();
        planned.schedule.stalls.push(Interval { from: 0, until: 50 * MS });
        let mut shaper = Shaper::new(planned);
        shaper.start(0);
        let arrivals = offers(&mut shaper, 0, 5);
        assert_eq!(arrivals, [Some(71 * MS), Some(72 * MS), Some(73 * MS), Some(74 * MS), None]);
    }
}
