//! Sorts the entries of a bucket.

use crate::key::Packed;

/// Fewer entries are sorted by comparisons.
const RADIX_MIN: usize = 256;
/// The most bits of a digit.
const DIGIT_BITS_MAX: u32 = 10;
const DIGITS: usize = 1 << DIGIT_BITS_MAX;
/// The bits by which entries are sorted beyond those that number them. With these, few of random
/// entries are equal.
const SPARE_BITS: u32 = 4;

/// Sorts entries whose lowest `location_bits` bits ascend already. `scratch` is used again.
///
/// Least significant digit first (Knuth, "The Art of Computer Programming", volume 3, 5.2.5), but
/// only as many of the highest bits as it takes to tell most entries apart. Entries with equal
/// digits are then next to each other, and are sorted by comparisons.
pub(super) fn sort<P: Packed>(entries: &mut Vec<P>, scratch: &mut Vec<P>, location_bits: u32) {
    let Some(first) = entries.first().copied() else { return };
    let (mut differing, mut last, mut is_sorted) = (P::default(), first, true);
    for entry in entries.iter().copied() {
        differing = differing.or(entry.differing(first));
        is_sorted &= last <= entry;
        last = entry;
    }
    if is_sorted {
        return;
    }
    if entries.len() < RADIX_MIN {
        entries.sort_unstable();
        return;
    }
    let high = differing.bit_length();
    let enough = entries.len().ilog2() + SPARE_BITS;
    let bits = high.saturating_sub(location_bits).min(enough);
    let digits = bits.div_ceil(DIGIT_BITS_MAX);
    let digit_bits = bits.div_ceil(digits.max(1));
    let low = high.saturating_sub(digits * digit_bits).max(location_bits);
    scratch.clear();
    scratch.resize(entries.len(), first);
    for digit in 0..digits {
        scatter(entries, scratch, low + digit * digit_bits, digit_bits);
        std::mem::swap(entries, scratch);
    }
    if low > location_bits {
        sort_groups(entries, low);
    }
    debug_assert!(entries.is_sorted());
}

/// Copies entries to `to`, in the order of the digit at bit `shift`. Entries with equal digits keep
/// their order.
fn scatter<P: Packed>(entries: &[P], to: &mut [P], shift: u32, digit_bits: u32) {
    debug_assert!((1..=DIGIT_BITS_MAX).contains(&digit_bits) && entries.len() == to.len());
    let mask = (1 << digit_bits) - 1;
    let digit = |entry: P| entry.without(shift).low() as usize & mask & (DIGITS - 1);
    let mut starts = [0_usize; DIGITS];
    entries.iter().for_each(|entry| starts[digit(*entry)] += 1);
    let mut start = 0;
    for count in &mut starts[..=mask] {
        start += std::mem::replace(count, start);
    }
    for entry in entries {
        let start = &mut starts[digit(*entry)];
        to[*start] = *entry;
        *start += 1;
    }
}

/// Sorts each group of entries that are equal from bit `low` on.
fn sort_groups<P: Packed>(entries: &mut [P], low: u32) {
    for group in entries.chunk_by_mut(|a, b| a.differing(*b).without(low) == P::default()) {
        if group.len() > 1 {
            group.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sort;
    use crate::key::Packed;

    /// Sorts entries with this many bits of a key, made of random numbers, and their places.
    fn check<P: Packed>(rows: usize, location_bits: u32, key: impl Fn(u64) -> u64) {
        let mut state = rows as u64;
        let mut entries: Vec<P> = (0..rows as u64)
            .map(|row| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let location = if location_bits > 0 { row } else { 0 };
                P::default().append(64, key(state >> 16)).append(location_bits, location)
            })
            .collect();
        let mut expected = entries.clone();
        expected.sort();
        sort(&mut entries, &mut Vec::new(), location_bits);
        assert!(entries == expected, "{rows} rows, {location_bits} bits of locations");
    }

    #[test]
    fn entries_are_sorted_as_by_comparisons() {
        let sizes = if cfg!(miri) { &[0, 1, 300][..] } else { &[0, 1, 2, 255, 256, 300, 5000] };
        for rows in sizes.iter().copied() {
            for location_bits in [0, 13] {
                check::<u128>(rows, location_bits, |random| random);
                check::<u128>(rows, location_bits, |random| random % 3);
                check::<u128>(rows, location_bits, |random| random & 0xFF00_00FF_0000);
                // Most are equal in their highest bits.
                check::<u128>(rows, location_bits, |random| {
                    if random % 50 == 0 { random } else { random % 1000 }
                });
                check::<u128>(rows, location_bits, |_| 7);
            }
            check::<u64>(rows, 0, |random| random);
            check::<u64>(rows, 0, |random| random % 40);
            check::<u64>(rows, 13, |random| random % (1 << 50));
            check::<u64>(rows, 13, |random| random % 2);
        }
    }
}
