//! What the producers and the writer of one stream know together: λ, and what each column costs
//! under it.
//!
//! ```text
//!   producers: plan ──▶ encode ──▶ written          writer: starved, sent
//!        ▲  ways, rows      │ bytes, ns                 │ bytes, ns
//!        └──────────── Columns, rows ◀── λ ◀── Price ◀──┘
//! ```

#[cfg(test)]
mod simulation;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_format::{Batch, Chunk, Compression, Encoder, Error, Schema};

use crate::choice::{self, Column};
use crate::price::{Passage, Price};

/// A first chunk of no more than this is sent plain: it leaves in one flight of packets anyhow.
const SMALL_BYTES: u64 = 10 << 10;
/// The rows of a first chunk: it comes soon, and tells how fast the way is.
const FIRST_ROWS: usize = 8192;
/// Chunks have at least so many rows, however slow the way.
const ROWS_MIN: usize = 4096;
/// After so many round trips a connection sends as fast as it can.
const STARTING_ROUND_TRIPS: u32 = 8;
/// A chunk takes about so long on the way, so that λ keeps up with it.
const CHUNK_NS: f64 = 300e6;
/// Ways are probed on so many rows at most,
const PROBE_ROWS_MAX: usize = 8192;
/// on no fewer,
const PROBE_ROWS_MIN: usize = 2048;
/// and on one part in so many of the chunk that they are the first of.
const PROBE_PART: usize = 2;
/// What λ was for so long at the end of a stream is what the next one begins with: while the last
/// chunks leave it may be anything.
const OF_LATE: Duration = Duration::from_secs(1);
/// So many settings of λ are kept to be shown.
const HISTORY_MAX: usize = 128;

/// How a stream adapts to its network, processor and reader.
#[derive(Debug)]
pub struct Adaptive {
    start: Instant,
    state: Mutex<State>,
    /// One thread probes ways. Others wait for what it finds out, which takes less than the bytes
    /// that they would waste.
    probing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    price: Price,
    columns: Vec<Column>,
    /// The rows of the next chunks.
    rows: usize,
    first: bool,
    history: History,
}

/// How the columns of the next chunk are to be compressed: the way of each.
#[derive(Debug)]
pub struct Plan {
    ways: Vec<usize>,
    started: Instant,
}

impl Plan {
    /// How column number `column` is to be compressed.
    pub fn compression(&self, column: usize) -> Compression {
        choice::compression(self.ways.get(column).copied().unwrap_or(0))
    }
}

impl Adaptive {
    /// Of a stream of these columns. λ begins with `guess_ns`, and learns nothing of the way in the
    /// first few times of `round_trip`; zstd goes up to level `level_max`.
    pub fn new(schema: &Schema, guess_ns: f64, round_trip: Duration, level_max: i32) -> Self {
        let columns = schema.fields.iter().enumerate();
        let ways = choice::ways_up_to(level_max);
        let mut state = State {
            price: Price::new(guess_ns, round_trip * STARTING_ROUND_TRIPS),
            columns: columns.map(|(i, field)| Column::new(&field.data_type, i, ways)).collect(),
            rows: FIRST_ROWS,
            first: true,
            history: History::default(),
        };
        state.history.push(Duration::ZERO, state.price.ns());
        Self { start: Instant::now(), state: Mutex::new(state), probing: Mutex::new(()) }
    }

    /// Where λ begins if nothing is known: at what a byte takes on a line as fast as such a round
    /// trip is usual for, 1 Gbit/s within a building and 100 Mbit/s beyond.
    pub fn price_guess_ns(round_trip: Duration) -> f64 {
        if round_trip > Duration::from_millis(3) { 80.0 } else { 8.0 }
    }

    /// λ in nanoseconds a byte, as it was of late: where another stream over the same connection
    /// may begin.
    pub fn price_ns(&self) -> f64 {
        let now = self.start.elapsed();
        self.state().history.mean(now.saturating_sub(OF_LATE), now)
    }

    /// λ over the time since the stream began; not all settings of a long one.
    pub fn history(&self) -> Vec<(Duration, f64)> {
        self.state().history.settings.clone()
    }

    /// The writer waited so long for a chunk, and has it.
    pub fn starved(&self, waited: Duration) {
        let mut state = self.state();
        // Until the first chunk it waits for the query.
        if !state.first {
            state.price.starved(waited);
        }
    }

    /// The writer waited so long until the socket had taken a chunk; meanwhile this had passed.
    pub fn sent(&self, busy: Duration, passage: Passage) {
        let mut state = self.state();
        if state.price.sent(busy, passage) {
            let ns = state.price.ns();
            state.history.push(self.start.elapsed(), ns);
        }
    }

    /// As [`Self::sent`], by the thread that makes the chunks itself.
    pub fn sent_alone(&self, bytes: u64, waited: Duration) {
        let mut state = self.state();
        state.price.sent_alone(bytes, waited);
        let ns = state.price.ns();
        state.history.push(self.start.elapsed(), ns);
    }

