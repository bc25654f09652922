//! Casts that round, as in PostgreSQL. The engine truncates (and DuckDB truncates times).

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Float32Type, Float64Type, TimeUnit,
};
use chrono::{TimeDelta, Utc};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// The rounded operand of a cast to an integer; None if the cast needs no rounding.
pub(super) fn before_cast(expr: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    match (from, to) {
        // The cast between decimals rounds.
        (DataType::Decimal128(digits, scale @ 1..), to) if to.is_integer() => {
            let whole = digits
                .saturating_add(1)
                .saturating_sub(scale.unsigned_abs())
                .clamp(1, DECIMAL128_MAX_PRECISION);
            Some(Expr::Cast(Cast::new(Box::new(expr.clone()), DataType::Decimal128(whole, 0))))
        }
        (DataType::Float32 | DataType::Float64, to) if to.is_integer() => {
            Some(Rounded::call(Kind::Whole, expr))
        }
        _ => None,
    }
}

/// The rounded operand of a cast from text to a time; None for other casts.
pub(crate) fn before_time(expr: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    let (DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit)) = to
    else {
        return None;
    };
    let digits = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    let is_text = matches!(from, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    is_text.then(|| Rounded::call(Kind::Time { digits }, expr))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// To an integer, with ties to even.
    Whole,
    /// The fraction of a second in a text.
    Time { digits: usize },
}

/// A function that rounds its argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    kind: Kind,
    signature: Signature,
}

impl Rounded {
    fn call(kind: Kind, expr: &Expr) -> Expr {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { kind, signature }).call(vec![expr.clone()])
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Whole => "rounded",
            Kind::Time { .. } => "rounded_time",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [only] => Ok(only.clone()),
            _ => internal_err!("{} arguments are rounded", arguments.len()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [only] => {
                Ok(Arc::new(Field::new(self.name(), only.data_type().clone(), only.is_nullable())))
            }
            others => internal_err!("{} arguments are rounded", others.len()),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = &args.args[..] else {
            return internal_err!("{} arguments are rounded", args.args.len());
        };
        match (self.kind, value) {
            (Kind::Whole, ColumnarValue::Array(array)) => match array.data_type() {
                DataType::Float32 => {
                    let whole = array
                        .as_primitive::<Float32Type>()
                        .unary::<_, Float32Type>(f32::round_ties_even);
                    Ok(ColumnarValue::Array(Arc::new(whole)))
                }
                DataType::Float64 => {
                    let whole = array
                        .as_primitive::<Float64Type>()
                        .unary::<_, Float64Type>(f64::round_ties_even);
                    Ok(ColumnarValue::Array(Arc::new(whole)))
                }
                other => internal_err!("{other} is rounded"),
            },
            (Kind::Whole, ColumnarValue::Scalar(value)) => Ok(ColumnarValue::Scalar(match value {
                ScalarValue::Float32(value) => {
                    ScalarValue::Float32(value.map(f32::round_ties_even))
                }
                ScalarValue::Float64(value) => {
                    ScalarValue::Float64(value.map(f64::round_ties_even))
                }
                other => return internal_err!("{other:?} is rounded"),
            })),
            (Kind::Time { digits }, ColumnarValue::Scalar(scalar)) => match scalar.try_as_str() {
                Some(Some(text)) if needs_rounding(text, digits) => {
                    let text = ScalarValue::from(&*rounded_time(text, digits)?);
                    Ok(ColumnarValue::Scalar(text.cast_to(&scalar.data_type())?))
                }
                _ => Ok(value.clone()),
            },
            (Kind::Time { digits }, ColumnarValue::Array(array)) => {
                let any_needs_rounding = match array.data_type() {
                    DataType::Utf8 => array
                        .as_string::<i32>()
                        .iter()
                        .flatten()
                        .any(|text| needs_rounding(text, digits)),
                    DataType::LargeUtf8 => array
                        .as_string::<i64>()
                        .iter()
                        .flatten()
                        .any(|text| needs_rounding(text, digits)),
                    _ => array
                        .as_string_view()
                        .iter()
                        .flatten()
                        .any(|text| needs_rounding(text, digits)),
                };
                if !any_needs_rounding {
                    return Ok(value.clone());
                }
                let texts = cast(array, &DataType::LargeUtf8)?;
                let texts = texts.as_string::<i64>().iter();
                let texts =
                    texts.map(|text| text.map(|text| rounded_time(text, digits)).transpose());
                Ok(ColumnarValue::Array(cast(
                    &texts.collect::<Result<LargeStringArray>>()?,
                    array.data_type(),
                )?))
            }
        }
    }
}

/// Whether a time has more fraction digits than `digits`.
fn needs_rounding(text: &str, digits: usize) -> bool {
    // At least the two digits of a second precede the point.
    text.len() > digits + 3
        && text.split_once('.').is_some_and(|(_, behind)| {
            behind.bytes().take_while(u8::is_ascii_digit).count() > digits
        })
}

/// Rounds a time to `digits` fraction digits. The cast reports what is not a time.
fn rounded_time(text: &str, digits: usize) -> Result<Cow<'_, str>> {
    let Some((seconds, behind)) = text.split_once('.') else { return Ok(Cow::Borrowed(text)) };
    let (fraction, zone) = behind.split_at(behind.bytes().take_while(u8::is_ascii_digit).count());
    if fraction.len() <= digits {
        return Ok(Cow::Borrowed(text));
    }
    let (kept, cut) = fraction.split_at(digits);
    let is_more = cut.starts_with(|digit| digit >= '5');
    if !is_more {
        let point = if kept.is_empty() { "" } else { "." };
        return Ok(Cow::Owned(format!("{seconds}{point}{kept}{zone}")));
    }
    if kept.bytes().any(|digit| digit != b'9') {
        // At most nine digits.
        let Ok(kept) = kept.parse::<u32>() else { return Ok(Cow::Borrowed(text)) };
        return Ok(Cow::Owned(format!("{seconds}.{:0digits$}{zone}", kept + 1)));
    }
    match string_to_datetime(&Utc, seconds)
        .ok()
        .and_then(|time| time.checked_add_signed(TimeDelta::seconds(1)))
    {
        Some(next) => Ok(Cow::Owned(format!("{}{zone}", next.format("%Y-%m-%d %H:%M:%S")))),
        None => {
            exec_err!("error parsing timestamp: '{text}' has more than {digits} fraction digits")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::rounded_time;

    #[test]
    fn times_are_rounded() {
        for (text, digits, expected) in [
            ("2020-01-01 00:00:00", 6, "2020-01-01 00:00:00"),
            ("2020-01-01 00:00:00.123456", 6, "2020-01-01 00:00:00.123456"),
            ("2020-01-01 00:00:00.1234564999", 6, "2020-01-01 00:00:00.123456"),
            ("2020-01-01 00:00:00.1234567+02", 6, "2020-01-01 00:00:00.123457+02"),
            ("2020-01-01T00:00:00.000000999Z", 6, "2020-01-01T00:00:00.000001Z"),
            ("2019-12-31 23:59:59.9999999-01:00", 6, "2020-01-01 00:00:00-01:00"),
            ("2019-12-31 23:59:59.5", 0, "2020-01-01 00:00:00"),
            ("2019-12-31 23:59:59.4", 0, "2019-12-31 23:59:59"),
            ("00:00:00.12345678949", 9, "00:00:00.123456789"),
            ("not.123456789012 a time", 9, "not.123456789 a time"),
        ] {
            assert_eq!(rounded_time(text, digits).unwrap(), expected, "{text}");
        }
        assert!(rounded_time("23:59:59.9999999999", 9).is_err());
    }
}
