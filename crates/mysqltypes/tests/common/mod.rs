//! Packets as a server makes them, and columns as text, for comparison.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::panic, reason = "tests")]

use dray_format::{
    BatchBuilder, BuiltBatch, Column as Values, Schema, Type, Unit, Values as Slots, calendar,
};
use dray_mysqltypes::{
    Column, ColumnDefinition, Options, Result, ZeroDates, push_binary_row, push_text_row,
};

/// Which protocol a row is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Text,
    Binary,
}

/// A column `c` of this type.
pub fn definition(type_code: u8) -> ColumnDefinition {
    ColumnDefinition {
        name: "c".to_owned(),
        type_code,
        character_set: 63,
        decimals: 0,
        length: 20,
        ..ColumnDefinition::default()
    }
}

pub fn options(zero_dates: ZeroDates) -> Options {
    Options { zero_dates }
}

/// The bytes after their length-encoded length.
pub fn lenenc(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u64;
    let mut out = match bytes.len() {
        0..0xFB => vec![length as u8],
        0xFB..0x1_0000 => [&[0xFC][..], &length.to_le_bytes()[..2]].concat(),
        0x1_0000..0x100_0000 => [&[0xFD][..], &length.to_le_bytes()[..3]].concat(),
        _ => [&[0xFE][..], &length.to_le_bytes()].concat(),
    };
    out.extend_from_slice(bytes);
    out
}

/// A row of the text protocol.
pub fn text_row(values: &[Option<&[u8]>]) -> Vec<u8> {
    values.iter().flat_map(|value| value.map_or(vec![0xFB], lenenc)).collect()
}

/// A row of the binary protocol; the values are encoded already.
pub fn binary_row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut row = vec![0; 1 + (values.len() + 2).div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        match value {
            Some(value) => row.extend_from_slice(value),
            None => row[1 + (i + 2) / 8] |= 1 << ((i + 2) % 8),
        }
    }
    row
}

/// The columns of these definitions.
pub fn columns(definitions: &[ColumnDefinition], options: &Options) -> Vec<Column> {
    definitions.iter().map(|definition| Column::new(definition, options).unwrap()).collect()
}

/// The batch of these rows.
pub fn built(columns: &[Column], protocol: Protocol, rows: &[Vec<u8>]) -> Result<BuiltBatch> {
    let fields = columns.iter().map(|column| column.field().clone()).collect();
    let mut builder = BatchBuilder::new(Schema { fields })?;
    for row in rows {
        match protocol {
            Protocol::Text => push_text_row(columns, &mut builder, row)?,
            Protocol::Binary => push_binary_row(columns, &mut builder, row)?,
        }
    }
    let built = builder.finish()?;
    built.batch().check_strings(built.schema())?;
    Ok(built)
}

/// One value of one column, or the error's text.
pub fn value(
    definition: &ColumnDefinition,
    zero_dates: ZeroDates,
    protocol: Protocol,
    value: &[u8],
) -> Result<String, String> {
    let columns = columns(std::slice::from_ref(definition), &options(zero_dates));
    let row = match protocol {
        Protocol::Text => text_row(&[Some(value)]),
        Protocol::Binary => binary_row(&[Some(value)]),
    };
    built(&columns, protocol, &[row])
        .map(|built| shown(&built).remove(0).remove(0))
        .map_err(|error| error.to_string())
}

/// Checks that both protocols give this value.
pub fn same(definition: &ColumnDefinition, text: &[u8], binary: &[u8], expected: &str) {
    for (protocol, bytes) in [(Protocol::Text, text), (Protocol::Binary, binary)] {
        let found = value(definition, ZeroDates::Error, protocol, bytes);
        assert_eq!(found.as_deref(), Ok(expected), "{definition:?} {protocol:?}");
    }
}

/// The parts of a date or datetime, after their length.
pub fn parts(year: u16, rest: &[u8]) -> Vec<u8> {
    lenenc(&[&year.to_le_bytes(), rest].concat())
}

