//! Values below 4096 in Huffman codes: `spec/encodings.md` section 3.2.

use bytes::Bytes;

use super::fixed_values::{FixedValues, Order};
use super::values::EncodedValues;
use crate::error::Result;
use crate::huffman::{CODE_BITS_MAX, QUARTERS, VALUES_MAX, codes, quarters};
use crate::sink::Sink;

/// An upper bound on the descriptors and the padding of one more buffer.
const OVERHEAD_BYTES: usize = 64;
/// Values whose codes are written together: with up to 7 pending bits they fit a word.
const STEP: usize = 4;

const _: () = assert!(7 + STEP * CODE_BITS_MAX <= 64);

/// Values in Huffman codes.
pub(super) struct Huffman {
    lengths: EncodedValues,
    sizes: [usize; QUARTERS],
    packed: Vec<u8>,
    /// About the bytes that they take in the chunk.
    pub(super) bytes: usize,
}

/// The occurrences of each value. All values are below [`VALUES_MAX`].
pub(super) fn counts(values: &[[u8; 2]]) -> Vec<u32> {
    let mut counts = vec![0; VALUES_MAX];
    values.iter().for_each(|raw| counts[usize::from(u16::from_le_bytes(*raw)) % VALUES_MAX] += 1);
    counts
}

/// The entropy of values with these occurrences, in bytes (Shannon 1948).
pub(super) fn entropy_bytes(counts: &[u32]) -> f64 {
    let total = f64::from(counts.iter().sum::<u32>());
    let bits = |count: &u32| f64::from(*count) * (total / f64::from(*count)).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum::<f64>() / 8.0
}

impl Huffman {
    /// Codes these values, if that takes a thirty-second less than `bytes`.
    pub(super) fn of(values: &[[u8; 2]], bytes: usize) -> Option<Self> {
        let bytes_max = bytes / 32 * 31;
        let counts = counts(values);
        if entropy_bytes(&counts) > bytes_max as f64 {
            return None;
        }
        let lengths = lengths(&counts)?;
        let bits: usize = lengths
            .iter()
            .zip(&counts)
            .map(|(len, count)| usize::from(*len) * *count as usize)
            .sum();
        let packed_bytes = bits / 8 + QUARTERS;
        let mut table = [0; VALUES_MAX];
        // At most 13.
        codes(&lengths)?
            .for_each(|code| table[code.value] = u32::from(code.bits) | (code.len as u32) << 16);
        let lengths =
            EncodedValues::new(FixedValues::new(Bytes::from(lengths), 1, Order::Unsigned));
        let bytes = packed_bytes + lengths.bytes + OVERHEAD_BYTES;
        if bytes > bytes_max {
            return None;
        }
        let mut packed = vec![0; packed_bytes + size_of::<u64>()];
        let (mut at, mut rest, mut sizes) = (0, values, [0; QUARTERS]);
        for (size, count) in sizes.iter_mut().zip(quarters(values.len())) {
            let (quarter, others) = rest.split_at(count);
            *size = pack(quarter, &table, &mut packed[at..])?;
            (at, rest) = (at + *size, others);
        }
        packed.truncate(at);
        Some(Self { lengths, sizes, packed, bytes })
    }

    /// Writes the values, and before them the reference that is added to each.
    pub(super) fn write(self, reference: &[u8], sink: &mut Sink) -> Result<()> {
        sink.descriptors.push(10);
        sink.descriptors.extend_from_slice(reference);
        sink.put_u32(self.lengths.count())?;
        self.lengths.write_inner(sink)?;
        self.sizes.into_iter().try_for_each(|size| sink.put_u32(size))?;
        sink.plain_buffer(Bytes::from(self.packed))
    }
}

/// Writes the codes of values to the front of `out` as one bit string, and up to 8 arbitrary bytes
/// after it. Returns the bytes of the string, or none if `out` is too short. `table` has the code
/// of each value in the lower half and its length in the upper half.
fn pack(values: &[[u8; 2]], table: &[u32; VALUES_MAX], out: &mut [u8]) -> Option<usize> {
    let (mut at, mut bits, mut used) = (0, 0u64, 0);
    let mut push = |values: &[[u8; 2]]| {
        for raw in values {
            let code = table[usize::from(u16::from_le_bytes(*raw)) % VALUES_MAX];
            bits |= u64::from(code & 0xFFFF) << used;
            used += code >> 16;
        }
        // All bytes are written, and only whole ones counted: a branch on their number would be
        // unpredictable.
        *out.get_mut(at..)?.first_chunk_mut()? = bits.to_le_bytes();
        at += used as usize / 8;
        bits >>= used / 8 * 8;
        used %= 8;
        Some(())
    };
    let (steps, rest) = values.as_chunks::<STEP>();
    steps.iter().try_for_each(|step| push(step))?;
    push(rest)?;
    Some(at + used.div_ceil(8) as usize)
}

