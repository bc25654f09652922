//! Checks a batch against a schema, so that writing its objects can't fail.

use bytes::Bytes;
use dray_format::{Batch, Bitmap, Column, Field, Schema, Type, Values};

use super::Rows;
use crate::error::{Result, refuse};
use crate::word::{is_ascii, load, u32_at};

pub(super) fn batch(schema: &Schema, batch: &Batch) -> Result<()> {
    if batch.columns.len() != schema.fields.len() {
        refuse!(
            Unsupported,
            "a batch of {} columns, expected {}",
            batch.columns.len(),
            schema.fields.len()
        );
    }
    for (field, column) in schema.fields.iter().zip(&batch.columns) {
        if column.rows != batch.rows {
            refuse!(
                Unsupported,
                "column {:?} has {} rows, the batch {}",
                field.name,
                column.rows,
                batch.rows
            );
        }
        let rows = Rows::All { from: 0, count: batch.rows };
        column_of(&field.data_type, field.nullable, column, rows)
            .map_err(|error| error.in_column(&field.name))?;
    }
    Ok(())
}

/// Checks the column of a field. Only the values of `rows` must be valid.
fn column_of(data_type: &Type, nullable: bool, column: &Column, rows: Rows<'_>) -> Result<()> {
    if *data_type == Type::Null {
        return match column.values {
            Values::Null => Ok(()),
            _ => refuse!(Unsupported, "values that are not of type null"),
        };
    }
    let Some(bits) = &column.validity else { return values(data_type, nullable, column, rows) };
    check_bits(bits, column.rows)?;
    let missing = match rows {
        Rows::All { from, count } => count - bits.slice(from, count).ones(),
        rows => rows.filter(|row| !bits.bit(row), |_, _| {}).len(),
    };
    if missing == 0 || is_flat(data_type) && nullable {
        return values(data_type, nullable, column, rows);
    }
    if !nullable {
        refuse!(Missing, "{missing} values are missing, and it is not nullable");
    }
    let present = rows.filter(|row| bits.bit(row), |_, _| {});
    values(data_type, nullable, column, Rows::Picked(&present))
}

/// Whether a column of this type needs no filter for missing values: its check covers them too, or
/// looks at the validity itself.
fn is_flat(data_type: &Type) -> bool {
    data_type.width().is_some() || matches!(data_type, Type::Boolean | Type::Utf8 | Type::Binary)
}

fn values(data_type: &Type, nullable: bool, column: &Column, rows: Rows<'_>) -> Result<()> {
    match (data_type, &column.values) {
        (Type::Boolean, Values::Boolean(bits)) => check_bits(bits, column.rows),
        (Type::Utf8 | Type::Binary, Values::Bytes { offsets, data }) => {
            check_offsets(offsets, column.rows, rows, data.len())?;
            if *data_type == Type::Utf8 { check_utf8(offsets, data, column, rows) } else { Ok(()) }
        }
        (Type::List(item), Values::List { offsets, child }) => {
            check_offsets(offsets, column.rows, rows, child.rows)?;
            let range =
                |row| (u32_at(offsets, row * 4) as usize, u32_at(offsets, row * 4 + 4) as usize);
            items(&item.data_type, item.nullable, child, rows, range)
        }
        (Type::Map { key, value, .. }, Values::List { offsets, child }) => {
            check_offsets(offsets, column.rows, rows, child.rows)?;
            let range =
                |row| (u32_at(offsets, row * 4) as usize, u32_at(offsets, row * 4 + 4) as usize);
            let pair = Type::Struct(vec![(**key).clone(), (**value).clone()]);
            items(&pair, false, child, rows, range)
        }
        (Type::FixedList { size, item }, Values::FixedList { size: found, child }) => {
            let size = *size as usize;
            if size != *found
                || size.checked_mul(column.rows).is_none_or(|items| items > child.rows)
            {
                refuse!(
                    Unsupported,
                    "lists of {found} items, {} in all, expected {size}",
                    child.rows
                );
            }
            items(&item.data_type, item.nullable, child, rows, |row| (row * size, (row + 1) * size))
        }
        (Type::Struct(fields), Values::Struct(children)) => {
            structs(fields, children, column.rows, rows)
        }
        (Type::Dictionary { value, .. }, Values::Dictionary { width, indexes, entries }) => {
            if !matches!(width, 1 | 2 | 4 | 8) || indexes.len() / width < column.rows {
                refuse!(
                    Unsupported,
                    "{} bytes of indexes of {width} for {} rows",
                    indexes.len(),
                    column.rows
                );
            }
            let mut beyond = None;
            let out_of_range = |_, row| beyond = Some(row);
            let entry = |row| index(indexes, *width, row).is_some_and(|index| index < entries.rows);
            let rows = rows.filter(entry, out_of_range);
            if let Some(row) = beyond {
                refuse!(
                    Unsupported,
                    "the index of row {row} is beyond the {} entries",
                    entries.rows
                );
            }
            let entry = |(object, row): &(u32, u32)| {
                (*object, index(indexes, *width, *row as usize).unwrap_or(0) as u32)
            };
            let mut entries_used: Vec<_> = rows.iter().map(entry).collect();
            entries_used.sort_unstable_by_key(|(_, entry)| *entry);
            entries_used.dedup_by_key(|(_, entry)| *entry);
            column_of(value, nullable, entries, Rows::Picked(&entries_used))
        }
        (Type::Decimal128 { .. }, Values::Narrow { width: width @ (4 | 8), bytes }) => {
            check_width(bytes, *width, column.rows)
        }
        (fixed, Values::Fixed { width, bytes }) if fixed.width() == Some(*width) => {
            check_width(bytes, *width, column.rows)
        }
        (expected, _) => refuse!(Unsupported, "values that are not of type {expected:?}"),
    }
}

