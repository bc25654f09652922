//! One result: rows in, frames out.
//!
//! Chunks are made by the thread that asks for them or, from the second on and where they are
//! encoded, by [`Workers`]: then a chunk is made while the rows of the next ones come, and those
//! before it are sent.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_chooser::{Chooser, Delivery, DeliveryMeter};
use dray_format::{Batch, BatchBuilder, Chunk, Error, Schema, Type};
use dray_pgtypes::{Column, Format, NonFinite, PgType, not_utf8};
use dray_wire::{CompressionChoice, Estimate, Finished, Known, ServerSession, Started};

use crate::appender::{Appender, Outcome};
use crate::chunk_encoder::{Made, Maker, Making};
use crate::datum::{Read, Row};
use crate::interrupts;
use crate::reserve;
use crate::settings::Settings;
use crate::workers::{Workers, panic_text};

/// The number of the statement in the frames: a COPY has only one.
const STATEMENT: u32 = 1;
/// Room for so many rows is made first, and then twice as much each time.
const ROWS_ROOM_MIN: usize = 256;

/// The first bytes of a frame, and what follows them. Those of a chunk begin with its state frame,
/// if it has one.
pub(crate) type Frame<'a> = (&'a [u8], &'a [Bytes]);

/// Why a stream ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Memory is short.
    Memory,
    /// A column is larger than a chunk can hold, or a row than the client accepts.
    Limit(String),
    /// The server wants the statement to end.
    Interrupted,
    /// A value that its column can't hold; the column's name and the row are in the text.
    Value(String),
    /// A string is not UTF-8; the column's name is in the text.
    Text(String),
    /// A mistake of ours.
    Internal(String),
}

