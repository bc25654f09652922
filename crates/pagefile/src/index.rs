//! The page index: `spec/page-file.md` section 4.

use std::ops::Range;

use crate::error::{Result, refuse};
use crate::header::{UNIT_BYTES, u32_at, u64_at};

pub(crate) const PAGE_ENTRY_BYTES: usize = 16;
/// Large pages are smaller than this (page.md section 2).
const LARGE_BYTES_END: usize = 1 << 31;

/// What the index says about a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageEntry {
    /// The ordinals of its objects.
    pub(crate) objects: Range<u64>,
    /// Its place, in bytes from the first page on.
    pub(crate) bytes: Range<usize>,
    pub(crate) checksum: u32,
}

/// The index of a file's pages, as it lies in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageIndex<'a> {
    pub(crate) entries: &'a [[u8; PAGE_ENTRY_BYTES]],
    /// The objects of the file.
    pub(crate) objects: u64,
}

impl PageIndex<'_> {
    /// Checks the rules of section 4. The pages take `pages_bytes`, and regular ones `page_bytes`.
    pub(crate) fn check(&self, pages_bytes: usize, page_bytes: usize) -> Result<()> {
        let (mut first, mut end) = (0, 0);
        for page in 0..self.entries.len() {
            let PageEntry { objects, bytes, .. } = self.page(page);
            if objects.start != first || objects.is_empty() {
                refuse!(Index, "page {page} has the objects {objects:?} by the index");
            }
            let size = bytes.end.saturating_sub(bytes.start);
            if bytes.start != end
                || size == 0
                || size >= LARGE_BYTES_END.max(page_bytes + 1)
                || !size.is_multiple_of(page_bytes)
            {
                refuse!(Index, "page {page} has {size} bytes by the index");
            }
            (first, end) = (objects.end, bytes.end);
        }
        if end != pages_bytes || first != self.objects {
            refuse!(
                Index,
                "the index ends with object {first} and byte {end}, the file has {} objects and \
                 {pages_bytes} bytes of pages",
                self.objects
            );
        }
        Ok(())
    }

    /// What the index says about a page, which must be there.
    pub(crate) fn page(&self, page: usize) -> PageEntry {
        let entry =
            |page: usize| self.entries.get(page).map_or(&[0; PAGE_ENTRY_BYTES], |entry| entry);
        let end = |page: usize| u32_at(entry(page), 8) as usize * UNIT_BYTES;
        let next = match page + 1 {
            next if next < self.entries.len() => self.first(next),
            _ => self.objects,
        };
        PageEntry {
            objects: self.first(page)..next,
            bytes: page.checked_sub(1).map_or(0, end)..end(page),
            checksum: u32_at(entry(page), 12),
        }
    }

    fn first(&self, page: usize) -> u64 {
        self.entries.get(page).map_or(self.objects, |entry| u64_at(entry, 0))
    }

    /// The page with an object, which must be there.
    ///
    /// Pages hold about equally many objects, so the first guess is close. Doubling steps find a
    /// range around it, which is then halved.
    pub(crate) fn page_of(&self, ordinal: u64) -> usize {
        debug_assert!(ordinal < self.objects);
        let pages = self.entries.len();
        let guess = u128::from(ordinal) * pages as u128 / u128::from(self.objects.max(1));
        let guess = (guess as usize).min(pages.saturating_sub(1));
        let (mut from, mut to, mut step) = (guess, guess + 1, 1);
        while from > 0 && self.first(from) > ordinal {
            (from, to) = (from.saturating_sub(step), from);
            step *= 2;
        }
        while to < pages && self.first(to) <= ordinal {
            (from, to) = (to, (to + step).min(pages));
            step *= 2;
        }
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            match self.first(middle) <= ordinal {
                true => from = middle,
                false => to = middle,
            }
        }
        from
    }
}

/// An entry's bytes.
pub(crate) fn encode_entry(
    first: u64,
    end: usize,
    checksum: u32,
) -> Option<[u8; PAGE_ENTRY_BYTES]> {
    let end = u32::try_from(end / UNIT_BYTES).ok()?;
    let mut bytes = [0; PAGE_ENTRY_BYTES];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..12].copy_from_slice(&end.to_le_bytes());
    bytes[12..].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_pages_of_any_sizes() {
        for shape in [vec![1], vec![3, 3, 3, 3], vec![1, 1000, 1, 1, 7], vec![1000, 1, 1, 1], {
            let mut long = vec![1; 500];
            long.extend([100_000, 2]);
            long
        }] {
            let mut entries = Vec::new();
            let mut first = 0;
            for (page, objects) in shape.iter().enumerate() {
                entries.push(encode_entry(first, (page + 1) * UNIT_BYTES, 0).unwrap());
                first += objects;
            }
            let index = PageIndex { entries: &entries, objects: first };
            index.check(entries.len() * UNIT_BYTES, UNIT_BYTES).unwrap();
            for page in 0..shape.len() {
                let objects = index.page(page).objects;
                for ordinal in [objects.start, objects.end - 1] {
                    assert_eq!(index.page_of(ordinal), page, "object {ordinal} of {shape:?}");
                }
            }
        }
    }
}
