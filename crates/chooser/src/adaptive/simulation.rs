//! λ and the columns' ways against a simulated source and line: chunks take a while to encode, wait
//! in a queue and take a while on the way. Times are computed, nothing is measured.

use std::collections::VecDeque;
use std::time::Duration;

use dray_format::{Compression, Type, Written};

use crate::choice::{self, Column, WAYS_COUNT};
use crate::price::{Passage, Price};

/// What each way takes of two columns: nanoseconds and bytes a decoded byte. Numbers, and text.
const COSTS: [[(f64, f64); WAYS_COUNT]; 2] = [
    [
        (0.02, 1.0),
        (0.2, 0.3),
        (0.2, 0.3),
        (0.5, 0.3),
        (1.1, 0.27),
        (2.0, 0.26),
        (9.0, 0.25),
        (90.0, 0.24),
    ],
    [
        (0.02, 1.0),
        (0.2, 0.9),
        (1.8, 0.42),
        (2.0, 0.55),
        (3.0, 0.33),
        (6.0, 0.3),
        (30.0, 0.27),
        (500.0, 0.25),
    ],
];
const COLUMN_BYTES: [f64; 2] = [4e6, 1.5e6];
/// Of each, ways are probed on so many.
const PROBED_BYTES: f64 = 64e3;
const PRODUCERS: f64 = 2.0;
/// Chunks that are made and not sent.
const QUEUED: usize = 3;

/// A transfer in progress.
struct Transfer {
    price: Price,
    columns: [Column; 2],
    queue: VecDeque<f64>,
}

/// A thread that reads rows and sends chunks, each of which another thread makes while the rows of
/// the next one are read.
struct Helped {
    transfer: Transfer,
    now: f64,
    /// The bytes of the chunk that is being made, and when it is.
    made: Option<(f64, f64)>,
    /// When the line will have sent everything that the kernel has taken.
    sent: f64,
}

impl Helped {
    fn new(guess_ns: f64) -> Self {
        Self { transfer: Transfer::new(guess_ns), now: 0.0, made: None, sent: 0.0 }
    }

    /// Reads the rows of a chunk, and sends the one before it; the nanoseconds that took. The
    /// kernel has room for `buffered` bytes.
    fn step(&mut self, byte_ns: f64, read: f64, buffered: f64) -> f64 {
        let since = self.now;
        self.now += read;
        let before = self.made.take();
        let ready = before.map_or(self.now, |(_, ready)| ready.max(self.now));
        let starved = ready - self.now;
        self.now = ready;
        let (encode, bytes) = self.transfer.make();
        self.made = Some((bytes, self.now + encode * PRODUCERS));
        let Some((bytes, _)) = before else { return self.now - since };
        self.transfer.price.starved(nanos(starved));
        let busy_before = (self.sent - since).max(0.0).min(self.now - since);
        let start = self.sent.max(self.now);
        self.sent = start + bytes * byte_ns;
        self.now = self.now.max(self.sent - buffered * byte_ns);
        let busy = busy_before + (self.now - start).max(0.0);
        let passage =
            Passage { bytes: (busy / byte_ns) as u64, busy: nanos(busy), held_up: Duration::ZERO };
        self.transfer.price.sent(nanos(self.now - since - starved), passage);
        self.now - since
    }
}

/// What so many bytes of a column take.
fn written(column: usize, way: usize, decoded: f64) -> Written {
    let (ns, share) = COSTS[column][way];
    Written {
        decoded_bytes: decoded as u64,
        bytes: (decoded * share) as u64,
        state_bytes: 0,
        encode_ns: (decoded * ns) as u64,
    }
}

/// How long a chunk of these ways takes to encode, by all producers together, and its bytes.
fn chunk(ways: [usize; 2]) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (column, way) in ways.into_iter().enumerate() {
        let (ns, share) = COSTS[column][way];
        sum.0 += ns * COLUMN_BYTES[column] / PRODUCERS;
        sum.1 += share * COLUMN_BYTES[column];
    }
    sum
}

/// The nanoseconds that a chunk takes with the best two ways, whatever they cost the processors, on
/// a line where a byte takes `byte_ns`.
fn best(byte_ns: f64) -> f64 {
    let all = (0..WAYS_COUNT * WAYS_COUNT).map(|i| chunk([i / WAYS_COUNT, i % WAYS_COUNT]));
    all.map(|(encode, bytes)| encode.max(bytes * byte_ns)).fold(f64::INFINITY, f64::min)
}