impl Failure {
    /// A row that is not whole yet, so that nobody knows how much it needs.
    #[cold]
    pub(crate) fn row_too_large(row_bytes_max: u64) -> Self {
        Self::Limit(format!(
            "a row needs over {row_bytes_max} bytes, which is the limit; raise row_bytes_max"
        ))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            dray_format::ErrorKind::Limit => Self::Limit(error.to_string()),
            dray_format::ErrorKind::Utf8 => Self::Text(not_utf8(&error)),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<dray_wire::ProtocolError> for Failure {
    fn from(error: dray_wire::ProtocolError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// What a row needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another row may come.
    Done,
    /// The same, after the chunks have been taken.
    Full,
    /// The value of this column must be made plain.
    Plain(usize),
    /// The value of this column must come as its send function (or output function, as
    /// [`Stream::format`] says) makes it.
    Sent(usize),
}

/// Where a column's values go.
enum Target {
    /// Datums, as they are.
    Datums(Appender),
    /// What send and output functions make, to the builder of this number.
    Sent(usize),
}

/// A result under way.
pub(crate) struct Stream {
    settings: Settings,
    making: Arc<Making>,
    /// Those that make no chunk at the moment.
    makers: Vec<Maker>,
    /// The threads that help, once there are some.
    workers: Option<Workers<Job, Made>>,
    /// How many threads may still be started.
    threads: usize,
    /// What was put aside when the stream was opened, for all but the making of chunks.
    reserve_bytes: usize,
    sending: Sending,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    targets: Vec<Target>,
    /// The columns that are sent. A datum that is not an ordinary one comes to its column this way
    /// too.
    sent: BatchBuilder,
    /// Rows that are waiting for their chunk to fill, and for how many there is room.
    waiting_rows: usize,
    rows_room: usize,
    rows_hint: usize,
    rows_room_max: usize,
    session: ServerSession,
    /// How many rows end a chunk now.
    chunk_rows: usize,
    /// The values of a row that have a fixed width, with offsets and masks, in eighths of a byte.
    row_bits: u64,
    /// The variable bytes of the rows that are waiting.
    waiting_bytes: u64,
    row_bytes: u64,
    largest_row_bytes: u64,
    /// The column at which the row goes on.
    next: usize,
    /// Rows that are being cut into chunks.
    cutting: Option<Batch>,
    /// What chunks were begun of.
    rows: u64,
    plain_bytes: u64,
    head: Vec<u8>,
    parts: Vec<Bytes>,
    times: Times,
}

/// A chunk to be made.
type Job = (Maker, Batch);

/// Where the time goes.
#[derive(Default)]
struct Times {
    /// Making chunks, in any thread.
    encode: Duration,
    /// Making chunks in this thread, or waiting for those of others.
    encode_here: Duration,
}

/// The meter of the client's socket, if it is TCP's.
type SocketMeter = DeliveryMeter<BorrowedFd<'static>>;

/// What is known of how chunks are sent, where the stream adapts.
struct Sending {
    /// What the kernel knows.
    meter: Option<SocketMeter>,
    /// When the last chunk was handed out to be sent, and its bytes, those of its state frame
    /// included.
    handed_out: Option<(Instant, u64)>,
    /// When what was sent was last accounted for, and how long workers have been waited for since.
    since: Instant,
    starved: Duration,
}

impl Stream {
    /// A stream of columns with these names and types; those that are not nullable come with
    /// `true`. `reserve_bytes` have been put aside for it.
    pub(crate) fn open(
        settings: Settings,
        described: &[(String, PgType, bool)],
        reserve_bytes: usize,
    ) -> Result<Self, Failure> {
        let mut columns = Vec::with_capacity(described.len());
        let mut targets = Vec::with_capacity(described.len());
        let mut fields = Vec::with_capacity(described.len());
        let mut sent = Vec::new();
        for (name, pg_type, not_null) in described {
            let column = Column::new(name, pg_type, &settings.options);
            let mut field = column.field().clone();
            // A value that Arrow does not have may become NULL in any column.
            field.nullable = !not_null || settings.options.nonfinite == NonFinite::Null;
            targets.push(match Read::of(pg_type, &field.data_type, settings.is_utf8) {
                Read::Sent => {
                    sent.push(field.clone());
                    Err(sent.len() - 1)
                }
                read => Ok(read),
            });
            columns.push(column);
            fields.push(field);
        }
        let schema = Arc::new(Schema { fields });
        // Alone, the thread learns of the way only what it waits for it.
        let adapts = settings.compression == CompressionChoice::Auto && settings.threads > 0;
        let meter = settings.socket.filter(|_| adapts).and_then(SocketMeter::new);
        let round_trip = meter.as_ref().and_then(SocketMeter::round_trip).unwrap_or_default();
        let making = Arc::new(Making::new(&settings, &schema, round_trip));
        let maker = || Maker::new(making.clone(), schema.clone(), settings.checksums);
        let makers = (0..settings.threads.max(1)).map(|_| maker()).collect();
        let row_bits: u64 = schema.fields.iter().map(|field| fixed_bits(&field.data_type)).sum();
        let row_bytes_max = usize::try_from(settings.limits.row_bytes_max).unwrap_or(usize::MAX);
        // A little more is asked for than is written.
        let waiting_bytes_max =
            usize::try_from(making.plain_bytes_max).unwrap_or(usize::MAX).saturating_add(64 << 10);
        let mut sent =
            BatchBuilder::with_interrupts(Schema { fields: sent }, Some(interrupts::pending))?;
        sent.set_bytes_max(row_bytes_max, waiting_bytes_max);
        let targets = targets.into_iter().map(|read| match read {
            Ok(read) => Target::Datums(Appender::new(read, row_bytes_max, waiting_bytes_max)),
            Err(number) => Target::Sent(number),
        });
        // A chunk is full at the latest when the fixed part of its rows fills it.
        let chunk_rows = making
            .adaptive
            .as_ref()
            .map_or(usize::MAX, Chooser::chunk_rows)
            .min(settings.chunk_rows);
        let rows_that_fill =
            usize::try_from(making.plain_bytes_max * 8 / row_bits.max(1) + 2).unwrap_or(usize::MAX);
        Ok(Self {
            making,
            makers,
            workers: None,
            threads: settings.threads,
            reserve_bytes,
            sending: Sending {
                meter,
                handed_out: None,
                since: Instant::now(),
                starved: Duration::ZERO,
            },
            rows_room_max: settings.chunk_rows.min(rows_that_fill),
            settings,
            schema,
            columns,
            targets: targets.collect(),
            sent,
            waiting_rows: 0,
            rows_room: 0,
            rows_hint: ROWS_ROOM_MIN,
            session: ServerSession::running(STATEMENT),
            chunk_rows,
            row_bits,
            waiting_bytes: 0,
            row_bytes: 0,
            largest_row_bytes: 0,
            next: 0,
            cutting: None,
            rows: 0,
            plain_bytes: 0,
            head: Vec::new(),
            parts: Vec::new(),
            times: Times::default(),
        })
    }

    /// How the value of a column is to come when it must be sent.
    pub(crate) fn format(&self, column: usize) -> Format {
        self.columns[column].format()
    }

    /// The frame that opens the stream.
    pub(crate) fn start(&mut self) -> Result<Frame<'_>, Failure> {
        let started = Started {
            statement: STATEMENT,
            // The query came through PostgreSQL's own protocol.
            query: 0,
            schema: self.schema.clone(),
            estimate: Estimate {
                rows: Known::Estimate(self.settings.rows_estimate),
                bytes: Known::default(),
            },
            compression: self.settings.compression,
            checksums: self.settings.checksums,
            plan_ns: self.settings.plan_ns,
        };
        self.head.clear();
        self.parts.clear();
        self.session.started(&started, &mut self.head)?;
        Ok((&self.head, &self.parts))
    }

    /// Appends a row, or goes on with it after the value that it needed.
    ///
    /// # Safety
    /// The row has a value for each column, of the column's type.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, mut values: impl Row) -> Result<Step, Failure> {
        if self.waiting_rows == self.rows_room {
            self.make_room()?;
        }
        let row = self.waiting_rows;
        let row_bytes_max = self.settings.limits.row_bytes_max;
        let mut row_bytes = self.row_bytes;
        let mut stopped = None;
        for (at, target) in self.targets.iter_mut().enumerate().skip(self.next) {
            let null = values.is_null(at);
            match target {
                // SAFETY: there is room for the row.
                Target::Datums(appender) if null => unsafe { appender.push_null(row)? },
                // SAFETY: the same, and the caller's promise.
                Target::Datums(appender) => match unsafe { appender.push(row, &mut values) }? {
                    Outcome::Pushed(bytes) => {
                        row_bytes += bytes as u64;
                        if row_bytes > row_bytes_max {
                            return Err(Failure::row_too_large(row_bytes_max));
                        }
                    }
                    Outcome::Plain => stopped = Some((at, Step::Plain(at))),
                    Outcome::Sent => stopped = Some((at, Step::Sent(at))),
                },
                Target::Sent(number) if null => self.sent.columns()[*number].push_null()?,
                Target::Sent(_) => stopped = Some((at, Step::Sent(at))),
            }
            if stopped.is_some() {
                break;
            }
        }
        self.row_bytes = row_bytes;
        match stopped {
            Some((at, wanted)) => {
                self.next = at;
                Ok(wanted)
            }
            None => self.close_row(),
        }
    }

    #[cold]
    fn make_room(&mut self) -> Result<(), Failure> {
        let wanted = self.rows_hint.max(self.rows_room * 2);
        let rows = wanted.min(self.rows_room_max).max(self.waiting_rows + 1);
        for target in &mut self.targets {
            if let Target::Datums(appender) = target {
                // SAFETY: the rows that wait have a value in each column.
                unsafe { appender.reserve(self.waiting_rows, rows)? };
            }
        }
        self.rows_room = rows;
        Ok(())
    }

    /// Appends the value of the column that the row stopped at, as its function made it.
    pub(crate) fn push_sent(&mut self, value: &[u8]) -> Result<(), Failure> {
        let at = self.next;
        match self.targets.get_mut(at) {
            Some(Target::Sent(number)) => {
                let number = *number;
                let before = self.sent.columns()[number].bytes();
                let builder = &mut self.sent.columns()[number];
                let pushed = self.columns[at].push(builder, Some(value));
                let bytes = builder.bytes() - before;
                pushed.map_err(|error| self.describe(at, error))?;
                self.row_bytes += bytes as u64;
                if self.row_bytes > self.settings.limits.row_bytes_max {
                    return Err(Failure::row_too_large(self.settings.limits.row_bytes_max));
                }
            }
            Some(Target::Datums(appender)) => {
                // A value that its column does not have: it is an error, or becomes NULL.
                let field = self.schema.fields[at].clone();
                let mut alone = BatchBuilder::new(Schema { fields: vec![field] })?;
                let pushed = self.columns[at].push(&mut alone.columns()[0], Some(value));
                // SAFETY: the row began with room for it.
                unsafe { appender.push_null(self.waiting_rows)? };
                pushed.map_err(|error| self.describe(at, error))?;
                alone.close_row()?;
                if alone.finish()?.batch().columns[0].missing() != 1 {
                    let name = &self.schema.fields[at].name;
                    return Err(Failure::Internal(format!(
                        "column {name:?}: a value was not read that has a place"
                    )));
                }
            }
            None => {
                return Err(Failure::Internal("a value for a column that is not there".to_owned()));
            }
        }
        self.next += 1;
        Ok(())
    }

    fn describe(&self, column: usize, error: dray_pgtypes::Error) -> Failure {
        if interrupts::pending() {
            return Failure::Interrupted;
        }
        let (name, row) =
            (&self.schema.fields[column].name, self.rows + self.waiting_rows as u64 + 1);
        let text = format!("column {name:?}, row {row}: {error}");
        match error {
            dray_pgtypes::Error::Unrepresentable(_) => Failure::Value(text),
            dray_pgtypes::Error::Malformed(_) => Failure::Internal(text),
            dray_pgtypes::Error::Format(error) => error.into(),
        }
    }

    #[inline]
    fn close_row(&mut self) -> Result<Step, Failure> {
        if !self.sent.columns().is_empty() {
            self.sent.close_row()?;
        }
        self.next = 0;
        self.waiting_rows += 1;
        let row_bytes = std::mem::take(&mut self.row_bytes);
        self.waiting_bytes += row_bytes;
        self.largest_row_bytes = self.largest_row_bytes.max(row_bytes);
        let ready = self.workers.as_ref().is_some_and(Workers::is_ready);
        Ok(if ready || self.is_full() { Step::Full } else { Step::Done })
    }

    /// Whether the waiting rows fill a chunk.
    #[inline]
    fn is_full(&self) -> bool {
        let rows = self.waiting_rows as u64;
        let bytes = self.waiting_bytes + self.largest_row_bytes + (rows + 1) * self.row_bits / 8;
        bytes > self.making.plain_bytes_max || self.waiting_rows >= self.chunk_rows
    }

    /// Takes the waiting rows out.
    fn take_rows(&mut self) -> Result<Batch, Failure> {
        let rows = std::mem::take(&mut self.waiting_rows);
        self.rows_room = 0;
        // The next chunk will have about as many.
        self.rows_hint = rows + rows / 16 + 1;
        self.waiting_bytes = 0;
        self.largest_row_bytes = 0;
        let mut sent = match self.sent.columns().is_empty() {
            true => Vec::new(),
            false => self.sent.finish()?.into_batch().columns,
        }
        .into_iter();
        let mut columns = Vec::with_capacity(self.targets.len());
        for target in &mut self.targets {
            columns.push(match target {
                // SAFETY: each row that waited has a value in each column.
                Target::Datums(appender) => unsafe { appender.finish(rows)? },
                Target::Sent(_) => {
                    let missing = || Failure::Internal("a column has no values".to_owned());
                    sent.next().ok_or_else(missing)?
                }
            });
        }
        Ok(Batch { rows, columns })
    }

    /// The next chunk that is to be sent now, behind its state frame; none when more rows must
    /// come. The last rows need not fill theirs.
    pub(crate) fn next_chunk(&mut self, is_last: bool) -> Result<Option<Frame<'_>>, Failure> {
        self.account_for_sent();
        self.head.clear();
        self.parts.clear();
        let Some(chunk) = self.next_made(is_last)? else { return Ok(None) };
        if let Some(adaptive) = &self.making.adaptive {
            self.chunk_rows = self.settings.chunk_rows.min(adaptive.chunk_rows());
        }
        let bytes = chunk.state_bytes() + chunk.chunk_bytes();
        self.parts = self.session.chunk(chunk, &mut self.head)?;
        self.sending.handed_out = Some((Instant::now(), bytes));
        Ok(Some((&self.head, &self.parts)))
    }

