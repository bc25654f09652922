//! Values as PostgreSQL holds them in memory: datums, and what they point to.
//!
//! What is read here is the ordinary value of a common type. For everything else the server is asked ([`Read::Sent`]), and
//! dray-pgtypes decides: that is what keeps this path and that of stock servers the same.

use dray_format::{Builder, Result, Type};
use dray_pgtypes::numeric::Numeric;
use dray_pgtypes::{Kind, PgType};

/// PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * DAY_MICROSECONDS;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// `NAMEDATALEN`, which packagers leave as it is; the string ends before.
const NAME_BYTES_MAX: usize = 64;

/// How the datums of a column are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Boolean,
    Fixed2,
    Fixed4,
    Fixed8,
    Date,
    Timestamp,
    Time,
    Money,
    Uuid,
    Varlena,
    Name,
    Decimal128 { precision: u8, scale: i8 },
    Decimal256 { precision: u8, scale: i8 },
    NumericText,
    NumericFloat,
    /// Not here: as the type's send or output function makes them.
    Sent,
}

/// What became of a datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was appended; so many bytes are beyond the column's fixed part.
    Pushed(usize),
    /// It is compressed or stored elsewhere: PostgreSQL must make it plain first.
    Plain,
    /// It must come through the type's send or output function.
    Sent,
}

/// How to read values of a type whose column has become one of `data_type`, where the database's strings are UTF-8 or not.
pub(crate) fn read_of(pg_type: &PgType, data_type: &Type, is_utf8: bool) -> Read {
    match (&pg_type.kind, pg_type.extension.as_str()) {
        (Kind::Domain(base), _) => return read_of(base, data_type, is_utf8),
        (Kind::Base, "citext") if is_utf8 => return Read::Varlena,
        (Kind::Base, "") => {}
        _ => return Read::Sent,
    }
    match (pg_type.oid, data_type) {
        (16, Type::Boolean) => Read::Boolean,
        (21, Type::Int16) => Read::Fixed2,
        (23, Type::Int32) | (26 | 28 | 29, Type::UInt32) | (700, Type::Float32) => Read::Fixed4,
        (20, Type::Int64) | (701, Type::Float64) => Read::Fixed8,
        (17, Type::Binary) => Read::Varlena,
        (25 | 114 | 1042 | 1043, Type::Utf8) if is_utf8 => Read::Varlena,
        (19, Type::Utf8) if is_utf8 => Read::Name,
        (790, Type::Decimal128 { .. }) => Read::Money,
        (1082, Type::Date32) => Read::Date,
        (1083, Type::Time64(_)) => Read::Time,
        (1114 | 1184, Type::Timestamp { .. }) => Read::Timestamp,
        (1700, Type::Decimal128 { precision, scale }) => Read::Decimal128 { precision: *precision, scale: *scale },
        (1700, Type::Decimal256 { precision, scale }) => Read::Decimal256 { precision: *precision, scale: *scale },
        (1700, Type::Float64) => Read::NumericFloat,
        (1700, Type::Utf8) if pg_type.typmod < 0 => Read::NumericText,
        (2950, Type::FixedBinary(16)) => Read::Uuid,
        _ => Read::Sent,
    }
}

