//! Values as PostgreSQL's send functions write them: big-endian, one function per type
//! (`src/backend/utils/adt` of its source). A few types come as text, because they have only an
//! output function or because it is faster.

mod nested;
mod reader;

use std::io::Write;

use dray_format::ColumnBuilder;

use self::nested::{push_array, push_composite, push_hstore, push_multirange, push_range};
use self::reader::{Reader, wrong_length};
use crate::column::{Format, push_text_array};
use crate::error::{Error, Result};
use crate::numeric::Numeric;

/// PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * DAY_MICROSECONDS;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// `24:00:00.000000+15:59:59`, with space for a zone beyond the server's own limits.
const TIMETZ_BYTES_MAX: usize = 32;
/// The advice for values that a column's type can't represent.
const ADVICE: &str = "choose nonfinite=null or nonfinite=text";

/// How to decode a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decode {
    Boolean,
    /// 2, 4 or 8 bytes, to be reversed.
    Fixed2,
    Fixed4,
    Fixed8,
    /// 16 bytes, in the same order.
    Fixed16,
    /// An integer of this many bytes, as text.
    Digits(usize),
    Oid,
    Xid8,
    Decimal128 {
        precision: u8,
        scale: i8,
    },
    Decimal256 {
        precision: u8,
        scale: i8,
    },
    NumericText,
    NumericFloat,
    Money,
    /// The value's own bytes.
    Bytes,
    /// The value's own bytes. Its send function names the encoding, its output function does not.
    Xml,
    /// The value's own bytes after a version byte.
    JsonB,
    Char,
    Date,
    Timestamp,
    Time,
    TimeTz,
    Interval,
    Bits,
    Hstore,
    Array {
        oid: u32,
        item: Box<Decode>,
    },
    Composite(Vec<(u32, Decode)>),
    Range(Box<Decode>),
    Multirange(Box<Decode>),
    /// The text of the type's output function.
    TextOutput,
    /// An array as its output function writes it.
    TextArray {
        delimiter: u8,
    },
}

impl Decode {
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::TextOutput | Self::TextArray { .. } => Format::Text,
            _ => Format::Binary,
        }
    }

    /// Whether the column's own type tells the PostgreSQL type.
    pub(crate) fn is_plain(&self) -> bool {
        use Decode::*;
        matches!(
            self,
            Boolean
                | Fixed2
                | Fixed4
                | Fixed8
                | Fixed16
                | Decimal128 { .. }
                | Decimal256 { .. }
                | Bytes
                | JsonB
                | Date
                | Timestamp
                | Time
                | Interval
                | Array { .. }
                | Composite(_)
        )
    }

    pub(crate) fn is_costly(&self) -> bool {
        use Decode::*;
        matches!(
            self,
            Decimal128 { .. }
                | Decimal256 { .. }
                | NumericText
                | NumericFloat
                | TextOutput
                | TextArray { .. }
        )
    }
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N]> {
    value
        .try_into()
        .map_err(|_| Error::Malformed(format!("a value of {} bytes, expected {N}", value.len())))
}

fn reversed<const N: usize>(value: &[u8]) -> Result<[u8; N]> {
    let mut bytes = fixed::<N>(value)?;
    bytes.reverse();
    Ok(bytes)
}

