//! Parameters for PostgreSQL: each value as text, with the type that reads it.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use arrow::datatypes::{Date32Type, Date64Type, Int64Type, IntervalMonthDayNanoType, UInt64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use dray_pgtypes::times;
use dray_postgres::Parameter;

use super::super::times::has_nanoseconds;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ParameterTyping;

const DAY_MILLISECONDS: i64 = 86_400_000;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
const UTC: &str = "+00:00";
/// Lets the server infer the type, as for a quoted literal.
const INFERRED: u32 = 0;
/// The most parameters of a message.
const COUNT_MAX: usize = u16::MAX as usize;

/// The columns of a row as the values of `$1`, `$2` ….
pub(crate) fn parameters(
    row: Option<&RecordBatch>,
    typing: ParameterTyping,
) -> Result<Vec<Parameter>> {
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
    let columns = row.columns().iter().enumerate();
    columns
        .map(|(i, column)| {
            let mut parameter = parameter(column.as_ref()).map_err(|what| refused(i, &what))?;
            if typing == ParameterTyping::Columns {
                parameter.oid = column_oid(column.data_type()).unwrap_or(parameter.oid);
            }
            Ok(parameter)
        })
        .collect()
}

/// The error of `given` values for a statement whose highest parameter is `highest`.
pub(crate) fn surplus(highest: usize, given: usize) -> Error {
    let what = format!(
        "{given} values were given, and the highest parameter of the statement is ${highest}"
    );
    let what = if highest == 0 {
        format!("{given} values were given, and the statement has no parameter")
    } else {
        what
    };
    Error::new(ErrorKind::Query, what)
        .with_hint("give one value for each of $1, $2, …")
        .with_sqlstate("07001")
}

fn refused(i: usize, what: &str) -> Error {
    Error::usage(format!("parameter ${}: {what}", i + 1))
}

fn parameter(column: &dyn Array) -> Result<Parameter, String> {
    if let DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) =
        column.data_type()
    {
        return list(column);
    }
    Ok(match scalar(column, 0)? {
        Some((oid, text)) => Parameter { oid, text: Some(text) },
        None => Parameter { oid: INFERRED, text: None },
    })
}

/// The type of all values of a column, if it is not theirs to say.
fn column_oid(data_type: &DataType) -> Option<u32> {
    use DataType::*;
    Some(match data_type {
        Boolean => 16,
        Dictionary(_, values) => return column_oid(values),
        Int8 | UInt8 | Int16 => 21,
        UInt16 | Int32 => 23,
        UInt32 | Int64 => 20,
        UInt64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => 1700,
        Float16 | Float32 | Float64 => 701,
        FixedSizeBinary(16) => 2950,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => 17,
        Date32 | Date64 => 1082,
        Time32(_) | Time64(_) => 1083,
        Timestamp(_, None) => 1114,
        Timestamp(_, Some(_)) => 1184,
        Duration(_) | Interval(_) => 1186,
        _ => return None,
    })
}

