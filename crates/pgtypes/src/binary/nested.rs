//! Values that consist of others: hstore, arrays, composites, ranges and multiranges.

use dray_format::ColumnBuilder;

use super::reader::{Reader, wrong_length};
use super::{Decode, check_interrupts, push};
use crate::array_text::more_dimensions;
use crate::error::{Error, Result};

pub(super) fn push_hstore(builder: &mut ColumnBuilder, value: &[u8]) -> Result<()> {
    let mut reader = Reader(value);
    for part in 0..reader.i32()? {
        check_interrupts(builder, part as usize)?;
        let (key, value) = (reader.value()?.ok_or_else(wrong_length)?, reader.value()?);
        let entry = builder.item()?;
        let [keys, values] = entry.fields()? else { return Err(wrong_length()) };
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

pub(super) fn push_array(
    oid: u32,
    item: &Decode,
    builder: &mut ColumnBuilder,
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

pub(super) fn push_composite(
    attributes: &[(u32, Decode)],
    builder: &mut ColumnBuilder,
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
        let field = builder.fields()?.get_mut(i).ok_or_else(wrong_length)?;
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

pub(super) fn push_range(
    bound: &Decode,
    builder: &mut ColumnBuilder,
    value: &[u8],
    null: bool,
) -> Result<()> {
    let (flags, rest) = value.split_first().ok_or_else(wrong_length)?;
    let mut reader = Reader(rest);
    let mut bound_at = |infinite: u8| match flags & (EMPTY | infinite) {
        0 => reader.value()?.ok_or_else(wrong_length).map(Some),
        _ => Ok(None),
    };
    let bounds = [bound_at(LOWER_INFINITE)?, bound_at(UPPER_INFINITE)?];
    reader.end()?;
    let [lower, upper, lower_inclusive, upper_inclusive, empty] = builder.fields()? else {
        return Err(wrong_length());
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
    builder: &mut ColumnBuilder,
    value: Option<&[u8]>,
    null: bool,
) -> Result<()> {
    match value {
        Some(value) => push(decode, builder, value, null),
        None => Ok(builder.push_null()?),
    }
}

pub(super) fn push_multirange(
    bound: &Decode,
    builder: &mut ColumnBuilder,
    value: &[u8],
    null: bool,
) -> Result<()> {
    let mut reader = Reader(value);
    for part in 0..reader.i32()? {
        check_interrupts(builder, part as usize)?;
        let range = reader.value()?.ok_or_else(wrong_length)?;
        push_range(bound, builder.item()?, range, null)?;
    }
    reader.end()?;
    Ok(builder.close_list()?)
}
