//! Writes an object anew with one value changed (`spec/page.md` section 11).

use std::ops::Range;

use crate::error::{Result, refuse};
use crate::layout::{
    ALIGNMENT, INLINE_BYTES_MAX, Items, LIST_BYTES, Record, STRING_BYTES, TailKind,
};
use crate::word::{bit_at, list_place, string_place, u32_at};

/// A new value of the field whose place is at `place_at` in the object.
#[derive(Debug)]
pub(super) enum NewValue<'v> {
    /// Bits and numbers only, which are in the old object already.
    None,
    Bytes {
        place_at: usize,
        value: &'v [u8],
    },
    /// `count` new items in place of the items `range`.
    Items {
        place_at: usize,
        range: Range<usize>,
        count: usize,
    },
}

/// Writes `old` with a new value to `new`. The bits of the record at `changed` may have changed
/// already. What is before that record's tails keeps its position.
pub(super) fn object(
    record: &Record,
    old: &[u8],
    changed: usize,
    value: NewValue<'_>,
    bytes_max: usize,
    new: &mut Vec<u8>,
) -> Result<()> {
    new.clear();
    new.extend_from_slice(&old[..record.end]);
    let mut rewriter = Rewriter { old, new, changed, value, bytes_max };
    rewriter.record(record, 0)?;
    let bytes = rewriter.new.len().next_multiple_of(ALIGNMENT);
    rewriter.grow(bytes)?;
    // Below 2^31.
    new[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    Ok(())
}

struct Rewriter<'a> {
    old: &'a [u8],
    new: &'a mut Vec<u8>,
    changed: usize,
    value: NewValue<'a>,
    bytes_max: usize,
}

impl Rewriter<'_> {
    /// Appends zeros up to `end`.
    fn grow(&mut self, end: usize) -> Result<()> {
        let no_memory = end > self.bytes_max
            || self.new.try_reserve(end.saturating_sub(self.new.len())).is_err();
        if no_memory {
            refuse!(
                Limit,
                "the new object has at least {end} bytes, and its page or the memory room for {}; \
                 make its page anew",
                self.bytes_max
            );
        }
        self.new.resize(end, 0);
        Ok(())
    }

    /// Writes the tails of the record at `at`, which has been copied.
    fn record(&mut self, record: &Record, at: usize) -> Result<()> {
        if at == self.changed {
            self.clear_missing(record, at);
        }
        for tail in &record.checks.tails {
            let place_at = at + tail.at;
            match &tail.kind {
                TailKind::Utf8 | TailKind::Binary => self.string(place_at)?,
                TailKind::List(items) => self.items(items, place_at, 0)?,
                TailKind::FixedList { size, items, bit } => {
                    let bits_at = at + record.bits_at;
                    let is_present = bit.is_none_or(|bit| bit_at(self.new, bits_at, bit));
                    self.items(items, place_at, if is_present { *size } else { 0 })?;
                }
            }
        }
        Ok(())
    }

    /// Overwrites what is missing with zeros. A struct's bit is before those of its fields.
    fn clear_missing(&mut self, record: &Record, at: usize) {
        let bits_at = at + record.bits_at;
        for (bit, absent) in record.checks.absent.iter().enumerate() {
            if !bit_at(self.new, bits_at, bit) {
                absent
                    .bits
                    .clone()
                    .for_each(|bit| self.new[bits_at + bit / 8] &= !(1 << (bit % 8)));
                for (place, width) in &absent.places {
                    self.new[at + place..][..*width].fill(0);
                }
            }
        }
    }

    fn string(&mut self, place_at: usize) -> Result<()> {
        let old = self.old;
        let value = match &self.value {
            NewValue::Bytes { place_at: changed, value } if *changed == place_at => value,
            _ => {
                let bytes = u32_at(self.new, place_at) as usize;
                if bytes <= INLINE_BYTES_MAX {
                    return Ok(());
                }
                let from = u32_at(self.new, place_at + 12) as usize;
                old.get(from..from + bytes).unwrap_or_default()
            }
        };
        let tail_at = self.new.len();
        let place = string_place(value, tail_at);
        self.new[place_at..place_at + STRING_BYTES].copy_from_slice(&place);
        if value.len() > INLINE_BYTES_MAX {
            self.grow(tail_at + value.len())?;
            self.new[tail_at..].copy_from_slice(value);
        }
        Ok(())
    }

    /// Writes the items of the list whose place is at `place_at`; as many as `size` if it has none.
    fn items(&mut self, items: &Items, place_at: usize, size: usize) -> Result<()> {
        let (from, had) =
            (u32_at(self.new, place_at) as usize, u32_at(self.new, place_at + 4) as usize);
        let (range, inserted) = match &self.value {
            NewValue::Items { place_at: changed, range, count } if *changed == place_at => {
                (range.clone(), *count)
            }
            _ => (had..had, if had == 0 { size } else { 0 }),
        };
        let count = had - range.len() + inserted;
        if count == 0 {
            self.new[place_at..place_at + LIST_BYTES].fill(0);
            return Ok(());
        }
        let (record, stride) = (&items.record, items.record.stride);
        let start = self.new.len().next_multiple_of(ALIGNMENT);
        let records_at = start + items.bitmap_bytes(count);
        self.grow(records_at + count.saturating_mul(stride))?;
        self.new[place_at..place_at + LIST_BYTES].copy_from_slice(&list_place(start, count));
        // What remains before the new items, and behind them.
        let behind = range.start + inserted;
        for (old, new) in [(0..range.start, 0), (range.end..had, behind)] {
            let old_at = from + items.bitmap_bytes(had) + old.start * stride;
            let bytes = old.len() * stride;
            self.new[records_at + new * stride..][..bytes]
                .copy_from_slice(&self.old[old_at..old_at + bytes]);
            if items.nullable {
                for (i, old) in old.enumerate() {
                    let bit = new + i;
                    self.new[start + bit / 8] |= u8::from(bit_at(self.old, from, old)) << (bit % 8);
                }
            }
        }
        let item_is_missing = |new: &[u8], i: usize| items.nullable && !bit_at(new, start, i);
        if record.has_tails() {
            for i in 0..count {
                let at = records_at + i * stride;
                if !item_is_missing(self.new, i) {
                    self.record(record, at)?;
                } else if at == self.changed {
                    self.new[at..at + stride].fill(0);
                }
            }
        } else if let Some(i) = item_at(self.changed, records_at, stride).filter(|i| *i < count) {
            // No other item changes. There may be billions of them that take no bytes.
            let at = self.changed;
            match item_is_missing(self.new, i) {
                true => self.new[at..at + stride].fill(0),
                false => self.clear_missing(record, at),
            }
        }
        Ok(())
    }
}

/// The number of the item whose record begins at `at`, if one does.
fn item_at(at: usize, records_at: usize, stride: usize) -> Option<usize> {
    let behind = at.checked_sub(records_at)?;
    (stride > 0 && behind.is_multiple_of(stride)).then(|| behind / stride)
}
