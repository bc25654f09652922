//! Values as the driver gives them, to columns of Arrow.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use dray_bridge::{Failure, FailureKind};
use odbc_sys::CDataType;

use crate::column::Column;
use crate::{decimal, time};

/// `numeric_value_out_of_range`, `datetime_field_overflow`, `character_not_in_repertoire`.
const NUMBER: &str = "22003";
const TIME: &str = "22008";
const TEXT: &str = "22021";
/// `data_exception`.
const DATA: &str = "22000";

/// The most bytes of all texts or byte strings of a batch.
const STRING_BYTES_MAX: usize = i32::MAX as usize;

/// A column of a batch that grows.
pub(crate) struct Builder {
    name: String,
    /// Whether values come as text.
    is_text: bool,
    values: Values,
}

/// Where the values go, by their type.
enum Values {
    Boolean(BooleanBuilder),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    UInt8(PrimitiveBuilder<UInt8Type>),
    UInt16(PrimitiveBuilder<UInt16Type>),
    UInt32(PrimitiveBuilder<UInt32Type>),
    UInt64(PrimitiveBuilder<UInt64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    TimeMicrosecond(PrimitiveBuilder<Time64MicrosecondType>),
    TimeNanosecond(PrimitiveBuilder<Time64NanosecondType>),
    TimestampMicrosecond(PrimitiveBuilder<TimestampMicrosecondType>),
    TimestampNanosecond(PrimitiveBuilder<TimestampNanosecondType>),
    Decimal128(PrimitiveBuilder<Decimal128Type>, u8, u8),
    Decimal256(PrimitiveBuilder<Decimal256Type>, u8, u8),
    Utf8(StringBuilder),
    /// With room for one text.
    Utf16(StringBuilder, String),
    Binary(BinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
}

/// Calls a macro's arm for whichever builder it is.
macro_rules! with_builder {
    ($values:expr, $builder:ident => $run:expr) => {
        match $values {
            Values::Boolean($builder) => $run,
            Values::Int8($builder) => $run,
            Values::Int16($builder) => $run,
            Values::Int32($builder) => $run,
            Values::Int64($builder) => $run,
            Values::UInt8($builder) => $run,
            Values::UInt16($builder) => $run,
            Values::UInt32($builder) => $run,
            Values::UInt64($builder) => $run,
            Values::Float32($builder) => $run,
            Values::Float64($builder) => $run,
            Values::Date($builder) => $run,
            Values::TimeMicrosecond($builder) => $run,
            Values::TimeNanosecond($builder) => $run,
            Values::TimestampMicrosecond($builder) => $run,
            Values::TimestampNanosecond($builder) => $run,
            Values::Decimal128($builder, ..) => $run,
            Values::Decimal256($builder, ..) => $run,
            Values::Utf8($builder) => $run,
            Values::Utf16($builder, _) => $run,
            Values::Binary($builder) => $run,
            Values::Uuid($builder) => $run,
        }
    };
}

impl Builder {
    /// # Errors
    /// If values of this type are not fetched.
    pub(crate) fn new(column: &Column) -> Result<Self, Failure> {
        let data_type = column.data_type.clone();
        let values = match data_type {
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Values::Int8(PrimitiveBuilder::new()),
            DataType::Int16 => Values::Int16(PrimitiveBuilder::new()),
            DataType::Int32 => Values::Int32(PrimitiveBuilder::new()),
            DataType::Int64 => Values::Int64(PrimitiveBuilder::new()),
            DataType::UInt8 => Values::UInt8(PrimitiveBuilder::new()),
            DataType::UInt16 => Values::UInt16(PrimitiveBuilder::new()),
            DataType::UInt32 => Values::UInt32(PrimitiveBuilder::new()),
            DataType::UInt64 => Values::UInt64(PrimitiveBuilder::new()),
            DataType::Float32 => Values::Float32(PrimitiveBuilder::new()),
            DataType::Float64 => Values::Float64(PrimitiveBuilder::new()),
            DataType::Date32 => Values::Date(PrimitiveBuilder::new()),
            DataType::Time64(TimeUnit::Nanosecond) => {
                Values::TimeNanosecond(PrimitiveBuilder::new())
            }
            DataType::Time64(_) => Values::TimeMicrosecond(PrimitiveBuilder::new()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Values::TimestampNanosecond(PrimitiveBuilder::new())
            }
            DataType::Timestamp(..) => Values::TimestampMicrosecond(PrimitiveBuilder::new()),
            DataType::Decimal128(precision, scale) => {
                let builder = PrimitiveBuilder::new().with_data_type(data_type);
                Values::Decimal128(builder, precision, scale.unsigned_abs())
            }
            DataType::Decimal256(precision, scale) => {
                let builder = PrimitiveBuilder::new().with_data_type(data_type);
                Values::Decimal256(builder, precision, scale.unsigned_abs())
            }
            DataType::Utf8 if column.c_type == CDataType::WChar => {
                Values::Utf16(StringBuilder::new(), String::new())
            }
            DataType::Utf8 => Values::Utf8(StringBuilder::new()),
            DataType::Binary => Values::Binary(BinaryBuilder::new()),
            DataType::FixedSizeBinary(width) => Values::Uuid(FixedSizeBinaryBuilder::new(width)),
            other => {
                let what = format!("the column {:?} has the type {other}", column.name);
                return Err(Failure::new(FailureKind::Internal, "", what));
            }
        };
        let is_text = column.c_type == CDataType::Char;
        Ok(Self { name: column.name.clone(), is_text, values })
    }

    pub(crate) fn append_null(&mut self) {
        with_builder!(&mut self.values, builder => builder.append_null());
    }

    /// Appends a value as the driver gave it. Returns about how many bytes it takes.
    ///
    /// # Errors
    /// If the column's type does not hold it exactly.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        match self.values.append(bytes, self.is_text) {
            Ok(count) => Ok(count),
            Err((sqlstate, cause)) => {
                let message = format!("the column {:?} has {cause}", self.name);
                Err(Failure::new(FailureKind::Execution, sqlstate, message))
            }
        }
    }

