//! Values of times, as parameters carry them.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;

/// The whole seconds since 1970 of a timestamp, and the microseconds after them.
pub(super) fn timestamp(
    column: &dyn Array,
    i: usize,
    unit: TimeUnit,
) -> Result<(i64, i64), ArrowError> {
    let counts = cast(&column.slice(i, 1), &DataType::Int64)?;
    let count = counts.as_primitive::<Int64Type>().value(0);
    let (per_second, to_microseconds): (i64, fn(i64) -> i64) = match unit {
        TimeUnit::Second => (1, |_| 0),
        TimeUnit::Millisecond => (1000, |rest| rest * 1000),
        TimeUnit::Microsecond => (1_000_000, |rest| rest),
        TimeUnit::Nanosecond => (1_000_000_000, |rest| rest / 1000),
    };
    Ok((count.div_euclid(per_second), to_microseconds(count.rem_euclid(per_second))))
}

/// Whether a count of nanoseconds is not one of whole microseconds.
pub(super) fn has_nanoseconds(column: &dyn Array, i: usize) -> bool {
    cast(&column.slice(i, 1), &DataType::Int64)
        .is_ok_and(|values| values.as_primitive::<Int64Type>().value(0) % 1000 != 0)
}
