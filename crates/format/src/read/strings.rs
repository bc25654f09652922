//! Strings made of a dictionary's entries: `spec/encodings.md` section 3.

use super::fixed::looked_up;
use super::{check_count, reserved};
use crate::column::u32s;
use crate::error::Result;
use crate::vector::widest;

/// Entries up to this size are copied whole, whatever their length: a copy of one size is a few instructions.
const SHORT_BYTES_MAX: usize = 32;

/// Of so many entries it is counted how often each comes.
const FEW: usize = 8;
/// So many strings are put together at a time.
const STEP: usize = 64;

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
            // Fewer than 2^31 strings of fewer than 2^31 bytes.
            false if self.spans.len() <= FEW => {
                usize::try_from(total_of_few(indexes.as_chunks().0, &self.spans)).unwrap_or(usize::MAX)
            }
            false => {
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
        Ok(looked_up(self.data.as_chunks::<W>().0, indexes)?.into_flattened())
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
        let mut data = reserved(total)?;
        let mut offsets = reserved(indexes.len() / 4 + 1)?;
        offsets.push([0; 4]);
        // A few strings at a time are put together in the nearest cache.
        let mut end = 0;
        let mut bytes_of_some = [0; STEP * SHORT_BYTES_MAX];
        let mut ends_of_some = [[0; 4]; STEP];
        for indexes in indexes.chunks(4 * STEP) {
            let mut at = 0;
            for (slot, index) in ends_of_some.iter_mut().zip(u32s(indexes)) {
                let (padded, bytes) = &entries[index as usize];
                // The entries before have taken at most W bytes each.
                bytes_of_some[at..at + W].copy_from_slice(padded);
                at += bytes;
                // The total is below 2^31.
                *slot = ((end + at) as u32).to_le_bytes();
            }
            end += at;
            data.extend_from_slice(&bytes_of_some[..at]);
            offsets.extend_from_slice(&ends_of_some[..indexes.len() / 4]);
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

widest! {
    /// The bytes of strings made of few entries: how often each comes is counted sooner than looked up.
    fn total_of_few[][](indexes: &[[u8; 4]], spans: &[(u32, u32)]) -> u64 {
        let mut total = 0;
        for indexes in indexes.chunks(1024) {
            for (entry, (_, bytes)) in (0u32..).zip(spans) {
                let times: u32 = indexes.iter().map(|raw| u32::from(u32::from_le_bytes(*raw) == entry)).sum();
                total += u64::from(times) * u64::from(*bytes);
            }
        }
        total
    }
}

/// The offsets of n strings of `bytes` bytes each; their sum is below 2^32.
pub(super) fn even_offsets(n: usize, bytes: usize) -> Result<Vec<u8>> {
    let mut offsets = reserved(n + 1)?;
    offsets.extend((0..n + 1).map(|i| ((i * bytes) as u32).to_le_bytes()));
    Ok(offsets.into_flattened())
}
