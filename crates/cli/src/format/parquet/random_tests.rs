//! Random columns of numbers in random batches and row groups, as the library reads them again.
//! `DRAY_ROUNDS` sets the number of tables, and `DRAY_SEED` the first seed.

use std::sync::Arc;

use arrow::array::types::ArrowPrimitiveType;
use arrow::array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, DurationNanosecondType,
    Field, Int8Type, Int16Type, Int32Type, Int64Type, Schema, Time32MillisecondType,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType, UInt32Type,
};
use parquet::basic::SortOrder;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::super::{FileCompression, FileOptions};
use super::numbers_tests::{read, written_as, written_by_library};

/// Microseconds.
const DAY: i64 = 24 * 3600 * 1_000_000;

/// A generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Numbers in stretches of several kinds: runs, few values, rising and falling ones, any bits, and
/// the ends of the type.
fn numbers(random: &mut Random, rows: usize) -> Vec<i64> {
    let mut numbers = Vec::with_capacity(rows);
    let ends = [i64::MIN, i64::MAX, i64::MIN + 1, 0, -1, 1 << 31, -(1 << 31) - 1, 1 << 17];
    while numbers.len() < rows {
        let stretch = random.one_of(&[90_000, 900, 900, 900]);
        let stretch = 1 + random.below(stretch) as usize;
        let (kind, base, few) = (random.below(8), random.next() as i64, 1 + random.below(3000));
        let value = |at: usize, random: &mut Random| match kind {
            0 => base,
            1 => base.wrapping_add(random.below(few) as i64),
            2 => (at as i64) / 3,
            3 => base.wrapping_sub(at as i64),
            4 => random.next() as i64,
            5 => random.one_of(&ends),
            6 => random.below(few) as i64 - 5,
            _ => (random.below(few) as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64),
        };
        numbers.extend((0..stretch).map(|at| value(at, random)));
    }
    numbers.truncate(rows);
    numbers
}

/// Which rows are NULL: none, all, some at random, or long runs.
fn is_null(random: &mut Random, rows: usize) -> Vec<bool> {
    match random.below(5) {
        0 => vec![false; rows],
        1 => vec![true; rows],
        2 => (0..rows).map(|_| random.below(50) == 0).collect(),
        3 => (0..rows).map(|_| random.below(3) > 0).collect(),
        _ => {
            let mut all = Vec::with_capacity(rows);
            while all.len() < rows {
                let run = random.one_of(&[30_000, 70]);
                let run = 1 + random.below(run) as usize;
                let value = random.below(2) == 0;
                all.extend(std::iter::repeat_n(value, run));
            }
            all.truncate(rows);
            all
        }
    }
}

fn array<T: ArrowPrimitiveType>(
    numbers: &[i64],
    nulls: &[bool],
    native: impl Fn(i64) -> T::Native,
) -> PrimitiveArray<T> {
    let values: Vec<T::Native> = numbers.iter().map(|number| native(*number)).collect();
    let valid: Vec<bool> = nulls.iter().map(|is_null| !is_null).collect();
    PrimitiveArray::new(values.into(), Some(valid.into()))
}

fn column(random: &mut Random, rows: usize) -> ArrayRef {
    let (numbers, nulls) = (&numbers(random, rows), &is_null(random, rows));
    let digits = |max: u64, random: &mut Random| 1 + random.below(max) as u8;
    let bounded = |number: i64, digits: u8| number % 10_i64.pow(digits.into());
    match random.below(15) {
        0 => Arc::new(array::<Int8Type>(numbers, nulls, |number| number as i8)),
        1 => Arc::new(array::<Int16Type>(numbers, nulls, |number| number as i16)),
        2 => Arc::new(array::<Int32Type>(numbers, nulls, |number| number as i32)),
        3 => Arc::new(array::<Int64Type>(numbers, nulls, |number| number)),
        4 => Arc::new(array::<UInt32Type>(numbers, nulls, |number| number as u32)),
        5 => Arc::new(array::<Date32Type>(numbers, nulls, |number| number as i32)),
        6 => Arc::new(array::<Time32MillisecondType>(numbers, nulls, |n| {
            n.rem_euclid(DAY / 1000) as i32
        })),
        7 => Arc::new(array::<Time64MicrosecondType>(numbers, nulls, |n| n.rem_euclid(DAY))),
        8 => Arc::new(array::<TimestampMicrosecondType>(numbers, nulls, |number| number)),
        9 => {
            let array = array::<TimestampNanosecondType>(numbers, nulls, |number| number);
            Arc::new(array.with_timezone("Europe/Berlin"))
        }
        10 => Arc::new(array::<DurationNanosecondType>(numbers, nulls, |number| number)),
        11 => {
            // One digit becomes a decimal of 64 bits.
            let digits = 1 + digits(8, random);
            let array = array::<Decimal32Type>(numbers, nulls, |n| bounded(n, digits) as i32);
            Arc::new(array.with_precision_and_scale(digits, 0).unwrap())
        }
        12 => {
            let digits = digits(18, random);
            let array = array::<Decimal64Type>(numbers, nulls, |n| bounded(n, digits));
            Arc::new(array.with_precision_and_scale(digits, digits as i8).unwrap())
        }
        13 => {
            let digits = digits(18, random);
            let array = array::<Decimal128Type>(numbers, nulls, |n| bounded(n, digits).into());
            Arc::new(array.with_precision_and_scale(digits, 1).unwrap())
        }
        // The library encodes it.
        _ => {
            cast(&array::<Int32Type>(numbers, nulls, |n| n as i32 % 100), &DataType::Utf8).unwrap()
        }
    }
}

