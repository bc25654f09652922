//! What the digest covers, and what it does not depend on.

use std::sync::Arc;

use arrow::array::{
    BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    FixedSizeListArray, Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray,
    MapBuilder, NullArray, StringArray, StringBuilder, StringViewArray, StructArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int32Type, Int64Type};

use super::*;

fn digest(batches: &[RecordBatch]) -> (u64, u64) {
    let mut digest = RowDigest::default();
    for batch in batches {
        digest.add(batch).unwrap();
    }
    (digest.rows, digest.digest)
}

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let named = columns.into_iter().enumerate().map(|(i, column)| (format!("c{i}"), column));
    RecordBatch::try_from_iter(named).unwrap()
}

fn one(column: impl Array + 'static) -> RecordBatch {
    batch(vec![Arc::new(column)])
}

/// Columns of all shapes, `rows` of each.
fn wide(rows: i64) -> RecordBatch {
    let n = || 0..rows;
    let some = |i: i64| (i % 5 != 2).then_some(i);
    let texts = n().map(|i| some(i).map(|i| "täxt of some length".repeat((i % 4) as usize)));
    let lists = n().map(|i| some(i).map(|i| (0..i % 4).map(some).collect::<Vec<_>>()));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let pairs = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        n().map(|i| some(i).map(|i| [Some(i as i32), None])),
        2,
    );
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for i in n() {
        for key in 0..i % 3 {
            maps.keys().append_value(key.to_string());
            maps.values().append_option(some(i + key).map(|value| value.to_string()));
        }
        maps.append(some(i).is_some()).unwrap();
    }
    let integers: ArrayRef = Arc::new(n().map(some).collect::<Int64Array>());
    let words: ArrayRef = Arc::new(texts.clone().collect::<StringArray>());
    let structs = StructArray::try_from(vec![("a", integers.clone()), ("b", words.clone())]);
    let numbers = n().map(|i| some(i).map(|i| i as f64 / 7.0)).collect::<Float64Array>();
    let decimals = n().map(|i| some(i).map(i128::from)).collect::<Decimal128Array>();
    batch(vec![
        integers,
        words,
        Arc::new(numbers),
        Arc::new(decimals),
        Arc::new(n().map(|i| some(i).map(|i| i % 2 == 0)).collect::<BooleanArray>()),
        Arc::new(lists),
        Arc::new(pairs),
        Arc::new(maps.finish()),
        Arc::new(structs.unwrap()),
        Arc::new(NullArray::new(rows as usize)),
        Arc::new(BinaryArray::from_iter_values(n().map(|i| vec![7; (i % 20) as usize]))),
    ])
}

#[test]
fn the_worked_example() {
    let rows = one(Int32Array::from(vec![Some(7), None, Some(-1)]));
    // spec/partitions.md section 6.
    assert_eq!(digest(&[rows]), (3, DIGEST_OF_THE_SPECIFICATION));
}

const DIGEST_OF_THE_SPECIFICATION: u64 = 0x8002_605C_9D14_024A;

#[test]
fn neither_batches_nor_order_matter() {
    let whole = wide(5000);
    let expected = digest(std::slice::from_ref(&whole));
    assert_eq!(expected.0, 5000);
    for size in [1, 7, 2048, 2049, 4999] {
        let pieces = (0..5000).step_by(size).map(|at| whole.slice(at, size.min(5000 - at)));
        let mut pieces = pieces.collect::<Vec<_>>();
        assert_eq!(digest(&pieces), expected, "batches of {size}");
        pieces.reverse();
        assert_eq!(digest(&pieces), expected, "reversed batches of {size}");
        assert_eq!(digest(&[concat_batches(&whole.schema(), &pieces).unwrap()]), expected);
    }
}

#[test]
fn every_value_matters() {
    let whole = wide(40);
    let expected = digest(std::slice::from_ref(&whole));
    for column in 0..whole.num_columns() {
        // One column's values move down by a row.
        let mut columns = whole.columns().to_vec();
        let moved = std::iter::once(39).chain(0..39).collect::<arrow::array::UInt64Array>();
        columns[column] = take(columns[column].as_ref(), &moved, None).unwrap();
        let same = matches!(columns[column].data_type(), DataType::Null);
        assert_eq!(digest(&[batch(columns)]) == expected, same, "column {column}");
    }
    let two = |a: Vec<Option<&str>>, b: Vec<Option<&str>>| {
        digest(&[batch(vec![Arc::new(StringArray::from(a)), Arc::new(StringArray::from(b))])])
    };
    let all = [
        two(vec![Some("a")], vec![Some("b")]),
        two(vec![Some("ab")], vec![Some("")]),
        two(vec![Some("")], vec![Some("ab")]),
        two(vec![None], vec![Some("ab")]),
        two(vec![Some("ab")], vec![None]),
        two(vec![Some("ab\0")], vec![None]),
        two(vec![Some("ab"), Some("ab")], vec![None, None]),
        two(vec![], vec![]),
    ];
    for (i, digest) in all.iter().enumerate() {
        assert!(!all[..i].contains(digest), "{i}");
    }
}

#[test]
fn layouts_do_not_matter() {
    let words = || [Some("one"), None, Some("one"), Some("a longer text than twelve bytes")];
    let expected = digest(&[one(StringArray::from_iter(words()))]);
    assert_eq!(digest(&[one(LargeStringArray::from_iter(words()))]), expected);
    assert_eq!(digest(&[one(StringViewArray::from_iter(words()))]), expected);
    assert_eq!(
        digest(&[one(words().into_iter().collect::<DictionaryArray<Int32Type>>())]),
        expected
    );
    let uuid = FixedSizeBinaryArray::try_from_iter([[1_u8; 16], [2; 16]].into_iter()).unwrap();
    assert_ne!(digest(&[one(uuid.slice(0, 1))]), digest(&[one(uuid.slice(1, 1))]));
}
