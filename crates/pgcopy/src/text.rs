//! Values as text that PostgreSQL's input functions read, from their binary form.

use std::io::Write;

use dray_pgtypes::numeric::Numeric;
use dray_pgtypes::times;

use crate::error::Reason;
use crate::temporal::{EPOCH_DAYS, EPOCH_MICROSECONDS};

const SECOND: i64 = 1_000_000;

/// Appends the text of a value of the type with this oid. Types that are not named here are their
/// own text.
///
/// # Errors
/// Why there is no such text.
pub(crate) fn append(oid: u32, sent: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    match oid {
        16 => out.push(if sent == [1] { b't' } else { b'f' }),
        17 => {
            out.extend_from_slice(b"\\x");
            hex(sent, out);
        }
        18 => match sent {
            [0] => {}
            // A server before version 16 would take the backslash of `\200` for the value.
            [byte] if *byte >= 0x80 => {
                return Err("such a byte can't be written beside a type that has only text");
            }
            plain => out.extend_from_slice(plain),
        },
        20 => print(out, format_args!("{}", i64::from_be_bytes(fixed(sent)?))),
        21 => print(out, format_args!("{}", i16::from_be_bytes(fixed(sent)?))),
        23 => print(out, format_args!("{}", i32::from_be_bytes(fixed(sent)?))),
        26 | 28 | 29 => print(out, format_args!("{}", u32::from_be_bytes(fixed(sent)?))),
        5069 => print(out, format_args!("{}", u64::from_be_bytes(fixed(sent)?))),
        700 => float(f32::from_be_bytes(fixed(sent)?), out),
        701 => float(f64::from_be_bytes(fixed(sent)?), out),
        790 => return Err("money can't be written beside a type that has only text"),
        1082 => {
            let days = i64::from(i32::from_be_bytes(fixed(sent)?)) + EPOCH_DAYS;
            out.extend_from_slice(times::date(days).as_bytes());
        }
        1083 => time(i64::from_be_bytes(fixed(sent)?), out),
        1114 | 1184 => {
            let value = i64::from_be_bytes(fixed(sent)?).checked_add(EPOCH_MICROSECONDS);
            let (seconds, rest) = match value {
                Some(value) => (value.div_euclid(SECOND), value.rem_euclid(SECOND)),
                None => return Err("it is out of range"),
            };
            let zone = if oid == 1184 { "+00" } else { "" };
            out.extend_from_slice(times::timestamp(seconds, rest, zone).as_bytes());
        }
        1186 => {
            let (time_of, rest) = sent.split_at_checked(8).ok_or(MALFORMED)?;
            let (days, months) = rest.split_at_checked(4).ok_or(MALFORMED)?;
            let (days, months) =
                (i32::from_be_bytes(fixed(days)?), i32::from_be_bytes(fixed(months)?));
            let value = i64::from_be_bytes(fixed(time_of)?);
            // Without signs, the IntervalStyle sql_standard takes that of the first field for all.
            let sign = if value < 0 { '-' } else { '+' };
            print(out, format_args!("{months:+} mons {days:+} days {sign}"));
            let value = value.unsigned_abs();
            let (seconds, fraction) = (value / 1_000_000, value % 1_000_000);
            let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
            print(out, format_args!("{hours:02}:{minutes:02}:{:02}.{fraction:06}", seconds % 60));
        }
        1266 => {
            let (time_of, west) = sent.split_at_checked(8).ok_or(MALFORMED)?;
            time(i64::from_be_bytes(fixed(time_of)?), out);
            let west = i32::from_be_bytes(fixed(west)?);
            let (sign, zone) = (if west > 0 { '-' } else { '+' }, west.unsigned_abs());
            let (hours, minutes) = (zone / 3_600, zone / 60 % 60);
            print(out, format_args!("{sign}{hours:02}:{minutes:02}:{:02}", zone % 60));
        }
        1560 | 1562 => {
            let (count, bytes) = sent.split_first_chunk::<4>().ok_or(MALFORMED)?;
            let count = u32::from_be_bytes(*count) as usize;
            let digits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
            out.extend(digits.take(count).map(|bit| b'0' + bit));
        }
        1700 => Numeric::from_sent(sent).ok_or(MALFORMED)?.write_text(out),
        2950 => {
            let mut digits = Vec::with_capacity(32);
            hex(sent, &mut digits);
            out.extend_from_slice(&digits);
        }
        3802 | 4072 => out.extend_from_slice(sent.get(1..).unwrap_or_default()),
        _ => out.extend_from_slice(sent),
    }
    Ok(())
}

/// Appends a field of a COPY in text: `\` precedes what would end the field or the row.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            plain => out.push(*plain),
        }
    }
}

const MALFORMED: Reason = "its binary form has another length";

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Reason> {
    bytes.try_into().map_err(|_| MALFORMED)
}

fn print(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    // Writing to a vector never fails.
    let _ = out.write_fmt(arguments);
}

pub(crate) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(
        bytes
            .iter()
            .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
}

fn float<T: std::fmt::LowerExp + Into<f64> + Copy>(value: T, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    match wide {
        _ if wide.is_nan() => out.extend_from_slice(b"NaN"),
        f64::INFINITY => out.extend_from_slice(b"Infinity"),
        f64::NEG_INFINITY => out.extend_from_slice(b"-Infinity"),
        // The fewest digits that give the same value back.
        _ => print(out, format_args!("{value:e}")),
    }
}

fn time(microseconds: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (microseconds / SECOND, microseconds % SECOND);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    print(out, format_args!("{hours:02}:{minutes:02}:{:02}.{fraction:06}", seconds % 60));
}
