//! Estimates from a sample of values: runs, differences between neighbours, and distinct values.

use super::fixed_values::Order;
use crate::bitpack::bits_for;
use crate::word::Word;

/// The sample has this many stretches of this many neighbours.
const STRETCHES: usize = 4;
const NEIGHBOURS: usize = 64;
/// The values of a sample from all over the column.
pub(super) const SPREAD: usize = 256;

/// Statistics of neighbours.
pub(super) struct Sample {
    /// The share of values that differ from the one before, in 256ths.
    changes: usize,
    /// The bits of most differences between neighbours.
    pub(super) difference_bits: u32,
    /// The share of differences that take more, in 256ths.
    pub(super) leaps: usize,
}

impl Sample {
    /// Samples neighbours, and their differences if asked; none if there are too few values.
    pub(super) fn of<T: Word>(values: &[u8], with_differences: bool) -> Option<Self> {
        let values = T::slice(values);
        let apart = values.len() / STRETCHES;
        if apart < NEIGHBOURS {
            return None;
        }
        let mut differences = Vec::with_capacity(STRETCHES * NEIGHBOURS);
        let mut changes = 0;
        for stretch in values.chunks(apart).take(STRETCHES) {
            for pair in stretch[..NEIGHBOURS].windows(2) {
                changes += usize::from(pair[0] != pair[1]);
                if with_differences {
                    differences.push(signed(T::of(&pair[1])).wrapping_sub(signed(T::of(&pair[0]))));
                }
            }
        }
        differences.sort_unstable();
        // The few outermost ones would be exceptions.
        let few = differences.len() / 20;
        let most = differences.get(few..differences.len() - few).unwrap_or_default();
        let difference_bits = match most {
            [first, .., last] => bits_for(last.wrapping_sub(*first).cast_unsigned()),
            _ => u64::BITS,
        };
        let first = most.first().copied().unwrap_or_default();
        let leaps = differences
            .iter()
            .filter(|difference| {
                bits_for(difference.wrapping_sub(first).cast_unsigned()) > difference_bits
            })
            .count();
        let seen = STRETCHES * (NEIGHBOURS - 1);
        Some(Self { changes: changes * 256 / seen, difference_bits, leaps: leaps * 256 / seen })
    }

    /// The likely number of runs in n values.
    pub(super) fn runs(&self, n: usize) -> usize {
        n / 256 * self.changes + 1
    }
}

/// A value, sign-extended: differences are taken modulo the width, and are small either way.
fn signed<T: Word>(value: T) -> i64 {
    let unused = u64::BITS - T::BITS.min(u64::BITS);
    (value.low_64() << unused).cast_signed() >> unused
}

/// A sample from all over the column, with [`Order::bias`] flipped and sorted; none if there are
/// too few values.
pub(super) fn spread<T: Word>(values: &[u8], order: Order) -> Option<[u64; SPREAD]> {
    let (values, bias) = (T::slice(values), order.bias::<T>());
    let apart = values.len() / SPREAD;
    if apart == 0 {
        return None;
    }
    let mut keys = [0; SPREAD];
    for (i, (key, values)) in keys.iter_mut().zip(values.chunks_exact(apart)).enumerate() {
        // Not quite evenly spaced: a sample in step with a period would see one value of it.
        let at = i.wrapping_mul(0x9E37_79B9) >> 16;
        *key = T::of(&values[at % apart]).flipped(bias).low_64();
    }
    keys.sort_unstable();
    Some(keys)
}

/// The likely number of distinct values in a column, from a sorted sample: the values seen, and an
/// estimate of the others from how many were seen once and twice (Chao 1984, "Nonparametric
/// estimation of the number of classes in a population"). None if nearly all were seen once, which
/// allows no estimate.
pub(super) fn distinct(sorted: &[u64]) -> Option<usize> {
    let (mut seen, mut once, mut twice) = (0, 0, 0);
    for same in sorted.chunk_by(|a, b| a == b) {
        seen += 1;
        once += usize::from(same.len() == 1);
        twice += usize::from(same.len() == 2);
    }
    match (once, twice) {
        (0, _) => Some(seen),
        (1..8, 0) => Some(seen + once * once / 2),
        (_, 0) => None,
        _ => Some(seen + once * once / (2 * twice)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_estimated() {
        let keys = |count: u64| {
            let mut seed = 88172645463325252u64;
            let mut keys = [0; SPREAD].map(|_: u64| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed % count
            });
            keys.sort_unstable();
            keys
        };
        assert_eq!(distinct(&keys(1)), Some(1));
        assert_eq!(distinct(&keys(50)), Some(50));
        assert!(distinct(&keys(2500)).is_none_or(|count| count > 1000));
        assert_eq!(distinct(&keys(1 << 40)), None);
    }
}
