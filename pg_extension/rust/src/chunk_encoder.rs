//! Encoding chunks, in the backend's thread or in one of the [`crate::workers`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_chooser::thread_cpu_time;
use dray_format::{Batch, Chunk, ChunkKind, Compression, Encoder, Error, Schema};

use crate::encode_policy::EncodePolicy;
use crate::failure::Failure;

/// Encodes chunks of a stream, one after another. A stream may have several encoders; all chunks of
/// one encoder must be sent, in order.
#[derive(Debug)]
pub(crate) struct ChunkEncoder {
    schema: Arc<Schema>,
    encoder: Encoder,
    policy: Arc<EncodePolicy>,
}

/// An encoded chunk, or why there is none, and the encoder, free again.
pub(crate) struct Encoded {
    pub(crate) encoder: ChunkEncoder,
    pub(crate) chunk: Result<Chunk, Failure>,
    pub(crate) took: Duration,
}

impl ChunkEncoder {
    pub(crate) fn new(policy: Arc<EncodePolicy>, schema: Arc<Schema>, checksums: bool) -> Self {
        let encoder = Encoder::new(schema.clone(), checksums.into()).timed_by(thread_cpu_time);
        let encoder = match &policy.dictionary_budget {
            Some(dictionary_budget) => encoder.with_dictionaries(dictionary_budget.clone()),
            None => encoder,
        };
        Self { schema, encoder, policy }
    }

    /// Encodes the rows of a chunk. [`EncodePolicy::encode_bytes`] and
    /// [`EncodePolicy::tables_bytes`] must have been put aside.
    pub(crate) fn encode(mut self, batch: Batch) -> Encoded {
        let started = Instant::now();
        let chunk = self.chunk(batch);
        Encoded { encoder: self, chunk, took: started.elapsed() }
    }

    fn chunk(&mut self, batch: Batch) -> Result<Chunk, Failure> {
        let Self { schema, encoder, policy } = self;
        // The server takes any bytes that its functions return for text, and a client gives up a
        // connection on which invalid text arrives.
        batch.check_strings(schema)?;
        let limits = policy.limits;
        let (rows, plain_bytes) = (batch.rows, batch.plain_bytes(0, batch.rows));
        let fits = policy.fits(plain_bytes);
        let batches = [batch];
        if let Some(chooser) = policy.chooser.as_ref().filter(|_| fits || rows > 1) {
            chooser.probe(schema, &batches, |columns| {
                policy.probe_encoder(columns).timed_by(thread_cpu_time)
            })?;
            let choices = chooser.choose(plain_bytes);
            let column = |i| match choices.compression(i) {
                Compression::None => Compression::Compact,
                other => other,
            };
            let started = thread_cpu_time();
            let chunk = encoder.write(&batches, column, ChunkKind::Regular)?;
            let cpu_time = thread_cpu_time().saturating_sub(started);
            chooser.encoded(&choices, &chunk, Some(cpu_time));
            return Ok(chunk);
        }
        let compression = policy.compression_of(plain_bytes);
        let mut chunk = |kind| encoder.write(&batches, |_| compression, kind);
        if fits || rows > 1 {
            return Ok(chunk(ChunkKind::Regular)?);
        }
        // A single row may be too large. Only its encoded size tells.
        let single = chunk(ChunkKind::Regular)?;
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
        Ok(chunk(ChunkKind::Jumbo)?)
    }
}