/// Checks the items of the lists of `rows`.
fn items(
    data_type: &Type,
    nullable: bool,
    child: &Column,
    rows: Rows<'_>,
    range: impl Fn(usize) -> (usize, usize),
) -> Result<()> {
    match rows {
        Rows::All { count: 0, .. } => {
            column_of(data_type, nullable, child, Rows::All { from: 0, count: 0 })
        }
        Rows::All { from, count } => {
            let (first, end) = (range(from).0, range(from + count - 1).1);
            column_of(data_type, nullable, child, Rows::All { from: first, count: end - first })
        }
        // Some lists are missing: check runs of adjacent ones that are present.
        Rows::Picked(pairs) => {
            let mut at = 0;
            column_of(data_type, nullable, child, Rows::All { from: 0, count: 0 })?;
            while let Some((_, row)) = pairs.get(at) {
                let (first, mut end) = range(*row as usize);
                at += 1;
                while let Some((next, next_end)) =
                    pairs.get(at).map(|(_, row)| range(*row as usize))
                    && next == end
                {
                    end = next_end;
                    at += 1;
                }
                column_of(
                    data_type,
                    nullable,
                    child,
                    Rows::All { from: first, count: end - first },
                )?;
            }
            Ok(())
        }
    }
}

fn structs(
    fields: &[Field],
    children: &[Column],
    struct_rows: usize,
    rows: Rows<'_>,
) -> Result<()> {
    if fields.len() != children.len() || children.iter().any(|child| child.rows < struct_rows) {
        refuse!(
            Unsupported,
            "a struct of {} fields, expected {}, or of too few rows",
            children.len(),
            fields.len()
        );
    }
    for (field, child) in fields.iter().zip(children) {
        column_of(&field.data_type, field.nullable, child, rows)
            .map_err(|error| error.in_column(&field.name))?;
    }
    Ok(())
}

fn check_bits(bits: &Bitmap, rows: usize) -> Result<()> {
    if bits.len < rows || bits.bytes.len() * 8 < bits.offset + bits.len {
        refuse!(Unsupported, "{} bits in {} bytes for {rows} rows", bits.len, bits.bytes.len());
    }
    Ok(())
}

fn check_width(bytes: &Bytes, width: usize, rows: usize) -> Result<()> {
    if bytes.len() / width < rows {
        refuse!(Unsupported, "{} bytes for {rows} values of {width}", bytes.len());
    }
    Ok(())
}

/// Checks that the offsets of `rows` never fall, and end within `end`. The column has `all_rows`.
fn check_offsets(offsets: &Bytes, all_rows: usize, rows: Rows<'_>, end: usize) -> Result<()> {
    let (all, _) = offsets.as_chunks::<4>();
    if all.len() <= all_rows {
        refuse!(Unsupported, "{} offsets for {all_rows} values", all.len());
    }
    let rise = |from: usize, count: usize| {
        let some = all.get(from..=from + count).unwrap_or_default();
        let next = some.get(1..).unwrap_or_default();
        let falls = some
            .iter()
            .zip(next)
            .fold(false, |any, (a, b)| any | (u32::from_le_bytes(*b) < u32::from_le_bytes(*a)));
        let is_within = |last: &[u8; 4]| u32::from_le_bytes(*last) as usize <= end;
        count == 0 || !falls && some.last().is_some_and(is_within)
    };
    let fit = match rows {
        Rows::All { from, count } => rise(from, count),
        Rows::Picked(pairs) => pairs.iter().all(|(_, row)| rise(*row as usize, 1)),
    };
    if !fit {
        refuse!(Unsupported, "offsets that fall, or end behind {end}");
    }
    Ok(())
}

fn check_utf8(offsets: &Bytes, data: &Bytes, column: &Column, rows: Rows<'_>) -> Result<()> {
    let string = |row: usize, end: usize| {
        data.get(u32_at(offsets, row * 4) as usize..u32_at(offsets, end * 4) as usize)
            .unwrap_or_default()
    };
    if let Rows::All { from, count } = rows
        && is_ascii(string(from, from + count))
    {
        return Ok(());
    }
    let mut wrong = None;
    rows.each(|_, row| {
        if column.is_valid(row) && str::from_utf8(string(row, row + 1)).is_err() {
            wrong = Some(row);
        }
    });
    match wrong {
        Some(row) => refuse!(Utf8, "the string of row {row} is not UTF-8"),
        None => Ok(()),
    }
}

/// The index of a row.
pub(super) fn index(indexes: &[u8], width: usize, row: usize) -> Option<usize> {
    let at = row * width;
    let index = match width {
        1 => u64::from(u8::from_le_bytes(load(indexes, at))),
        2 => u64::from(u16::from_le_bytes(load(indexes, at))),
        4 => u64::from(u32_at(indexes, at)),
        _ => u64::from_le_bytes(load(indexes, at)),
    };
    usize::try_from(index).ok()
}
