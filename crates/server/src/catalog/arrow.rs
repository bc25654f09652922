//! Arrow IPC files and streams, read a record batch at a time.
//!
//! In both formats a message has the same bytes. A file's footer says where they are; in a stream
//! one follows the other. Lengths are held against the file before anything is allocated, since the
//! decoder believes them. Where it panics all the same, the file is refused.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::vec::IntoIter;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::reader::{FileDecoder, read_footer_length};
use datafusion::arrow::ipc::{
    Block, Endianness, Message, MessageHeader, MetadataVersion, RecordBatch as BatchHeader,
    Schema as SchemaHeader, root_as_footer, root_as_message,
};
use datafusion::error::{DataFusionError, Result};

use super::served::CheckedFile;
use super::tables::with_wide_keys;

/// A file ends with the length of its footer and "ARROW1".
const TAIL_BYTES: u64 = 10;
/// Where the length of a message's header has this before it. Old writers leave it out.
const CONTINUATION: [u8; 4] = [0xFF; 4];

/// What stands at the beginning of a stream, or in a file's footer.
struct Head {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
    /// Where the second message begins, in a stream.
    second: u64,
}

/// The columns of a file, or of a file that holds a stream.
pub(super) fn learn(file: &CheckedFile, is_stream: bool) -> Result<SchemaRef> {
    Ok(head(file, is_stream)?.schema)
}

/// The record batches of a file, with those of `table`'s columns that are in `projection`; of a
/// file those that begin within `range`.
pub(super) fn read(
    file: CheckedFile,
    is_stream: bool,
    table: &Schema,
    projection: Vec<usize>,
    range: Option<Range<u64>>,
    decoded_bytes_max: u64,
) -> Result<Batches> {
    let columns = Arc::new(table.project(&projection)?);
    let Head { schema, version, dictionaries, mut batches, second } = head(&file, is_stream)?;
    let decoder = FileDecoder::new(schema, version).with_projection(projection);
    batches.retain(|block| {
        range.as_ref().is_none_or(|range| range.contains(&(block.offset() as u64)))
    });
    let next = if is_stream { Next::Message(second) } else { Next::Block(batches.into_iter()) };
    let mut batches = Batches { file, decoder, next, columns, decoded_bytes_max };
    for block in dictionaries {
        let buffer = batches.block(&block)?;
        calmly(|| batches.decoder.read_dictionary(&block, &buffer))?;
    }
    Ok(batches)
}

fn head(file: &CheckedFile, is_stream: bool) -> Result<Head> {
    if is_stream { head_of_stream(file) } else { head_of_file(file) }
}

fn head_of_file(file: &CheckedFile) -> Result<Head> {
    let Some(tail) = file.bytes().checked_sub(TAIL_BYTES) else {
        return Err(malformed("is too short for a footer"));
    };
    let mut end = [0; TAIL_BYTES as usize];
    file.read_at(&mut end, tail).map_err(external)?;
    let footer_bytes = read_footer_length(end)?;
    let Some(start) = tail.checked_sub(footer_bytes as u64) else {
        return Err(malformed(format!(
            "has a footer of {footer_bytes} bytes, which is more than the file"
        )));
    };
    let mut bytes = vec![0; footer_bytes];
    file.read_at(&mut bytes, start).map_err(external)?;
    let footer = root_as_footer(&bytes)
        .map_err(|cause| malformed(format!("has a footer that can't be read: {cause}")))?;
    let Some(batches) = footer.recordBatches() else {
        return Err(malformed("has a footer without record batches"));
    };
    Ok(Head {
        schema: schema(footer.schema())?,
        version: footer.version(),
        dictionaries: footer.dictionaries().iter().flatten().copied().collect(),
        batches: batches.iter().copied().collect(),
        second: 0,
    })
}

fn head_of_stream(file: &CheckedFile) -> Result<Head> {
    let Some(block) = message_at(file, 0)? else {
        return Err(malformed("is a stream without a schema"));
    };
    let buffer = read_block(file, &block)?;
    let message = message(&buffer, &block)?;
    Ok(Head {
        schema: schema(message.header_as_schema())?,
        version: message.version(),
        dictionaries: Vec::new(),
        batches: Vec::new(),
        second: end_of(&block)?,
    })
}

