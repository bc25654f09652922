//! Types without a logical type in Parquet. Unconverted, most readers would see them as plain
//! integers.
//!
//! | Arrow | written as |
//! |---|---|
//! | timestamp and time in seconds | in milliseconds |
//! | date64 | date32; an error if a value is not a whole day |
//! | decimal with negative scale | decimal with scale 0; an error above 76 digits |
//! | decimal32 of one digit | decimal64: the library stores one digit in 8 bytes |
//! | interval, union | an error |
//! | duration | int64, like other writers; Arrow readers get the type from the Arrow schema |

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Date32Type, Date64Type, Field, Schema, SchemaRef,
    Time32MillisecondType, Time32SecondType, TimeUnit, TimestampMillisecondType,
    TimestampSecondType,
};

use super::super::{WriteError, nested};

const DAY_MILLIS: i64 = 24 * 3600 * 1000;

/// The schema with which batches of `schema` are stored.
pub(super) fn stored_schema(schema: &SchemaRef) -> Result<SchemaRef, WriteError> {
    let field = |field: &Arc<Field>| -> Result<Arc<Field>, WriteError> {
        match stored(field.data_type()).map_err(|what| of_column(field.name(), what))? {
            Some(data_type) => Ok(Arc::new(field.as_ref().clone().with_data_type(data_type))),
            None => Ok(field.clone()),
        }
    };
    let fields = schema.fields().iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// Converts a batch to `schema`, which must be the [`stored_schema`] of its types, or of those with
/// decimals in 16 bytes where it has them in fewer. Such decimals remain as they are.
pub(super) fn to_stored(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, WriteError> {
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| {
        if field.data_type() == array.data_type() || is_narrow(array, field) {
            return Ok(array.clone());
        }
        convert(array).map_err(|what| of_column(field.name(), what))
    };
    let columns =
        schema.fields().iter().zip(batch.columns()).map(column).collect::<Result<Vec<_>, _>>()?;
    let field = |(field, array): (&Arc<Field>, &ArrayRef)| match is_narrow(array, field) {
        true => Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())),
        false => field.clone(),
    };
    let fields: Vec<_> = schema.fields().iter().zip(&columns).map(field).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Whether an array has a field's decimals in fewer bytes.
fn is_narrow(array: &ArrayRef, field: &Field) -> bool {
    let DataType::Decimal128(precision, scale) = field.data_type() else { return false };
    matches!(
        array.data_type(),
        DataType::Decimal32(digits, own_scale) | DataType::Decimal64(digits, own_scale)
            if digits == precision && own_scale == scale
    )
}

fn of_column(name: &str, what: WriteError) -> WriteError {
    format!("column {name:?}: {what}").into()
}

/// The stored type; None if it is the same.
fn stored(data_type: &DataType) -> Result<Option<DataType>, WriteError> {
    use DataType::*;
    Ok(Some(match data_type {
        Timestamp(TimeUnit::Second, zone) => Timestamp(TimeUnit::Millisecond, zone.clone()),
        Time32(TimeUnit::Second) => Time32(TimeUnit::Millisecond),
        Date64 => Date32,
        Decimal32(1, scale @ 0..) => Decimal64(1, *scale),
        Decimal32(precision, scale @ ..0)
        | Decimal64(precision, scale @ ..0)
        | Decimal128(precision, scale @ ..0) => {
            match precision.saturating_add(scale.unsigned_abs()) {
                digits @ ..=38 => Decimal128(digits, 0),
                digits => decimal256(digits, data_type)?,
            }
        }
        Decimal256(precision, scale @ ..0) => {
            decimal256(precision.saturating_add(scale.unsigned_abs()), data_type)?
        }
        Interval(_) | Union(..) => {
            let hint = "cast it to text, or write .arrow";
            return Err(
                format!("Parquet has no type for {data_type} that others read ({hint})").into()
            );
        }
        Dictionary(keys, values) => match stored(values)? {
            Some(values) => Dictionary(keys.clone(), Box::new(values)),
            None => return Ok(None),
        },
        RunEndEncoded(_, values) => match stored(values.data_type())? {
            Some(values) => values,
            None => return Ok(None),
        },
        other => return nested::change_type(other, &stored),
    }))
}

fn decimal256(digits: u8, data_type: &DataType) -> Result<DataType, WriteError> {
    match digits {
        ..=DECIMAL256_MAX_PRECISION => Ok(DataType::Decimal256(digits, 0)),
        _ => Err(format!(
            "{data_type} has {digits} digits, and Parquet at most 76 (cast it, or write .arrow)"
        )
        .into()),
    }
}

/// Converts values to their stored type.
fn convert(array: &ArrayRef) -> Result<ArrayRef, WriteError> {
    let Some(target) = stored(array.data_type())? else { return Ok(array.clone()) };
    Ok(match array.data_type() {
        DataType::Timestamp(..) => {
            let of_zone =
                |seconds: i64| seconds.checked_mul(1000).ok_or_else(|| too_far(&seconds, &target));
            let millis = each::<TimestampSecondType, TimestampMillisecondType>(array, of_zone)?;
            Arc::new(millis.with_data_type(target.clone()))
        }
        DataType::Time32(_) => {
            let in_millis =
                |seconds: i32| seconds.checked_mul(1000).ok_or_else(|| too_far(&seconds, &target));
            Arc::new(each::<Time32SecondType, Time32MillisecondType>(array, in_millis)?)
        }
        DataType::Date64 => {
            Arc::new(each::<Date64Type, Date32Type>(array, |millis| match millis % DAY_MILLIS {
                0 => i32::try_from(millis / DAY_MILLIS).map_err(|_| too_far(&millis, &target)),
                _ => {
                    let hint = "cast it to a timestamp, or write .arrow";
                    Err(format!("the date64 {millis} ms is not a whole day ({hint})").into())
                }
            })?)
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            dictionary.with_values(convert(dictionary.values())?)
        }
        DataType::RunEndEncoded(_, values) => {
            let plain = strictly(array, values.data_type())?;
            convert(&plain)?
        }
        data_type if data_type.is_decimal() => strictly(array, &target)?,
        _ => nested::change_children(array, &mut convert)?,
    })
}

fn too_far(value: &dyn std::fmt::Display, target: &DataType) -> WriteError {
    format!("the value {value} doesn't fit into Parquet's {target} (cast it, or write .arrow)")
        .into()
}

/// Applies `change` to each value that is not NULL.
fn each<F: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    array: &ArrayRef,
    change: impl Fn(F::Native) -> Result<T::Native, WriteError>,
) -> Result<PrimitiveArray<T>, WriteError> {
    array.as_primitive::<F>().try_unary(change)
}

