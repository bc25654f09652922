//! Decimals in fewer bytes than their schema says, and values of too many digits.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal32Array, Decimal64Array, Decimal128Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::super::{FileCompression, FileOptions};
use super::numbers_tests::{read, written_as};

fn schema(types: &[DataType]) -> SchemaRef {
    let field = |(number, data_type): (usize, &DataType)| {
        Field::new(format!("d{number}"), data_type.clone(), true)
    };
    Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// Every third value is NULL, and some are the least and the greatest of their digits.
fn value(row: i64, digits: u32) -> Option<i64> {
    let greatest = 10_i64.pow(digits) - 1;
    match row % 12 {
        0 => Some(greatest),
        1 => Some(-greatest),
        other if other % 3 == 2 => None,
        _ => Some((row * 7919) % (greatest + 1) - greatest / 2),
    }
}

#[test]
fn narrow_decimals_become_the_file_of_wide_ones() {
    let rows = 45_000;
    let wide = |digits: u8| -> ArrayRef {
        let values = (0..rows).map(|row| value(row, digits.into()).map(i128::from));
        Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(digits, 2).unwrap())
    };
    let in_64 = |digits: u8| -> ArrayRef {
        let values = (0..rows).map(|row| value(row, digits.into()));
        Arc::new(values.collect::<Decimal64Array>().with_precision_and_scale(digits, 2).unwrap())
    };
    let in_32 = |digits: u8| -> ArrayRef {
        let values = (0..rows).map(|row| value(row, digits.into()).map(|value| value as i32));
        Arc::new(values.collect::<Decimal32Array>().with_precision_and_scale(digits, 2).unwrap())
    };
    let types = [7, 9, 9, 15, 18].map(|digits| DataType::Decimal128(digits, 2));
    let expected = [wide(7), wide(9), wide(9), wide(15), wide(18)];
    let narrow = [in_32(7), in_32(9), in_64(9), in_64(15), in_64(18)];
    let schema = schema(&types);
    let expected = RecordBatch::try_new(schema.clone(), expected.into()).unwrap();
    let own = narrow.iter().map(|array| array.data_type().clone()).collect::<Vec<_>>();
    let narrow = RecordBatch::try_new(self::schema(&own), narrow.into()).unwrap();
    for compression in [FileCompression::Snappy, FileCompression::Gzip] {
        let options = FileOptions { compression: Some(compression), ..FileOptions::default() };
        let bytes = written_as(&schema, &narrow, options.clone()).unwrap();
        assert!(bytes == written_as(&schema, &expected, options).unwrap());
        assert_eq!(read(&bytes).1, expected);
    }
}

#[test]
fn a_decimal_of_too_many_digits_is_an_error() {
    let just = i128::from(i32::MAX);
    let refused: [(ArrayRef, &str); 3] = [
        (
            Arc::new(
                Decimal128Array::from(vec![Some(1), None, Some(just + 1)])
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            ),
            "2147483648 has more digits than Decimal128(9, 2)",
        ),
        (
            Arc::new(Decimal64Array::from(vec![i64::MIN]).with_precision_and_scale(5, 2).unwrap()),
            "-9223372036854775808 has more digits than Decimal64(5, 2)",
        ),
        (
            Arc::new(
                Decimal128Array::from(vec![i128::MAX]).with_precision_and_scale(18, 0).unwrap(),
            ),
            "has more digits than Decimal128(18, 0)",
        ),
    ];
    for (array, expected) in refused {
        let batch =
            RecordBatch::try_new(schema(&[array.data_type().clone()]), vec![array]).unwrap();
        let error = written_as(&batch.schema(), &batch, FileOptions::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // What is under a NULL doesn't matter.
    let hidden = Decimal128Array::new(vec![1, i128::MAX].into(), Some(vec![true, false].into()));
    let hidden: ArrayRef = Arc::new(hidden.with_precision_and_scale(9, 2).unwrap());
    let batch = RecordBatch::try_new(schema(&[DataType::Decimal128(9, 2)]), vec![hidden]).unwrap();
    let bytes = written_as(&batch.schema(), &batch, FileOptions::default()).unwrap();
    assert_eq!(read(&bytes).1, batch);
}
