//! Cutting batches into chunks that the client accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use dray_chooser::Chooser;
use dray_format::{
    Batch, COUNT_MAX, Clock, Compression, DictionaryBudget, Limits, Schema, WEIGHTLESS_MAX,
    chunk_bytes_bound,
};

use crate::chunk_encoder::ChunkEncoder;
use crate::dictionary::{JoinedDictionaries, push_pruned};
use crate::payload::{Encoder, Pages};

/// The largest chunk of several rows, whatever the client accepts. A value takes at least a bit, so
/// no count of values or bytes in a chunk exceeds [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// Encoding more bytes than this takes long enough to delay other tasks.
const LONG_BYTES: u64 = 256 << 10;
/// The entries of a batch's dictionaries take at most `1 / DICTIONARY_DIVISOR` of a chunk.
const DICTIONARY_DIVISOR: u64 = 4;

/// What the client and the server agreed on for one stream.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The limits of what the client accepts.
    pub limits: Limits,
    /// The most rows of a chunk.
    pub chunk_rows: usize,
    /// How every column is compressed, unless a [`Chooser`] decides.
    pub compression: Compression,
    /// Whether chunks carry checksums.
    pub checksum: bool,
    /// The clock that measures encoding; `None` is wall time. The thread's processor time is right
    /// even while other threads compete for the processor.
    pub clock: Option<Clock>,
}

/// The rows of one chunk, not yet encoded.
#[derive(Debug)]
pub struct UnencodedChunk {
    pub(crate) batches: Vec<Batch>,
    /// The rows of all batches.
    pub(crate) rows: usize,
    pub(crate) plain_bytes: u64,
    /// Whether the client certainly accepts the chunk. If not, the chunk is a single row.
    pub(crate) fits: bool,
}

impl UnencodedChunk {
    /// Whether encoding the rows takes long enough to delay other tasks.
    pub(crate) fn is_long(&self) -> bool {
        self.plain_bytes > LONG_BYTES
    }
}

/// Collects the batches of one stream until they fill a chunk.
///
/// A chunk ends when it has `chunk_rows` rows, or when the next row could make it larger than the
/// client accepts. Sizes are those of the plain columns, an upper bound for every compression.
#[derive(Debug)]
pub struct Chunker {
    schema: Arc<Schema>,
    /// The nodes of the schema, nested fields included.
    nodes: usize,
    /// The largest chunk of several rows, whatever the client accepts.
    bytes_max: u64,
    settings: Settings,
    chooser: Option<Arc<Chooser>>,
    dictionary_budget: Option<Arc<DictionaryBudget>>,
    pages: Option<Pages>,
    /// Rows that are in no chunk yet, and their sums.
    pending: VecDeque<Batch>,
    pending_rows: usize,
    pending_bytes: u64,
}

impl Chunker {
    /// A chunker for one stream of batches.
    pub fn new(schema: Arc<Schema>, mut settings: Settings) -> Self {
        let nodes = schema.nodes();
        // Values without bytes count as one byte each, which bounds their number in a chunk.
        let bytes_max =
            if schema.has_weightless() { WEIGHTLESS_MAX as u64 } else { CHUNK_BYTES_MAX };
        settings.chunk_rows = settings.chunk_rows.clamp(1, COUNT_MAX);
        Self {
            schema,
            nodes,
            bytes_max,
            settings,
            chooser: None,
            dictionary_budget: None,
            pages: None,
            pending: VecDeque::new(),
            pending_rows: 0,
            pending_bytes: 0,
        }
    }

    /// Lets `chooser` decide how each column is compressed, and how many rows a chunk has, up to
    /// the number in the settings.
    #[must_use]
    pub fn with_chooser(self, chooser: Arc<Chooser>) -> Self {
        Self { chooser: Some(chooser), ..self }
    }

    /// Lets chunks use tables that outlive them, within a limit that all chunkers of the stream
    /// share.
    #[must_use]
    pub fn with_dictionaries(self, dictionary_budget: Arc<DictionaryBudget>) -> Self {
        Self { dictionary_budget: Some(dictionary_budget), ..self }
    }