/// The lengths of the codes, up to the last value that occurs; none if fewer than two values occur.
///
/// The tree is made with two queues (van Leeuwen 1976): values sorted by their counts, and inner
/// nodes, which arise in the order of theirs. Codes that are too long are then cut, and the longest
/// of the others made longer until the codes are complete.
fn lengths(counts: &[u32]) -> Option<Vec<u8>> {
    // At most 2^12.
    let mut used: Vec<(u32, u16)> =
        (0..).zip(counts).filter(|(_, n)| **n > 0).map(|(value, n)| (*n, value)).collect();
    let last = used.last()?.1;
    used.sort_unstable();
    let n = used.len();
    if n < 2 {
        return None;
    }
    let mut weights: Vec<u64> = used.iter().map(|(count, _)| u64::from(*count)).collect();
    let mut parents = vec![0; 2 * n - 1];
    let (mut leaf, mut node) = (0, n);
    for parent in n..2 * n - 1 {
        let mut smallest = || {
            let is_leaf = leaf < n && (node == parent || weights[leaf] <= weights[node]);
            let next = if is_leaf { &mut leaf } else { &mut node };
            *next += 1;
            *next - 1
        };
        let (a, b) = (smallest(), smallest());
        (parents[a], parents[b]) = (parent, parent);
        weights.push(weights[a] + weights[b]);
    }
    let mut depths = vec![0; 2 * n - 1];
    let mut codes = [0usize; CODE_BITS_MAX + 1];
    for i in (0..2 * n - 2).rev() {
        depths[i] = depths[parents[i]] + 1;
        if i < n {
            codes[CODE_BITS_MAX.min(depths[i])] += 1;
        }
    }
    // In units of the longest code: cutting has taken more of the code space than there is.
    let taken: usize =
        codes.iter().enumerate().map(|(len, count)| count << (CODE_BITS_MAX - len)).sum();
    for _ in 1 << CODE_BITS_MAX..taken {
        let longest = (1..CODE_BITS_MAX).rev().find(|len| codes[*len] > 0)?;
        // One of the longest codes and a shorter one become two codes, each one bit longer than the
        // shorter.
        codes[CODE_BITS_MAX] -= 1;
        codes[longest] -= 1;
        codes[longest + 1] += 2;
    }
    let mut lengths = vec![0; usize::from(last) + 1];
    let mut rarest = used.iter();
    for (len, count) in codes.iter().enumerate().rev() {
        for (_, value) in rarest.by_ref().take(*count) {
            // At most 13.
            lengths[usize::from(*value)] = len as u8;
        }
    }
    Some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_optimal() {
        assert_eq!(lengths(&[1, 1, 2, 0, 4]), Some(vec![3, 3, 2, 0, 1]));
        assert_eq!(lengths(&[0, 7]), None);
        assert_eq!(lengths(&[]), None);
    }

    #[test]
    fn long_codes_are_cut() {
        // Fibonacci numbers make the deepest tree.
        let fibonacci: Vec<u32> =
            std::iter::successors(Some((1u32, 1u32)), |(a, b)| Some((*b, a + b)))
                .map(|(a, _)| a)
                .take(30)
                .collect();
        let lengths = lengths(&fibonacci).unwrap();
        assert_eq!(lengths.iter().max(), Some(&13));
        assert_eq!(codes(&lengths).unwrap().count(), 30);
        // All values occur, and most of them are rare.
        let mut counts = vec![1; VALUES_MAX];
        counts[..8].fill(1 << 20);
        assert_eq!(codes(&super::lengths(&counts).unwrap()).unwrap().count(), VALUES_MAX);
    }

    #[test]
    fn entropy() {
        assert_eq!(entropy_bytes(&[8, 8, 0, 16]), 6.0);
        assert_eq!(entropy_bytes(&[]), 0.0);
    }
}
