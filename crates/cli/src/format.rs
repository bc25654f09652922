//! Writes batches as files and streams: CSV, JSON, Arrow, Parquet, pages.

mod arrow_file;
mod csv;
mod json;
mod nested;
mod pages;
mod parquet;
pub(crate) mod table;
mod text;

use std::error::Error;
use std::io::{BufWriter, Write};
use std::str::FromStr;

use ::parquet::basic::ZstdLevel;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use dray_pagefile::KeyPath;

pub(crate) use self::pages::PagesSink;

/// The size of writes to the file.
const BUFFER_BYTES: usize = 256 << 10;
/// Default limits of a Parquet row group, in rows and in bytes in memory, where it is held until it
/// is complete.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 20;
pub(crate) const ROW_GROUP_BYTES: usize = 128 << 20;

/// Why a batch can't be written.
pub(crate) type WriteError = Box<dyn Error + Send + Sync>;

/// A writer of batches in one format.
pub(crate) trait Sink {
    /// Writes a batch.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError>;
    /// Writes buffered rows and the end of the file.
    fn finish(self: Box<Self>) -> Result<(), WriteError>;
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text with a header line. NULL is an empty field, an empty string is `""`.
    Csv,
    /// One object per line.
    Json,
    /// An Arrow IPC stream.
    ArrowStream,
    /// An Arrow IPC file.
    ArrowFile,
    /// Parquet.
    Parquet,
    /// A page file.
    Pages,
}

/// How a file is written.
#[derive(Debug, Clone)]
pub(crate) struct FileOptions {
    /// The compression within the file; None selects the format's default.
    pub(crate) compression: Option<FileCompression>,
    /// Maximum rows of a Parquet row group.
    pub(crate) row_group_rows: usize,
    /// Maximum bytes of a Parquet row group in memory.
    pub(crate) row_group_bytes: usize,
    /// Threads that encode Parquet columns; None is one per processor.
    pub(crate) threads: Option<usize>,
    /// The key of a page file; no fields mean no key.
    pub(crate) key: Vec<KeyPath>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            compression: None,
            row_group_rows: ROW_GROUP_ROWS,
            row_group_bytes: ROW_GROUP_BYTES,
            threads: None,
            key: Vec::new(),
        }
    }
}

/// The compression within a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCompression {
    /// No compression.
    None,
    /// LZ4.
    Lz4,
    /// Snappy.
    Snappy,
    /// gzip.
    Gzip,
    /// zstd at this level.
    Zstd(i32),
}

impl FromStr for FileCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "snappy" => Ok(Self::Snappy),
            "gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd(ZstdLevel::default().compression_level())),
            _ => match text.strip_prefix("zstd:").map(str::parse) {
                Some(Ok(level @ 1..=22)) => Ok(Self::Zstd(level)),
                _ => Err(format!(
                    "{text:?}, expected none, lz4, snappy, gzip, zstd or zstd:LEVEL (1 to 22)"
                )),
            },
        }
    }
}

impl Format {
    /// Whether a terminal can show it.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Json)
    }

    /// Whether the format supports a compression.
    pub(crate) fn allows(self, compression: FileCompression) -> bool {
        match self {
            Self::Csv | Self::Json | Self::Pages => compression == FileCompression::None,
            // Arrow IPC has no compression levels.
            Self::ArrowStream | Self::ArrowFile => {
                let standard = FileCompression::Zstd(ZstdLevel::default().compression_level());
                [FileCompression::None, FileCompression::Lz4, standard].contains(&compression)
            }
            Self::Parquet => true,
        }
    }

    /// Starts writing batches of `schema` to `out`.
    pub(crate) fn sink(
        self,
        out: impl Write + Send + 'static,
        schema: &SchemaRef,
        options: FileOptions,
    ) -> Result<Box<dyn Sink>, WriteError> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        Ok(match self {
            Self::Csv => Box::new(csv::CsvSink::start(out, schema)?),
            Self::Json => Box::new(json::JsonSink::start(out, schema)?),
            Self::ArrowStream => Box::new(StreamWriter::try_new_with_options(
                out,
                schema,
                ipc_options(options.compression)?,
            )?),
            Self::ArrowFile => Box::new(arrow_file::ArrowFileSink::start(
                out,
                schema,
                ipc_options(options.compression)?,
            )?),
            Self::Parquet => Box::new(parquet::ParquetSink::start(out, schema, options)?),
            Self::Pages => Box::new(PagesSink::start(out, schema, options.key)?),
        })
    }
}

fn ipc_options(compression: Option<FileCompression>) -> Result<IpcWriteOptions, WriteError> {
    let compression = match compression {
        Some(FileCompression::Lz4) => Some(CompressionType::LZ4_FRAME),
        Some(FileCompression::Zstd(_)) => Some(CompressionType::ZSTD),
        _ => None,
    };
    Ok(IpcWriteOptions::default().try_with_compression(compression)?)
}

impl<W: Write> Sink for StreamWriter<BufWriter<W>> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        Ok(StreamWriter::write(self, batch)?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        StreamWriter::finish(&mut self)?;
        Ok(self.get_mut().flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A file in memory.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The file with these batches, of which there must be at least one.
    pub(super) fn encode(format: Format, batches: &[RecordBatch]) -> Result<Vec<u8>, WriteError> {
        let memory = Memory::default();
        let mut sink = format.sink(memory.clone(), &batches[0].schema(), FileOptions::default())?;
        batches.iter().try_for_each(|batch| sink.write(batch))?;
        sink.finish()?;
        let bytes = memory.0.lock().unwrap().clone();
        Ok(bytes)
    }
}
