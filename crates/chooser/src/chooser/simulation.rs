//! λ and the columns' candidates against a simulated source and network: chunks take time to
//! encode, wait in a queue and take time on the network. Times are computed, nothing is measured.

use std::collections::VecDeque;
use std::time::Duration;

use dray_format::{ColumnStats, Compression, Type};

use crate::candidate::{CANDIDATE_COUNT, CANDIDATES, LIGHT};
use crate::column_costs::ColumnCosts;
use crate::line::Line;
use crate::price::{Delivery, Price};

/// The costs of each candidate for two columns, numbers and text: nanoseconds and sent bytes per
/// decoded byte.
const COSTS: [[(f64, f64); CANDIDATE_COUNT]; 2] = [
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
/// The decoded bytes of a probe.
const PROBED_BYTES: f64 = 64e3;
const PRODUCERS: f64 = 2.0;
/// The chunks in the queue.
const QUEUED: usize = 3;

/// A transfer in progress.
struct Transfer {
    price: Price,
    columns: [ColumnCosts; 2],
    queue: VecDeque<f64>,
}

/// A thread that reads rows and sends chunks. Another thread encodes each chunk while the rows of
/// the next one are read.
struct Helped {
    transfer: Transfer,
    now: f64,
    /// The bytes of the chunk that is being encoded, and when it is ready.
    encoding: Option<(f64, f64)>,
    /// When the network will have sent everything that the kernel has taken.
    sent: f64,
}

impl Helped {
    fn new(guess_ns: f64) -> Self {
        Self { transfer: Transfer::new(guess_ns), now: 0.0, encoding: None, sent: 0.0 }
    }

    /// Reads the rows of a chunk, and sends the chunk before it. Returns the nanoseconds that this
    /// took. The kernel buffers up to `buffered` bytes.
    fn step(&mut self, byte_ns: f64, read: f64, buffered: f64) -> f64 {
        let since = self.now;
        self.now += read;
        let before = self.encoding.take();
        let ready = before.map_or(self.now, |(_, ready)| ready.max(self.now));
        let starved = ready - self.now;
        self.now = ready;
        let (encode, bytes) = self.transfer.encode();
        self.encoding = Some((bytes, self.now + encode * PRODUCERS));
        let Some((bytes, _)) = before else { return self.now - since };
        self.transfer.price.starved(nanos(starved));
        let busy_before = (self.sent - since).max(0.0).min(self.now - since);
        let start = self.sent.max(self.now);
        self.sent = start + bytes * byte_ns;
        self.now = self.now.max(self.sent - buffered * byte_ns);
        let busy = busy_before + (self.now - start).max(0.0);
        let delivery =
            Delivery { bytes: (busy / byte_ns) as u64, busy: nanos(busy), ..Delivery::default() };
        self.transfer.price.sent(nanos(self.now - since - starved), delivery);
        self.now - since
    }
}

/// What encoding `decoded` bytes of a column costs.
fn written(column: usize, candidate: usize, decoded: f64) -> ColumnStats {
    let (ns, share) = COSTS[column][candidate];
    ColumnStats {
        decoded_bytes: decoded as u64,
        bytes: (decoded * share) as u64,
        state_bytes: 0,
        encode_ns: (decoded * ns) as u64,
    }
}

/// The nanoseconds that all producers together take to encode a chunk with these candidates, and
/// its bytes.
fn chunk(candidates: [usize; 2]) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (column, candidate) in candidates.into_iter().enumerate() {
        let (ns, share) = COSTS[column][candidate];
        sum.0 += ns * COLUMN_BYTES[column] / PRODUCERS;
        sum.1 += share * COLUMN_BYTES[column];
    }
    sum
}

/// [`chunk`] of every pair of candidates.
fn all_chunks() -> impl Iterator<Item = (f64, f64)> {
    (0..CANDIDATE_COUNT)
        .flat_map(|first| (0..CANDIDATE_COUNT).map(move |second| chunk([first, second])))
}

/// The nanoseconds that a chunk takes with the best pair of candidates, whatever processor time
/// they need, on a network where a byte takes `byte_ns`.
fn best(byte_ns: f64) -> f64 {
    all_chunks().map(|(encode, bytes)| encode.max(bytes * byte_ns)).fold(f64::INFINITY, f64::min)
}

impl Transfer {
    fn new(guess_ns: f64) -> Self {
        let columns = [
            ColumnCosts::new(&Type::Int64, 0, CANDIDATE_COUNT),
            ColumnCosts::new(&Type::Utf8, 1, CANDIDATE_COUNT),
        ];
        Self {
            price: Price::new(Line::of_price(guess_ns), Duration::ZERO),
            columns,
            queue: VecDeque::new(),
        }
    }