    /// Begins the chunks of the waiting rows, or makes them here, until there is one to be sent.
    fn next_made(&mut self, is_last: bool) -> Result<Option<Chunk>, Failure> {
        loop {
            let waiting = match self.cutting.take() {
                Some(rest) => rest,
                None if self.waiting_rows > 0 && (is_last || self.is_full()) => self.take_rows()?,
                None if is_last || self.workers.as_ref().is_some_and(Workers::is_ready) => {
                    return self.take_made();
                }
                None => return Ok(None),
            };
            let rows = self.making.rows_that_fit(&waiting, self.chunk_rows);
            let batch = waiting.slice(0, rows);
            let is_end = is_last && rows == waiting.rows;
            if !self.is_for_workers(&batch, is_end)? {
                // Chunks leave in the order of their rows.
                if let Some(before) = self.take_made()? {
                    self.cutting = Some(waiting);
                    return Ok(Some(before));
                }
                self.cut(waiting, rows);
                return self.make_here(batch).map(Some);
            }
            self.cut(waiting, rows);
            let is_full = self.workers.as_ref().is_some_and(Workers::is_full);
            let before = if is_full { self.take_made()? } else { None };
            let maker = self.maker()?;
            if let Some(workers) = &mut self.workers {
                workers.begin((maker, batch));
            }
            if before.is_some() {
                return Ok(before);
            }
        }
    }

