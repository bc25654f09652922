//! One result: rows in, frames out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_format::{
    Batch, BatchBuilder, COUNT_MAX, Chunk, Compression, Encoder, Error, Schema, Type, chunk_bytes_bound,
};
use dray_pgtypes::{Column, Format, NonFinite, PgType};
use dray_transfer::Adaptive;
use dray_wire::{CompressionChoice, Estimate, Finished, Known, ServerSession, Started};

use crate::appender::{Appender, Outcome};
use crate::datum::{Read, Row};
use crate::interrupts;
use crate::reserve;
use crate::settings::{LEVEL_MAX, Settings, writer_compression};

/// The number of the statement in the frames: a COPY has only one.
const STATEMENT: u32 = 1;
/// The largest chunks of several rows, whatever the client accepts: then none of their counts is over [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// Room for so many rows is made first, and then twice as much each time.
const ROWS_ROOM_MIN: usize = 256;
/// Where the price of a byte begins where the stream adapts: at 1 Gbit/s.
const PRICE_NS: f64 = 8.0;
/// What writing a chunk allocates at most, as a multiple of the plain bytes, and beside them: copies without gaps, and, where
/// it is encoded, dictionaries and what did not pay.
const PLAIN_BYTES_FACTOR: u64 = 4;
const ENCODE_BYTES_FACTOR: u64 = 8;
const ENCODE_BYTES: u64 = 16 << 20;
/// The plain bytes of a chunk that is encoded, by the level of zstd from which they hold, whatever the client accepts: nothing interrupts the
/// encoding of a chunk, so it has to end within a second. The last are those of everything that is faster.
const PLAIN_BYTES_MAX: [(i32, u64); 3] = [(16, 1 << 20), (8, 4 << 20), (i32::MIN, 16 << 20)];
/// Those of a chunk that is not encoded: what was appended is still in the processor's cache when it is copied to the socket.
const UNENCODED_BYTES_MAX: u64 = 1 << 20;
/// Rows that are larger than a chunk are compressed at this level at most,
const LARGE_ROW_LEVEL: i32 = 1;
/// and those over this size not at all.
const COMPRESSED_ROW_BYTES_MAX: u64 = 256 << 20;

/// The first bytes of a frame, and what follows them.
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
    /// A mistake of ours.
    Internal(String),
}

