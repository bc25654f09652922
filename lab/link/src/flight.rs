//! Packets in flight, ordered by arrival time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::schedule::Nanoseconds;

struct Packet {
    arrives: Nanoseconds,
    /// Keeps the order of packets that arrive at the same time.
    number: u64,
    bytes: Vec<u8>,
}

/// The packets of a direction that have not arrived yet.
#[derive(Default)]
pub struct Flight {
    packets: BinaryHeap<Packet>,
    number: u64,
}

impl Flight {
    /// Adds a packet.
    pub fn push(&mut self, arrives: Nanoseconds, bytes: Vec<u8>) {
        self.packets.push(Packet { arrives, number: self.number, bytes });
        self.number += 1;
    }

    /// Arrival time of the next packet; `None` if no packet is in flight.
    pub fn next_arrival(&self) -> Option<Nanoseconds> {
        self.packets.peek().map(|packet| packet.arrives)
    }

    /// Removes the next packet if it has arrived by `now`.
    pub fn pop(&mut self, now: Nanoseconds) -> Option<Vec<u8>> {
        self.next_arrival().filter(|arrives| *arrives <= now)?;
        self.packets.pop().map(|packet| packet.bytes)
    }
}

// Reversed, so that the maximum of the heap arrives first.
impl Ord for Packet {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.arrives, other.number).cmp(&(self.arrives, self.number))
    }
}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Packet {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_by_time_and_then_in_order() {
        let mut flight = Flight::default();
        for (arrives, byte) in [(5, 0), (3, 1), (5, 2), (4, 3)] {
            flight.push(arrives, vec![byte]);
        }
        assert_eq!(flight.next_arrival(), Some(3));
        assert_eq!(flight.pop(2), None);
        let arrived: Vec<_> = std::iter::from_fn(|| flight.pop(5)).flatten().collect();
        assert_eq!(arrived, [1, 3, 0, 2]);
        assert_eq!(flight.next_arrival(), None);
    }
}