    /// Lets rows become pages.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Self {
        Self { pages: Some(pages), ..self }
    }

    /// The most rows of the next chunk.
    fn chunk_rows(&self) -> usize {
        let chosen = self.chooser.as_ref().map_or(usize::MAX, |chooser| chooser.chunk_rows());
        // A rest smaller than a chunk joins this one: compressors do better on more rows.
        let with_rest =
            if self.pending_rows < chosen.saturating_mul(2) { self.pending_rows } else { 0 };
        self.settings.chunk_rows.min(chosen.max(with_rest))
    }

    /// A new encoder for the chunks of this chunker.
    pub fn chunk_encoder(&self) -> ChunkEncoder {
        ChunkEncoder::new(
            self.schema.clone(),
            self.settings,
            self.chooser.clone(),
            self.dictionary_budget.clone(),
        )
    }

    /// A new encoder for the rows that this chunker cuts.
    pub(crate) fn encoder(&self) -> Encoder {
        Encoder::new(self.chunk_encoder(), self.pages.clone(), self.settings)
    }

    /// Adds a batch. Call [`Self::take_full`] until it returns `None` before adding the next one.
    pub fn push(&mut self, batch: Batch) {
        if batch.rows > 0 {
            let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
            let before = self.pending.len();
            push_pruned(
                batch,
                chunk_bytes_max.min(decoded_bytes_max) / DICTIONARY_DIVISOR,
                &mut self.pending,
            );
            for batch in self.pending.range(before..) {
                self.pending_rows += batch.rows;
                self.pending_bytes += batch.plain_bytes(0, batch.rows);
            }
        }
    }

    /// Takes the rows of the next chunk, if there are enough to fill it.
    pub fn take_full(&mut self) -> Option<UnencodedChunk> {
        let chunk_rows = self.chunk_rows();
        let full = self.pending_rows >= chunk_rows || !self.fits(self.pending_bytes);
        (self.pending_rows > 0 && full).then(|| self.cut(chunk_rows))
    }

    /// Takes the rows of the next chunk after the last batch. Call it until it returns `None`.
    pub fn take_rest(&mut self) -> Option<UnencodedChunk> {
        (self.pending_rows > 0).then(|| self.cut(self.chunk_rows()))
    }

    /// Whether a chunk with this many plain bytes is within all limits, however it is encoded.
    fn fits(&self, plain_bytes: u64) -> bool {
        let Limits { chunk_bytes_max, decoded_bytes_max, .. } = self.settings.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= chunk_bytes_max.min(self.bytes_max)
            && plain_bytes <= decoded_bytes_max
    }

    /// Cuts the next chunk: as many rows as fit, at least one.
    fn cut(&mut self, chunk_rows: usize) -> UnencodedChunk {
        let mut batches = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        let mut dictionaries = JoinedDictionaries::default();
        while let Some(batch) = self.pending.pop_front() {
            if !dictionaries.try_add(&batch) {
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
                batches.push(if take < batch.rows { batch.slice(0, take) } else { batch });
            }
            if self.pending.front().is_none() || rows >= chunk_rows || take < rows_max {
                break;
            }
            if !self.fits(bytes) {
                break;
            }
        }
        let fits = self.fits(bytes);
        debug_assert!(rows <= chunk_rows && (fits || rows == 1), "{rows} rows of {bytes} bytes");
        debug_assert_eq!(
            self.pending.iter().map(|batch| batch.rows).sum::<usize>(),
            self.pending_rows
        );
        UnencodedChunk { batches, rows, plain_bytes: bytes, fits }
    }

    /// The most rows at the start of `batch`, fewer than `rows_max`, that fit after `bytes` bytes.
    fn rows_that_fit(&self, batch: &Batch, bytes: u64, rows_max: usize) -> usize {
        let (mut fit, mut too_many) = (0, rows_max);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            if self.fits(bytes + batch.plain_bytes(0, middle)) {
                fit = middle;
            } else {
                too_many = middle;
            }
        }
        fit
    }
}
