//! Distinct strings among short ones: each is a few words, loaded, hashed and compared without a branch on its length.

use super::dictionary::{Distinct, Index, PROBES_MAX, Searched, hopeless};
use crate::column::u32s;

/// The most bytes of a short string: four words, less one byte for its length.
pub(super) const SHORT_BYTES_MAX: usize = 4 * 8 - 1;

/// A string in K words, zeros behind its end; the last byte is its length.
type Key<const K: usize> = [u64; K];

/// The bits of four words that belong to a string of so many bytes.
static MASKS: [[u64; 4]; SHORT_BYTES_MAX + 1] = masks();

const fn masks() -> [[u64; 4]; SHORT_BYTES_MAX + 1] {
    let mut masks = [[0; 4]; SHORT_BYTES_MAX + 1];
    let mut bytes = 0;
    while bytes <= SHORT_BYTES_MAX {
        let mut i = 0;
        while i < bytes {
            masks[bytes][i / 8] |= 0xFF << (i % 8 * 8);
            i += 1;
        }
        bytes += 1;
    }
    masks
}

/// An open-addressing table that holds the keys themselves.
struct Table<const K: usize> {
    /// A key and its number plus one; 0 where there is none.
    slots: Vec<(Key<K>, u32)>,
    shift: u32,
    count: usize,
}

impl<const K: usize> Table<K> {
    /// So many slots at first: few strings are distinct most of the time, and few slots stay in the nearest cache.
    const SLOTS: usize = 256;

    fn new(slots: usize) -> Self {
        Self { slots: vec![([0; K], 0); slots], shift: 64 - slots.trailing_zeros(), count: 0 }
    }

    /// The slot that has the key, or where it belongs; none if it has no room.
    #[inline(always)]
    fn slot(&self, key: &Key<K>) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let start = (hash(key) >> self.shift) as usize;
        (start..start + PROBES_MAX).map(|at| at & mask).find(|at| {
            let (taken, number) = &self.slots[*at];
            taken == key && *number > 0 || *number == 0
        })
    }

    /// Gives a key the next number.
    #[cold]
    fn insert(&mut self, at: usize, key: Key<K>) -> Option<()> {
        self.count += 1;
        // At most 2^16.
        self.slots[at] = (key, self.count as u32);
        if self.count * 4 > self.slots.len() {
            let mut larger = Self::new(self.slots.len() * 4);
            for (key, number) in self.slots.iter().filter(|(_, number)| *number > 0) {
                let at = larger.slot(key)?;
                larger.slots[at] = (*key, *number);
            }
            larger.count = self.count;
            *self = larger;
        }
        Some(())
    }
}

#[inline(always)]
fn hash<const K: usize>(key: &Key<K>) -> u64 {
    const FACTORS: [u64; 4] =
        [0x9E37_79B9_7F4A_7C15, 0x9FB2_1C65_1E98_DF25, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];
    // The products' upper bits depend on all bits of their words, but hardly on the upper ones: hence the fold.
    key.iter().zip(FACTORS).fold(0u64, |sum, (word, factor)| sum.wrapping_add((word ^ word >> 32).wrapping_mul(factor)))
}

/// The key of the string at `start`.
#[inline(always)]
fn key<const K: usize>(data: &[u8], start: usize, bytes: usize) -> Key<K> {
    let mut key = [0; K];
    match data.get(start..start + K * 8) {
        Some(window) => {
            key.iter_mut().zip(window.as_chunks::<8>().0).for_each(|(word, raw)| *word = u64::from_le_bytes(*raw))
        }
        None => key = key_at_end(data, start),
    }
    let bytes = bytes & SHORT_BYTES_MAX;
    key.iter_mut().zip(&MASKS[bytes]).for_each(|(word, mask)| *word &= mask);
    key[K - 1] |= (bytes as u64) << 56;
    key
}

/// Words of which the data has not all bytes.
#[cold]
fn key_at_end<const K: usize>(data: &[u8], start: usize) -> Key<K> {
    let rest = &data[start..];
    let mut padded = [0; SHORT_BYTES_MAX + 1];
    padded[..rest.len()].copy_from_slice(rest);
    let mut key = [0; K];
    key.iter_mut().zip(padded.as_chunks::<8>().0).for_each(|(word, raw)| *word = u64::from_le_bytes(*raw));
    key
}

/// The first of each of the distinct strings, none of which has more than `K * 8 - 1` bytes, and each string's index among them.
/// None if they are more than `count_max`, or take `bytes_max`.
pub(super) fn distinct_short<const K: usize>(
    strings: &Searched<'_>,
    count_max: usize,
    bytes_max: usize,
) -> Option<Distinct<Vec<usize>>> {
    let mut table = Table::<K>::new(Table::<K>::SLOTS);
    let mut entries: Vec<usize> = Vec::new();
    let mut entry_bytes = 0;
    let spans = u32s(strings.offsets).zip(u32s(&strings.offsets[4..]));
    let mut indexes: Vec<Index> = vec![0; spans.len()];
    for (i, (index, (start, end))) in indexes.iter_mut().zip(spans).enumerate() {
        let bytes = (end - start) as usize;
        let key = key::<K>(strings.data, start as usize, bytes);
        let at = table.slot(&key)?;
        let number = table.slots[at].1;
        if number == 0 {
            entry_bytes += bytes + 4;
            if entries.len() == count_max || hopeless(entries.len(), i) || i > 0 && entry_bytes >= bytes_max {
                return None;
            }
            // Fewer than 2^16 entries.
            *index = entries.len() as Index;
            entries.push(i);
            table.insert(at, key)?;
        } else {
            *index = (number - 1) as Index;
        }
    }
    Some(Distinct { entries, indexes })
}
