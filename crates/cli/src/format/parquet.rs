//! Parquet. Columns are encoded in parallel, since a single encoding thread would be the
//! bottleneck.

mod column;
mod compressor;
#[cfg(test)]
mod decimal_tests;
mod dictionary;
mod hybrid;
mod number;
mod numbers;
#[cfg(test)]
mod numbers_tests;
mod pages;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
mod types;

use std::io::{BufWriter, Write};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use self::column::Column;
use self::compressor::Compressor;
use self::numbers::Scratch;
use super::{FileCompression, FileOptions, Sink, WriteError};

/// Values for each thread. Encoding them takes a millisecond or more, starting a thread about 30
/// µs.
const VALUES_PER_THREAD: usize = 128 << 10;
/// Batches wait until they have this many rows, or this part of a row group's bytes.
const WAITING_ROWS: usize = 32 << 10;
const WAITING_DIVISOR: usize = 16;
/// Finding the distinct values of all columns may take this part of a row group's bytes.
const SLOTS_DIVISOR: usize = 2;

pub(super) struct ParquetSink<W: Write + Send> {
    file: SerializedFileWriter<BufWriter<W>>,
    factory: ArrowRowGroupWriterFactory,
    /// The stored types, some of which differ from the batches'.
    schema: SchemaRef,
    options: FileOptions,
    codec: Compression,
    /// For each thread what it encodes with; None if the library encodes all columns.
    scratches: Vec<Option<Scratch>>,
    /// The columns and rows of the current row group. It starts with its first row.
    columns: Vec<Column>,
    rows: usize,
    /// Batches that are not encoded yet, and their rows and bytes.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
}

impl<W: Write + Send> ParquetSink<W> {
    pub(super) fn start(
        out: BufWriter<W>,
        schema: &SchemaRef,
        options: FileOptions,
    ) -> Result<Self, WriteError> {
        let schema = types::stored_schema(schema)?;
        let codec = codec(options.compression)?;
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties(codec)))?;
        let (file, factory) = writer.into_serialized_writer()?;
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = options.threads.unwrap_or(processors).max(1);
        let scratch = |_| Ok::<_, WriteError>(Compressor::new(codec)?.map(Scratch::new));
        let scratches = (0..threads).map(scratch).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            file,
            factory,
            schema,
            options,
            codec,
            scratches,
            columns: Vec::new(),
            rows: 0,
            waiting: Vec::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
        })
    }

    /// The estimated size of the row group.
    fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Rows that still fit in the row group, if they have the average size so far.
    fn rows_left(&self) -> usize {
        let rows = self.options.row_group_rows.saturating_sub(self.rows);
        let bytes = self.bytes();
        match bytes.checked_div(self.rows) {
            Some(row_bytes @ 1..) => {
                rows.min(self.options.row_group_bytes.saturating_sub(bytes) / row_bytes)
            }
            _ => rows,
        }
    }

    /// Begins the columns, or those that the library encodes.
    fn begin_row_group(&mut self) -> Result<(), WriteError> {
        if self.columns.is_empty() {
            self.columns = self.new_columns();
        }
        if !self.columns.iter().any(|column| matches!(column, Column::Other { .. })) {
            return Ok(());
        }
        let writers = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        for (leaf, writer) in writers.into_iter().enumerate() {
            let column = self.file.schema_descr().get_column_root_idx(leaf);
            if let Some(Column::Other { leaves, .. }) = self.columns.get_mut(column) {
                leaves.push(writer);
            }
        }
        Ok(())
    }

    fn new_columns(&self) -> Vec<Column> {
        let schema = self.file.schema_descr();
        let has_scratch = self.scratches.iter().all(Option::is_some);
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        let slot_bytes_max =
            self.options.row_group_bytes / SLOTS_DIVISOR / self.schema.fields().len().max(1);
        for leaf in 0..schema.num_columns() {
            let number = schema.get_column_root_idx(leaf);
            // The other leaves of a column follow its first.
            let Some(field) = self.schema.fields().get(number).filter(|_| number == columns.len())
            else {
                continue;
            };
            let rows_max = self.options.row_group_rows;
            columns.push(match has_scratch {
                true => {
                    Column::new(field, schema.column(leaf), self.codec, rows_max, slot_bytes_max)
                }
                false => Column::other(field),
            });
        }
        columns
    }

    fn end_row_group(&mut self) -> Result<(), WriteError> {
        let threads = self.threads_for(self.rows);
        self.rows = 0;
        let columns = self.columns.iter_mut().collect();
        let chunks = parallel_map(columns, &mut self.scratches[..threads], Column::finish)?;
        let mut group = self.file.next_row_group()?;
        chunks.into_iter().try_for_each(|chunks| chunks.append_to(&mut group))?;
        group.close()?;
        Ok(())
    }

    fn encode_waiting(&mut self) -> Result<(), WriteError> {
        while self.waiting_rows > 0 {
            if self.rows > 0 && self.rows_left() == 0 {
                self.end_row_group()?;
            }
            if self.rows == 0 {
                self.begin_row_group()?;
            }
            let rows = self.waiting_rows.min(self.rows_left().max(1));
            let batches = take_rows(&mut self.waiting, rows);
            let threads = self.threads_for(rows);
            let columns = self.columns.iter_mut().enumerate().collect();
            let scratches = &mut self.scratches[..threads];
            parallel_map(columns, scratches, |(number, column): (_, &mut Column), scratch| {
                batches.iter().try_for_each(|batch| column.write(batch.column(number), scratch))
            })?;
            self.rows += rows;
            self.waiting_rows -= rows;
        }
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(())
    }

    fn threads_for(&self, rows: usize) -> usize {
        let threads = rows.saturating_mul(self.columns.len()) / VALUES_PER_THREAD;
        threads.clamp(1, self.scratches.len())
    }
}

