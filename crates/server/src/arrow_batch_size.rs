//! The memory that reading Arrow files takes: the size of the largest record batch, since a batch
//! is read as a whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arrow::ipc::{self, MessageHeader};
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;

use crate::catalog::RowSource;

/// The highest offset of a file's first message.
const FIRST_MESSAGE_MAX: u64 = 64;
/// Files whose largest batch is cached.
const FILES_CACHED_MAX: usize = 4096;

/// The size in bytes of the largest record batch of the Arrow files that a plan reads, and its
/// file. None if the plan reads no Arrow files.
pub(crate) fn batch_bytes_max(plan: &Arc<dyn ExecutionPlan>) -> io::Result<Option<(u64, PathBuf)>> {
    let mut most = None;
    let mut plans = vec![plan];
    while let Some(plan) = plans.pop() {
        plans.extend(plan.children());
        let rows = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(DataSourceExec::downcast_to_file_source::<RowSource>);
        let Some((scan, source)) = rows else { continue };
        for file in scan.file_groups.iter().flat_map(FileGroup::files) {
            let Some(path) = source.arrow_path(&file.object_meta.location) else { break };
            let bytes = largest_in_file(&path)?;
            if most.as_ref().is_none_or(|(most, _)| *most < bytes) {
                most = Some((bytes, path));
            }
        }
    }
    Ok(most)
}

/// The size of a file's largest record batch, which is cached until the file changes.
fn largest_in_file(path: &Path) -> io::Result<u64> {
    type Cache = HashMap<PathBuf, (u64, SystemTime, u64)>;
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);
    let metadata = path.metadata()?;
    let (size, modified) = (metadata.len(), metadata.modified()?);
    let mut known = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some((of_size, of_time, bytes)) = known.get(path)
        && (*of_size, *of_time) == (size, modified)
    {
        return Ok(*bytes);
    }
    let bytes = largest(&mut File::open(path)?, size)?;
    if known.len() >= FILES_CACHED_MAX {
        known.clear();
    }
    known.insert(path.to_owned(), (size, modified, bytes));
    Ok(bytes)
}

/// The largest message of a file or a stream, with the decompressed size of its buffers added.
fn largest(file: &mut (impl Read + Seek), size: u64) -> io::Result<u64> {
    let mut magic = [0; 6];
    file.read_exact(&mut magic)?;
    // In a file the stream begins at offset 8 or, with some writers, at offset 64.
    let mut at = if &magic == b"ARROW1" { 8 } else { 0 };
    let mut most = 0;
    while at + 8 <= size {
        file.seek(SeekFrom::Start(at))?;
        let mut word = [0; 4];
        file.read_exact(&mut word)?;
        let mut head = 4;
        if word == [0xff; 4] {
            file.read_exact(&mut word)?;
            head = 8;
        }
        let message_bytes = u64::from(u32::from_le_bytes(word));
        if message_bytes == 0 && (8..FIRST_MESSAGE_MAX).contains(&at) {
            at += 8;
            continue;
        }
        if message_bytes == 0 || at + head + message_bytes > size {
            break;
        }
        // Bounded by the size of the file.
        let mut message = vec![0; usize::try_from(message_bytes).map_err(io::Error::other)?];
        file.read_exact(&mut message)?;
        let Ok(message) = ipc::root_as_message(&message) else { break };
        let body = at + head + message_bytes;
        let body_bytes = u64::try_from(message.bodyLength()).unwrap_or(0);
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => {
                message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
            }
            _ => None,
        };
        if let Some(batch) = batch {
            let plain = if batch.compression().is_some() {
                decompressed_bytes(file, body, &batch)?
            } else {
                0
            };
            most = most.max(body_bytes.saturating_add(plain));
        }
        at = body.saturating_add(body_bytes);
    }
    Ok(most)
}

/// The decompressed size of a batch's buffers. Each buffer begins with its size, or with -1 if it
/// is not compressed.
fn decompressed_bytes(
    file: &mut (impl Read + Seek),
    body: u64,
    batch: &ipc::RecordBatch,
) -> io::Result<u64> {
    let mut plain = 0u64;
    for buffer in batch.buffers().iter().flatten() {
        let offset = u64::try_from(buffer.offset()).unwrap_or(0);
        if buffer.length() >= 8 {
            file.seek(SeekFrom::Start(body.saturating_add(offset)))?;
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            plain = plain.saturating_add(u64::try_from(i64::from_le_bytes(bytes)).unwrap_or(0));
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::io::Cursor;
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::largest;

    #[test]
    fn the_largest_batch_is_found() {
        let batch = |rows: i64| {
            let column = Arc::new(Int64Array::from_iter_values(0..rows));
            RecordBatch::try_from_iter([("n", column as _)]).unwrap()
        };
        for compression in [None, Some(CompressionType::LZ4_FRAME)] {
            let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
            let mut file =
                FileWriter::try_new_with_options(Vec::new(), &batch(0).schema(), options.clone())
                    .unwrap();
            let mut stream =
                StreamWriter::try_new_with_options(Vec::new(), &batch(0).schema(), options)
                    .unwrap();
            for rows in [10, 100_000, 1000] {
                file.write(&batch(rows)).unwrap();
                stream.write(&batch(rows)).unwrap();
            }
            for bytes in [file.into_inner().unwrap(), stream.into_inner().unwrap()] {
                let size = bytes.len() as u64;
                let found = largest(&mut Cursor::new(bytes), size).unwrap();
                assert!((800_000..1_700_000).contains(&found), "{found} {compression:?}");
            }
        }
    }
}
