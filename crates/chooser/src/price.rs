//! λ, the price of a byte: how many nanoseconds of encoding one byte less on the way is worth.
//!
//! The writer alone steers it, because it alone sees both sides:
//!
//! ```text
//!   waits for a chunk (starved)  ──▶ encoding is what's slow  ──▶ λ falls: cheaper encodings, more bytes
//!   waits for the socket (busy)  ──▶ the way is what's slow   ──▶ λ rises: smaller encodings, more time
//! ```
//!
//! It rests where the socket is busy but for a small share of the time: then processor and way are
//! both used up. The socket's own rate bounds it: below what a byte takes there, λ would leave
//! processors idle that could save time; a multiple above, the next byte saved costs far more than
//! it brings back, and others may want the processors. Where encoding itself uses the processors
//! up, the socket is slow because these are, and a byte costs what it takes of them. While a
//! connection finds out how fast it may send, in its first round trips, it says nothing of the way:
//! λ can only fall.

use std::sync::LazyLock;
use std::time::Duration;

/// How many there are: asking takes longer than a hundred rows do, since control groups are files.
static PROCESSORS: LazyLock<f64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64));
/// A span tells of a way so many times slower than the last at most: a stall is not a line.
const TIMES_SLOWER_MAX: f64 = 4.0;
/// Standing idle for a larger share than this, the socket wants chunks at once.
const STARVED_LONG: f64 = 0.5;
/// The share of the time in which the socket may stand idle: what λ aims at.
const STARVED_AIM: f64 = 0.03;
/// λ stays below so many times what a byte takes on the way: beyond, a tenth fewer bytes cost
/// several times the work.
const TIMES_BYTE_MAX: f64 = 8.0;
/// Processors are used up by encoding when it takes such a share of their time, and its threads
/// wait for them for such a share of theirs.
const CROWDED_RUNNING: f64 = 0.2;
const CROWDED_WAITING: f64 = 0.3;
/// Both are known after so long.
const CROWDED_TIME: Duration = Duration::from_millis(100);
/// What a byte then costs, in times of what it takes on the way: it keeps processors busy for most
/// of that, in the kernels of both ends.
const TIMES_BYTE_CROWDED: f64 = 0.75;
/// The bounds of λ. The lower one is less than a copy of a byte takes; the upper one is a line of
/// 80 kbit/s.
const PRICE_NS_MIN: f64 = 0.01;
const PRICE_NS_MAX: f64 = 100_000.0;
/// λ is set anew after so long, and after a chunk.
const SPAN: Duration = Duration::from_millis(20);
/// The largest and smallest step of ln λ.
const STEP_MAX: f64 = 1.5;
const STEP_MIN: f64 = 0.05;
/// How much the newest span counts in the rate of the way.
const NEWEST: f64 = 0.5;
/// The same for a thread that sends itself: what it waits depends on what it chose, so it must not
/// follow too quickly.
const NEWEST_ALONE: f64 = 0.2;
/// It counts less where fewer bytes than this have passed: they may have waited for anything.
const TELLING_BYTES: f64 = 256e3;
/// A reader that is slow is known after so long.
const READER_TIME: Duration = Duration::from_millis(300);

/// λ, and what it was learned from.
#[derive(Debug)]
pub(crate) struct Price {
    ns: f64,
    step: f64,
    rising: bool,
    /// What a byte takes on the way: as guessed, then as seen.
    byte_ns: f64,
    /// The share of the time that the reader's own slowness holds the way up.
    reader_share: f64,
    processors: f64,
    /// The share of the processors' time that encoding takes, and of its threads' time that they
    /// wait for one.
    running: f64,
    waiting: f64,
    /// For how long the connection is still finding out how fast it may send.
    starting: Duration,
    /// Chunks that were planned, and that were sent.
    planned: u64,
    sent: u64,
    /// How many had been planned when λ was last set: it shows in those behind them only.
    planned_before: u64,
    span: Span,
}

/// What happened to bytes that were sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passage {
    /// How many have arrived, or were at least taken by the socket.
    pub bytes: u64,
    /// How long there were some on the way.
    pub busy: Duration,
    /// How much of that time the reader had no room for more.
    pub held_up: Duration,
}

/// What the writer did since λ was last set.
#[derive(Debug, Default)]
struct Span {
    starved: Duration,
    busy: Duration,
    /// How long threads ran that encode.
    ran: Duration,
    passage: Passage,
}

impl Price {
    /// λ begins with `guess_ns`. For a time of `starting` on the way nothing is learned of how slow
    /// that is.
    pub(crate) fn new(guess_ns: f64, starting: Duration) -> Self {
        let ns = guess_ns.clamp(PRICE_NS_MIN, PRICE_NS_MAX);
        Self {
            ns,
            step: 0.7,
            rising: true,
            byte_ns: ns,
            reader_share: 0.0,
            processors: *PROCESSORS,
            running: 0.0,
            waiting: 0.0,
            starting,
            planned: 0,
            sent: 0,
            planned_before: 0,
            span: Span::default(),
        }
    }

    /// A chunk will be made under λ as it is now.
    pub(crate) fn plan(&mut self) -> f64 {
        self.planned += 1;
        self.ns
    }

