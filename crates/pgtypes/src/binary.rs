//! Values as PostgreSQL's send functions make them: big-endian, one function a type
//! (`src/backend/utils/adt` of its source). And those of the few types whose text the output
//! functions make sooner, or alone.

use std::io::Write;

use dray_format::Builder;

use crate::array_text::more_dimensions;
use crate::column::{Format, push_text_array};
use crate::error::{Error, Result};
use crate::numeric::Numeric;

/// PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * DAY_MICROSECONDS;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// `24:00:00.000000+15:59:59`, and what a zone beyond the server's own limits takes.
const TIMETZ_BYTES_MAX: usize = 32;
/// What to do about values that a column's type does not have.
const WAY_OUT: &str = "choose nonfinite=null or nonfinite=text";

/// How a value is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decode {
    Boolean,
    /// As many bytes as it says, in the other order.
    Fixed2,
    Fixed4,
    Fixed8,
    /// Sixteen bytes in the same order.
    Fixed16,
    /// An integer of so many bytes, as text.
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
    /// The same; the send function names the encoding where the output function does not.
    Xml,
    /// The value's own bytes, after a version.
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
    /// Whatever the type's output function writes.
    TextOutput,
    /// As it writes an array.
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

    /// Whether the column's type and name say all about it.
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

/// The integer that some digits are, as `int4out` and its like write them.
fn integer(text: &[u8]) -> Option<i64> {
    /// The most digits of 64 bits; ten to that power are less than 2^64.
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

fn push_digits(builder: &mut Builder, text: &[u8], bytes: usize) -> Result<()> {
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
    Error::Unrepresentable(format!("{what}; {WAY_OUT}"))
}

/// Appends a value.
#[inline]
pub(crate) fn push(
    decode: &Decode,
    builder: &mut Builder,
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
            i32::MAX => missing(builder, "infinity", null_nonfinite),
            i32::MIN => missing(builder, "-infinity", null_nonfinite),
            days => match days.checked_add(EPOCH_DAYS) {
                Some(days) => Ok(builder.push_fixed(days.to_le_bytes())?),
                None => missing(builder, "a date beyond Arrow's", null_nonfinite),
            },
        },
        Decode::Fixed2 => Ok(builder.push_fixed(reversed::<2>(value)?)?),
        Decode::Boolean => match fixed(value)? {
            [0] => Ok(builder.push_boolean(false)?),
            [1] => Ok(builder.push_boolean(true)?),
            [other] => Err(Error::Malformed(format!("{other} for a boolean"))),
        },
        Decode::Timestamp => match i64::from_be_bytes(fixed(value)?) {
            i64::MAX => missing(builder, "infinity", null_nonfinite),
            i64::MIN => missing(builder, "-infinity", null_nonfinite),
            microseconds => match microseconds.checked_add(EPOCH_MICROSECONDS) {
                Some(microseconds) => Ok(builder.push_fixed(microseconds.to_le_bytes())?),
                None => missing(builder, "a timestamp beyond the year 294246", null_nonfinite),
            },
        },
        _ => push_rare(decode, builder, value, null_nonfinite),
    }
}

fn push_rare(
    decode: &Decode,
    builder: &mut Builder,
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
            // As `charout` writes it.
            [byte] => Ok(builder.push_bytes(format!("\\{byte:03o}").as_bytes())?),
        },
        Decode::Time => match i64::from_be_bytes(fixed(value)?) {
            DAY_MICROSECONDS => missing(builder, "24:00:00", null_nonfinite),
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
        Decode::Multirange(bound) => {
            let mut reader = Reader(value);
            for part in 0..reader.i32()? {
                check_interrupts(builder, part as usize)?;
                let range = reader.value()?.ok_or_else(cut)?;
                push_range(bound, builder.item()?, range, null_nonfinite)?;
            }
            reader.end()?;
            Ok(builder.close_list()?)
        }
        Decode::TextArray { delimiter } => push_text_array(builder, value, *delimiter),
        _ => Err(Error::Malformed("a value of another type".to_owned())),
    }
}

#[inline]
fn numeric(value: &[u8]) -> Result<Numeric<'_>> {
    Numeric::from_sent(value)
        .ok_or_else(|| Error::Malformed("a numeric that can't be read".to_owned()))
}

/// A value for a message, which all digits of a long one would only swell.
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
    builder: &mut Builder,
    numeric: &Numeric<'_>,
    precision: u8,
    scale: i8,
    null: bool,
) -> Result<()> {
    let text = shown(numeric);
    match numeric.is_finite() {
        true => Err(Error::Unrepresentable(format!(
            "{text} is no decimal({precision},{scale}); choose another precision and scale, \
                 or numeric=text"
        ))),
        false => missing(builder, &text, null),
    }
}

/// A value that the column's type does not have.
#[cold]
fn missing(builder: &mut Builder, what: &str, null: bool) -> Result<()> {
    if null {
        Ok(builder.push_null()?)
    } else {
        Err(unrepresentable(&format!("Arrow has no {what}")))
    }
}

/// Between the parts of a value that may have very many.
#[inline]
pub(crate) fn check_interrupts(builder: &Builder, part: usize) -> Result<()> {
    const PARTS: usize = 64;
    if part % PARTS == PARTS - 1 { Ok(builder.check_interrupts()?) } else { Ok(()) }
}