fn schema(header: Option<SchemaHeader<'_>>) -> Result<SchemaRef> {
    let header = header
        .filter(|header| header.fields().is_some())
        .ok_or_else(|| malformed("has no schema"))?;
    if header.endianness() != Endianness::Little {
        return Err(malformed(
            "is big-endian, and this program reads little-endian Arrow only; write it anew on another machine, or as \
             Parquet",
        ));
    }
    calmly(|| Ok(Arc::new(fb_to_schema(header))))
}

/// The record batches that are left of a file.
pub(super) struct Batches {
    file: CheckedFile,
    decoder: FileDecoder,
    next: Next,
    /// The columns as the table has them.
    columns: SchemaRef,
    decoded_bytes_max: u64,
}

enum Next {
    /// The blocks of a file that are left.
    Block(IntoIter<Block>),
    /// Where a stream goes on.
    Message(u64),
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let block = match &mut self.next {
                Next::Block(blocks) => blocks.next(),
                Next::Message(at) => message_at(&self.file, *at)?,
            };
            let Some(block) = block else { return Ok(None) };
            let buffer = self.block(&block)?;
            if let Next::Message(at) = &mut self.next {
                *at = end_of(&block)?;
                if message(&buffer, &block)?.header_type() == MessageHeader::DictionaryBatch {
                    calmly(|| self.decoder.read_dictionary(&block, &buffer))?;
                    continue;
                }
            }
            if let Some(batch) = calmly(|| self.decoder.read_record_batch(&block, &buffer))? {
                return Ok(Some(self.as_table(batch)?));
            }
        }
    }

    /// The batch with the table's keys, which may be wider than the file's.
    fn as_table(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.columns().len() != self.columns.fields().len() {
            return Err(malformed("has other columns than when it was served"));
        }
        let columns = batch.columns().iter().zip(self.columns.fields()).map(|(column, field)| {
            let (found, wanted) = (column.data_type(), field.data_type());
            if found == wanted {
                Ok(column.clone())
            } else if with_wide_keys(found) == *wanted {
                Ok(cast(column, wanted)?)
            } else {
                Err(malformed("has other columns than when it was served"))
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.columns), columns, &options)?)
    }

    /// A block whose lengths are checked.
    fn block(&self, block: &Block) -> Result<Buffer> {
        let mut bytes = read_block(&self.file, block)?;
        let message = message(&bytes, block)?;
        let batch = match message.header_as_dictionary_batch() {
            Some(dictionary) => dictionary.data(),
            None => message.header_as_record_batch(),
        };
        if let Some(batch) = batch {
            self.check(batch, bytes.get(block.metaDataLength() as usize..).unwrap_or_default())?;
            let lengths = whole_lengths(batch, &bytes, block);
            for (place, length) in lengths {
                if let Some(field) = bytes.get_mut(place..place + size_of::<i64>()) {
                    field.copy_from_slice(&length.to_le_bytes());
                }
            }
        }
        Ok(bytes.into())
    }

    /// Holds what a batch says of its buffers against its body.
    fn check(&self, batch: BatchHeader<'_>, body: &[u8]) -> Result<()> {
        let is_compressed = batch.compression().is_some();
        let mut decoded_bytes = 0u64;
        for buffer in batch.buffers().iter().flatten() {
            let bytes = usize::try_from(buffer.offset()).ok().and_then(|start| {
                let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
                body.get(start..end)
            });
            let bytes =
                bytes.ok_or_else(|| malformed("has a record batch with a buffer outside of it"))?;
            if let (true, Some(prefix)) = (is_compressed, bytes.first_chunk()) {
                // None is told as -1 where the buffer is not compressed after all.
                let unpacked = u64::try_from(i64::from_le_bytes(*prefix)).unwrap_or(0);
                decoded_bytes = decoded_bytes.saturating_add(unpacked);
            }
        }
        if decoded_bytes > self.decoded_bytes_max {
            let max = self.decoded_bytes_max;
            return Err(DataFusionError::ResourcesExhausted(format!(
                "a record batch unpacks to {decoded_bytes} bytes, and memory for {max} is allowed"
            )));
        }
        Ok(())
    }
}