    /// The column so far. The next values begin another.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        with_builder!(&mut self.values, builder => Arc::new(builder.finish()))
    }
}

/// An SQLSTATE, and what a column has.
type Refused = (&'static str, String);

impl Values {
    fn append(&mut self, bytes: &[u8], is_text: bool) -> Result<usize, Refused> {
        match self {
            Self::Boolean(builder) => {
                let value = match bytes {
                    [0] => false,
                    [1] => true,
                    other => return Err((NUMBER, format!("the bit {other:?}"))),
                };
                builder.append_value(value);
                Ok(1)
            }
            Self::Int8(builder) => fixed(builder, bytes, i8::from_ne_bytes),
            Self::Int16(builder) => fixed(builder, bytes, i16::from_ne_bytes),
            Self::Int32(builder) => fixed(builder, bytes, i32::from_ne_bytes),
            Self::Int64(builder) => fixed(builder, bytes, i64::from_ne_bytes),
            Self::UInt8(builder) => fixed(builder, bytes, u8::from_ne_bytes),
            Self::UInt16(builder) => fixed(builder, bytes, u16::from_ne_bytes),
            Self::UInt32(builder) => fixed(builder, bytes, u32::from_ne_bytes),
            Self::UInt64(builder) => fixed(builder, bytes, u64::from_ne_bytes),
            Self::Float32(builder) => fixed(builder, bytes, f32::from_ne_bytes),
            Self::Float64(builder) => fixed(builder, bytes, f64::from_ne_bytes),
            Self::Date(builder) => push(builder, date_of(bytes, is_text)?),
            Self::TimeMicrosecond(builder) => push(builder, time_of(bytes, TimeUnit::Microsecond)?),
            Self::TimeNanosecond(builder) => push(builder, time_of(bytes, TimeUnit::Nanosecond)?),
            Self::TimestampMicrosecond(builder) => {
                push(builder, timestamp_of(bytes, is_text, TimeUnit::Microsecond)?)
            }
            Self::TimestampNanosecond(builder) => {
                push(builder, timestamp_of(bytes, is_text, TimeUnit::Nanosecond)?)
            }
            Self::Decimal128(builder, precision, scale) => {
                let value = decimal::parse(bytes, *precision, *scale);
                push(builder, value.ok_or_else(|| decimal_refused(bytes, *precision, *scale))?)
            }
            Self::Decimal256(builder, precision, scale) => {
                let value = decimal::parse(bytes, *precision, *scale);
                push(builder, value.ok_or_else(|| decimal_refused(bytes, *precision, *scale))?)
            }
            Self::Utf8(builder) => {
                let text = std::str::from_utf8(bytes)
                    .map_err(|cause| (TEXT, format!("a text that is not UTF-8: {cause}")))?;
                room(builder.values_slice().len(), text.len())?;
                builder.append_value(text);
                Ok(text.len() + size_of::<i32>())
            }
            Self::Utf16(builder, text) => {
                text.clear();
                decode(bytes, text)?;
                room(builder.values_slice().len(), text.len())?;
                builder.append_value(&*text);
                Ok(text.len() + size_of::<i32>())
            }
            Self::Binary(builder) => {
                room(builder.values_slice().len(), bytes.len())?;
                builder.append_value(bytes);
                Ok(bytes.len() + size_of::<i32>())
            }
            Self::Uuid(builder) => {
                let refused = || (DATA, "a GUID that is none".to_owned());
                let mut uuid: [u8; 16] = bytes.try_into().map_err(|_| refused())?;
                // The first three parts are numbers of this machine.
                if cfg!(target_endian = "little") {
                    uuid[..4].reverse();
                    uuid[4..6].reverse();
                    uuid[6..8].reverse();
                }
                builder.append_value(uuid).map_err(|_| refused())?;
                Ok(16)
            }
        }
    }
}

fn fixed<T: ArrowPrimitiveType, const N: usize>(
    builder: &mut PrimitiveBuilder<T>,
    bytes: &[u8],
    value: impl Fn([u8; N]) -> T::Native,
) -> Result<usize, Refused> {
    let bytes = bytes.try_into().map_err(|_| (DATA, "a number that is none".to_owned()))?;
    push(builder, value(bytes))
}

fn push<T: ArrowPrimitiveType>(
    builder: &mut PrimitiveBuilder<T>,
    value: T::Native,
) -> Result<usize, Refused> {
    builder.append_value(value);
    Ok(size_of::<T::Native>())
}

/// There is room for a value's bytes behind others.
fn room(bytes: usize, more: usize) -> Result<(), Refused> {
    match bytes.checked_add(more) {
        Some(bytes) if bytes <= STRING_BYTES_MAX => Ok(()),
        _ => Err((DATA, format!("a value of {more} bytes, which is too large"))),
    }
}

/// UTF-16 as UTF-8. A half of a pair without the other is refused.
fn decode(bytes: &[u8], text: &mut String) -> Result<(), Refused> {
    let units =
        || bytes.chunks_exact(2).filter_map(|unit| Some(u16::from_ne_bytes(unit.try_into().ok()?)));
    text.reserve(bytes.len() / 2);
    for unit in char::decode_utf16(units()) {
        text.push(unit.map_err(|half| {
            let half = half.unpaired_surrogate();
            (TEXT, format!("a text that is not UTF-16: the unit {half:#06x} lacks its pair"))
        })?);
    }
    Ok(())
}

fn time_of(bytes: &[u8], unit: TimeUnit) -> Result<i64, Refused> {
    time::time(bytes, unit).ok_or_else(|| {
        let text = String::from_utf8_lossy(bytes);
        (TIME, format!("the time {text}, which is not within a day; cast it to text"))
    })
}

fn date_of(bytes: &[u8], is_text: bool) -> Result<i32, Refused> {
    let date = if is_text { time::date_of_text(bytes) } else { time::date(bytes) };
    date.ok_or_else(|| date_refused(bytes, is_text))
}

fn timestamp_of(bytes: &[u8], is_text: bool, unit: TimeUnit) -> Result<i64, Refused> {
    let timestamp = match is_text {
        true => time::timestamp_of_text(bytes, unit),
        false => time::timestamp(bytes, unit),
    };
    timestamp.ok_or_else(|| date_refused(bytes, is_text))
}

fn date_refused(bytes: &[u8], is_text: bool) -> Refused {
    let date = if is_text { String::from_utf8_lossy(bytes).into_owned() } else { written(bytes) };
    (TIME, format!("the date {date}, which its type does not hold; cast it to text"))
}

/// A date or a timestamp in its structure, as text.
fn written(bytes: &[u8]) -> String {
    let word = |at: usize| {
        let word = bytes.get(at..at + 2).and_then(|word| word.try_into().ok());
        word.map_or(0, u16::from_ne_bytes)
    };
    let year = word(0).cast_signed();
    let mut text = format!("{year:04}-{:02}-{:02}", word(2), word(4));
    if let Some(fraction) = bytes.get(12..16).and_then(|bytes| bytes.try_into().ok()) {
        let fraction = u32::from_ne_bytes(fraction);
        text += &format!(" {:02}:{:02}:{:02}.{fraction:09}", word(6), word(8), word(10));
    }
    text
}

fn decimal_refused(bytes: &[u8], precision: u8, scale: u8) -> Refused {
    let text = String::from_utf8_lossy(bytes);
    let what = format!(
        "the value {text}, and its driver announced {precision} digits, {scale} of them behind the \
         point; cast it to a decimal of more digits or to text"
    );
    (NUMBER, what)
}
