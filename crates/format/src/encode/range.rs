//! Ranges and differences of values, in vectorized passes.

use super::fixed_values::Order;
use crate::vector::widest;
use crate::word::Word;

/// The frame of some values.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// The bits of the smallest value.
    pub(super) reference: u64,
    /// The distance of the largest value from it.
    pub(super) range: u64,
}

widest! {
    /// The smallest and the largest of at least one value, with `bias` flipped in each.
    fn extremes[T: Word][T](values: &[T::Raw], bias: T) -> (T, T) {
        let (mut min, mut max) = (T::MAX, T::ZERO);
        for raw in values {
            let key = T::of(raw).flipped(bias);
            min = min.min(key);
            max = max.max(key);
        }
        (min, max)
    }
}

/// The smallest value and its distance to the largest; none if there are no values.
pub(super) fn range<T: Word>(values: &[u8], order: Order) -> Option<(T, u64)> {
    let bias = order.bias::<T>();
    let (min, max) = extremes::<T>(T::slice(values), bias);
    (min <= max).then(|| (min.flipped(bias), max.minus(min).low_64()))
}

widest! {
    /// The lower halves of values of 128 bits, and whether these are the whole values: the upper
    /// halves then only repeat the sign.
    fn lower_halves[][](values: &[[u8; 16]]) -> (Vec<[u8; 8]>, bool) {
        const STEP: usize = 64;
        let mut out = Vec::with_capacity(values.len());
        let mut lost = 0;
        let (steps, rest) = values.as_chunks::<STEP>();
        for step in steps {
            let mut halves = [[0; 8]; STEP];
            for (half, raw) in halves.iter_mut().zip(step) {
                let (low, upper) = parts(raw);
                lost |= low >> 63 ^ upper;
                *half = low.to_le_bytes();
            }
            out.extend_from_slice(&halves);
            if lost != 0 {
                return (out, false);
            }
        }
        for raw in rest {
            let (low, upper) = parts(raw);
            lost |= low >> 63 ^ upper;
            out.push(low.to_le_bytes());
        }
        (out, lost == 0)
    }
}

#[inline(always)]
fn parts(raw: &[u8; 16]) -> (i64, i64) {
    let [low, upper] =
        [0, 8].map(|at| raw[at..].first_chunk().map_or(0, |half| i64::from_le_bytes(*half)));
    (low, upper)
}

/// Signed integers of 128 bits as integers of 64, and the base to add to each, if their range
/// allows: either the same integers with base 0, or unsigned distances from the smallest.
pub(super) fn narrowed(values: &[u8]) -> Option<(Vec<u8>, Order, u128)> {
    let values = values.as_chunks::<16>().0;
    if let (halves, true) = lower_halves(values) {
        return Some((halves.into_flattened(), Order::Signed, 0));
    }
    let integers = values.iter().map(|raw| i128::from_le_bytes(*raw));
    let (min, max) = integers
        .clone()
        .fold((i128::MAX, i128::MIN), |(min, max), value| (min.min(value), max.max(value)));
    u64::try_from(max.checked_sub(min)?).ok()?;
    // Each distance is at most the largest, which fits.
    let distances: Vec<[u8; 8]> =
        integers.map(|value| (value.wrapping_sub(min) as u64).to_le_bytes()).collect();
    Some((distances.into_flattened(), Order::Unsigned, min.cast_unsigned()))
}

widest! {
    /// Appends the difference of each value from its base.
    pub(super) fn differences[T: Word][T](
        values: &[T::Raw],
        bases: &[T::Raw],
        out: &mut Vec<T::Raw>,
    ) {
        const STEP: usize = 64;
        let (steps, rest) = values.as_chunks::<STEP>();
        let (bases, rest_bases) = bases.as_chunks::<STEP>();
        for (step, bases) in steps.iter().zip(bases) {
            let mut differences = [T::ZERO.raw(); STEP];
            for ((slot, value), base) in differences.iter_mut().zip(step).zip(bases) {
                *slot = T::of(value).minus(T::of(base)).raw();
            }
            out.extend_from_slice(&differences);
        }
        out.extend(
            rest.iter()
                .zip(rest_bases)
                .map(|(value, base)| T::of(value).minus(T::of(base)).raw()),
        );
    }
}

