//! Compares keys with Arrow's own comparison of rows, for random types, directions and places of
//! nulls; and with the worked bytes of `spec/sort-key.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_arrow;
#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use arrow_array::types::Int16Type;
use arrow_array::{
    ArrayRef, BinaryArray, Float64Array, Int32Array, ListArray, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use by_arrow::comparator;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_sort::{Error, KeyEncoder, KeyPurpose, Keys, SortColumn};
use random::Random;

fn keys_of(rows: &RecordBatch, by: &[SortColumn], purpose: KeyPurpose) -> Keys {
    let schema = schema_from_arrow(&rows.schema()).unwrap();
    KeyEncoder::new(&schema, by, purpose).unwrap().encode(&batch_from_arrow(rows).unwrap())
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn keys_are_in_the_order_of_their_rows() {
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let fields: Vec<Field> =
            (0..1 + random.below(3)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let schema = Arc::new(Schema::new(fields));
        let rows = random.pieces(&schema).swap_remove(0);
        let rows = rows.slice(0, rows.num_rows().min(40));
        let by: Vec<SortColumn> = (0..rows.num_columns())
            .map(|column| SortColumn {
                column,
                descending: random.below(2) == 0,
                nulls_first: random.below(2) == 0,
            })
            .collect();
        let keys = keys_of(&rows, &by, KeyPurpose::Order);
        assert_eq!(keys.len(), rows.num_rows(), "seed {seed}");
        let compare = comparator(&rows, &by);
        for a in 0..rows.num_rows() {
            for b in 0..rows.num_rows() {
                let (first, second) = (keys.get(a), keys.get(b));
                assert_eq!(
                    first.cmp(second),
                    compare(a, b),
                    "seed {seed}, rows {a} and {b} of {:?} by {by:?}: {first:02X?}, {second:02X?}",
                    rows.schema()
                );
            }
        }
    }
}

/// The key of the first row of a column.
fn key(values: ArrayRef, nullable: bool, descending: bool, nulls_first: bool) -> Vec<u8> {
    let schema = Schema::new(vec![Field::new("a", values.data_type().clone(), nullable)]);
    let rows = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
    keys_of(&rows, &[SortColumn { column: 0, descending, nulls_first }], KeyPurpose::Order)
        .get(0)
        .to_vec()
}

#[test]
fn worked_bytes() {
    let int = |value: Option<i32>| Arc::new(Int32Array::from(vec![value])) as ArrayRef;
    assert_eq!(key(int(Some(1)), false, false, true), [0x80, 0, 0, 1]);
    assert_eq!(key(int(Some(-1)), false, false, true), [0x7F, 0xFF, 0xFF, 0xFF]);
    assert_eq!(key(int(None), true, false, true), [0, 0, 0, 0, 0]);
    assert_eq!(key(int(Some(0)), true, false, true), [1, 0x80, 0, 0, 0]);
    assert_eq!(key(int(None), true, true, false), [2, 0, 0, 0, 0]);
    assert_eq!(key(int(Some(1)), true, true, false), [1, 0x7F, 0xFF, 0xFF, 0xFE]);
    let float = |value: f64| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
    assert_eq!(key(float(-0.0), false, false, true), 0x7FFF_FFFF_FFFF_FFFFu64.to_be_bytes());
    assert_eq!(key(float(1.0), false, false, true), 0xBFF0_0000_0000_0000u64.to_be_bytes());
    let text = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
    assert_eq!(key(text("ab"), false, false, true), [0x61, 0x62, 0]);
    assert_eq!(key(text(""), false, false, true), [0]);
    assert_eq!(key(text("ab"), true, true, true), [1, 0x9E, 0x9D, 0xFF]);
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&[0u8, 1, 2][..]]));
    assert_eq!(key(binary, false, false, true), [1, 1, 1, 2, 2, 0]);
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int16Type, _, _>([Some(vec![Some(1), None])]));
    assert_eq!(key(list.clone(), false, false, true), [1, 1, 0x80, 1, 1, 0, 0, 0, 0]);
    assert_eq!(
        key(list, false, true, true),
        [0xFE, 0xFE, 0x7F, 0xFE, 0xFE, 0xFD, 0xFF, 0xFF, 0xFF]
    );
}

#[test]
fn zeros_and_nans_are_one_only_where_they_should_be() {
    let nan = |bits: u64| f64::from_bits(bits);
    let values = vec![
        0.0,
        -0.0,
        f64::NAN,
        nan(0x7FF0_0000_0000_0001),
        nan(0xFFF8_0000_0000_0000),
        f64::INFINITY,
        -1.5,
    ];
    let schema = Schema::new(vec![Field::new("f", DataType::Float64, false)]);
    let rows =
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Float64Array::from(values))]).unwrap();
    let by = [SortColumn { column: 0, descending: false, nulls_first: false }];
    let distinct = |purpose| {
        let keys = keys_of(&rows, &by, purpose);
        (0..keys.len())
            .map(|row| keys.get(row).to_vec())
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!(distinct(KeyPurpose::Order), 7);
    assert_eq!(distinct(KeyPurpose::Distinct), 4);
}

#[test]
fn a_column_that_is_not_there_is_an_error() {
    let schema =
        schema_from_arrow(&Schema::new(vec![Field::new("a", DataType::Int8, false)])).unwrap();
    let by = [SortColumn { column: 1, descending: false, nulls_first: false }];
    let error = KeyEncoder::new(&schema, &by, KeyPurpose::Order).unwrap_err();
    assert_eq!(error, Error::Column { column: 1, columns: 1 });
    assert_eq!(error.to_string(), "no column 1 to sort by, there are 1");
}
