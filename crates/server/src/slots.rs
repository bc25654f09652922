//! Slots: how many connections and statements run at a time, in total and for each peer.
//!
//! Each limit is a semaphore. A connection or statement holds one permit of the total and one of
//! its peer's.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit that per-host limits apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// All clients on Unix sockets.
    Unix,
    /// An IPv4 address, or a /64 network of IPv6: a host may use any address of its network.
    Host(IpAddr),
    /// All clients behind a proxy, whose own addresses are unknown.
    Proxy,
}

impl Peer {
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) => {
                Self::Host(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into())
            }
            v4 => Self::Host(v4),
        }
    }
}

/// The limits of one kind of slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotLimits {
    pub(crate) total: usize,
    pub(crate) per_peer: usize,
}

impl SlotLimits {
    /// Both limits are at least 1. `per_peer` defaults to three quarters of `total`, so that no
    /// peer can lock out all others.
    pub(crate) fn new(total: usize, per_peer: Option<usize>) -> Self {
        let total = total.max(1);
        Self { total, per_peer: per_peer.unwrap_or(total - total / 4).clamp(1, total) }
    }
}

/// All slots of a server.
pub(crate) struct Slots {
    connection_limits: SlotLimits,
    statement_limits: SlotLimits,
    connections: Arc<Semaphore>,
    statements: Arc<Semaphore>,
    /// The peers that have a connection.
    peers: Mutex<HashMap<Peer, Weak<PeerSlots>>>,
    /// Statements that wait for a slot.
    waiting: AtomicUsize,
}

/// The slots of one peer.
pub(crate) struct PeerSlots {
    connections: Arc<Semaphore>,
    statements: Arc<Semaphore>,
}

/// One permit of the total and one of the peer's. Dropping them frees the slot.
struct Permits {
    _total: OwnedSemaphorePermit,
    _peer: OwnedSemaphorePermit,
}

/// The slot of an open connection.
pub(crate) struct ConnectionSlot {
    pub(crate) peer: Arc<PeerSlots>,
    _permits: Permits,
}

/// The slot of a running statement.
pub(crate) struct StatementSlot {
    _permits: Permits,
}

impl Slots {
    pub(crate) fn new(connection_limits: SlotLimits, statement_limits: SlotLimits) -> Self {
        Self {
            connections: semaphore(connection_limits.total),
            statements: semaphore(statement_limits.total),
            connection_limits,
            statement_limits,
            peers: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Takes a connection slot.
    ///
    /// # Errors
    /// The limit that is reached, as a sentence for the client.
    pub(crate) fn try_connection(&self, peer: Peer) -> Result<ConnectionSlot, String> {
        let limits = self.connection_limits;
        let Ok(total) = self.connections.clone().try_acquire_owned() else {
            return Err(format!("{} connections are open already", limits.total));
        };
        let slots = self.peer_slots(peer);
        let Ok(of_peer) = slots.connections.clone().try_acquire_owned() else {
            return Err(format!("{} connections from your host are open already", limits.per_peer));
        };
        let permits = Permits { _total: total, _peer: of_peer };
        Ok(ConnectionSlot { peer: slots, _permits: permits })
    }

    /// Takes a statement slot if one is free.
    pub(crate) fn try_statement(&self, peer: &PeerSlots) -> Option<StatementSlot> {
        let of_peer = peer.statements.clone().try_acquire_owned().ok()?;
        let total = self.statements.clone().try_acquire_owned().ok()?;
        Some(StatementSlot { _permits: Permits { _total: total, _peer: of_peer } })
    }

    /// Waits for a statement slot.
    pub(crate) async fn statement(&self, peer: &PeerSlots) -> StatementSlot {
        let _waiting = Waiting::new(&self.waiting);
        let acquire = async {
            // The peer's permit first: a peer at its limit must not hold one of the total.
            let of_peer = peer.statements.clone().acquire_owned().await.ok()?;
            let total = self.statements.clone().acquire_owned().await.ok()?;
            Some(Permits { _total: total, _peer: of_peer })
        };
        match acquire.await {
            Some(permits) => StatementSlot { _permits: permits },
            // Only a closed semaphore fails, and these are never closed.
            None => std::future::pending().await,
        }
    }

    /// Whether a statement waits for a slot.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn statement_limits(&self) -> SlotLimits {
        self.statement_limits
    }

    fn peer_slots(&self, peer: Peer) -> Arc<PeerSlots> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = peers.get(&peer).and_then(Weak::upgrade) {
            return slots;
        }
        peers.retain(|_, slots| slots.strong_count() > 0);
        let limited = |limits: SlotLimits| {
            debug_assert!(limits.per_peer <= limits.total);
            // Clients behind a proxy can't be told apart, so they share the total.
            semaphore(if peer == Peer::Proxy { limits.total } else { limits.per_peer })
        };
        let slots = Arc::new(PeerSlots {
            connections: limited(self.connection_limits),
            statements: limited(self.statement_limits),
        });
        peers.insert(peer, Arc::downgrade(&slots));
        slots
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)))
}

/// Counts a waiting statement for as long as it lives.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    pub(crate) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Slots {
        let limits = SlotLimits { total: 4, per_peer: 3 };
        Slots::new(limits, limits)
    }

    #[test]
    fn a_peer_has_its_share_and_gives_it_back() {
        let slots = slots();
        let (a, b) = (Peer::at([10, 0, 0, 1].into()), Peer::at([10, 0, 0, 2].into()));
        let mut of_a: Vec<_> = (0..3).map(|_| slots.try_connection(a).unwrap()).collect();
        assert!(slots.try_connection(a).err().unwrap().contains("3 connections from your host"));
        let of_b = slots.try_connection(b).unwrap();
        assert!(slots.try_connection(b).err().unwrap().contains("4 connections are open"));
        let mut running: Vec<_> =
            (0..3).map(|_| slots.try_statement(&of_a[0].peer).unwrap()).collect();
        assert!(slots.try_statement(&of_a[0].peer).is_none());
        let last = slots.try_statement(&of_b.peer).unwrap();
        assert!(slots.try_statement(&of_b.peer).is_none());
        running.pop();
        assert!(slots.try_statement(&of_b.peer).is_some());
        drop(last);
        of_a.pop();
        assert!(slots.try_connection(a).is_ok());
    }

    #[test]
    fn what_counts_as_one_peer() {
        let of = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
