//! What the footers of Parquet files say about their rows, and is wrong or not what the engine
//! takes it for.

use bytes::Bytes;
use datafusion::arrow::array::{Float32Array, Float64Array, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::parquet::data_type::{ByteArray, FixedLenByteArray};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, SortingColumn,
};
use datafusion::parquet::file::statistics::Statistics;
use dray_server::files::FileRows;

use super::*;

/// A file of a column `x`, with row groups of so many rows.
fn column(x: ArrayRef, group_rows: usize, sorted_by: &[i32]) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable([("x", x, true)]).unwrap();
    let by = |column_idx: &i32| SortingColumn {
        column_idx: *column_idx,
        descending: false,
        nulls_first: false,
    };
    let properties = WriterProperties::builder()
        .set_bloom_filter_enabled(true)
        .set_max_row_group_row_count(Some(group_rows))
        .set_sorting_columns(Some(sorted_by.iter().map(by).collect()));
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn integers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// The file with other statistics of its column in each row group.
fn with_statistics(file: Vec<u8>, of_group: impl Fn(usize) -> Option<Statistics>) -> Vec<u8> {
    let file = Bytes::from(file);
    let mut footer = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap().into_builder();
    for (number, group) in footer.take_row_groups().into_iter().enumerate() {
        let mut group = group.into_builder();
        let change = |chunk: ColumnChunkMetaData| {
            let chunk = chunk.into_builder().clear_statistics();
            match of_group(number) {
                Some(statistics) => chunk.set_statistics(statistics),
                None => chunk,
            }
        };
        let chunks = group.take_columns().into_iter().map(|chunk| change(chunk).build().unwrap());
        footer = footer.add_row_group(group.set_column_metadata(chunks.collect()).build().unwrap());
    }
    let mut changed = file.slice(..footer_start(&file)).to_vec();
    ParquetMetaDataWriter::new(&mut changed, &footer.build()).finish().unwrap();
    changed
}

fn footer_start(file: &[u8]) -> usize {
    let tail = file.len() - 8;
    tail - u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize
}

/// Checks the results of statements over a table `t` of this file, read from it and from memory.
async fn check(file: Vec<u8>, statements: &[(&str, &str)]) {
    let folder = Folder::new();
    let path = folder.write("t.parquet", file);
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options([&path]) }).await.unwrap();
        for (sql, expected) in statements {
            let found = query(&ctx, sql).await.unwrap();
            assert_eq!(found, *expected, "{sql}, in memory: {in_memory}");
        }
    }
}

/// Each row group is sorted, and the file is not. The library takes the order of the first row
/// group for that of the file, and panicked over columns that do not exist.
#[tokio::test]
async fn the_order_that_a_footer_names_is_not_the_order_of_the_rows() {
    for sorted_by in [0, 99, -1] {
        let file = column(integers(&[1, 5, 2, 6, 2, 5]), 2, &[sorted_by]);
        let folder = Folder::new();
        let path = folder.write("t.parquet", &file);
        let mut rows = FileRows::open(&[path.into()], false).await.unwrap();
        let mut read = 0;
        while let Some(batch) = rows.next().await.unwrap() {
            read += batch.num_rows();
        }
        assert_eq!(read, 6);
        let statements = [
            ("SELECT x FROM t ORDER BY x", "1\n2\n2\n5\n5\n6\n"),
            ("SELECT x FROM t ORDER BY x LIMIT 2", "1\n2\n"),
            ("SELECT x, count(*) FROM t GROUP BY x ORDER BY x", "1,1\n2,2\n5,2\n6,1\n"),
            (
                "SELECT x, row_number() OVER (ORDER BY x) FROM t WHERE x > 4 ORDER BY 2",
                "5,1\n5,2\n6,3\n",
            ),
        ];
        check(file, &statements).await;
    }
}

