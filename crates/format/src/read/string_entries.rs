//! Strings from the entries of a dictionary: `spec/encodings.md` section 3.

use super::fixed::look_up;
use super::reader::reserved;
use crate::column::u32s;
use crate::error::Result;
use crate::output::{Appender, OutputBuffer};
use crate::vector::widest;

/// Entries up to this size are copied with a fixed size, whatever their length: that takes few
/// instructions.
const SHORT_BYTES_MAX: usize = 32;

/// With at most this many entries, the occurrences of each are counted.
const FEW: usize = 8;
/// Strings that are put together at a time.
const STEP: usize = 64;

/// The entries of a dictionary of strings.
pub(super) struct StringEntries<'a> {
    data: &'a [u8],
    /// Start and length of each entry.
    spans: Vec<(u32, u32)>,
    bytes_max: usize,
    /// Whether all have the same length.
    even: bool,
}

impl<'a> StringEntries<'a> {
    /// The entries with these offsets, which have been checked.
    pub(super) fn new(offsets: &[u8], data: &'a [u8]) -> Result<Self> {
        let mut spans = reserved(offsets.len() / 4)?;
        spans.extend(
            u32s(offsets).zip(u32s(&offsets[4..])).map(|(start, end)| (start, end - start)),
        );
        let bytes_max = spans.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as usize;
        let even = spans.iter().all(|(_, bytes)| *bytes as usize == bytes_max);
        Ok(Self { data, spans, bytes_max, even })
    }

    /// The bytes of the strings of these indexes, which are all in range.
    pub(super) fn total(&self, indexes: &[u8]) -> usize {
        match self.even {
            true => (indexes.len() / 4).saturating_mul(self.bytes_max),
            // Fewer than 2^31 strings of fewer than 2^31 bytes.
            false if self.spans.len() <= FEW => {
                usize::try_from(total_of_few(indexes.as_chunks().0, &self.spans))
                    .unwrap_or(usize::MAX)
            }
            false => {
                let total =
                    u32s(indexes).map(|index| u64::from(self.spans[index as usize].1)).sum::<u64>();
                usize::try_from(total).unwrap_or(usize::MAX)
            }
        }
    }

    /// Writes the strings' offsets and data. The size of the data is [`Self::total`], which fits
    /// into 31 bits.
    pub(super) fn gather(
        &self,
        indexes: &[u8],
        offsets: &mut OutputBuffer,
        data: &mut OutputBuffer,
    ) -> Result<()> {
        match (self.even, self.bytes_max) {
            (true, 1) => self.gather_even::<1>(indexes, offsets, data),
            (true, 2) => self.gather_even::<2>(indexes, offsets, data),
            (true, 4) => self.gather_even::<4>(indexes, offsets, data),
            (true, 8) => self.gather_even::<8>(indexes, offsets, data),
            // Copies of a fixed size need padded entries. They are not charged, so there may be
            // only few.
            _ if self.spans.len() > (indexes.len() / 64).max(64) => {
                self.gather_long(indexes, offsets, data)
            }
            (_, 0..=8) => return self.gather_short::<8>(indexes, offsets, data),
            (_, 9..=16) => return self.gather_short::<16>(indexes, offsets, data),
            (_, 17..=SHORT_BYTES_MAX) => {
                return self.gather_short::<SHORT_BYTES_MAX>(indexes, offsets, data);
            }
            _ => self.gather_long(indexes, offsets, data),
        }
        Ok(())
    }

    fn gather_even<const W: usize>(
        &self,
        indexes: &[u8],
        offsets: &mut OutputBuffer,
        data: &mut OutputBuffer,
    ) {
        even_offsets(indexes.len() / 4, W, offsets);
        data.append(|out| look_up(self.data.as_chunks::<W>().0, indexes, out));
    }

    /// Entries have at most W bytes. W bytes are copied, and the next copy overwrites those after
    /// the entry's end.
    fn gather_short<const W: usize>(
        &self,
        indexes: &[u8],
        offsets: &mut OutputBuffer,
        data: &mut OutputBuffer,
    ) -> Result<()> {
        let mut entries = reserved(self.spans.len())?;
        entries.extend(self.spans.iter().map(|(start, bytes)| {
            let mut padded = [0; W];
            let bytes = *bytes as usize;
            padded[..bytes].copy_from_slice(&self.data[*start as usize..][..bytes]);
            (padded, bytes)
        }));
        offsets
            .append(|offsets| data.append(|data| put_together(&entries, indexes, offsets, data)));
        Ok(())
    }

