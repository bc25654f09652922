//! Writes columns into the places of their objects, one loop per column, and the items of each list
//! in the same way.
//!
//! The batch was checked and its extents were measured. Memory is zero until it is written.

use std::ops::Range;

use dray_format::{Batch, Column, Values, copy_short};

use super::Rows;
use super::check::index;
use super::measure;
use crate::layout::{ALIGNMENT, INLINE_BYTES_MAX, Items, Kind, Place, Record, STRING_BYTES};
use crate::word::{load, u32_at};

/// Masks of the bytes of a short string, by its length.
const WITHIN: [u128; INLINE_BYTES_MAX + 1] = {
    let mut masks = [0; INLINE_BYTES_MAX + 1];
    let mut length = 1;
    while length <= INLINE_BYTES_MAX {
        masks[length] = u128::MAX >> (128 - 8 * length);
        length += 1;
    }
    masks
};

/// Writes rows as objects that begin at `starts`.
pub(super) fn objects(
    record: &Record,
    batch: &Batch,
    rows: Range<usize>,
    page: &mut [u8],
    starts: &[usize],
) {
    let mut cursors = vec![record.end; starts.len()];
    for start in starts {
        page[start + record.bits_at..][..record.present.len()].copy_from_slice(&record.present);
    }
    let mut scatter = Scatter { record, page, starts, in_object: false, cursors: &mut cursors };
    for (place, column) in record.fields.iter().zip(&batch.columns) {
        scatter.column(place, column, Rows::All { from: rows.start, count: rows.len() });
    }
    for (start, cursor) in starts.iter().zip(&cursors) {
        // Below 2^31.
        page[*start..][..4]
            .copy_from_slice(&(cursor.next_multiple_of(ALIGNMENT) as u32).to_le_bytes());
    }
}

struct Scatter<'a> {
    record: &'a Record,
    page: &'a mut [u8],
    /// Where each record begins in the page.
    starts: &'a [usize],
    /// Where the next tail of each record begins in its object.
    cursors: &'a mut [usize],
    /// Whether the records are items of a list. `page` is then their object.
    in_object: bool,
}