/// Writers leave NaN out of the bounds of a column, and write 0.0 as -0.0.
#[tokio::test]
async fn floats_of_parquet_files_are_those_of_arrow_files() {
    let columns: &[&[f64]] = &[
        &[1.0, f64::NAN, 1.0],
        &[1.0, -f64::NAN, 1.0],
        &[0.0, 1.0],
        &[-0.0, 0.0],
        &[f64::NAN, 7.0],
        &[-f64::NAN, 7.0],
        &[f64::NAN, f64::NAN],
        &[2.0, f64::NAN, 8.0, f64::NAN],
    ];
    let statements = [
        "SELECT x FROM t ORDER BY x",
        "SELECT min(x), max(x), count(x), count(DISTINCT x) FROM t",
        "SELECT x FROM t WHERE x > 5 ORDER BY x",
        "SELECT x FROM t WHERE x < 5 ORDER BY x",
        "SELECT count(*) FROM t WHERE x <= 0",
        "SELECT count(*) FROM t WHERE x = 0",
        "SELECT x FROM t WHERE x = 'NaN'::double ORDER BY x",
        "SELECT x FROM t WHERE x <> 1 ORDER BY x",
        "SELECT count(*) FROM (SELECT x FROM t WHERE x < 5 LIMIT 1)",
        "SELECT count(*) FROM (SELECT x FROM t WHERE x > 5 LIMIT 1)",
        "SELECT x FROM t ORDER BY x DESC LIMIT 1",
        "SELECT x FROM t ORDER BY x LIMIT 1",
    ];
    for values in columns {
        let doubles: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let singles: ArrayRef =
            Arc::new(Float32Array::from_iter_values(values.iter().map(|value| *value as f32)));
        let halves = cast(&singles, &DataType::Float16).unwrap();
        for x in [doubles, singles, halves] {
            let folder = Folder::new();
            let batch = RecordBatch::try_from_iter([("x", Arc::clone(&x))]).unwrap();
            let arrow = open([folder.write("t.arrow", arrow_file(&batch, None))]).await;
            let mut results = Vec::new();
            for sql in statements {
                results.push(query(&arrow, sql).await.unwrap());
            }
            let expected: Vec<_> =
                statements.into_iter().zip(results.iter().map(String::as_str)).collect();
            for group_rows in [1, 100] {
                check(column(Arc::clone(&x), group_rows, &[]), &expected).await;
            }
        }
    }
}

/// Old writers compared bytes and unsigned integers as signed ones.
#[tokio::test]
async fn bounds_in_the_order_of_old_writers_are_not_used() {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "z", "été"]));
    let old = |min: &str, max: &str| {
        let (min, max) = (ByteArray::from(min), ByteArray::from(max));
        Statistics::byte_array(Some(min), Some(max), None, Some(0), true)
    };
    let file = with_statistics(column(names, 3, &[]), |_| Some(old("été", "z")));
    let statements = [
        ("SELECT x FROM t WHERE x = 'été'", "été\n"),
        ("SELECT x FROM t WHERE x = 'a'", "a\n"),
        ("SELECT min(x), max(x) FROM t", "a,été\n"),
    ];
    check(file, &statements).await;

    let prices = Decimal128Array::from(vec![127, 128]).with_precision_and_scale(38, 2).unwrap();
    let bytes = |value: i128| FixedLenByteArray::from(value.to_be_bytes().to_vec());
    let (min, max) = (bytes(128), bytes(127));
    let bounds = Statistics::fixed_len_byte_array(Some(min), Some(max), None, Some(0), true);
    let file = with_statistics(column(Arc::new(prices), 3, &[]), |_| Some(bounds.clone()));
    let statements = [
        ("SELECT x FROM t WHERE x = 1.27", "1.27\n"),
        ("SELECT x FROM t WHERE x > 1.27", "1.28\n"),
        ("SELECT min(x), max(x) FROM t", "1.27,1.28\n"),
    ];
    check(file, &statements).await;

    let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1, 3_000_000_000]));
    let bounds =
        Statistics::int32(Some(3_000_000_000u32.cast_signed()), Some(1), None, Some(0), true);
    let file = with_statistics(column(numbers, 3, &[]), |_| Some(bounds.clone()));
    let statements = [
        ("SELECT x FROM t WHERE x = 1", "1\n"),
        ("SELECT x FROM t WHERE x > 1", "3000000000\n"),
        ("SELECT min(x), max(x) FROM t", "1,3000000000\n"),
    ];
    check(file, &statements).await;
}