    fn gather_long(&self, indexes: &[u8], offsets: &mut OutputBuffer, data: &mut OutputBuffer) {
        offsets.append(|offsets| {
            offsets.push([0; 4]);
            data.append(|data| {
                let mut end = 0u32;
                for index in u32s(indexes) {
                    let (start, bytes) = self.spans[index as usize];
                    data.extend_from_slice(&self.data[start as usize..][..bytes as usize]);
                    // The total is below 2^31.
                    end += bytes;
                    offsets.push(end.to_le_bytes());
                }
            });
        });
    }
}

/// Writes the strings and their offsets. `entries` are padded to W bytes, with their lengths.
fn put_together<const W: usize>(
    entries: &[([u8; W], usize)],
    indexes: &[u8],
    offsets: &mut Appender<'_, [u8; 4]>,
    data: &mut Appender<'_, u8>,
) {
    offsets.push([0; 4]);
    // A few strings at a time are put together in the first-level cache.
    let mut end = 0;
    let mut bytes_of_some = [0; STEP * SHORT_BYTES_MAX];
    let mut ends_of_some = [[0; 4]; STEP];
    for indexes in indexes.chunks(4 * STEP) {
        let mut at = 0;
        for (slot, index) in ends_of_some.iter_mut().zip(u32s(indexes)) {
            let (padded, bytes) = &entries[index as usize];
            // Each entry before took at most W bytes.
            bytes_of_some[at..at + W].copy_from_slice(padded);
            at += bytes;
            // The total is below 2^31.
            *slot = ((end + at) as u32).to_le_bytes();
        }
        end += at;
        data.extend_from_slice(&bytes_of_some[..at]);
        offsets.extend_from_slice(&ends_of_some[..indexes.len() / 4]);
    }
}

widest! {
    /// The bytes of strings from few entries. Counting each entry is faster than looking up
    /// lengths.
    fn total_of_few[][](indexes: &[[u8; 4]], spans: &[(u32, u32)]) -> u64 {
        let mut total = 0;
        for indexes in indexes.chunks(1024) {
            for (entry, (_, bytes)) in (0u32..).zip(spans) {
                let times: u32 = indexes
                    .iter()
                    .map(|raw| u32::from(u32::from_le_bytes(*raw) == entry))
                    .sum();
                total += u64::from(times) * u64::from(*bytes);
            }
        }
        total
    }
}

/// Writes the offsets of n strings of `bytes` bytes each. Their total is below 2^32.
pub(super) fn even_offsets(n: usize, bytes: usize, offsets: &mut OutputBuffer) {
    offsets.append(|out| out.extend((0..n + 1).map(|i| ((i * bytes) as u32).to_le_bytes())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::tests::at_each_level;

    #[test]
    fn entries_of_any_number_and_length_are_gathered_at_every_level() {
        for (count, shortest, longest) in [
            (1, 5, 5),
            (2, 1, 1),
            (3, 0, 8),
            (8, 4, 4),
            (8, 3, 16),
            (9, 17, 32),
            (9, 40, 90),
            (300, 0, 7),
            (300, 0, 40),
        ] {
            let texts: Vec<Vec<u8>> = (0..count)
                .map(|i| vec![i as u8; shortest + i * 7 % (longest - shortest + 1)])
                .collect();
            let mut offsets = vec![0u32];
            texts
                .iter()
                .for_each(|text| offsets.push(offsets[offsets.len() - 1] + text.len() as u32));
            let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            let data = texts.concat();
            let picked: Vec<usize> =
                (0..20_001usize).map(|i| i.wrapping_mul(0x9E37_79B9) / 64 % count).collect();
            let indexes: Vec<u8> =
                picked.iter().flat_map(|index| (*index as u32).to_le_bytes()).collect();
            let expected: Vec<u8> = picked.iter().flat_map(|index| texts[*index].clone()).collect();
            for found in at_each_level(|| {
                let entries = StringEntries::new(&offsets, &data)?;
                let total = entries.total(&indexes);
                let (mut offsets, mut data) =
                    (OutputBuffer::new(None, indexes.len() + 4)?, OutputBuffer::new(None, total)?);
                entries.gather(&indexes, &mut offsets, &mut data)?;
                Ok::<_, crate::Error>((offsets.finish()?, data.finish()?))
            }) {
                let Ok((offsets, data)) = found else { panic!("{count} entries") };
                assert_eq!(data, expected, "{count} entries");
                let lengths = u32s(&offsets)
                    .zip(u32s(&offsets[4..]))
                    .map(|(start, end)| (end - start) as usize);
                assert!(
                    lengths.eq(picked.iter().map(|index| texts[*index].len())),
                    "{count} entries"
                );
            }
        }
    }
}
