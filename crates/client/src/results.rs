//! A statement's result: batches as they come, or one table.

use std::borrow::BorrowMut;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use dray_format::arrow::Decoder;
use dray_format::{Profile, Schema, Tables};
use dray_wire::{CompressionChoice, Estimate, Finished, Report, ServerEvent, Started};

use crate::connection::{Connection, QueryOptions, Watch, Wish};
use crate::dictionaries::unite;
use crate::error::{Error, ErrorKind, Result};
use crate::join::join;
use crate::link::{Received, Route};
use crate::pool::Arena;

/// A table's chunks share blocks of this size.
pub(crate) const TABLE_BLOCK_BYTES: usize = 64 << 20;

/// How far a statement is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// What the planner expects of the result.
    pub estimate: Estimate,
    /// Rows that the server's scans have read.
    pub rows_read: u64,
    /// Rows received.
    pub rows: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// Where the time and the bytes of a statement went.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Rows received.
    pub rows: u64,
    /// Chunks received.
    pub chunks: u64,
    /// Bytes of chunks received.
    pub wire_bytes: u64,
    /// Bytes of Arrow data that they decoded to.
    pub decoded_bytes: u64,
    /// Connecting, once for all statements of the connection.
    pub connect: Duration,
    /// Planning at the server.
    pub plan: Duration,
    /// From sending the query to the first chunk, or to the end if there is none.
    pub first_chunk: Duration,
    /// From sending the query to the end.
    pub total: Duration,
    /// Waiting for the server and reading from the socket.
    pub receive: Duration,
    /// Decoding chunks and putting batches together.
    pub decode: Duration,
    /// What the server says of its own time; none before the end.
    pub server: Option<Finished>,
    /// What the server says of its encoding; empty for small results, and from PostgreSQL.
    pub report: Report,
    /// The compression that was used; auto if it was chosen for each column, chunk by chunk.
    pub compression: CompressionChoice,
    /// Whether chunks carried checksums.
    pub checksums: bool,
    /// How each column was coded.
    pub profile: Profile,
    /// Which way the result came.
    pub route: Route,
}

/// The result of a statement. `C` is the connection: borrowed (`&mut Connection`) or owned.
pub struct Results<C: BorrowMut<Connection>> {
    connection: C,
    arena: Arena,
    /// What batches are received into that are joined later, when they come with too few rows for
    /// one.
    parts: Arena,
    joins: bool,
    decoder: Decoder,
    batch_rows: usize,
    batch_bytes: u64,
    batch_bytes_max: u64,
    watch: Option<Watch>,
    /// What the watch has wanted so far.
    wish: Wish,
    progress: Progress,
    stats: Stats,
    sent: Instant,
    /// Decoded, and too few rows for a batch yet; each with the bytes that it decoded to.
    pending: Vec<(RecordBatch, u64)>,
    pending_rows: usize,
    pending_bytes: u64,
    ended: bool,
    /// An error came before the end.
    failed: bool,
}

