//! Verifies a page in one pass, front to back, with one cursor for the tails (`spec/page.md`
//! section 9).

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::{
    ALIGNMENT, DEAD, EXTENT_BYTES_END, INLINE_BYTES_MAX, Items, Layout, Record, TailKind,
};
use crate::page::{HEADER_BYTES, Header, SLOT_BYTES};
use crate::word::{bit_at, bits_at, is_ascii, is_zero, load, u32_at};

/// Masks of the bytes after a short string in its place, by its length.
const AFTER: [u128; INLINE_BYTES_MAX + 1] = {
    let mut masks = [0; INLINE_BYTES_MAX + 1];
    let mut length = 0;
    while length < INLINE_BYTES_MAX {
        masks[length] = u128::MAX << (32 + 8 * length);
        length += 1;
    }
    masks
};
const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);

/// Checks a page, and returns its header.
pub(crate) fn page(layout: &Layout, page: &[u8]) -> Result<Header> {
    let Some((header, rest)) = page.split_first_chunk::<HEADER_BYTES>() else {
        refuse!(Size, "a page of {} bytes is shorter than its header", page.len());
    };
    let header = Header::decode(header)?;
    if page.len() != header.page_bytes as usize {
        refuse!(Size, "a page of {} bytes, the header says {}", page.len(), header.page_bytes);
    }
    if let Some(expected) = header.checksum {
        let found = header.checksum_with(rest);
        if found != expected {
            refuse!(
                Checksum,
                "page {} was damaged: checksum {found:08x}, expected {expected:08x}",
                header.sequence
            );
        }
    }
    let objects = header.objects as usize;
    // `Header::decode` has checked that the slots fit.
    let slots_at = page.len() - SLOT_BYTES * objects;
    let end = header.objects_end as usize;
    let slots = page.get(slots_at..).unwrap_or_default().as_chunks::<SLOT_BYTES>().0;
    let extents = page.get(..end).unwrap_or_default();
    match header.moved {
        false => in_order(&layout.record, extents, slots)?,
        true => moved(&layout.record, extents, slots)?,
    }
    check_zero(page, end, slots_at)?;
    Ok(header)
}

/// Checks objects that lie in the order of their slots, up to the end of `extents`.
#[inline(always)]
fn in_order(record: &Record, extents: &[u8], slots: &[[u8; SLOT_BYTES]]) -> Result<()> {
    let mut at = HEADER_BYTES;
    for (i, slot) in slots.iter().rev().enumerate() {
        let slot = u32::from_le_bytes(*slot) as usize;
        if slot != at {
            return Err(Error::new(
                ErrorKind::Slot,
                format!("slot {i} is {slot}, its object is at {at}"),
            ));
        }
        at += object(record, extents.get(at..).unwrap_or_default())
            .map_err(|error| error.in_object(i))?;
    }
    if at != extents.len() {
        refuse!(Objects, "the objects end at {at}, the header says {}", extents.len());
    }
    Ok(())
}

/// Checks live and dead extents in any order, and that each live one has one slot (page.md section
/// 11).
#[inline(never)]
fn moved(record: &Record, extents: &[u8], slots: &[[u8; SLOT_BYTES]]) -> Result<()> {
    // Where a live extent without a slot begins: a bit for each multiple of 8, and so a 64th of the
    // page's size.
    let mut starts = vec![0_u64; extents.len() / ALIGNMENT / 64 + 1];
    let (mut at, mut live) = (HEADER_BYTES, 0);
    while at < extents.len() {
        let rest = extents.get(at..).unwrap_or_default();
        let in_place = |error: Error| error.in_extent(at);
        let bytes = match dead(rest).map_err(in_place)? {
            Some(bytes) => bytes,
            None => {
                let bytes = object(record, rest).map_err(in_place)?;
                // Extents begin at multiples of 8.
                starts[at / ALIGNMENT / 64] |= 1 << (at / ALIGNMENT % 64);
                live += 1;
                bytes
            }
        };
        at += bytes;
    }
    if live != slots.len() {
        refuse!(Objects, "{live} live extents for {} slots", slots.len());
    }
    for (i, slot) in slots.iter().rev().enumerate() {
        let at = u32::from_le_bytes(*slot) as usize;
        let bit = 1 << (at / ALIGNMENT % 64);
        match starts.get_mut(at / ALIGNMENT / 64) {
            Some(word) if *word & bit != 0 && at.is_multiple_of(ALIGNMENT) => *word ^= bit,
            _ => refuse!(Slot, "slot {i} is {at}, where no object begins, or that of another slot"),
        }
    }
    Ok(())
}

