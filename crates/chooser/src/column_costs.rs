//! What each candidate costs one column, measured on the chunks that were encoded.
//!
//! Candidates that have not been measured are estimated from those that have.

use dray_format::{ColumnStats, Compression, Type};

use crate::candidate::{CANDIDATE_COUNT, CANDIDATES, Candidate, LIGHT, NONE, SYMBOLS, ValueKind};
use crate::page_costs::ColumnsCost;

/// The cost of plain columns, and the expected cost of light before it is measured, for each
/// [`ValueKind`].
const PLAIN: Cost = Cost { encode_ns: 0.02, share: 1.0 };
const LIGHT_GUESS: [Cost; 2] =
    [Cost { encode_ns: 0.15, share: 0.3 }, Cost { encode_ns: 0.2, share: 0.85 }];

/// The least weight of the newest chunk in the mean of a column's cost.
const NEWEST_WEIGHT_MIN: f64 = 0.3;
/// A column tries a neighbour of its candidate once in this many chunks.
const TRY_EVERY: u64 = 32;
/// An unmeasured candidate is probed if it would pay when it sent only this share of the bytes that
/// the smallest measured candidate sends. Estimates describe usual columns; a probe finds the
/// unusual ones.
const OPTIMISTIC_SHARE: f64 = 0.2;
/// The same for a level of zstd when another level has been measured.
const OPTIMISTIC_SHARE_OF_LEVEL: f64 = 0.75;
/// A neighbour is not tried if it is expected to cost more than this multiple of the column's
/// candidate.
const TRY_COST_MAX: f64 = 2.0;
/// Measurements on fewer bytes are ignored.
const MEASURED_BYTES_MIN: u64 = 4096;
/// The weight of an estimate, in measured bytes. The first chunk has few rows, and finds caches and
/// memory cold: its encoding time must not rule out its candidate for the rest of the stream.
const GUESS_BYTES: f64 = 256e3;
/// A chunk counts at most this multiple of the mean time. Others who use the processor and its
/// caches make encoding slower, never faster, and a candidate that lost its place for that would
/// not be measured again soon.
const SLOWER_TIMES_MAX: f64 = 1.5;
/// The same for a candidate's first measurement, as a multiple of its estimate.
const SLOWER_TIMES_MAX_AT_FIRST: f64 = 4.0;
/// Kept costs are forgotten if the larger of their share of the bytes and that of the first chunk
/// is more than this multiple of the smaller one, and a little more.
const SURPRISE_TIMES: f64 = 1.5;
const SURPRISE_SHARE: f64 = 0.05;
/// Another candidate is chosen when it costs less than this share of the present one: measurements
/// are noisy.
const CHANGE_BELOW: f64 = 0.97;

/// What a candidate costs a column.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Encoding time, in nanoseconds per decoded byte.
    encode_ns: f64,
    /// Bytes sent per decoded byte.
    share: f64,
}

impl Cost {
    /// The nanoseconds that a decoded byte costs in all, under `candidate` and λ.
    fn total_ns(self, candidate: usize, price_ns: f64, reader_share: f64) -> f64 {
        self.encode_ns + price_ns * self.share + reader_share * CANDIDATES[candidate].decode_ns
    }
}

/// A mean of costs, and what it was measured on.
#[derive(Debug, Clone, Copy)]
struct Measured {
    mean: Cost,
    /// Decoded bytes in all, and those of a chunk.
    bytes: f64,
    chunk_bytes: f64,
}

/// The costs of one column, and its present candidate. It can be kept for the next stream that has
/// the column.
// Candidates are indexes of `CANDIDATES`.
#[derive(Debug, Clone)]
pub struct ColumnCosts {
    kind: ValueKind,
    measured: [Option<Measured>; CANDIDATE_COUNT],
    candidate: usize,
    /// Only the first `candidates` are considered.
    candidates: usize,
    chunks: u64,
    /// The decoded bytes of a row, once a chunk was encoded.
    row_bytes: Option<f64>,
    /// The costs come from an earlier stream, and no chunk has confirmed them.
    is_unconfirmed: bool,
}

impl ColumnCosts {
    /// A column without measurements. `position` is its index in the schema; it spreads the trials
    /// of all columns over the chunks.
    pub(crate) fn new(data_type: &Type, position: usize, candidates: usize) -> Self {
        debug_assert!((1..=CANDIDATE_COUNT).contains(&candidates));
        Self {
            kind: ValueKind::of(data_type),
            measured: [None; CANDIDATE_COUNT],
            candidate: 0,
            candidates,
            chunks: position as u64,
            row_bytes: None,
            is_unconfirmed: false,
        }
    }

    /// The costs of the column in an earlier stream, for another one that uses the first
    /// `candidates`.
    pub(crate) fn resumed(self, candidates: usize) -> Self {
        debug_assert!((1..=CANDIDATE_COUNT).contains(&candidates));
        let candidate = self.candidate.min(candidates - 1);
        Self { candidate, candidates, is_unconfirmed: true, ..self }
    }

