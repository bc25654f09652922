//! Finds the bucket of an entry.

use crate::key::Packed;

/// The bits of an entry that number its slot.
const SLOT_BITS: u32 = 12;

/// The least entries of all buckets but the first.
#[derive(Debug)]
pub(super) struct Splitters<P> {
    /// Ascending, without duplicates.
    splitters: Vec<P>,
    /// For each value of the highest bits of entries, the buckets that such entries may be in: the
    /// first and the last. They are the same for most, so that nothing needs to be compared.
    slots: Vec<[u16; 2]>,
    /// The bits of an entry after those of its slot.
    shift: u32,
}

impl<P: Packed> Splitters<P> {
    /// Splitters for about `buckets` buckets of equal size, from a sample of entries. Entries have
    /// `bits` bits.
    pub fn new(mut samples: Vec<P>, buckets: usize, bits: u32) -> Self {
        samples.sort_unstable();
        let buckets = buckets.min(samples.len()).min(usize::from(u16::MAX));
        let mut splitters: Vec<P> =
            (1..buckets).map(|number| samples[number * samples.len() / buckets]).collect();
        splitters.dedup();
        let shift = bits.saturating_sub(SLOT_BITS);
        let mut slots = vec![[0; 2]; 1 << bits.min(SLOT_BITS)];
        let (mut first, mut rest) = (0, &splitters[..]);
        for (number, slot) in (0..).zip(&mut slots) {
            let slot_of = |splitter: &P| splitter.without(shift).low();
            debug_assert!(rest.iter().all(|splitter| slot_of(splitter) >= number));
            let within = rest.partition_point(|splitter| slot_of(splitter) == number);
            *slot = [first, first + within as u16];
            first += within as u16;
            rest = &rest[within..];
        }
        Self { splitters, slots, shift }
    }

    /// The number of buckets.
    pub fn buckets(&self) -> usize {
        self.splitters.len() + 1
    }

    /// The bucket of an entry: the number of splitters that are not greater.
    #[inline(always)]
    pub fn bucket(&self, entry: P) -> usize {
        let [first, last] = self.slots[entry.without(self.shift).low() as usize].map(usize::from);
        if first == last {
            return first;
        }
        first + self.splitters[first..last].partition_point(|splitter| *splitter <= entry)
    }
}

#[cfg(test)]
mod tests {
    use super::Splitters;
    use crate::key::Packed;

    fn check<P: Packed>(entries: &[P], bits: u32) {
        for buckets in [1, 2, 7, 300] {
            let sample = entries.iter().copied().step_by(3).collect();
            let splitters = Splitters::new(sample, buckets, bits);
            assert!(splitters.buckets() <= buckets);
            assert!(splitters.splitters.is_sorted_by(|a, b| a < b));
            for entry in entries {
                let expected =
                    splitters.splitters.iter().filter(|splitter| *splitter <= entry).count();
                assert_eq!(splitters.bucket(*entry), expected, "{entry:?}, {splitters:?}");
            }
        }
    }

    #[test]
    fn each_entry_is_between_the_splitters_of_its_bucket() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 16
        };
        let rows = if cfg!(miri) { 20 } else { 1000 };
        let entries: Vec<u64> = (0..rows).map(|_| random()).collect();
        check(&entries, 48);
        check(&entries, 64);
        let few: Vec<u64> = entries.iter().map(|entry| entry % 5).collect();
        check(&few, 3);
        check(&few, 40);
        check::<u128>(
            &entries.iter().map(|entry| u128::from(*entry) << 77).collect::<Vec<_>>(),
            125,
        );
        check::<u64>(&[u64::MAX, 0, 1, u64::MAX - 1], 64);
        check::<u64>(&[0, 0], 0);
        check::<u64>(&[], 0);
    }
}
