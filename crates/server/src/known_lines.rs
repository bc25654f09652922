//! What is known of the line to each host, with which the next connection from there starts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_chooser::Line;

/// Hosts to remember.
const HOSTS_MAX: usize = 256;

/// Lines by host.
#[derive(Default)]
pub(crate) struct KnownLines {
    /// The most recent host is last.
    hosts: Mutex<VecDeque<(IpAddr, Line)>>,
}

impl KnownLines {
    /// What the last adaptive transfer to this host left.
    pub(crate) fn of(&self, host: IpAddr) -> Option<Line> {
        self.hosts().iter().find(|(other, _)| *other == host).map(|(_, line)| *line)
    }

    /// Records what is known at the end of a transfer.
    pub(crate) fn set(&self, host: IpAddr, line: Line) {
        let mut hosts = self.hosts();
        hosts.retain(|(other, _)| *other != host);
        if hosts.len() == HOSTS_MAX {
            hosts.pop_front();
        }
        hosts.push_back((host, line));
    }

    fn hosts(&self) -> MutexGuard<'_, VecDeque<(IpAddr, Line)>> {
        // A panic can't leave the queue half changed.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_hosts_are_remembered() {
        let lines = KnownLines::default();
        let host = |i: u32| IpAddr::from(i.to_be_bytes());
        (0..300).for_each(|i| lines.set(host(i), Line::of_price(f64::from(i))));
        lines.set(host(100), Line::of_price(7.0));
        lines.set(host(300), Line::of_price(300.0));
        assert_eq!(lines.hosts().len(), HOSTS_MAX);
        let found = [44, 45, 100, 299, 300].map(|i| lines.of(host(i)).map(|line| line.price_ns));
        assert_eq!(found, [None, Some(45.0), Some(7.0), Some(299.0), Some(300.0)]);
    }
}
