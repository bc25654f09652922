//! Numbers that Parquet stores in 4 or 8 bytes.

use std::fmt::Debug;

use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{
    ArrowNativeType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Int8Type, Int16Type,
};
use parquet::basic::Type;
use parquet::file::statistics::{Statistics, ValueStatistics};

use super::super::WriteError;

/// A number as it is stored. Readers compare it as a signed integer.
pub(super) trait Number: ArrowNativeType + Ord + Debug {
    const TYPE: Type;

    fn number(self) -> i64;

    /// Appends the values of an array that are not NULL. Its type [`is_number`].
    ///
    /// # Errors
    /// For a decimal that doesn't fit the stored type, and so has more digits than its own.
    fn extend(values: &mut Vec<Self>, array: &ArrayRef) -> Result<(), WriteError>;

    /// Statistics with the least and the greatest value.
    fn statistics(least_and_greatest: Option<(Self, Self)>, nulls: u64) -> Statistics;
}

/// Whether values of this type are stored as signed integers.
pub(super) fn is_number(data_type: &DataType, stored: Type) -> bool {
    use DataType::*;
    match stored {
        Type::INT32 => matches!(
            data_type,
            Int8 | Int16
                | Int32
                | Date32
                | Time32(_)
                | Decimal32(..)
                | Decimal64(..)
                | Decimal128(..)
        ),
        Type::INT64 => matches!(
            data_type,
            Int64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) | Decimal128(..)
        ),
        _ => false,
    }
}

impl Number for i32 {
    const TYPE: Type = Type::INT32;

    #[inline]
    fn number(self) -> i64 {
        i64::from(self)
    }

    fn extend(values: &mut Vec<Self>, array: &ArrayRef) -> Result<(), WriteError> {
        match array.data_type() {
            DataType::Int8 => extend_with::<Int8Type, _>(values, array, i32::from),
            DataType::Int16 => extend_with::<Int16Type, _>(values, array, i32::from),
            DataType::Decimal64(..) => {
                check::<Decimal64Type>(array, |value| i64::from(value as i32) == value)?;
                extend_with::<Decimal64Type, _>(values, array, |value| value as i32)
            }
            DataType::Decimal128(..) => {
                check::<Decimal128Type>(array, |value| i128::from(value as i32) == value)?;
                extend_with::<Decimal128Type, _>(values, array, |value| value as i32)
            }
            _ => extend_valid(values, array, array.to_data().buffer(0), |value| value),
        }
        Ok(())
    }

    fn statistics(least_and_greatest: Option<(Self, Self)>, nulls: u64) -> Statistics {
        statistics(least_and_greatest, nulls).into()
    }
}

impl Number for i64 {
    const TYPE: Type = Type::INT64;

    #[inline]
    fn number(self) -> i64 {
        self
    }

    fn extend(values: &mut Vec<Self>, array: &ArrayRef) -> Result<(), WriteError> {
        match array.data_type() {
            DataType::Decimal32(..) => extend_with::<Decimal32Type, _>(values, array, i64::from),
            DataType::Decimal128(..) => {
                check::<Decimal128Type>(array, |value| i128::from(value as i64) == value)?;
                extend_with::<Decimal128Type, _>(values, array, |value| value as i64)
            }
            _ => extend_valid(values, array, array.to_data().buffer(0), |value| value),
        }
        Ok(())
    }

    fn statistics(least_and_greatest: Option<(Self, Self)>, nulls: u64) -> Statistics {
        statistics(least_and_greatest, nulls).into()
    }
}

fn statistics<T>(least_and_greatest: Option<(T, T)>, nulls: u64) -> ValueStatistics<T> {
    let (least, greatest) = least_and_greatest.unzip();
    // Old readers, which compare as signed integers do, find them as well.
    ValueStatistics::new(least, greatest, None, Some(nulls), false)
        .with_backwards_compatible_min_max(true)
}

/// Fails if a value that is not NULL doesn't fit.
fn check<P: ArrowPrimitiveType>(
    array: &ArrayRef,
    fits: impl Fn(P::Native) -> bool,
) -> Result<(), WriteError> {
    let array = array.as_primitive::<P>();
    // Without branches, since nearly always all of them fit.
    if array.values().iter().fold(true, |all, value| all & fits(*value)) {
        return Ok(());
    }
    match array.iter().flatten().find(|value| !fits(*value)) {
        Some(value) => {
            let data_type = array.data_type();
            Err(format!("the unscaled value {value:?} has more digits than {data_type}").into())
        }
        None => Ok(()),
    }
}

fn extend_with<P: ArrowPrimitiveType, T>(
    values: &mut Vec<T>,
    array: &ArrayRef,
    stored: impl Fn(P::Native) -> T,
) {
    extend_valid(values, array, array.as_primitive::<P>().values(), stored);
}

/// Appends what is stored for the values of `array` that are not NULL.
fn extend_valid<V: Copy, T>(
    values: &mut Vec<T>,
    array: &ArrayRef,
    all: &[V],
    stored: impl Fn(V) -> T,
) {
    let mut extend = |from: usize, to: usize| {
        values.extend(all[from..to].iter().map(|value| stored(*value)));
    };
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => extend(0, array.len()),
        Some(nulls) => nulls.valid_slices().for_each(|(from, to)| extend(from, to)),
    }
}
