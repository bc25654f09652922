//! λ, the price of a byte: the nanoseconds of encoding that one byte less on the network is worth.
//!
//! The writer alone steers it, because it alone sees both sides:
//!
//! ```text
//!   waits for a chunk (starved) ──▶ encoding is slow    ──▶ λ falls: cheaper encodings, more bytes
//!   waits for the socket (busy) ──▶ the network is slow ──▶ λ rises: smaller encodings, more time
//! ```
//!
//! λ settles where the socket is idle for a small share of the time: processors and network are
//! then both used up. The rate of the socket bounds it. Below the time that a byte takes there, λ
//! would leave processors idle that could save time. Far above, the next byte saved costs much more
//! than it brings back, and others may need the processors.
//!
//! Two cases are special. Where encoding itself uses up the processors, the socket is slow because
//! they are, and a byte costs its processor time. During TCP's slow start the socket says nothing
//! about the network, and λ can only fall.

use std::sync::LazyLock;
use std::time::Duration;

use crate::line::Line;

/// The number of processors. Asking takes longer than encoding a hundred rows: the answer is in the
/// files of control groups.
static PROCESSORS: LazyLock<f64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64));
/// Within one span, the measured time of a byte rises at most by this factor: a stall is not a slow
/// network.
const SLOWDOWN_MAX: f64 = 4.0;
/// A socket that is idle for a larger share than this needs chunks at once.
const STARVED_LONG: f64 = 0.5;
/// The share of the time that the socket should be idle.
const STARVED_TARGET: f64 = 0.03;
/// λ is at most this multiple of a byte's network time. Beyond it, a tenth fewer bytes cost several
/// times the work.
const PRICE_TIMES_BYTE_MAX: f64 = 8.0;
/// Encoding uses up the processors if it takes more than the first share of their time, and if its
/// threads spend more than the second share of their own time waiting for a processor.
const CPU_BOUND_RUNNING: f64 = 0.2;
const CPU_BOUND_WAITING: f64 = 0.3;
/// The time over which both shares are averaged.
const CPU_BOUND_TIME: Duration = Duration::from_millis(100);
/// λ in that case, as a multiple of a byte's network time. For most of that time, the kernels of
/// both ends keep processors busy with the byte.
const CPU_BOUND_TIMES_BYTE: f64 = 0.75;
/// The bounds of λ: the processor time that a byte takes in the kernels of both ends, however fast
/// the network is, and a network of 80 kbit/s.
const PRICE_NS_MIN: f64 = 0.5;
const PRICE_NS_MAX: f64 = 100_000.0;
/// The least time of a byte on the network: less than a copy takes.
const BYTE_NS_MIN: f64 = 0.01;
/// The shortest time between two settings of λ.
const SPAN: Duration = Duration::from_millis(20);
/// The largest and the smallest step of ln λ.
const STEP_MAX: f64 = 1.5;
const STEP_MIN: f64 = 0.05;
/// The weight of the newest span in the rate of the network.
const NEWEST_WEIGHT: f64 = 0.5;
/// The same for a thread that encodes and sends. Its waits depend on its own choices, so it must
/// follow more slowly.
const NEWEST_WEIGHT_INLINE: f64 = 0.2;
/// A span weighs less when fewer bytes than this were delivered: they may have waited for anything.
const TELLING_BYTES: f64 = 256e3;
/// The time over which the reader's share is averaged.
const READER_TIME: Duration = Duration::from_millis(300);

/// λ, and what it is derived from.
#[derive(Debug)]
pub(crate) struct Price {
    ns: f64,
    /// The size of the last step of ln λ, and whether it went up.
    step: f64,
    rising: bool,
    /// Nanoseconds that a byte takes on the network: first the initial λ, then the measured mean.
    byte_ns: f64,
    /// Nothing has been measured on this line, now or before.
    is_guess: bool,
    /// The share of the network's busy time in which the reader had no room, from 0 to 1.
    reader_share: f64,
    processors: f64,
    /// The share of the processors' time that encoding takes.
    running: f64,
    /// The share of the encoding threads' time in which they wait for a processor.
    waiting: f64,
    /// The network time until TCP's slow start is over.
    slow_start: Duration,
    /// Chunks begun, and chunks sent.
    begun: u64,
    sent: u64,
    /// `begun` when λ was last set: only later chunks show the effect.
    begun_before: u64,
    span: Span,
}

