//! Checks of whole buffers, in one vectorized pass each.

use crate::column::u32_at;
use crate::error::{Result, refuse};
use crate::layout::check_count;
use crate::vector::widest;

widest! {
    fn fall[][](offsets: &[[u8; 4]]) -> bool {
        let next = offsets.get(1..).unwrap_or_default();
        offsets.iter().zip(next).fold(false, |fall, (a, b)| {
            fall | (u32::from_le_bytes(*b) < u32::from_le_bytes(*a))
        })
    }
}

/// Checks that offsets begin with 0 and do not fall, and returns the last. There must be at least
/// one.
pub(super) fn check_offsets(offsets: &[u8]) -> Result<usize> {
    let last = u32_at(offsets, offsets.len() / 4 - 1) as usize;
    if u32_at(offsets, 0) != 0 || fall(offsets.as_chunks().0) {
        refuse!(Offsets, "offsets do not begin with 0, or fall");
    }
    check_count(last)?;
    Ok(last)
}

widest! {
    fn largest[][](integers: &[[u8; 4]]) -> u32 {
        integers.iter().fold(0, |largest, raw| largest.max(u32::from_le_bytes(*raw)))
    }
}

/// Checks that indexes of 32 bits are below `count`, which is at least 1.
pub(super) fn check_indexes(indexes: &[u8], count: usize) -> Result<()> {
    let largest = largest(indexes.as_chunks().0);
    if largest as usize >= count {
        refuse!(Index, "index {largest} into a dictionary of {count} entries");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::tests::at_each_level;

    #[test]
    fn one_wrong_value_is_found_at_every_level() {
        for n in [1, 2, 15, 64, 1000, 5000] {
            for wrong in [0, n / 2, n - 1] {
                let at_all = |expected: bool, check: &dyn Fn() -> bool| {
                    at_each_level(check)
                        .iter()
                        .for_each(|found| assert_eq!(*found, expected, "{wrong} of {n}"));
                };
                let mut integers: Vec<u32> = (0..n as u32).collect();
                let bytes = |integers: &[u32]| {
                    integers.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>()
                };
                let rising = bytes(&integers);
                at_all(true, &|| {
                    check_offsets(&rising).is_ok() && check_indexes(&rising, n).is_ok()
                });
                integers[wrong] = u32::MAX;
                let high = bytes(&integers);
                at_all(false, &|| check_indexes(&high, n).is_ok());
                at_all(false, &|| check_offsets(&high).is_ok());
            }
        }
    }
}