fn strictly(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, WriteError> {
    Ok(cast_with_options(array, target, &CastOptions { safe: false, ..CastOptions::default() })?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Date64Array, Decimal32Array, Decimal64Array, Decimal128Array, Int8Array,
        IntervalYearMonthArray, StructArray, Time32SecondArray, TimestampMillisecondArray,
        TimestampSecondArray,
    };
    use arrow::array::{DictionaryArray, ListArray, MapArray, StringArray};
    use arrow::buffer::OffsetBuffer;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::super::super::Format;
    use super::super::super::tests::encode;
    use super::*;

    fn batch(array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap()
    }

    /// The column as it is read again.
    fn read(array: ArrayRef) -> Result<ArrayRef, String> {
        let bytes = encode(Format::Parquet, &[batch(array)]).map_err(|cause| cause.to_string())?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        // Every leaf has a logical type.
        for column in builder.parquet_schema().columns() {
            assert!(column.logical_type_ref().is_some(), "{column:?}");
        }
        Ok(builder.build().unwrap().next().unwrap().unwrap().column(0).clone())
    }

    fn seconds(zone: Option<&str>) -> TimestampSecondArray {
        TimestampSecondArray::from(vec![Some(1_706_704_200), None, Some(-1)])
            .with_timezone_opt(zone)
    }

    fn millis(zone: Option<&str>) -> TimestampMillisecondArray {
        TimestampMillisecondArray::from(vec![Some(1_706_704_200_000), None, Some(-1000)])
            .with_timezone_opt(zone)
    }

    fn days() -> (ArrayRef, ArrayRef) {
        let day64: ArrayRef =
            Arc::new(Date64Array::from(vec![Some(-DAY_MILLIS), Some(19753 * DAY_MILLIS)]));
        (day64, Arc::new(Date32Array::from(vec![Some(-1), Some(19753)])))
    }

    #[test]
    fn times_keep_their_logical_type() {
        for zone in [None, Some("UTC"), Some("Europe/Berlin")] {
            assert_eq!(
                read(Arc::new(seconds(zone))).unwrap().as_ref(),
                &millis(zone) as &dyn Array
            );
        }
        let time = read(Arc::new(Time32SecondArray::from(vec![Some(86_399), None]))).unwrap();
        assert_eq!(time.as_primitive::<Time32MillisecondType>().value(0), 86_399_000);
        let (day64, day32) = days();
        assert_eq!(&read(day64).unwrap(), &day32);
    }

    #[test]
    fn decimals_of_negative_scale_have_all_their_digits() {
        let array =
            Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(5, -3).unwrap();
        let expected =
            Decimal128Array::from(vec![12_345_000, -1000]).with_precision_and_scale(8, 0).unwrap();
        assert_eq!(read(Arc::new(array)).unwrap().as_ref(), &expected as &dyn Array);
        let array = Decimal128Array::from(vec![12_345]).with_precision_and_scale(38, -38).unwrap();
        assert_eq!(read(Arc::new(array)).unwrap().data_type(), &DataType::Decimal256(76, 0));
    }

    #[test]
    fn a_decimal32_of_one_digit_has_8_bytes() {
        let values = vec![Some(9), None, Some(-9)];
        let one = |scale| {
            let array = Decimal32Array::from(values.clone());
            read(Arc::new(array.with_precision_and_scale(1, scale).unwrap())).unwrap()
        };
        let wide = Decimal64Array::from(vec![Some(9), None, Some(-9)]);
        for scale in [0, 1] {
            let expected = wide.clone().with_precision_and_scale(1, scale).unwrap();
            assert_eq!(one(scale).as_ref(), &expected as &dyn Array);
        }
    }

    #[test]
    fn nested_types_are_converted() {
        let (day64, day32) = days();
        let list = |values: &ArrayRef| -> ArrayRef {
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2, 0]), values.clone(), None))
        };
        assert_eq!(&read(list(&day64)).unwrap(), &list(&day32));
        // A slice of a list.
        assert_eq!(&read(list(&day64).slice(1, 1)).unwrap(), &list(&day32).slice(1, 1));
        let structs = |values: &ArrayRef| -> ArrayRef {
            let field = Arc::new(Field::new("day", values.data_type().clone(), true));
            Arc::new(StructArray::from(vec![(field, values.clone())]))
        };
        assert_eq!(&read(structs(&day64)).unwrap(), &structs(&day32));
        let words = |values: &ArrayRef| -> ArrayRef {
            Arc::new(DictionaryArray::new(
                Int8Array::from(vec![Some(1), None, Some(0)]),
                values.clone(),
            ))
        };
        assert_eq!(&read(words(&day64)).unwrap(), &words(&day32));
        let map = |values: &ArrayRef| -> ArrayRef {
            let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
            let key = Arc::new(Field::new("key", DataType::Utf8, false));
            let value = Arc::new(Field::new("value", values.data_type().clone(), true));
            let entries = StructArray::from(vec![(key, keys), (value, values.clone())]);
            let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
            Arc::new(MapArray::new(field, OffsetBuffer::from_lengths([2]), entries, None, false))
        };
        assert_eq!(&read(map(&day64)).unwrap(), &map(&day32));
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let refused: [(ArrayRef, &str); 4] = [
            (
                Arc::new(TimestampSecondArray::from(vec![i64::MAX])),
                "9223372036854775807 doesn't fit",
            ),
            (Arc::new(Date64Array::from(vec![1])), "not a whole day"),
            (Arc::new(Date64Array::from(vec![i64::MIN / DAY_MILLIS * DAY_MILLIS])), "doesn't fit"),
            (Arc::new(IntervalYearMonthArray::from(vec![1])), "no type for"),
        ];
        for (array, expected) in refused {
            let error = read(array).unwrap_err();
            assert!(error.starts_with("column \"c\": ") && error.contains(expected), "{error}");
        }
        // The value under a NULL doesn't matter.
        let missing = TimestampSecondArray::new(vec![i64::MAX].into(), Some(vec![false].into()));
        assert_eq!(read(Arc::new(missing)).unwrap().null_count(), 1);
    }
}
