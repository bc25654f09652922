//! Bytes of rows, worked out by hand from PostgreSQL's manual (COPY, "Binary Format").

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, RecordBatch, RunArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Int8Type, Int32Type, IntervalMonthDayNano};
use dray_pgcopy::{Encoder, Error, Format, Target};
use dray_pgtypes::builtin;

fn encoder(batch: &RecordBatch, targets: &[(u32, i32)]) -> Encoder {
    let targets = targets.iter().map(|(oid, typmod)| {
        let pg_type = builtin(*oid, *typmod).unwrap();
        Target { declared: pg_type.name.clone(), pg_type }
    });
    Encoder::new(batch.schema(), targets.collect(), None).unwrap()
}

fn encoded(batch: &RecordBatch, targets: &[(u32, i32)]) -> Result<Vec<u8>, Error> {
    let mut encoder = encoder(batch, targets);
    let mut all = encoder.header().to_vec();
    let mut block = Vec::new();
    let mut blocks = encoder.batch(batch, 0)?;
    while blocks.next_block(&mut block)? {
        all.extend_from_slice(&block);
    }
    all.extend_from_slice(encoder.trailer());
    assert_eq!(encoder.rows(), batch.num_rows() as u64);
    Ok(all)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn rows_of_plain_columns() {
    let decimals = Decimal128Array::from(vec![Some(-12_345), None]);
    let decimals = decimals.with_precision_and_scale(9, 2).unwrap();
    let rows = batch(vec![
        ("i", Arc::new(Int32Array::from(vec![Some(7), None]))),
        ("s", Arc::new(StringArray::from(vec!["", "ab"]))),
        ("d", Arc::new(decimals)),
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![946_684_800_000_001, 0]))),
    ]);
    let expected: &[&[u8]] = &[
        b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0",
        // Four columns: 7, '', -123.45, 2000-01-01 00:00:00.000001.
        b"\0\x04\0\0\0\x04\0\0\0\x07\0\0\0\0",
        // Two digits in base 10,000, weight 0, negative, scale 2: 123 and 4500.
        b"\0\0\0\x0c\0\x02\0\0\x40\0\0\x02\0\x7b\x11\x94",
        b"\0\0\0\x08\0\0\0\0\0\0\0\x01",
        // NULL, 'ab', NULL, 1970-01-01: -946,684,800,000,000 microseconds.
        b"\0\x04\xff\xff\xff\xff\0\0\0\x02ab\xff\xff\xff\xff",
        b"\0\0\0\x08\xff\xfc\xa2\xfe\xc4\xc8\x20\0",
        b"\xff\xff",
    ];
    assert_eq!(
        encoded(&rows, &[(23, -1), (25, -1), (1700, -1), (1114, -1)]).unwrap(),
        expected.concat()
    );
}

#[test]
fn text_for_all_columns_beside_a_type_without_binary_form() {
    let rows = batch(vec![
        ("a", Arc::new(StringArray::from(vec![Some("::1"), None]))),
        ("s", Arc::new(StringArray::from(vec!["a\tb\\\n", ""]))),
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![-1, 0]))),
    ]);
    let targets = [(869, -1), (25, -1), (1114, -1)];
    assert_eq!(encoder(&rows, &targets).format(), Format::Text);
    let text = String::from_utf8(encoded(&rows, &targets).unwrap()).unwrap();
    assert_eq!(text, "::1\ta\\tb\\\\\\n\t1969-12-31 23:59:59.999999\n\\N\t\t1970-01-01 00:00:00\n");
}

