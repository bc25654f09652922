//! Measures the objects of a batch: where the cursor of their tails ends (`spec/page.md` section
//! 6).

use dray_format::{Batch, Column, Values};

use super::Rows;
use super::check::index;
use crate::layout::{ALIGNMENT, INLINE_BYTES_MAX, Items, Kind, Place, Record};
use crate::word::u32_at;

/// Rows that are measured at a time, so that their cursors stay in the cache.
const BLOCK_ROWS: usize = 1024;

/// The sizes of the extents of a batch's rows, saturating.
pub(super) fn sizes(record: &Record, batch: &Batch) -> Vec<u32> {
    let shortest = record.end.next_multiple_of(ALIGNMENT);
    if !record.has_tails() {
        // A record has fewer than 2^31 bytes.
        return vec![shortest as u32; batch.rows];
    }
    let mut sizes = Vec::with_capacity(batch.rows);
    let mut cursors = Vec::with_capacity(BLOCK_ROWS);
    for from in (0..batch.rows).step_by(BLOCK_ROWS) {
        let count = BLOCK_ROWS.min(batch.rows - from);
        cursors.clear();
        cursors.resize(count, record.end);
        for (place, column) in record.fields.iter().zip(&batch.columns) {
            column_of(place, column, Rows::All { from, count }, &mut cursors);
        }
        sizes
            .extend(cursors.iter().map(|cursor| u32::try_from(align(*cursor)).unwrap_or(u32::MAX)));
    }
    sizes
}

fn align(cursor: usize) -> usize {
    cursor.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}

/// Advances each object's cursor by the tails of its value in a column.
fn column_of(place: &Place, column: &Column, rows: Rows<'_>, cursors: &mut [usize]) {
    if !place.has_tails {
        return;
    }
    match (&place.kind, &column.values) {
        (Kind::Bytes { .. }, Values::Bytes { offsets, .. }) => match (rows, &column.validity) {
            (Rows::All { from, count }, None) => {
                strings(&offsets[from * 4..(from + count + 1) * 4], cursors)
            }
            (rows, validity) => rows.each(|object, row| {
                let there = validity.as_ref().is_none_or(|bits| bits.bit(row));
                let tail = if there { tail_bytes(string_bytes(offsets, row)) } else { 0 };
                cursors[object] = cursors[object].saturating_add(tail);
            }),
        },
        (_, Values::Struct(_) | Values::Dictionary { .. }) => {
            let present;
            let rows = match &column.validity {
                Some(bits) => {
                    present = rows.filter(|row| bits.bit(row), |_, _| {});
                    Rows::Picked(&present)
                }
                None => rows,
            };
            inside(place, column, rows, cursors);
        }
        _ => rows.each(|object, row| cursors[object] = value(place, column, row, cursors[object])),
    }
}

/// Advances the cursors by the fields of present structs, or by the entries of present indexes.
fn inside(place: &Place, column: &Column, rows: Rows<'_>, cursors: &mut [usize]) {
    match (&place.kind, &column.values) {
        (Kind::Struct(places), Values::Struct(children)) => {
            places
                .iter()
                .zip(children)
                .for_each(|(place, child)| column_of(place, child, rows, cursors));
        }
        (_, Values::Dictionary { width, indexes, entries }) => {
            let mut used = Vec::new();
            rows.each(|object, row| {
                used.push((object as u32, index(indexes, *width, row).unwrap_or(0) as u32))
            });
            column_of(place, entries, Rows::Picked(&used), cursors);
        }
        _ => {}
    }
}

/// Advances the cursors by strings, one per object. There is one more offset than objects.
fn strings(offsets: &[u8], cursors: &mut [usize]) {
    let offsets = offsets.as_chunks::<4>().0;
    for ((from, end), cursor) in offsets.iter().zip(&offsets[1..]).zip(cursors) {
        let length = u32::from_le_bytes(*end) - u32::from_le_bytes(*from);
        *cursor = cursor.saturating_add(tail_bytes(length as usize));
    }
}

/// The bytes of a string in a tail.
#[inline(always)]
fn tail_bytes(length: usize) -> usize {
    if length > INLINE_BYTES_MAX { length } else { 0 }
}

fn string_bytes(offsets: &[u8], row: usize) -> usize {
    (u32_at(offsets, row * 4 + 4) - u32_at(offsets, row * 4)) as usize
}

/// The cursor after the tails of one value.
fn value(place: &Place, column: &Column, row: usize, cursor: usize) -> usize {
    if !place.has_tails || !column.is_valid(row) {
        return cursor;
    }
    match (&place.kind, &column.values) {
        (Kind::Bytes { .. }, Values::Bytes { offsets, .. }) => {
            cursor.saturating_add(tail_bytes(string_bytes(offsets, row)))
        }
        (Kind::List(list), Values::List { offsets, child }) => {
            let from = u32_at(offsets, row * 4) as usize;
            items(list, child, from, u32_at(offsets, row * 4 + 4) as usize - from, cursor)
        }
        (Kind::FixedList { items: list, .. }, Values::FixedList { size, child }) => {
            items(list, child, row * size, *size, cursor)
        }
        (Kind::Struct(places), Values::Struct(children)) => places
            .iter()
            .zip(children)
            .fold(cursor, |cursor, (place, child)| value(place, child, row, cursor)),
        (_, Values::Dictionary { width, indexes, entries }) => {
            value(place, entries, index(indexes, *width, row).unwrap_or(0), cursor)
        }
        _ => cursor,
    }
}

fn items(items: &Items, child: &Column, from: usize, count: usize, cursor: usize) -> usize {
    if count == 0 {
        return cursor;
    }
    let records = count.saturating_mul(items.record.stride);
    let end = align(cursor).saturating_add(items.bitmap_bytes(count)).saturating_add(records);
    cursors(items, child, Rows::All { from, count }, count, end).1
}

/// Where the tails of each of `count` items begin, and where the last ones end. `rows` are the
/// present items.
pub(super) fn cursors(
    items: &Items,
    child: &Column,
    rows: Rows<'_>,
    count: usize,
    mut cursor: usize,
) -> (Vec<usize>, usize) {
    let record = &items.record;
    let Some(place) = record.fields.first().filter(|place| place.has_tails) else {
        return (Vec::new(), cursor);
    };
    let mut cursors = vec![0; count];
    if record.has_lists() {
        // The alignment of nested items depends on what is before them.
        rows.each(|item, row| {
            cursors[item] = cursor;
            cursor = value(place, child, row, cursor);
        });
    } else {
        column_of(place, child, rows, &mut cursors);
        for tails in &mut cursors {
            let bytes = std::mem::replace(tails, cursor);
            cursor = cursor.saturating_add(bytes);
        }
    }
    (cursors, cursor)
}
