//! Who may run how much at a time: places for all, and no more than a share of them for each peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// All that come over the Unix socket.
    Unix,
    /// All of a host; of IPv6, where a host may have as many addresses as it likes, all of a
    /// network.
    Host(IpAddr),
    /// All that come through a proxy: whoever they are.
    Proxy,
}

impl Peer {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) => {
                Self::Host(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into())
            }
            v4 => Self::Host(v4),
        }
    }
}

/// How many at a time, of all and of each peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) all: usize,
    pub(crate) of_a_peer: usize,
}

impl Places {
    /// A peer has three quarters of them if nothing is said: nobody shuts out all others.
    pub(crate) fn of(all: usize, of_a_peer: Option<usize>) -> Self {
        let all = all.max(1);
        Self { all, of_a_peer: of_a_peer.unwrap_or(all - all / 4).clamp(1, all) }
    }
}

/// The places of connections and statements.
pub(crate) struct Turns {
    connections: Places,
    statements: Places,
    open: Arc<Semaphore>,
    running: Arc<Semaphore>,
    peers: Mutex<HashMap<Peer, Weak<Share>>>,
    waiting: AtomicUsize,
}

/// What a peer has of the places.
pub(crate) struct Share {
    open: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// A connection's place.
pub(crate) struct Place {
    pub(crate) share: Arc<Share>,
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// A statement's place.
pub(crate) struct Turn {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Turns {
    pub(crate) fn new(connections: Places, statements: Places) -> Self {
        let places =
            |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            open: places(connections.all),
            running: places(statements.all),
            connections,
            statements,
            peers: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// A place for a connection.
    ///
    /// # Errors
    /// How many there are already, of all or of this peer.
    pub(crate) fn open(&self, peer: Peer) -> Result<Place, String> {
        let Ok(of_all) = self.open.clone().try_acquire_owned() else {
            return Err(format!("{} connections are open already", self.connections.all));
        };
        let share = self.share(peer);
        let Ok(of_peer) = share.open.clone().try_acquire_owned() else {
            return Err(format!(
                "{} connections from your host are open already",
                self.connections.of_a_peer
            ));
        };
        Ok(Place { share, _permits: (of_all, of_peer) })
    }

    /// A place for a statement, if there is one now.
    pub(crate) fn take(&self, share: &Share) -> Option<Turn> {
        let of_peer = share.running.clone().try_acquire_owned().ok()?;
        let of_all = self.running.clone().try_acquire_owned().ok()?;
        Some(Turn { _permits: (of_all, of_peer) })
    }

    /// Waits for a place for a statement.
    pub(crate) async fn wait(&self, share: &Share) -> Turn {
        let _waits = Waits::begin(&self.waiting);
        // Never closed, so this fails never; without a place there is no turn.
        let taken = async {
            let of_peer = share.running.clone().acquire_owned().await.ok()?;
            Some((self.running.clone().acquire_owned().await.ok()?, of_peer))
        };
        match taken.await {
            Some(permits) => Turn { _permits: permits },
            None => std::future::pending().await,
        }
    }

    /// Whether a statement waits for its turn.
    pub(crate) fn are_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// What statements there may be at a time.
    pub(crate) fn statements(&self) -> Places {
        self.statements
    }

    fn share(&self, peer: Peer) -> Arc<Share> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = peers.get(&peer).and_then(Weak::upgrade) {
            return share;
        }
        peers.retain(|_, share| share.strong_count() > 0);
        let places = |count: usize, all: usize| {
            let count = if peer == Peer::Proxy { all } else { count };
            Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)))
        };
        let share = Arc::new(Share {
            open: places(self.connections.of_a_peer, self.connections.all),
            running: places(self.statements.of_a_peer, self.statements.all),
        });
        peers.insert(peer, Arc::downgrade(&share));
        share
    }
}

/// Counted while it lives.
pub(crate) struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    pub(crate) fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Turns {
        let places = Places { all: 4, of_a_peer: 3 };
        Turns::new(places, places)
    }

    #[test]
    fn a_peer_has_its_share_and_gives_it_back() {
        let turns = turns();
        let (a, b) = (Peer::of([10, 0, 0, 1].into()), Peer::of([10, 0, 0, 2].into()));
        let mut places: Vec<_> = (0..3).map(|_| turns.open(a).unwrap()).collect();
        assert!(turns.open(a).err().unwrap().contains("3 connections from your host"));
        let place = turns.open(b).unwrap();
        assert!(turns.open(b).err().unwrap().contains("4 connections are open"));
        let mut running: Vec<_> = (0..3).map(|_| turns.take(&places[0].share).unwrap()).collect();
        assert!(turns.take(&places[0].share).is_none());
        let last = turns.take(&place.share).unwrap();
        assert!(turns.take(&place.share).is_none());
        running.pop();
        assert!(turns.take(&place.share).is_some());
        drop(last);
        places.pop();
        assert!(turns.open(a).is_ok());
    }

    #[test]
    fn what_counts_as_one_peer() {
        let of = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