impl<C: BorrowMut<Connection>> std::fmt::Debug for Results<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Results")
            .field("schema", self.decoder.schema())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<C: BorrowMut<Connection>> Results<C> {
    pub(crate) fn start(
        mut connection: C,
        sql: &str,
        options: &QueryOptions,
        mut watch: Option<Watch>,
    ) -> Result<Self> {
        let sent = Instant::now();
        let mut wish = Wish::default();
        let inner = connection.borrow_mut();
        inner.check_own()?;
        let mut wanted = || look(&mut watch, &Progress::default(), &mut wish);
        let asked = inner.link().send_query(sql, options, &mut wanted);
        let unwanted = wish > Wish::Continue;
        asked.map_err(|error| if unwanted { cancelled() } else { error })?;
        let stats = Stats {
            connect: inner.connect_time(),
            route: inner.link().route(),
            ..Stats::default()
        };
        let mut results = Self {
            connection,
            arena: Arena::default(),
            parts: Arena::default(),
            joins: false,
            decoder: Decoder::new(Schema::default(), options.strings),
            batch_rows: options.batch_rows,
            batch_bytes: options.batch_bytes.min(options.limits.decoded_bytes_max).max(1),
            batch_bytes_max: options.limits.decoded_bytes_max,
            watch,
            wish,
            progress: Progress::default(),
            stats,
            sent,
            pending: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            ended: false,
            failed: false,
        };
        if unwanted {
            // The link had sent the query before it asked.
            results.cancel();
            return Err(cancelled());
        }
        match results.receive()? {
            Received::Event(ServerEvent::Started(started)) => {
                results.begin(started, options);
                Ok(results)
            }
            _ => Err(results.out_of_turn()),
        }
    }

    fn begin(&mut self, started: Started, options: &QueryOptions) {
        self.decoder = self.connection.borrow_mut().decoder(started.schema, options.strings);
        self.progress.estimate = started.estimate;
        self.stats.plan = Duration::from_nanos(started.plan_ns);
        self.stats.compression = started.compression;
        self.stats.checksums = started.checksums;
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.decoder.schema().clone()
    }

    /// How far the statement is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Where time and bytes went so far; complete after the last batch.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The next batch, of at least [`QueryOptions::batch_rows`] rows or
    /// [`QueryOptions::batch_bytes`] unless it is the last or one with more rows would have over
    /// `decoded_bytes_max` of [`QueryOptions::limits`], or dictionaries that can't be one; none at
    /// the end.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged; and again at
    /// each call after that. A result that ends without an error is whole.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.connection.borrow().check_own()?;
        if self.failed {
            return Err(Error::usage("reading the result has failed before"));
        }
        let next = self.gather();
        if next.is_err() {
            self.failed = true;
            self.forget();
        }
        next
    }

    fn gather(&mut self) -> Result<Option<RecordBatch>> {
        while self.pending_rows < self.batch_rows.max(1)
            && self.pending_bytes < self.batch_bytes
            && !self.ended
        {
            match self.receive()? {
                Received::Chunk { header, descriptors, body, tables } => {
                    if self.stats.chunks == 0 {
                        self.stats.first_chunk = self.sent.elapsed();
                    }
                    let started = Instant::now();
                    let batch = self
                        .decode(&header, &descriptors, &body, &tables)
                        .inspect_err(|_| self.give_up())?;
                    self.stats.decode += started.elapsed();
                    self.stats.wire_bytes += header.chunk_bytes();
                    self.take(batch, header.decoded_bytes)?;
                }
                Received::Built { built, bytes, .. } => {
                    if self.stats.chunks == 0 {
                        self.stats.first_chunk = self.sent.elapsed();
                    }
                    let started = Instant::now();
                    let decoded_bytes = built.batch().plain_bytes(0, built.batch().rows);
                    let batch = self
                        .decoder
                        .built(*built)
                        .map_err(Error::of_rows)
                        .inspect_err(|_| self.stop())?;
                    self.stats.decode += started.elapsed();
                    self.stats.wire_bytes += bytes;
                    self.take(batch, decoded_bytes)?;
                }
                Received::Event(ServerEvent::Progress(progress)) => {
                    self.progress.rows_read = progress.rows_read;
                    self.look()?;
                }
                Received::Event(ServerEvent::Report(report)) => self.stats.report = report,
                Received::Event(ServerEvent::State(state)) => {
                    self.stats.wire_bytes += state.frame_bytes()
                }
                Received::Event(ServerEvent::Finished(finished)) => {
                    self.stats.server = Some(finished);
                    self.end();
                }
                Received::Batch { batch, wire_bytes, decoded_bytes, decode } => {
                    if self.stats.chunks == 0 {
                        self.stats.first_chunk = self.sent.elapsed();
                    }
                    self.stats.decode += decode;
                    self.stats.wire_bytes += wire_bytes;
                    self.take(batch, decoded_bytes)?;
                }
                Received::Done { finished, profile } => {
                    self.stats.server = finished;
                    self.stats.profile = profile;
                    // It names connections that have failed since.
                    self.stats.route = self.connection.borrow_mut().link().route();
                    self.end();
                }
                Received::End => self.end(),
                _ => return Err(self.out_of_turn()),
            }
        }
        let started = Instant::now();
        let batch = self.assemble();
        self.stats.decode += started.elapsed();
        batch
    }

    /// All batches that are left.
    ///
    /// # Errors
    /// As [`Self::next_batch`].
    pub fn read_all(&mut self) -> Result<Vec<RecordBatch>> {
        // The batches will be kept together, so their memory may be one.
        self.arena.set_block_bytes(TABLE_BLOCK_BYTES);
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch()? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Stops the statement, if it still runs, and waits for the server to confirm. The connection
    /// is usable afterwards.
    pub fn cancel(&mut self) {
        self.forget();
        self.stop();
    }

    /// Lets go of what was not handed out.
    fn forget(&mut self) {
        self.pending.clear();
        self.pending_rows = 0;
        self.pending_bytes = 0;
    }

    fn stop(&mut self) {
        self.ended = true;
        // The statement is its parent's, which goes on with it.
        if !self.connection.borrow().is_own() {
            self.connection.borrow_mut().link().break_off();
            return;
        }
        let link = self.connection.borrow_mut().link();
        if link.is_running() {
            let mut wanted = || look(&mut self.watch, &self.progress, &mut self.wish);
            link.stop(&mut self.arena, &mut wanted);
        }
    }

    /// A batch that has arrived.
    fn take(&mut self, batch: RecordBatch, decoded_bytes: u64) -> Result<()> {
        self.stats.decoded_bytes += decoded_bytes;
        self.stats.rows += batch.num_rows() as u64;
        self.stats.chunks += 1;
        self.joins = batch.num_rows() < self.batch_rows && decoded_bytes < self.batch_bytes;
        self.progress.rows = self.stats.rows;
        self.progress.bytes = self.stats.wire_bytes;
        self.pending_rows += batch.num_rows();
        self.pending_bytes += decoded_bytes;
        self.pending.push((batch, decoded_bytes));
        self.look()
    }

    fn end(&mut self) {
        self.ended = true;
        self.stats.total = self.sent.elapsed();
        if self.stats.chunks == 0 {
            self.stats.first_chunk = self.stats.total;
        }
    }

    /// Gives the connection back, after stopping the statement if it still runs.
    pub fn into_connection(mut self) -> C
    where
        C: Default,
    {
        self.cancel();
        std::mem::take(&mut self.connection)
    }

    fn decode(
        &mut self,
        header: &dray_format::Header,
        descriptors: &[u8],
        body: &bytes::Bytes,
        tables: &Tables,
    ) -> Result<RecordBatch> {
        header.verify(&[descriptors, body])?;
        let arena = if self.joins { &mut self.parts } else { &mut self.arena };
        let profile = Some(&mut self.stats.profile);
        Ok(self.decoder.decode(
            header,
            descriptors,
            body,
            tables,
            Some(&mut arena.columns(header)),
            profile,
        )?)
    }

    /// The pending batches as one, but for the last where it would be one too many bytes, and for
    /// those with dictionaries that can't be one with the first's.
    fn assemble(&mut self) -> Result<Option<RecordBatch>> {
        let too_large = self.pending_bytes > self.batch_bytes_max && self.pending.len() > 1;
        let mut count = self.pending.len() - usize::from(too_large);
        let batch = match count {
            0 => None,
            1 => Some(self.pending[0].0.clone()),
            _ => {
                let failed = |cause| {
                    Error::new(ErrorKind::Limit, "chunks do not fit into one batch").cause(cause)
                };
                let schema = self.decoder.schema();
                let batches: Vec<_> =
                    self.pending[..count].iter().map(|(batch, _)| batch).collect();
                let batches = unite(schema, &batches).map_err(failed)?;
                count = batches.len();
                Some(match (&batches[..], self.arena.block_bytes()) {
                    ([batch], _) => batch.clone(),
                    (batches, 0) => concat_batches(schema, batches).map_err(failed)?,
                    (batches, _) => {
                        join(schema, &batches.iter().collect::<Vec<_>>(), &mut self.arena)
                            .map_err(failed)?
                    }
                })
            }
        };
        for (batch, decoded_bytes) in self.pending.drain(..count) {
            self.pending_rows -= batch.num_rows();
            self.pending_bytes -= decoded_bytes;
        }
        Ok(batch)
    }

    /// Lets the watch look, and cancels if it says so.
    fn look(&mut self) -> Result<()> {
        match look(&mut self.watch, &self.progress, &mut self.wish) {
            Wish::Continue => Ok(()),
            _ => {
                self.cancel();
                Err(cancelled())
            }
        }
    }

    /// What the server sends next; its errors as such.
    fn receive(&mut self) -> Result<Received> {
        let started = Instant::now();
        let mut wanted = || look(&mut self.watch, &self.progress, &mut self.wish);
        let arena = if self.joins { &mut self.parts } else { &mut self.arena };
        let received = self.connection.borrow_mut().link().receive(arena, &mut wanted);
        let parsed = match &received {
            Ok(Received::Built { waited, .. }) => started.elapsed().saturating_sub(*waited),
            _ => Duration::ZERO,
        };
        self.stats.receive += started.elapsed() - parsed;
        self.stats.decode += parsed;
        if self.wish > Wish::Continue {
            self.cancel();
            return Err(cancelled());
        }
        if received.is_err() {
            self.ended = true;
        }
        match received? {
            Received::Event(ServerEvent::Error(error)) => {
                self.ended = true;
                Err(error.into())
            }
            received => Ok(received),
        }
    }

    fn out_of_turn(&mut self) -> Error {
        self.give_up();
        Error::new(ErrorKind::Protocol, "the server's answer is out of turn")
    }

    /// The peer can't be trusted any more.
    fn give_up(&mut self) {
        self.forget();
        self.ended = true;
        self.connection.borrow_mut().link().break_off();
    }
}

/// What is wanted by now.
fn look(watch: &mut Option<Watch>, progress: &Progress, wish: &mut Wish) -> Wish {
    if let Some(watch) = watch {
        *wish = watch(progress).max(*wish);
    }
    *wish
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the statement was cancelled")
}

impl<C: BorrowMut<Connection>> Iterator for Results<C> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl<C: BorrowMut<Connection>> Drop for Results<C> {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests;
