//! Encoding the chunks that the chunker has cut.

use std::sync::Arc;

use dray_chooser::Chooser;
use dray_format::{
    Checksum, Chunk, ChunkKind, Compression, DictionaryBudget, Encoder, Error, Schema,
};

use crate::chunker::{Settings, UnencodedChunk};

/// Encodes chunks of a stream, one after another. A stream may have several encoders.
#[derive(Debug)]
pub struct ChunkEncoder {
    schema: Arc<Schema>,
    encoder: Encoder,
    settings: Settings,
    chooser: Option<Arc<Chooser>>,
}

impl ChunkEncoder {
    pub(crate) fn new(
        schema: Arc<Schema>,
        settings: Settings,
        chooser: Option<Arc<Chooser>>,
        dictionary_budget: Option<Arc<DictionaryBudget>>,
    ) -> Self {
        let encoder = Encoder::new(schema.clone(), settings.checksum.into());
        let encoder = match dictionary_budget {
            Some(dictionary_budget) => encoder.with_dictionaries(dictionary_budget),
            None => encoder,
        };
        let encoder = match settings.clock {
            Some(clock) => encoder.timed_by(clock),
            None => encoder,
        };
        Self { schema, encoder, settings, chooser }
    }

    /// Whether encoding this chunk keeps a thread busy for a while.
    pub(crate) fn takes_long(&self, chunk: &UnencodedChunk) -> bool {
        let encodes = self.chooser.is_some() || self.settings.compression != Compression::None;
        encodes && chunk.is_long()
    }

    /// An encoder for some of the columns, whose chunks are not sent.
    fn probe_encoder(&self, columns: Arc<Schema>) -> Encoder {
        let dictionary_budget = Arc::new(DictionaryBudget::new(&self.settings.limits));
        let encoder = Encoder::new(columns, Checksum::None).with_dictionaries(dictionary_budget);
        match self.settings.clock {
            Some(clock) => encoder.timed_by(clock),
            None => encoder,
        }
    }

    /// Encodes a chunk.
    ///
    /// # Errors
    /// A row is larger than the client accepts (kind limit), or the batches don't match the
    /// schema.
    pub fn encode(&mut self, unencoded: &UnencodedChunk) -> Result<Chunk, Error> {
        let Settings { limits, compression, clock, .. } = self.settings;
        let UnencodedChunk { batches, rows, plain_bytes, fits } = unencoded;
        debug_assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), *rows);
        if let Some(chooser) = &self.chooser {
            chooser.probe(&self.schema, batches, |columns| self.probe_encoder(columns))?;
        }
        let started = clock.map(|clock| clock());
        let choices = self.chooser.as_ref().map(|chooser| chooser.choose(*plain_bytes));
        let column = |i| choices.as_ref().map_or(compression, |choices| choices.compression(i));
        let chunk = self.encoder.write(batches, column, ChunkKind::Regular)?;
        if let (Some(chooser), Some(choices)) = (&self.chooser, &choices) {
            let cpu_time =
                clock.zip(started).map(|(clock, started)| clock().saturating_sub(started));
            chooser.encoded(choices, &chunk, cpu_time);
        }
        if *fits || *rows > 1 {
            return Ok(chunk);
        }
        // A single row may be too large. Only its encoded size tells.
        if chunk.chunk_bytes() <= limits.chunk_bytes_max
            && chunk.decoded_bytes() <= limits.decoded_bytes_max
        {
            return Ok(chunk);
        }
        let needed = chunk.chunk_bytes().max(chunk.decoded_bytes());
        if needed > limits.row_bytes_max {
            return Err(Error::row_too_large(needed, limits.row_bytes_max));
        }
        self.encoder.write(batches, column, ChunkKind::Jumbo)
    }
}
