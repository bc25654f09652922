//! How the chunks of a stream are encoded: their limits, their compression, and the memory that
//! encoding them takes.

use std::sync::Arc;
use std::time::Duration;

use dray_chooser::{Chooser, Line};
use dray_format::{
    Batch, COUNT_MAX, Checksum, Compression, DictionaryBudget, Encoder, Limits, Schema,
    chunk_bytes_bound,
};
use dray_wire::CompressionChoice;

use crate::settings::{LEVEL_MAX, Settings, writer_compression};

/// The largest chunk of several rows, whatever the client accepts: none of its counts can then
/// exceed [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// The most memory that encoding a chunk takes: a multiple of its plain bytes, and a constant.
/// Unencoded chunks need copies without gaps; encoded ones also dictionaries, and encodings that
/// are given up.
const UNENCODED_BYTES_FACTOR: u64 = 4;
const ENCODED_BYTES_FACTOR: u64 = 8;
const ENCODE_BYTES: u64 = 16 << 20;
/// The most plain bytes of a chunk that is encoded, whatever the client accepts, each for zstd
/// levels from the first number on. Nothing interrupts encoding, so a chunk has to be done within a
/// second. The last entry is also that of all faster compressions.
const PLAIN_BYTES_MAX: [(i32, u64); 3] = [(16, 1 << 20), (8, 4 << 20), (i32::MIN, 16 << 20)];
/// The same for a chunk that is not encoded: its rows should still be in the processor's cache when
/// they are copied to the socket.
const UNENCODED_BYTES_MAX: u64 = 1 << 20;
/// The highest zstd level for a row that is larger than a chunk.
const LARGE_ROW_LEVEL: i32 = 1;
/// A row larger than this is not compressed.
const COMPRESSED_ROW_BYTES_MAX: u64 = 256 << 20;
/// Encoding fewer bytes takes less time than waking a thread.
const LONG_BYTES: u64 = 256 << 10;
/// The largest decoded size of the tables that outlive chunks, whatever the client accepts: the
/// backend keeps them, too.
const TABLES_BYTES_MAX: u64 = 2 << 20;
/// The most memory that these tables take in the backend, as a multiple of their decoded bytes. If
/// entries are short, their index takes more than they do.
const TABLES_FACTOR: u64 = 16;
/// The largest state frame, whatever the client accepts. The reserve that every stream has must
/// hold a copy of it.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// How the chunks of one stream are encoded.
#[derive(Debug)]
pub(crate) struct EncodePolicy {
    pub(crate) limits: Limits,
    compression: Compression,
    /// Chooses compressions, if the client is on another host and named none.
    pub(crate) chooser: Option<Chooser>,
    /// The nodes of the schema, nested fields included.
    nodes: usize,
    /// The most plain bytes of a chunk of several rows.
    pub(crate) plain_bytes_max: u64,
    /// The budget of tables that outlive chunks, where chunks are encoded. Each stream has its own
    /// and begins without tables.
    pub(crate) dictionary_budget: Option<Arc<DictionaryBudget>>,
    /// The limits of such tables.
    table_limits: Limits,
}

impl EncodePolicy {
    /// The policy for a stream with these columns. `round_trip` is the connection's.
    pub(crate) fn new(settings: &Settings, schema: &Schema, round_trip: Duration) -> Self {
        let (limits, nodes) = (settings.limits, schema.nodes());
        let compression = writer_compression(settings.compression);
        let chunk_bytes_max = limits.chunk_bytes_max.min(CHUNK_BYTES_MAX);
        let is_encoded = compression != Compression::Compact;
        let table_limits = Limits {
            chunk_bytes_max: chunk_bytes_max.min(STATE_BYTES_MAX),
            decoded_bytes_max: limits.decoded_bytes_max.min(TABLES_BYTES_MAX),
            ..limits
        };
        Self {
            limits,
            compression,
            chooser: (settings.compression == CompressionChoice::Auto)
                .then(|| Chooser::new(schema, Line::guessed(round_trip), round_trip, LEVEL_MAX)),
            nodes,
            // The inverse of `chunk_bytes_bound`, which `fits` checks before a chunk is encoded.
            plain_bytes_max: (chunk_bytes_max.saturating_sub(chunk_bytes_bound(nodes, 0)) / 65
                * 64)
                .min(limits.decoded_bytes_max)
                .min(plain_bytes_max(compression)),
            dictionary_budget: is_encoded.then(|| Arc::new(DictionaryBudget::new(&table_limits))),
            table_limits,
        }
    }

