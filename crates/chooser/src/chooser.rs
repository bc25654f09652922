//! The state that the encoding threads and the writer of one stream share: λ, and the costs of each
//! column.
//!
//! ```text
//!   encoding threads: choose ──▶ encode ──▶ encoded     writer: starved, sent
//!        ▲ compressions, rows        │ bytes, ns             │ bytes, ns
//!        └────────── ColumnCosts, rows ◀── λ ◀── Price ◀─────┘
//! ```

#[cfg(test)]
mod simulation;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_format::{Batch, Chunk, ChunkKind, ColumnStats, Compression, Encoder, Error, Schema};

use crate::candidate::{CANDIDATES, candidates_up_to};
use crate::column_costs::ColumnCosts;
use crate::line::Line;
use crate::page_costs::{ColumnsCost, PageCosts};
use crate::price::{Delivery, Price};

/// A first chunk of at most this size is sent plain: it leaves in one flight of packets anyway.
const SMALL_BYTES: u64 = 10 << 10;
/// The rows of the first chunk. It is small, so that it arrives soon and tells how fast the network
/// is.
const FIRST_ROWS: usize = 8192;
/// The fewest rows of a chunk, however slow the network is.
const ROWS_MIN: usize = 4096;
/// The most rows of a chunk before anything of the stream is known.
const ROWS_MAX: usize = 1 << 16;
/// TCP's slow start is taken to last this many round trips.
const SLOW_START_ROUND_TRIPS: u32 = 8;
/// The time that a chunk should take on the network. λ changes only between chunks, so chunks must
/// not take long.
const CHUNK_NETWORK_NS: f64 = 1e9;
/// The most and the fewest rows of a probe.
const PROBE_ROWS_MAX: usize = 8192;
const PROBE_ROWS_MIN: usize = 2048;
/// A probe takes at most a fraction `1 / PROBE_DIVISOR` of the rows of its chunk.
const PROBE_DIVISOR: usize = 2;
/// [`Chooser::line`] has the mean of λ over this time. The last moment alone says little: while the
/// last chunks leave, λ may be anything.
const RECENT: Duration = Duration::from_secs(1);
/// The most settings of λ in [`Chooser::history`].
const HISTORY_MAX: usize = 128;
/// After so many times of pages comes a chunk: it tells what columns cost by now.
const PAGES_IN_A_ROW_MAX: u32 = 31;

/// Adapts the chunks of one stream to its network, processors and reader. Threads share it.
#[derive(Debug)]
pub struct Chooser {
    start: Instant,
    state: Mutex<State>,
    /// Held by the one thread that probes. The others wait for its result, which takes less time
    /// than sending the bytes that they would waste without it.
    probing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    price: Price,
    columns: Vec<ColumnCosts>,
    pages: PageCosts,
    /// How often rows became pages since the last chunk.
    in_pages: u32,
    /// The rows of the next chunks.
    chunk_rows: usize,
    /// No chunk has been encoded yet.
    is_first: bool,
    history: History,
}

/// The compression of each column of one chunk.
#[derive(Debug)]
pub struct ColumnChoices {
    /// One candidate per column; empty if all columns are plain.
    candidates: Vec<usize>,
    chosen_at: Instant,
}

impl ColumnChoices {
    /// The compression of the column at index `column`.
    pub fn compression(&self, column: usize) -> Compression {
        CANDIDATES[self.candidates.get(column).copied().unwrap_or(0)].compression
    }
}

/// A column to probe, by its index, and the candidate to probe on it.
#[derive(Debug, Clone, Copy)]
struct Probe {
    column: usize,
    candidate: usize,
}

impl Chooser {
    /// A chooser for a stream with the columns of `schema` over this line. λ does not rise during
    /// TCP's slow start, a few times `round_trip`. Levels of zstd above `level_max` are not used.
    pub fn new(schema: &Schema, line: Line, round_trip: Duration, level_max: i32) -> Self {
        Self::with_costs(schema, line, round_trip, level_max, |_| None)
    }

