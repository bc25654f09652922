//! Which thread encodes which chunk, and in which order chunks leave.
//!
//! The thread that asks for a chunk encodes it, or, from the second chunk on and where chunks are
//! encoded at all, [`Workers`] do. They encode one chunk while this thread reads the rows of the
//! next and sends those before.

use std::sync::Arc;
use std::time::Instant;

use dray_format::{Batch, Chunk, Schema};

use crate::accounting::{Accounting, EncodedBy};
use crate::chunk_encoder::{ChunkEncoder, Encoded};
use crate::cutter::{Cut, Cutter};
use crate::encode_policy::EncodePolicy;
use crate::failure::Failure;
use crate::reserve;
use crate::row_assembler::RowAssembler;
use crate::settings::Settings;
use crate::workers::{Workers, panic_text};

/// A chunk to encode, and its encoder.
type Job = (ChunkEncoder, Batch);

/// Encodes the chunks of a stream, in this thread or in workers.
pub(crate) struct Scheduler {
    policy: Arc<EncodePolicy>,
    cutter: Cutter,
    idle: Vec<ChunkEncoder>,
    workers: Option<Workers<Job, Encoded>>,
    /// The threads to start; 0 once they have been started.
    threads: usize,
    /// The memory that was put aside when the stream was opened, for all but encoding.
    reserve_bytes: usize,
}

impl Scheduler {
    pub(crate) fn new(
        policy: Arc<EncodePolicy>,
        schema: &Arc<Schema>,
        settings: &Settings,
        reserve_bytes: usize,
    ) -> Self {
        let encoder = || ChunkEncoder::new(policy.clone(), schema.clone(), settings.checksums);
        Self {
            idle: (0..settings.threads.max(1)).map(|_| encoder()).collect(),
            policy,
            cutter: Cutter::default(),
            workers: None,
            threads: settings.threads,
            reserve_bytes,
        }
    }

    /// Whether a worker has encoded the chunk that is to be sent next.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.workers.as_ref().is_some_and(Workers::is_ready)
    }

    /// Which threads encode at present.
    pub(crate) fn encoded_by(&self) -> EncodedBy {
        if self.workers.is_some() { EncodedBy::Workers } else { EncodedBy::ThisThread }
    }

    /// Ends the workers. No chunk may be asked for any more.
    pub(crate) fn stop(&mut self) {
        self.workers = None;
    }

    /// The next chunk to send, once it is encoded; `None` if more rows must come first. After the
    /// last row, chunks need not be full.
    pub(crate) fn next_chunk(
        &mut self,
        rows: &mut RowAssembler,
        accounting: &mut Accounting,
        is_last: bool,
    ) -> Result<Option<Chunk>, Failure> {
        loop {
            if self.cutter.is_empty() {
                if !rows.is_empty() && (is_last || rows.is_full()) {
                    self.cutter.refill(rows.take_rows()?);
                } else if is_last || self.is_ready() {
                    return self.take_encoded(accounting);
                } else {
                    return Ok(None);
                }
            }
            let Some(cut) = self.cutter.peek(&self.policy, rows.chunk_rows()) else {
                return Ok(None);
            };
            let is_end = is_last && cut.is_last;
            if !self.is_for_workers(&cut, is_end)? {
                // Chunks leave in the order of their rows.
                if let Some(before) = self.take_encoded(accounting)? {
                    return Ok(Some(before));
                }
                self.cutter.advance(&cut);
                return self.encode_here(cut, accounting).map(Some);
            }
            self.cutter.advance(&cut);
            let is_full = self.workers.as_ref().is_some_and(Workers::is_full);
            let before = if is_full { self.take_encoded(accounting)? } else { None };
            let encoder = self.idle_encoder()?;
            if let Some(workers) = &mut self.workers {
                workers.begin((encoder, cut.batch));
            }
            if before.is_some() {
                return Ok(before);
            }
        }
    }

    /// Whether a worker should encode a chunk. `is_end` says that no chunk follows.
    ///
    /// Workers are started when the second chunk is full: most results are smaller.
    fn is_for_workers(&mut self, cut: &Cut, is_end: bool) -> Result<bool, Failure> {
        if self.cutter.is_first_chunk() || !self.policy.takes_long(cut.plain_bytes) {
            return Ok(false);
        }
        if self.threads > 0 && !is_end {
            let threads = std::mem::take(&mut self.threads);
            self.start_workers(threads)?;
        }
        // At the end this thread has nothing else to do.
        Ok(self.workers.as_ref().is_some_and(|workers| !is_end || workers.under_way() > 0))
    }

    /// Starts workers. Where memory or threads are short there are none, and this thread goes on to
    /// encode.
    fn start_workers(&mut self, threads: usize) -> Result<(), Failure> {
        let chunk_bytes = self.policy.encode_bytes(self.policy.plain_bytes_max);
        let others = self.reserve_bytes + self.policy.tables_bytes(u64::MAX);
        let bytes = chunk_bytes.and_then(|bytes| bytes.checked_mul(threads)?.checked_add(others));
        if bytes.is_some_and(reserve::prepare) {
            self.workers = Workers::start(threads, |(encoder, batch): Job| encoder.encode(batch));
        } else if !reserve::prepare(self.reserve_bytes) {
            return Err(Failure::Memory);
        }
        Ok(())
    }

    /// Waits for the first chunk that workers encode; `None` if there is none.
    fn take_encoded(&mut self, accounting: &mut Accounting) -> Result<Option<Chunk>, Failure> {
        let Some(workers) = &mut self.workers else { return Ok(None) };
        let started = Instant::now();
        let Some(encoded) = workers.next() else { return Ok(None) };
        accounting.waited_for_worker(started.elapsed());
        let encoded = encoded.map_err(|panic| Failure::Internal(panic_text(&*panic)))?;
        accounting.encoded_by_worker(encoded.took);
        self.idle.push(encoded.encoder);
        encoded.chunk.map(Some)
    }

    /// Encodes a chunk in this thread.
    fn encode_here(&mut self, cut: Cut, accounting: &mut Accounting) -> Result<Chunk, Failure> {
        debug_assert!(self.workers.as_ref().is_none_or(|workers| workers.under_way() == 0));
        // The reserve may move, since no worker uses it now.
        let tables_bytes = self.policy.tables_bytes(self.cutter.plain_bytes());
        let bytes = self.policy.encode_bytes(cut.plain_bytes);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(tables_bytes));
        if !bytes.is_some_and(reserve::prepare) {
            return Err(Failure::Memory);
        }
        let encoded = self.idle_encoder()?.encode(cut.batch);
        accounting.encoded_here(encoded.took);
        self.idle.push(encoded.encoder);
        encoded.chunk
    }

    fn idle_encoder(&mut self) -> Result<ChunkEncoder, Failure> {
        self.idle.pop().ok_or_else(|| Failure::Internal("all encoders are busy".to_owned()))
    }
}
