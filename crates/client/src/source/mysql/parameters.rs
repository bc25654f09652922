//! Values of parameters, as MySQL takes them.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType::*;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Field, Float64Type, Int64Type, TimeUnit, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use dray_mysql::Parameter;
use dray_pgtypes::times;

use super::super::times::{has_nanoseconds, timestamp};
use crate::error::{Error, Result};

const DAY_MILLISECONDS: i64 = 86_400_000;
const DAY_SECONDS: i64 = 86_400;
/// The days that every server takes: from 0001-01-01 to 9999-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
/// The most digits of a decimal, and those after the point, that all servers have.
const DIGITS_MAX: usize = 65;
const SCALE_MAX: usize = 30;
/// The longest TIME, in microseconds: 838:59:59.
const TIME_MAX: u64 = (838 * 3600 + 59 * 60 + 59) * 1_000_000;
const EXTENSION_KEY: &str = "ARROW:extension:name";
/// The most parameters of a statement.
const COUNT_MAX: usize = u16::MAX as usize;

/// The columns of a row as the values of `?`, in their order.
pub(super) fn parameters(row: Option<&RecordBatch>) -> Result<Vec<Parameter>> {
    let Some(row) = row.filter(|row| row.num_columns() > 0) else { return Ok(Vec::new()) };
    if row.num_rows() != 1 {
        return Err(Error::usage(format!("{} rows of parameters, expected 1", row.num_rows())));
    }
    if row.num_columns() > COUNT_MAX {
        return Err(Error::usage(format!(
            "{} parameters, expected at most {COUNT_MAX}",
            row.num_columns()
        )));
    }
    let schema = row.schema();
    let columns = row.columns().iter().zip(schema.fields()).enumerate();
    columns
        .map(|(i, (column, field))| {
            parameter(column.as_ref(), field)
                .map_err(|what| Error::usage(format!("parameter {}: {what}", i + 1)))
        })
        .collect()
}

fn parameter(column: &dyn Array, field: &Field) -> Result<Parameter, String> {
    if column.is_null(0) || *column.data_type() == Null {
        return Ok(Parameter::Null);
    }
    let as_type = |of: &DataType| cast(column, of).map_err(|error| error.to_string());
    let shown = || {
        let options = FormatOptions::default();
        let shown = ArrayFormatter::try_new(column, &options)
            .and_then(|formatter| formatter.value(0).try_to_string());
        shown.map_err(|error| error.to_string())
    };
    Ok(match column.data_type() {
        Boolean => Parameter::Signed(column.as_boolean().value(0).into()),
        Dictionary(_, values) => return parameter(as_type(values)?.as_ref(), field),
        Int8 | Int16 | Int32 | Int64 => {
            Parameter::Signed(as_type(&Int64)?.as_primitive::<Int64Type>().value(0))
        }
        UInt8 | UInt16 | UInt32 | UInt64 => {
            Parameter::Unsigned(as_type(&UInt64)?.as_primitive::<UInt64Type>().value(0))
        }
        Float16 | Float32 | Float64 => {
            let value = as_type(&Float64)?.as_primitive::<Float64Type>().value(0);
            if !value.is_finite() {
                return Err(format!("MySQL has no {value}"));
            }
            Parameter::Double(value)
        }
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => {
            Parameter::Decimal(decimal(shown()?)?)
        }
        Utf8 | LargeUtf8 | Utf8View => Parameter::Text(shown()?),
        FixedSizeBinary(16)
            if field.metadata().get(EXTENSION_KEY).is_some_and(|name| name == "arrow.uuid") =>
        {
            Parameter::Text(uuid(column.as_fixed_size_binary().value(0)))
        }
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => {
            Parameter::Bytes(as_type(&LargeBinary)?.as_binary::<i64>().value(0).to_vec())
        }
        Date32 => date(column.as_primitive::<Date32Type>().value(0).into())?,
        Date64 => date(column.as_primitive::<Date64Type>().value(0).div_euclid(DAY_MILLISECONDS))?,
        Timestamp(TimeUnit::Nanosecond, _)
        | Time64(TimeUnit::Nanosecond)
        | Duration(TimeUnit::Nanosecond)
            if has_nanoseconds(column, 0) =>
        {
            return Err("MySQL's times have microseconds, this one has nanoseconds".to_owned());
        }
        Time32(_) | Time64(_) => Parameter::Text(shown()?),
        Timestamp(unit, zone) => {
            let (seconds, microseconds) =
                timestamp(column, 0, *unit).map_err(|error| error.to_string())?;
            check_day(seconds.div_euclid(DAY_SECONDS))?;
            let text = times::timestamp(seconds, microseconds, "");
            match zone {
                Some(_) => Parameter::Utc(text),
                None => Parameter::Text(text),
            }
        }
        Duration(_) => {
            let exact = cast(&as_type(&Duration(TimeUnit::Microsecond))?, &Int64);
            let exact = exact.map_err(|error| error.to_string())?;
            if exact.is_null(0) {
                return Err("the duration is too long".to_owned());
            }
            let microseconds = exact.as_primitive::<Int64Type>().value(0);
            if microseconds.unsigned_abs() > TIME_MAX {
                return Err("MySQL's times have at most 838:59:59".to_owned());
            }
            Parameter::Text(duration(microseconds))
        }
        other => return Err(format!("values of type {other} can't be sent to MySQL")),
    })
}