    /// The same for columns whose costs were kept: `kept` has those of the column with an index.
    pub fn with_costs(
        schema: &Schema,
        line: Line,
        round_trip: Duration,
        level_max: i32,
        kept: impl Fn(usize) -> Option<ColumnCosts>,
    ) -> Self {
        let candidates = candidates_up_to(level_max);
        let columns = schema.fields.iter().enumerate().map(|(i, field)| match kept(i) {
            Some(costs) => costs.resumed(candidates),
            None => ColumnCosts::new(&field.data_type, i, candidates),
        });
        let mut state = State {
            price: Price::new(line, round_trip * SLOW_START_ROUND_TRIPS),
            columns: columns.collect(),
            pages: PageCosts::default(),
            in_pages: 0,
            chunk_rows: FIRST_ROWS,
            is_first: true,
            history: History::default(),
        };
        state.chunk_rows = state.expected_rows().unwrap_or(FIRST_ROWS);
        state.history.push(Duration::ZERO, state.price.ns());
        Self { start: Instant::now(), state: Mutex::new(state), probing: Mutex::new(()) }
    }

    /// What is known of the line: λ is its mean over the last second, or over the later half of a
    /// short stream.
    pub fn line(&self) -> Line {
        let now = self.start.elapsed();
        let state = self.state();
        state.price.line(state.history.mean(now - RECENT.min(now / 2), now))
    }

    /// The costs of each column, for the next stream that has it.
    pub fn costs(&self) -> Vec<ColumnCosts> {
        self.state().columns.clone()
    }

    /// The settings of λ, each with its time since the stream began. Those of a long stream are
    /// thinned out.
    pub fn history(&self) -> Vec<(Duration, f64)> {
        self.state().history.settings.clone()
    }

    /// Records that the writer waited this long for a chunk.
    pub fn starved(&self, waited: Duration) {
        let mut state = self.state();
        // The wait for the first chunk is the query's.
        if !state.is_first {
            state.price.starved(waited);
        }
    }

    /// Records that the socket took a chunk, that the writer waited `busy` for this, and what the
    /// connection delivered meanwhile.
    pub fn sent(&self, busy: Duration, delivery: Delivery) {
        let mut state = self.state();
        if state.price.sent(busy, delivery) {
            let ns = state.price.ns();
            state.history.push(self.start.elapsed(), ns);
        }
    }

    /// Like [`Self::sent`], for a thread that encodes and sends: it sent `bytes` bytes, and waited
    /// this long for the socket.
    pub fn sent_inline(&self, bytes: u64, waited: Duration) {
        let mut state = self.state();
        state.price.sent_inline(bytes, waited);
        let ns = state.price.ns();
        state.history.push(self.start.elapsed(), ns);
    }

