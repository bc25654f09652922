//! BSON as text: MongoDB's Extended JSON, version 2.
//!
//! Written from raw BSON, because a tree of JSON values would have to keep the order of fields, and
//! names that occur twice.

use std::fmt::Write;

use dray_format::calendar;
use mongodb::bson::raw::{CStr, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::error::Malformed;

/// The deepest nesting that is written. MongoDB's own limit is 100 levels for documents that are
/// stored, and 200 for all others.
pub(crate) const NESTING_MAX: usize = 200;
const MILLISECONDS_PER_DAY: i64 = 86_400_000;
/// The first millisecond of the year 10000.
const YEAR_10000: i64 = 253_402_300_800_000;

/// How much of a value's type is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each value with its type: `{"$numberInt":"1"}`.
    Canonical,
    /// Numbers as numbers, and dates as text: `1`.
    Relaxed,
}

/// Appends a value.
///
/// # Errors
/// If it is malformed, or nested too deeply.
pub(crate) fn write(value: RawBsonRef<'_>, form: Form, out: &mut String) -> Result<(), Malformed> {
    write_nested(value, form, out, 0)
}

/// Appends a field of an object, with what comes before it: `{` or a comma.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_field(
    name: &CStr,
    value: RawBsonRef<'_>,
    form: Form,
    out: &mut String,
) -> Result<(), Malformed> {
    out.push(if out.is_empty() { '{' } else { ',' });
    write_string(name.as_str(), out);
    out.push(':');
    write_nested(value, form, out, 1)
}