    /// The next transfer over the same line, of the same columns.
    fn next(&self) -> Self {
        let price = Price::new(self.price.line(self.price.ns()), Duration::ZERO);
        let columns = self.columns.each_ref().map(|column| column.clone().resumed(CANDIDATE_COUNT));
        Self { price, columns, queue: VecDeque::new() }
    }

    /// Whether a column has a candidate to probe.
    fn would_probe(&self) -> bool {
        self.columns.iter().any(|column| column.to_probe(self.price.ns(), 0.0, 2).is_some())
    }

    /// Sends one chunk and encodes the next. Returns the nanoseconds that this took.
    fn step(&mut self, byte_ns: f64, reader_share: f64) -> f64 {
        let (encode, bytes) = self.encode();
        self.queue.push_back(bytes);
        if self.queue.len() <= QUEUED {
            return 0.0;
        }
        let sent = self.queue.pop_front().unwrap_or(bytes);
        let busy = sent * byte_ns;
        self.price.starved(nanos((encode - busy).max(0.0)));
        let delivery = Delivery {
            bytes: sent as u64,
            busy: nanos(busy),
            receiver_limited: nanos(busy * reader_share),
        };
        self.price.sent(nanos(busy), delivery);
        busy.max(encode)
    }

    /// The same by one thread, which encodes and sends. While it encodes, the kernel sends up to
    /// `buffered` bytes.
    fn step_inline(&mut self, byte_ns: f64, buffered: f64) -> f64 {
        let (encode, bytes) = self.encode();
        let encode = encode * PRODUCERS;
        let waited = bytes * byte_ns - encode.min(bytes.min(buffered) * byte_ns);
        self.price.sent_inline(bytes as u64, nanos(waited));
        encode + waited
    }

    /// Encodes a chunk. Returns the nanoseconds that all producers together took, and its bytes.
    fn encode(&mut self) -> (f64, f64) {
        let (price_ns, reader_share) = (self.price.begin_chunk(), self.price.reader_share());
        for (i, column) in self.columns.iter_mut().enumerate() {
            while let Some(candidate) = column.to_probe(price_ns, reader_share, 2) {
                column.record_probe(candidate, &written(i, candidate, PROBED_BYTES));
            }
        }
        let mut plain = COLUMN_BYTES.into_iter();
        let candidates = self
            .columns
            .each_mut()
            .map(|column| column.choose(price_ns, reader_share, plain.next().unwrap()));
        for (i, (column, candidate)) in self.columns.iter_mut().zip(candidates).enumerate() {
            column.record(candidate, &written(i, candidate, COLUMN_BYTES[i]), 65_536);
        }
        chunk(candidates)
    }
}

fn nanos(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}

