//! Values of the binary protocol: little-endian numbers, dates and times by their parts, and
//! strings.

use dray_format::ColumnBuilder;

use crate::column::{Column, Decode};
use crate::error::Result;
use crate::number::decimal128;
use crate::reader::Reader;
use crate::temporal::{DateTime, Time, push_date, push_datetime};
use crate::text::{self, unexpected};

/// Appends the next value.
#[inline]
pub(crate) fn push(
    column: &Column,
    builder: &mut ColumnBuilder,
    reader: &mut Reader<'_>,
) -> Result<()> {
    match column.decode {
        Decode::Bytes => builder.push_bytes(reader.bytes()?)?,
        Decode::Int32 | Decode::UInt32 | Decode::Float32 => {
            builder.push_fixed(reader.array::<4>()?)?
        }
        Decode::Int64 | Decode::UInt64 | Decode::Float64 => {
            builder.push_fixed(reader.array::<8>()?)?
        }
        Decode::Decimal128 { precision, scale } => {
            builder.push_fixed(decimal128(reader.bytes()?, precision, scale)?.to_le_bytes())?
        }
        Decode::DateTime | Decode::DateTimeText(_) => {
            let parts = parts(reader)?;
            let datetime = DateTime::of_parts(parts).ok_or_else(|| unexpected(parts))?;
            push_datetime(column, builder, datetime)?
        }
        Decode::Date | Decode::DateText => {
            let parts = parts(reader)?;
            let date = DateTime::of_parts(parts).filter(DateTime::is_midnight);
            push_date(column, builder, date.ok_or_else(|| unexpected(parts))?)?
        }
        Decode::Int8 | Decode::UInt8 => builder.push_fixed(reader.array::<1>()?)?,
        Decode::Int16 | Decode::UInt16 => builder.push_fixed(reader.array::<2>()?)?,
        Decode::Year => {
            let raw = reader.array()?;
            let year = i16::try_from(u16::from_le_bytes(raw)).map_err(|_| unexpected(&raw))?;
            builder.push_fixed(year.to_le_bytes())?
        }
        Decode::Time => {
            let parts = parts(reader)?;
            let time = Time::of_parts(parts).ok_or_else(|| unexpected(parts))?;
            builder.push_fixed(time.0.to_le_bytes())?
        }
        Decode::Null => return Err(unexpected(b"")),
        Decode::Decimal256 { .. } | Decode::Bits | Decode::Uuid | Decode::Vector => {
            text::push(column, builder, reader.bytes()?)?
        }
    }
    Ok(())
}

/// The parts of a date or a time: a byte with their length comes first. Those at the end that are
/// zero are left out.
#[inline]
fn parts<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let bytes = reader.byte()?;
    reader.take(bytes.into())
}