/// The footer names an order that only later versions of the format define. The bounds of that
/// order would be wrong in the order of the type.
#[tokio::test]
async fn bounds_in_an_unknown_order_are_not_used() {
    let bounds = Statistics::int64(Some(5), Some(2), None, Some(0), false);
    let mut file = with_statistics(column(integers(&[2, 5]), 3, &[]), |_| Some(bounds.clone()));
    // A list of one union, whose first field is an empty structure.
    let (of_type, other) = ([0x19, 0x1C, 0x1C, 0, 0], [0x19, 0x1C, 0x2C, 0, 0]);
    let start = footer_start(&file);
    let places: Vec<_> =
        (start..file.len() - 5).filter(|at| file[*at..].starts_with(&of_type)).collect();
    assert_eq!(places.len(), 1);
    file[places[0]..places[0] + 5].copy_from_slice(&other);
    let statements = [
        ("SELECT x FROM t WHERE x = 2", "2\n"),
        ("SELECT x FROM t WHERE x > 4", "5\n"),
        ("SELECT min(x), max(x) FROM t", "2,5\n"),
    ];
    check(file, &statements).await;
}

#[tokio::test]
async fn missing_and_impossible_numbers_of_nulls_are_not_used() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(3)]));
    for nulls in [None, Some(4)] {
        let bounds = Statistics::int64(Some(3), Some(3), None, nulls, false);
        let file = with_statistics(column(Arc::clone(&numbers), 3, &[]), |_| Some(bounds.clone()));
        let statements = [
            ("SELECT x FROM t", "3\n\"\"\n3\n"),
            ("SELECT count(*) FROM t WHERE x IS NULL", "1\n"),
            ("SELECT count(*) FROM t WHERE x IS NOT NULL", "2\n"),
            ("SELECT count(x), min(x), max(x) FROM t", "2,3,3\n"),
        ];
        check(file, &statements).await;
    }
}

/// Writers leave out bounds that are too long, or know none.
#[tokio::test]
async fn bounds_of_some_row_groups_are_not_those_of_a_file() {
    let bounds = Statistics::int64(Some(3), Some(4), Some(1), Some(0), false);
    let file = column(integers(&[3, 4, 1, 9]), 2, &[]);
    let file = with_statistics(file, |group| (group == 0).then(|| bounds.clone()));
    let statements = [
        ("SELECT min(x), max(x), count(x), count(DISTINCT x) FROM t", "1,9,4,4\n"),
        ("SELECT x FROM t WHERE x > 5", "9\n"),
    ];
    check(file, &statements).await;
    // Nor is an estimate the number of distinct values.
    let file = with_statistics(column(integers(&[3, 4]), 2, &[]), |_| Some(bounds.clone()));
    check(file, &[("SELECT count(DISTINCT x) FROM t", "2\n")]).await;
}

/// The number of row groups that are left after their statistics were looked at.
async fn matched(file: Vec<u8>, filter: &str) -> String {
    let folder = Folder::new();
    let ctx = open([folder.write("t.parquet", file)]).await;
    let plan = query(&ctx, &format!("EXPLAIN ANALYZE SELECT x FROM t WHERE {filter}")).await;
    let plan = plan.unwrap();
    let start = plan.find("row_groups_pruned_statistics=").unwrap_or_else(|| panic!("{plan}"));
    plan[start..].split([',', ']']).next().unwrap().to_owned()
}

#[tokio::test]
async fn other_bounds_leave_row_groups_out() {
    let two = "row_groups_pruned_statistics=2 total \u{2192} 1 matched";
    let numbers = column(integers(&[1, 2, 8, 9]), 2, &[]);
    let old = |group: usize| {
        let (min, max) = [(1, 2), (8, 9)][group];
        Some(Statistics::int64(Some(min), Some(max), None, Some(0), true))
    };
    let old_numbers = with_statistics(numbers.clone(), old);
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "y", "z"]));
    let prices = Decimal128Array::from(vec![1, 2, 8, 9]).with_precision_and_scale(38, 0).unwrap();
    for (file, filter) in [
        (numbers, "x IN (3, 8)"),
        (old_numbers, "x IN (3, 8)"),
        (column(names, 2, &[]), "x > 'y'"),
        (column(Arc::new(prices), 2, &[]), "x > 7"),
    ] {
        let found = matched(file, filter).await;
        assert!(found.starts_with(two), "{filter}: {found}");
    }
}
