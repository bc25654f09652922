//! A statement's result: batches as they come, or one table.

mod dictionaries;
mod join;
mod part;

use std::borrow::BorrowMut;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use dray_format::arrow::schema_from_arrow;
use dray_page::{Layout, VerifiedPage};
use dray_wire::RowLayout;

use self::dictionaries::unify;
use self::join::join;
use self::part::PartDigest;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Arena, TABLE_BLOCK_BYTES};
use crate::options::{OtherConnections, QueryOptions};
use crate::source::{
    Event, ReceiveContext, ReceivedBatch, ReceivedPage, Source, SourceKind, Start, cancelled,
    out_of_turn,
};
use crate::stats::{Progress, Stats};
use crate::watch::{CancelCheck, Verdict, Watch};

impl Connection {
    /// Runs a statement. The result borrows the connection until it is read to the end or dropped;
    /// dropping it cancels the statement.
    ///
    /// # Errors
    /// When the statement does not plan, or the connection breaks.
    pub fn query(&mut self, sql: &str, options: &QueryOptions) -> Result<Results<&mut Self>> {
        Self::query_with(self, sql, options, None)
    }

    /// Like [`Connection::query`], for a watched result, or one that owns the connection or shares
    /// it in its own way.
    ///
    /// # Errors
    /// Those of [`Connection::query`], and Cancelled if the watch says so.
    pub fn query_with<C: BorrowMut<Self>>(
        connection: C,
        sql: &str,
        options: &QueryOptions,
        watch: Option<Watch>,
    ) -> Result<Results<C>> {
        Results::start(connection, sql, options, RowLayout::Chunks, watch)
    }

    /// Runs a statement over several connections besides this one, within the limits of `others`.
    /// All see one snapshot in transactions that only read. Returns how many read it, too. If this
    /// connection is to read it, nothing runs, and half a sentence tells why.
    ///
    /// # Errors
    /// Those of [`Connection::query_with`].
    pub fn query_over_several(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        others: OtherConnections,
        watch: Option<Watch>,
    ) -> Result<Result<(Results<&mut Self>, usize), String>> {
        let mut starting = Starting::new(watch);
        let started = starting
            .run(self, |source, cancel| source.start_over_several(sql, options, others, cancel))?;
        match started {
            Ok(count) => Ok(Ok((Results::started(self, options, starting)?, count))),
            Err(why) => Ok(Err(why)),
        }
    }
}

/// A statement that is being started.
struct Starting {
    sent: Instant,
    watch: Option<Watch>,
    /// The watch's verdict so far.
    verdict: Verdict,
}

impl Starting {
    fn new(watch: Option<Watch>) -> Self {
        Self { sent: Instant::now(), watch, verdict: Verdict::default() }
    }

    /// Starts it in this way.
    fn run<T>(
        &mut self,
        connection: &mut Connection,
        start: impl FnOnce(&mut dyn Source, CancelCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        connection.check_own()?;
        let mut cancel = || look(&mut self.watch, &Progress::default(), &mut self.verdict);
        let started = start(connection.source(), &mut cancel);
        started.map_err(|error| match self.verdict {
            Verdict::Continue => error,
            _ => cancelled(),
        })
    }
}

/// The result of a statement. `C` is the connection: borrowed (`&mut Connection`) or owned.
pub struct Results<C: BorrowMut<Connection>> {
    connection: C,
    schema: SchemaRef,
    /// Memory of batches that are handed out.
    memory: Arena,
    /// Memory of batches that are joined first.
    join_memory: Arena,
    /// The last batch was too small to be handed out by itself, so the next one probably is, too.
    joins: bool,
    batch_rows: usize,
    batch_bytes: u64,
    batch_bytes_max: u64,
    watch: Option<Watch>,
    /// The watch's verdict so far.
    verdict: Verdict,
    progress: Progress,
    stats: Stats,
    sent: Instant,
    pending: Pending,
    /// Of objects: what pages are checked against.
    layout: Option<Arc<Layout>>,
    /// A page that was received and not yet handed out. No batch is pending with it.
    page: Option<VerifiedPage>,
    /// Of a part of a plan: what its receipt needs.
    part: Option<PartDigest>,
    ended: bool,
    /// An error came before the end.
    failed: bool,
    /// It was cancelled before all was handed out.
    cancelled: bool,
}

/// Rows as they were received.
pub(crate) enum Received {
    Batch(RecordBatch),
    Page(VerifiedPage),
}

/// Batches that were received and not yet handed out.
#[derive(Debug, Default)]
struct Pending {
    /// Each with its bytes of Arrow data.
    batches: Vec<(RecordBatch, u64)>,
    rows: usize,
    bytes: u64,
}

impl Pending {
    fn push(&mut self, batch: RecordBatch, bytes: u64) {
        self.rows += batch.num_rows();
        self.bytes += bytes;
        self.batches.push((batch, bytes));
    }