/// Parses an integer as `int4out` and the like write it.
fn integer(text: &[u8]) -> Option<i64> {
    /// The most digits of 64 bits; 10^19 is less than 2^64.
    const DIGITS_MAX: usize = 19;
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !(1..=DIGITS_MAX).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    if is_negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

fn push_digits(builder: &mut ColumnBuilder, text: &[u8], bytes: usize) -> Result<()> {
    let malformed =
        || Error::Malformed(format!("{:?} for an integer", String::from_utf8_lossy(text)));
    let value = integer(text).ok_or_else(malformed)?;
    let pushed = match bytes {
        2 => builder.push_fixed(i16::try_from(value).map_err(|_| malformed())?.to_le_bytes()),
        4 => builder.push_fixed(i32::try_from(value).map_err(|_| malformed())?.to_le_bytes()),
        _ => builder.push_fixed(value.to_le_bytes()),
    };
    Ok(pushed?)
}

fn unrepresentable(what: &str) -> Error {
    Error::Unrepresentable(format!("{what}; {ADVICE}"))
}

/// Appends a value.
#[inline]
pub(crate) fn push(
    decode: &Decode,
    builder: &mut ColumnBuilder,
    value: &[u8],
    null_nonfinite: bool,
) -> Result<()> {
    match decode {
        Decode::Digits(bytes) => push_digits(builder, value, *bytes),
        Decode::Fixed4 | Decode::Oid => Ok(builder.push_fixed(reversed::<4>(value)?)?),
        Decode::Bytes | Decode::TextOutput | Decode::Xml => Ok(builder.push_bytes(value)?),
        Decode::Fixed8 | Decode::Xid8 => Ok(builder.push_fixed(reversed::<8>(value)?)?),
        Decode::Decimal128 { precision, scale } => {
            let numeric = numeric(value)?;
            match numeric.to_i128(*precision, *scale) {
                Some(scaled) => Ok(builder.push_fixed(scaled.to_le_bytes())?),
                None => not_decimal(builder, &numeric, *precision, *scale, null_nonfinite),
            }
        }
        Decode::Date => match i32::from_be_bytes(fixed(value)?) {
            i32::MAX => push_unrepresentable(builder, "infinity", null_nonfinite),
            i32::MIN => push_unrepresentable(builder, "-infinity", null_nonfinite),
            days => match days.checked_add(EPOCH_DAYS) {
                Some(days) => Ok(builder.push_fixed(days.to_le_bytes())?),
                None => push_unrepresentable(builder, "a date beyond Arrow's", null_nonfinite),
            },
        },
        Decode::Fixed2 => Ok(builder.push_fixed(reversed::<2>(value)?)?),
        Decode::Boolean => match fixed(value)? {
            [0] => Ok(builder.push_boolean(false)?),
            [1] => Ok(builder.push_boolean(true)?),
            [other] => Err(Error::Malformed(format!("{other} for a boolean"))),
        },
        Decode::Timestamp => match i64::from_be_bytes(fixed(value)?) {
            i64::MAX => push_unrepresentable(builder, "infinity", null_nonfinite),
            i64::MIN => push_unrepresentable(builder, "-infinity", null_nonfinite),
            microseconds => match microseconds.checked_add(EPOCH_MICROSECONDS) {
                Some(microseconds) => Ok(builder.push_fixed(microseconds.to_le_bytes())?),
                None => push_unrepresentable(
                    builder,
                    "a timestamp beyond the year 294246",
                    null_nonfinite,
                ),
            },
        },
        _ => push_rare(decode, builder, value, null_nonfinite),
    }
}

fn push_rare(
    decode: &Decode,
    builder: &mut ColumnBuilder,
    value: &[u8],
    null_nonfinite: bool,
) -> Result<()> {
    match decode {
        Decode::Fixed16 => Ok(builder.push_fixed(fixed::<16>(value)?)?),
        Decode::Decimal256 { precision, scale } => {
            let numeric = numeric(value)?;
            match numeric.to_i256(*precision, *scale) {
                Some(scaled) => Ok(builder.push_fixed(scaled)?),
                None => not_decimal(builder, &numeric, *precision, *scale, null_nonfinite),
            }
        }
        Decode::NumericText => {
            let numeric = numeric(value)?;
            Ok(builder.push_written(numeric.text_bytes_max(), |out| numeric.write_text(out))?)
        }
        Decode::NumericFloat => {
            let numeric = numeric(value)?;
            let float = numeric.to_f64();
            if float.is_infinite() && numeric.is_finite() {
                let what = format!("{} is beyond float64; choose numeric=text", shown(&numeric));
                return Err(Error::Unrepresentable(what));
            }
            Ok(builder.push_fixed(float.to_le_bytes())?)
        }
        Decode::Money => {
            Ok(builder.push_fixed(i128::from(i64::from_be_bytes(fixed(value)?)).to_le_bytes())?)
        }
        Decode::JsonB => match value.split_first() {
            Some((1, json)) => Ok(builder.push_bytes(json)?),
            _ => Err(Error::Malformed("jsonb of an unknown version".to_owned())),
        },
        Decode::Char => match fixed(value)? {
            [0] => Ok(builder.push_bytes(b"")?),
            [byte @ ..0x80] => Ok(builder.push_bytes(&[byte])?),
            // The form of `charout`.
            [byte] => Ok(builder.push_bytes(format!("\\{byte:03o}").as_bytes())?),
        },
        Decode::Time => match i64::from_be_bytes(fixed(value)?) {
            DAY_MICROSECONDS => push_unrepresentable(builder, "24:00:00", null_nonfinite),
            time @ 0..DAY_MICROSECONDS => Ok(builder.push_fixed(time.to_le_bytes())?),
            time => Err(Error::Malformed(format!("a time of {time} microseconds"))),
        },
        Decode::TimeTz => push_timetz(builder, value),
        Decode::Interval => push_interval(builder, value, null_nonfinite),
        Decode::Bits => push_bits(builder, value),
        Decode::Hstore => push_hstore(builder, value),
        Decode::Array { oid, item } => push_array(*oid, item, builder, value, null_nonfinite),
        Decode::Composite(attributes) => push_composite(attributes, builder, value, null_nonfinite),
        Decode::Range(bound) => push_range(bound, builder, value, null_nonfinite),
        Decode::Multirange(bound) => push_multirange(bound, builder, value, null_nonfinite),
        Decode::TextArray { delimiter } => push_text_array(builder, value, *delimiter),
        _ => Err(Error::Malformed("a value of another type".to_owned())),
    }
}

#[inline]
fn numeric(value: &[u8]) -> Result<Numeric<'_>> {
    Numeric::from_sent(value)
        .ok_or_else(|| Error::Malformed("a numeric that can't be read".to_owned()))
}