    /// Finds out what ways of which nothing is known, and that might pay, make of the first rows of
    /// a chunk. `encoder` makes an encoder for some of the columns; nothing is sent of what it
    /// makes.
    ///
    /// # Errors
    /// When the rows don't fit the schema.
    pub fn probe(
        &self,
        schema: &Schema,
        pieces: &[Batch],
        encoder: impl Fn(Arc<Schema>) -> Encoder,
    ) -> Result<(), Error> {
        let rows = pieces.iter().map(|piece| piece.rows).sum::<usize>() / PROBE_PART;
        // The first chunk should come soon, and has too few rows to learn what compressors make of
        // many.
        if rows < PROBE_ROWS_MIN || self.state().first {
            return Ok(());
        }
        let _alone = self.probing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let probes = self.probes();
            if probes.is_empty() {
                return Ok(());
            }
            let fields = probes
                .iter()
                .filter_map(|(column, _)| schema.fields.get(*column).cloned())
                .collect();
            let sample = sample(pieces, &probes, rows.min(PROBE_ROWS_MAX));
            let compression = |i: usize| {
                probes.get(i).map_or(Compression::None, |(_, way)| choice::compression(*way))
            };
            let chunk = encoder(Arc::new(Schema { fields })).write(&sample, compression, false)?;
            self.state().probed(&probes, &chunk);
        }
    }

    /// The columns that should be probed, each with the way.
    fn probes(&self) -> Vec<(usize, usize)> {
        let State { price, columns, .. } = &*self.state();
        let (price_ns, reader_share) = (price.ns(), price.reader_share());
        let probe = |(i, column): (usize, &Column)| {
            Some((i, column.unknown(price_ns, reader_share, PROBE_PART)?))
        };
        columns.iter().enumerate().filter_map(probe).collect()
    }

    /// How to make the next chunk, whose rows take `plain_bytes` plain.
    pub fn plan(&self, plain_bytes: u64) -> Plan {
        let mut state = self.state();
        let State { price, columns, first, .. } = &mut *state;
        let started = Instant::now();
        if *first && plain_bytes <= SMALL_BYTES {
            return Plan { ways: Vec::new(), started };
        }
        let (price_ns, reader_share) = (price.plan(), price.reader_share());
        let column_bytes = plain_bytes.max(1) as f64 / columns.len().max(1) as f64;
        let ways = columns
            .iter_mut()
            .map(|column| column.choose(price_ns, reader_share, column_bytes))
            .collect();
        Plan { ways, started }
    }

    /// The rows that the next chunk should have at most.
    pub fn rows(&self) -> usize {
        self.state().rows
    }

    /// A chunk was made as planned, and has just become ready; its thread `ran` for so long
    /// meanwhile, if that is known.
    pub fn written(&self, plan: &Plan, chunk: &Chunk, ran: Option<Duration>) {
        let took = plan.started.elapsed();
        let mut state = self.state();
        let State { price, columns, rows, first, .. } = &mut *state;
        *first = false;
        price.made(took, ran.unwrap_or(took));
        for ((way, column), written) in plan.ways.iter().zip(columns).zip(chunk.columns()) {
            column.record(*way, written);
        }
        let row_bytes = chunk.chunk_bytes() as f64 / f64::from(chunk.rows().max(1));
        // They grow while the way is not known; then they are what it takes in time.
        let fitting = CHUNK_NS / (price.byte_ns() * row_bytes);
        // Floats become whole numbers by saturation.
        *rows = (fitting as usize).min(*rows * 2).max(ROWS_MIN);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is in there is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn probed(&mut self, probes: &[(usize, usize)], chunk: &Chunk) {
        for ((column, way), written) in probes.iter().zip(chunk.columns()) {
            if let Some(column) = self.columns.get_mut(*column) {
                column.probed(*way, written);
            }
        }
    }
}

/// The first rows of the columns that are probed.
fn sample(pieces: &[Batch], probes: &[(usize, usize)], rows: usize) -> Vec<Batch> {
    let mut left = rows;
    let mut sample = Vec::new();
    for piece in pieces {
        let rows = piece.rows.min(left);
        if rows == 0 {
            break;
        }
        let columns = probes.iter().filter_map(|(column, _)| piece.columns.get(*column));
        sample.push(Batch { rows, columns: columns.map(|column| column.slice(0, rows)).collect() });
        left -= rows;
    }
    sample
}

/// Settings of λ, thinned out when there are too many.
#[derive(Debug)]
struct History {
    settings: Vec<(Duration, f64)>,
    every: usize,
    skipped: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { settings: Vec::new(), every: 1, skipped: 0 }
    }
}

impl History {
    /// The geometric mean over a time, in which it was set or before.
    fn mean(&self, from: Duration, until: Duration) -> f64 {
        let ends = self.settings.iter().skip(1).map(|(at, _)| *at).chain([until]);
        let spans = self
            .settings
            .iter()
            .zip(ends)
            .map(|((at, ns), end)| (end.saturating_sub((*at).max(from)), *ns));
        let (mut time, mut sum) = (0.0, 0.0);
        for (span, ns) in spans {
            // However short, a setting counts for something.
            let span = span.as_secs_f64().max(1e-9);
            time += span;
            sum += span * ns.ln();
        }
        (sum / time).exp()
    }

    fn push(&mut self, at: Duration, ns: f64) {
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