impl Scatter<'_> {
    fn column(&mut self, place: &Place, column: &Column, rows: Rows<'_>) {
        match (&place.kind, &column.values) {
            (Kind::Boolean, Values::Boolean(bits)) => {
                rows.each(|object, row| {
                    self.page[self.starts[object] + place.at] = u8::from(bits.bit(row))
                });
                self.clear_missing::<1>(place, column, rows);
            }
            (Kind::Fixed(1), Values::Fixed { bytes, .. }) => {
                self.fixed::<1>(place, column, bytes, rows)
            }
            (Kind::Fixed(2), Values::Fixed { bytes, .. }) => {
                self.fixed::<2>(place, column, bytes, rows)
            }
            (Kind::Fixed(4), Values::Fixed { bytes, .. }) => {
                self.fixed::<4>(place, column, bytes, rows)
            }
            (Kind::Fixed(8), Values::Fixed { bytes, .. }) => {
                self.fixed::<8>(place, column, bytes, rows)
            }
            (Kind::Fixed(16), Values::Fixed { bytes, .. }) => {
                self.fixed::<16>(place, column, bytes, rows)
            }
            (Kind::Fixed(32), Values::Fixed { bytes, .. }) => {
                self.fixed::<32>(place, column, bytes, rows)
            }
            (Kind::Bytes { .. }, Values::Bytes { offsets, data }) => {
                self.strings(place, column, offsets, data, rows)
            }
            (_, Values::Struct(_) | Values::Dictionary { .. }) => {
                let present;
                let rows = match &column.validity {
                    Some(bits) => {
                        let (bits_at, starts, page) =
                            (self.record.bits_at, self.starts, &mut *self.page);
                        let missing = |object: usize, _| {
                            clear_bits(page, starts[object] + bits_at, &place.bits)
                        };
                        present = rows.filter(|row| bits.bit(row), missing);
                        Rows::Picked(&present)
                    }
                    None => rows,
                };
                self.inside(place, column, rows);
            }
            _ => {
                let bits_at = self.record.bits_at;
                rows.each(|record, row| {
                    let (base, at) = self.place_of(record);
                    let mut writer =
                        Writer { extent: &mut self.page[base..], cursor: self.cursors[record] };
                    writer.value(place, column, row, at, bits_at);
                    self.cursors[record] = writer.cursor;
                });
            }
        }
    }

    /// Where a record's object begins in the page, and where the record begins in the object.
    #[inline(always)]
    fn place_of(&self, record: usize) -> (usize, usize) {
        let start = self.starts[record];
        if self.in_object { (0, start) } else { (start, 0) }
    }

    /// Writes the fields of present structs, or the entries of present indexes.
    fn inside(&mut self, place: &Place, column: &Column, rows: Rows<'_>) {
        match (&place.kind, &column.values) {
            (Kind::Struct(places), Values::Struct(children)) => {
                places
                    .iter()
                    .zip(children)
                    .for_each(|(place, child)| self.column(place, child, rows));
            }
            (_, Values::Dictionary { width, indexes, entries }) => {
                let mut used = Vec::new();
                rows.each(|object, row| {
                    used.push((object as u32, index(indexes, *width, row).unwrap_or(0) as u32))
                });
                self.column(place, entries, Rows::Picked(&used));
            }
            _ => {}
        }
    }

    /// Writes all values, missing ones too, and then zeros over these: two plain loops are faster
    /// than one with a branch.
    #[inline]
    fn fixed<const N: usize>(
        &mut self,
        place: &Place,
        column: &Column,
        bytes: &[u8],
        rows: Rows<'_>,
    ) {
        let values = bytes.as_chunks::<N>().0;
        match rows {
            Rows::All { from, .. } => {
                for (start, value) in self.starts.iter().zip(&values[from..]) {
                    self.page[start + place.at..][..N].copy_from_slice(value);
                }
            }
            rows => rows.each(|object, row| {
                self.page[self.starts[object] + place.at..][..N].copy_from_slice(&values[row]);
            }),
        }
        self.clear_missing::<N>(place, column, rows);
    }

    /// Clears the places and the validity bits of missing values.
    #[inline]
    fn clear_missing<const N: usize>(&mut self, place: &Place, column: &Column, rows: Rows<'_>) {
        let Some(bits) = &column.validity else { return };
        rows.each(|object, row| {
            if !bits.bit(row) {
                let start = self.starts[object];
                self.page[start + place.at..][..N].copy_from_slice(&[0; N]);
                clear_bits(self.page, start + self.record.bits_at, &place.bits);
            }
        });
    }

    fn strings(
        &mut self,
        place: &Place,
        column: &Column,
        offsets: &[u8],
        data: &[u8],
        rows: Rows<'_>,
    ) {
        let offsets = offsets.as_chunks::<4>().0;
        match (rows, &column.validity) {
            (Rows::All { from, .. }, None) => {
                let ends = &offsets[from + 1..];
                let records = self.starts.iter().zip(self.cursors.iter_mut());
                for ((start, cursor), (from, end)) in records.zip(offsets[from..].iter().zip(ends))
                {
                    let base = if self.in_object { 0 } else { *start };
                    string(
                        &mut self.page[base..],
                        start - base + place.at,
                        cursor,
                        data,
                        *from,
                        *end,
                    );
                }
            }
            (rows, validity) => rows.each(|record, row| {
                let (base, at) = self.place_of(record);
                let extent = &mut self.page[base..];
                if validity.as_ref().is_none_or(|bits| bits.bit(row)) {
                    string(
                        extent,
                        at + place.at,
                        &mut self.cursors[record],
                        data,
                        offsets[row],
                        offsets[row + 1],
                    );
                } else {
                    clear_bits(extent, at + self.record.bits_at, &place.bits);
                }
            }),
        }
    }
}

/// Writes the place and the tail of the string between two offsets.
#[inline(always)]
fn string(
    extent: &mut [u8],
    at: usize,
    cursor: &mut usize,
    data: &[u8],
    from: [u8; 4],
    end: [u8; 4],
) {
    let from = u32::from_le_bytes(from) as usize;
    let length = u32::from_le_bytes(end) as usize - from;
    extent[at..at + STRING_BYTES].copy_from_slice(&string_place(data, from, length, *cursor));
    if length > INLINE_BYTES_MAX {
        copy_short(&mut extent[*cursor..*cursor + length], &data[from..from + length]);
        *cursor += length;
    }
}

/// The place of a string (page.md section 4). Its tail, if it has one, is at `cursor`.
#[inline(always)]
fn string_place(data: &[u8], from: usize, length: usize, cursor: usize) -> [u8; STRING_BYTES] {
    // Strings and extents have fewer than 2^31 bytes.
    let place = if let Some(within) = WITHIN.get(length) {
        let raw = match data.get(from..).and_then(|rest| rest.first_chunk::<16>()) {
            Some(raw) => u128::from_le_bytes(*raw),
            None => {
                let mut raw = [0; 16];
                raw[..length].copy_from_slice(&data[from..from + length]);
                u128::from_le_bytes(raw)
            }
        };
        (raw & within) << 32 | length as u128
    } else {
        let prefix = u32_at(data, from);
        length as u128 | u128::from(prefix) << 32 | (cursor as u128) << 96
    };
    place.to_le_bytes()
}

fn clear_bits(bytes: &mut [u8], at: usize, bits: &Range<usize>) {
    bits.clone().for_each(|bit| bytes[at + bit / 8] &= !(1 << (bit % 8)));
}

/// Writes single values into one object. `extent` may be longer than the object.
struct Writer<'a> {
    extent: &'a mut [u8],
    cursor: usize,
}