    pub(crate) fn ns(&self) -> f64 {
        self.ns
    }

    /// What a byte takes on the way.
    pub(crate) fn byte_ns(&self) -> f64 {
        self.byte_ns
    }

    /// How much of what is slow is the reader, from 0 to 1.
    pub(crate) fn reader_share(&self) -> f64 {
        self.reader_share
    }

    /// A chunk was made in a time in which its thread ran for so long.
    pub(crate) fn made(&mut self, took: Duration, ran: Duration) {
        self.span.ran += ran;
        if !took.is_zero() {
            let waiting = 1.0 - (ran.as_secs_f64() / took.as_secs_f64()).min(1.0);
            self.waiting += (waiting - self.waiting) * newest_of(took, CROWDED_TIME);
        }
    }

    /// The writer waited for a chunk, and has it.
    pub(crate) fn starved(&mut self, waited: Duration) {
        self.sent += 1;
        self.span.starved += waited;
    }

    /// The writer waited so long until the socket had taken a chunk; meanwhile this had passed.
    /// True if that set λ anew.
    pub(crate) fn sent(&mut self, busy: Duration, passage: Passage) -> bool {
        self.span.busy += busy;
        self.span.passage.bytes += passage.bytes;
        self.span.passage.busy += passage.busy;
        self.span.passage.held_up += passage.held_up;
        let span = self.span.starved + self.span.busy;
        let Passage { bytes, busy, held_up } = self.span.passage;
        if span < SPAN || bytes == 0 || busy.is_zero() {
            return false;
        }
        let starved = self.span.starved.as_secs_f64() / span.as_secs_f64();
        let reader_share = (held_up.as_secs_f64() / busy.as_secs_f64()).min(1.0);
        self.reader_share += (reader_share - self.reader_share) * newest_of(busy, READER_TIME);
        let running = self.span.ran.as_secs_f64() / (span.as_secs_f64() * self.processors);
        self.running += (running - self.running) * newest_of(span, CROWDED_TIME);
        if reader_share < 0.9 {
            let seen_ns = busy.as_secs_f64() * (1.0 - reader_share) * 1e9 / bytes as f64;
            let times_max = if self.starting.is_zero() { TIMES_SLOWER_MAX } else { 1.0 };
            let seen_ns = seen_ns.min(self.byte_ns * times_max);
            let newest = NEWEST * (bytes as f64 / TELLING_BYTES).min(1.0);
            self.byte_ns += (seen_ns - self.byte_ns) * newest;
        }
        let byte_ns = self.byte_ns;
        self.span = Span::default();
        let before = self.ns;
        let is_starting = !self.starting.is_zero();
        self.starting = self.starting.saturating_sub(busy);
        if starved > STARVED_LONG {
            self.ns = self.ns.min(2.0 * byte_ns);
        }
        if self.sent > self.planned_before && (!is_starting || starved > STARVED_AIM) {
            self.set(starved, byte_ns);
        } else if !is_starting && starved < STARVED_AIM && self.reader_share < 0.5 {
            self.ns = self.ns.max(byte_ns);
        }
        let is_crowded = self.running > CROWDED_RUNNING && self.waiting > CROWDED_WAITING;
        let times_max = if is_crowded { TIMES_BYTE_CROWDED } else { TIMES_BYTE_MAX };
        self.ns = self.ns.min(byte_ns * times_max).clamp(PRICE_NS_MIN, PRICE_NS_MAX);
        if self.ns == before {
            return false;
        }
        self.planned_before = self.planned;
        true
    }

    /// The thread that makes the chunks sent so many bytes itself, and waited so long for the
    /// socket: that is what a byte costs it, for it can do nothing else meanwhile.
    pub(crate) fn sent_alone(&mut self, bytes: u64, waited: Duration) {
        let seen_ns = waited.as_secs_f64() * 1e9 / bytes.max(1) as f64;
        self.ns = (self.ns + (seen_ns - self.ns) * NEWEST_ALONE).clamp(PRICE_NS_MIN, PRICE_NS_MAX);
        self.byte_ns = self.ns;
        // The thread may get help later.
        self.sent += 1;
    }

    fn set(&mut self, starved: f64, byte_ns: f64) {
        let rising = starved < STARVED_AIM;
        // Steps in one direction grow, a turn halves them: quick after a change, at rest otherwise.
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
            let missed = ((starved - STARVED_AIM) / (1.0 - STARVED_AIM)).clamp(0.0, 1.0);
            // While the way is busy for most of the time, a byte less is worth that much of its
            // time there.
            let worth = byte_ns * (1.0 - starved);
            let lower = self.ns * (-self.step * missed.sqrt()).exp();
            // What lies far above that need not come down in small steps.
            let nearer = self.ns * (2.0 * byte_ns / self.ns).min(1.0).powf(missed);
            self.ns = lower.min(nearer).max(worth.min(self.ns));
        }
    }
}

/// How much the newest counts in a mean over about `time`, if it took `took`.
fn newest_of(took: Duration, time: Duration) -> f64 {
    1.0 - (-took.as_secs_f64() / time.as_secs_f64()).exp()
}