/// What a connection delivered in some span of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delivery {
    /// Bytes that the other end acknowledged, or at least that the socket took.
    pub bytes: u64,
    /// The time in which bytes were on the network.
    pub busy: Duration,
    /// The part of `busy` in which the reader had no room for more.
    pub receiver_limited: Duration,
}

impl Delivery {
    /// What was delivered since `before`, if both count from the same time.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            busy: self.busy.saturating_sub(before.busy),
            receiver_limited: self.receiver_limited.saturating_sub(before.receiver_limited),
        }
    }
}

/// What happened since λ was last set.
#[derive(Debug, Default)]
struct Span {
    /// The writer's waits for chunks and for the socket.
    starved: Duration,
    busy: Duration,
    /// Processor time of the threads that encode.
    cpu_time: Duration,
    delivery: Delivery,
}

impl Price {
    /// λ begins as on this line. For the first `slow_start` of network time it does not rise.
    pub(crate) fn new(line: Line, slow_start: Duration) -> Self {
        Self {
            ns: line.price_ns.clamp(PRICE_NS_MIN, PRICE_NS_MAX),
            step: 0.7,
            rising: true,
            byte_ns: line.byte_ns.clamp(BYTE_NS_MIN, PRICE_NS_MAX),
            is_guess: line.is_guess,
            reader_share: 0.0,
            processors: *PROCESSORS,
            running: line.running,
            waiting: line.waiting,
            slow_start,
            begun: 0,
            sent: 0,
            begun_before: 0,
            span: Span::default(),
        }
    }

    /// Begins a chunk under the present λ, which it returns.
    pub(crate) fn begin_chunk(&mut self) -> f64 {
        self.begun += 1;
        self.ns
    }

    /// Whether nothing has been measured on this line, now or before.
    pub(crate) fn is_guess(&self) -> bool {
        self.is_guess
    }

    /// What is known of the line. λ is `mean_ns`, its mean of late.
    pub(crate) fn line(&self, mean_ns: f64) -> Line {
        let Self { byte_ns, running, waiting, is_guess, .. } = *self;
        Line { price_ns: mean_ns, byte_ns, running, waiting, is_guess }
    }

    /// λ in nanoseconds per byte.
    pub(crate) fn ns(&self) -> f64 {
        self.ns
    }

    /// Nanoseconds that a byte takes on the network.
    pub(crate) fn byte_ns(&self) -> f64 {
        self.byte_ns
    }

    /// The share of the network's busy time in which the reader had no room, from 0 to 1.
    pub(crate) fn reader_share(&self) -> f64 {
        self.reader_share
    }

    /// The number of processors that encode, for a reader that has one.
    pub(crate) fn processors(&self) -> f64 {
        self.processors
    }

    /// Records a chunk that was encoded: it took this long, and its thread ran for `cpu_time` of
    /// that.
    pub(crate) fn encoded(&mut self, took: Duration, cpu_time: Duration) {
        self.span.cpu_time += cpu_time;
        if !took.is_zero() {
            let waiting = 1.0 - (cpu_time.as_secs_f64() / took.as_secs_f64()).min(1.0);
            self.waiting += (waiting - self.waiting) * newest_weight(took, CPU_BOUND_TIME);
        }
    }

    /// Records that the writer waited this long for a chunk.
    pub(crate) fn starved(&mut self, waited: Duration) {
        self.sent += 1;
        self.span.starved += waited;
    }

