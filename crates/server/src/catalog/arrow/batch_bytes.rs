//! The memory that reading a file takes. A record batch is read as a whole, then unpacked.

use std::cmp::Reverse;

use datafusion::arrow::ipc::Block;
use datafusion::error::Result;

use super::{
    CheckedFile, Head, IpcFormat, external, header, malformed, message, message_at, range_of,
};

/// The bytes in front of a compressed buffer, which tell how many it unpacks to.
const PREFIX_BYTES: u64 = size_of::<i64>() as u64;

/// The most blocks of a local file that are looked into, since each of their compressed buffers
/// takes a read. Of an object it is one: each read is a request.
const BLOCKS_MAX: usize = 8;

/// What is at least as long is skipped in an object store. What is shorter comes in less time than
/// another request takes.
const SKIPPED_BYTES_MIN: u64 = 2 << 20;

/// What is asked for behind a message that is skipped: the metadata of most messages.
const METADATA_BYTES: u64 = 16 << 10;

/// The bytes of the largest record batch or dictionary, as it lies in the file and unpacked. Only
/// those that are the longest in the file are looked into.
pub(super) fn largest(file: &CheckedFile, format: IpcFormat, head: &Head) -> Result<u64> {
    let mut blocks: Vec<Block> = match format {
        IpcFormat::File => head.dictionaries.iter().chain(&head.batches).copied().collect(),
        IpcFormat::Stream => messages(file, head.second)?,
    };
    blocks.sort_unstable_by_key(|block| Reverse(bytes_of(block)));
    blocks.truncate(if file.is_remote() { 1 } else { BLOCKS_MAX });
    let mut most = 0;
    for block in &blocks {
        most = most.max(in_memory(file, block)?);
    }
    Ok(most)
}

/// The messages of a stream from an offset on.
fn messages(file: &CheckedFile, mut at: u64) -> Result<Vec<Block>> {
    let mut messages: Vec<Block> = Vec::new();
    loop {
        if let Some(last) = messages.last().filter(|last| bytes_of(last) >= SKIPPED_BYTES_MIN)
            && file.is_remote()
        {
            // The reader keeps this for the reads below, which would ask for more. Messages of one
            // schema have metadata of one length.
            let metadata = u64::try_from(last.metaDataLength()).unwrap_or(0).max(METADATA_BYTES);
            let bytes = file.bytes().saturating_sub(at).min(metadata);
            file.read_alone_at(&mut vec![0; bytes as usize], at).map_err(external)?;
        }
        let Some(message) = message_at(file, at)? else { return Ok(messages) };
        at = range_of(file, &message)?.end;
        messages.push(message);
    }
}

/// The length of a block in the file.
fn bytes_of(block: &Block) -> u64 {
    u64::try_from(i64::from(block.metaDataLength()).saturating_add(block.bodyLength())).unwrap_or(0)
}

fn in_memory(file: &CheckedFile, block: &Block) -> Result<u64> {
    // What a store sends is copied.
    let copies = if file.is_remote() { 2 } else { 1 };
    Ok(bytes_of(block).saturating_mul(copies).saturating_add(unpacked_bytes(file, block)?))
}

/// The bytes of a compressed batch's buffers. Each begins with them, or with -1 if it is not
/// compressed.
fn unpacked_bytes(file: &CheckedFile, block: &Block) -> Result<u64> {
    let range = range_of(file, block)?;
    let mut bytes = vec![0; block.metaDataLength() as usize];
    file.read_alone_at(&mut bytes, range.start).map_err(external)?;
    let message = message(&bytes, block)?;
    let batch = header(&message).filter(|batch| batch.compression().is_some());
    let mut unpacked = 0u64;
    for buffer in batch.and_then(|batch| batch.buffers()).iter().flatten() {
        if buffer.length() < PREFIX_BYTES as i64 {
            continue;
        }
        let at = u64::try_from(buffer.offset())
            .ok()
            .and_then(|offset| offset.checked_add(range.start + bytes.len() as u64))
            .filter(|at| at.checked_add(PREFIX_BYTES).is_some_and(|end| end <= range.end))
            .ok_or_else(|| malformed("has a record batch with a buffer outside of it"))?;
        let mut prefix = [0; PREFIX_BYTES as usize];
        let is_next_far = buffer.length() >= SKIPPED_BYTES_MIN as i64;
        match is_next_far {
            true => file.read_alone_at(&mut prefix, at),
            false => file.read_at(&mut prefix, at),
        }
        .map_err(external)?;
        let bytes = u64::try_from(i64::from_le_bytes(prefix)).unwrap_or(0);
        unpacked = unpacked.saturating_add(bytes);
    }
    Ok(unpacked)
}