/// The text of a decimal, which servers cut off without a word if it has more digits.
fn decimal(text: String) -> Result<String, String> {
    let digits = text.trim_start_matches('-').trim_start_matches('0');
    let scale = digits.split_once('.').map_or(0, |(_, scale)| scale.len());
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    match count > DIGITS_MAX || scale > SCALE_MAX {
        true => Err(format!(
            "MySQL's decimals have {DIGITS_MAX} digits, {SCALE_MAX} of them after the point"
        )),
        false => Ok(text),
    }
}

fn check_day(day: i64) -> Result<(), String> {
    match DAYS.contains(&day) {
        true => Ok(()),
        false => Err("MySQL's dates are of the years 1 to 9999".to_owned()),
    }
}

fn date(day: i64) -> Result<Parameter, String> {
    check_day(day)?;
    Ok(Parameter::Text(times::date(day)))
}

/// A TIME: hours may be many.
fn duration(microseconds: i64) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let absolute = microseconds.unsigned_abs();
    let seconds = absolute / 1_000_000;
    format!(
        "{sign}{:02}:{:02}:{:02}.{:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        absolute % 1_000_000
    )
}

fn uuid(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
        DurationMicrosecondArray, Float32Array, Int8Array, NullArray, StringArray,
        Time64NanosecondArray, TimestampSecondArray, UInt64Array,
    };

    use super::*;

    fn sent(column: ArrayRef) -> Result<Parameter> {
        let row = RecordBatch::try_from_iter([("p", column)]).unwrap();
        parameters(Some(&row)).map(|mut sent| sent.remove(0))
    }

    #[test]
    fn values() {
        let text = |text: &str| Parameter::Text(text.to_owned());
        let decimal = Decimal128Array::from(vec![-705]).with_precision_and_scale(10, 2).unwrap();
        let zoned = TimestampSecondArray::from(vec![-1]).with_timezone("Europe/Amsterdam");
        let cases: [(ArrayRef, Parameter); 11] = [
            (Arc::new(NullArray::new(1)), Parameter::Null),
            (Arc::new(BooleanArray::from(vec![true])), Parameter::Signed(1)),
            (Arc::new(Int8Array::from(vec![-5])), Parameter::Signed(-5)),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), Parameter::Unsigned(u64::MAX)),
            (Arc::new(Float32Array::from(vec![0.5])), Parameter::Double(0.5)),
            (Arc::new(decimal), Parameter::Decimal("-7.05".to_owned())),
            (Arc::new(StringArray::from(vec!["ü"])), text("ü")),
            (Arc::new(BinaryArray::from_vec(vec![b"\0\xff"])), Parameter::Bytes(vec![0, 0xff])),
            (Arc::new(Date32Array::from(vec![19_782])), text("2024-02-29")),
            (Arc::new(zoned), Parameter::Utc("1969-12-31 23:59:59".to_owned())),
            (
                Arc::new(DurationMicrosecondArray::from(vec![-90_061_000_001])),
                text("-25:01:01.000001"),
            ),
        ];
        for (column, expected) in cases {
            assert_eq!(sent(column).unwrap(), expected);
        }
    }

    #[test]
    fn what_mysql_lacks_is_refused() {
        let many = Decimal128Array::from(vec![1]).with_precision_and_scale(38, 31).unwrap();
        let columns: [ArrayRef; 6] = [
            Arc::new(many),
            Arc::new(DurationMicrosecondArray::from(vec![4_000_000_000_000])),
            Arc::new(Float32Array::from(vec![f32::NAN])),
            Arc::new(Date32Array::from(vec![3_000_000])),
            Arc::new(TimestampSecondArray::from(vec![i64::MIN])),
            Arc::new(Time64NanosecondArray::from(vec![1])),
        ];
        for column in columns {
            assert!(sent(column).is_err());
        }
    }

    #[test]
    fn uuids_are_text() {
        assert_eq!(uuid(&(0..16).collect::<Vec<u8>>()), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
