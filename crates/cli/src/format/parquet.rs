//! Parquet. Columns are encoded in parallel, since a single encoding thread would be the
//! bottleneck.

mod types;

use std::io::{BufWriter, Write};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::{FileCompression, FileOptions, Sink, WriteError};

/// Values for each thread. Encoding them takes a millisecond or more, starting a thread about 30
/// µs.
const VALUES_PER_THREAD: usize = 64 << 10;

pub(super) struct ParquetSink<W: Write + Send> {
    file: SerializedFileWriter<BufWriter<W>>,
    factory: ArrowRowGroupWriterFactory,
    /// The stored types, some of which differ from the batches'.
    schema: SchemaRef,
    options: FileOptions,
    threads: usize,
    /// The columns and rows of the current row group. It starts with its first row.
    columns: Vec<Column>,
    rows: usize,
}

/// A column of a row group: an encoder for each leaf of its type.
struct Column {
    field: FieldRef,
    leaves: Vec<ArrowColumnWriter>,
}

impl Column {
    fn write(&mut self, array: &ArrayRef) -> Result<(), WriteError> {
        let leaves = compute_leaves(&self.field, array)?;
        self.leaves.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| Ok(writer.write(leaf)?))
    }
}

impl<W: Write + Send> ParquetSink<W> {
    pub(super) fn start(
        out: BufWriter<W>,
        schema: &SchemaRef,
        options: FileOptions,
    ) -> Result<Self, WriteError> {
        let schema = types::stored_schema(schema)?;
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties(options)?))?;
        let (file, factory) = writer.into_serialized_writer()?;
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = options.threads.unwrap_or(processors);
        Ok(Self { file, factory, schema, options, threads, columns: Vec::new(), rows: 0 })
    }

    /// The estimated size of the row group.
    fn bytes(&self) -> usize {
        self.columns
            .iter()
            .flat_map(|column| &column.leaves)
            .map(ArrowColumnWriter::get_estimated_total_bytes)
            .sum()
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

    fn begin_row_group(&mut self) -> Result<(), WriteError> {
        let column = |field: &FieldRef| Column { field: field.clone(), leaves: Vec::new() };
        self.columns = self.schema.fields().iter().map(column).collect();
        let writers = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        for (leaf, writer) in writers.into_iter().enumerate() {
            let root = self.file.schema_descr().get_column_root_idx(leaf);
            if let Some(column) = self.columns.get_mut(root) {
                column.leaves.push(writer);
            }
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<(), WriteError> {
        let threads = self.threads_for(self.rows);
        self.rows = 0;
        let close = |leaf: ArrowColumnWriter| Ok(leaf.close()?);
        let leaves = self.columns.drain(..).flat_map(|column| column.leaves);
        let chunks = parallel_map(leaves.collect(), threads, close)?;
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }

    fn threads_for(&self, rows: usize) -> usize {
        (rows.saturating_mul(self.columns.len()) / VALUES_PER_THREAD).clamp(1, self.threads.max(1))
    }
}

impl<W: Write + Send> Sink for ParquetSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let mut rest = types::to_stored(batch, &self.schema)?;
        while rest.num_rows() > 0 {
            if self.rows > 0 && self.rows_left() == 0 {
                self.end_row_group()?;
            }
            if self.rows == 0 {
                self.begin_row_group()?;
            }
            let rows = rest.num_rows().min(self.rows_left().max(1));
            let some = rest.slice(0, rows);
            let threads = self.threads_for(rows);
            let columns = self.columns.iter_mut().zip(some.columns()).collect();
            parallel_map(columns, threads, |(column, array)| column.write(array))?;
            self.rows += rows;
            rest = rest.slice(rows, rest.num_rows() - rows);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        if self.rows > 0 {
            self.end_row_group()?;
        }
        Ok(self.file.into_inner()?.flush()?)
    }
}

/// Applies `work` to each item, in up to `threads` threads including this one. Results keep the
/// order of the items.
fn parallel_map<T: Send, R: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<R, WriteError> + Sync,
) -> Result<Vec<R>, WriteError> {
    let count = items.len();
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || -> Result<Vec<(usize, R)>, WriteError> {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            done.push((number, work(item)?));
        }
        Ok(done)
    };
    let lost = |_| Err("a thread that encoded a column has panicked".into());
    let parts = std::thread::scope(|scope| {
        let begin = |_| {
            std::thread::Builder::new().name("dray-parquet".into()).spawn_scoped(scope, run).ok()
        };
        // If a thread can't be started, fewer do the work.
        let others: Vec<_> = (1..threads.min(count)).map_while(begin).collect();
        let mut parts = vec![run()];
        parts.extend(others.into_iter().map(|other| other.join().unwrap_or_else(lost)));
        parts
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut done: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    debug_assert_eq!(done.len(), count);
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

fn properties(options: FileOptions) -> Result<WriterProperties, WriteError> {
    let compression = match options.compression {
        None => Compression::ZSTD(ZstdLevel::default()),
        Some(FileCompression::None) => Compression::UNCOMPRESSED,
        Some(FileCompression::Lz4) => Compression::LZ4_RAW,
        Some(FileCompression::Snappy) => Compression::SNAPPY,
        Some(FileCompression::Gzip) => Compression::GZIP(GzipLevel::default()),
        Some(FileCompression::Zstd(level)) => Compression::ZSTD(ZstdLevel::try_new(level)?),
    };
    let created_by = concat!("dray ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(WriterProperties::builder().set_compression(compression).set_created_by(created_by).build())
}

#[cfg(test)]
mod tests {
    use std::io::{BufWriter, Write};
    use std::sync::{Arc, Mutex};

    use arrow::array::{
        Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::compute::concat_batches;
    use arrow::datatypes::{Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{FileOptions, ParquetSink, Sink, parallel_map};

    /// A file in memory.
    #[derive(Clone, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Numbers, lists of structs with two leaves, and strings with NULLs.
    fn batch(rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let texts = (0..rows).map(|row| (row % 7 > 0).then(|| format!("text {}", row % 1000)));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        let leaves = [("a", &numbers), ("b", &texts)];
        let of_leaf = |(name, array): &(&str, &ArrayRef)| {
            Arc::new(Field::new(*name, array.data_type().clone(), true))
        };
        let structs = StructArray::new(
            leaves.iter().map(of_leaf).collect(),
            leaves.iter().map(|(_, array)| (*array).clone()).collect(),
            None,
        );
        let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
        let ends = OffsetBuffer::new((0..=rows as i32).map(|row| row - row % 3).collect());
        let lists: ArrayRef = Arc::new(ListArray::new(item, ends, Arc::new(structs), None));
        let fields: Vec<Field> = [("n", &numbers), ("lists", &lists), ("t", &texts)]
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .into();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![numbers, lists, texts]).unwrap()
    }

    fn written(batch: &RecordBatch, threads: usize) -> Vec<u8> {
        let file = File::default();
        let options = FileOptions {
            row_group_rows: 70_000,
            threads: Some(threads),
            ..FileOptions::default()
        };
        let out = BufWriter::new(file.clone());
        let mut sink = Box::new(ParquetSink::start(out, &batch.schema(), options).unwrap());
        // Some batches are large enough for several threads.
        for from in (0..batch.num_rows()).step_by(90_000) {
            sink.write(&batch.slice(from, 90_000.min(batch.num_rows() - from))).unwrap();
        }
        sink.finish().unwrap();
        let bytes = file.0.lock().unwrap();
        bytes.clone()
    }

    #[test]
    fn any_number_of_threads_writes_the_same_file() {
        let batch = batch(200_000);
        let bytes = written(&batch, 1);
        assert!([2, 3, 8].iter().all(|threads| written(&batch, *threads) == bytes));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let groups: Vec<i64> =
            reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [70_000, 70_000, 60_000]);
        let read: Vec<RecordBatch> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(concat_batches(&batch.schema(), &read).unwrap(), batch);
    }

    #[test]
    fn no_rows_are_a_file() {
        let bytes = written(&batch(0), 2);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 0);
        assert_eq!(reader.schema().fields().len(), 3);
    }

    #[test]
    fn row_groups_end_at_their_bytes() {
        let batch = batch(100_000);
        let file = File::default();
        let options =
            FileOptions { row_group_bytes: 100_000, threads: Some(2), ..FileOptions::default() };
        let mut sink = Box::new(
            ParquetSink::start(BufWriter::new(file.clone()), &batch.schema(), options).unwrap(),
        );
        (0..100).for_each(|number| sink.write(&batch.slice(number * 1000, 1000)).unwrap());
        sink.finish().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let groups = reader.metadata().row_groups();
        assert!(groups.len() > 3 && groups.iter().all(|group| group.total_byte_size() < 200_000));
        assert_eq!(groups.iter().map(|group| group.num_rows()).sum::<i64>(), 100_000);
    }

    #[test]
    fn results_are_in_order_and_errors_are_returned() {
        let squares = parallel_map((0..1000).collect(), 4, |i: u64| Ok(i * i)).unwrap();
        assert_eq!(squares, (0..1000).map(|i| i * i).collect::<Vec<u64>>());
        let odd = |i: u64| if i == 500 { Err("500 is refused".into()) } else { Ok(i) };
        assert_eq!(
            parallel_map((0..1000).collect(), 4, odd).unwrap_err().to_string(),
            "500 is refused"
        );
    }
}
