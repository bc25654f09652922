//! Cutting batches into chunks that the client accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use dray_format::{Batch, COUNT_MAX, Chunk, Compression, Encoder, Error, Limits, Schema, chunk_bytes_bound};

use crate::adaptive::Adaptive;
use crate::dictionary::{Joined, push_pruned};

/// The largest chunks of several rows, whatever the client accepts: every value takes a bit at least, so that none of a
/// chunk's counts of values and bytes is over [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// Encoding more than this takes long enough for other tasks to wait for it.
const LONG_BYTES: u64 = 256 << 10;
/// The entries of a batch's dictionaries may take one part in so many of a chunk.
const DICTIONARY_SHARE: u64 = 4;

/// What the client and the server agreed on for one stream.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The largest chunks that the client accepts.
    pub limits: Limits,
    /// How many rows end a chunk.
    pub chunk_rows: usize,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Whether they carry checksums.
    pub checksum: bool,
}

/// Gathers batches until they fill a chunk.
///
/// A chunk ends when it has `chunk_rows` rows, or when the next row could make it larger than the client accepts. Sizes are
/// those of the unencoded columns: an upper bound, whatever the compression.
#[derive(Debug)]
pub struct Chunker {
    encoder: Encoder,
    nodes: usize,
    settings: Settings,
    adaptive: Option<Arc<Adaptive>>,
    pending: VecDeque<Batch>,
    pending_rows: usize,
    pending_bytes: u64,
}

impl Chunker {
    /// A chunker for one stream of batches.
    pub fn new(schema: Arc<Schema>, mut settings: Settings) -> Self {
        let nodes = schema.nodes();
        settings.chunk_rows = settings.chunk_rows.clamp(1, COUNT_MAX);
        let encoder = Encoder::new(schema, settings.checksum);
        Self { encoder, nodes, settings, adaptive: None, pending: VecDeque::new(), pending_rows: 0, pending_bytes: 0 }
    }

    /// Lets the stream adapt: how each column is compressed, and how many rows a chunk has, up to what the settings say.
    #[must_use]
    pub fn adapting(self, adaptive: Arc<Adaptive>) -> Self {
        Self { adaptive: Some(adaptive), ..self }
    }

    fn chunk_rows(&self) -> usize {
        let adaptive = self.adaptive.as_ref().map_or(usize::MAX, |adaptive| adaptive.rows());
        self.settings.chunk_rows.min(adaptive)
    }

    /// Adds a batch. Take chunks with [`Self::full_chunk`] until there are none before adding the next.
    pub fn push(&mut self, batch: Batch) {
        if batch.rows > 0 {
            let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
            let before = self.pending.len();
            push_pruned(batch, chunk_bytes_max.min(decoded_bytes_max) / DICTIONARY_SHARE, &mut self.pending);
            for batch in self.pending.range(before..) {
                self.pending_rows += batch.rows;
                self.pending_bytes += batch.plain_bytes(0, batch.rows);
            }
        }
    }

    /// The next chunk, if enough rows are there to fill it.
    ///
    /// # Errors
    /// When a row is larger than the client accepts (kind limit), or the batches do not fit the schema.
    pub fn full_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        let chunk_rows = self.chunk_rows();
        let full = self.pending_rows >= chunk_rows || !self.fits(self.pending_bytes);
        if self.pending_rows > 0 && full { self.cut(chunk_rows).map(Some) } else { Ok(None) }
    }

    /// A chunk of what is left after the last batch; call it until there is none.
    ///
    /// # Errors
    /// As [`Self::full_chunk`].
    pub fn last_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        if self.pending_rows > 0 { self.cut(self.chunk_rows()).map(Some) } else { Ok(None) }
    }

    /// Whether making the next chunk keeps a thread busy for a while.
    pub(crate) fn takes_long(&self) -> bool {
        let encodes = self.adaptive.is_some() || self.settings.compression != Compression::None;
        encodes && self.pending_bytes > LONG_BYTES
    }

    fn fits(&self, plain_bytes: u64) -> bool {
        let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= chunk_bytes_max.min(CHUNK_BYTES_MAX)
            && plain_bytes <= decoded_bytes_max
    }

    /// Cuts as many rows as fit, at least one, and encodes them.
    fn cut(&mut self, chunk_rows: usize) -> Result<Chunk, Error> {
        let mut pieces = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        let mut dictionaries = Joined::default();
        while let Some(batch) = self.pending.pop_front() {
            if !dictionaries.join(&batch) {
                self.pending.push_front(batch);
                break;
            }
            let batch_bytes = batch.plain_bytes(0, batch.rows);
            let rows_max = batch.rows.min(chunk_rows - rows);
            let mut take = rows_max;
            if !self.fits(bytes + batch.plain_bytes(0, rows_max)) {
                take = self.rows_that_fit(&batch, bytes, rows_max).max(usize::from(rows == 0));
            }
            self.pending_rows -= batch.rows;
            self.pending_bytes -= batch_bytes;
            if take < batch.rows {
                let rest = batch.slice(take, batch.rows - take);
                self.pending_rows += rest.rows;
                self.pending_bytes += rest.plain_bytes(0, rest.rows);
                self.pending.push_front(rest);
            }
            if take > 0 {
                rows += take;
                bytes += batch.plain_bytes(0, take);
                pieces.push(if take < batch.rows { batch.slice(0, take) } else { batch });
            }
            if self.pending.front().is_none() || rows >= chunk_rows || take < rows_max {
                break;
            }
            if !self.fits(bytes) {
                break;
            }
        }
        self.encode(&pieces, rows, bytes)
    }

    /// The most rows of a batch, fewer than `rows_max`, that fit behind `bytes`.
    fn rows_that_fit(&self, batch: &Batch, bytes: u64, rows_max: usize) -> usize {
        let (mut fit, mut too_many) = (0, rows_max);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            if self.fits(bytes + batch.plain_bytes(0, middle)) { fit = middle } else { too_many = middle }
        }
        fit
    }

    fn encode(&mut self, pieces: &[Batch], rows: usize, bytes: u64) -> Result<Chunk, Error> {
        let fits = self.fits(bytes);
        let Settings { limits, compression, .. } = self.settings;
        let plan = self.adaptive.as_ref().map(|adaptive| adaptive.plan(bytes));
        let column = |i| plan.as_ref().map_or(compression, |plan| plan.compression(i));
        let chunk = self.encoder.write(pieces, column, false)?;
        if let (Some(adaptive), Some(plan)) = (&self.adaptive, &plan) {
            adaptive.written(plan, &chunk);
        }
        if fits || rows > 1 {
            return Ok(chunk);
        }
        // One row that may be too large: only its chunk knows.
        if chunk.chunk_bytes() <= limits.chunk_bytes_max && chunk.decoded_bytes() <= limits.decoded_bytes_max {
            return Ok(chunk);
        }
        let needed = chunk.chunk_bytes().max(chunk.decoded_bytes());
        if needed > limits.row_bytes_max {
            return Err(Error::row_too_large(needed, limits.row_bytes_max));
        }
        self.encoder.write(pieces, column, true)
    }
}