/// The size of the dead extent at the start of `rest`, if it is one.
fn dead(rest: &[u8]) -> Result<Option<usize>> {
    let marked = u32_at(rest, 0);
    if marked & DEAD == 0 {
        return Ok(None);
    }
    let bytes = (marked ^ DEAD) as usize;
    if bytes == 0 || !bytes.is_multiple_of(ALIGNMENT) || bytes > rest.len() {
        refuse!(Extent, "a dead extent of {bytes} bytes, of {} left", rest.len());
    }
    check_zero(rest, 4, bytes)?;
    Ok(Some(bytes))
}

/// Checks the object at the start of `rest`, and returns the size of its extent.
#[inline]
fn object(record: &Record, rest: &[u8]) -> Result<usize> {
    let extent_bytes = if rest.len() < 4 { 0 } else { u32_at(rest, 0) as usize };
    let fits =
        extent_bytes.is_multiple_of(ALIGNMENT) && extent_bytes >= record.end && extent_bytes > 0;
    let Some(extent) = rest.get(..extent_bytes).filter(|_| fits) else {
        refuse!(
            Extent,
            "an extent of {extent_bytes} bytes, of {} left and with a record of {}",
            rest.len(),
            record.end
        );
    };
    let mut object = Verifier { extent, cursor: record.end };
    object.record(record, 0)?;
    if object.cursor.next_multiple_of(ALIGNMENT) != extent_bytes {
        refuse!(Extent, "the tails end at {}, the extent at {extent_bytes}", object.cursor);
    }
    check_zero(extent, object.cursor, extent_bytes)?;
    Ok(extent_bytes)
}

#[inline(always)]
fn check_zero(bytes: &[u8], from: usize, end: usize) -> Result<()> {
    if !is_zero(bytes.get(from..end).unwrap_or_default()) {
        return Err(Error::new(
            ErrorKind::Padding,
            format!("a byte between {from} and {end} is not 0"),
        ));
    }
    Ok(())
}

struct Verifier<'a> {
    extent: &'a [u8],
    /// Where the next tail begins.
    cursor: usize,
}