impl Writer<'_> {
    /// Writes the value of a row into the record at `at`.
    fn value(&mut self, place: &Place, column: &Column, row: usize, at: usize, bits_at: usize) {
        if !column.is_valid(row) {
            clear_bits(self.extent, at + bits_at, &place.bits);
            return;
        }
        let place_at = at + place.at;
        match (&place.kind, &column.values) {
            (Kind::Boolean, Values::Boolean(bits)) => {
                self.extent[place_at] = u8::from(bits.bit(row))
            }
            (Kind::Fixed(width), Values::Fixed { bytes, .. }) => {
                self.extent[place_at..place_at + width]
                    .copy_from_slice(&bytes[row * width..(row + 1) * width]);
            }
            (Kind::Fixed(16), Values::Narrow { width, bytes }) => {
                let wide = match width {
                    4 => i128::from(i32::from_le_bytes(load(bytes, row * 4))),
                    _ => i128::from(i64::from_le_bytes(load(bytes, row * 8))),
                };
                self.extent[place_at..place_at + 16].copy_from_slice(&wide.to_le_bytes());
            }
            (Kind::Bytes { .. }, Values::Bytes { offsets, data }) => {
                let (from, end) = (load(offsets, row * 4), load(offsets, row * 4 + 4));
                string(self.extent, place_at, &mut self.cursor, data, from, end);
            }
            (Kind::List(items), Values::List { offsets, child }) => {
                let from = u32_at(offsets, row * 4) as usize;
                self.items(items, child, from..u32_at(offsets, row * 4 + 4) as usize, place_at);
            }
            (Kind::FixedList { items, .. }, Values::FixedList { size, child }) => {
                self.items(items, child, row * size..(row + 1) * size, place_at);
            }
            (Kind::Struct(places), Values::Struct(children)) => {
                for (place, child) in places.iter().zip(children) {
                    self.value(place, child, row, at, bits_at);
                }
            }
            (_, Values::Dictionary { width, indexes, entries }) => {
                self.value(place, entries, index(indexes, *width, row).unwrap_or(0), at, bits_at);
            }
            // The batch was checked against the schema.
            _ => {}
        }
    }

    /// Writes the items of the list whose place is at `place_at`.
    fn items(&mut self, items: &Items, child: &Column, rows: Range<usize>, place_at: usize) {
        let (record, count) = (&items.record, rows.len());
        let Some(place) = record.fields.first().filter(|_| count > 0) else { return };
        let bitmap_at = self.cursor.next_multiple_of(ALIGNMENT);
        let records_at = bitmap_at + items.bitmap_bytes(count);
        self.cursor = records_at + count * record.stride;
        // Below 2^31.
        self.extent[place_at..][..4].copy_from_slice(&(bitmap_at as u32).to_le_bytes());
        self.extent[place_at + 4..][..4].copy_from_slice(&(count as u32).to_le_bytes());
        if record.is_weightless() && !items.nullable {
            return;
        }
        if let (Kind::Fixed(width), Values::Fixed { bytes, .. }, None) =
            (&place.kind, &child.values, &child.validity)
        {
            if items.nullable {
                self.extent[bitmap_at..][..count / 8].fill(0xFF);
                if !count.is_multiple_of(8) {
                    self.extent[bitmap_at + count / 8] = (1 << (count % 8)) - 1;
                }
            }
            // The record of such an item is its value, and the stride its width.
            self.extent[records_at..self.cursor]
                .copy_from_slice(&bytes[rows.start * width..rows.end * width]);
            return;
        }
        let all = Rows::All { from: rows.start, count };
        let present = all.filter(|row| is_present(child, row), |_, _| {});
        let starts: Vec<usize> = (0..count).map(|i| records_at + i * record.stride).collect();
        for (item, _) in &present {
            let item = *item as usize;
            if items.nullable {
                self.extent[bitmap_at + item / 8] |= 1 << (item % 8);
            }
            self.extent[starts[item]..][..record.present.len()].copy_from_slice(&record.present);
        }
        let rows = if present.len() == count { all } else { Rows::Picked(&present) };
        let (mut cursors, end) = measure::cursors(items, child, rows, count, self.cursor);
        self.cursor = end;
        // Items without tails have no cursors, but the slice must have the same length.
        cursors.resize(count, end);
        let (page, starts, cursors) = (&mut *self.extent, &starts[..], &mut cursors[..]);
        Scatter { record, page, starts, in_object: true, cursors }.column(place, child, rows);
    }
}

/// Whether a value is present; for a dictionary, whether its entry is.
fn is_present(column: &Column, row: usize) -> bool {
    column.is_valid(row)
        && match &column.values {
            Values::Dictionary { width, indexes, entries } => {
                index(indexes, *width, row).is_some_and(|entry| is_present(entries, entry))
            }
            Values::Null => false,
            _ => true,
        }
}
