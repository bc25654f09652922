//! A statement's result: batches as they come, or one table.

use std::borrow::BorrowMut;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use dray_format::arrow::Decoder;
use dray_format::{Profile, Schema};
use dray_wire::{CompressionChoice, Estimate, Finished, ServerEvent, Started};

use crate::connection::{Connection, QueryOptions, Received, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// A table's chunks share blocks of this size.
const TABLE_BLOCK_BYTES: usize = 64 << 20;
/// How long a result that is dropped half-way waits for the server to stop, before the connection is given up.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// The compression that was used.
    pub compression: CompressionChoice,
    /// Whether chunks carried checksums.
    pub checksums: bool,
    /// How each column was coded.
    pub profile: Profile,
}

/// The result of a statement. `C` is the connection: borrowed (`&mut Connection`) or owned.
pub struct Results<C: BorrowMut<Connection>> {
    connection: C,
    arena: Arena,
    decoder: Decoder,
    batch_rows: usize,
    watch: Option<Watch>,
    progress: Progress,
    stats: Stats,
    sent: Instant,
    /// Decoded, and too few rows for a batch yet.
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    ended: bool,
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
    pub(crate) fn start(mut connection: C, sql: &str, options: &QueryOptions, watch: Option<Watch>) -> Result<Self> {
        let inner = connection.borrow_mut();
        let sent = Instant::now();
        inner.send_query(sql, options)?;
        let stats = Stats { connect: inner.connect_time(), ..Stats::default() };
        let mut results = Self {
            connection,
            arena: Arena::default(),
            decoder: Decoder::new(Schema::default(), options.strings),
            batch_rows: options.batch_rows,
            watch,
            progress: Progress::default(),
            stats,
            sent,
            pending: Vec::new(),
            pending_rows: 0,
            ended: false,
        };
        match results.receive()? {
            Received::Event(ServerEvent::Started(started)) => {
                results.begin(started, options);
                Ok(results)
            }
            _ => Err(results.out_of_turn()),
        }
    }

    fn begin(&mut self, started: Started, options: &QueryOptions) {
        self.decoder = Decoder::new(started.schema, options.strings);
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

    /// The next batch, of at least [`QueryOptions::batch_rows`] rows unless it is the last; none at the end.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged. A result that ends without an error is
    /// whole.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.pending_rows < self.batch_rows.max(1) && !self.ended {
            match self.receive()? {
                Received::Chunk { header, descriptors, body } => {
                    if self.stats.chunks == 0 {
                        self.stats.first_chunk = self.sent.elapsed();
                    }
                    let started = Instant::now();
                    let batch = self.decode(&header, &descriptors, &body).inspect_err(|_| self.give_up())?;
                    self.stats.decode += started.elapsed();
                    self.stats.rows += batch.num_rows() as u64;
                    self.stats.chunks += 1;
                    self.stats.wire_bytes += header.chunk_bytes();
                    self.stats.decoded_bytes += header.decoded_bytes;
                    self.progress.rows = self.stats.rows;
                    self.progress.bytes = self.stats.wire_bytes;
                    self.pending_rows += batch.num_rows();
                    self.pending.push(batch);
                    self.look()?;
                }
                Received::Event(ServerEvent::Progress(progress)) => {
                    self.progress.rows_read = progress.rows_read;
                    self.look()?;
                }
                Received::Event(ServerEvent::Finished(finished)) => {
                    self.ended = true;
                    self.stats.server = Some(finished);
                    self.stats.total = self.sent.elapsed();
                    if self.stats.chunks == 0 {
                        self.stats.first_chunk = self.stats.total;
                    }
                }
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

    /// Stops the statement, if it still runs, and waits for the server to confirm. The connection is usable afterwards.
    pub fn cancel(&mut self) {
        self.ended = true;
        self.pending.clear();
        self.pending_rows = 0;
        let connection = self.connection.borrow_mut();
        if !connection.is_running() {
            return;
        }
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        let mut patient = || match Instant::now() < deadline {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Connection, "the server did not stop in time")),
        };
        let mut drained = connection.send_cancel();
        while drained.is_ok() && connection.is_running() {
            drained = patient().and_then(|()| connection.receive(&mut self.arena, &mut patient).map(|_| ()));
        }
        if drained.is_err() {
            connection.break_off();
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

    fn decode(&mut self, header: &dray_format::Header, descriptors: &[u8], body: &bytes::Bytes) -> Result<RecordBatch> {
        header.verify(&[descriptors, body])?;
        Ok(self.decoder.decode(header, descriptors, body, Some(&mut self.stats.profile))?)
    }

    /// The pending batches as one.
    fn assemble(&mut self) -> Result<Option<RecordBatch>> {
        self.pending_rows = 0;
        match self.pending.len() {
            0 => Ok(None),
            1 => Ok(self.pending.pop()),
            _ => {
                let batch = concat_batches(self.decoder.schema(), &self.pending)
                    .map_err(|cause| Error::new(ErrorKind::Limit, "chunks do not fit into one batch").cause(cause))?;
                self.pending.clear();
                Ok(Some(batch))
            }
        }
    }

    /// Lets the watch look, and cancels if it says so.
    fn look(&mut self) -> Result<()> {
        match self.watch.as_mut().is_none_or(|watch| watch(&self.progress)) {
            true => Ok(()),
            false => {
                self.cancel();
                Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled"))
            }
        }
    }

    /// What the server sends next; its errors as such.
    fn receive(&mut self) -> Result<Received> {
        let started = Instant::now();
        let (watch, progress) = (&mut self.watch, &self.progress);
        let mut unwanted = false;
        // A cancel is sent between frames only: here the statement is merely marked, and the frame read on.
        let mut patient = || {
            unwanted |= !watch.as_mut().is_none_or(|watch| watch(progress));
            Ok(())
        };
        let connection = self.connection.borrow_mut();
        let received = connection.receive(&mut self.arena, &mut patient);
        self.stats.receive += started.elapsed();
        if received.is_err() {
            self.ended = true;
        }
        match received? {
            Received::Event(ServerEvent::Error(error)) => {
                self.ended = true;
                Err(error.into())
            }
            _ if unwanted => {
                self.cancel();
                Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled"))
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
        self.ended = true;
        self.connection.borrow_mut().break_off();
    }
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
