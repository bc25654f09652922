//! Nested values as JSON.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::*;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::Reason;
use crate::number::ALL_DIGITS;
use crate::select::{is_json, is_uuid};
use crate::text::hex;
use crate::values::Values;

/// Lists, structs and maps as `json` or `jsonb`.
pub(crate) struct Json {
    pub(crate) array: ArrayRef,
    pub(crate) field: Field,
    pub(crate) oid: u32,
}

/// `jsonb`, whose text follows the version of its format.
pub(crate) const JSONB: u32 = 3802;

impl Values for Json {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        self.oid
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        if self.oid == JSONB {
            out.push(1);
        }
        write(&self.array, &self.field, row, out)
    }
}

/// Why data of this type has no JSON, if so.
pub fn no_json(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Struct(fields) => {
            let mut names = HashSet::new();
            match fields.iter().all(|field| names.insert(field.name())) {
                true => fields.iter().find_map(|field| no_json(field.data_type())),
                false => Some("rename the structs' fields: jsonb keeps one of a name"),
            }
        }
        DataType::Union(_, _) => Some("a union has no JSON: cast it first"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::RunEndEncoded(_, item)
        | DataType::Map(item, _) => no_json(item.data_type()),
        DataType::Dictionary(_, values) => no_json(values),
        _ => None,
    }
}

/// Why a map can't be written.
pub(crate) const REPEATED_KEY: Reason = "it has a key twice";
const UNPRINTABLE: Reason = "a date or time in it is out of range";

/// Appends a value as JSON: decimals are numbers, dates and times strings, bytes strings like
/// `"\\x00ff"`.
///
/// # Errors
/// Why it has no JSON: NaN, an infinity, a key of a map that comes twice.
pub fn write(
    array: &dyn Array,
    field: &Field,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), Reason> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let formatted = || {
        let options = FormatOptions::new().with_display_error(false);
        let formatter = ArrayFormatter::try_new(array, &options).map_err(|_| UNPRINTABLE)?;
        formatter.value(row).try_to_string().map_err(|_| UNPRINTABLE)
    };
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            out.push(b'{');
            for (i, (field, column)) in fields.iter().zip(columns).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                string(field.name(), out);
                out.push(b':');
                write(column, field, row, out)?;
            }
            out.push(b'}');
        }
        DataType::List(item) => items(&array.as_list::<i32>().value(row), item, out)?,
        DataType::LargeList(item) => items(&array.as_list::<i64>().value(row), item, out)?,
        DataType::ListView(item) => items(&array.as_list_view::<i32>().value(row), item, out)?,
        DataType::LargeListView(item) => {
            items(&array.as_list_view::<i64>().value(row), item, out)?;
        }
        DataType::FixedSizeList(item, _) => {
            items(&array.as_fixed_size_list().value(row), item, out)?;
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let fields = entries.fields();
            let mut keys = HashSet::new();
            out.push(b'{');
            for entry in 0..entries.len() {
                if entry > 0 {
                    out.push(b',');
                }
                let mut key = Vec::new();
                write(entries.column(0), &fields[0], entry, &mut key)?;
                match key.first() {
                    Some(b'"') => out.extend_from_slice(&key),
                    Some(b'{' | b'[') => return Err("a key of a map in it is nested"),
                    _ => string(&String::from_utf8_lossy(&key), out),
                }
                if !keys.insert(key) {
                    return Err(REPEATED_KEY);
                }
                out.push(b':');
                write(entries.column(1), &fields[1], entry, out)?;
            }
            out.push(b'}');
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            write(dictionary.values(), field, key(dictionary.keys(), row), out)?;
        }
        DataType::RunEndEncoded(ends, item) => {
            macro_rules! run {
                ($type:ty) => {{
                    let runs = array.as_run::<$type>();
                    (runs.values(), runs.get_physical_index(row))
                }};
            }
            let (values, row) = match ends.data_type() {
                DataType::Int16 => run!(Int16Type),
                DataType::Int32 => run!(Int32Type),
                _ => run!(Int64Type),
            };
            write(values, item, row, out)?;
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let text = formatted()?;
            if text.contains(['N', 'n', 'I', 'i']) {
                return Err("JSON has neither NaN nor infinity");
            }
            out.extend_from_slice(text.as_bytes());
        }
        DataType::Decimal32(_, scale) => decimal::<Decimal32Type>(array, *scale, row, out),
        DataType::Decimal64(_, scale) => decimal::<Decimal64Type>(array, *scale, row, out),
        DataType::Decimal128(_, scale) => decimal::<Decimal128Type>(array, *scale, row, out),
        DataType::Decimal256(_, scale) => decimal::<Decimal256Type>(array, *scale, row, out),
        data_type if data_type.is_numeric() || data_type == &DataType::Boolean => {
            out.extend_from_slice(formatted()?.as_bytes());
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_json(field) => {
            out.extend_from_slice(formatted()?.as_bytes());
        }
        DataType::FixedSizeBinary(16) if is_uuid(field) => {
            let mut text = vec![b'"'];
            hex(array.as_fixed_size_binary().value(row), &mut text);
            for hyphen in [9, 14, 19, 24] {
                text.insert(hyphen, b'-');
            }
            text.push(b'"');
            out.extend_from_slice(&text);
        }
        data_type if data_type.is_binary() || matches!(data_type, DataType::FixedSizeBinary(_)) => {
            string(&format!("\\x{}", formatted()?), out);
        }
        _ => string(&formatted()?, out),
    }
    Ok(())
}

/// The index that a dictionary's key is, which is not NULL.
fn key(keys: &dyn Array, row: usize) -> usize {
    macro_rules! key {
        ($($variant:ident: $type:ty),*) => {
            match keys.data_type() {
                $(DataType::$variant => keys.as_primitive::<$type>().value(row).as_usize(),)*
                other => unreachable!("Arrow has no dictionary keys of {other}"),
            }
        };
    }
    key!(
        Int8: Int8Type, Int16: Int16Type, Int32: Int32Type, Int64: Int64Type,
        UInt8: UInt8Type, UInt16: UInt16Type, UInt32: UInt32Type, UInt64: UInt64Type
    )
}

fn decimal<T: DecimalType>(array: &dyn Array, scale: i8, row: usize, out: &mut Vec<u8>) {
    let text = T::format_decimal(array.as_primitive::<T>().value(row), ALL_DIGITS, scale);
    // With a scale below 0, zero would be several digits, which JSON does not take.
    let is_zero = text.bytes().all(|digit| digit == b'0');
    out.extend_from_slice(if is_zero { b"0" } else { text.as_bytes() });
}

fn items(items: &dyn Array, field: &Field, out: &mut Vec<u8>) -> Result<(), Reason> {
    out.push(b'[');
    for item in 0..items.len() {
        if item > 0 {
            out.push(b',');
        }
        write(items, field, item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            ..0x20 => {
                out.extend_from_slice(b"\\u00");
                hex(&[byte], out);
            }
            plain => out.push(plain),
        }
    }
    out.push(b'"');
}
