//! Sizes and numbers in a function's arguments, row by row.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, LargeBinaryArray, LargeListArray, LargeStringArray,
    ListArray, StringArray,
};
use arrow::datatypes::{
    DataType, Float64Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalYearMonthType,
};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

const DAY_NS: f64 = 86_400e9;

/// A figure for each row.
#[derive(Debug, Clone)]
pub(super) enum Measure {
    /// The same for all rows.
    One(f64),
    Many(Vec<f64>),
}

impl Measure {
    pub(super) fn at(&self, row: usize) -> f64 {
        match self {
            Self::One(all) => *all,
            Self::Many(each) => each.get(row).copied().unwrap_or_default(),
        }
    }

    /// The sum over `rows` rows.
    pub(super) fn sum(&self, rows: usize) -> f64 {
        match self {
            Self::One(all) => *all * rows as f64,
            Self::Many(each) => each.iter().sum(),
        }
    }

    pub(super) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::One(a), Self::One(b)) => Self::One(f(*a, *b)),
            (Self::One(a), Self::Many(b)) => Self::Many(b.iter().map(|b| f(*a, *b)).collect()),
            (Self::Many(a), Self::One(b)) => Self::Many(a.iter().map(|a| f(*a, *b)).collect()),
            (Self::Many(a), Self::Many(b)) => {
                Self::Many(a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect())
            }
        }
    }
}

/// The bytes of each row's value.
pub(super) fn sizes(value: &ColumnarValue, rows: usize) -> Measure {
    match value {
        ColumnarValue::Scalar(scalar) => match scalar.try_as_str() {
            Some(text) => Measure::One(text.map_or(0, str::len) as f64),
            None => Measure::One(
                scalar
                    .to_array()
                    .map_or(8.0, |array| of_array(&array).first().copied().unwrap_or(8.0)),
            ),
        },
        ColumnarValue::Array(array) => {
            let mut each = of_array(array);
            each.truncate(rows);
            Measure::Many(each)
        }
    }
}

fn of_array(array: &ArrayRef) -> Vec<f64> {
    fn spans<T: Copy + Into<i64>>(offsets: &[T], bytes: f64) -> Vec<f64> {
        let length = |ends: &[T]| (ends[1].into() - ends[0].into()) as f64;
        offsets.windows(2).map(|ends| length(ends) * bytes).collect()
    }
    let any = array.as_any();
    if let Some(texts) = any.downcast_ref::<StringArray>() {
        return spans(texts.value_offsets(), 1.0);
    }
    if let Some(texts) = any.downcast_ref::<LargeStringArray>() {
        return spans(texts.value_offsets(), 1.0);
    }
    if let Some(bytes) = any.downcast_ref::<BinaryArray>() {
        return spans(bytes.value_offsets(), 1.0);
    }
    if let Some(bytes) = any.downcast_ref::<LargeBinaryArray>() {
        return spans(bytes.value_offsets(), 1.0);
    }
    if let Some(list) = any.downcast_ref::<ListArray>() {
        return spans(list.value_offsets(), average(list.values()));
    }
    if let Some(list) = any.downcast_ref::<LargeListArray>() {
        return spans(list.value_offsets(), average(list.values()));
    }
    vec![average(array); array.len()]
}

/// The average bytes of an entry.
fn average(array: &ArrayRef) -> f64 {
    let bytes =
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size());
    bytes as f64 / array.len().max(1) as f64
}

/// The number of entries of each row's list.
pub(super) fn entries(value: &ColumnarValue, rows: usize) -> Measure {
    let of = |array: &ArrayRef| match array.data_type() {
        DataType::List(_) => array
            .as_list::<i32>()
            .value_offsets()
            .windows(2)
            .map(|ends| f64::from(ends[1] - ends[0]))
            .collect(),
        DataType::LargeList(_) => array
            .as_list::<i64>()
            .value_offsets()
            .windows(2)
            .map(|ends| (ends[1] - ends[0]) as f64)
            .collect(),
        DataType::FixedSizeList(_, entries) => vec![f64::from(*entries); array.len()],
        _ => vec![1.0; array.len()],
    };
    match value {
        ColumnarValue::Scalar(scalar) => Measure::One(
            scalar.to_array().map_or(1.0, |array| of(&array).first().copied().unwrap_or_default()),
        ),
        ColumnarValue::Array(array) => {
            let mut each: Vec<f64> = of(array);
            each.truncate(rows);
            Measure::Many(each)
        }
    }
}

/// The fixed bytes of a list's entry.
pub(super) fn entry_bytes(list: &DataType) -> f64 {
    match list {
        DataType::List(entry) | DataType::LargeList(entry) => {
            entry.data_type().primitive_width().map_or(8.0, |width| width as f64)
        }
        _ => 8.0,
    }
}

/// The number in each row, 0 for NULL. Times and intervals are in nanoseconds. None for other
/// types.
pub(super) fn numbers(value: &ColumnarValue, rows: usize) -> Result<Option<Measure>> {
    match value {
        ColumnarValue::Scalar(scalar) => Ok(of_numbers(&scalar.to_array()?)?
            .map(|each| Measure::One(each.first().copied().unwrap_or_default()))),
        ColumnarValue::Array(array) => Ok(of_numbers(array)?.map(|mut each| {
            each.truncate(rows);
            Measure::Many(each)
        })),
    }
}

fn of_numbers(array: &ArrayRef) -> Result<Option<Vec<f64>>> {
    use arrow::datatypes::{IntervalUnit, TimeUnit};
    let days = |days: i32| f64::from(days) * DAY_NS;
    let numbers: Vec<f64> = match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>().iter();
            let ns = |i: arrow::datatypes::IntervalMonthDayNano| {
                days(i.months) * 28.0 + days(i.days) + i.nanoseconds as f64
            };
            intervals.map(|interval| interval.map_or(0.0, ns)).collect()
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let intervals = array.as_primitive::<IntervalDayTimeType>().iter();
            let ns = |i: arrow::datatypes::IntervalDayTime| {
                days(i.days) + f64::from(i.milliseconds) * 1e6
            };
            intervals.map(|interval| interval.map_or(0.0, ns)).collect()
        }
        DataType::Interval(IntervalUnit::YearMonth) => array
            .as_primitive::<IntervalYearMonthType>()
            .iter()
            .map(|months| months.map_or(0.0, |months| days(months) * 28.0))
            .collect(),
        DataType::Date32 => {
            let dates = arrow::compute::cast(array, &DataType::Int32)?;
            dates.as_primitive::<Int32Type>().iter().map(|date| date.map_or(0.0, days)).collect()
        }
        DataType::Timestamp(unit, _) => {
            let ns = match unit {
                TimeUnit::Second => 1e9,
                TimeUnit::Millisecond => 1e6,
                TimeUnit::Microsecond => 1e3,
                TimeUnit::Nanosecond => 1.0,
            };
            let times = arrow::compute::cast(array, &DataType::Int64)?;
            times
                .as_primitive::<Int64Type>()
                .iter()
                .map(|time| time.map_or(0.0, |time| time as f64 * ns))
                .collect()
        }
        DataType::Null => vec![0.0; array.len()],
        data_type if data_type.is_numeric() => {
            let numbers = arrow::compute::cast(array, &DataType::Float64)?;
            numbers.as_primitive::<Float64Type>().iter().map(Option::unwrap_or_default).collect()
        }
        _ => return Ok(None),
    };
    Ok(Some(numbers))
}