/// `04:05:06.789-08`, as `timetz_out` writes it.
fn push_timetz(builder: &mut Builder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    let (time, zone) = (reader.i64()?, reader.i32()?);
    reader.end()?;
    if !(0..=DAY_MICROSECONDS).contains(&time) {
        return Err(Error::Malformed(format!("a time of {time} microseconds")));
    }
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    Ok(builder.push_written(TIMETZ_BYTES_MAX, |out| {
        // A vector takes what is written to it, here and below.
        let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if fraction > 0 {
            let digits = format!("{fraction:06}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        // Zones count westwards.
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

fn push_interval(builder: &mut Builder, value: &[u8], null: bool) -> Result<()> {
    let mut reader = Reader(value);
    let (microseconds, days, months) = (reader.i64()?, reader.i32()?, reader.i32()?);
    reader.end()?;
    match (microseconds, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => return missing(builder, "infinite interval", null),
        (i64::MIN, i32::MIN, i32::MIN) => return missing(builder, "infinite interval", null),
        _ => {}
    }
    let Some(nanoseconds) = microseconds.checked_mul(1000) else {
        return missing(builder, "interval of more than 292 years of hours", null);
    };
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&months.to_le_bytes());
    bytes[4..8].copy_from_slice(&days.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    Ok(builder.push_fixed(bytes)?)
}

fn push_bits(builder: &mut Builder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    let bits = usize::try_from(reader.i32()?).map_err(|_| cut())?;
    let bytes = reader.0;
    if bytes.len() != bits.div_ceil(8) {
        return Err(cut());
    }
    let digits = (0..bits).map(|i| b'0' + (bytes[i / 8] >> (7 - i % 8) & 1));
    Ok(builder.push_written(bits, |out| out.extend(digits))?)
}

fn push_hstore(builder: &mut Builder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    for part in 0..reader.i32()? {
        check_interrupts(builder, part as usize)?;
        let (key, value) = (reader.value()?.ok_or_else(cut)?, reader.value()?);
        let entry = builder.item()?;
        let [keys, values] = entry.fields()? else { return Err(cut()) };
        keys.push_bytes(key)?;
        match value {
            Some(value) => values.push_bytes(value)?,
            None => values.push_null()?,
        }
        entry.close_struct()?;
    }
    reader.end()?;
    Ok(builder.close_list()?)
}

fn push_array(
    oid: u32,
    item: &Decode,
    builder: &mut Builder,
    value: &[u8],
    null: bool,
) -> Result<()> {
    let mut reader = Reader(value);
    let (dimensions, _has_nulls, found) =
        (reader.i32()?, reader.i32()?, reader.i32()?.cast_unsigned());
    if found != oid {
        return Err(Error::Malformed(format!(
            "an array of type {found}, expected {oid}: the type has changed"
        )));
    }
    let items = match dimensions {
        0 => 0,
        1 => {
            let items = reader.i32()?;
            let _lower_bound = reader.i32()?;
            items
        }
        _ => return Err(more_dimensions()),
    };
    for part in 0..items {
        check_interrupts(builder, part as usize)?;
        push_nested(item, builder.item()?, reader.value()?, null)?;
    }
    reader.end()?;
    Ok(builder.close_list()?)
}

fn push_composite(
    attributes: &[(u32, Decode)],
    builder: &mut Builder,
    value: &[u8],
    null: bool,
) -> Result<()> {
    let mut reader = Reader(value);
    let count = reader.i32()?;
    if usize::try_from(count) != Ok(attributes.len()) {
        let what = format!(
            "a composite of {count} attributes, expected {}: the type has changed",
            attributes.len()
        );
        return Err(Error::Malformed(what));
    }
    for (i, (oid, decode)) in attributes.iter().enumerate() {
        let found = reader.i32()?.cast_unsigned();
        if found != *oid {
            return Err(Error::Malformed(format!(
                "an attribute of type {found}, expected {oid}: the type has changed"
            )));
        }
        let field = builder.fields()?.get_mut(i).ok_or_else(cut)?;
        push_nested(decode, field, reader.value()?, null)?;
    }
    reader.end()?;
    Ok(builder.close_struct()?)
}

/// Flags of `range_send`.
const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

fn push_range(bound: &Decode, builder: &mut Builder, value: &[u8], null: bool) -> Result<()> {
    let (flags, rest) = value.split_first().ok_or_else(cut)?;
    let mut reader = Reader(rest);
    let mut bound_at = |infinite: u8| match flags & (EMPTY | infinite) {
        0 => reader.value()?.ok_or_else(cut).map(Some),
        _ => Ok(None),
    };
    let bounds = [bound_at(LOWER_INFINITE)?, bound_at(UPPER_INFINITE)?];
    reader.end()?;
    let [lower, upper, lower_inclusive, upper_inclusive, empty] = builder.fields()? else {
        return Err(cut());
    };
    for (field, value) in [lower, upper].into_iter().zip(bounds) {
        push_nested(bound, field, value, null)?;
    }
    lower_inclusive.push_boolean(flags & LOWER_INCLUSIVE != 0)?;
    upper_inclusive.push_boolean(flags & UPPER_INCLUSIVE != 0)?;
    empty.push_boolean(flags & EMPTY != 0)?;
    Ok(builder.close_struct()?)
}

fn push_nested(
    decode: &Decode,
    builder: &mut Builder,
    value: Option<&[u8]>,
    null: bool,
) -> Result<()> {
    match value {
        Some(value) => push(decode, builder, value, null),
        None => Ok(builder.push_null()?),
    }
}

#[cold]
fn cut() -> Error {
    Error::Malformed("a value that ends too soon or too late".to_owned())
}

/// What is left of a value.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(fixed(self.take(4)?)?))
    }

    fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(fixed(self.take(8)?)?))
    }

    /// A value with its length before it, which is -1 for a NULL.
    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            bytes => self.take(usize::try_from(bytes).map_err(|_| cut())?).map(Some),
        }
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(cut()) }
    }
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
