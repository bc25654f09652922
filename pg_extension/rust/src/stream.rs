//! One result: rows in, frames out.

use std::time::Instant;

use bytes::Bytes;
use dray_format::{Batch, BatchBuilder, COUNT_MAX, Chunk, Compression, Error, Schema, Type};
use dray_format::{chunk_bytes_bound, write};
use dray_pgtypes::{Column, Format, PgType};
use dray_wire::{Estimate, Finished, Known, ServerSession, Started};

use crate::datum::{Outcome, Read, push, read_of};
use crate::reserve;
use crate::settings::{Settings, chosen, writer_compression};

/// The number of the statement in the frames: a COPY has only one.
const STATEMENT: u32 = 1;
/// The largest chunks of several rows, whatever the client accepts: then none of their counts is over [`COUNT_MAX`].
const CHUNK_BYTES_MAX: u64 = COUNT_MAX as u64 / 8;
/// What encoding allocates at most, as a multiple of the plain bytes, and beside them.
const ENCODE_BYTES_FACTOR: u64 = 8;
const ENCODE_BYTES: u64 = 8 << 20;
/// The same for a value that comes as text or bytes: an array of one-digit items has a vector for each of them.
const SENT_BYTES_FACTOR: usize = 64;

/// Why a stream ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Memory is short.
    Memory,
    /// A row is larger than the client accepts, or a column than a chunk can hold.
    Limit(String),
    /// A value that its column can't hold; the column's name and the row are in the text.
    Value(String),
    /// A mistake of ours.
    Internal(String),
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

struct Source {
    read: Read,
    column: Column,
}