/// The oid and the text of a value; None for NULL.
fn scalar(column: &dyn Array, i: usize) -> Result<Option<(u32, String)>, String> {
    use DataType::*;
    if column.is_null(i) || *column.data_type() == Null {
        return Ok(None);
    }
    let options = FormatOptions::default();
    let shown = || {
        let shown = ArrayFormatter::try_new(column, &options)
            .and_then(|formatter| formatter.value(i).try_to_string());
        shown.map_err(|error| error.to_string())
    };
    Ok(Some(match column.data_type() {
        Boolean => (16, column.as_boolean().value(i).to_string()),
        Dictionary(_, values) => {
            return scalar(&cast(&column.slice(i, 1), values).map_err(|e| e.to_string())?, 0);
        }
        Int8 | UInt8 | Int16 => (21, shown()?),
        UInt16 | Int32 => (23, shown()?),
        UInt32 | Int64 => {
            let text = shown()?;
            // As PostgreSQL takes a literal: `integer` where that has the value.
            (if text.parse::<i32>().is_ok() { 23 } else { 20 }, text)
        }
        UInt64 => (1700, column.as_primitive::<UInt64Type>().value(i).to_string()),
        // As double precision, whose text is exact. The text of a shorter float is another double.
        Float16 | Float32 => {
            return scalar(&cast(&column.slice(i, 1), &Float64).map_err(|e| e.to_string())?, 0);
        }
        Float64 => (701, shown()?),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => (1700, shown()?),
        // As a quoted literal, which takes the type of its context.
        Utf8 | LargeUtf8 | Utf8View => (INFERRED, shown()?),
        Binary | LargeBinary | BinaryView => (17, format!("\\x{}", shown()?)),
        FixedSizeBinary(16) => (2950, shown()?),
        FixedSizeBinary(_) => (17, format!("\\x{}", shown()?)),
        Date32 => (1082, times::date(column.as_primitive::<Date32Type>().value(i).into())),
        Date64 => (
            1082,
            times::date(column.as_primitive::<Date64Type>().value(i).div_euclid(DAY_MILLISECONDS)),
        ),
        Timestamp(TimeUnit::Nanosecond, _)
        | Time64(TimeUnit::Nanosecond)
        | Duration(TimeUnit::Nanosecond)
            if has_nanoseconds(column, i) =>
        {
            return Err("PostgreSQL's times have microseconds, this one has nanoseconds".to_owned());
        }
        Time32(_) | Time64(_) => (1083, shown()?),
        Timestamp(unit, None) => (1114, timestamp(column, i, *unit, "")?),
        // In UTC: the zone's own time would lose the seconds of offsets before 1900 or so.
        Timestamp(unit, Some(_)) => (1184, timestamp(column, i, *unit, UTC)?),
        Duration(_) => {
            let exact = cast(&column.slice(i, 1), &Duration(TimeUnit::Microsecond))
                .and_then(|exact| cast(&exact, &Int64));
            let exact = exact.map_err(|error| error.to_string())?;
            let microseconds = exact.as_primitive::<Int64Type>().value(0);
            // Whole days are sent as days, as drivers do: in a time zone a day need not have 24
            // hours.
            let (days, microseconds) =
                (microseconds / DAY_MICROSECONDS, microseconds % DAY_MICROSECONDS);
            (1186, format!("{days:+} days {}", clock(microseconds)))
        }
        Interval(IntervalUnit::MonthDayNano) => {
            let value = column.as_primitive::<IntervalMonthDayNanoType>().value(i);
            if value.nanoseconds % 1000 != 0 {
                return Err(
                    "PostgreSQL's intervals have microseconds, this one has nanoseconds".to_owned()
                );
            }
            let microseconds = value.nanoseconds / 1000;
            // Each part has a sign: in the standard's IntervalStyle a lone leading minus would
            // count for all parts.
            let time = clock(microseconds);
            (1186, format!("{:+} months {:+} days {time}", value.months, value.days))
        }
        other => return Err(format!("values of type {other} can't be sent to PostgreSQL")),
    }))
}

