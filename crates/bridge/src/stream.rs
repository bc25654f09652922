//! An Arrow IPC stream from a process that is not trusted.
//!
//! ```text
//!   ┌ FFFFFFFF ┬ length ┬ header (flatbuffer) ┬ body ┐  …  ┌ FFFFFFFF ┬ 00000000 ┐
//!   └──────────┴────────┴─────────────────────┴──────┘     └──────────┴──────────┘ the end's mark
//! ```
//!
//! Lengths are checked before anything is allocated, and memory grows only by bytes that have come.
//! Arrow's decoder then validates all values. If it panics all the same, the stream is refused.

mod check;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::MessageHeader;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};

pub use self::check::HEADER_BYTES_MAX;

/// What comes before a header.
const PREFIX_BYTES: usize = 8;
const CONTINUATION: [u8; 4] = [0xFF; 4];

/// How large the parts of a stream may be.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// The rows of a batch.
    pub batch_rows: usize,
    /// The bytes of a batch, and of all dictionaries together.
    pub body_bytes: usize,
}

/// A stream that can't be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamError(String);

impl StreamError {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StreamError {}

/// A part of a stream.
#[derive(Debug)]
pub enum Part {
    /// The columns, which come first.
    Schema(SchemaRef),
    /// Rows.
    Batch(RecordBatch),
    /// The end's mark. Nothing may follow.
    End,
}

/// Decodes a stream whose bytes come in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    limits: StreamLimits,
    state: State,
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The bytes of each dictionary's body.
    dictionary_bytes: HashMap<i64, usize>,
}

#[derive(Debug)]
enum State {
    Prefix(Wanted),
    Header(Wanted),
    /// The header, and the body.
    Body(Buffer, Wanted),
    Ended,
}

/// Bytes that a part must have.
#[derive(Debug)]
struct Wanted {
    bytes: MutableBuffer,
    length: usize,
}

impl Wanted {
    fn new(length: usize) -> Self {
        Self { bytes: MutableBuffer::default(), length }
    }

    /// Takes what is wanted from the front of the input; all of it, once it is there.
    fn take(&mut self, input: &mut &[u8]) -> Option<Buffer> {
        let missing = self.length.saturating_sub(self.bytes.len());
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.bytes.extend_from_slice(taken);
        *input = rest;
        (self.bytes.len() == self.length).then(|| std::mem::take(&mut self.bytes).into())
    }
}

