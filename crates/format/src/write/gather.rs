//! Gathers the slices of a column from several batches, and copies as little as possible.

use bytes::{Bytes, BytesMut};

use super::columns::check_not_null;
use crate::column::{Bitmap, Column, Values, u32_at, u32s};
use crate::encode::Strings;
use crate::error::{Result, refuse};
use crate::expand::ones;
use crate::layout::COUNT_MAX;
use crate::types::Field;

/// What becomes of missing values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// They are zero, or empty.
    Zeroed,
    /// They take no place.
    LeftOut,
}

/// Whether two dictionaries have the same entries. Those that share their buffers, as slices of one
/// batch do, are not compared.
pub(super) fn same_entries(a: &Column, b: &Column) -> bool {
    let same = |a: &Bytes, b: &Bytes| (a.as_ptr(), a.len()) == (b.as_ptr(), b.len());
    let shared = match (&a.values, &b.values) {
        (Values::Fixed { bytes: a, .. }, Values::Fixed { bytes: b, .. }) => same(a, b),
        (Values::Bytes { offsets: a, data: c }, Values::Bytes { offsets: b, data: d }) => {
            same(a, b) && same(c, d)
        }
        _ => false,
    };
    shared && a.rows == b.rows && a.validity == b.validity || a == b
}

/// What the values of a column are, for errors.
pub(super) fn name(values: &Values) -> &'static str {
    match values {
        Values::Null => "nothing",
        Values::Boolean(_) => "booleans",
        Values::Fixed { .. } => "values of fixed width",
        Values::Narrow { .. } => "narrow decimals",
        Values::Bytes { .. } => "strings",
        Values::List { .. } => "lists",
        Values::FixedList { .. } => "fixed-size lists",
        Values::Struct(_) => "structs",
        Values::Dictionary { .. } => "a dictionary",
    }
}

/// The width of narrow decimals, which all slices of a column share.
pub(super) fn narrow_width(slices: &[Column]) -> Option<usize> {
    match &slices.first()?.values {
        Values::Narrow { width, .. } => Some(*width),
        _ => None,
    }
}

pub(super) fn fixed_bytes(slice: &Column, expected: usize) -> Result<Bytes> {
    match &slice.values {
        Values::Fixed { width, bytes }
        | Values::Narrow { width, bytes }
        | Values::Dictionary { width, indexes: bytes, .. }
            if *width == expected =>
        {
            Ok(bytes.slice(..slice.rows * width))
        }
        other => refuse!(Unsupported, "{} instead of values of {expected} bytes", name(other)),
    }
}

/// The values of fixed width in one buffer.
pub(super) fn gather_fixed(slices: &[Column], width: usize, missing: Missing) -> Result<Bytes> {
    if let [whole @ Column { validity: None, .. }] = slices {
        return fixed_bytes(whole, width);
    }
    let mut out = Vec::with_capacity(slices.iter().map(|slice| slice.rows * width).sum());
    for slice in slices {
        let bytes = fixed_bytes(slice, width)?;
        match &slice.validity {
            None => out.extend_from_slice(&bytes),
            Some(validity) if missing == Missing::LeftOut => {
                ones(validity).for_each(|i| out.extend_from_slice(&bytes[i * width..][..width]));
            }
            Some(validity) => {
                let start = out.len();
                out.resize(start + bytes.len(), 0);
                let target = &mut out[start..];
                ones(validity).for_each(|i| {
                    target[i * width..][..width].copy_from_slice(&bytes[i * width..][..width])
                });
            }
        }
    }
    Ok(Bytes::from(out))
}

/// The strings of all slices.
pub(super) fn gather_strings(slices: &[Column], missing: Missing) -> Result<Strings> {
    if let [Column { validity: None, values: Values::Bytes { offsets, data }, rows }] = slices {
        let offsets = offsets.slice(..(rows + 1) * 4);
        let end = u32_at(&offsets, *rows) as usize;
        if u32_at(&offsets, 0) == 0 && end <= COUNT_MAX {
            let data = vec![data.slice(..end)];
            return Ok(Strings { offsets, data });
        }
    }
    let rows: usize = slices.iter().map(|slice| slice.rows).sum();
    let mut offsets = Vec::with_capacity((rows + 1) * 4);
    let mut data = Vec::with_capacity(slices.len());
    let mut end = 0usize;
    offsets.extend_from_slice(&0u32.to_le_bytes());
    for slice in slices {
        let Values::Bytes { offsets: ends, data: bytes } = &slice.values else {
            refuse!(Unsupported, "{} instead of strings", name(&slice.values))
        };
        let span = |i: usize| (u32_at(ends, i) as usize, u32_at(ends, i + 1) as usize);
        let (first, last) = (u32_at(ends, 0) as usize, u32_at(ends, slice.rows) as usize);
        match &slice.validity {
            // There are bytes under a missing string, or missing ones are left out: the data must
            // be copied.
            Some(validity)
                if missing == Missing::LeftOut
                    || (0..slice.rows).any(|i| !validity.bit(i) && span(i).0 != span(i).1) =>
            {
                let mut copied = BytesMut::new();
                for i in 0..slice.rows {
                    if validity.bit(i) {
                        copied.extend_from_slice(&bytes[span(i).0..span(i).1]);
                    } else if missing == Missing::LeftOut {
                        continue;
                    }
                    // Checked below 2^31 at the end.
                    offsets.extend_from_slice(&((end + copied.len()) as u32).to_le_bytes());
                }
                end += copied.len();
                data.push(copied.freeze());
            }
            _ => {
                // The shift may wrap around; the addition wraps back.
                let shift = (end as u32).wrapping_sub(first as u32);
                let ends = &ends[4..(slice.rows + 1) * 4];
                offsets.extend(u32s(ends).flat_map(|end| end.wrapping_add(shift).to_le_bytes()));
                end += last - first;
                data.push(bytes.slice(first..last));
            }
        }
    }
    if end > COUNT_MAX {
        refuse!(
            Limit,
            "the strings of one column of a chunk have {end} bytes, over the limit of {COUNT_MAX}"
        );
    }
    Ok(Strings { offsets: Bytes::from(offsets), data })
}

