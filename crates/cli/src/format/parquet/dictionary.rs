//! The distinct numbers of a column chunk.

use super::number::Number;

/// The least slots of a hash table, a power of two.
const SLOTS_MIN: usize = 1 << 10;
/// The most slots that values have by their distance from the least one. They fit a processor's own
/// cache.
const DIRECT_SLOTS_MAX: u64 = 1 << 17;
/// Slots that are looked at before a dictionary counts as full, so that values made to collide
/// don't make it slow.
const PROBES_MAX: usize = 128;
/// The bytes of a dictionary, which readers hold in memory.
const BYTES_MAX: usize = 1 << 20;
/// The part of the plain values' bytes that a dictionary and its indexes may take. Hashing takes
/// time, so it has to gain more.
const DIRECT_PART_MAX: f64 = 0.9;
const HASHED_PART_MAX: f64 = 0.6;

/// Numbers in the order in which they first came, and where their indexes are.
#[derive(Debug)]
pub(super) struct Dictionary<T> {
    values: Vec<T>,
    /// The index of a value plus 1, or 0.
    slots: Vec<u32>,
    /// The most slots, at least [`SLOTS_MIN`].
    slots_max: usize,
    place: Place,
}

/// Which slot a value has.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// That of its distance from this number.
    Direct { least: i64 },
    /// The first that is free after that of its hash. The number of slots is a power of two.
    Hashed,
}

impl<T: Number> Dictionary<T> {
    /// An empty dictionary, for which slots may take `slot_bytes_max` bytes.
    pub(super) fn new(slot_bytes_max: usize) -> Self {
        Self {
            values: Vec::new(),
            slots: Vec::new(),
            slots_max: (slot_bytes_max / size_of::<u32>()).max(SLOTS_MIN),
            place: Place::Direct { least: 0 },
        }
    }

    /// The bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.values.len() * size_of::<T>() + self.slots.capacity() * size_of::<u32>()
    }

    /// Removes all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.slots.clear();
        self.place = Place::Direct { least: 0 };
    }

    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// The bits of an index.
    pub(super) fn index_bits(&self) -> u32 {
        index_bits(self.values.len())
    }

    /// Puts the indexes of `values` into `indexes`, and adds the values that are new. False if
    /// there is no room for one.
    pub(super) fn indexes(&mut self, values: &[T], indexes: &mut Vec<u32>) -> bool {
        indexes.clear();
        indexes.reserve(values.len());
        if !self.make_room(values) {
            return false;
        }
        let index_of = match self.place {
            Place::Direct { .. } => Self::index_directly,
            Place::Hashed => Self::index_by_hash,
        };
        index_of(self, values, indexes)
    }

    fn index_directly(&mut self, values: &[T], indexes: &mut Vec<u32>) -> bool {
        let Place::Direct { least } = self.place else { return false };
        for value in values {
            let slot = &mut self.slots[distance(*value, least)];
            if *slot == 0 {
                if is_full(&self.values) {
                    return false;
                }
                self.values.push(*value);
                *slot = self.values.len() as u32;
            }
            indexes.push(*slot - 1);
        }
        true
    }

    fn index_by_hash(&mut self, values: &[T], indexes: &mut Vec<u32>) -> bool {
        for value in values {
            match self.index(*value) {
                Some(index) => indexes.push(index),
                None => return false,
            }
        }
        true
    }

    #[inline]
    fn index(&mut self, value: T) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = slot(value, self.slots.len());
        for _ in 0..PROBES_MAX {
            match self.slots[slot] {
                0 => return self.add(value, slot),
                number if self.values[number as usize - 1] == value => return Some(number - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
        None
    }

    fn add(&mut self, value: T, slot: usize) -> Option<u32> {
        if is_full(&self.values) {
            return None;
        }
        let index = self.values.len();
        if (index + 1) * 2 <= self.slots.len() {
            self.slots[slot] = index as u32 + 1;
            self.values.push(value);
        } else {
            let count = self.slots_for(index + 1)?;
            self.values.push(value);
            self.hash(count);
        }
        Some(index as u32)
    }

    /// The number of slots in which so many values are hashed: four for each, or two. `None` if it
    /// is too large.
    fn slots_for(&self, values: usize) -> Option<usize> {
        let count = (4 * values).next_power_of_two().max(SLOTS_MIN);
        [count, count / 2].into_iter().find(|count| *count <= self.slots_max)
    }

    /// Makes slots for the values of a range, or goes over to hashing if it is large. False if
    /// there is no room for them.
    fn make_room(&mut self, values: &[T]) -> bool {
        let Place::Direct { least } = self.place else { return true };
        let range = values.iter().min().zip(values.iter().max());
        let Some((from, to)) = range.map(|(from, to)| (from.number(), to.number())) else {
            return true;
        };
        let last = least.wrapping_add(self.slots.len() as i64 - 1);
        let (from, to) = match self.slots.is_empty() {
            true => (from, to),
            false if least <= from && to <= last => return true,
            false => (from.min(least), to.max(last)),
        };
        match to.abs_diff(from) {
            range if range < DIRECT_SLOTS_MAX.min(self.slots_max as u64) => {
                let before = match self.slots.is_empty() {
                    true => 0,
                    false => least.abs_diff(from) as usize,
                };
                self.slots.resize(range as usize + 1 - before, 0);
                self.slots.splice(..0, std::iter::repeat_n(0, before));
                self.place = Place::Direct { least: from };
            }
            _ => {
                let Some(count) = self.slots_for(self.values.len()) else { return false };
                self.place = Place::Hashed;
                self.hash(count);
            }
        }
        true
    }

    /// Puts all values into as many slots by their hashes.
    #[cold]
    fn hash(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize(count, 0);
        for (value, number) in self.values.iter().zip(1..) {
            let mut slot = slot(*value, count);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (count - 1);
            }
            self.slots[slot] = number;
        }
    }

    /// Whether a dictionary probably makes `rows` values smaller, of which these are some.
    pub(super) fn pays(&mut self, sample: &[T], rows: usize, indexes: &mut Vec<u32>) -> bool {
        self.indexes(sample, indexes) && self.makes_smaller(sample.len(), rows)
    }

    /// Whether it does still, after the first `seen` values: in sorted rows the first ones may be
    /// less varied than the others. Only hashing takes enough time to ask.
    pub(super) fn still_pays(&self, seen: usize, rows: usize) -> bool {
        matches!(self.place, Place::Direct { .. }) || self.makes_smaller(seen, rows)
    }

    fn makes_smaller(&self, seen: usize, rows: usize) -> bool {
        let entries = expected_distinct(self.values.len(), seen, rows);
        let dictionary_bytes = entries * size_of::<T>() as f64;
        let index_bytes = rows as f64 * f64::from(index_bits(entries as usize)) / 8.0;
        let part_max = match self.place {
            Place::Direct { .. } => DIRECT_PART_MAX,
            Place::Hashed => HASHED_PART_MAX,
        };
        let plain_bytes = rows as f64 * size_of::<T>() as f64;
        dictionary_bytes <= BYTES_MAX as f64
            && dictionary_bytes + index_bytes < part_max * plain_bytes
    }
}