impl<W: Write + Send> Sink for ParquetSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let batch = types::to_stored(batch, &self.schema)?;
        self.waiting_rows += batch.num_rows();
        self.waiting_bytes += slice_bytes(&batch)?;
        self.waiting.push(batch);
        let bytes_max = self.options.row_group_bytes / WAITING_DIVISOR;
        if self.waiting_rows >= WAITING_ROWS || self.waiting_bytes >= bytes_max {
            self.encode_waiting()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.encode_waiting()?;
        if self.rows > 0 {
            self.end_row_group()?;
        }
        Ok(self.file.into_inner()?.flush()?)
    }
}

/// The bytes of a batch, which may be a slice of a larger one.
fn slice_bytes(batch: &RecordBatch) -> Result<usize, WriteError> {
    let bytes = |array: &ArrayRef| Ok(array.to_data().get_slice_memory_size()?);
    batch.columns().iter().map(bytes).sum()
}

/// Takes the first `rows` rows of the batches, or all of them.
fn take_rows(batches: &mut Vec<RecordBatch>, mut rows: usize) -> Vec<RecordBatch> {
    let mut taken = Vec::new();
    let mut rest = Vec::new();
    for batch in batches.drain(..) {
        let first = rows.min(batch.num_rows());
        rows -= first;
        if first > 0 {
            taken.push(batch.slice(0, first));
        }
        if first < batch.num_rows() {
            rest.push(batch.slice(first, batch.num_rows() - first));
        }
    }
    *batches = rest;
    taken
}

/// Applies `work` to each item, in a thread for each scratch, of which this one is the first.
/// Results keep the order of the items.
fn parallel_map<T: Send, S: Send, R: Send>(
    items: Vec<T>,
    scratches: &mut [S],
    work: impl Fn(T, &mut S) -> Result<R, WriteError> + Sync,
) -> Result<Vec<R>, WriteError> {
    let count = items.len();
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = |scratch: &mut S| -> Result<Vec<(usize, R)>, WriteError> {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            done.push((number, work(item, scratch)?));
        }
        Ok(done)
    };
    let run = &run;
    let lost = |_| Err("a thread that encoded a column has panicked".into());
    let parts = std::thread::scope(|scope| {
        let mut scratches = scratches.iter_mut().take(count.max(1));
        let own = scratches.next();
        let begin = |scratch| {
            let thread = std::thread::Builder::new().name("dray-parquet".into());
            thread.spawn_scoped(scope, move || run(scratch)).ok()
        };
        // If a thread can't be started, fewer do the work.
        let others: Vec<_> = scratches.map_while(begin).collect();
        let mut parts: Vec<_> = own.map(run).into_iter().collect();
        parts.extend(others.into_iter().map(|other| other.join().unwrap_or_else(lost)));
        parts
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut done: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    debug_assert_eq!(done.len(), count);
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

fn codec(compression: Option<FileCompression>) -> Result<Compression, WriteError> {
    Ok(match compression {
        None => Compression::ZSTD(ZstdLevel::default()),
        Some(FileCompression::None) => Compression::UNCOMPRESSED,
        Some(FileCompression::Lz4) => Compression::LZ4_RAW,
        Some(FileCompression::Snappy) => Compression::SNAPPY,
        Some(FileCompression::Gzip) => Compression::GZIP(GzipLevel::default()),
        Some(FileCompression::Zstd(level)) => Compression::ZSTD(ZstdLevel::try_new(level)?),
    })
}

fn properties(codec: Compression) -> WriterProperties {
    let created_by = concat!("dray ", env!("CARGO_PKG_VERSION")).to_owned();
    WriterProperties::builder().set_compression(codec).set_created_by(created_by).build()
}
