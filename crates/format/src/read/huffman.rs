//! Huffman codes: `spec/encodings.md` section 3.2.

use bytes::Bytes;

use super::fixed::{Codes, word};
use super::{Destination, Reader};
use crate::error::{Result, refuse};
use crate::huffman::{CODE_BITS_MAX, QUARTERS, VALUES_MAX, codes, quarters};
use crate::word::{Word, for_word};

/// The table is indexed by as many bits as the longest code has.
const PLACES: usize = 1 << CODE_BITS_MAX;
/// Values that are decoded between two loads: their codes fit the bits that are loaded.
const STEP: usize = 4;

const _: () = assert!(STEP * CODE_BITS_MAX <= 56);

/// The code that the next bits begin with: its value in the lower 12 bits, its length in the upper
/// 4.
struct Table(Vec<u16>);

impl Reader<'_, '_> {
    /// n values of `width` bytes. The caller has charged them.
    pub(super) fn huffman(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("huffman");
        if !matches!(width, 1 | 2 | 4 | 8 | 16) {
            refuse!(Bits, "Huffman codes for values of {width} bytes");
        }
        let reference = self.descriptors.take(width, "reference")?;
        let count = self.descriptors.u32("count")? as usize;
        if count > VALUES_MAX {
            refuse!(Bits, "Huffman codes of {count} values, at most {VALUES_MAX}");
        }
        let lengths = self.fixed(count, 1, Codes::CODE_LENGTHS, Destination::Scratch)?;
        let Some(table) = Table::new(&lengths) else {
            refuse!(
                Bits,
                "the lengths of Huffman codes are over {CODE_BITS_MAX}, \
                 or leave bits without a meaning"
            )
        };
        let mut sizes = [0; QUARTERS];
        for size in &mut sizes {
            *size = self.descriptors.u32("size of a quarter")? as usize;
        }
        // Checked before anything is unpacked: a value has at least one bit, and at most those of
        // the longest code.
        for (size, values) in sizes.into_iter().zip(quarters(n)) {
            let (least, most) = (values.div_ceil(8), (values * CODE_BITS_MAX).div_ceil(8));
            if size < least || size > most {
                refuse!(
                    Length,
                    "{size} bytes of Huffman codes for {values} values, expected {least} to {most}"
                );
            }
        }
        let total = sizes.iter().sum();
        let packed = self.buffer(total, Destination::Scratch)?;
        let mut output = self.output(n * width, to)?;
        let out = output.all();
        let decoded = for_word!(
            width,
            [u8 u16 u32 u64 u128],
            decode,
            (&table, &packed, sizes, reference, out),
            else false
        );
        if !decoded {
            refuse!(Length, "{total} bytes of Huffman codes are not those of {n} values");
        }
        output.finish()
    }
}

impl Table {
    fn new(lengths: &[u8]) -> Option<Self> {
        let mut places = vec![0; PLACES];
        for code in codes(lengths)? {
            for place in places[usize::from(code.bits)..].iter_mut().step_by(1 << code.len) {
                // Below 2^12 and 2^4.
                *place = (code.value | code.len << 12) as u16;
            }
        }
        Some(Self(places))
    }
}

/// Decodes the bit strings into `out`. Returns whether they hold exactly as many values.
fn decode<T: Word>(
    table: &Table,
    packed: &[u8],
    sizes: [usize; QUARTERS],
    reference: &[u8],
    out: &mut [u8],
) -> bool {
    let Some(places) = table.0.first_chunk() else { return false };
    let (mut packed, mut out) = (packed, T::slice_mut(out));
    let (counts, reference) = (quarters(out.len()), word::<T>(reference));
    let mut quarter = |i: usize| {
        let (data, rest) = packed.split_at(sizes[i]);
        let (values, others) = std::mem::take(&mut out).split_at_mut(counts[i]);
        (packed, out) = (rest, others);
        Quarter { data, values, reference, bits: 0, left: 0 }
    };
    let (mut a, mut b, mut c, mut d) = (quarter(0), quarter(1), quarter(2), quarter(3));
    while a.step(places) && b.step(places) && c.step(places) && d.step(places) {}
    [a, b, c, d].into_iter().all(|quarter| quarter.finish(places))
}

/// The rest of one bit string, and the memory for its values.
struct Quarter<'a, T: Word> {
    data: &'a [u8],
    values: &'a mut [T::Raw],
    reference: T,
    /// The next bits, already taken from the data; the lowest `left` of them count.
    bits: u64,
    left: u32,
}

impl<T: Word> Quarter<'_, T> {
    /// Decodes [`STEP`] values. Returns false, and decodes none, near the end.
    #[inline(always)]
    fn step(&mut self, places: &[u16; PLACES]) -> bool {
        let (Some(next), STEP..) = (self.data.first_chunk::<8>(), self.values.len()) else {
            return false;
        };
        let (values, rest) = std::mem::take(&mut self.values).split_at_mut(STEP);
        // Bits above `left` are loaded again, and are the same each time.
        self.bits |= u64::from_le_bytes(*next) << self.left;
        self.data = &self.data[(63 - self.left as usize) / 8..];
        self.left |= 56;
        for value in values {
            *value = self.value(places);
        }
        self.values = rest;
        true
    }

    #[inline(always)]
    fn value(&mut self, places: &[u16; PLACES]) -> T::Raw {
        let place = places[self.bits as usize % PLACES];
        let len = place >> 12;
        self.bits >>= len;
        self.left = self.left.wrapping_sub(len.into());
        self.reference.plus_32((place & 0xFFF).into()).raw()
    }

    /// Decodes the rest. Returns whether the data has exactly this many values.
    fn finish(mut self, places: &[u16; PLACES]) -> bool {
        self.bits &= (1 << self.left) - 1;
        for i in 0..self.values.len() {
            self.fill();
            let before = self.left;
            self.values[i] = self.value(places);
            if self.left > before {
                return false;
            }
        }
        self.fill();
        self.data.is_empty() && self.left < 8 && self.bits == 0
    }

    fn fill(&mut self) {
        while let (Some((byte, rest)), 0..=56) = (self.data.split_first(), self.left) {
            self.bits |= u64::from(*byte) << self.left;
            (self.data, self.left) = (rest, self.left + 8);
        }
    }
}