    /// Records that the socket took a chunk, and that the writer waited `busy` for this. Returns
    /// whether λ changed.
    pub(crate) fn sent(&mut self, busy: Duration, delivery: Delivery) -> bool {
        self.span.busy += busy;
        self.span.delivery.bytes += delivery.bytes;
        self.span.delivery.busy += delivery.busy;
        self.span.delivery.receiver_limited += delivery.receiver_limited;
        let span = self.span.starved + self.span.busy;
        let Delivery { bytes, busy, receiver_limited } = self.span.delivery;
        if span < SPAN || bytes == 0 || busy.is_zero() {
            return false;
        }
        let starved = self.span.starved.as_secs_f64() / span.as_secs_f64();
        let reader_share = (receiver_limited.as_secs_f64() / busy.as_secs_f64()).min(1.0);
        self.reader_share += (reader_share - self.reader_share) * newest_weight(busy, READER_TIME);
        let running = self.span.cpu_time.as_secs_f64() / (span.as_secs_f64() * self.processors);
        self.running += (running - self.running) * newest_weight(span, CPU_BOUND_TIME);
        let in_slow_start = !self.slow_start.is_zero();
        if reader_share < 0.9 {
            let seen_ns = busy.as_secs_f64() * (1.0 - reader_share) * 1e9 / bytes as f64;
            let slowdown_max = if in_slow_start { 1.0 } else { SLOWDOWN_MAX };
            let seen_ns = seen_ns.min(self.byte_ns * slowdown_max);
            let weight = NEWEST_WEIGHT * (bytes as f64 / TELLING_BYTES).min(1.0);
            self.byte_ns += (seen_ns - self.byte_ns) * weight;
            self.is_guess = false;
        }
        let byte_ns = self.byte_ns;
        self.span = Span::default();
        let before = self.ns;
        self.slow_start = self.slow_start.saturating_sub(busy);
        if starved > STARVED_LONG {
            self.ns = self.ns.min(2.0 * byte_ns);
        }
        if self.sent > self.begun_before && (!in_slow_start || starved > STARVED_TARGET) {
            self.take_step(starved, byte_ns);
        } else if !in_slow_start && starved < STARVED_TARGET && self.reader_share < 0.5 {
            self.ns = self.ns.max(byte_ns);
        }
        let is_cpu_bound = self.running > CPU_BOUND_RUNNING && self.waiting > CPU_BOUND_WAITING;
        let times_max = if is_cpu_bound { CPU_BOUND_TIMES_BYTE } else { PRICE_TIMES_BYTE_MAX };
        self.ns = self.ns.min(byte_ns * times_max).clamp(PRICE_NS_MIN, PRICE_NS_MAX);
        debug_assert!(self.ns.is_finite() && self.byte_ns.is_finite());
        if self.ns == before {
            return false;
        }
        self.begun_before = self.begun;
        true
    }

    /// Records that the thread that encodes also sent this many bytes, and waited this long for the
    /// socket. That wait is the price: the thread could do nothing else meanwhile.
    pub(crate) fn sent_inline(&mut self, bytes: u64, waited: Duration) {
        let seen_ns = waited.as_secs_f64() * 1e9 / bytes.max(1) as f64;
        self.ns += (seen_ns - self.ns) * NEWEST_WEIGHT_INLINE;
        self.ns = self.ns.clamp(PRICE_NS_MIN, PRICE_NS_MAX);
        self.byte_ns = self.ns;
        self.is_guess = false;
        // Other threads may encode later, and then this count matters.
        self.sent += 1;
    }

    /// Moves λ one step towards the target, given the share of the time that the socket was idle.
    fn take_step(&mut self, starved: f64, byte_ns: f64) {
        let rising = starved < STARVED_TARGET;
        // Steps in one direction grow, a turn halves them: fast after a change, calm otherwise.
        self.step = if rising == self.rising {
            (self.step * 1.4).min(STEP_MAX)
        } else {
            (self.step / 2.0).max(STEP_MIN)
        };
        self.rising = rising;
        if rising {
            // Smaller chunks do not help a reader that is slow itself.
            let network = 1.0 - self.reader_share;
            self.ns *= (self.step * network).exp();
            if network > 0.5 {
                // Less would leave processors idle that can save time.
                self.ns = self.ns.max(byte_ns);
            }
        } else {
            let missed = ((starved - STARVED_TARGET) / (1.0 - STARVED_TARGET)).clamp(0.0, 1.0);
            // A byte is worth its network time for the share of the time that the network is busy.
            let worth = byte_ns * (1.0 - starved);
            let lower = self.ns * (-self.step * missed.sqrt()).exp();
            // From far above, λ need not come down in small steps.
            let nearer = self.ns * (2.0 * byte_ns / self.ns).min(1.0).powf(missed);
            self.ns = lower.min(nearer).max(worth.min(self.ns));
        }
    }
}

/// The weight of the newest value in a mean over about `time`, if it was measured over `took`.
fn newest_weight(took: Duration, time: Duration) -> f64 {
    1.0 - (-took.as_secs_f64() / time.as_secs_f64()).exp()
}
