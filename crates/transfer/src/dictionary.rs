//! Columns whose type is a dictionary.
//!
//! Every chunk carries the entries that its rows use. A batch whose entries are too large for a
//! chunk is split into batches that use fewer.

use std::collections::VecDeque;

use bytes::Bytes;
use dray_format::{Batch, Bitmap, Column, Values};

/// Appends a batch to `out`. If its dictionaries take more than `bytes_max`, unused entries are
/// dropped and, if that is not enough, the batch is halved until they fit or a single row is left.
pub(crate) fn push_pruned(batch: Batch, bytes_max: u64, out: &mut VecDeque<Batch>) {
    if entries_bytes(&batch.columns) <= bytes_max {
        return out.push_back(batch);
    }
    let columns = batch
        .columns
        .iter()
        .map(|column| pruned(column).unwrap_or_else(|| column.clone()))
        .collect();
    let batch = Batch { rows: batch.rows, columns };
    if entries_bytes(&batch.columns) <= bytes_max || batch.rows < 2 {
        return out.push_back(batch);
    }
    let half = batch.rows / 2;
    push_pruned(batch.slice(0, half), bytes_max, out);
    push_pruned(batch.slice(half, batch.rows - half), bytes_max, out);
}

/// The plain bytes of the entries of all dictionaries.
fn entries_bytes(columns: &[Column]) -> u64 {
    let column_bytes = |column: &Column| match &column.values {
        Values::Dictionary { entries, .. } => entries.plain_bytes(0, entries.rows),
        Values::List { child, .. } | Values::FixedList { child, .. } => {
            entries_bytes(std::slice::from_ref(child))
        }
        Values::Struct(children) => entries_bytes(children),
        _ => 0,
    };
    columns.iter().map(column_bytes).sum()
}

/// The dictionaries of one chunk: the entries of its batches, one after another.
#[derive(Default)]
pub(crate) struct JoinedDictionaries {
    /// For each dictionary column with a narrow index: the entries of the last batch, and the
    /// number of entries of all batches.
    columns: Vec<(Column, usize)>,
}

impl JoinedDictionaries {
    /// Adds a batch. Returns false, and adds nothing, if an index could not count the entries of
    /// all batches.
    pub(crate) fn try_add(&mut self, batch: &Batch) -> bool {
        let mut narrow = Vec::new();
        batch.columns.iter().for_each(|column| narrow_dictionaries(column, &mut narrow));
        let mut joined = Vec::with_capacity(narrow.len());
        for (i, (width, entries)) in narrow.into_iter().enumerate() {
            let count = match self.columns.get(i) {
                None => entries.rows,
                Some((last, count)) if last == entries => *count,
                Some((_, count)) => count + entries.rows,
            };
            // The limit of a signed index. An unsigned one could count twice as many.
            if count > 1 << (8 * width - 1) && !self.columns.is_empty() {
                return false;
            }
            joined.push((entries.clone(), count));
        }
        self.columns = joined;
        true
    }
}

/// Collects the dictionaries whose indexes are narrower than four bytes, each with the width of its
/// index. Wider indexes can count all entries that fit in a chunk.
fn narrow_dictionaries<'a>(column: &'a Column, out: &mut Vec<(usize, &'a Column)>) {
    match &column.values {
        Values::Dictionary { width, entries, .. } if *width < 4 => out.push((*width, entries)),
        Values::List { child, .. } | Values::FixedList { child, .. } => {
            narrow_dictionaries(child, out)
        }
        Values::Struct(children) => {
            children.iter().for_each(|child| narrow_dictionaries(child, out))
        }
        _ => {}
    }
}

/// The column without the dictionary entries that no row uses. `None` if it has no dictionaries.
fn pruned(column: &Column) -> Option<Column> {
    let values = match &column.values {
        Values::Dictionary { width, indexes, entries } => {
            let index = |i: usize| index_at(indexes, *width, i).filter(|_| column.is_valid(i));
            // The new position of each entry, if a row uses it.
            let mut positions = vec![None; entries.rows];
            for i in (0..column.rows).filter_map(index) {
                *positions.get_mut(i)? = Some(0);
            }
            let used: Vec<usize> = (0..entries.rows).filter(|i| positions[*i].is_some()).collect();
            used.iter().enumerate().for_each(|(position, i)| positions[*i] = Some(position as u64));
            let moved = (0..column.rows)
                .map(|i| index(i).and_then(|i| positions[i]).unwrap_or(0).to_le_bytes());
            let indexes = moved.flat_map(|raw| raw.into_iter().take(*width)).collect();
            Values::Dictionary { width: *width, indexes, entries: Box::new(take(entries, &used)) }
        }
        Values::List { offsets, child } => {
            let first = offset_at(offsets, 0);
            let last = offset_at(offsets, column.rows);
            let child = pruned(&child.slice(first, last.checked_sub(first)?))?;
            let offsets = (0..=column.rows)
                .flat_map(|i| to_offset(offset_at(offsets, i).wrapping_sub(first)))
                .collect();
            Values::List { offsets, child: Box::new(child) }
        }
        Values::FixedList { size, child } => {
            Values::FixedList { size: *size, child: Box::new(pruned(child)?) }
        }
        Values::Struct(children) => {
            let pruned: Vec<_> = children.iter().map(pruned).collect();
            if pruned.iter().all(Option::is_none) {
                return None;
            }
            let children = pruned.into_iter().zip(children);
            Values::Struct(
                children.map(|(pruned, child)| pruned.unwrap_or_else(|| child.clone())).collect(),
            )
        }
        _ => return None,
    };
    Some(Column { rows: column.rows, validity: column.validity.clone(), values })
}