    /// Keeps what is left behind the first rows, which a chunk is made of.
    fn cut(&mut self, waiting: Batch, rows: usize) {
        self.plain_bytes = self.plain_bytes.saturating_add(waiting.plain_bytes(0, rows));
        self.cutting = (rows < waiting.rows).then(|| waiting.slice(rows, waiting.rows - rows));
        self.rows += rows as u64;
    }

    /// Whether a worker is to make the chunk of these rows. Workers are started when the second
    /// chunk is full: most results are smaller.
    fn is_for_workers(&mut self, batch: &Batch, is_end: bool) -> Result<bool, Failure> {
        if self.rows == 0 || !self.making.takes_long(batch.plain_bytes(0, batch.rows)) {
            return Ok(false);
        }
        if self.threads > 0 && !is_end {
            let threads = std::mem::take(&mut self.threads);
            self.start_workers(threads)?;
        }
        // At the end nothing is left to be done meanwhile.
        Ok(self.workers.as_ref().is_some_and(|workers| !is_end || workers.under_way() > 0))
    }

    /// Where memory or threads are short, there are none: chunks are then made here.
    fn start_workers(&mut self, threads: usize) -> Result<(), Failure> {
        let chunk_bytes = self.making.bytes_needed(self.making.plain_bytes_max);
        let others = self.reserve_bytes + self.making.tables_bytes(u64::MAX);
        let bytes = chunk_bytes.and_then(|bytes| bytes.checked_mul(threads)?.checked_add(others));
        if bytes.is_some_and(reserve::prepare) {
            self.workers = Workers::start(threads, |(maker, batch): Job| maker.make(batch));
        } else if !reserve::prepare(self.reserve_bytes) {
            return Err(Failure::Memory);
        }
        Ok(())
    }