/// The lists of all slices: their offsets from 0, slices of the child, and the number of items.
pub(super) fn gather_lists(slices: &[Column]) -> Result<(Vec<u8>, Vec<Column>, usize)> {
    let mut offsets = Vec::new();
    let mut children = Vec::new();
    let mut total = 0usize;
    offsets.extend_from_slice(&0u32.to_le_bytes());
    for slice in slices {
        let Values::List { offsets: ends, child } = &slice.values else {
            refuse!(Unsupported, "{} instead of lists", name(&slice.values))
        };
        let mut run = u32_at(ends, 0) as usize..u32_at(ends, 0) as usize;
        for i in 0..slice.rows {
            let (start, end) = (u32_at(ends, i) as usize, u32_at(ends, i + 1) as usize);
            if slice.is_valid(i) {
                total += end - start;
                run.end = end;
            } else if start != end {
                // There are items under a missing list: leave them out.
                children.push(child.slice(run.start, run.len()));
                run = end..end;
            }
            // Checked below 2^31 at the end.
            offsets.extend_from_slice(&(total as u32).to_le_bytes());
        }
        children.push(child.slice(run.start, run.len()));
    }
    if total > COUNT_MAX {
        refuse!(
            Limit,
            "the lists of one column of a chunk have {total} items, over the limit of {COUNT_MAX}"
        );
    }
    children.retain(|child| child.rows > 0);
    Ok((offsets, children, total))
}

pub(super) fn struct_child(slices: &[Column], i: usize) -> Result<Vec<Column>> {
    let child = |slice: &Column| match &slice.values {
        Values::Struct(children) if i < children.len() => Ok(children[i].clone()),
        other => refuse!(Unsupported, "{} instead of a struct", name(other)),
    };
    slices.iter().map(child).collect()
}

/// A child of a struct or fixed-size list. Its values under missing ones of the parent are missing
/// too. Values that take no bytes get no bitmap, because it could be larger than everything else.
pub(super) fn masked_child(
    field: &Field,
    child: &Column,
    parent: &Column,
    size: usize,
) -> Result<Column> {
    let hidden = parent.missing() * size;
    let masked = match &parent.validity {
        Some(mask) if hidden > 0 && !field.data_type.is_weightless() => {
            Column { validity: Some(mask_child(child, mask, size)), ..child.clone() }
        }
        _ => child.clone(),
    };
    check_not_null(field, &masked, hidden)?;
    Ok(masked)
}

/// The validity of a child and of its parent combined. Each value of the parent covers `size` of
/// the child's.
fn mask_child(child: &Column, parent: &Bitmap, size: usize) -> Bitmap {
    let mut out = BitWriter::default();
    if size == 1 {
        match &child.validity {
            Some(own) => {
                own.words().zip(parent.words()).for_each(|((a, n), (b, _))| out.push(a & b, n))
            }
            None => parent.words().for_each(|(word, n)| out.push(word, n)),
        }
    } else {
        for i in 0..child.rows {
            let own = child.validity.as_ref().is_none_or(|validity| validity.bit(i));
            out.push(u64::from(own && parent.bit(i / size)), 1);
        }
    }
    let (bytes, len) = out.finish();
    Bitmap { bytes: Bytes::from(bytes), offset: 0, len }
}

pub(super) fn concat_bits(slices: &[Column], bits: impl Fn(&Column) -> Option<Bitmap>) -> Vec<u8> {
    let mut out = BitWriter::default();
    for slice in slices {
        match bits(slice) {
            Some(bits) => bits.words().for_each(|(word, n)| out.push(word, n)),
            None => out.push_ones(slice.rows),
        }
    }
    out.finish().0
}

/// A bitmap under construction.
#[derive(Default)]
pub(super) struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    filled: usize,
    len: usize,
}

impl BitWriter {
    /// Appends the lowest n bits of a word, at most 64. Its other bits are 0.
    pub(super) fn push(&mut self, word: u64, n: usize) {
        debug_assert!(n <= 64 && (n == 64 || word >> n == 0));
        self.len += n;
        self.pending |= word << self.filled;
        if self.filled + n < 64 {
            self.filled += n;
            return;
        }
        self.out.extend_from_slice(&self.pending.to_le_bytes());
        let taken = 64 - self.filled;
        self.pending = if taken < 64 { word >> taken } else { 0 };
        self.filled = n - taken;
    }

    pub(super) fn push_ones(&mut self, n: usize) {
        (0..n / 64).for_each(|_| self.push(u64::MAX, 64));
        self.push((1 << (n % 64)) - 1, n % 64);
    }

    pub(super) fn finish(mut self) -> (Vec<u8>, usize) {
        let last = self.pending.to_le_bytes();
        self.out.extend_from_slice(&last[..self.filled.div_ceil(8)]);
        (self.out, self.len)
    }
}
