//! Arrow IPC files and streams, read a record batch at a time.
//!
//! Messages have the same bytes in both formats. A file's footer lists their offsets; in a stream
//! one follows the other. Offsets and lengths are checked against the file's size before anything
//! is allocated or left out, since the decoder trusts them. If the decoder panics all the same, the
//! file is refused.

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

mod batch_bytes;

/// A file ends with the length of its footer (4 bytes) and "ARROW1".
const TAIL_BYTES: u64 = 10;
/// The marker before the length of a message's metadata. Old writers omit it.
const CONTINUATION: [u8; 4] = [0xFF; 4];

/// Which of the two formats a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IpcFormat {
    File,
    Stream,
}

/// Which batches and columns of a file to read.
pub(super) struct ReadOptions<'a> {
    /// All columns of the table.
    pub(super) schema: &'a Schema,
    /// The indexes of the columns to read.
    pub(super) projection: Vec<usize>,
    /// In the file format, only batches that begin in this range are read.
    pub(super) range: Option<Range<u64>>,
    /// The largest decompressed size of a batch.
    pub(super) decoded_bytes_max: u64,
}

/// The content of a file's footer, or of a stream's first message.
struct Head {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
    /// The offset of a stream's second message.
    second: u64,
}

/// Reads the columns of a file, and the memory that reading it takes at a time.
pub(super) fn infer(file: &CheckedFile, format: IpcFormat) -> Result<(SchemaRef, u64)> {
    let head = head(file, format)?;
    let batch_bytes = batch_bytes::largest(file, format, &head)?;
    Ok((head.schema, batch_bytes))
}

/// Opens the record batches of a file.
pub(super) fn read(
    file: CheckedFile,
    format: IpcFormat,
    options: ReadOptions<'_>,
) -> Result<Batches> {
    let ReadOptions { schema: table, projection, range, decoded_bytes_max } = options;
    let columns = Arc::new(table.project(&projection)?);
    let Head { schema, version, dictionaries, mut batches, second } = head(&file, format)?;
    let decoder = FileDecoder::new(schema, version).with_projection(projection);
    batches.retain(|block| {
        range.as_ref().is_none_or(|range| range.contains(&(block.offset() as u64)))
    });
    let next = match format {
        IpcFormat::Stream => Next::Message(second),
        IpcFormat::File => Next::Block(batches.into_iter()),
    };
    let mut batches = Batches { file, decoder, next, columns, decoded_bytes_max };
    for block in dictionaries {
        let buffer = batches.block(&block)?;
        catch_panic(|| batches.decoder.read_dictionary(&block, &buffer))?;
    }
    Ok(batches)
}

fn head(file: &CheckedFile, format: IpcFormat) -> Result<Head> {
    match format {
        IpcFormat::File => head_of_file(file),
        IpcFormat::Stream => head_of_stream(file),
    }
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
    let dictionaries: Vec<Block> = footer.dictionaries().iter().flatten().copied().collect();
    let batches: Vec<Block> = batches.iter().copied().collect();
    check_blocks(file, dictionaries.iter().chain(&batches))?;
    Ok(Head {
        schema: schema(footer.schema())?,
        version: footer.version(),
        dictionaries,
        batches,
        second: 0,
    })
}

/// Checks that each block of a footer is a part of the file, and of no other block. With a wrong
/// offset, it would be in no range that is read, or another one would be read twice.
fn check_blocks<'a>(file: &CheckedFile, blocks: impl Iterator<Item = &'a Block>) -> Result<()> {
    let mut ranges = blocks.map(|block| range_of(file, block)).collect::<Result<Vec<_>>>()?;
    ranges.sort_unstable_by_key(|range| range.start);
    match ranges.is_sorted_by(|before, next| before.end <= next.start) {
        true => Ok(()),
        false => Err(malformed("has a footer whose record batches overlap; write it again")),
    }
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
            "is big-endian, and this program only reads little-endian Arrow; rewrite it on another \
             machine, or as Parquet",
        ));
    }
    catch_panic(|| Ok(Arc::new(fb_to_schema(header))))
}

/// The remaining record batches of a file.
pub(super) struct Batches {
    file: CheckedFile,
    decoder: FileDecoder,
    next: Next,
    /// The columns with the table's types.
    columns: SchemaRef,
    decoded_bytes_max: u64,
}