    /// Waits for the chunk whose turn it is; none if none is under way.
    fn take_made(&mut self) -> Result<Option<Chunk>, Failure> {
        let Some(workers) = &mut self.workers else { return Ok(None) };
        let started = Instant::now();
        let Some(made) = workers.next() else { return Ok(None) };
        let waited = started.elapsed();
        self.times.encode_here += waited;
        if let Some(adaptive) = &self.making.adaptive {
            adaptive.starved(waited);
            self.sending.starved += waited;
        }
        let made = made.map_err(|panic| Failure::Internal(panic_text(&*panic)))?;
        self.times.encode += made.took;
        self.makers.push(made.maker);
        made.chunk.map(Some)
    }

    fn make_here(&mut self, batch: Batch) -> Result<Chunk, Failure> {
        // Workers have nothing to do now: only then may the reserve move.
        let needed = self.making.bytes_needed(batch.plain_bytes(0, batch.rows));
        let needed =
            needed.and_then(|bytes| bytes.checked_add(self.making.tables_bytes(self.plain_bytes)));
        if !needed.is_some_and(reserve::prepare) {
            return Err(Failure::Memory);
        }
        let made = self.maker()?.make(batch);
        self.times.encode += made.took;
        self.times.encode_here += made.took;
        self.makers.push(made.maker);
        made.chunk
    }