    /// Measures unmeasured candidates that might pay, on the first rows of a chunk. `encoder`
    /// makes an encoder for some of the columns; its chunks are not sent.
    ///
    /// # Errors
    /// The rows don't match the schema.
    pub fn probe(
        &self,
        schema: &Schema,
        batches: &[Batch],
        encoder: impl Fn(Arc<Schema>) -> Encoder,
    ) -> Result<(), Error> {
        let rows = batches.iter().map(|batch| batch.rows).sum::<usize>() / PROBE_DIVISOR;
        // The first chunk should arrive soon, and has too few rows to tell how well compressors do
        // on many.
        if rows < PROBE_ROWS_MIN || self.state().is_first {
            return Ok(());
        }
        let _only_one = self.probing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let probes = self.state().probes();
            if probes.is_empty() {
                return Ok(());
            }
            let fields = probes.iter().filter_map(|it| schema.fields.get(it.column).cloned());
            let probed_schema = Arc::new(Schema { fields: fields.collect() });
            let sample = sample(batches, &probes, rows.min(PROBE_ROWS_MAX));
            let compression =
                |i: usize| probes.get(i).map_or(Compression::None, Probe::compression);
            let chunk = encoder(probed_schema).write(&sample, compression, ChunkKind::Regular)?;
            self.state().record_probes(&probes, &chunk);
        }
    }

    /// Chooses the compressions of the next chunk, whose rows have `plain_bytes` plain bytes.
    pub fn choose(&self, plain_bytes: u64) -> ColumnChoices {
        let mut state = self.state();
        let State { price, columns, is_first, .. } = &mut *state;
        let chosen_at = Instant::now();
        if *is_first && plain_bytes <= SMALL_BYTES {
            return ColumnChoices { candidates: Vec::new(), chosen_at };
        }
        let (price_ns, reader_share) = (price.begin_chunk(), price.reader_share());
        let column_bytes = plain_bytes.max(1) as f64 / columns.len().max(1) as f64;
        let candidates = columns
            .iter_mut()
            .map(|column| column.choose(price_ns, reader_share, column_bytes))
            .collect();
        ColumnChoices { candidates, chosen_at }
    }

    /// Whether the next rows cost less as pages than as a chunk, and begins them if so. The reader
    /// builds pages of a chunk itself, in one thread, where the server has a thread for each of its
    /// processors. What columns cost is known after a chunk of the stream, or from an earlier one.
    pub fn begin_pages(&self) -> bool {
        let mut state = self.state();
        if !state.pages_pay() || state.in_pages >= PAGES_IN_A_ROW_MAX {
            state.in_pages = 0;
            return false;
        }
        state.in_pages += 1;
        state.price.begin_chunk();
        true
    }

    /// Records pages that were built of this many rows. It took this long, and the thread used
    /// `cpu_time` of that, if known.
    pub fn built(&self, rows: usize, page_bytes: u64, took: Duration, cpu_time: Option<Duration>) {
        let mut state = self.state();
        state.is_first = false;
        let cpu_time = cpu_time.unwrap_or(took);
        state.price.encoded(took, cpu_time);
        state.pages.record(rows, page_bytes, cpu_time.as_nanos() as f64);
    }

    /// The most rows of the next chunk.
    pub fn chunk_rows(&self) -> usize {
        self.state().chunk_rows
    }

    /// Records a chunk that has just been encoded as chosen. `cpu_time` is the processor time that
    /// its thread used, if known.
    pub fn encoded(&self, choices: &ColumnChoices, chunk: &Chunk, cpu_time: Option<Duration>) {
        let took = choices.chosen_at.elapsed();
        let mut state = self.state();
        let State { price, columns, chunk_rows, is_first, .. } = &mut *state;
        debug_assert!(
            choices.candidates.is_empty() || choices.candidates.len() == chunk.columns().len()
        );
        *is_first = false;
        let cpu_time = cpu_time.unwrap_or(took);
        price.encoded(took, cpu_time);
        let times = encode_times(columns, choices, chunk, took.saturating_sub(cpu_time));
        let encoded = choices.candidates.iter().zip(columns).zip(chunk.columns());
        for (((candidate, column), written), encode_ns) in encoded.zip(times) {
            column.record(*candidate, &ColumnStats { encode_ns, ..*written }, chunk.rows());
        }
        let row_bytes = chunk.chunk_bytes() as f64 / f64::from(chunk.rows().max(1));
        let fitting = CHUNK_NETWORK_NS / (price.byte_ns() * row_bytes);
        // At most doubled: the first rates are guesses. `as` saturates.
        *chunk_rows = (fitting as usize).min(*chunk_rows * 2).max(ROWS_MIN);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic does no harm to it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The nanoseconds that encoding each column took, without the time in which the thread `waited`
/// for a processor. That is taken from the columns that took longer than expected.
fn encode_times(
    columns: &[ColumnCosts],
    choices: &ColumnChoices,
    chunk: &Chunk,
    waited: Duration,
) -> Vec<u64> {
    let encoded = choices.candidates.iter().zip(columns).zip(chunk.columns());
    let excesses: Vec<f64> = encoded
        .map(|((candidate, column), written)| column.excess_ns(*candidate, written))
        .collect();
    let share = (waited.as_nanos() as f64 / excesses.iter().sum::<f64>().max(1.0)).min(1.0);
    let times = chunk.columns().iter().zip(excesses);
    times.map(|(written, ns)| written.encode_ns.saturating_sub((ns * share) as u64)).collect()
}

impl State {
    /// The rows of a chunk that should take [`CHUNK_NETWORK_NS`], if the line and all columns are
    /// known.
    fn expected_rows(&self) -> Option<usize> {
        if self.price.is_guess() || self.columns.is_empty() {
            return None;
        }
        let bytes = |column: &ColumnCosts| column.expected_row_bytes(self.price.ns());
        let row_bytes: f64 = self.columns.iter().map(bytes).sum::<Option<f64>>()?;
        // `as` saturates.
        let fitting = (CHUNK_NETWORK_NS / (self.price.byte_ns() * row_bytes)) as usize;
        Some(fitting.clamp(ROWS_MIN, ROWS_MAX))
    }

    fn pages_pay(&self) -> bool {
        let Self { price, columns, pages, in_pages, .. } = self;
        let (price_ns, reader_share) = (price.ns(), price.reader_share() * price.processors());
        let mut row = ColumnsCost::default();
        for column in columns {
            let Some(cost) = column.expected_row(price_ns, reader_share) else { return false };
            row.ns += cost.ns;
            row.plain_bytes += cost.plain_bytes;
        }
        pages.pay(row, price_ns, reader_share, *in_pages > 0)
    }

    fn probes(&self) -> Vec<Probe> {
        let (price_ns, reader_share) = (self.price.ns(), self.price.reader_share());
        let probe = |(column, costs): (usize, &ColumnCosts)| {
            let candidate = costs.to_probe(price_ns, reader_share, PROBE_DIVISOR)?;
            Some(Probe { column, candidate })
        };
        self.columns.iter().enumerate().filter_map(probe).collect()
    }

    fn record_probes(&mut self, probes: &[Probe], chunk: &Chunk) {
        debug_assert_eq!(probes.len(), chunk.columns().len());
        for (probe, written) in probes.iter().zip(chunk.columns()) {
            if let Some(column) = self.columns.get_mut(probe.column) {
                column.record_probe(probe.candidate, written);
            }
        }
    }
}

impl Probe {
    fn compression(&self) -> Compression {
        CANDIDATES[self.candidate].compression
    }
}

/// The first `rows` rows of the columns to probe.
fn sample(batches: &[Batch], probes: &[Probe], rows: usize) -> Vec<Batch> {
    let mut left = rows;
    let mut sample = Vec::new();
    for batch in batches {
        let rows = batch.rows.min(left);
        if rows == 0 {
            break;
        }
        let columns = probes.iter().filter_map(|probe| batch.columns.get(probe.column));
        sample.push(Batch { rows, columns: columns.map(|column| column.slice(0, rows)).collect() });
        left -= rows;
    }
    sample
}

/// The settings of λ over time. When there are too many, every other one is dropped.
#[derive(Debug)]
struct History {
    settings: Vec<(Duration, f64)>,
    /// One setting in this many is kept.
    every: usize,
    skipped: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { settings: Vec::new(), every: 1, skipped: 0 }
    }
}

impl History {
    /// The geometric mean from `from` to `until`. λ must have been set before `until`.
    fn mean(&self, from: Duration, until: Duration) -> f64 {
        let ends = self.settings.iter().skip(1).map(|(at, _)| *at).chain([until]);
        let spans = self
            .settings
            .iter()
            .zip(ends)
            .map(|((at, ns), end)| (end.saturating_sub((*at).max(from)), *ns));
        let (mut time, mut sum) = (0.0, 0.0);
        for (span, ns) in spans {
            // The minimum keeps `time` above zero.
            let span = span.as_secs_f64().max(1e-9);
            time += span;
            sum += span * ns.ln();
        }
        (sum / time).exp()
    }

    fn push(&mut self, at: Duration, ns: f64) {
        debug_assert!(self.settings.last().is_none_or(|(last, _)| *last <= at));
        self.skipped += 1;
        if self.skipped < self.every {
            return;
        }
        self.skipped = 0;
        if self.settings.len() == HISTORY_MAX {
            let mut keep = false;
            self.settings.retain(|_| {
                keep = !keep;
                keep
            });
            self.every *= 2;
        }
        self.settings.push((at, ns));
    }
}
