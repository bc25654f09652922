//! The lengths in messages, which Arrow's decoder trusts.

use arrow_buffer::Buffer;
use arrow_ipc::{
    DictionaryBatch, Endianness, Message, MessageHeader, RecordBatch, Schema,
    root_as_message_with_opts,
};
use flatbuffers::VerifierOptions;

use super::{StreamError, StreamLimits};

/// The most bytes of a message's header: that of as many columns as a chunk can have.
pub const HEADER_BYTES_MAX: usize = 16 << 20;
/// Twice the types that may be within each other, since a field and its type are tables.
const DEPTH_MAX: usize = 64 + 4;
/// A field has about three tables; each pair of metadata is one.
const TABLES_MAX: usize = 1 << 19;

/// A header whose references are within it.
pub(super) fn message(header: &[u8]) -> Result<Message<'_>, StreamError> {
    let options = VerifierOptions {
        max_depth: DEPTH_MAX,
        max_tables: TABLES_MAX,
        // Tables that several refer to take more memory than they have bytes.
        max_apparent_size: header.len().saturating_mul(8).saturating_add(1 << 16),
        ignore_missing_null_terminator: false,
    };
    root_as_message_with_opts(&options, header)
        .map_err(|cause| StreamError::new(format!("a message that can't be read: {cause}")))
}

/// How many bytes follow a header.
pub(super) fn body_bytes(header: &[u8], limits: &StreamLimits) -> Result<usize, StreamError> {
    let message = message(header)?;
    let max = match message.header_type() {
        MessageHeader::Schema => 0,
        _ => limits.body_bytes,
    };
    let length = message.bodyLength();
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= max)
        .ok_or_else(|| StreamError::new(format!("a message of {length} bytes, not {max} at most")))
}

/// The schema in a message.
pub(super) fn schema<'a>(message: &Message<'a>) -> Result<Schema<'a>, StreamError> {
    let schema = message.header_as_schema().filter(|schema| schema.fields().is_some());
    let schema = schema.ok_or_else(|| StreamError::new("a schema without columns"))?;
    match schema.endianness() {
        Endianness::Little => Ok(schema),
        _ => Err(StreamError::new("a schema that is big-endian")),
    }
}

/// A batch whose buffers are within its body.
pub(super) fn batch<'a>(
    batch: Option<RecordBatch<'a>>,
    body: &Buffer,
) -> Result<RecordBatch<'a>, StreamError> {
    let batch = batch.ok_or_else(|| StreamError::new("a batch without a header"))?;
    if batch.compression().is_some() {
        return Err(StreamError::new("a batch that is compressed"));
    }
    for buffer in batch.buffers().iter().flatten() {
        let end = usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| offset.checked_add(length));
        if end.is_none_or(|end| end > body.len()) {
            return Err(StreamError::new("a batch with a buffer outside of it"));
        }
    }
    for node in batch.nodes().iter().flatten() {
        let (length, nulls) = (node.length(), node.null_count());
        if !(0..=i64::from(i32::MAX)).contains(&length) || !(0..=length).contains(&nulls) {
            return Err(StreamError::new(format!(
                "a column of {length} values, {nulls} of them NULL"
            )));
        }
    }
    Ok(batch)
}

/// A batch has not too many rows.
pub(super) fn rows(batch: &RecordBatch<'_>, limits: &StreamLimits) -> Result<(), StreamError> {
    let rows = batch.length();
    match usize::try_from(rows) {
        Ok(rows) if rows <= limits.batch_rows => Ok(()),
        _ => Err(StreamError::new(format!(
            "a batch of {rows} rows, not {} at most",
            limits.batch_rows
        ))),
    }
}

/// A dictionary, which replaces the one before.
pub(super) fn dictionary<'a>(
    message: &Message<'a>,
    body: &Buffer,
) -> Result<DictionaryBatch<'a>, StreamError> {
    let dictionary = message.header_as_dictionary_batch();
    let dictionary = dictionary.ok_or_else(|| StreamError::new("a dictionary without a header"))?;
    if dictionary.isDelta() {
        return Err(StreamError::new("a dictionary that extends another"));
    }
    batch(dictionary.data(), body)?;
    Ok(dictionary)
}