    fn maker(&mut self) -> Result<Maker, Failure> {
        self.makers.pop().ok_or_else(|| Failure::Internal("no maker of chunks is left".to_owned()))
    }

    /// The server asks for the next chunk as soon as it has sent this one.
    fn account_for_sent(&mut self) {
        let Some((handed_out, bytes)) = self.sending.handed_out.take() else { return };
        let Some(adaptive) = &self.making.adaptive else { return };
        let now = Instant::now();
        let waited = now.duration_since(handed_out);
        if self.workers.is_some() {
            // Rows that are read meanwhile keep this thread from sending, too: only where it waits
            // for workers is encoding what's slow.
            let span = now.duration_since(self.sending.since).saturating_sub(self.sending.starved);
            let delivery = self.sending.meter.as_mut().and_then(SocketMeter::take);
            adaptive.sent(
                span,
                delivery.unwrap_or(Delivery {
                    bytes,
                    busy: waited,
                    receiver_limited: Duration::ZERO,
                }),
            );
        } else {
            adaptive.sent_inline(bytes, waited);
        }
        self.sending.since = now;
        self.sending.starved = Duration::ZERO;
    }

    /// Ends the workers, because nobody will ask for chunks any more.
    pub(crate) fn stop(&mut self) {
        self.workers = None;
    }

    /// The frame that ends the stream, after the last chunk.
    pub(crate) fn finish(&mut self, socket_ns: u64, total_ns: u64) -> Result<Frame<'_>, Failure> {
        let [encode_ns, encode_here_ns] =
            [self.times.encode, self.times.encode_here].map(nanoseconds);
        let others_ns = [encode_here_ns, socket_ns, self.settings.plan_ns];
        let execute_ns = others_ns.into_iter().fold(total_ns, u64::saturating_sub);
        let times = Finished { execute_ns, encode_ns, socket_ns, total_ns, ..Finished::default() };
        self.head.clear();
        self.parts.clear();
        self.session.finished(times, &mut self.head)?;
        Ok((&self.head, &self.parts))
    }
}

/// What a value takes whatever it is, in eighths of a byte, its mask included.
fn fixed_bits(data_type: &Type) -> u64 {
    1 + match data_type {
        Type::Null => 0,
        Type::Boolean => 1,
        Type::Struct(fields) => fields.iter().map(|field| fixed_bits(&field.data_type)).sum(),
        Type::Utf8 | Type::Binary | Type::List(_) | Type::Map { .. } => 32,
        other => other.width().unwrap_or(0) as u64 * 8,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