/// The rows at these positions.
fn take(column: &Column, positions: &[usize]) -> Column {
    let values = match &column.values {
        Values::Null => Values::Null,
        Values::Boolean(bits) => Values::Boolean(take_bits(bits, positions)),
        Values::Fixed { width, bytes } => {
            Values::Fixed { width: *width, bytes: take_fixed(bytes, *width, positions) }
        }
        Values::Narrow { width, bytes } => {
            Values::Narrow { width: *width, bytes: take_fixed(bytes, *width, positions) }
        }
        Values::Dictionary { width, indexes, entries } => Values::Dictionary {
            width: *width,
            indexes: take_fixed(indexes, *width, positions),
            entries: entries.clone(),
        },
        Values::Bytes { offsets, data } => {
            let (offsets, ranges) = take_ranges(offsets, positions);
            let mut taken = Vec::new();
            ranges.into_iter().for_each(|range| taken.extend_from_slice(&data[range]));
            Values::Bytes { offsets, data: taken.into() }
        }
        Values::List { offsets, child } => {
            let (offsets, ranges) = take_ranges(offsets, positions);
            let items: Vec<usize> = ranges.into_iter().flatten().collect();
            Values::List { offsets, child: Box::new(take(child, &items)) }
        }
        Values::FixedList { size, child } => {
            let items: Vec<usize> =
                positions.iter().flat_map(|i| i * size..(i + 1) * size).collect();
            Values::FixedList { size: *size, child: Box::new(take(child, &items)) }
        }
        Values::Struct(children) => {
            Values::Struct(children.iter().map(|child| take(child, positions)).collect())
        }
    };
    let validity = column.validity.as_ref().map(|validity| take_bits(validity, positions));
    Column { rows: positions.len(), validity, values }
}

fn take_bits(bits: &Bitmap, positions: &[usize]) -> Bitmap {
    let byte =
        |eight: &[usize]| eight.iter().rev().fold(0, |byte, i| byte << 1 | u8::from(bits.bit(*i)));
    Bitmap { bytes: positions.chunks(8).map(byte).collect(), offset: 0, len: positions.len() }
}

fn take_fixed(bytes: &Bytes, width: usize, positions: &[usize]) -> Bytes {
    let mut taken = Vec::with_capacity(positions.len() * width);
    positions.iter().for_each(|i| taken.extend_from_slice(&bytes[i * width..(i + 1) * width]));
    taken.into()
}

/// New offsets, from 0, of the values at these positions, and the old ranges of their contents.
fn take_ranges(offsets: &[u8], positions: &[usize]) -> (Bytes, Vec<std::ops::Range<usize>>) {
    let ranges: Vec<_> =
        positions.iter().map(|i| offset_at(offsets, *i)..offset_at(offsets, i + 1)).collect();
    let mut end = 0;
    let ends = ranges.iter().flat_map(|range| {
        end += range.len();
        to_offset(end)
    });
    (to_offset(0).into_iter().chain(ends).collect(), ranges)
}

fn offset_at(offsets: &[u8], i: usize) -> usize {
    let at = i * 4;
    u32::from_le_bytes([offsets[at], offsets[at + 1], offsets[at + 2], offsets[at + 3]]) as usize
}

/// An offset into contents that are no longer than those that a `u32` counted before.
fn to_offset(offset: usize) -> [u8; 4] {
    (offset as u32).to_le_bytes()
}

/// Index `i`; `None` if it is wider than a `usize`.
fn index_at(indexes: &[u8], width: usize, i: usize) -> Option<usize> {
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(&indexes[i * width..(i + 1) * width]);
    usize::try_from(u64::from_le_bytes(wide)).ok()
}