impl Failure {
    /// A row that is not whole yet, so that nobody knows how much it needs.
    #[cold]
    pub(crate) fn row_too_large(row_bytes_max: u64) -> Self {
        Self::Limit(format!("a row needs over {row_bytes_max} bytes, which is the limit; raise row_bytes_max"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            dray_format::ErrorKind::Limit => Self::Limit(error.to_string()),
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
    /// The value of this column must come as its send function (or output function, as [`Stream::format`] says) makes it.
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
    compression: Compression,
    encoder: Encoder,
    /// Where the client is on another host, and named no compression.
    adaptive: Option<Adaptive>,
    /// When the last chunk was handed out to be sent, and its bytes.
    handed_out: Option<(Instant, u64)>,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    targets: Vec<Target>,
    /// The columns that are sent. A datum that is not an ordinary one comes to its column this way too.
    sent: BatchBuilder,
    /// Rows that are waiting for their chunk to fill, and for how many there is room.
    waiting_rows: usize,
    rows_room: usize,
    rows_hint: usize,
    rows_room_max: usize,
    session: ServerSession,
    /// How many rows end a chunk now.
    chunk_rows: usize,
    nodes: usize,
    /// The values of a row that have a fixed width, with offsets and masks, in eighths of a byte.
    row_bits: u64,
    /// The plain bytes that a chunk may have.
    plain_bytes_max: u64,
    /// The variable bytes of the rows that are waiting.
    waiting_bytes: u64,
    row_bytes: u64,
    largest_row_bytes: u64,
    /// The column at which the row goes on.
    next: usize,
    /// Rows that are being cut into chunks.
    cutting: Option<Batch>,
    rows: u64,
    head: Vec<u8>,
    parts: Vec<Bytes>,
    encode_ns: u64,
}

impl Stream {
    /// A stream of columns with these names and types; those that are not nullable come with `true`.
    pub(crate) fn open(settings: Settings, described: &[(String, PgType, bool)]) -> Result<Self, Failure> {
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
        let compression = writer_compression(settings.compression);
        let adaptive = (settings.compression == CompressionChoice::Auto)
            .then(|| Adaptive::new(&schema, PRICE_NS, Duration::ZERO, LEVEL_MAX));
        let encoder = Encoder::new(schema.clone(), settings.checksums);
        let row_bits: u64 = schema.fields.iter().map(|field| fixed_bits(&field.data_type)).sum();
        let nodes = schema.nodes();
        let chunk_bytes_max = settings.limits.chunk_bytes_max.min(CHUNK_BYTES_MAX);
        // The inverse of `chunk_bytes_bound`; that is asked again before a chunk is made.
        let plain_bytes_max = (chunk_bytes_max.saturating_sub(chunk_bytes_bound(nodes, 0)) / 65 * 64)
            .min(settings.limits.decoded_bytes_max)
            .min(encoded_at_once(compression));
        let row_bytes_max = usize::try_from(settings.limits.row_bytes_max).unwrap_or(usize::MAX);
        // A little more is asked for than is written.
        let waiting_bytes_max = usize::try_from(plain_bytes_max).unwrap_or(usize::MAX).saturating_add(64 << 10);
        let mut sent = BatchBuilder::with_interrupts(Schema { fields: sent }, Some(interrupts::pending))?;
        sent.set_bytes_max(row_bytes_max, waiting_bytes_max);
        let targets = targets.into_iter().map(|read| match read {
            Ok(read) => Target::Datums(Appender::new(read, row_bytes_max, waiting_bytes_max)),
            Err(number) => Target::Sent(number),
        });
        // A chunk is full at the latest when the fixed part of its rows fills it.
        let chunk_rows = adaptive.as_ref().map_or(usize::MAX, Adaptive::rows).min(settings.chunk_rows);
        let rows_that_fill = usize::try_from(plain_bytes_max * 8 / row_bits.max(1) + 2).unwrap_or(usize::MAX);
        Ok(Self {
            compression,
            encoder,
            adaptive,
            handed_out: None,
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
            nodes,
            row_bits,
            plain_bytes_max,
            waiting_bytes: 0,
            row_bytes: 0,
            largest_row_bytes: 0,
            next: 0,
            cutting: None,
            rows: 0,
            head: Vec::new(),
            parts: Vec::new(),
            encode_ns: 0,
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
            schema: self.schema.clone(),
            estimate: Estimate { rows: Known::Estimate(self.settings.rows_estimate), bytes: Known::default() },
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
                    return Err(Failure::Internal(format!("column {name:?}: a value was not read that has a place")));
                }
            }
            None => return Err(Failure::Internal("a value for a column that is not there".to_owned())),
        }
        self.next += 1;
        Ok(())
    }

    fn describe(&self, column: usize, error: dray_pgtypes::Error) -> Failure {
        if interrupts::pending() {
            return Failure::Interrupted;
        }
        let (name, row) = (&self.schema.fields[column].name, self.rows + self.waiting_rows as u64 + 1);
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
        let rows = self.waiting_rows as u64;
        let bytes = self.waiting_bytes + self.largest_row_bytes + (rows + 1) * self.row_bits / 8;
        let full = bytes > self.plain_bytes_max || self.waiting_rows >= self.chunk_rows;
        Ok(if full { Step::Full } else { Step::Done })
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

    /// The next chunk of the rows that have come; none when there are no more.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Frame<'_>>, Failure> {
        let started = Instant::now();
        if let (Some(adaptive), Some((since, bytes))) = (&self.adaptive, self.handed_out.take()) {
            // The server asks for the next chunk as soon as it has sent this one.
            adaptive.sent_alone(bytes, started.duration_since(since));
        }
        self.head.clear();
        self.parts.clear();
        let waiting = match self.cutting.take() {
            Some(rest) => rest,
            None if self.waiting_rows == 0 => return Ok(None),
            None => self.take_rows()?,
        };
        let rows = self.rows_that_fit(&waiting);
        let chunk = self.encode(waiting.slice(0, rows))?;
        if rows < waiting.rows {
            self.cutting = Some(waiting.slice(rows, waiting.rows - rows));
        }
        self.rows += rows as u64;
        if let Some(adaptive) = &self.adaptive {
            self.chunk_rows = self.settings.chunk_rows.min(adaptive.rows());
        }
        let chunk_bytes = chunk.chunk_bytes();
        self.parts = self.session.chunk(chunk, &mut self.head)?;
        self.encode_ns += nanoseconds(started);
        self.handed_out = Some((Instant::now(), chunk_bytes));
        Ok(Some((&self.head, &self.parts)))
    }

    /// The frame that ends the stream, after the last chunk.
    pub(crate) fn finish(&mut self, socket_ns: u64, total_ns: u64) -> Result<Frame<'_>, Failure> {
        let encode_ns = self.encode_ns;
        let execute_ns =
            total_ns.saturating_sub(encode_ns).saturating_sub(socket_ns).saturating_sub(self.settings.plan_ns);
        let times = Finished { execute_ns, encode_ns, socket_ns, total_ns, ..Finished::default() };
        self.head.clear();
        self.parts.clear();
        self.session.finished(times, &mut self.head)?;
        Ok((&self.head, &self.parts))
    }

    fn fits(&self, plain_bytes: u64) -> bool {
        let limits = &self.settings.limits;
        chunk_bytes_bound(self.nodes, plain_bytes) <= limits.chunk_bytes_max.min(CHUNK_BYTES_MAX)
            && plain_bytes <= limits.decoded_bytes_max.min(encoded_at_once(self.compression))
    }

    /// How many rows the next chunk takes: as many as fit, and at least one.
    fn rows_that_fit(&self, batch: &Batch) -> usize {
        let rows_max = batch.rows.min(self.chunk_rows);
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

    fn encode(&mut self, batch: Batch) -> Result<Chunk, Failure> {
        let limits = self.settings.limits;
        let plain_bytes = batch.plain_bytes(0, batch.rows);
        let (rows, fits) = (batch.rows, self.fits(plain_bytes));
        let compression = match self.compression {
            _ if plain_bytes > COMPRESSED_ROW_BYTES_MAX => Compression::Compact,
            Compression::Zstd(level) if !fits => Compression::Zstd(level.min(LARGE_ROW_LEVEL)),
            chosen => chosen,
        };
        // The writer can't fail for want of memory, so it is put aside here.
        let factor = match compression {
            Compression::Compact => PLAIN_BYTES_FACTOR,
            _ => ENCODE_BYTES_FACTOR,
        };
        let needed = plain_bytes.saturating_mul(factor).saturating_add(ENCODE_BYTES);
        if !usize::try_from(needed).is_ok_and(reserve::prepare) {
            return Err(Failure::Memory);
        }
        let pieces = [batch];
        if let Some(adaptive) = self.adaptive.as_ref().filter(|_| fits || rows > 1) {
            let plan = adaptive.plan(plain_bytes);
            let column = |i| match plan.compression(i) {
                Compression::None => Compression::Compact,
                other => other,
            };
            let chunk = self.encoder.write(&pieces, column, false)?;
            adaptive.written(&plan, &chunk);
            return Ok(chunk);
        }
        let mut chunk = |jumbo| self.encoder.write(&pieces, |_| compression, jumbo);
        if fits || rows > 1 {
            return Ok(chunk(false)?);
        }
        // One row that may be too large: only its chunk knows.
        let single = chunk(false)?;
        if single.chunk_bytes() <= limits.chunk_bytes_max && single.decoded_bytes() <= limits.decoded_bytes_max {
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

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
