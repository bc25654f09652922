//! Making chunks of rows, here or in one of the [`crate::workers`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_chooser::{Chooser, thread_cpu_time};
use dray_format::{
    Batch, COUNT_MAX, Chunk, Compression, Encoder, Error, Limits, Schema, TableRoom,
    chunk_bytes_bound,
};
use dray_wire::CompressionChoice;

use crate::settings::{LEVEL_MAX, Settings, writer_compression};
use crate::stream::Failure;

/// The largest chunks of several rows, whatever the client accepts: then none of their counts is
/// over [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// What writing a chunk allocates at most, as a multiple of the plain bytes, and beside them:
/// copies without gaps, and, where it is encoded, dictionaries and what did not pay.
const PLAIN_BYTES_FACTOR: u64 = 4;
const ENCODE_BYTES_FACTOR: u64 = 8;
const ENCODE_BYTES: u64 = 16 << 20;
/// The plain bytes of a chunk that is encoded, by the level of zstd from which they hold, whatever
/// the client accepts: nothing interrupts the encoding of a chunk, so it has to end within a
/// second. The last are those of everything that is faster.
const PLAIN_BYTES_MAX: [(i32, u64); 3] = [(16, 1 << 20), (8, 4 << 20), (i32::MIN, 16 << 20)];
/// Those of a chunk that is not encoded: what was appended is still in the processor's cache when
/// it is copied to the socket.
const UNENCODED_BYTES_MAX: u64 = 1 << 20;
/// Rows that are larger than a chunk are compressed at this level at most,
const LARGE_ROW_LEVEL: i32 = 1;
/// and those over this size not at all.
const COMPRESSED_ROW_BYTES_MAX: u64 = 256 << 20;
/// To encode less than this takes no longer than to wake a thread.
const LONG_BYTES: u64 = 256 << 10;
/// What all tables that outlive chunks decode to at most, whatever the client accepts: the backend
/// has them, too.
const TABLES_BYTES_MAX: u64 = 2 << 20;
/// What they take here at most, as a multiple of that: short entries take less than what is needed
/// to find them again.
const TABLES_FACTOR: u64 = 16;
/// The largest state frames, whatever the client accepts. Their bytes are copied into the reserve
/// that every stream has.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// How the chunks of a stream are made.
#[derive(Debug)]
pub(crate) struct Making {
    limits: Limits,
    compression: Compression,
    /// Where the client is on another host, and named no compression.
    pub(crate) adaptive: Option<Chooser>,
    nodes: usize,
    /// The plain bytes that a chunk of several rows may have.
    pub(crate) plain_bytes_max: u64,
    /// The room for tables that outlive chunks, where these are encoded. It is the stream's: the
    /// next one begins without tables.
    room: Option<Arc<TableRoom>>,
    /// The limits that such tables have to keep.
    table_limits: Limits,
}

impl Making {
    /// Of chunks of such columns. For the first times of `round_trip` the connection finds out how
    /// fast it may send.
    pub(crate) fn new(settings: &Settings, schema: &Schema, round_trip: Duration) -> Self {
        let (limits, nodes) = (settings.limits, schema.nodes());
        let compression = writer_compression(settings.compression);
        let chunk_bytes_max = limits.chunk_bytes_max.min(CHUNK_BYTES_MAX);
        let keeps = compression != Compression::Compact;
        let table_limits = Limits {
            chunk_bytes_max: chunk_bytes_max.min(STATE_BYTES_MAX),
            decoded_bytes_max: limits.decoded_bytes_max.min(TABLES_BYTES_MAX),
            ..limits
        };
        Self {
            limits,
            compression,
            adaptive: (settings.compression == CompressionChoice::Auto).then(|| {
                Chooser::new(schema, Chooser::price_guess_ns(round_trip), round_trip, LEVEL_MAX)
            }),
            nodes,
            // The inverse of `chunk_bytes_bound`; that is asked again before a chunk is made.
            plain_bytes_max: (chunk_bytes_max.saturating_sub(chunk_bytes_bound(nodes, 0)) / 65
                * 64)
                .min(limits.decoded_bytes_max)
                .min(encoded_at_once(compression)),
            room: keeps.then(|| Arc::new(TableRoom::new(&table_limits))),
            table_limits,
        }
    }

    pub(crate) fn fits(&self, plain_bytes: u64) -> bool {
        let limits = &self.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= limits.chunk_bytes_max.min(CHUNK_BYTES_MAX)
            && plain_bytes <= limits.decoded_bytes_max.min(encoded_at_once(self.compression))
    }

