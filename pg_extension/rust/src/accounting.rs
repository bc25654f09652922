//! Where the time of a result goes, and what the chooser learns from it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_chooser::{Delivery, DeliveryMeter};
use dray_wire::Finished;

use crate::encode_policy::EncodePolicy;

/// The meter of the client's socket, if it is TCP's.
pub(crate) type SocketMeter = DeliveryMeter<BorrowedFd<'static>>;

/// Measures how the chunks of a stream are encoded and sent.
pub(crate) struct Accounting {
    policy: Arc<EncodePolicy>,
    socket: Option<SocketMeter>,
    /// The chunk that the C half is sending.
    sending: Option<Sending>,
    /// When a chunk was last accounted for, and the waits for workers since then.
    since: Instant,
    starved: Duration,
    /// Encoding, in any thread.
    encode: Duration,
    /// Encoding in this thread, and its waits for workers.
    encode_here: Duration,
}

/// A chunk that the C half sends.
struct Sending {
    began: Instant,
    /// The bytes of the chunk and of its state frame.
    bytes: u64,
}

/// Which threads encode, as the backend's thread sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodedBy {
    /// Workers encode while this thread reads rows and sends.
    Workers,
    /// This thread encodes, and does nothing else meanwhile.
    ThisThread,
}

impl Accounting {
    pub(crate) fn new(policy: Arc<EncodePolicy>, socket: Option<SocketMeter>) -> Self {
        Self {
            policy,
            socket,
            sending: None,
            since: Instant::now(),
            starved: Duration::ZERO,
            encode: Duration::ZERO,
            encode_here: Duration::ZERO,
        }
    }

    /// Records that this thread encoded a chunk.
    pub(crate) fn encoded_here(&mut self, took: Duration) {
        self.encode += took;
        self.encode_here += took;
    }

    /// Records that a worker encoded a chunk.
    pub(crate) fn encoded_by_worker(&mut self, took: Duration) {
        self.encode += took;
    }

    /// Records that this thread waited for a worker.
    pub(crate) fn waited_for_worker(&mut self, waited: Duration) {
        self.encode_here += waited;
        if let Some(chooser) = &self.policy.chooser {
            chooser.starved(waited);
            self.starved += waited;
        }
    }

    /// Records that the C half begins to send a chunk.
    pub(crate) fn sending(&mut self, bytes: u64) {
        self.sending = Some(Sending { began: Instant::now(), bytes });
    }

    /// Records that the C half asks for the next chunk. It does so as soon as it has sent the one
    /// before.
    pub(crate) fn sent(&mut self, encoded_by: EncodedBy) {
        let Some(Sending { began, bytes }) = self.sending.take() else { return };
        let Some(chooser) = &self.policy.chooser else { return };
        let now = Instant::now();
        let waited = now.duration_since(began);
        match encoded_by {
            EncodedBy::Workers => {
                // Reading rows, too, keeps this thread from sending. Only its waits for workers
                // show that encoding is slow.
                let span = now.duration_since(self.since).saturating_sub(self.starved);
                let delivery = self.socket.as_mut().and_then(SocketMeter::take);
                let assumed = Delivery { bytes, busy: waited, receiver_limited: Duration::ZERO };
                chooser.sent(span, delivery.unwrap_or(assumed));
            }
            EncodedBy::ThisThread => chooser.sent_inline(bytes, waited),
        }
        self.since = now;
        self.starved = Duration::ZERO;
    }

    /// The times of the whole result. `socket_ns` is the time that the C half took to send.
    pub(crate) fn finished(&self, plan_ns: u64, socket_ns: u64, total_ns: u64) -> Finished {
        let [encode_ns, encode_here_ns] = [self.encode, self.encode_here].map(nanoseconds);
        let others_ns = [encode_here_ns, socket_ns, plan_ns];
        let execute_ns = others_ns.into_iter().fold(total_ns, u64::saturating_sub);
        Finished { execute_ns, encode_ns, socket_ns, total_ns, ..Finished::default() }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
