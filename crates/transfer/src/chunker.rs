//! Cutting batches into chunks that the client accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use dray_chooser::Adaptive;
use dray_format::{
    Batch, COUNT_MAX, Clock, Compression, Limits, Schema, TableRoom, WEIGHTLESS_MAX,
    chunk_bytes_bound,
};

use crate::dictionary::{Joined, push_pruned};
use crate::maker::Maker;

/// The largest chunks of several rows, whatever the client accepts: every value takes a bit at
/// least, so that none of a chunk's counts of values and bytes is over [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
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
    /// By which encoding is measured, if not by that on the wall. That of the thread's own
    /// processor time also holds while others want the processor, too.
    pub clock: Option<Clock>,
}

/// The rows of a chunk, not yet encoded.
#[derive(Debug)]
pub struct Cut {
    pub(crate) pieces: Vec<Batch>,
    pub(crate) rows: usize,
    pub(crate) plain_bytes: u64,
    /// Whether its chunk is surely one that the client accepts. If not, it is a row alone.
    pub(crate) fits: bool,
}

/// Gathers batches until they fill a chunk.
///
/// A chunk ends when it has `chunk_rows` rows, or when the next row could make it larger than the
/// client accepts. Sizes are those of the unencoded columns: an upper bound, whatever the
/// compression.
#[derive(Debug)]
pub struct Chunker {
    schema: Arc<Schema>,
    nodes: usize,
    /// The largest chunks of several rows, whatever the client accepts.
    bytes_max: u64,
    settings: Settings,
    adaptive: Option<Arc<Adaptive>>,
    room: Option<Arc<TableRoom>>,
    pending: VecDeque<Batch>,
    pending_rows: usize,
    pending_bytes: u64,
}

impl Chunker {
    /// A chunker for one stream of batches.
    pub fn new(schema: Arc<Schema>, mut settings: Settings) -> Self {
        let nodes = schema.nodes();
        // Values that take no bytes are counted as one each, so that not too many of them come
        // together.
        let bytes_max =
            if schema.has_weightless() { WEIGHTLESS_MAX as u64 } else { CHUNK_BYTES_MAX };
        settings.chunk_rows = settings.chunk_rows.clamp(1, COUNT_MAX);
        Self {
            schema,
            nodes,
            bytes_max,
            settings,
            adaptive: None,
            room: None,
            pending: VecDeque::new(),
            pending_rows: 0,
            pending_bytes: 0,
        }
    }

    /// Lets the stream adapt: how each column is compressed, and how many rows a chunk has, up to
    /// what the settings say.
    #[must_use]
    pub fn adapting(self, adaptive: Arc<Adaptive>) -> Self {
        Self { adaptive: Some(adaptive), ..self }
    }

    /// Lets chunks have tables that outlive them, in a room that all of the stream's chunkers
    /// share.
    #[must_use]
    pub fn keeping_tables(self, room: Arc<TableRoom>) -> Self {
        Self { room: Some(room), ..self }
    }

    fn chunk_rows(&self) -> usize {
        let adaptive = self.adaptive.as_ref().map_or(usize::MAX, |adaptive| adaptive.rows());
        // A rest that is less than a chunk goes along: compressors make more of both together.
        let with_rest =
            if self.pending_rows < adaptive.saturating_mul(2) { self.pending_rows } else { 0 };
        self.settings.chunk_rows.min(adaptive.max(with_rest))
    }

    /// Who makes chunks of what is cut here.
    pub fn maker(&self) -> Maker {
        Maker::new(self.schema.clone(), self.settings, self.adaptive.clone(), self.room.clone())
    }

    /// Adds a batch. Take what fills chunks with [`Self::full`] until there is no more before
    /// adding the next.
    pub fn push(&mut self, batch: Batch) {
        if batch.rows > 0 {
            let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
            let before = self.pending.len();
            push_pruned(
                batch,
                chunk_bytes_max.min(decoded_bytes_max) / DICTIONARY_SHARE,
                &mut self.pending,
            );
            for batch in self.pending.range(before..) {
                self.pending_rows += batch.rows;
                self.pending_bytes += batch.plain_bytes(0, batch.rows);
            }
        }
    }

    /// The rows of the next chunk, if there are enough to fill it.
    pub fn full(&mut self) -> Option<Cut> {
        let chunk_rows = self.chunk_rows();
        let full = self.pending_rows >= chunk_rows || !self.fits(self.pending_bytes);
        (self.pending_rows > 0 && full).then(|| self.cut(chunk_rows))
    }

    /// Rows of a chunk that are left after the last batch; call it until there are none.
    pub fn last(&mut self) -> Option<Cut> {
        (self.pending_rows > 0).then(|| self.cut(self.chunk_rows()))
    }

    fn fits(&self, plain_bytes: u64) -> bool {
        let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= chunk_bytes_max.min(self.bytes_max)
            && plain_bytes <= decoded_bytes_max
    }

    /// Cuts as many rows as fit, at least one.
    fn cut(&mut self, chunk_rows: usize) -> Cut {
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
        Cut { pieces, rows, plain_bytes: bytes, fits: self.fits(bytes) }
    }

    /// The most rows of a batch, fewer than `rows_max`, that fit behind `bytes`.
    fn rows_that_fit(&self, batch: &Batch, bytes: u64, rows_max: usize) -> usize {
        let (mut fit, mut too_many) = (0, rows_max);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            if self.fits(bytes + batch.plain_bytes(0, middle)) {
                fit = middle
            } else {
                too_many = middle
            }
        }
        fit
    }
}
