//! The distinct numbers of a column chunk.

use super::number::Number;

/// The slots of a new dictionary, a power of two.
const SLOTS_MIN: usize = 1 << 10;
/// Slots that are looked at before a dictionary counts as full, so that values made to collide
/// don't make it slow.
const PROBES_MAX: usize = 128;
/// The bytes of a dictionary, which readers hold in memory.
const BYTES_MAX: usize = 1 << 20;
/// The part of the plain values that a dictionary and its indexes may take.
const GAIN_NUMERATOR: f64 = 0.9;

/// Numbers in the order in which they first came, and a hash table of their indexes.
#[derive(Debug)]
pub(super) struct Dictionary<T> {
    values: Vec<T>,
    /// The index of a value plus 1, or 0. The number is a power of two.
    slots: Vec<u32>,
}

impl<T: Number> Dictionary<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), slots: vec![0; SLOTS_MIN] }
    }

    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// The bits of an index.
    pub(super) fn index_bits(&self) -> u32 {
        index_bits(self.values.len())
    }

    /// The index of a value, which is added if it is new. None if there is no room for it.
    #[inline]
    pub(super) fn index(&mut self, value: T) -> Option<u32> {
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
        if (self.values.len() + 1) * size_of::<T>() > BYTES_MAX {
            return None;
        }
        self.values.push(value);
        let number = self.values.len() as u32;
        self.slots[slot] = number;
        if self.values.len() * 2 > self.slots.len() {
            self.grow();
        }
        Some(number - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; 4 * self.slots.len()];
        let mask = slots.len() - 1;
        for (value, number) in self.values.iter().zip(1..) {
            let mut slot = slot(*value, slots.len());
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number;
        }
        self.slots = slots;
    }

    /// Whether a dictionary probably makes `rows` values smaller, of which these are some.
    pub(super) fn pays(&mut self, sample: &[T], rows: usize) -> bool {
        if sample.iter().any(|value| self.index(*value).is_none()) {
            return false;
        }
        let entries = expected_distinct(self.values.len(), sample.len(), rows);
        let dictionary_bytes = entries * size_of::<T>() as f64;
        let index_bytes = rows as f64 * f64::from(index_bits(entries as usize)) / 8.0;
        let plain_bytes = (rows * size_of::<T>()) as f64;
        dictionary_bytes <= BYTES_MAX as f64
            && dictionary_bytes + index_bytes < GAIN_NUMERATOR * plain_bytes
    }
}

fn index_bits(entries: usize) -> u32 {
    usize::BITS - entries.saturating_sub(1).leading_zeros()
}

#[inline]
fn slot<T: Number>(value: T, slots: usize) -> usize {
    // Fibonacci hashing: the high bits depend on all bits of the value.
    (value.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - slots.trailing_zeros())) as usize
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

    #[test]
    fn values_have_the_index_of_their_first_occurrence() {
        let mut dictionary = Dictionary::<i32>::new();
        let value = |at: u32| (at % 50_000).wrapping_mul(0x9E37_79B1) as i32;
        for at in 0..200_000 {
            assert_eq!(dictionary.index(value(at)), Some(at % 50_000));
        }
        assert_eq!(dictionary.values(), (0..50_000).map(value).collect::<Vec<_>>());
        assert_eq!(dictionary.index_bits(), 16);
    }

    #[test]
    fn a_dictionary_is_full_at_its_bytes_and_when_values_collide() {
        let mut dictionary = Dictionary::<i64>::new();
        let full = (0..).find(|value| dictionary.index(*value).is_none());
        assert_eq!(full, Some(BYTES_MAX as i64 / 8));
        // The inverse of the factor puts the values into one slot.
        let inverse = (0..6).fold(0x9E37_79B9_7F4A_7C15_u64, |inverse: u64, _| {
            let product = inverse.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            inverse.wrapping_mul(2_u64.wrapping_sub(product))
        });
        let mut dictionary = Dictionary::<i64>::new();
        let colliding = |value: u64| value.wrapping_mul(inverse) as i64;
        let full = (0..).find(|value| dictionary.index(colliding(*value)).is_none());
        assert_eq!(full, Some(PROBES_MAX as u64));
    }

    #[test]
    fn dictionaries_pay_for_repeated_values() {
        let pays = |distinct: i32| {
            let value = |at: u32| (at.wrapping_mul(0x9E37_79B1) >> 8) as i32 % distinct;
            Dictionary::new().pays(&(0..4096).map(value).collect::<Vec<i32>>(), 120_000)
        };
        assert!(pays(1) && pays(100) && pays(10_000));
        assert!(!pays(1_000_000) && !pays(i32::MAX));
        assert_eq!(expected_distinct(5, 5, 100), 100.0);
        assert!((expected_distinct(100, 4096, 120_000) - 100.0).abs() < 1.0);
        // 4096 of 10000 values.
        let expected = expected_distinct(3361, 4096, 120_000);
        assert!((9_000.0..11_000.0).contains(&expected), "{expected}");
    }
}