    /// Removes the first `count` batches.
    fn remove(&mut self, count: usize) {
        for (batch, bytes) in self.batches.drain(..count) {
            self.rows -= batch.num_rows();
            self.bytes -= bytes;
        }
        debug_assert!(!self.batches.is_empty() || (self.rows, self.bytes) == (0, 0));
    }
}

impl<C: BorrowMut<Connection>> std::fmt::Debug for Results<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Results")
            .field("schema", &self.schema)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<C: BorrowMut<Connection>> Results<C> {
    pub(crate) fn start(
        mut connection: C,
        sql: &str,
        options: &QueryOptions,
        row_layout: RowLayout,
        watch: Option<Watch>,
    ) -> Result<Self> {
        let mut starting = Starting::new(watch);
        starting.run(connection.borrow_mut(), |source, cancel| {
            source.start(sql, options, row_layout, cancel)
        })?;
        Self::started(connection, options, starting)
    }

    /// The result of a statement that was started.
    fn started(connection: C, options: &QueryOptions, starting: Starting) -> Result<Self> {
        let Starting { sent, watch, verdict } = starting;
        let inner = connection.borrow();
        let stats = Stats {
            connect: inner.connect_time(),
            path: inner.source_ref().path(),
            ..Stats::default()
        };
        let mut results = Self {
            connection,
            schema: SchemaRef::new(Schema::empty()),
            memory: Arena::default(),
            join_memory: Arena::default(),
            joins: false,
            batch_rows: options.batch_rows,
            batch_bytes: options.batch_bytes.min(options.limits.decoded_bytes_max).max(1),
            batch_bytes_max: options.limits.decoded_bytes_max,
            watch,
            verdict,
            progress: Progress::default(),
            stats,
            sent,
            pending: Pending::default(),
            layout: None,
            page: None,
            part: None,
            ended: false,
            failed: false,
            cancelled: false,
        };
        if verdict > Verdict::Continue {
            // The statement was started before the watch decided.
            results.stop();
            return Err(cancelled());
        }
        match results.receive()? {
            Event::Started(start) => {
                results.begin(start);
                Ok(results)
            }
            _ => Err(results.give_up()),
        }
    }

    fn begin(&mut self, start: Start) {
        self.schema = start.schema;
        self.progress.estimate = start.estimate;
        self.stats.plan = start.plan;
        self.stats.compression = start.compression;
        self.stats.checksums = start.checksums;
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.part.as_ref().map_or_else(|| self.schema.clone(), PartDigest::schema)
    }

    /// Which kind of server runs the statement.
    pub fn kind(&self) -> SourceKind {
        self.connection.borrow().kind()
    }

    /// How far the statement is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Where time and bytes went so far; complete after the last batch.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The next batch; None at the end.
    ///
    /// It has at least [`QueryOptions::batch_rows`] rows or [`QueryOptions::batch_bytes`] bytes,
    /// with these exceptions: the last batch, a batch that would otherwise exceed
    /// `decoded_bytes_max` of [`QueryOptions::limits`], and one whose dictionaries can't be
    /// unified with those of the next.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged; and again at
    /// each later call. A result that ends without an error is complete.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.connection.borrow().check_own()?;
        if self.failed {
            return Err(Error::usage("reading the result has failed before"));
        }
        if self.cancelled {
            return Err(cancelled());
        }
        let next = self.gather().and_then(|batch| match (batch, &mut self.part) {
            (Some(batch), Some(part)) => part.add(batch).map(Some),
            (batch, _) => Ok(batch),
        });
        if next.is_err() {
            self.failed = true;
            self.pending = Pending::default();
        }
        next
    }