/// The rows of a batch as text.
pub fn shown(built: &BuiltBatch) -> Vec<Vec<String>> {
    let (schema, batch) = (built.schema(), built.batch());
    let columns = || schema.fields.iter().zip(&batch.columns);
    let row = |i| columns().map(|(field, column)| cell(&field.data_type, column, i)).collect();
    (0..batch.rows).map(row).collect()
}

fn cell(data_type: &Type, column: &Values, i: usize) -> String {
    if column.validity.as_ref().is_some_and(|validity| !validity.bit(i)) {
        return "NULL".to_owned();
    }
    let offset = |offsets: &[u8], i: usize| {
        u32::from_le_bytes(offsets[i * 4..i * 4 + 4].try_into().unwrap()) as usize
    };
    match &column.values {
        Slots::Null => "NULL".to_owned(),
        Slots::Fixed { width, bytes } => fixed(data_type, &bytes[i * width..(i + 1) * width]),
        Slots::Bytes { offsets, data } => {
            let value = &data[offset(offsets, i)..offset(offsets, i + 1)];
            match data_type {
                Type::Utf8 => String::from_utf8(value.to_vec()).unwrap(),
                _ => hex(value),
            }
        }
        Slots::List { offsets, child } => {
            let Type::List(item) = data_type else { panic!("{data_type:?}") };
            let items = offset(offsets, i)..offset(offsets, i + 1);
            let items: Vec<_> = items.map(|i| cell(&item.data_type, child, i)).collect();
            format!("[{}]", items.join(" "))
        }
        Slots::Dictionary { width: 4, indexes, entries } => {
            let Type::Dictionary { value, .. } = data_type else { panic!("{data_type:?}") };
            cell(value, entries, offset(indexes, i))
        }
        other => panic!("{other:?}"),
    }
}

fn fixed(data_type: &Type, bytes: &[u8]) -> String {
    let word = |signed: bool| {
        let fill = if signed && bytes[bytes.len() - 1] >= 0x80 { 0xFF } else { 0 };
        let mut wide = [fill; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(wide)
    };
    match data_type {
        Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => word(false).to_string(),
        Type::Float32 => format!("{:?}", f32::from_le_bytes(bytes.try_into().unwrap())),
        Type::Float64 => format!("{:?}", f64::from_le_bytes(bytes.try_into().unwrap())),
        Type::Decimal128 { scale, .. } | Type::Decimal256 { scale, .. } => {
            decimal(bytes, *scale as usize)
        }
        Type::Date32 => date(word(true) as i64),
        Type::Timestamp { unit: Unit::Microsecond, zone } => {
            let (days, time) =
                (word(true).div_euclid(86_400_000_000), word(true).rem_euclid(86_400_000_000));
            let zone = zone.as_deref().unwrap_or("");
            format!("{} {}{zone}", date(days as i64), clock(time as i64))
        }
        Type::Duration(Unit::Microsecond) => {
            let sign = if word(true) < 0 { "-" } else { "" };
            format!("{sign}{}", clock(word(true).abs() as i64))
        }
        Type::FixedBinary(_) => hex(bytes),
        _ => word(true).to_string(),
    }
}

fn date(days: i64) -> String {
    let (year, month, day) = calendar::date(days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(time: i64) -> String {
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

/// A decimal from its bytes, by long division.
fn decimal(bytes: &[u8], scale: usize) -> String {
    let is_negative = bytes[bytes.len() - 1] >= 0x80;
    let mut magnitude = bytes.to_vec();
    if is_negative {
        let mut carry = 1;
        for byte in &mut magnitude {
            let sum = u16::from(!*byte) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
    }
    let mut digits = Vec::new();
    while digits.len() <= scale || magnitude.iter().any(|byte| *byte > 0) {
        let mut rest = 0u16;
        for byte in magnitude.iter_mut().rev() {
            let sum = rest << 8 | u16::from(*byte);
            (*byte, rest) = ((sum / 10) as u8, sum % 10);
        }
        digits.push(char::from(b'0' + rest as u8));
    }
    if scale > 0 {
        digits.insert(scale, '.');
    }
    digits.extend(is_negative.then_some('-'));
    digits.iter().rev().collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