impl Decoder {
    /// Of a stream whose parts are no larger than `limits`.
    pub fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            state: State::Prefix(Wanted::new(PREFIX_BYTES)),
            schema: None,
            dictionaries: HashMap::new(),
            dictionary_bytes: HashMap::new(),
        }
    }

    /// Whether the end's mark has come.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes bytes from the front of `input` until a part is whole; None if all are taken before.
    ///
    /// # Errors
    /// If the stream can't be right. It can't be read further.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Part>, StreamError> {
        loop {
            let part = match &mut self.state {
                State::Prefix(wanted) => {
                    let Some(prefix) = wanted.take(input) else { return Ok(None) };
                    self.prefix(&prefix)?
                }
                State::Header(wanted) => {
                    let Some(header) = wanted.take(input) else { return Ok(None) };
                    let body = check::body_bytes(&header, &self.limits)?;
                    self.state = State::Body(header, Wanted::new(body));
                    None
                }
                State::Body(header, wanted) => {
                    let Some(body) = wanted.take(input) else { return Ok(None) };
                    let header = header.clone();
                    self.state = State::Prefix(Wanted::new(PREFIX_BYTES));
                    self.message(&header, &body)?
                }
                State::Ended if input.is_empty() => return Ok(None),
                State::Ended => return Err(StreamError::new("bytes after the end of the stream")),
            };
            if part.is_some() {
                return Ok(part);
            }
        }
    }

    fn prefix(&mut self, prefix: &[u8]) -> Result<Option<Part>, StreamError> {
        let length = prefix.strip_prefix(&CONTINUATION).and_then(|rest| rest.try_into().ok());
        let Some(length) = length.map(u32::from_le_bytes) else {
            return Err(StreamError::new("a message that does not begin as one"));
        };
        if length == 0 {
            if self.schema.is_none() {
                return Err(StreamError::new("an end without a schema"));
            }
            self.state = State::Ended;
            return Ok(Some(Part::End));
        }
        match usize::try_from(length) {
            Ok(length) if length <= HEADER_BYTES_MAX => {
                self.state = State::Header(Wanted::new(length));
                Ok(None)
            }
            _ => Err(StreamError::new(format!("a message with a header of {length} bytes"))),
        }
    }

    /// A whole message, whose lengths are not yet checked.
    fn message(&mut self, header: &[u8], body: &Buffer) -> Result<Option<Part>, StreamError> {
        let message = check::message(header)?;
        let version = message.version();
        match (message.header_type(), &self.schema) {
            (MessageHeader::Schema, None) => {
                let header = check::schema(&message)?;
                let schema: SchemaRef = catch_panic(|| Ok(Arc::new(fb_to_schema(header))))?;
                values::check_types(&schema)?;
                self.schema = Some(schema.clone());
                Ok(Some(Part::Schema(schema)))
            }
            (MessageHeader::RecordBatch, Some(schema)) => {
                let header = check::batch(message.header_as_record_batch(), body)?;
                check::rows(&header, &self.limits)?;
                let batch = catch_panic(|| {
                    let (schema, dictionaries) = (schema.clone(), &self.dictionaries);
                    RecordBatchDecoder::try_new(body, header, schema, dictionaries, &version)?
                        .read_record_batch()
                })?;
                for column in batch.columns() {
                    values::check(column, self.limits.body_bytes)?;
                }
                Ok(Some(Part::Batch(batch)))
            }
            (MessageHeader::DictionaryBatch, Some(schema)) => {
                let header = check::dictionary(&message, body)?;
                let id = header.id();
                self.dictionary_bytes.insert(id, body.len());
                let total = self
                    .dictionary_bytes
                    .values()
                    .fold(0, |sum: usize, bytes| sum.saturating_add(*bytes));
                if total > self.limits.body_bytes {
                    return Err(StreamError::new(format!("dictionaries of {total} bytes")));
                }
                catch_panic(|| {
                    read_dictionary(body, header, schema, &mut self.dictionaries, &version)
                })?;
                if let Some(entries) = self.dictionaries.get(&id) {
                    values::check(entries, self.limits.body_bytes)?;
                }
                Ok(None)
            }
            (MessageHeader::Schema, Some(_)) => Err(StreamError::new("a second schema")),
            (_, None) => Err(StreamError::new("a message before the schema")),
            _ => Err(StreamError::new("a message of a kind that is not allowed")),
        }
    }
}

/// Runs Arrow's decoder, and turns a panic into an error.
fn catch_panic<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, StreamError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|cause| StreamError::new(cause.to_string())),
        Err(_) => Err(StreamError::new("a message that can't be decoded")),
    }
}

/// The stream of one batch.
///
/// # Errors
/// If a column has no counterpart in it.
pub(crate) fn encode_one(batch: &RecordBatch) -> io::Result<Vec<u8>> {
    let encoded = StreamWriter::try_new(Vec::new(), batch.schema_ref()).and_then(|mut writer| {
        writer.write(batch)?;
        writer.into_inner()
    });
    encoded.map_err(io::Error::other)
}

/// The rows of the one batch of a whole stream.
///
/// # Errors
/// If it has not exactly one batch, or can't be right.
pub fn decode_one(mut bytes: &[u8], limits: StreamLimits) -> Result<RecordBatch, StreamError> {
    let mut decoder = Decoder::new(limits);
    let mut found = None;
    while let Some(part) = decoder.next(&mut bytes)? {
        if let Part::Batch(batch) = part
            && found.replace(batch).is_some()
        {
            return Err(StreamError::new("a second batch"));
        }
    }
    found.filter(|_| decoder.has_ended()).ok_or_else(|| StreamError::new("no whole batch"))
}
