//! Making chunks of what the chunker has cut.

use std::sync::Arc;

use dray_chooser::Adaptive;
use dray_format::{Chunk, Compression, Encoder, Error, Schema, TableRoom};

use crate::chunker::{Cut, Settings};

/// Encoding more than this takes long enough for other tasks to wait for it.
const LONG_BYTES: u64 = 256 << 10;

/// Makes chunks, one after the other, of a stream of which others may make some, too.
#[derive(Debug)]
pub struct Maker {
    schema: Arc<Schema>,
    encoder: Encoder,
    settings: Settings,
    adaptive: Option<Arc<Adaptive>>,
}

impl Maker {
    pub(crate) fn new(
        schema: Arc<Schema>,
        settings: Settings,
        adaptive: Option<Arc<Adaptive>>,
        room: Option<Arc<TableRoom>>,
    ) -> Self {
        let encoder = Encoder::new(schema.clone(), settings.checksum);
        let encoder = match room {
            Some(room) => encoder.keeping_tables(room),
            None => encoder,
        };
        let encoder = match settings.clock {
            Some(clock) => encoder.timed_by(clock),
            None => encoder,
        };
        Self { schema, encoder, settings, adaptive }
    }

    /// Whether making this chunk keeps a thread busy for a while.
    pub(crate) fn takes_long(&self, cut: &Cut) -> bool {
        let encodes = self.adaptive.is_some() || self.settings.compression != Compression::None;
        encodes && cut.plain_bytes > LONG_BYTES
    }

    /// An encoder of some columns, whose chunks are not sent.
    fn probing_encoder(&self, columns: Arc<Schema>) -> Encoder {
        let room = Arc::new(TableRoom::new(&self.settings.limits));
        let encoder = Encoder::new(columns, false).keeping_tables(room);
        match self.settings.clock {
            Some(clock) => encoder.timed_by(clock),
            None => encoder,
        }
    }

    /// Encodes what was cut.
    ///
    /// # Errors
    /// When a row is larger than the client accepts (kind limit), or the batches do not fit the
    /// schema.
    pub fn make(&mut self, cut: &Cut) -> Result<Chunk, Error> {
        let Settings { limits, compression, clock, .. } = self.settings;
        if let Some(adaptive) = &self.adaptive {
            adaptive.probe(&self.schema, &cut.pieces, |columns| self.probing_encoder(columns))?;
        }
        let started = clock.map(|clock| clock());
        let plan = self.adaptive.as_ref().map(|adaptive| adaptive.plan(cut.plain_bytes));
        let column = |i| plan.as_ref().map_or(compression, |plan| plan.compression(i));
        let chunk = self.encoder.write(&cut.pieces, column, false)?;
        if let (Some(adaptive), Some(plan)) = (&self.adaptive, &plan) {
            let ran = clock.zip(started).map(|(clock, started)| clock().saturating_sub(started));
            adaptive.written(plan, &chunk, ran);
        }
        if cut.fits || cut.rows > 1 {
            return Ok(chunk);
        }
        // One row that may be too large: only its chunk knows.
        if chunk.chunk_bytes() <= limits.chunk_bytes_max
            && chunk.decoded_bytes() <= limits.decoded_bytes_max
        {
            return Ok(chunk);
        }
        let needed = chunk.chunk_bytes().max(chunk.decoded_bytes());
        if needed > limits.row_bytes_max {
            return Err(Error::row_too_large(needed, limits.row_bytes_max));
        }
        self.encoder.write(&cut.pieces, column, true)
    }
}