enum Next {
    /// The remaining blocks of a file.
    Block(IntoIter<Block>),
    /// The offset of a stream's next message.
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
                    catch_panic(|| self.decoder.read_dictionary(&block, &buffer))?;
                    continue;
                }
            }
            let batch = catch_panic(|| self.decoder.read_record_batch(&block, &buffer))?;
            let batch = batch.ok_or_else(|| malformed("has a message of no known type"))?;
            return Ok(Some(self.with_table_types(batch)?));
        }
    }

    /// The batch with the table's types: its dictionary keys may be wider than the file's.
    fn with_table_types(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.columns().len() != self.columns.fields().len() {
            return Err(malformed("has other columns than when its table was opened"));
        }
        let columns = batch.columns().iter().zip(self.columns.fields()).map(|(column, field)| {
            let (found, expected) = (column.data_type(), field.data_type());
            if found == expected {
                Ok(column.clone())
            } else if with_wide_keys(found) == *expected {
                Ok(cast(column, expected)?)
            } else {
                Err(malformed("has other columns than when its table was opened"))
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.columns), columns, &options)?)
    }

    /// Reads a block and checks its lengths.
    fn block(&self, block: &Block) -> Result<Buffer> {
        let mut bytes = read_block(&self.file, block)?;
        let message = message(&bytes, block)?;
        if let Some(batch) = header(&message) {
            self.check(batch, bytes.get(block.metaDataLength() as usize..).unwrap_or_default())?;
            let lengths = padded_lengths(batch, &bytes, block);
            for (offset, length) in lengths {
                if let Some(field) = bytes.get_mut(offset..offset + size_of::<i64>()) {
                    field.copy_from_slice(&length.to_le_bytes());
                }
            }
        }
        Ok(bytes.into())
    }

    /// Checks a batch's buffers against its body.
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
                // A length of -1 marks a buffer that is not compressed.
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

/// The offsets in the message of buffer lengths that are not multiples of eight, each with the
/// padded length.
///
/// Arrow C++ writes one buffer of zeros for the empty children of NULL lists, as long as the parent
/// needs. The decoder would cast an odd number of 32-bit words to 64-bit offsets, and panic.
/// Readers accept longer buffers.
fn padded_lengths(batch: BatchHeader<'_>, bytes: &[u8], block: &Block) -> Vec<(usize, i64)> {
    if batch.compression().is_some() {
        return Vec::new();
    }
    let padded = batch.buffers().into_iter().flatten().filter_map(|buffer| {
        let length = u64::try_from(buffer.length()).ok()?.checked_next_multiple_of(8)?;
        let length = i64::try_from(length).ok().filter(|length| *length != buffer.length())?;
        let end = buffer.offset().checked_add(length).filter(|end| *end <= block.bodyLength());
        // The offset of the length field, which follows the offset field.
        let offset = buffer
            .0
            .as_ptr()
            .addr()
            .checked_sub(bytes.as_ptr().addr())?
            .checked_add(size_of::<i64>())?;
        end.map(|_| (offset, length))
    });
    padded.collect()
}

/// Runs the decoder, and turns a panic into an error.
fn catch_panic<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => Ok(decoded?),
        Err(_) => {
            Err(malformed("has a record batch that can't be decoded; rewrite it, or write Parquet"))
        }
    }
}

/// The message at an offset of a stream; None at the stream's end.
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
    let (prefix, length): (i32, _) =
        if first == CONTINUATION { (8, word(at + 4)?) } else { (4, first) };
    let header_bytes = i32::from_le_bytes(length);
    if header_bytes == 0 {
        // The end of the stream, which must be the file's.
        let end = at + u64::from(prefix.unsigned_abs());
        return match file.bytes() - end {
            0 => Ok(None),
            rest => Err(malformed(format!(
                "has {rest} bytes behind the end of its stream; serve several streams as the files \
                 of one folder"
            ))),
        };
    }
    let offset = i64::try_from(at).map_err(|_| malformed("is too long"))?;
    let metadata_bytes = header_bytes.checked_add(prefix).filter(|_| header_bytes > 0);
    let metadata_bytes =
        metadata_bytes.ok_or_else(|| malformed(format!("has a header of {header_bytes} bytes")))?;
    // The length of the body is in the metadata.
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

/// The bytes of a block, which are within the file.
fn range_of(file: &CheckedFile, block: &Block) -> Result<Range<u64>> {
    let end = end_of(block)?;
    let is_within = block.offset() >= 0 && block.metaDataLength() >= 8 && block.bodyLength() >= 0;
    match is_within && end <= file.bytes() {
        true => Ok(block.offset() as u64..end),
        false => Err(malformed("has a message beyond its end")),
    }
}

fn read_block(file: &CheckedFile, block: &Block) -> Result<MutableBuffer> {
    let Range { start, end } = range_of(file, block)?;
    let bytes =
        usize::try_from(end - start).map_err(|_| malformed("has a message that is too long"))?;
    let mut buffer = MutableBuffer::from_len_zeroed(bytes);
    file.read_at(&mut buffer, start).map_err(external)?;
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

/// The batch of a message, if it has one.
fn header<'a>(message: &Message<'a>) -> Option<BatchHeader<'a>> {
    match message.header_as_dictionary_batch() {
        Some(dictionary) => dictionary.data(),
        None => message.header_as_record_batch(),
    }
}

fn malformed(what: impl Into<String>) -> DataFusionError {
    DataFusionError::Execution(format!("this Arrow file {}", what.into()))
}

fn external(error: super::served::FileError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