/// The time of an interval: `-01:30:00.000005`. Servers before version 15 do not read numbers of
/// microseconds beyond 32 bits.
fn clock(microseconds: i64) -> String {
    let sign = if microseconds < 0 { '-' } else { '+' };
    let (seconds, fraction) =
        (microseconds.unsigned_abs() / 1_000_000, microseconds.unsigned_abs() % 1_000_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{sign}{hours:02}:{minutes:02}:{:02}.{fraction:06}", seconds % 60)
}

/// A timestamp without nanoseconds.
fn timestamp(column: &dyn Array, i: usize, unit: TimeUnit, zone: &str) -> Result<String, String> {
    let (seconds, microseconds) =
        super::super::times::timestamp(column, i, unit).map_err(|error| error.to_string())?;
    Ok(times::timestamp(seconds, microseconds, zone))
}

/// An array literal: `{"1",NULL}`.
fn list(column: &dyn Array) -> Result<Parameter, String> {
    if column.is_null(0) {
        return Ok(Parameter { oid: INFERRED, text: None });
    }
    let items = match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().value(0),
        DataType::LargeList(_) => column.as_list::<i64>().value(0),
        _ => column.as_fixed_size_list().value(0),
    };
    let mut oids = Vec::new();
    let mut texts = Vec::with_capacity(items.len());
    for i in 0..items.len() {
        match scalar(items.as_ref(), i)? {
            Some((oid, text)) => {
                oids.push(oid);
                texts.push(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
            }
            None => texts.push("NULL".to_owned()),
        }
    }
    let oid = array_oid(&oids);
    Ok(Parameter { oid, text: Some(format!("{{{}}}", texts.join(","))) })
}

/// The type of an array whose items have these types; of integers, the widest.
fn array_oid(items: &[u32]) -> u32 {
    let item =
        match items.iter().max_by_key(|oid| [21, 23, 20].iter().position(|known| known == *oid)) {
            Some(oid) => *oid,
            None => return INFERRED,
        };
    match item {
        16 => 1000,
        17 => 1001,
        20 => 1016,
        21 => 1005,
        23 => 1007,
        701 => 1022,
        1082 => 1182,
        1083 => 1183,
        1114 => 1115,
        1184 => 1185,
        1186 => 1187,
        1700 => 1231,
        2950 => 2951,
        _ => INFERRED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, Decimal128Array, DictionaryArray, Int16Array, Int64Array, ListArray,
        NullArray, StringArray,
    };
    use arrow::array::{
        DurationMicrosecondArray, Float32Array, IntervalMonthDayNanoArray, Time64NanosecondArray,
        TimestampMicrosecondArray, TimestampSecondArray,
    };
    use arrow::datatypes::{
        DurationMicrosecondType, Float32Type, Int32Type, TimestampNanosecondType,
    };

    fn sent(column: ArrayRef) -> (u32, Option<String>) {
        let row = RecordBatch::try_from_iter([("p", column)]).unwrap();
        let parameter = parameters(Some(&row), ParameterTyping::Values).unwrap().remove(0);
        (parameter.oid, parameter.text)
    }

    #[test]
    fn columns_have_one_type() {
        let columns: [(ArrayRef, u32); 4] = [
            (Arc::new(Int64Array::from(vec![Some(5), None, Some(1 << 40)])), 20),
            (Arc::new(Int16Array::from(vec![Some(5), None])), 21),
            (Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"a")])), 17),
            (Arc::new(StringArray::from(vec![None, Some("a")])), INFERRED),
        ];
        for (column, oid) in columns {
            let batch = RecordBatch::try_from_iter([("p", column)]).unwrap();
            for row in 0..batch.num_rows() {
                let row = batch.slice(row, 1);
                let sent = parameters(Some(&row), ParameterTyping::Columns).unwrap().remove(0);
                assert_eq!(sent.oid, oid);
                assert_eq!(sent.text.is_none(), row.column(0).is_null(0));
            }
        }
    }

    #[test]
    fn values_and_their_types() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(sent(Arc::new(Int64Array::from(vec![5]))), (23, some("5")));
        assert_eq!(sent(Arc::new(Int16Array::from(vec![5]))), (21, some("5")));
        assert_eq!(sent(Arc::new(Int64Array::from(vec![1 << 40]))), (20, some("1099511627776")));
        assert_eq!(sent(Arc::new(StringArray::from(vec!["a\"b"]))), (INFERRED, some("a\"b")));
        assert_eq!(sent(Arc::new(BinaryArray::from_vec(vec![b"\x00\xff"]))), (17, some("\\x00ff")));
        assert_eq!(sent(Arc::new(NullArray::new(1))), (INFERRED, None));
        let decimal = Decimal128Array::from(vec![-705]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(sent(Arc::new(decimal)), (1700, some("-7.05")));
        let dictionary: DictionaryArray<Int32Type> = ["a"].into_iter().collect();
        assert_eq!(sent(Arc::new(dictionary)), (INFERRED, some("a")));
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([
            Some(1),
            None,
            Some(70_000),
        ])]);
        assert_eq!(sent(Arc::new(list)), (1007, some("{\"1\",NULL,\"70000\"}")));
    }

    #[test]
    fn durations_have_days() {
        let text =
            |microseconds: i64| sent(Arc::new(DurationMicrosecondArray::from(vec![microseconds])));
        let some = |text: &str| (1186, Some(text.to_owned()));
        assert_eq!(text(DAY_MICROSECONDS), some("+1 days +00:00:00.000000"));
        assert_eq!(text(-DAY_MICROSECONDS - 1), some("-1 days -00:00:00.000001"));
        assert_eq!(text(7_200_000_005), some("+0 days +02:00:00.000005"));
        assert_eq!(text(-3_600_000_000), some("+0 days -01:00:00.000000"));
        assert_eq!(text(i64::MIN), some("-106751991 days -04:00:54.775808"));
    }

    #[test]
    fn items_have_their_own_values() {
        let some = |oid, text: &str| (oid, Some(text.to_owned()));
        let durations = ListArray::from_iter_primitive::<DurationMicrosecondType, _, _>([Some([
            Some(1),
            None,
            Some(DAY_MICROSECONDS),
        ])]);
        assert_eq!(
            sent(Arc::new(durations)),
            some(1187, r#"{"+0 days +00:00:00.000001",NULL,"+1 days +00:00:00.000000"}"#)
        );
        let floats = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([
            None,
            Some(0.5),
            Some(-2.25),
        ])]);
        assert_eq!(sent(Arc::new(floats)), some(1022, r#"{NULL,"0.5","-2.25"}"#));
        let times = ListArray::from_iter_primitive::<TimestampNanosecondType, _, _>([Some([
            Some(0),
            Some(1_000_000_001_000),
        ])]);
        assert_eq!(
            sent(Arc::new(times)),
            some(1115, r#"{"1970-01-01 00:00:00","1970-01-01 00:16:40.000001"}"#)
        );
    }

    #[test]
    fn intervals_have_signs_for_each_part() {
        let text = |months, days, nanoseconds| {
            let value = IntervalMonthDayNanoType::make_value(months, days, nanoseconds);
            sent(Arc::new(IntervalMonthDayNanoArray::from(vec![value]))).1.unwrap()
        };
        assert_eq!(text(-14, 3, 5_025_000_001_000), "-14 months +3 days +01:23:45.000001");
        assert_eq!(text(0, 0, i64::MIN / 1000 * 1000), "+0 months +0 days -2562047:47:16.854775");
    }

    #[test]
    fn floats_are_exact() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            sent(Arc::new(Float32Array::from(vec![0.1]))),
            (701, some("0.10000000149011612"))
        );
        let half = cast(&Float32Array::from(vec![0.1]), &DataType::Float16).unwrap();
        assert_eq!(sent(half), (701, some("0.0999755859375")));
        let list = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(0.1), None])]);
        assert_eq!(sent(Arc::new(list)), (1022, some("{\"0.10000000149011612\",NULL}")));
    }

    #[test]
    fn times_of_nanoseconds_are_refused() {
        let time = |value| {
            RecordBatch::try_from_iter([(
                "p",
                Arc::new(Time64NanosecondArray::from(vec![value])) as _,
            )])
        };
        assert!(parameters(Some(&time(1_001).unwrap()), ParameterTyping::Values).is_err());
        assert_eq!(
            sent(Arc::new(Time64NanosecondArray::from(vec![1_000]))),
            (1083, Some("00:00:00.000001".to_owned()))
        );
    }

    #[test]
    fn instants_do_not_depend_on_their_zone() {
        let some = |text: &str| Some(text.to_owned());
        // Amsterdam was 19 minutes and 32 seconds ahead until 1937.
        let seconds =
            TimestampSecondArray::from(vec![-2_000_000_000]).with_timezone("Europe/Amsterdam");
        assert_eq!(sent(Arc::new(seconds)), (1184, some("1906-08-16 20:26:40+00:00")));
        let exact = TimestampMicrosecondArray::from(vec![1]).with_timezone("-05:00");
        assert_eq!(sent(Arc::new(exact)), (1184, some("1970-01-01 00:00:00.000001+00:00")));
    }
}
