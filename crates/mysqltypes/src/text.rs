//! Values of the text protocol, and those that both protocols send as strings.

use dray_format::ColumnBuilder;

use crate::column::{Column, Decode};
use crate::error::{Error, Result};
use crate::number::{decimal128, decimal256, signed, unsigned};
use crate::temporal::{DateTime, Time, push_date, push_datetime};

/// Appends a value.
#[inline]
pub(crate) fn push(column: &Column, builder: &mut ColumnBuilder, value: &[u8]) -> Result<()> {
    match column.decode {
        Decode::Bytes => builder.push_bytes(value)?,
        Decode::Int32 => builder.push_fixed(signed::<i32>(value)?.to_le_bytes())?,
        Decode::Int64 => builder.push_fixed(signed::<i64>(value)?.to_le_bytes())?,
        Decode::Decimal128 { precision, scale } => {
            builder.push_fixed(decimal128(value, precision, scale)?.to_le_bytes())?
        }
        Decode::DateTime => push_datetime(column, builder, parsed(value, DateTime::of_datetime)?)?,
        Decode::Date => push_date(column, builder, parsed(value, DateTime::of_date)?)?,
        Decode::Float64 => builder.push_fixed(float::<f64>(value)?.to_le_bytes())?,
        Decode::UInt32 => builder.push_fixed(unsigned::<u32>(value)?.to_le_bytes())?,
        Decode::UInt64 => builder.push_fixed(unsigned::<u64>(value)?.to_le_bytes())?,
        Decode::Int8 => builder.push_fixed(signed::<i8>(value)?.to_le_bytes())?,
        Decode::Int16 => builder.push_fixed(signed::<i16>(value)?.to_le_bytes())?,
        Decode::Year => builder.push_fixed(unsigned::<i16>(value)?.to_le_bytes())?,
        Decode::UInt8 => builder.push_fixed(unsigned::<u8>(value)?.to_le_bytes())?,
        Decode::UInt16 => builder.push_fixed(unsigned::<u16>(value)?.to_le_bytes())?,
        Decode::Float32 => builder.push_fixed(float::<f32>(value)?.to_le_bytes())?,
        Decode::Time => builder.push_fixed(parsed(value, Time::of_text)?.0.to_le_bytes())?,
        Decode::Decimal256 { precision, scale } => {
            builder.push_fixed(decimal256(value, precision, scale)?)?
        }
        Decode::Bits => {
            let mut bits = [0; 8];
            let at = bits.len().checked_sub(value.len()).filter(|at| *at < bits.len());
            let at = at.ok_or_else(|| unexpected(value))?;
            bits[at..].copy_from_slice(value);
            builder.push_fixed(u64::from_be_bytes(bits).to_le_bytes())?
        }
        Decode::Uuid => builder.push_fixed(parsed(value, uuid)?)?,
        Decode::Vector => {
            let (floats, rest) = value.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(unexpected(value));
            }
            let items = builder.item()?;
            floats.iter().try_for_each(|float| items.push_fixed(*float))?;
            builder.close_list()?
        }
        Decode::DateText => {
            parsed(value, DateTime::of_date)?;
            builder.push_bytes(value)?
        }
        Decode::DateTimeText(_) => {
            parsed(value, DateTime::of_datetime)?;
            builder.push_bytes(value)?
        }
        Decode::Null => return Err(unexpected(value)),
    }
    Ok(())
}

/// Reads a value, which is malformed if `parse` gives none.
#[inline]
fn parsed<T>(value: &[u8], parse: impl Fn(&[u8]) -> Option<T>) -> Result<T> {
    parse(value).ok_or_else(|| unexpected(value))
}

/// The error for bytes that are no value of the column's type.
#[cold]
pub(crate) fn unexpected(value: &[u8]) -> Error {
    const SHOWN_BYTES_MAX: usize = 100;
    let shown = value.get(..SHOWN_BYTES_MAX).unwrap_or(value);
    let more = if value.len() > shown.len() { "…" } else { "" };
    Error::malformed(format!(
        "\"{}{more}\", which is no value of its column's type",
        shown.escape_ascii()
    ))
}

/// Reads a float: digits, a point, an exponent.
#[inline]
fn float<T: std::str::FromStr>(text: &[u8]) -> Result<T> {
    // Rust reads words such as `inf` too.
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e');
    let number = std::str::from_utf8(text).ok().filter(|_| text.iter().all(is_number));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| unexpected(text))
}

/// Reads `123e4567-e89b-12d3-a456-426655440000`.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let text: &[u8; 36] = text.try_into().ok()?;
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (at, byte) in text.iter().enumerate() {
        if DASHES.contains(&at) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(16)? as u8;
        bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}
