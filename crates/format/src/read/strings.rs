//! Strings made of a dictionary's entries: `spec/encodings.md` section 3.

use super::{check_count, reserved};
use crate::column::u32s;
use crate::error::Result;

/// Entries up to this size are copied whole, whatever their length: a copy of one size is a few instructions.
const SHORT_BYTES_MAX: usize = 32;

/// The entries of a dictionary of strings.
pub(super) struct Entries<'a> {
    data: &'a [u8],
    /// Where each begins, and its length.
    spans: Vec<(u32, u32)>,
    bytes_max: usize,
    /// Whether all have the same length.
    even: bool,
}

impl<'a> Entries<'a> {
    /// Of offsets that have been checked.
    pub(super) fn new(offsets: &[u8], data: &'a [u8]) -> Result<Self> {
        let mut spans = reserved(offsets.len() / 4)?;
        spans.extend(u32s(offsets).zip(u32s(&offsets[4..])).map(|(start, end)| (start, end - start)));
        let bytes_max = spans.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as usize;
        let even = spans.iter().all(|(_, bytes)| *bytes as usize == bytes_max);
        Ok(Self { data, spans, bytes_max, even })
    }

    /// The bytes of the strings that these indexes, all of them below the number of entries, stand for.
    pub(super) fn total(&self, indexes: &[u8]) -> usize {
        match self.even {
            true => (indexes.len() / 4).saturating_mul(self.bytes_max),
            false => {
                // Fewer than 2^31 strings of fewer than 2^31 bytes.
                let total = u32s(indexes).map(|index| u64::from(self.spans[index as usize].1)).sum::<u64>();
                usize::try_from(total).unwrap_or(usize::MAX)
            }
        }
    }

    /// The strings' offsets and their data, of `total` bytes, for which there is room in the chunk's declared size.
    pub(super) fn gather(&self, indexes: &[u8], total: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        check_count(total)?;
        if self.even {
            let data = match self.bytes_max {
                1 => self.gather_even::<1>(indexes)?,
                2 => self.gather_even::<2>(indexes)?,
                4 => self.gather_even::<4>(indexes)?,
                8 => self.gather_even::<8>(indexes)?,
                _ => return self.gather_uneven(indexes, total),
            };
            return Ok((even_offsets(indexes.len() / 4, self.bytes_max)?, data));
        }
        self.gather_uneven(indexes, total)
    }

    fn gather_even<const W: usize>(&self, indexes: &[u8]) -> Result<Vec<u8>> {
        let entries = self.data.as_chunks::<W>().0;
        let mut data = reserved(indexes.len() / 4)?;
        data.extend(u32s(indexes).map(|index| entries[index as usize]));
        Ok(data.into_flattened())
    }

    fn gather_uneven(&self, indexes: &[u8], total: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        // Copies of one size need memory of their own, which few entries do not have to be charged for.
        if self.spans.len() > (indexes.len() / 64).max(64) {
            return self.gather_long(indexes, total);
        }
        match self.bytes_max {
            0..=8 => self.gather_short::<8>(indexes, total),
            9..=16 => self.gather_short::<16>(indexes, total),
            17..=SHORT_BYTES_MAX => self.gather_short::<SHORT_BYTES_MAX>(indexes, total),
            _ => self.gather_long(indexes, total),
        }
    }

    /// Of entries of at most W bytes: W bytes are copied, and those beyond the entry's end are overwritten by the next.
    fn gather_short<const W: usize>(&self, indexes: &[u8], total: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut entries = reserved(self.spans.len())?;
        entries.extend(self.spans.iter().map(|(start, bytes)| {
            let mut padded = [0; W];
            let bytes = *bytes as usize;
            padded[..bytes].copy_from_slice(&self.data[*start as usize..][..bytes]);
            (padded, bytes)
        }));
        let mut data = reserved(total + W)?;
        let mut offsets = reserved(indexes.len() / 4 + 1)?;
        offsets.push([0; 4]);
        let mut end = 0;
        for index in u32s(indexes) {
            let (padded, bytes) = &entries[index as usize];
            data.extend_from_slice(padded);
            end += bytes;
            data.truncate(end);
            // The total is below 2^31.
            offsets.push((end as u32).to_le_bytes());
        }
        Ok((offsets.into_flattened(), data))
    }

    fn gather_long(&self, indexes: &[u8], total: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut data = reserved(total)?;
        let mut offsets = reserved(indexes.len() / 4 + 1)?;
        offsets.push([0; 4]);
        for index in u32s(indexes) {
            let (start, bytes) = self.spans[index as usize];
            data.extend_from_slice(&self.data[start as usize..][..bytes as usize]);
            // The total is below 2^31.
            offsets.push((data.len() as u32).to_le_bytes());
        }
        Ok((offsets.into_flattened(), data))
    }
}

/// The offsets of n strings of `bytes` bytes each; their sum is below 2^32.
pub(super) fn even_offsets(n: usize, bytes: usize) -> Result<Vec<u8>> {
    let mut offsets = reserved(n + 1)?;
    offsets.extend((0..=n).map(|i| ((i * bytes) as u32).to_le_bytes()));
    Ok(offsets.into_flattened())
}