/// A value for a message, shortened if it is long.
#[cold]
fn shown(numeric: &Numeric<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 100;
    let mut text = Vec::new();
    numeric.write_text(&mut text);
    let text = String::from_utf8_lossy(&text);
    match text.get(..SHOWN_BYTES_MAX) {
        Some(beginning) if text.len() > SHOWN_BYTES_MAX => {
            format!("{beginning}… ({} characters)", text.len())
        }
        _ => text.into_owned(),
    }
}

#[cold]
fn not_decimal(
    builder: &mut ColumnBuilder,
    numeric: &Numeric<'_>,
    precision: u8,
    scale: i8,
    null: bool,
) -> Result<()> {
    let text = shown(numeric);
    match numeric.is_finite() {
        true => Err(Error::Unrepresentable(format!(
            "{text} is no decimal({precision},{scale}); \
             choose another precision and scale, or numeric=text"
        ))),
        false => push_unrepresentable(builder, &text, null),
    }
}

/// Handles a value that the column's type can't represent: NULL or an error.
#[cold]
fn push_unrepresentable(builder: &mut ColumnBuilder, what: &str, null: bool) -> Result<()> {
    if null {
        Ok(builder.push_null()?)
    } else {
        Err(unrepresentable(&format!("Arrow has no {what}")))
    }
}

/// Checks for interrupts now and then between the parts of a value, which may be many.
#[inline]
pub(crate) fn check_interrupts(builder: &ColumnBuilder, part: usize) -> Result<()> {
    const PARTS: usize = 64;
    if part % PARTS == PARTS - 1 { Ok(builder.check_interrupts()?) } else { Ok(()) }
}

/// Writes `04:05:06.789-08` as `timetz_out` does.
fn push_timetz(builder: &mut ColumnBuilder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    let (time, zone) = (reader.i64()?, reader.i32()?);
    reader.end()?;
    if !(0..=DAY_MICROSECONDS).contains(&time) {
        return Err(Error::Malformed(format!("a time of {time} microseconds")));
    }
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    Ok(builder.push_written(TIMETZ_BYTES_MAX, |out| {
        // Writing to a vector never fails, here and below.
        let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if fraction > 0 {
            let digits = format!("{fraction:06}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        // A zone counts seconds to the west of UTC.
        let (sign, zone) = (if zone <= 0 { '+' } else { '-' }, zone.unsigned_abs());
        let _ = write!(out, "{sign}{:02}", zone / 3600);
        if zone % 3600 > 0 {
            let _ = write!(out, ":{:02}", zone / 60 % 60);
        }
        if zone % 60 > 0 {
            let _ = write!(out, ":{:02}", zone % 60);
        }
    })?)
}

fn push_interval(builder: &mut ColumnBuilder, value: &[u8], null: bool) -> Result<()> {
    let mut reader = Reader(value);
    let (microseconds, days, months) = (reader.i64()?, reader.i32()?, reader.i32()?);
    reader.end()?;
    match (microseconds, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => {
            return push_unrepresentable(builder, "infinite interval", null);
        }
        (i64::MIN, i32::MIN, i32::MIN) => {
            return push_unrepresentable(builder, "infinite interval", null);
        }
        _ => {}
    }
    let Some(nanoseconds) = microseconds.checked_mul(1000) else {
        return push_unrepresentable(builder, "interval of more than 292 years of hours", null);
    };
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&months.to_le_bytes());
    bytes[4..8].copy_from_slice(&days.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    Ok(builder.push_fixed(bytes)?)
}

fn push_bits(builder: &mut ColumnBuilder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    let bits = usize::try_from(reader.i32()?).map_err(|_| wrong_length())?;
    let bytes = reader.0;
    if bytes.len() != bits.div_ceil(8) {
        return Err(wrong_length());
    }
    let digits = (0..bits).map(|i| b'0' + (bytes[i / 8] >> (7 - i % 8) & 1));
    Ok(builder.push_written(bits, |out| out.extend(digits))?)
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn digits_are_an_integer_or_nothing() {
        for value in [0, 7, -1, 42_000, i64::MAX, i64::MIN] {
            assert_eq!(integer(value.to_string().as_bytes()), Some(value));
        }
        for text in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