    fn gather(&mut self) -> Result<Option<RecordBatch>> {
        while self.pending.rows < self.batch_rows.max(1)
            && self.pending.bytes < self.batch_bytes
            && self.page.is_none()
            && !self.ended
        {
            match self.receive()? {
                Event::Batch(batch) => self.take(batch)?,
                Event::Page(page) => self.take_page(page)?,
                Event::Progress { rows_read } => {
                    self.progress.rows_read = rows_read;
                    self.look()?;
                }
                Event::Report(report) => self.stats.report = report,
                Event::Finished { server } => {
                    self.stats.server = server;
                    // It may name connections that have failed since the start.
                    self.stats.path = self.connection.borrow_mut().source().path();
                    self.end();
                }
                Event::Started(_) => return Err(self.give_up()),
            }
        }
        let started = Instant::now();
        let batch = self.assemble();
        self.stats.decode += started.elapsed();
        batch
    }

    /// Starts a statement whose rows are objects, and compiles their layout.
    pub(crate) fn start_objects(
        connection: C,
        sql: &str,
        options: &QueryOptions,
        watch: Option<Watch>,
    ) -> Result<(Self, Arc<Layout>)> {
        let mut results = Self::start(connection, sql, options, options.objects, watch)?;
        // Each batch becomes pages, so joining batches would be copying for nothing.
        results.batch_rows = 1;
        let layout = Layout::new(schema_from_arrow(&results.schema)?)?;
        results.layout = Some(layout.clone());
        Ok((results, layout))
    }

    /// The next batch or page; None at the end.
    ///
    /// # Errors
    /// Those of [`Self::next_batch`].
    pub(crate) fn next_received(&mut self) -> Result<Option<Received>> {
        let batch = self.next_batch()?;
        debug_assert!(batch.is_none() || self.page.is_none());
        Ok(batch.map(Received::Batch).or_else(|| self.page.take().map(Received::Page)))
    }

