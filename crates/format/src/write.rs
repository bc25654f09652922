//! From columns to a chunk's bytes: `spec/chunk.md` sections 3 to 5.
//!
//! A chunk is made of slices of one or more batches. Without encodings, the body is a list of
//! references to the batches' own buffers, which the socket gathers: no value is copied here.

mod chunk;
mod columns;
mod gather;

use std::sync::Arc;

pub use self::chunk::{Chunk, ColumnStats, StateFrame};
use self::columns::ColumnWriter;
use crate::clock::{Clock, wall_time};
use crate::column::Batch;
use crate::compress::Compression;
use crate::encode::ColumnHistory;
use crate::error::{Result, refuse};
use crate::header::{Checksum, ChunkKind, HEADER_BYTES};
use crate::layout::{WEIGHTLESS_MAX, check_count};
use crate::sink::{DictionaryBudget, Sink, Sinks, StateSink};
use crate::types::Schema;

/// An upper bound on the size of a chunk with `nodes` columns ([`Schema::nodes`]) of `plain_bytes`
/// ([`Batch::plain_bytes`]) in all.
///
/// A column adds at most 54 bytes: its descriptors, and the padding before small buffers. The
/// padding before a large buffer is less than a 64th of it.
pub fn chunk_bytes_bound(nodes: usize, plain_bytes: u64) -> u64 {
    2 * HEADER_BYTES as u64 + 64 * nodes as u64 + plain_bytes + plain_bytes / 64
}

/// Writes the rows of `batches` as one chunk that uses no tables. Its size is at most
/// [`chunk_bytes_bound`], whatever the compression.
///
/// # Errors
/// Those of [`Encoder::write`].
pub fn write(
    schema: &Schema,
    batches: &[Batch],
    compression: Compression,
    checksum: Checksum,
    kind: ChunkKind,
) -> Result<Chunk> {
    Encoder::new(Arc::new(schema.clone()), checksum).write(batches, |_| compression, kind)
}

/// Checks the limit for values that take no bytes (chunk.md section 5): no reader accepts more.
fn check_weightless(batches: &[Batch]) -> Result<()> {
    let of = |batch: &Batch| match batch.columns.len() {
        0 => batch.rows,
        _ => batch
            .columns
            .iter()
            .map(|column| column.weightless(0, column.rows))
            .fold(0, usize::saturating_add),
    };
    let count = batches.iter().map(of).fold(0, usize::saturating_add);
    if count > WEIGHTLESS_MAX {
        refuse!(
            Limit,
            "{count} values of type null or of structs without fields in one chunk, \
             at most {WEIGHTLESS_MAX} can be sent; leave out what has no values"
        );
    }
    Ok(())
}

/// Makes the chunks of one stream. What it learns about a column in one chunk helps it with the
/// next ones.
#[derive(Debug)]
pub struct Encoder {
    schema: Arc<Schema>,
    histories: Vec<ColumnHistory>,
    checksum: Checksum,
    clock: Clock,
    budget: Option<Arc<DictionaryBudget>>,
}

impl Encoder {
    /// An encoder for a stream of this schema.
    pub fn new(schema: Arc<Schema>, checksum: Checksum) -> Self {
        let histories = schema.fields.iter().map(|_| ColumnHistory::default()).collect();
        Self { schema, histories, checksum, clock: wall_time, budget: None }
    }

    /// Lets chunks of several rows use dictionaries and symbols that last for the stream
    /// ([`Chunk::take_state`]). All encoders of a stream share a budget. All chunks that an encoder
    /// makes must then be sent, in order.
    #[must_use]
    pub fn with_dictionaries(self, budget: Arc<DictionaryBudget>) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Measures [`ColumnStats::encode_ns`] by this clock instead of wall-clock time.
    #[must_use]
    pub fn timed_by(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Writes the rows of `batches` as one chunk, field i of the schema with `compression(i)`. Its
    /// size is at most [`chunk_bytes_bound`].
    ///
    /// # Errors
    /// When the batches do not fit the schema, or are too large for one chunk.
    pub fn write(
        &mut self,
        batches: &[Batch],
        compression: impl Fn(usize) -> Compression,
        kind: ChunkKind,
    ) -> Result<Chunk> {
        let rows: usize = batches.iter().map(|batch| batch.rows).sum();
        let Ok(header_rows @ 1..) = u32::try_from(rows) else {
            refuse!(Unsupported, "a chunk can't have {rows} rows")
        };
        check_count(rows)?;
        check_weightless(batches)?;
        let budget = self.budget.clone().filter(|_| rows > 1);
        let mut writer = ColumnWriter::new(Sinks {
            chunk: Sink::new(),
            state: budget.map(StateSink::new),
            clock: self.clock,
        });
        let mut columns = Vec::with_capacity(self.schema.fields.len());
        let mut now = (self.clock)();
        for (i, (field, history)) in self.schema.fields.iter().zip(&mut self.histories).enumerate()
        {
            let mut slices = Vec::with_capacity(batches.len());
            for batch in batches {
                let Some(column) = batch.columns.get(i).filter(|column| column.rows == batch.rows)
                else {
                    refuse!(Unsupported, "a batch has no column {i} of {} rows", batch.rows)
                };
                slices.push(column.clone());
            }
            let before = ColumnStats::so_far(&writer.sinks);
            writer.sinks.set_compression(compression(i));
            writer.field(i, field, slices, rows, history)?;
            let then = std::mem::replace(&mut now, (self.clock)());
            let elapsed = now.saturating_sub(then).saturating_sub(history.take_training_time());
            columns.push(ColumnStats::since(before, &writer.sinks, elapsed));
        }
        let Sinks { chunk, state, .. } = writer.sinks;
        let state = match state {
            Some(StateSink { sink, count: count @ 1.., .. }) => {
                Some(StateFrame::new(sink.finish(count, self.checksum)?))
            }
            _ => None,
        };
        let mut frame = chunk.finish(header_rows, self.checksum)?;
        frame.header.jumbo = kind == ChunkKind::Jumbo;
        let chunk = Chunk::new(frame, columns, state);
        debug_assert!(
            chunk.chunk_bytes()
                <= chunk_bytes_bound(
                    self.schema.nodes(),
                    batches.iter().map(|batch| batch.plain_bytes(0, batch.rows)).sum()
                )
        );
        Ok(chunk)
    }
}
