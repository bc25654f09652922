//! The memory that reading a file takes. A record batch is read as a whole, then unpacked.

use datafusion::arrow::ipc::Block;
use datafusion::error::Result;

use super::{
    CheckedFile, Head, IpcFormat, end_of, external, header, malformed, message, message_at,
    range_of,
};

/// The bytes in front of a compressed buffer, which tell how many it unpacks to.
const PREFIX_BYTES: u64 = size_of::<i64>() as u64;

/// The bytes of the largest record batch or dictionary, as it lies in the file and unpacked.
///
/// Of a file in an object store, only the longest one is looked into, since each takes requests.
pub(super) fn largest(file: &CheckedFile, format: IpcFormat, head: &Head) -> Result<u64> {
    let mut most = 0;
    match format {
        IpcFormat::File => {
            let mut blocks: Vec<_> = head.dictionaries.iter().chain(&head.batches).collect();
            if file.is_remote() {
                blocks =
                    blocks.into_iter().max_by_key(|block| bytes_of(block)).into_iter().collect();
            }
            for block in blocks {
                most = most.max(in_memory(file, block)?);
            }
        }
        IpcFormat::Stream => {
            let mut at = head.second;
            while let Some(block) = message_at(file, at)? {
                most = most.max(in_memory(file, &block)?);
                at = end_of(&block)?;
            }
        }
    }
    Ok(most)
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
        file.read_at(&mut prefix, at).map_err(external)?;
        let bytes = u64::try_from(i64::from_le_bytes(prefix)).unwrap_or(0);
        unpacked = unpacked.saturating_add(bytes);
    }
    Ok(unpacked)
}