impl Verifier<'_> {
    /// Checks the record at `at`, and its tails.
    #[inline]
    fn record(&mut self, record: &Record, at: usize) -> Result<()> {
        if record.bits > 0 {
            self.validity(record, at)?;
        }
        let checks = &record.checks;
        for gap in &checks.gaps {
            check_zero(self.extent, at + gap.start, at + gap.end)?;
        }
        let booleans = checks
            .booleans
            .iter()
            .fold(0, |any, place| any | load::<1>(self.extent, at + place)[0]);
        if booleans > 1 {
            refuse!(Boolean, "a boolean is neither 0 nor 1");
        }
        for tail in &checks.tails {
            let at = at + tail.at;
            match &tail.kind {
                TailKind::Utf8 => self.string::<true>(at)?,
                TailKind::Binary => self.string::<false>(at)?,
                TailKind::List(items) => self.items(items, at)?,
                TailKind::FixedList { size, items, bit } => {
                    let record_at = at - tail.at + record.bits_at;
                    let present = bit.is_none_or(|bit| bit_at(self.extent, record_at, bit));
                    let count = u32_at(self.extent, at + 4) as usize;
                    if present && count != *size {
                        refuse!(Items, "a list of {size} items has {count}");
                    }
                    self.items(items, at)?;
                }
            }
        }
        Ok(())
    }

    /// Checks the validity bits of a record, and that missing values are zero.
    #[inline]
    fn validity(&self, record: &Record, at: usize) -> Result<()> {
        let at_bits = at + record.bits_at;
        for first in (0..record.bits).step_by(64) {
            let bits = record.bits - first;
            let mask = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
            let word = bits_at(self.extent, at_bits + first / 8);
            let spare = if bits < 64 && !bits.is_multiple_of(8) {
                word >> bits & ((1 << (8 - bits % 8)) - 1)
            } else {
                0
            };
            if spare != 0 {
                refuse!(Bitmap, "a bit is set past the last of {} validity bits", record.bits);
            }
            let mut missing = !word & mask;
            while missing != 0 {
                self.absent(record, at, first + missing.trailing_zeros() as usize)?;
                missing &= missing - 1;
            }
        }
        Ok(())
    }

    /// Checks that everything that depends on a validity bit, which is 0, is zero too.
    fn absent(&self, record: &Record, at: usize, bit: usize) -> Result<()> {
        let Some(absent) = record.checks.absent.get(bit) else { return Ok(()) };
        let mut any = false;
        for bit in absent.bits.clone() {
            any |= bit_at(self.extent, at + record.bits_at, bit);
        }
        for (place, width) in &absent.places {
            let from = at + place;
            any |= match width {
                8 => u64::from_ne_bytes(load(self.extent, from)) != 0,
                16 => u128::from_ne_bytes(load(self.extent, from)) != 0,
                4 => u32_at(self.extent, from) != 0,
                _ => !is_zero(self.extent.get(from..from + width).unwrap_or_default()),
            };
        }
        if any {
            refuse!(Missing, "a value is missing (validity bit {bit}) and not zero");
        }
        Ok(())
    }

    /// Checks the string whose place is at `at`.
    #[inline(always)]
    fn string<const UTF8: bool>(&mut self, at: usize) -> Result<()> {
        let place = u128::from_le_bytes(load(self.extent, at));
        let length = place as u32 as usize;
        if let Some(after) = AFTER.get(length) {
            if place & after != 0 {
                refuse!(String, "the bytes after a string of {length} bytes are not 0");
            }
            if UTF8 && place & HIGH != 0 {
                self.check_utf8(at + 4, at + 4 + length)?;
            }
            return Ok(());
        }
        let from = self.cursor;
        if (place >> 64) as u32 != 0 {
            refuse!(String, "the reserved bytes of a string of {length} bytes are not 0");
        }
        let Some(tail) =
            self.extent.get(from..from + length).filter(|_| (place >> 96) as usize == from)
        else {
            refuse!(
                Tail,
                "a string of {length} bytes at {}, expected at {from} of {}",
                (place >> 96) as u32,
                self.extent.len()
            );
        };
        if tail.first_chunk::<4>() != Some(&((place >> 32) as u32).to_le_bytes()) {
            refuse!(String, "a string does not begin as its place says");
        }
        self.cursor += length;
        if UTF8 && !is_ascii(tail) {
            self.check_utf8(from, from + length)?;
        }
        Ok(())
    }

    #[cold]
    fn check_utf8(&self, from: usize, end: usize) -> Result<()> {
        if str::from_utf8(self.extent.get(from..end).unwrap_or_default()).is_err() {
            refuse!(Utf8, "a string is not UTF-8");
        }
        Ok(())
    }

    /// Checks the list whose place is at `at`.
    fn items(&mut self, items: &Items, at: usize) -> Result<()> {
        let (offset, count) =
            (u32_at(self.extent, at) as usize, u32_at(self.extent, at + 4) as usize);
        if count == 0 {
            if offset != 0 {
                refuse!(Items, "a list of no items is at {offset}");
            }
            return Ok(());
        }
        if count >= EXTENT_BYTES_END {
            refuse!(Items, "a list has {count} items");
        }
        let start = self.cursor.next_multiple_of(ALIGNMENT);
        let record = &items.record;
        let records_at = start + items.bitmap_bytes(count);
        // Both factors are below 2^31.
        let end = records_at + count * record.stride;
        if offset != start || end > self.extent.len() {
            refuse!(
                Tail,
                "{count} items at {offset} up to {end}, expected at {start} of {}",
                self.extent.len()
            );
        }
        check_zero(self.extent, self.cursor, start)?;
        self.cursor = end;
        if items.nullable {
            self.bitmap(start, records_at, count)?;
        }
        if !record.is_checked() && !items.nullable {
            return Ok(());
        }
        for i in 0..count {
            let at = records_at + i * record.stride;
            if items.nullable && !bit_at(self.extent, start, i) {
                if !is_zero(self.extent.get(at..at + record.stride).unwrap_or_default()) {
                    refuse!(Missing, "item {i} is missing and not zero");
                }
            } else if record.is_checked() {
                self.record(record, at)?;
            }
        }
        Ok(())
    }

    /// Checks the bitmap of `count` items and its padding.
    fn bitmap(&self, from: usize, end: usize, count: usize) -> Result<()> {
        let bytes = count.div_ceil(8);
        if !count.is_multiple_of(8)
            && load::<1>(self.extent, from + bytes - 1)[0] >> (count % 8) != 0
        {
            refuse!(Bitmap, "a bit is set past the last of {count} items");
        }
        check_zero(self.extent, from + bytes, end)
    }
}