fn is_full<T>(values: &[T]) -> bool {
    (values.len() + 1) * size_of::<T>() > BYTES_MAX
}

#[inline]
fn distance<T: Number>(value: T, least: i64) -> usize {
    value.number().wrapping_sub(least) as usize
}

fn index_bits(entries: usize) -> u32 {
    usize::BITS - entries.saturating_sub(1).leading_zeros()
}

#[inline]
fn slot<T: Number>(value: T, slots: usize) -> usize {
    // Fibonacci hashing: the high bits depend on all bits of the value.
    ((value.number() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - slots.trailing_zeros()))
        as usize
}

/// The distinct values that are expected among `rows`, if there are `found` among `sampled`, and
/// each distinct value is equally frequent.
fn expected_distinct(found: usize, sampled: usize, rows: usize) -> f64 {
    if found == sampled {
        return rows as f64;
    }
    let (found, sampled, rows) = (found as f64, sampled as f64, rows as f64);
    // Of n rows, all * (1 - exp(-n / all)) are expected to be distinct. That grows with `all`.
    let expected = |all: f64, rows: f64| all * -(-rows / all).exp_m1();
    let (mut low, mut high) = (found, sampled * sampled);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if expected(middle, sampled) < found { low = middle } else { high = middle }
    }
    expected(high, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexes<T: Number>(dictionary: &mut Dictionary<T>, values: &[T]) -> Option<Vec<u32>> {
        let mut indexes = Vec::new();
        dictionary.indexes(values, &mut indexes).then_some(indexes)
    }

    #[test]
    fn values_have_the_index_of_their_first_occurrence() {
        let mixed = |at: u32| (at % 50_000).wrapping_mul(0x9E37_79B1) as i32;
        let near = |at: u32| (at % 50_000) as i32 - 100;
        // The range of values grows in both directions, at last beyond direct slots.
        let growing = |at: u32| match at % 50_000 {
            at @ ..20_000 => at as i32,
            at @ 20_000..40_000 => 19_999 - at as i32,
            at => i32::MIN + at as i32,
        };
        for value in [mixed, near, growing] {
            let mut dictionary = Dictionary::<i32>::new(usize::MAX);
            for _ in 0..2 {
                for from in (0..200_000).step_by(777) {
                    let values: Vec<i32> = (from..from + 777).map(value).collect();
                    let expected: Vec<u32> = (from..from + 777).map(|at| at % 50_000).collect();
                    assert_eq!(indexes(&mut dictionary, &values), Some(expected));
                }
                assert_eq!(dictionary.values(), (0..50_000).map(value).collect::<Vec<_>>());
                assert_eq!(dictionary.index_bits(), 16);
                dictionary.clear();
            }
        }
    }

    #[test]
    fn values_at_the_ends_of_their_type_are_hashed() {
        let mut dictionary = Dictionary::<i64>::new(usize::MAX);
        let ends = [i64::MAX, i64::MIN, 0, i64::MAX, -1];
        assert_eq!(indexes(&mut dictionary, &ends[..1]), Some(vec![0]));
        assert_eq!(indexes(&mut dictionary, &ends), Some(vec![0, 1, 2, 0, 3]));
        let mut dictionary = Dictionary::<i64>::new(usize::MAX);
        let last = [i64::MAX, i64::MAX - 3, i64::MAX - 9];
        assert_eq!(indexes(&mut dictionary, &last[..1]), Some(vec![0]));
        assert_eq!(indexes(&mut dictionary, &last), Some(vec![0, 1, 2]));
    }

    #[test]
    fn a_dictionary_is_full_at_its_bytes_and_when_values_collide() {
        for step in [1, 1 << 20] {
            let mut dictionary = Dictionary::<i64>::new(usize::MAX);
            let full = (0..200_000).find(|at| indexes(&mut dictionary, &[at * step]).is_none());
            assert_eq!(full, Some(BYTES_MAX as i64 / 8));
        }
        // The inverse of the factor puts the values into one slot.
        let inverse = (0..6).fold(0x9E37_79B9_7F4A_7C15_u64, |inverse: u64, _| {
            let product = inverse.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            inverse.wrapping_mul(2_u64.wrapping_sub(product))
        });
        let mut dictionary = Dictionary::<i64>::new(usize::MAX);
        let colliding = |value: u64| value.wrapping_mul(inverse) as i64;
        let full = (0..1000).find(|at| indexes(&mut dictionary, &[colliding(*at)]).is_none());
        assert_eq!(full, Some(PROBES_MAX as u64));
    }

    #[test]
    fn dictionaries_pay_for_repeated_values() {
        let pays = |distinct: i32| {
            let value = |at: u32| (at.wrapping_mul(0x9E37_79B1) >> 8) as i32 % distinct;
            let sample: Vec<i32> = (0..4096).map(value).collect();
            Dictionary::new(usize::MAX).pays(&sample, 120_000, &mut Vec::new())
        };
        assert!(pays(1) && pays(100) && pays(10_000));
        assert!(!pays(1_000_000) && !pays(i32::MAX));
        assert_eq!(expected_distinct(5, 5, 100), 100.0);
        assert!((expected_distinct(100, 4096, 120_000) - 100.0).abs() < 1.0);
        // 4096 of 10000 values.
        let expected = expected_distinct(3361, 4096, 120_000);
        assert!((9_000.0..11_000.0).contains(&expected), "{expected}");
    }

    #[test]
    fn slots_stay_below_their_limit() {
        for slot_bytes_max in [0, 5000, 100_000, 1 << 20] {
            let slots_max = (slot_bytes_max / 4).max(SLOTS_MIN);
            for step in [1, 1000] {
                let mut dictionary = Dictionary::<i64>::new(slot_bytes_max);
                let mut added = 0;
                while indexes(&mut dictionary, &[added * step]).is_some() {
                    added += 1;
                    assert!(dictionary.slots.len() <= slots_max);
                    assert!(dictionary.bytes() >= added as usize * 8);
                }
                // Room for a value in every fourth slot, at least.
                let least = (slots_max / 4).min(BYTES_MAX / 8);
                assert!(added as usize >= least, "{added} of {slots_max}");
            }
        }
    }

    #[test]
    fn hashed_values_that_become_varied_no_longer_pay() {
        let mut dictionary = Dictionary::<i32>::new(usize::MAX);
        let few: Vec<i32> = (0..20_000).map(|at| at % 500).collect();
        assert!(dictionary.pays(&few[..4096], 120_000, &mut Vec::new()));
        indexes(&mut dictionary, &few).unwrap();
        assert!(dictionary.still_pays(20_000, 120_000));
        // A large range, but still few values.
        indexes(&mut dictionary, &[i32::MAX]).unwrap();
        assert!(dictionary.still_pays(20_001, 120_000));
        let varied: Vec<i32> = (0..20_000_i32).map(|at| at.wrapping_mul(0x1E37_79B1)).collect();
        indexes(&mut dictionary, &varied).unwrap();
        assert!(!dictionary.still_pays(40_001, 120_000));
    }

    #[test]
    fn a_row_group_without_a_limit_may_have_a_dictionary() {
        assert!(Dictionary::new(usize::MAX).pays(&[7_i64; 4096], usize::MAX, &mut Vec::new()));
    }
}