#[test]
fn every_network_is_used_as_well_as_by_the_best_fixed_candidates() {
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
fn a_thread_with_one_helper_uses_every_network_well() {
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        // The kernel's buffer grows with the bandwidth-delay product.
        for (read, buffered_ns) in [(4e6, 20e6), (4e6, 200e6), (30e6, 20e6), (30e6, 200e6)] {
            let buffered = buffered_ns / byte_ns;
            let took = |(encode, bytes): (f64, f64)| {
                let waited = (bytes - buffered).max(bytes - read / byte_ns).max(0.0) * byte_ns;
                (read + waited).max(encode * PRODUCERS)
            };
            let best = all_chunks().map(took).fold(f64::INFINITY, f64::min);
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
fn one_thread_alone_uses_every_network_well() {
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        for guess_ns in [0.05, 8.0, 500.0] {
            // When the kernel sends whole chunks meanwhile, a higher price would be better, but the
            // thread can't see that.
            for (buffered, factor) in [(0.0, 1.1), (256e3, 1.25), (4e6, 1.5)] {
                let mut transfer = Transfer::new(guess_ns);
                let mut spent: Vec<f64> =
                    (0..400).map(|_| transfer.step_inline(byte_ns, buffered)).collect();
                let settled: f64 = spent.split_off(50).iter().sum::<f64>() / 350.0;
                let fixed = all_chunks().map(|(encode, bytes)| {
                    let encode = encode * PRODUCERS;
                    encode + bytes * byte_ns - encode.min(bytes.min(buffered) * byte_ns)
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
fn a_change_of_the_network_is_followed_within_some_chunks() {
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
fn where_encoding_uses_up_the_processors_a_byte_costs_its_processor_time() {
    // The socket is never idle, and a byte takes 2 ns on the network. The encoding threads run for
    // the share `ran` of the processors' time, in the share `took`.
    let settled = |ran: f64, took: f64| {
        let mut price = Price::new(Line::of_price(8.0), Duration::ZERO);
        let processors =
            std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        for _ in 0..100 {
            price.begin_chunk();
            price.encoded(nanos(took * 20e6 * processors), nanos(ran * 20e6 * processors));
            price.starved(Duration::ZERO);
            let delivery = Delivery { bytes: 10_000_000, busy: nanos(20e6), ..Delivery::default() };
            price.sent(nanos(20e6), delivery);
        }
        price.ns()
    };
    assert!((1.4..1.6).contains(&settled(0.5, 1.0)), "{}", settled(0.5, 1.0));
    // The threads never wait, or they wait but need little.
    assert!(settled(0.5, 0.5) > 8.0, "{}", settled(0.5, 0.5));
    assert!(settled(0.05, 0.2) > 8.0, "{}", settled(0.05, 0.2));
}

#[test]
fn the_first_chunk_of_a_column_is_compressed_by_estimates() {
    let first = |data_type, price_ns, plain_bytes| {
        let mut column = ColumnCosts::new(&data_type, 0, CANDIDATE_COUNT);
        CANDIDATES[column.choose(price_ns, 0.0, plain_bytes)].compression
    };
    // zstd shrinks repeated strings, and symbols do not. Both shrink free text alike.
    assert_eq!(first(Type::Utf8, 80.0, 400e3), Compression::Zstd(1));
    assert_eq!(first(Type::Int64, 80.0, 65e3), Compression::Zstd(1));
    assert_eq!(first(Type::Utf8, 0.8, 400e3), Compression::Light);
    // A hundred rows don't pay for a compressor's tables.
    assert_eq!(first(Type::Utf8, 8.0, 1e3), Compression::Light);
    assert_eq!(first(Type::Int64, 8.0, 1e3), Compression::Light);
}

#[test]
fn the_next_stream_begins_as_the_last_one_ended() {
    for byte_ns in [0.8, 2.0, 8.0, 20.0, 80.0, 200.0, 800.0, 8000.0] {
        let mut before = Transfer::new(8.0);
        (0..100).for_each(|_| {
            before.step(byte_ns, 0.0);
        });
        // Many short streams do as well as a long one.
        let mut spent = 0.0;
        for _ in 0..20 {
            let mut next = before.next();
            assert!(!next.would_probe(), "{byte_ns} ns a byte");
            (0..QUEUED).for_each(|_| {
                next.step(byte_ns, 0.0);
            });
            spent += (0..8).map(|_| next.step(byte_ns, 0.0)).sum::<f64>() / 160.0;
            before = next;
        }
        assert!(spent < best(byte_ns) * 1.2, "{byte_ns} ns: {spent}, best {}", best(byte_ns));
    }
}

#[test]
fn kept_costs_of_other_values_are_forgotten() {
    let mut before = Transfer::new(8.0);
    (0..50).for_each(|_| {
        before.step(8.0, 0.0);
    });
    let mut next = before.next();
    let columns = &mut next.columns;
    let candidate = columns[1].choose(8.0, 0.0, COLUMN_BYTES[1]);
    // Within the limits, and beyond.
    let (alike, other) = (written(1, candidate, 1.2e6), written(1, LIGHT, 1.2e6));
    let mut confirmed = columns[1].clone();
    confirmed.record(candidate, &alike, 65_536);
    confirmed.record(candidate, &other, 65_536);
    assert_eq!(confirmed.to_probe(8.0, 0.0, 2), None);
    columns[1].record(candidate, &other, 65_536);
    assert!(columns[1].to_probe(8.0, 0.0, 2).is_some());
}

#[test]
fn kept_costs_of_large_chunks_do_not_lead_small_ones_astray() {
    let mut transfer = Transfer::new(80.0);
    (0..50).for_each(|_| {
        transfer.step(80.0, 0.0);
    });
    let [_, mut text] = transfer.next().columns;
    let compression = |candidate: usize| CANDIDATES[candidate].compression;
    assert!(matches!(compression(text.choose(80.0, 0.0, 1.5e6)), Compression::Zstd(_)));
    let [_, mut text] = transfer.next().columns;
    let small = compression(text.choose(80.0, 0.0, 100.0));
    assert!(matches!(small, Compression::None | Compression::Light), "{small:?}");
}

#[test]
fn two_slow_chunks_do_not_rule_out_light() {
    let mut transfer = Transfer::new(0.6);
    (0..20).for_each(|_| {
        transfer.step(0.8, 0.0);
    });
    let [numbers, _] = &mut transfer.columns;
    for _ in 0..2 {
        let usual = written(0, LIGHT, COLUMN_BYTES[0]);
        let slow = ColumnStats { encode_ns: 10 * usual.encode_ns, ..usual };
        numbers.record(LIGHT, &slow, 65_536);
    }
    assert_eq!(numbers.choose(0.6, 0.0, COLUMN_BYTES[0]), LIGHT);
}