    /// How many rows the next chunk takes: as many as fit, and at least one.
    pub(crate) fn rows_that_fit(&self, batch: &Batch, rows_max: usize) -> usize {
        let rows_max = batch.rows.min(rows_max);
        if self.fits(batch.plain_bytes(0, rows_max)) {
            return rows_max;
        }
        let (mut fit, mut too_many) = (0, rows_max);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            if self.fits(batch.plain_bytes(0, middle)) { fit = middle } else { too_many = middle }
        }
        fit.max(1)
    }

    /// Whether making a chunk of so many bytes is worth another thread.
    pub(crate) fn takes_long(&self, plain_bytes: u64) -> bool {
        self.compression != Compression::Compact
            && plain_bytes > LONG_BYTES
            && self.fits(plain_bytes)
    }

    /// What the columns of a chunk of so many bytes are compressed by at most.
    fn compression_of(&self, plain_bytes: u64) -> Compression {
        match self.compression {
            _ if plain_bytes > COMPRESSED_ROW_BYTES_MAX => Compression::Compact,
            Compression::Zstd(level) if !self.fits(plain_bytes) => {
                Compression::Zstd(level.min(LARGE_ROW_LEVEL))
            }
            chosen => chosen,
        }
    }

    /// What making a chunk of so many bytes allocates at most, besides [`Self::tables_bytes`]: the
    /// writer can't fail for want of memory, so that is put aside before.
    pub(crate) fn bytes_needed(&self, plain_bytes: u64) -> Option<usize> {
        let factor = match self.compression_of(plain_bytes) {
            Compression::Compact => PLAIN_BYTES_FACTOR,
            _ => ENCODE_BYTES_FACTOR,
        };
        usize::try_from(plain_bytes.saturating_mul(factor).saturating_add(ENCODE_BYTES)).ok()
    }

    /// What the tables take here at most, in all encoders, once rows of so many bytes have been
    /// encoded: tables have what was in these.
    pub(crate) fn tables_bytes(&self, plain_bytes: u64) -> usize {
        if self.room.is_none() {
            return 0;
        }
        // It is no more than a constant.
        (plain_bytes.min(self.table_limits.decoded_bytes_max) * TABLES_FACTOR) as usize
    }
}

/// Makes chunks one after the other, while others of its stream may make some, too.
#[derive(Debug)]
pub(crate) struct Maker {
    schema: Arc<Schema>,
    encoder: Encoder,
    making: Arc<Making>,
}

/// A chunk, or why there is none.
pub(crate) struct Made {
    pub(crate) maker: Maker,
    pub(crate) chunk: Result<Chunk, Failure>,
    pub(crate) took: Duration,
}

impl Maker {
    pub(crate) fn new(making: Arc<Making>, schema: Arc<Schema>, checksums: bool) -> Self {
        // A thread that waits for its processor takes no longer to encode.
        let encoder = Encoder::new(schema.clone(), checksums).timed_by(thread_cpu_time);
        let encoder = match &making.room {
            Some(room) => encoder.keeping_tables(room.clone()),
            None => encoder,
        };
        Self { schema, encoder, making }
    }

    /// Makes a chunk, for which [`Making::bytes_needed`] and [`Making::tables_bytes`] have been put
    /// aside. All that one maker makes must be sent, in order.
    pub(crate) fn make(mut self, batch: Batch) -> Made {
        let started = Instant::now();
        let chunk = self.chunk(batch);
        Made { maker: self, chunk, took: started.elapsed() }
    }

    fn chunk(&mut self, batch: Batch) -> Result<Chunk, Failure> {
        let Self { schema, encoder, making } = self;
        // The server takes what its functions return for text, and a client gives up a connection
        // on which other text comes.
        batch.check_strings(schema)?;
        let limits = making.limits;
        let (rows, plain_bytes) = (batch.rows, batch.plain_bytes(0, batch.rows));
        let fits = making.fits(plain_bytes);
        let pieces = [batch];
        if let Some(adaptive) = making.adaptive.as_ref().filter(|_| fits || rows > 1) {
            adaptive.probe(schema, &pieces, |columns| {
                let room = Arc::new(TableRoom::new(&making.table_limits));
                Encoder::new(columns, false).keeping_tables(room).timed_by(thread_cpu_time)
            })?;
            let plan = adaptive.choose(plain_bytes);
            let column = |i| match plan.compression(i) {
                Compression::None => Compression::Compact,
                other => other,
            };
            let started = thread_cpu_time();
            let chunk = encoder.write(&pieces, column, false)?;
            adaptive.encoded(&plan, &chunk, Some(thread_cpu_time().saturating_sub(started)));
            return Ok(chunk);
        }
        let compression = making.compression_of(plain_bytes);
        let mut chunk = |jumbo| encoder.write(&pieces, |_| compression, jumbo);
        if fits || rows > 1 {
            return Ok(chunk(false)?);
        }
        // One row that may be too large: only its chunk knows.
        let single = chunk(false)?;
        if single.chunk_bytes() <= limits.chunk_bytes_max
            && single.decoded_bytes() <= limits.decoded_bytes_max
        {
            return Ok(single);
        }
        let needed = single.chunk_bytes().max(single.decoded_bytes());
        if needed > limits.row_bytes_max {
            return Err(Error::row_too_large(needed, limits.row_bytes_max).into());
        }
        drop(single);
        Ok(chunk(true)?)
    }
}

/// The plain bytes that are encoded as one chunk.
fn encoded_at_once(compression: Compression) -> u64 {
    let level = match compression {
        Compression::None | Compression::Compact => return UNENCODED_BYTES_MAX,
        Compression::Zstd(level) => level,
        Compression::Light | Compression::Symbols | Compression::Lz4 => i32::MIN,
    };
    PLAIN_BYTES_MAX.iter().find(|(from, _)| level >= *from).map_or(0, |(_, bytes)| *bytes)
}