    /// Ends the result after an error of its reader: no later call may go on behind it.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
        self.stop();
    }

    /// Counts what `decode` takes as decoding.
    pub(crate) fn decoding<T>(&mut self, decode: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let decoded = decode();
        self.stats.decode += started.elapsed();
        decoded
    }

    /// Whether everything has arrived and was handed out, so that the connection is free.
    pub fn is_complete(&self) -> bool {
        self.ended && self.pending.batches.is_empty() && self.page.is_none()
    }

    /// The rows that the statement inserted, updated, deleted or merged; None if it did something
    /// else or has not ended.
    pub fn rows_changed(&self) -> Option<u64> {
        if self.ended { self.connection.borrow().source_ref().rows_changed() } else { None }
    }

    /// All remaining batches.
    ///
    /// # Errors
    /// Those of [`Self::next_batch`].
    pub fn read_all(&mut self) -> Result<Vec<RecordBatch>> {
        // The batches stay together, so they may share blocks.
        self.memory.set_block_bytes(TABLE_BLOCK_BYTES);
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch()? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Stops the statement if it still runs, and waits for the server to confirm. The connection
    /// is usable afterwards. Reading on is an error, unless all was handed out before.
    pub fn cancel(&mut self) {
        self.cancel_unless(self.is_complete());
    }

    /// The same for a reader that knows whether it has handed out all.
    pub(crate) fn cancel_unless(&mut self, is_complete: bool) {
        self.cancelled |= !is_complete;
        self.stop();
    }

    fn stop(&mut self) {
        (self.pending, self.page) = (Pending::default(), None);
        self.ended = true;
        // A forked child leaves the statement to its parent.
        if !self.connection.borrow().is_own() {
            self.connection.borrow_mut().source().break_off();
            return;
        }
        let source = self.connection.borrow_mut().source();
        if source.is_running() {
            source.stop(&mut || look(&mut self.watch, &self.progress, &mut self.verdict));
        }
    }

    /// Counts a batch that has arrived.
    fn take(&mut self, batch: ReceivedBatch) -> Result<()> {
        let ReceivedBatch { batch, wire_bytes, decoded_bytes, arrived, .. } = batch;
        self.count(batch.num_rows(), wire_bytes, decoded_bytes, arrived);
        self.joins = batch.num_rows() < self.batch_rows && decoded_bytes < self.batch_bytes;
        self.pending.push(batch, decoded_bytes);
        self.look()
    }

    /// Counts a page that has arrived.
    fn take_page(&mut self, page: ReceivedPage) -> Result<()> {
        let ReceivedPage { page, wire_bytes, arrived, .. } = page;
        self.count(page.len(), wire_bytes, page.header().packed_bytes(), arrived);
        self.stats.pages += 1;
        self.page = Some(page);
        self.look()
    }

    fn count(&mut self, rows: usize, wire_bytes: u64, decoded_bytes: u64, arrived: Instant) {
        if self.stats.chunks == 0 {
            self.stats.first_chunk = arrived.duration_since(self.sent);
        }
        self.stats.wire_bytes += wire_bytes;
        self.stats.decoded_bytes += decoded_bytes;
        self.stats.rows += rows as u64;
        self.stats.chunks += 1;
        self.progress.rows = self.stats.rows;
        self.progress.bytes = self.stats.wire_bytes;
    }

    fn end(&mut self) {
        self.ended = true;
        self.stats.total = self.sent.elapsed();
        if self.stats.chunks == 0 {
            self.stats.first_chunk = self.stats.total;
        }
    }

    /// Stops the statement if it still runs, and returns the connection.
    pub fn into_connection(mut self) -> C
    where
        C: Default,
    {
        self.stop();
        std::mem::take(&mut self.connection)
    }

    /// The pending batches as one. The last one stays back if there would be too many bytes, and so
    /// do those whose dictionaries can't be unified with the first's.
    fn assemble(&mut self) -> Result<Option<RecordBatch>> {
        let pending = &self.pending.batches;
        let too_large = self.pending.bytes > self.batch_bytes_max && pending.len() > 1;
        let mut count = pending.len() - usize::from(too_large);
        let batch = match count {
            0 => None,
            1 => Some(pending[0].0.clone()),
            _ => {
                let failed = |cause| {
                    let what = "chunks do not fit into one batch";
                    Error::new(ErrorKind::Limit, what).with_cause(cause)
                };
                let batches: Vec<_> = pending[..count].iter().map(|(batch, _)| batch).collect();
                let batches = unify(&self.schema, &batches).map_err(failed)?;
                count = batches.len();
                Some(match (&batches[..], self.memory.block_bytes()) {
                    ([batch], _) => batch.clone(),
                    (batches, 0) => concat_batches(&self.schema, batches).map_err(failed)?,
                    (batches, _) => {
                        let batches: Vec<_> = batches.iter().collect();
                        join(&self.schema, &batches, &mut self.memory).map_err(failed)?
                    }
                })
            }
        };
        self.pending.remove(count);
        Ok(batch)
    }

    /// Asks the watch, and cancels if it says so.
    fn look(&mut self) -> Result<()> {
        match look(&mut self.watch, &self.progress, &mut self.verdict) {
            Verdict::Continue => Ok(()),
            _ => {
                self.stop();
                Err(cancelled())
            }
        }
    }

    /// The source's next event.
    fn receive(&mut self) -> Result<Event> {
        let began = Instant::now();
        let mut cancel = || look(&mut self.watch, &self.progress, &mut self.verdict);
        let memory = if self.joins { &mut self.join_memory } else { &mut self.memory };
        let mut context = ReceiveContext {
            memory,
            profile: &mut self.stats.profile,
            layout: self.layout.as_ref(),
        };
        let event = self.connection.borrow_mut().source().next(&mut context, &mut cancel);
        match &event {
            Ok(Event::Batch(batch)) => {
                self.stats.receive += batch.receive;
                self.stats.decode += batch.parse + batch.decode;
            }
            Ok(Event::Page(page)) => {
                self.stats.receive += page.receive;
                self.stats.decode += page.decode;
            }
            _ => self.stats.receive += began.elapsed(),
        }
        if self.verdict > Verdict::Continue {
            self.stop();
            return Err(cancelled());
        }
        event.inspect_err(|_| self.ended = true)
    }

    /// Breaks the connection off, since its source can't be trusted any more.
    fn give_up(&mut self) -> Error {
        self.pending = Pending::default();
        self.ended = true;
        self.connection.borrow_mut().source().break_off();
        out_of_turn()
    }
}

/// The watch's verdict by now.
fn look(watch: &mut Option<Watch>, progress: &Progress, verdict: &mut Verdict) -> Verdict {
    if let Some(watch) = watch {
        *verdict = watch(progress).max(*verdict);
    }
    *verdict
}

impl<C: BorrowMut<Connection>> Iterator for Results<C> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl<C: BorrowMut<Connection>> Drop for Results<C> {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
