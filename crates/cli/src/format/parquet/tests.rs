use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{FileOptions, ParquetSink, Sink, parallel_map};

/// A file in memory.
#[derive(Clone, Default)]
pub(super) struct File(Arc<Mutex<Vec<u8>>>);

impl File {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

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
    let options =
        FileOptions { row_group_rows: 70_000, threads: Some(threads), ..FileOptions::default() };
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
    let squares = parallel_map((0..1000).collect(), &mut [(); 4], |i: u64, _| Ok(i * i)).unwrap();
    assert_eq!(squares, (0..1000).map(|i| i * i).collect::<Vec<u64>>());
    let odd = |i: u64, _: &mut ()| if i == 500 { Err("500 is refused".into()) } else { Ok(i) };
    assert_eq!(
        parallel_map((0..1000).collect(), &mut [(); 4], odd).unwrap_err().to_string(),
        "500 is refused"
    );
}
