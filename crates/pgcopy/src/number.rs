//! Integers, floats and decimals.

use arrow::array::{Array, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, DecimalType};
use dray_pgtypes::numeric::{Declared, send_scaled, send_text};

use crate::error::Reason;
use crate::fixed::Fixed;
use crate::values::Values;

const NUMERIC: u32 = 1700;
pub(crate) const OUT_OF_RANGE: Reason = "it is out of range";
/// A precision that cuts no digits: Arrow cuts those of values beyond the declared one.
pub(crate) const ALL_DIGITS: u8 = u8::MAX;
const INEXACT: Reason = "it would be rounded";
const NOT_WHOLE: Reason = "it is no whole number";

/// An integer of Arrow.
pub(crate) trait Integer: ArrowPrimitiveType {
    fn wide(value: Self::Native) -> i128;
}

macro_rules! integers {
    ($($type:ident),*) => {
        $(impl Integer for arrow::datatypes::$type {
            #[inline]
            fn wide(value: Self::Native) -> i128 {
                value.into()
            }
        })*
    };
}
integers!(Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);

/// Integers as values of the type with this oid, which is a number.
pub(crate) fn integers<T: Integer>(
    array: PrimitiveArray<T>,
    oid: u32,
    declared: Option<Declared>,
) -> Option<Box<dyn Values>> {
    macro_rules! checked {
        ($into:ty) => {
            Box::new(Fixed {
                array,
                oid,
                convert: |value| {
                    <$into>::try_from(T::wide(value))
                        .map(<$into>::to_be_bytes)
                        .map_err(|_| OUT_OF_RANGE)
                },
            })
        };
    }
    Some(match oid {
        21 => checked!(i16),
        23 => checked!(i32),
        20 => checked!(i64),
        // oid, xid, cid
        26 | 28 | 29 => checked!(u32),
        5069 => checked!(u64),
        700 => Box::new(Fixed {
            array,
            oid,
            convert: |value| {
                let wide = T::wide(value);
                let float = wide as f32;
                if float as i128 == wide { Ok(float.to_be_bytes()) } else { Err(INEXACT) }
            },
        }),
        701 => Box::new(Fixed {
            array,
            oid,
            convert: |value| {
                let wide = T::wide(value);
                let float = wide as f64;
                if float as i128 == wide { Ok(float.to_be_bytes()) } else { Err(INEXACT) }
            },
        }),
        NUMERIC => Box::new(Numbers { array, scale: 0, declared, wide: T::wide }),
        _ => return None,
    })
}

/// A float of Arrow, which 64 bits hold.
pub(crate) fn floats<T>(array: PrimitiveArray<T>, oid: u32) -> Option<Box<dyn Values>>
where
    T: ArrowPrimitiveType,
    T::Native: Float,
{
    Some(match oid {
        700 => Box::new(Fixed {
            array,
            oid,
            convert: |value: T::Native| {
                value.narrow().map(|value| value.to_bits().to_be_bytes()).ok_or(INEXACT)
            },
        }),
        701 => Box::new(Fixed {
            array,
            oid,
            convert: |value: T::Native| Ok(value.wide().to_bits().to_be_bytes()),
        }),
        _ => return None,
    })
}

pub(crate) trait Float: Copy {
    fn wide(self) -> f64;
    /// None if 32 bits would round it.
    fn narrow(self) -> Option<f32>;
}

impl Float for f32 {
    fn wide(self) -> f64 {
        self.into()
    }
    fn narrow(self) -> Option<f32> {
        Some(self)
    }
}

impl Float for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(self) -> Option<f32> {
        let narrow = self as f32;
        (f64::from(narrow) == self || self.is_nan()).then_some(narrow)
    }
}

/// Numbers of up to 128 bits as `numeric`.
struct Numbers<T: ArrowPrimitiveType, F> {
    array: PrimitiveArray<T>,
    scale: u8,
    declared: Option<Declared>,
    wide: F,
}