    /// Whether a chunk with this many plain bytes is within all limits, however it is encoded.
    pub(crate) fn fits(&self, plain_bytes: u64) -> bool {
        let limits = &self.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= limits.chunk_bytes_max.min(CHUNK_BYTES_MAX)
            && plain_bytes <= limits.decoded_bytes_max.min(plain_bytes_max(self.compression))
    }

    /// The rows at the start of `batch` that make the next chunk: up to `rows_max` that fit, and at
    /// least one.
    pub(crate) fn rows_that_fit(&self, batch: &Batch, rows_max: usize) -> usize {
        let rows_max = batch.rows.min(rows_max);
        if self.fits(batch.plain_bytes(0, rows_max)) {
            return rows_max;
        }
        let (mut fit, mut too_many) = (0, rows_max);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            if self.fits(batch.plain_bytes(0, middle)) {
                fit = middle;
            } else {
                too_many = middle;
            }
        }
        fit.max(1)
    }

    /// Whether encoding a chunk with this many plain bytes is worth another thread.
    pub(crate) fn takes_long(&self, plain_bytes: u64) -> bool {
        self.compression != Compression::Compact
            && plain_bytes > LONG_BYTES
            && self.fits(plain_bytes)
    }

    /// The strongest compression for a chunk with this many plain bytes.
    pub(crate) fn compression_of(&self, plain_bytes: u64) -> Compression {
        match self.compression {
            _ if plain_bytes > COMPRESSED_ROW_BYTES_MAX => Compression::Compact,
            Compression::Zstd(level) if !self.fits(plain_bytes) => {
                Compression::Zstd(level.min(LARGE_ROW_LEVEL))
            }
            compression => compression,
        }
    }

    /// The most memory that encoding a chunk with this many plain bytes takes, besides
    /// [`Self::tables_bytes`]. An encoder can't report that memory is short, so it is put aside
    /// before. `None` if it exceeds the address space.
    pub(crate) fn encode_bytes(&self, plain_bytes: u64) -> Option<usize> {
        let factor = match self.compression_of(plain_bytes) {
            Compression::Compact => UNENCODED_BYTES_FACTOR,
            _ => ENCODED_BYTES_FACTOR,
        };
        usize::try_from(plain_bytes.saturating_mul(factor).saturating_add(ENCODE_BYTES)).ok()
    }

    /// The most memory that the tables of all encoders take after this many plain bytes have been
    /// encoded: entries come from the rows.
    pub(crate) fn tables_bytes(&self, plain_bytes: u64) -> usize {
        if self.dictionary_budget.is_none() {
            return 0;
        }
        // At most TABLES_BYTES_MAX * TABLES_FACTOR.
        (plain_bytes.min(self.table_limits.decoded_bytes_max) * TABLES_FACTOR) as usize
    }

    /// An encoder for probes of some of the columns. Its chunks are not sent.
    pub(crate) fn probe_encoder(&self, columns: Arc<Schema>) -> Encoder {
        Encoder::new(columns, Checksum::None)
            .with_dictionaries(Arc::new(DictionaryBudget::new(&self.table_limits)))
    }
}

/// The most plain bytes of a chunk under this compression.
fn plain_bytes_max(compression: Compression) -> u64 {
    let level = match compression {
        Compression::None | Compression::Compact => return UNENCODED_BYTES_MAX,
        Compression::Zstd(level) => level,
        Compression::Light | Compression::Symbols | Compression::Lz4 => i32::MIN,
    };
    PLAIN_BYTES_MAX.iter().find(|(from, _)| level >= *from).map_or(0, |(_, bytes)| *bytes)
}
