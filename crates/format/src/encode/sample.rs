//! What a few values say of all: whether neighbours are the same, or near each other.

use crate::bitpack::bits_for;

/// So many stretches of so many neighbours are looked at.
const STRETCHES: usize = 4;
const NEIGHBOURS: usize = 64;

/// What was seen among neighbours.
pub(super) struct Sample {
    /// The share of values that differ from the one before, in 1/256.
    changes: usize,
    /// The bits of most differences between neighbours.
    pub(super) difference_bits: u32,
}

impl Sample {
    /// Looks at values of W bytes; none if there are too few.
    pub(super) fn of<const W: usize>(values: &[u8]) -> Option<Self> {
        let values = values.as_chunks::<W>().0;
        let apart = values.len() / STRETCHES;
        if apart < NEIGHBOURS {
            return None;
        }
        let mut differences = Vec::with_capacity(STRETCHES * NEIGHBOURS);
        let mut changes = 0;
        for stretch in values.chunks(apart).take(STRETCHES) {
            for pair in stretch[..NEIGHBOURS].windows(2) {
                changes += usize::from(pair[0] != pair[1]);
                if W <= 8 {
                    differences.push(signed(&pair[1]).wrapping_sub(signed(&pair[0])));
                }
            }
        }
        differences.sort_unstable();
        // The few that are far away would be exceptions.
        let few = differences.len() / 20;
        let most = differences.get(few..differences.len() - few).unwrap_or_default();
        let difference_bits = match most {
            [first, .., last] => bits_for(last.wrapping_sub(*first).cast_unsigned()),
            _ => u64::BITS,
        };
        Some(Self { changes: changes * 256 / (STRETCHES * (NEIGHBOURS - 1)), difference_bits })
    }

    /// How many runs n values likely have.
    pub(super) fn runs(&self, n: usize) -> usize {
        n / 256 * self.changes + 1
    }
}

/// A value of W bytes, sign-extended: differences are taken modulo the width, and are small either way.
fn signed<const W: usize>(raw: &[u8; W]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - W.min(8)..].copy_from_slice(&raw[..W.min(8)]);
    i64::from_le_bytes(wide) >> (64 - 8 * W.min(8))
}