/// The differences between neighbours.
pub(super) fn neighbours<T: Word>(values: &[T::Raw]) -> Vec<T::Raw> {
    let mut out = Vec::with_capacity(values.len().saturating_sub(1));
    if let (Some((_, next)), Some((_, before))) = (values.split_first(), values.split_last()) {
        differences::<T>(next, before, &mut out);
    }
    out
}

/// The lengths between offsets, and the shortest and the longest of them; 0 if there are none.
pub(super) fn lengths_of(offsets: &[u8]) -> (Vec<[u8; 4]>, usize, usize) {
    let lengths = neighbours::<u32>(u32::slice(offsets));
    let (shortest, longest) = match lengths.is_empty() {
        true => (0, 0),
        false => extremes::<u32>(&lengths, 0),
    };
    (lengths, shortest as usize, longest as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::tests::at_each_level;

    #[test]
    fn wide_values_are_narrowed_without_loss() {
        let of = |values: &[i128]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let levels = at_each_level(|| {
                narrowed(&bytes).map(|(halves, order, base)| {
                    let back = |raw: &[u8; 8]| match order {
                        Order::Signed => i128::from(i64::from_le_bytes(*raw)),
                        _ => i128::from(u64::from_le_bytes(*raw)),
                    };
                    halves
                        .as_chunks()
                        .0
                        .iter()
                        .map(|raw| back(raw).wrapping_add(base.cast_signed()))
                        .collect::<Vec<_>>()
                })
            });
            assert!(levels.windows(2).all(|pair| pair[0] == pair[1]));
            levels.into_iter().next().flatten()
        };
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        for special in [0, -1, least, most, most + 1, least - 1, 1 << 70] {
            for at in [0, 63, 64, 100, 129] {
                let mut values: Vec<i128> = (0..130).map(|i| special.min(0) + (i % 7)).collect();
                values[at] = special;
                let expected =
                    values.iter().max().unwrap_or(&0) - values.iter().min().unwrap_or(&0) < 1 << 64;
                assert_eq!(of(&values), expected.then_some(values), "{special} at {at}");
            }
        }
        assert_eq!(of(&[i128::MIN, i128::MAX]), None);
    }

    #[test]
    fn ranges_and_differences_are_the_same_at_every_level() {
        let values: Vec<u8> =
            (0..800u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        fn check<T: Word + std::fmt::Debug>(values: &[u8])
        where
            T::Raw: std::fmt::Debug,
        {
            let integers: Vec<i128> = T::slice(values)
                .iter()
                .map(|raw| i128::from(T::of(raw).low_64()) << (128 - T::BITS) >> (128 - T::BITS))
                .collect();
            let (min, max) =
                (integers.iter().min().unwrap_or(&0), integers.iter().max().unwrap_or(&0));
            for found in at_each_level(|| range::<T>(values, Order::Signed)) {
                assert_eq!(found, Some((T::truncated(min.cast_unsigned()), (max - min) as u64)));
            }
            for found in at_each_level(|| neighbours::<T>(T::slice(values))) {
                let expected: Vec<_> = integers
                    .windows(2)
                    .map(|pair| T::truncated(pair[1].wrapping_sub(pair[0]).cast_unsigned()).raw())
                    .collect();
                assert_eq!(found, expected);
            }
        }
        check::<u8>(&values);
        check::<u16>(&values);
        check::<u32>(&values);
        check::<u64>(&values);
        assert_eq!(range::<u32>(&[], Order::Unsigned), None);
    }
}