/// Where in the message stand the lengths of buffers that are no multiple of eight, and the lengths
/// with their padding.
///
/// Arrow C++ gives the empty children of missing lists one buffer of zeros, as long as a parent
/// needs; the decoder would cast its odd number of 32-bit words to 64-bit offsets, and panic. No
/// reader minds more bytes than it needs.
fn whole_lengths(batch: BatchHeader<'_>, bytes: &[u8], block: &Block) -> Vec<(usize, i64)> {
    if batch.compression().is_some() {
        return Vec::new();
    }
    let whole = batch.buffers().into_iter().flatten().filter_map(|buffer| {
        let length = u64::try_from(buffer.length()).ok()?.checked_next_multiple_of(8)?;
        let length = i64::try_from(length).ok().filter(|length| *length != buffer.length())?;
        let end = buffer.offset().checked_add(length).filter(|end| *end <= block.bodyLength());
        // A buffer's description is its offset and its length.
        let place = buffer
            .0
            .as_ptr()
            .addr()
            .checked_sub(bytes.as_ptr().addr())?
            .checked_add(size_of::<i64>())?;
        end.map(|_| (place, length))
    });
    whole.collect()
}

/// Decodes, and makes an error of a panic.
fn calmly<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => Ok(decoded?),
        Err(_) => Err(malformed(
            "has a record batch that its reader does not understand; write it anew, or as Parquet",
        )),
    }
}

/// The message that begins at `at`; none at the stream's end.
fn message_at(file: &CheckedFile, at: u64) -> Result<Option<Block>> {
    if at == file.bytes() {
        return Ok(None);
    }
    let word = |at: u64| {
        let mut word = [0; 4];
        match at.checked_add(4) {
            Some(end) if end <= file.bytes() => {
                file.read_at(&mut word, at).map_err(external).map(|()| word)
            }
            _ => Err(malformed("ends within a message")),
        }
    };
    let first = word(at)?;
    let (prefix, length) = if first == CONTINUATION { (8, word(at + 4)?) } else { (4, first) };
    let header_bytes = i32::from_le_bytes(length);
    if header_bytes == 0 {
        return Ok(None);
    }
    let offset = i64::try_from(at).map_err(|_| malformed("is too long"))?;
    let metadata_bytes = header_bytes.checked_add(prefix).filter(|_| header_bytes > 0);
    let metadata_bytes =
        metadata_bytes.ok_or_else(|| malformed(format!("has a header of {header_bytes} bytes")))?;
    // The header says how long the body is.
    let block = Block::new(offset, metadata_bytes, 0);
    let buffer = read_block(file, &block)?;
    Ok(Some(Block::new(offset, metadata_bytes, message(&buffer, &block)?.bodyLength())))
}

fn end_of(block: &Block) -> Result<u64> {
    let end = block
        .offset()
        .checked_add(block.metaDataLength().into())
        .and_then(|end| end.checked_add(block.bodyLength()));
    end.and_then(|end| u64::try_from(end).ok())
        .ok_or_else(|| malformed("has a message beyond its end"))
}

fn read_block(file: &CheckedFile, block: &Block) -> Result<MutableBuffer> {
    let end = end_of(block)?;
    let is_within = block.offset() >= 0 && block.metaDataLength() >= 8 && block.bodyLength() >= 0;
    if !is_within || end > file.bytes() {
        return Err(malformed("has a message beyond its end"));
    }
    let offset = block.offset() as u64;
    let bytes =
        usize::try_from(end - offset).map_err(|_| malformed("has a message that is too long"))?;
    let mut buffer = MutableBuffer::from_len_zeroed(bytes);
    file.read_at(&mut buffer, offset).map_err(external)?;
    Ok(buffer)
}

fn message<'a>(bytes: &'a [u8], block: &Block) -> Result<Message<'a>> {
    let bytes = bytes.get(..block.metaDataLength() as usize).unwrap_or_default();
    let header = match bytes.strip_prefix(&CONTINUATION) {
        Some(rest) => rest.get(4..),
        None => bytes.get(4..),
    };
    root_as_message(header.unwrap_or_default())
        .map_err(|cause| malformed(format!("has a message that can't be read: {cause}")))
}

fn malformed(what: impl Into<String>) -> DataFusionError {
    DataFusionError::Execution(format!("this Arrow file {}", what.into()))
}

fn external(error: super::served::FileError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