fn table(random: &mut Random) -> RecordBatch {
    let rows = random.one_of(&[0, 1, 7, 8, 9, 4095, 19_999, 20_000, 20_001, 60_000, 150_000]);
    let columns: Vec<ArrayRef> = (0..1 + random.below(8)).map(|_| column(random, rows)).collect();
    let field = |(number, array): (usize, &ArrayRef)| {
        let nullable = array.null_count() > 0 || number.is_multiple_of(2);
        Field::new(format!("c{number}"), array.data_type().clone(), nullable)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// The pages of a column chunk lie one after the other, from the dictionary's to the last one.
fn check_places(column: &ColumnChunkMetaData, pages: &[(i64, i64)]) {
    let (start, bytes) = column.byte_range();
    let mut at = column.data_page_offset();
    for (offset, bytes) in pages {
        assert_eq!(*offset, at);
        at += bytes;
    }
    assert_eq!(at as u64, start + bytes);
    assert_eq!(column.dictionary_page_offset().unwrap_or(column.data_page_offset()) as u64, start);
}

/// What the pages' index says adds up to the statistics of their chunk.
fn check_index(index: &ColumnIndexMetaData, statistics: &Statistics) {
    macro_rules! check {
        ($index:expr, $statistics:expr) => {{
            assert_eq!($index.min_values_iter().flatten().min(), $statistics.min_opt());
            assert_eq!($index.max_values_iter().flatten().max(), $statistics.max_opt());
            let pages = 0..$index.min_values_iter().count();
            let nulls: i64 = pages.map(|page| $index.null_count(page).unwrap()).sum();
            assert_eq!(Some(nulls as u64), $statistics.null_count_opt());
        }};
    }
    match (index, statistics) {
        (ColumnIndexMetaData::INT32(index), Statistics::Int32(statistics)) => {
            check!(index, statistics)
        }
        (ColumnIndexMetaData::INT64(index), Statistics::Int64(statistics)) => {
            check!(index, statistics)
        }
        _ => {}
    }
}

fn check_metadata(metadata: &ParquetMetaData) {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        assert_eq!(
            group.total_byte_size(),
            group.columns().iter().map(ColumnChunkMetaData::uncompressed_size).sum::<i64>()
        );
        for (leaf, column) in group.columns().iter().enumerate() {
            let index = &metadata.offset_index().unwrap()[number][leaf];
            let pages: Vec<(i64, i64)> = index
                .page_locations
                .iter()
                .map(|page| (page.offset, i64::from(page.compressed_page_size)))
                .collect();
            check_places(column, &pages);
            let index = &metadata.column_index().unwrap()[number][leaf];
            if column.column_descr().sort_order() == SortOrder::SIGNED {
                column.statistics().iter().for_each(|statistics| check_index(index, statistics));
            }
        }
    }
}

#[test]
fn random_tables_come_back() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = setting("DRAY_SEED").unwrap_or(1);
    let codecs = [
        FileCompression::None,
        FileCompression::Lz4,
        FileCompression::Snappy,
        FileCompression::Zstd(1),
    ];
    for seed in first..first + setting("DRAY_ROUNDS").unwrap_or(20) {
        println!("DRAY_SEED={seed}");
        let mut random = Random(seed);
        let batch = table(&mut random);
        let options = FileOptions {
            compression: Some(random.one_of(&codecs)),
            row_group_rows: random.one_of(&[1000, 20_000, 33_333, 122_880, usize::MAX]),
            threads: Some(1 + random.below(3) as usize),
            ..FileOptions::default()
        };
        let bytes = written_as(&batch.schema(), &batch, options).unwrap();
        if let Ok(folder) = std::env::var("DRAY_KEEP") {
            // For other readers: the same rows from the library.
            let path = |name: &str| std::path::Path::new(&folder).join(format!("{name}-{seed}"));
            let expected = written_by_library(&batch, FileCompression::Snappy);
            std::fs::write(path("dray").with_extension("parquet"), &bytes).unwrap();
            std::fs::write(path("library").with_extension("parquet"), expected).unwrap();
        }
        if batch.num_rows() == 0 {
            continue;
        }
        let (metadata, found) = read(&bytes);
        assert_eq!(found, batch);
        check_metadata(&metadata);
    }
}