impl Transfer {
    fn new(guess_ns: f64) -> Self {
        let columns =
            [Column::new(&Type::Int64, 0, WAYS_COUNT), Column::new(&Type::Utf8, 1, WAYS_COUNT)];
        Self { price: Price::new(guess_ns, Duration::ZERO), columns, queue: VecDeque::new() }
    }

    /// Sends one chunk, and makes the next; the nanoseconds that took.
    fn step(&mut self, byte_ns: f64, reader_share: f64) -> f64 {
        let (encode, bytes) = self.make();
        self.queue.push_back(bytes);
        if self.queue.len() <= QUEUED {
            return 0.0;
        }
        let sent = self.queue.pop_front().unwrap_or(bytes);
        let busy = sent * byte_ns;
        self.price.starved(nanos((encode - busy).max(0.0)));
        let passage =
            Passage { bytes: sent as u64, busy: nanos(busy), held_up: nanos(busy * reader_share) };
        self.price.sent(nanos(busy), passage);
        busy.max(encode)
    }

    /// The same by one thread, which makes each chunk, too. While it does, the kernel sends up to
    /// `buffered` bytes.
    fn step_alone(&mut self, byte_ns: f64, buffered: f64) -> f64 {
        let (encode, bytes) = self.make();
        let made = encode * PRODUCERS;
        let waited = bytes * byte_ns - made.min(bytes.min(buffered) * byte_ns);
        self.price.sent_alone(bytes as u64, nanos(waited));
        made + waited
    }

    /// Makes a chunk: how long all producers take for it, and its bytes.
    fn make(&mut self) -> (f64, f64) {
        let (price_ns, reader_share) = (self.price.plan(), self.price.reader_share());
        for (i, column) in self.columns.iter_mut().enumerate() {
            while let Some(way) = column.unknown(price_ns, reader_share, 2) {
                column.probed(way, &written(i, way, PROBED_BYTES));
            }
        }
        let mut plain = COLUMN_BYTES.into_iter();
        let ways = self
            .columns
            .each_mut()
            .map(|column| column.choose(price_ns, reader_share, plain.next().unwrap()));
        for (i, (column, way)) in self.columns.iter_mut().zip(ways).enumerate() {
            column.record(way, &written(i, way, COLUMN_BYTES[i]));
        }
        chunk(ways)
    }
}

fn nanos(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}

#[test]
fn every_line_is_used_as_well_as_by_the_best_fixed_ways() {
    // From 10 Gbit/s to 1 Mbit/s, from guesses far off.
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        for guess_ns in [0.05, 8.0, 500.0] {
            let mut transfer = Transfer::new(guess_ns);
            let mut spent: Vec<f64> = (0..400).map(|_| transfer.step(byte_ns, 0.0)).collect();
            let settled: f64 = spent.split_off(50).iter().sum::<f64>() / 350.0;
            assert!(
                settled < best(byte_ns) * 1.2,
                "{byte_ns} ns a byte: {settled} ns, best {}",
                best(byte_ns)
            );
        }
    }
}

#[test]
fn a_thread_with_help_uses_every_line_well() {
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        // The kernel's room grows with what the line carries in a round trip.
        for (read, buffered_ns) in [(4e6, 20e6), (4e6, 200e6), (30e6, 20e6), (30e6, 200e6)] {
            let buffered = buffered_ns / byte_ns;
            let all = (0..WAYS_COUNT * WAYS_COUNT).map(|i| chunk([i / WAYS_COUNT, i % WAYS_COUNT]));
            let took = |(encode, bytes): (f64, f64)| {
                let waited = (bytes - buffered).max(bytes - read / byte_ns).max(0.0) * byte_ns;
                (read + waited).max(encode * PRODUCERS)
            };
            let best = all.map(took).fold(f64::INFINITY, f64::min);
            for guess_ns in [0.05, 8.0, 500.0] {
                let mut helped = Helped::new(guess_ns);
                let mut spent: Vec<f64> =
                    (0..400).map(|_| helped.step(byte_ns, read, buffered)).collect();
                let settled: f64 = spent.split_off(50).iter().sum::<f64>() / 350.0;
                assert!(
                    settled < best * 1.2,
                    "{byte_ns} ns a byte, {read} ns of reading: {settled} ns, best {best}"
                );
            }
        }
    }
}