/// Appends a datum, if it is an ordinary one.
///
/// # Safety
/// `datum` is a value of the type that `read` is for, not NULL, and what it points to is there.
#[inline]
pub(crate) unsafe fn push(read: Read, builder: &mut Builder, datum: usize) -> Result<Outcome> {
    // Values shorter than a datum are in its low bytes.
    let low4 = datum as u32;
    let low8 = datum as u64;
    match read {
        Read::Fixed4 => builder.push_fixed(low4.to_le_bytes())?,
        Read::Decimal128 { precision, scale } => {
            // SAFETY: the caller's promise; a numeric is a varlena.
            let Some(bytes) = (unsafe { varlena(datum) }) else { return Ok(Outcome::Plain) };
            match Numeric::from_stored(bytes).and_then(|numeric| numeric.to_i128(precision, scale)) {
                Some(scaled) => builder.push_fixed(scaled.to_le_bytes())?,
                None => return Ok(Outcome::Sent),
            }
        }
        Read::Varlena => {
            // SAFETY: the caller's promise.
            let Some(bytes) = (unsafe { varlena(datum) }) else { return Ok(Outcome::Plain) };
            builder.push_bytes(bytes)?;
            return Ok(Outcome::Pushed(bytes.len()));
        }
        Read::Date => match low4.cast_signed() {
            i32::MIN | i32::MAX => return Ok(Outcome::Sent),
            days => match days.checked_add(EPOCH_DAYS) {
                Some(days) => builder.push_fixed(days.to_le_bytes())?,
                None => return Ok(Outcome::Sent),
            },
        },
        Read::Fixed8 => builder.push_fixed(low8.to_le_bytes())?,
        Read::Timestamp => match low8.cast_signed() {
            i64::MIN | i64::MAX => return Ok(Outcome::Sent),
            microseconds => match microseconds.checked_add(EPOCH_MICROSECONDS) {
                Some(microseconds) => builder.push_fixed(microseconds.to_le_bytes())?,
                None => return Ok(Outcome::Sent),
            },
        },
        Read::Boolean => builder.push_boolean(datum & 0xFF != 0)?,
        Read::Fixed2 => builder.push_fixed((datum as u16).to_le_bytes())?,
        Read::Time => match low8.cast_signed() {
            time @ 0..DAY_MICROSECONDS => builder.push_fixed(time.to_le_bytes())?,
            _ => return Ok(Outcome::Sent),
        },
        Read::Money => builder.push_fixed(i128::from(low8.cast_signed()).to_le_bytes())?,
        // SAFETY: the caller's promise: it points to `UUID_LEN` bytes.
        Read::Uuid => builder.push_fixed(unsafe { *(datum as *const [u8; 16]) })?,
        Read::Name => {
            // SAFETY: the caller's promise: a name has so many bytes.
            let name = unsafe { *(datum as *const [u8; NAME_BYTES_MAX]) };
            let bytes = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES_MAX);
            builder.push_bytes(&name[..bytes])?;
            return Ok(Outcome::Pushed(bytes));
        }
        Read::Decimal256 { .. } | Read::NumericText | Read::NumericFloat => {
            // SAFETY: the caller's promise.
            return unsafe { push_numeric(read, builder, datum) };
        }
        Read::Sent => return Ok(Outcome::Sent),
    }
    Ok(Outcome::Pushed(0))
}

/// # Safety
/// As [`push`].
unsafe fn push_numeric(read: Read, builder: &mut Builder, datum: usize) -> Result<Outcome> {
    // SAFETY: the caller's promise; a numeric is a varlena.
    let Some(bytes) = (unsafe { varlena(datum) }) else { return Ok(Outcome::Plain) };
    let Some(numeric) = Numeric::from_stored(bytes) else { return Ok(Outcome::Sent) };
    match read {
        Read::Decimal256 { precision, scale } => match numeric.to_i256(precision, scale) {
            Some(scaled) => builder.push_fixed(scaled)?,
            None => return Ok(Outcome::Sent),
        },
        Read::NumericFloat => builder.push_fixed(numeric.to_f64().to_le_bytes())?,
        _ => {
            let before = builder.bytes();
            builder.push_written(|out| {
                numeric.write_text(out);
                Ok(())
            })?;
            return Ok(Outcome::Pushed(builder.bytes() - before));
        }
    }
    Ok(Outcome::Pushed(0))
}

/// The bytes of a varlena (`varatt.h`), or none if it is compressed or stored elsewhere.
///
/// # Safety
/// The datum points to a varlena that outlives the bytes.
#[inline]
unsafe fn varlena<'a>(datum: usize) -> Option<&'a [u8]> {
    let pointer = datum as *const u8;
    // SAFETY: the caller's promise: a varlena has a first byte, which tells how many more there are.
    unsafe {
        let first = *pointer;
        if first & 1 == 1 {
            // One byte of header; a length of 0 marks what is stored elsewhere.
            let bytes = usize::from(first >> 1);
            return (bytes > 0).then(|| std::slice::from_raw_parts(pointer.add(1), bytes - 1));
        }
        if first & 2 != 0 {
            return None;
        }
        let bytes = u32::from_ne_bytes(*(pointer as *const [u8; 4])) >> 2;
        Some(std::slice::from_raw_parts(pointer.add(4), (bytes as usize).saturating_sub(4)))
    }
}

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("datums are read as little-endian machines of 64 bits hold them");