/// A result under way.
pub(crate) struct Stream {
    settings: Settings,
    compression: Compression,
    sources: Vec<Source>,
    batch: BatchBuilder,
    session: ServerSession,
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
    pub(crate) fn open(settings: Settings, columns: &[(String, PgType, bool)]) -> Result<Self, Failure> {
        let mut sources = Vec::with_capacity(columns.len());
        let mut fields = Vec::with_capacity(columns.len());
        for (name, pg_type, not_null) in columns {
            let column = Column::new(name, pg_type, &settings.options);
            let mut field = column.field().clone();
            // A value that Arrow does not have may become NULL in any column.
            field.nullable = !not_null || settings.options.nonfinite == dray_pgtypes::NonFinite::Null;
            sources.push(Source { read: read_of(pg_type, &field.data_type, settings.is_utf8), column });
            fields.push(field);
        }
        let schema = Schema { fields };
        let row_bits = schema.fields.iter().map(|field| fixed_bits(&field.data_type)).sum();
        let nodes = schema.nodes();
        let fixed = chunk_bytes_bound(nodes, 0);
        let chunk_bytes_max = settings.limits.chunk_bytes_max.min(CHUNK_BYTES_MAX);
        // The inverse of `chunk_bytes_bound`; that is asked again before a chunk is made.
        let plain_bytes_max = (chunk_bytes_max.saturating_sub(fixed) / 65 * 64).min(settings.limits.decoded_bytes_max);
        Ok(Self {
            compression: writer_compression(settings.compression),
            settings,
            sources,
            batch: BatchBuilder::new(schema)?,
            session: ServerSession::running(STATEMENT),
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
        self.sources[column].column.format()
    }

    /// The frame that opens the stream.
    pub(crate) fn start(&mut self) -> Result<(&[u8], &[Bytes]), Failure> {
        let started = Started {
            statement: STATEMENT,
            schema: self.batch.schema().clone(),
            estimate: Estimate { rows: Known::Estimate(self.settings.rows_estimate), bytes: Known::default() },
            compression: chosen(self.settings.compression),
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
    /// `datums` and `nulls` have a value for each column, and the datums are of the columns' types.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, datums: &[usize], nulls: &[u8]) -> Result<Step, Failure> {
        let builders = self.batch.columns();
        for at in self.next..builders.len() {
            let builder = &mut builders[at];
            if nulls[at] != 0 {
                builder.push_null()?;
                continue;
            }
            // SAFETY: the caller's promise.
            let outcome = unsafe { push(self.sources[at].read, builder, datums[at]) };
            match outcome {
                Ok(Outcome::Pushed(bytes)) => self.row_bytes += bytes as u64,
                Ok(wanted) => {
                    self.next = at;
                    return Ok(if wanted == Outcome::Plain { Step::Plain(at) } else { Step::Sent(at) });
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.close_row()
    }

    /// Appends the value of the column that the row stopped at, as its function made it.
    pub(crate) fn push_sent(&mut self, value: &[u8]) -> Result<(), Failure> {
        let at = self.next;
        let (Some(source), Some(builder)) = (self.sources.get(at), self.batch.columns().get_mut(at)) else {
            return Err(Failure::Internal("a value for a column that is not there".to_owned()));
        };
        let before = builder.bytes();
        let needed = value.len().saturating_mul(SENT_BYTES_FACTOR).saturating_add(before.saturating_mul(2));
        if needed > reserve::RESERVE_BYTES_MIN / 2 && !reserve::prepare(needed.saturating_mul(2)) {
            return Err(Failure::Memory);
        }
        let pushed = source.column.push(builder, Some(value));
        let bytes = builder.bytes() - before;
        pushed.map_err(|error| self.describe(at, error))?;
        self.row_bytes += bytes as u64;
        self.next += 1;
        Ok(())
    }

    fn describe(&self, column: usize, error: dray_pgtypes::Error) -> Failure {
        let name = &self.sources[column].column.field().name;
        let text = format!("column {name:?}, row {}: {error}", self.rows + self.batch.rows() as u64 + 1);
        match error {
            dray_pgtypes::Error::Unrepresentable(_) => Failure::Value(text),
            dray_pgtypes::Error::Malformed(_) => Failure::Internal(text),
            dray_pgtypes::Error::Format(error) => error.into(),
        }
    }

    #[inline]
    fn close_row(&mut self) -> Result<Step, Failure> {
        self.batch.close_row()?;
        self.next = 0;
        let row_bytes = std::mem::take(&mut self.row_bytes);
        self.waiting_bytes += row_bytes;
        self.largest_row_bytes = self.largest_row_bytes.max(row_bytes);
        let rows = self.batch.rows();
        let bytes = self.waiting_bytes + self.largest_row_bytes + (rows as u64 + 1) * self.row_bits / 8;
        let full = bytes > self.plain_bytes_max || rows >= self.settings.chunk_rows;
        Ok(if full { Step::Full } else { Step::Done })
    }

    /// The next chunk of the rows that have come; none when there are no more.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<(&[u8], &[Bytes])>, Failure> {
        let started = Instant::now();
        self.head.clear();
        self.parts.clear();
        let waiting = match self.cutting.take() {
            Some(rest) => rest,
            None if self.batch.rows() == 0 => return Ok(None),
            None => {
                self.waiting_bytes = 0;
                self.largest_row_bytes = 0;
                self.batch.finish()?.into_batch()
            }
        };
        let rows = self.rows_that_fit(&waiting);
        let chunk = self.encode(waiting.slice(0, rows))?;
        if rows < waiting.rows {
            self.cutting = Some(waiting.slice(rows, waiting.rows - rows));
        }
        self.rows += rows as u64;
        self.parts = self.session.chunk(chunk, &mut self.head)?;
        self.encode_ns += nanoseconds(started);
        Ok(Some((&self.head, &self.parts)))
    }

    /// The frame that ends the stream, after the last chunk.
    pub(crate) fn finish(&mut self, socket_ns: u64, total_ns: u64) -> Result<(&[u8], &[Bytes]), Failure> {
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
            && plain_bytes <= limits.decoded_bytes_max
    }

    /// How many rows the next chunk takes: as many as fit, and at least one.
    fn rows_that_fit(&self, batch: &Batch) -> usize {
        let rows_max = batch.rows.min(self.settings.chunk_rows);
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

    fn encode(&self, batch: Batch) -> Result<Chunk, Failure> {
        let (limits, checksums) = (&self.settings.limits, self.settings.checksums);
        let plain_bytes = batch.plain_bytes(0, batch.rows);
        let (rows, fits) = (batch.rows, self.fits(plain_bytes));
        // The writer can't fail for want of memory, so it is put aside here.
        let needed = plain_bytes.saturating_mul(ENCODE_BYTES_FACTOR).saturating_add(ENCODE_BYTES);
        if !usize::try_from(needed).is_ok_and(reserve::prepare) {
            return Err(Failure::Memory);
        }
        let pieces = [batch];
        let chunk = |jumbo| write(self.batch.schema(), &pieces, self.compression, checksums, jumbo);
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
