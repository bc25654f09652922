//! Distinct short strings. Each is a few words, which are loaded, hashed and compared without a
//! branch on its length.

use super::dictionary::{Distinct, Index, Searched, hopeless};
use crate::numbers::PROBES_MAX;

/// The most bytes of a short string: four words minus one byte for the length.
pub(super) const SHORT_BYTES_MAX: usize = 4 * 8 - 1;

/// A string in K words, with zeros after its end. The last byte is its length plus one, so that no
/// key is zero, which marks an empty slot.
type Key<const K: usize> = [u64; K];

/// The bits of four words that belong to a string, by its length.
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

/// An open-addressing table of keys.
struct Table<const K: usize> {
    /// Keys and their numbers.
    slots: Vec<(Key<K>, u32)>,
    shift: u32,
    count: usize,
}

impl<const K: usize> Table<K> {
    /// The slots of a new table. Most columns have few distinct strings, and a small table stays in
    /// the first-level cache.
    const SLOTS: usize = 256;
    /// A table with fewer slots grows rather than have a key outside of its home slot: looking
    /// twice for every such string costs more than empty slots.
    const ROOMY_SLOTS: usize = 1 << 13;

    fn new(slots: usize) -> Self {
        Self { slots: vec![([0; K], 0); slots], shift: 64 - slots.trailing_zeros(), count: 0 }
    }

    /// The slot where the search for a key begins.
    fn home(&self, key: &Key<K>) -> usize {
        (hash(key) >> self.shift) as usize
    }

    /// The slot with the key, or the free slot for it; none if there is neither.
    fn slot(&self, key: &Key<K>) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let start = self.home(key);
        (start..start + PROBES_MAX).map(|at| at & mask).find(|at| {
            let taken = &self.slots[*at].0;
            taken == key || *taken == [0; K]
        })
    }

    /// Gives a key the next number, and the free slot `at`.
    fn insert(&mut self, at: usize, key: Key<K>) -> Option<()> {
        let mut displaced = at != self.home(&key);
        // Fewer than 2^16.
        self.slots[at] = (key, self.count as u32);
        self.count += 1;
        while self.count * 4 > self.slots.len() || displaced && self.slots.len() < Self::ROOMY_SLOTS
        {
            let mut larger = Self::new(self.slots.len() * 4);
            displaced = false;
            for (key, number) in self.slots.iter().filter(|(key, _)| *key != [0; K]) {
                let at = larger.slot(key)?;
                displaced |= at != larger.home(key);
                larger.slots[at] = (*key, *number);
            }
            larger.count = self.count;
            *self = larger;
        }
        Some(())
    }

    /// Numbers strings until one is not in its home slot, and returns how many it numbered. It
    /// inserts nothing, so that the table's fields stay in registers.
    fn number_known(&self, data: &[u8], offsets: &[[u8; 4]], indexes: &mut [Index]) -> usize {
        let (slots, shift) = (&self.slots[..], self.shift);
        let mask = slots.len() - 1;
        let Some((start, ends)) = offsets.split_first() else { return 0 };
        let mut start = u32::from_le_bytes(*start);
        for (i, (index, end)) in indexes.iter_mut().zip(ends).enumerate() {
            let end = u32::from_le_bytes(*end);
            let key = key::<K>(data, start as usize, (end - start) as usize);
            let (taken, number) = &slots[(hash(&key) >> shift) as usize & mask];
            if key.iter().zip(taken).fold(0, |differs, (a, b)| differs | (a ^ b)) != 0 {
                return i;
            }
            // Fewer than 2^16.
            *index = *number as Index;
            start = end;
        }
        indexes.len()
    }
}

/// Hashes a key. The upper bits of the products depend on all bits of the words.
#[inline(always)]
fn hash<const K: usize>(key: &Key<K>) -> u64 {
    const FACTORS: [u64; 4] = [
        0x9E37_79B9_7F4A_7C15,
        0x9FB2_1C65_1E98_DF25,
        0xD6E8_FEB8_6659_FD93,
        0xA076_1D64_78BD_642F,
    ];
    key.iter()
        .zip(FACTORS)
        .fold(0u64, |sum, (word, factor)| sum.wrapping_add(word.wrapping_mul(factor)))
}

/// The key of the string at `start`.
#[inline(always)]
fn key<const K: usize>(data: &[u8], start: usize, bytes: usize) -> Key<K> {
    let mut key = [0; K];
    match data.get(start..start + K * 8) {
        Some(window) => key
            .iter_mut()
            .zip(window.as_chunks::<8>().0)
            .for_each(|(word, raw)| *word = u64::from_le_bytes(*raw)),
        None => key = key_at_end(data, start),
    }
    let bytes = bytes & SHORT_BYTES_MAX;
    key.iter_mut().zip(&MASKS[bytes]).for_each(|(word, mask)| *word &= mask);
    key[K - 1] |= (bytes as u64 + 1) << 56;
    key
}

/// The words of a string near the end of the data.
#[cold]
fn key_at_end<const K: usize>(data: &[u8], start: usize) -> Key<K> {
    let rest = &data[start..];
    let mut padded = [0; SHORT_BYTES_MAX + 1];
    padded[..rest.len()].copy_from_slice(rest);
    let mut key = [0; K];
    key.iter_mut()
        .zip(padded.as_chunks::<8>().0)
        .for_each(|(word, raw)| *word = u64::from_le_bytes(*raw));
    key
}

/// The first of each of the distinct strings, and the index of each string among them. Strings have
/// at most `K * 8 - 1` bytes. None if there are more than `count_max` distinct strings, or if they
/// take `bytes_max`.
pub(super) fn distinct_short<const K: usize>(
    strings: &Searched<'_>,
    count_max: usize,
    bytes_max: usize,
) -> Option<Distinct<Vec<usize>>> {
    let offsets = strings.offsets.as_chunks::<4>().0;
    let at = |i: usize| u32::from_le_bytes(offsets[i]) as usize;
    let n = offsets.len() - 1;
    let mut table = Table::<K>::new(Table::<K>::SLOTS);
    let mut entries: Vec<usize> = Vec::new();
    let mut entry_bytes = 0;
    let mut indexes: Vec<Index> = vec![0; n];
    let mut i = 0;
    while i < n {
        i += table.number_known(strings.data, &offsets[i..], &mut indexes[i..]);
        if i == n {
            break;
        }
        let bytes = at(i + 1) - at(i);
        let key = key::<K>(strings.data, at(i), bytes);
        let slot = table.slot(&key)?;
        if table.slots[slot].0 == key {
            // Fewer than 2^16.
            indexes[i] = table.slots[slot].1 as Index;
        } else {
            entry_bytes += bytes + 4;
            if entries.len() == count_max
                || hopeless(entries.len(), i)
                || i > 0 && entry_bytes >= bytes_max
            {
                return None;
            }
            indexes[i] = entries.len() as Index;
            entries.push(i);
            table.insert(slot, key)?;
        }
        i += 1;
    }
    Some(Distinct { entries, indexes })
}