impl<T: ArrowPrimitiveType, F: Fn(T::Native) -> i128 + Send> Values for Numbers<T, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        NUMERIC
    }

    #[inline]
    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let value = (self.wide)(self.array.value(row));
        let magnitude = value.unsigned_abs();
        if self.declared.is_some_and(|declared| !declared.holds(magnitude, self.scale.into())) {
            return Err("it has more digits than the column");
        }
        send_scaled(value < 0, magnitude, self.scale, out);
        Ok(())
    }
}

/// Decimals that are sent digit by digit: of 256 bits, or with a scale below zero.
struct Digits<T: DecimalType> {
    array: PrimitiveArray<T>,
    scale: i8,
    declared: Option<Declared>,
}

impl<T: DecimalType> Values for Digits<T> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        NUMERIC
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let text = T::format_decimal(self.array.value(row), ALL_DIGITS, self.scale);
        send_text(&text, self.declared, out)
    }
}

/// Decimals of up to 128 bits as values of the type with this oid.
pub(crate) fn decimals<T: DecimalType>(
    array: PrimitiveArray<T>,
    precision: u8,
    scale: i8,
    oid: u32,
    declared: Option<Declared>,
    money_scale: Option<u8>,
) -> Option<Box<dyn Values>>
where
    T::Native: Into<i128>,
{
    if let Some(money_scale) = money_scale.filter(|_| oid == 790) {
        let convert = move |value: T::Native| rescaled(value.into(), scale, money_scale);
        return Some(Box::new(Fixed { array, oid, convert }));
    }
    if matches!(oid, 20 | 21 | 23) {
        return Some(whole(array, scale, oid));
    }
    if oid != NUMERIC {
        return None;
    }
    Some(match u8::try_from(scale) {
        Ok(scale) => {
            // Numbers of such an array always fit.
            let declared = declared.filter(|declared| {
                declared.scale < i32::from(scale)
                    || declared.precision - declared.scale < i32::from(precision) - i32::from(scale)
            });
            Box::new(Numbers { array, scale, declared, wide: |value: T::Native| value.into() })
        }
        Err(_) => Box::new(Digits { array, scale, declared }),
    })
}

/// Decimals of 256 bits as `numeric`.
pub(crate) fn wide_decimals<T: DecimalType>(
    array: PrimitiveArray<T>,
    scale: i8,
    oid: u32,
    declared: Option<Declared>,
) -> Option<Box<dyn Values>> {
    (oid == NUMERIC).then(|| Box::new(Digits { array, scale, declared }) as _)
}

/// A decimal as an integer with another scale.
fn rescaled(value: i128, from: i8, to: u8) -> Result<[u8; 8], Reason> {
    let up = i32::from(to) - i32::from(from);
    let power = 10i128.checked_pow(up.unsigned_abs()).ok_or(OUT_OF_RANGE)?;
    let value = match up >= 0 {
        true => value.checked_mul(power).ok_or(OUT_OF_RANGE)?,
        false if value % power == 0 => value / power,
        false => return Err(if to == 0 { NOT_WHOLE } else { INEXACT }),
    };
    i64::try_from(value).map(i64::to_be_bytes).map_err(|_| OUT_OF_RANGE)
}

/// Decimals as integers.
fn whole<T: DecimalType>(array: PrimitiveArray<T>, scale: i8, oid: u32) -> Box<dyn Values>
where
    T::Native: Into<i128>,
{
    let whole = move |value: T::Native| rescaled(value.into(), scale, 0).map(i64::from_be_bytes);
    match oid {
        21 => Box::new(Fixed {
            array,
            oid,
            convert: move |value| {
                i16::try_from(whole(value)?).map(i16::to_be_bytes).map_err(|_| OUT_OF_RANGE)
            },
        }),
        23 => Box::new(Fixed {
            array,
            oid,
            convert: move |value| {
                i32::try_from(whole(value)?).map(i32::to_be_bytes).map_err(|_| OUT_OF_RANGE)
            },
        }),
        _ => {
            Box::new(Fixed { array, oid, convert: move |value| whole(value).map(i64::to_be_bytes) })
        }
    }
}