#[test]
fn one_thread_alone_uses_every_line_well() {
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        for guess_ns in [0.05, 8.0, 500.0] {
            // A kernel that sends whole chunks meanwhile would be worth a higher price, which the
            // thread can't see.
            for (buffered, factor) in [(0.0, 1.1), (256e3, 1.25), (4e6, 1.5)] {
                let mut transfer = Transfer::new(guess_ns);
                let mut spent: Vec<f64> =
                    (0..400).map(|_| transfer.step_alone(byte_ns, buffered)).collect();
                let settled: f64 = spent.split_off(50).iter().sum::<f64>() / 350.0;
                let fixed = (0..WAYS_COUNT * WAYS_COUNT).map(|i| {
                    let (encode, bytes) = chunk([i / WAYS_COUNT, i % WAYS_COUNT]);
                    let made = encode * PRODUCERS;
                    made + bytes * byte_ns - made.min(bytes.min(buffered) * byte_ns)
                });
                let best = fixed.fold(f64::INFINITY, f64::min);
                assert!(
                    settled < best * factor,
                    "{byte_ns} ns a byte, {buffered} bytes: {settled} ns, best {best}"
                );
            }
        }
    }
}

#[test]
fn a_line_that_changes_is_followed_within_some_chunks() {
    let mut transfer = Transfer::new(50.0);
    for byte_ns in [53.0, 400.0, 53.0, 2.0, 53.0] {
        let spent: Vec<f64> = (0..60).map(|_| transfer.step(byte_ns, 0.0)).collect();
        let settled = |from: usize| spent[from..from + 10].iter().sum::<f64>() / 10.0;
        assert!(
            settled(QUEUED + 12) < best(byte_ns) * 1.25,
            "{byte_ns} ns a byte: {:?}",
            &spent[..20]
        );
        assert!(settled(50) < best(byte_ns) * 1.15, "{byte_ns} ns a byte: {:?}", &spent[40..]);
    }
}

#[test]
fn a_slow_reader_is_not_sent_smaller_chunks() {
    let mut transfer = Transfer::new(8.0);
    (0..50).for_each(|_| {
        transfer.step(8.0, 0.0);
    });
    let before = transfer.price.ns();
    (0..50).for_each(|_| {
        transfer.step(300.0, 1.0);
    });
    assert!(transfer.price.ns() < before * 3.0, "{before} ns, then {}", transfer.price.ns());
}

#[test]
fn where_encoding_uses_up_the_processors_a_byte_costs_what_it_takes_of_them() {
    // The socket is never idle, and a byte takes 2 ns on the way; the threads that encode run for
    // some of the time.
    let settled = |ran: f64, took: f64| {
        let mut price = Price::new(8.0, Duration::ZERO);
        let processors =
            std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        for _ in 0..100 {
            price.plan();
            price.made(nanos(took * 20e6 * processors), nanos(ran * 20e6 * processors));
            price.starved(Duration::ZERO);
            price.sent(
                nanos(20e6),
                Passage { bytes: 10_000_000, busy: nanos(20e6), held_up: Duration::ZERO },
            );
        }
        price.ns()
    };
    assert!((1.4..1.6).contains(&settled(0.5, 1.0)), "{}", settled(0.5, 1.0));
    // They have all that they want, or others use the processors while they want little.
    assert!(settled(0.5, 0.5) > 8.0, "{}", settled(0.5, 0.5));
    assert!(settled(0.05, 0.2) > 8.0, "{}", settled(0.05, 0.2));
}

#[test]
fn the_first_chunk_of_a_column_goes_by_what_is_likely() {
    let first = |data_type, price_ns, plain_bytes| {
        choice::compression(Column::new(&data_type, 0, WAYS_COUNT).choose(
            price_ns,
            0.0,
            plain_bytes,
        ))
    };
    // Repeated strings gain much by zstd and nothing by symbols, free text about the same by both.
    assert_eq!(first(Type::Utf8, 80.0, 400e3), Compression::Zstd(1));
    assert_eq!(first(Type::Int64, 80.0, 65e3), Compression::Zstd(1));
    assert_eq!(first(Type::Utf8, 0.8, 400e3), Compression::Light);
    // A hundred rows aren't worth a compressor's tables.
    assert_eq!(first(Type::Utf8, 8.0, 1e3), Compression::Light);
    assert_eq!(first(Type::Int64, 8.0, 1e3), Compression::Light);
}