fn write_nested(
    value: RawBsonRef<'_>,
    form: Form,
    out: &mut String,
    depth: usize,
) -> Result<(), Malformed> {
    let is_relaxed = form == Form::Relaxed;
    match value {
        RawBsonRef::Double(value) => write_double(value, is_relaxed, out),
        RawBsonRef::Int32(value) if is_relaxed => put(out, format_args!("{value}")),
        RawBsonRef::Int64(value) if is_relaxed => put(out, format_args!("{value}")),
        RawBsonRef::Int32(value) => put(out, format_args!(r#"{{"$numberInt":"{value}"}}"#)),
        RawBsonRef::Int64(value) => put(out, format_args!(r#"{{"$numberLong":"{value}"}}"#)),
        RawBsonRef::Decimal128(value) => {
            put(out, format_args!(r#"{{"$numberDecimal":"{value}"}}"#));
        }
        RawBsonRef::String(value) => write_string(value, out),
        RawBsonRef::Boolean(value) => put(out, format_args!("{value}")),
        RawBsonRef::Null => out.push_str("null"),
        RawBsonRef::Undefined => out.push_str(r#"{"$undefined":true}"#),
        RawBsonRef::MinKey => out.push_str(r#"{"$minKey":1}"#),
        RawBsonRef::MaxKey => out.push_str(r#"{"$maxKey":1}"#),
        RawBsonRef::ObjectId(id) => put(out, format_args!(r#"{{"$oid":"{id}"}}"#)),
        RawBsonRef::DateTime(date) => write_date(date.timestamp_millis(), is_relaxed, out),
        RawBsonRef::Timestamp(stamp) => {
            let (t, i) = (stamp.time, stamp.increment);
            put(out, format_args!(r#"{{"$timestamp":{{"t":{t},"i":{i}}}}}"#));
        }
        RawBsonRef::Binary(binary) => {
            out.push_str(r#"{"$binary":{"base64":""#);
            write_base64(binary.bytes, out);
            let subtype = u8::from(binary.subtype);
            put(out, format_args!(r#"","subType":"{subtype:02x}"}}}}"#));
        }
        RawBsonRef::RegularExpression(regex) => {
            out.push_str(r#"{"$regularExpression":{"pattern":"#);
            write_string(regex.pattern.as_str(), out);
            out.push_str(r#","options":"#);
            write_string(regex.options.as_str(), out);
            out.push_str("}}");
        }
        RawBsonRef::JavaScriptCode(code) => wrap(r#"{"$code":"#, code, out),
        RawBsonRef::Symbol(symbol) => wrap(r#"{"$symbol":"#, symbol, out),
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            out.push_str(r#"{"$code":"#);
            write_string(code.code, out);
            out.push_str(r#","$scope":"#);
            write_document(code.scope, form, out, depth)?;
            out.push('}');
        }
        RawBsonRef::DbPointer(_) => {
            let (namespace, id) = db_pointer(value)?;
            out.push_str(r#"{"$dbPointer":{"$ref":"#);
            write_string(&namespace, out);
            put(out, format_args!(r#","$id":{{"$oid":"{id}"}}}}}}"#));
        }
        RawBsonRef::Document(document) => write_document(document, form, out, depth)?,
        RawBsonRef::Array(array) => {
            check_depth(depth)?;
            out.push('[');
            for (i, item) in array.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_nested(item?, form, out, depth + 1)?;
            }
            out.push(']');
        }
    }
    Ok(())
}

fn write_document(
    document: &RawDocument,
    form: Form,
    out: &mut String,
    depth: usize,
) -> Result<(), Malformed> {
    check_depth(depth)?;
    out.push('{');
    for (i, element) in document.iter().enumerate() {
        let (name, value) = element?;
        if i > 0 {
            out.push(',');
        }
        write_string(name.as_str(), out);
        out.push(':');
        write_nested(value, form, out, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

fn check_depth(depth: usize) -> Result<(), Malformed> {
    match depth < NESTING_MAX {
        true => Ok(()),
        false => Err(Malformed(format!("it is nested deeper than {NESTING_MAX} levels"))),
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes whatever is written.
    let _ = out.write_fmt(text);
}

fn wrap(start: &str, text: &str, out: &mut String) {
    out.push_str(start);
    write_string(text, out);
    out.push('}');
}

/// Appends a double with the fewest digits that are read as the same double.
fn write_double(value: f64, is_relaxed: bool, out: &mut String) {
    let name = match value {
        _ if value.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ if is_relaxed => return put(out, format_args!("{value:?}")),
        _ => return put(out, format_args!(r#"{{"$numberDouble":"{value:?}"}}"#)),
    };
    put(out, format_args!(r#"{{"$numberDouble":"{name}"}}"#));
}

/// Appends a date: as text where it is of the years 1970 to 9999 and the form is relaxed.
fn write_date(milliseconds: i64, is_relaxed: bool, out: &mut String) {
    if !is_relaxed || !(0..YEAR_10000).contains(&milliseconds) {
        return put(out, format_args!(r#"{{"$date":{{"$numberLong":"{milliseconds}"}}}}"#));
    }
    let (year, month, day) = calendar::date(milliseconds / MILLISECONDS_PER_DAY);
    let second = milliseconds % MILLISECONDS_PER_DAY / 1000;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    put(out, format_args!(r#"{{"$date":"{year:04}-{month:02}-{day:02}T"#));
    put(out, format_args!("{hour:02}:{minute:02}:{second:02}"));
    let fraction = milliseconds % 1000;
    if fraction > 0 {
        put(out, format_args!(".{fraction:03}"));
    }
    out.push_str(r#"Z"}"#);
}

/// Appends a string with its quotes.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut written = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[written..i]);
        match escaped {
            "" => put(out, format_args!("\\u{byte:04x}")),
            escaped => out.push_str(escaped),
        }
        written = i + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

fn write_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
}

/// The collection and the object id of a pointer. BSON's crate does not give them, so they are read
/// from the bytes of a document with the pointer:
///
/// ```text
///   i32 length, u8 type, "" (u8 0), i32 bytes, collection, u8 0, 12 bytes of the id, u8 0
/// ```
fn db_pointer(value: RawBsonRef<'_>) -> Result<(String, String), Malformed> {
    const NAME_AT: usize = 4 + 1 + 1 + 4;
    let mut document = RawDocumentBuf::new();
    document.append(mongodb::bson::cstr!(""), value);
    let end = document.as_bytes().len().checked_sub(1 + 12);
    let parts = end.and_then(|end| {
        let name = document.as_bytes().get(NAME_AT..end)?.strip_suffix(&[0])?;
        Some((name, document.as_bytes().get(end..end + 12)?))
    });
    let (name, id) = parts.ok_or_else(|| Malformed("a DBPointer is too short".to_owned()))?;
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((name, id.iter().map(|byte| format!("{byte:02x}")).collect()))
}

#[cfg(test)]
mod tests;