#[test]
fn text_says_what_a_session_could_read_otherwise() {
    let interval = IntervalMonthDayNano::new(-1, 2, 3_000_000);
    let rows = batch(vec![
        ("a", Arc::new(StringArray::from(vec!["::1"]))),
        ("i", Arc::new(IntervalMonthDayNanoArray::from(vec![interval]))),
        ("x", Arc::new(StringArray::from(vec!["<?xml version='1.0' encoding='LATIN1'?><a>é</a>"]))),
    ]);
    let text = String::from_utf8(encoded(&rows, &[(869, -1), (1186, -1), (142, -1)]).unwrap());
    let sent = "::1\t-1 mons +2 days +00:00:00.003000\t\
                <?xml version='1.0' encoding='LATIN1'?><a>é</a>\n";
    assert_eq!(text.unwrap(), sent);
    // In binary a server reads XML in the encoding that it declares.
    assert_eq!(encoder(&rows.project(&[2]).unwrap(), &[(142, -1)]).format(), Format::Text);
    let strings: [(&str, u32, &str); 2] =
        [(&"x".repeat(64), 19, "63 bytes"), ("\\200", 18, "type that has only text")];
    for (value, oid, why) in strings {
        let rows = batch(vec![
            ("a", Arc::new(StringArray::from(vec!["::1"]))),
            ("v", Arc::new(StringArray::from(vec![value]))),
        ]);
        let error = encoded(&rows, &[(869, -1), (oid, -1)]).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn nested_values_as_json() {
    let runs = RunArray::<Int32Type>::try_new(
        &Int32Array::from(vec![2, 3, 5]),
        &Int64Array::from(vec![Some(7), None, Some(8)]),
    );
    let words: DictionaryArray<Int8Type> =
        [Some("a"), None, Some("b"), Some("a"), None].into_iter().collect();
    let wide = Decimal128Array::from(vec![12_345, -1, 0, 5, 6]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("r", Arc::new(runs.unwrap())),
        ("d", Arc::new(words)),
        // A value beyond the declared precision keeps its digits.
        ("n", Arc::new(wide.clone().with_precision_and_scale(2, 1).unwrap())),
        ("z", Arc::new(wide.with_precision_and_scale(9, -2).unwrap())),
    ];
    let fields = columns.iter().map(|(name, of)| Field::new(*name, of.data_type().clone(), true));
    let columns = columns.iter().map(|(_, column)| column.clone()).collect();
    let structs = StructArray::new(fields.collect(), columns, None);
    let rows = batch(vec![("j", Arc::new(structs.slice(1, 4)) as _)]);
    let all = encoded(&rows, &[(114, -1)]).unwrap();
    let expected = [
        r#"{"r":7,"d":null,"n":-0.1,"z":-100}"#,
        r#"{"r":null,"d":"b","n":0.0,"z":0}"#,
        r#"{"r":8,"d":"a","n":0.5,"z":500}"#,
        r#"{"r":8,"d":null,"n":0.6,"z":600}"#,
    ];
    let text = String::from_utf8_lossy(&all);
    let found: Vec<&str> = text.split(|c| "{}".contains(c)).skip(1).step_by(2).collect();
    let expected: Vec<_> = expected.iter().map(|row| &row[1..row.len() - 1]).collect();
    assert_eq!(found, expected);
    let first = batch(vec![("j", Arc::new(structs.slice(0, 1)) as _)]);
    let first = encoded(&first, &[(114, -1)]).unwrap();
    assert!(String::from_utf8_lossy(&first).contains(r#""n":1234.5,"z":1234500"#));
}

#[test]
fn slices_of_lists_have_their_items() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![]),
        Some(vec![Some(3), None]),
    ]);
    let whole = encoded(&batch(vec![("l", Arc::new(lists.clone()))]), &[(1007, -1)]).unwrap();
    let (start, end) = (19 + 6 + 20 + 16, whole.len());
    for first in 1..4 {
        let rows = batch(vec![("l", Arc::new(lists.slice(first, 4 - first)))]);
        let all = encoded(&rows, &[(1007, -1)]).unwrap();
        let skipped = [0, 6, 6 + 6 + 12][first - 1];
        assert_eq!(&all[19..], &whole[start + skipped..end], "{first}");
    }
}

#[test]
fn blocks_end_in_the_middle_of_a_batch() {
    let long = "x".repeat(40_000);
    let strings: Vec<&str> = (0..5_000).map(|i| if i % 100 == 7 { &long } else { "y" }).collect();
    let rows = batch(vec![
        ("i", Arc::new(Int64Array::from_iter_values(0..5_000))),
        ("s", Arc::new(StringArray::from(strings))),
    ]);
    let all = encoded(&rows, &[(20, -1), (25, -1)]).unwrap();
    assert_eq!(all.len(), 19 + 2 + 5_000 * (2 + 12 + 4) + 4_950 + 50 * 40_000);
}

#[test]
fn errors_name_the_row_of_all_batches() {
    let rows = batch(vec![("v", Arc::new(Int64Array::from(vec![1, 2, 1 << 40])))]);
    let mut encoder = encoder(&rows, &[(23, -1)]);
    let mut block = Vec::new();
    let fits = rows.slice(0, 2);
    let mut blocks = encoder.batch(&fits, 0).unwrap();
    while blocks.next_block(&mut block).unwrap() {}
    let error = encoder.batch(&rows, 2).unwrap().next_block(&mut block).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"v\", row 5: 1099511627776 can't be written as integer: it is out of range"
    );
}