    /// The bytes that a row is expected to send under λ, once a chunk was encoded.
    pub(crate) fn expected_row_bytes(&self, price_ns: f64) -> Option<f64> {
        let total = |(candidate, cost): &(usize, Cost)| cost.total_ns(*candidate, price_ns, 0.0);
        let measured = self.measured.iter().enumerate();
        let measured = measured.filter_map(|(candidate, it)| Some((candidate, (*it)?.mean)));
        let cheapest = measured.min_by(|a, b| total(a).total_cmp(&total(b)));
        Some(self.row_bytes? * cheapest.map_or(1.0, |(_, cost)| cost.share))
    }

    /// What a row is expected to cost, once a chunk was encoded.
    pub(crate) fn expected_row(&self, price_ns: f64, reader_share: f64) -> Option<ColumnsCost> {
        let plain_bytes = self.row_bytes?;
        let total =
            |candidate: usize| self.expected(candidate).total_ns(candidate, price_ns, reader_share);
        let least = (0..self.candidates).map(total).min_by(f64::total_cmp)?;
        Some(ColumnsCost { ns: least * plain_bytes, plain_bytes })
    }

    /// Chooses the candidate for the next chunk, in which the column has about `plain_bytes` plain
    /// bytes.
    pub(crate) fn choose(&mut self, price_ns: f64, reader_share: f64, plain_bytes: f64) -> usize {
        let costs: [f64; CANDIDATE_COUNT] = std::array::from_fn(|candidate| {
            // Measured times include the fixed cost of a chunk of the size they were measured on.
            let included = self.measured[candidate].map_or(0.0, |it| 1.0 / it.chunk_bytes);
            let fixed_ns = CANDIDATES[candidate].chunk_ns * (1.0 / plain_bytes - included).max(0.0);
            self.expected(candidate).total_ns(candidate, price_ns, reader_share) + fixed_ns
        });
        let best = (0..self.candidates).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0);
        // How well light does on a column can't be estimated. Trying it costs next to nothing, and
        // one chunk tells.
        let best = if best == NONE && self.measured[LIGHT].is_none() { LIGHT } else { best };
        if self.measured[self.candidate].is_none()
            || costs[best] < costs[self.candidate] * CHANGE_BELOW
        {
            self.candidate = best;
        }
        self.chunks += 1;
        if self.chunks.is_multiple_of(TRY_EVERY) {
            // Alternately the slower and the faster neighbour, so that one that has become better
            // is noticed.
            let upwards = (self.chunks / TRY_EVERY).is_multiple_of(2);
            let neighbour = match upwards {
                true => self.candidate + 1,
                false => self.candidate.wrapping_sub(1),
            };
            if costs[..self.candidates]
                .get(neighbour)
                .is_some_and(|cost| *cost < costs[self.candidate] * TRY_COST_MAX)
            {
                return neighbour;
            }
        }
        self.candidate
    }

    /// The unmeasured candidate to probe on a fraction `1 / part` of a chunk: the cheapest under
    /// optimistic estimates, if the probe could pay for itself within that chunk. Light comes
    /// first, since estimates of the others build on it.
    pub(crate) fn to_probe(&self, price_ns: f64, reader_share: f64, part: usize) -> Option<usize> {
        let total = |candidate: usize, cost: Cost| cost.total_ns(candidate, price_ns, reader_share);
        let measured = |candidate: usize| Some(total(candidate, self.measured[candidate]?.mean));
        let least = (LIGHT..self.candidates).filter_map(measured).min_by(f64::total_cmp);
        let least =
            least.unwrap_or_else(|| total(LIGHT, self.expected(LIGHT))).min(total(NONE, PLAIN));
        let is_unmeasured = |candidate: &usize| match *candidate {
            // Symbols do nothing for numbers.
            SYMBOLS if self.kind != ValueKind::Strings => false,
            candidate => self.measured[candidate].is_none(),
        };
        let optimistic = |candidate: usize| {
            let guessed = self.guessed(candidate);
            let hoped =
                total(candidate, Cost { share: self.optimistic_share(candidate), ..guessed });
            (candidate, hoped, hoped + guessed.encode_ns / part as f64)
        };
        let (candidate, ..) = (LIGHT + 1..self.candidates)
            .filter(is_unmeasured)
            .map(optimistic)
            .filter(|(_, _, with_probe)| *with_probe < least)
            .min_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
        Some(if self.measured[LIGHT].is_none() { LIGHT } else { candidate })
    }

    /// An optimistic share for an unmeasured candidate: a fraction of the smallest measured one,
    /// but no less than those of slower candidates.
    fn optimistic_share(&self, candidate: usize) -> f64 {
        let is_zstd =
            |candidate: usize| matches!(CANDIDATES[candidate].compression, Compression::Zstd(_));
        let least_of = |of: &dyn Fn(usize) -> bool| {
            let measured = self.measured.iter().enumerate().filter(|(other, _)| of(*other));
            measured.filter_map(|(_, it)| Some((*it)?.mean.share)).min_by(f64::total_cmp)
        };
        let of_level = if is_zstd(candidate) { least_of(&is_zstd) } else { None };
        let share = match of_level {
            Some(share) => OPTIMISTIC_SHARE_OF_LEVEL * share,
            None => OPTIMISTIC_SHARE * least_of(&|_| true).unwrap_or(self.expected(LIGHT).share),
        };
        share.max(least_of(&|other| other > candidate).unwrap_or(0.0))
    }

    /// Records what a probe measured. The bytes of state frames don't count: in the stream they are
    /// sent once.
    pub(crate) fn record_probe(&mut self, candidate: usize, written: &ColumnStats) {
        let bytes = written.decoded_bytes.max(1) as f64;
        let share = (written.bytes - written.state_bytes) as f64 / bytes;
        let seen = Cost { encode_ns: written.encode_ns as f64 / bytes, share };
        let mean = self.at_first(candidate, seen);
        self.measured[candidate] = Some(Measured { mean, bytes, chunk_bytes: bytes });
    }

    /// The cost of a candidate that is measured for the first time.
    fn at_first(&self, candidate: usize, seen: Cost) -> Cost {
        let slowest = SLOWER_TIMES_MAX_AT_FIRST * self.guessed(candidate).encode_ns;
        Cost { encode_ns: seen.encode_ns.min(slowest), ..seen }
    }

    /// The nanoseconds by which encoding a column took longer than expected.
    pub(crate) fn excess_ns(&self, candidate: usize, written: &ColumnStats) -> f64 {
        let expected = self.expected(candidate).encode_ns * written.decoded_bytes as f64;
        (written.encode_ns as f64 - expected).max(0.0)
    }

    /// Records what a chunk of the stream with this many rows measured.
    pub(crate) fn record(&mut self, candidate: usize, written: &ColumnStats, rows: u32) {
        let bytes = written.decoded_bytes as f64;
        self.row_bytes = Some(bytes / f64::from(rows.max(1)));
        if written.decoded_bytes < MEASURED_BYTES_MIN {
            return;
        }
        let seen = Cost {
            encode_ns: written.encode_ns as f64 / bytes,
            share: written.bytes as f64 / bytes,
        };
        if std::mem::take(&mut self.is_unconfirmed)
            && let Some(known) = self.measured[candidate]
            && candidate != NONE
        {
            let share = (written.bytes - written.state_bytes) as f64 / bytes;
            let (less, more) = (share.min(known.mean.share), share.max(known.mean.share));
            if more > SURPRISE_TIMES * less + SURPRISE_SHARE {
                // These are other values than before.
                self.measured = [None; CANDIDATE_COUNT];
            }
        }
        self.measured[candidate] = Some(match self.measured[candidate] {
            None => Measured { mean: self.at_first(candidate, seen), bytes, chunk_bytes: bytes },
            Some(Measured { mean, bytes: before, chunk_bytes }) => {
                let encode_ns = seen.encode_ns.min(SLOWER_TIMES_MAX * mean.encode_ns);
                // A small chunk says less about large ones.
                let newest_min = NEWEST_WEIGHT_MIN * (bytes / chunk_bytes).min(1.0);
                let newest = newest_min.max(bytes / (before + bytes));
                let mean = Cost {
                    encode_ns: mean.encode_ns + (encode_ns - mean.encode_ns) * newest,
                    share: mean.share + (seen.share - mean.share) * newest,
                };
                let chunk_bytes = chunk_bytes + (bytes - chunk_bytes) * newest;
                Measured { mean, bytes: before + bytes, chunk_bytes }
            }
        });
    }

    /// The expected cost of a candidate: the measured one, mixed with the estimate while few bytes
    /// have been measured.
    fn expected(&self, candidate: usize) -> Cost {
        let guess = self.guessed(candidate);
        let Some(Measured { mean, bytes, .. }) = self.measured[candidate] else { return guess };
        let encode_ns =
            (mean.encode_ns * bytes + guess.encode_ns * GUESS_BYTES) / (bytes + GUESS_BYTES);
        Cost { encode_ns, share: mean.share }
    }

    /// The estimated cost of a candidate: light's, and what the candidate usually adds.
    fn guessed(&self, candidate: usize) -> Cost {
        let kind = self.kind as usize;
        match candidate {
            NONE => return PLAIN,
            LIGHT if self.measured[LIGHT].is_some() => return LIGHT_GUESS[kind],
            _ => {}
        }
        let light = self.light();
        let Candidate { more_ns, share, .. } = &CANDIDATES[candidate];
        Cost {
            encode_ns: light.encode_ns + light.share * more_ns[kind],
            share: light.share * share[kind],
        }
    }

    /// The cost of light: measured, or inferred from the first candidate that has been measured.
    fn light(&self) -> Cost {
        let kind = self.kind as usize;
        let measured = self
            .measured
            .iter()
            .enumerate()
            .skip(LIGHT)
            .find_map(|(candidate, measured)| Some((candidate, (*measured)?.mean)));
        let Some((candidate, cost)) = measured else { return LIGHT_GUESS[kind] };
        let share = (cost.share / CANDIDATES[candidate].share[kind]).min(1.0);
        let encode_ns = cost.encode_ns - share * CANDIDATES[candidate].more_ns[kind];
        Cost { encode_ns: encode_ns.max(PLAIN.encode_ns), share }
    }
}
