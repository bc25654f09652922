//! Bit-packing: `spec/encodings.md` section 4.
//!
//! A block of 1024 values is interleaved over lanes, so that the plain loops below compile to vector code on every
//! processor; what is left over is one bit string.

/// Values in a block.
const BLOCK: usize = 1024;
const LANES_32: usize = 32;
const LANES_64: usize = 16;
const BLOCK_BYTES_PER_BIT: usize = BLOCK / 8;

/// The size of `count` values of `bits` bits; none if it can't be expressed.
pub(crate) fn packed_bytes(count: usize, bits: u32) -> Option<usize> {
    let bits = bits as usize;
    let blocks = (count / BLOCK).checked_mul(BLOCK_BYTES_PER_BIT * bits)?;
    blocks.checked_add((count % BLOCK * bits).div_ceil(8))
}

/// Whether a bit of the last byte is set that belongs to no value.
pub(crate) fn has_bits_past_end(packed: &[u8], count: usize, bits: u32) -> bool {
    let used = count % BLOCK * bits as usize % 8;
    used != 0 && packed.last().is_some_and(|last| last >> used != 0)
}

/// The bits that values up to `max` need.
pub(crate) fn bits_for(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

/// Appends `values`, each below 2^bits.
pub(crate) fn pack(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    if bits == 0 {
        return;
    }
    let (blocks, tail) = values.as_chunks::<BLOCK>();
    for block in blocks {
        if bits <= 32 { pack_block_32(block, bits, out) } else { pack_block_64(block, bits, out) }
    }
    pack_tail(tail, bits, out);
}

/// Hands the `count` values packed in `packed` to `sink`, a block or less at a time. `packed` has the size that
/// [`packed_bytes`] gives.
pub(crate) fn unpack(packed: &[u8], count: usize, bits: u32, mut sink: impl FnMut(&[u64])) {
    let mut values = [0u64; BLOCK];
    let (blocks, tail) = packed.split_at(count / BLOCK * BLOCK_BYTES_PER_BIT * bits as usize);
    if bits == 0 {
        (0..count / BLOCK).for_each(|_| sink(&values));
    } else {
        for block in blocks.chunks_exact(BLOCK_BYTES_PER_BIT * bits as usize) {
            if bits <= 32 {
                unpack_block_32(block, bits, &mut values)
            } else {
                unpack_block_64(block, bits, &mut values)
            }
            sink(&values);
        }
    }
    unpack_tail(tail, bits, &mut values[..count % BLOCK]);
    sink(&values[..count % BLOCK]);
}

macro_rules! block {
    ($pack:ident, $unpack:ident, $word:ty, $lanes:ident) => {
        fn $pack(values: &[u64; BLOCK], bits: u32, out: &mut Vec<u8>) {
            const WIDTH: u32 = <$word>::BITS;
            let mut word = [0 as $word; $lanes];
            let mut filled = 0;
            for row in values.as_chunks::<$lanes>().0 {
                for (word, value) in word.iter_mut().zip(row) {
                    // Values are below 2^bits, and bits at most the word's width.
                    *word |= (*value as $word) << filled;
                }
                filled += bits;
                if filled >= WIDTH {
                    word.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
                    filled -= WIDTH;
                    for (word, value) in word.iter_mut().zip(row) {
                        // What did not fit begins the next word; a shift by the whole width means nothing was left.
                        *word = (*value as $word).checked_shr(bits - filled).unwrap_or(0);
                    }
                }
            }
        }

        fn $unpack(packed: &[u8], bits: u32, values: &mut [u64; BLOCK]) {
            const WIDTH: u32 = <$word>::BITS;
            const WORD_BYTES: usize = size_of::<$word>();
            let mask = <$word>::MAX >> (WIDTH - bits);
            let words = packed.as_chunks::<WORD_BYTES>().0.as_chunks::<$lanes>().0;
            let mut from = 0;
            for row in values.as_chunks_mut::<$lanes>().0 {
                let at = (from / WIDTH) as usize;
                let shift = from % WIDTH;
                if shift + bits <= WIDTH {
                    for (value, low) in row.iter_mut().zip(&words[at]) {
                        *value = u64::from(<$word>::from_le_bytes(*low) >> shift & mask);
                    }
                } else {
                    for ((value, low), high) in row.iter_mut().zip(&words[at]).zip(&words[at + 1]) {
                        let both =
                            <$word>::from_le_bytes(*low) >> shift | <$word>::from_le_bytes(*high) << (WIDTH - shift);
                        *value = u64::from(both & mask);
                    }
                }
                from += bits;
            }
        }
    };
}
block!(pack_block_32, unpack_block_32, u32, LANES_32);
block!(pack_block_64, unpack_block_64, u64, LANES_64);

fn pack_tail(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    let mut pending = 0u128;
    let mut filled = 0;
    for value in values {
        pending |= u128::from(*value) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(pending.to_le_bytes()[0]);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(pending.to_le_bytes()[0]);
    }
}

fn unpack_tail(packed: &[u8], bits: u32, values: &mut [u64]) {
    let mask = u128::from(u64::MAX).checked_shr(u64::BITS - bits).unwrap_or(0);
    let mut pending = 0u128;
    let mut filled = 0;
    let mut bytes = packed.iter();
    for value in values {
        while filled < bits {
            pending |= u128::from(bytes.next().copied().unwrap_or(0)) << filled;
            filled += 8;
        }
        // Masked to at most 64 bits.
        *value = (pending & mask) as u64;
        pending >>= bits;
        filled -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_s_example() {
        let mut out = Vec::new();
        pack(&[5, 1, 7], 3, &mut out);
        assert_eq!(out, [0xCD, 0x01]);
    }

    #[test]
    fn every_width_and_remainder_comes_back() {
        let mut seed = 88172645463325252u64;
        for bits in 0..=64 {
            for count in [0, 1, 7, 8, 1023, 1024, 1025, 3000] {
                let values: Vec<u64> = (0..count)
                    .map(|_| {
                        seed ^= seed << 13;
                        seed ^= seed >> 7;
                        seed ^= seed << 17;
                        seed.checked_shr(64 - bits).unwrap_or(0)
                    })
                    .collect();
                let mut packed = Vec::new();
                pack(&values, bits, &mut packed);
                assert_eq!(Some(packed.len()), packed_bytes(count, bits), "{count} values of {bits} bits");
                let mut back = Vec::new();
                unpack(&packed, count, bits, |values| back.extend_from_slice(values));
                assert_eq!(back, values, "{count} values of {bits} bits");
            }
        }
    }
}
