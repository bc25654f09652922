//! The last λ of each host, with which the next connection from there starts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hosts to remember.
const HOSTS_MAX: usize = 256;

/// λ by host, in nanoseconds a byte.
#[derive(Default)]
pub(crate) struct Prices {
    /// The most recent host is last.
    hosts: Mutex<VecDeque<(IpAddr, f64)>>,
}

impl Prices {
    /// λ at the end of the last adaptive transfer to this host.
    pub(crate) fn of(&self, host: IpAddr) -> Option<f64> {
        self.hosts().iter().find(|(other, _)| *other == host).map(|(_, ns)| *ns)
    }

    /// Records λ at the end of a transfer.
    pub(crate) fn set(&self, host: IpAddr, ns: f64) {
        let mut hosts = self.hosts();
        hosts.retain(|(other, _)| *other != host);
        if hosts.len() == HOSTS_MAX {
            hosts.pop_front();
        }
        hosts.push_back((host, ns));
    }

    fn hosts(&self) -> MutexGuard<'_, VecDeque<(IpAddr, f64)>> {
        // A panic can't leave the queue half changed.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_hosts_are_remembered() {
        let prices = Prices::default();
        let host = |i: u32| IpAddr::from(i.to_be_bytes());
        (0..300).for_each(|i| prices.set(host(i), f64::from(i)));
        prices.set(host(100), 7.0);
        prices.set(host(300), 300.0);
        assert_eq!(prices.hosts().len(), HOSTS_MAX);
        let found = [44, 45, 100, 299, 300].map(|i| prices.of(host(i)));
        assert_eq!(found, [None, Some(45.0), Some(7.0), Some(299.0), Some(300.0)]);
    }
}
