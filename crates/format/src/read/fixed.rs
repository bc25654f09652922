//! Values of fixed width: `spec/encodings.md` section 2.

use bytes::Bytes;

use super::{Reader, check_indexes, repeat, reserved};
use crate::bitpack;
use crate::column::{u32_at, u32s};
use crate::error::{Result, refuse};

/// Encodings that are allowed somewhere: a bit a code.
#[derive(Clone, Copy)]
pub(super) struct Codes(u8);

impl Codes {
    /// A column's own values.
    pub(super) const VALUES: Self = Self(0b1111_1111);
    /// Parts of an encoding, lengths and indexes: plain, constant, frame and patched.
    pub(super) const PARTS: Self = Self(0b100_0111);
    /// Parts of patched: plain, constant and frame.
    pub(super) const INNER: Self = Self(0b000_0111);
    /// Entries of a dictionary: plain and constant.
    const ENTRIES: Self = Self(0b000_0011);
}

/// Calls a function for the width, where it is one of these.
macro_rules! for_width {
    ($width:expr, [$($w:literal)*], $function:ident, $arguments:tt, else $other:expr) => {
        match $width { $($w => $function::<$w>$arguments,)* _ => $other }
    };
}

impl Reader<'_> {
    /// n values of `width` bytes, plain. The caller has charged them.
    pub(super) fn fixed(&mut self, n: usize, width: usize, allowed: Codes) -> Result<Bytes> {
        let code = self.descriptors.u8("encoding")?;
        if code > 7 || allowed.0 >> code & 1 == 0 {
            refuse!(Code, "encoding {code} is unknown or not allowed here");
        }
        match code {
            0 => self.buffer(n * width),
            1 => {
                self.note("constant");
                let value = self.descriptors.take(width, "constant")?;
                if n == 0 {
                    refuse!(Constant, "a constant for no values");
                }
                let mut out = reserved(n * width)?;
                repeat(value, n, &mut out);
                Ok(Bytes::from(out))
            }
            2 => {
                self.note("frame");
                Ok(Bytes::from(self.frame(n, width)?))
            }
            3 => self.dictionary(n, width),
            4 => self.runs(n, width),
            5 => self.delta(n, width),
            6 => self.patched(n, width),
            _ => self.decimals(n, width),
        }
    }

    fn frame(&mut self, n: usize, width: usize) -> Result<Vec<u8>> {
        let bits = u32::from(self.descriptors.u8("bits")?);
        if !matches!(width, 1 | 2 | 4 | 8 | 16) || bits > 64 || bits as usize > width * 8 {
            refuse!(Bits, "a frame of {bits} bits for values of {width} bytes");
        }
        let reference = self.descriptors.take(width, "reference")?;
        let Some(packed_bytes) = bitpack::packed_bytes(n, bits) else { refuse!(Limit, "{n} values are too many") };
        let packed = self.buffer(packed_bytes)?;
        if bitpack::has_bits_past_end(&packed, n, bits) {
            refuse!(Bitmap, "bits are set past the end of {n} values of {bits} bits");
        }
        let mut out = reserved(n * width)?;
        for_width!(width, [1 2 4 8 16], unpack_frame, (&packed, n, bits, reference, &mut out), else {});
        Ok(out)
    }

    fn dictionary(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("dictionary");
        let count = self.dictionary_count(n)?;
        let entries = self.fixed(count, width, Codes::ENTRIES)?;
        let indexes = self.fixed(n, 4, Codes::PARTS)?;
        check_indexes(u32s(&indexes), count)?;
        let mut out = reserved(n * width)?;
        for_width!(width, [1 2 4 8 16], gather, (&entries, &indexes, &mut out), else {
            for index in u32s(&indexes) {
                out.extend_from_slice(&entries[index as usize * width..][..width]);
            }
        });
        Ok(Bytes::from(out))
    }

    fn runs(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("runs");
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 || count > n {
            refuse!(Runs, "{count} runs of {n} values");
        }
        let entries = self.fixed(count, width, Codes::PARTS)?;
        let lengths = self.fixed(count, 4, Codes::PARTS)?;
        let total = u32s(&lengths).try_fold(0, |total: usize, length| match length {
            0 => None,
            length => total.checked_add(length as usize),
        });
        if total != Some(n) {
            refuse!(Runs, "{count} runs do not make {n} values");
        }
        let mut out = reserved(n * width)?;
        for (entry, length) in entries.chunks_exact(width).zip(u32s(&lengths)) {
            repeat(entry, length as usize, &mut out);
        }
        Ok(Bytes::from(out))
    }

    fn delta(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("delta");
        if !matches!(width, 1 | 2 | 4 | 8) {
            refuse!(Bits, "differences of values of {width} bytes");
        }
        let first = self.descriptors.take(width, "first")?;
        let Some(count) = n.checked_sub(1) else { refuse!(Constant, "the first of no values") };
        let differences = self.fixed(count, width, Codes::PARTS)?;
        let mut out = reserved(n * width)?;
        out.extend_from_slice(first);
        for_width!(width, [1 2 4 8], sum_up, (&differences, &mut out), else {});
        Ok(Bytes::from(out))
    }

    fn patched(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("patched");
        let mut out = self.frame(n, width)?;
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 || count > n {
            refuse!(Positions, "{count} exceptions among {n} values");
        }
        let positions = self.fixed(count, 4, Codes::INNER)?;
        let rise = u32s(&positions).zip(u32s(&positions[4..])).fold(true, |rise, (a, b)| rise & (a < b));
        if !rise || u32_at(&positions, count - 1) as usize >= n {
            refuse!(Positions, "the positions of exceptions do not rise, or reach {n}");
        }
        let exceptions = self.fixed(count, width, Codes::INNER)?;
        for (exception, position) in exceptions.chunks_exact(width).zip(u32s(&positions)) {
            out[position as usize * width..][..width].copy_from_slice(exception);
        }
        Ok(Bytes::from(out))
    }
}

fn unpack_frame<const W: usize>(packed: &[u8], n: usize, bits: u32, reference: &[u8], out: &mut Vec<u8>) {
    let mut wide = [0; 16];
    wide[..W].copy_from_slice(reference);
    let reference = u128::from_le_bytes(wide);
    match bits {
        // At these widths packing is no packing.
        32 => return add_reference::<4, W>(packed, reference, out),
        64 => return add_reference::<8, W>(packed, reference, out),
        _ => {}
    }
    // Bytes above the width drop out: the sum is taken modulo 2^(8W).
    let low = reference as u64;
    bitpack::unpack(packed, n, bits, |values| {
        let start = out.len();
        out.resize(start + values.len() * W, 0);
        let slots = out[start..].as_chunks_mut::<W>().0;
        for (slot, value) in slots.iter_mut().zip(values) {
            if W <= 8 {
                slot.copy_from_slice(&low.wrapping_add(*value).to_le_bytes()[..W]);
            } else {
                slot.copy_from_slice(&reference.wrapping_add(u128::from(*value)).to_le_bytes()[..W]);
            }
        }
    });
}

/// Appends the sums of the reference and integers of B bytes, modulo 2^(8W).
fn add_reference<const B: usize, const W: usize>(values: &[u8], reference: u128, out: &mut Vec<u8>) {
    let sums = values.as_chunks::<B>().0.iter().map(|raw| {
        let mut wide = [0; 16];
        wide[..B].copy_from_slice(raw);
        let sum = reference.wrapping_add(u128::from_le_bytes(wide)).to_le_bytes();
        *sum.first_chunk::<W>().unwrap_or(&[0; W])
    });
    let start = out.len();
    out.resize(start + sums.len() * W, 0);
    out[start..].as_chunks_mut::<W>().0.iter_mut().zip(sums).for_each(|(slot, sum)| *slot = sum);
}

fn gather<const W: usize>(entries: &[u8], indexes: &[u8], out: &mut Vec<u8>) {
    let entries = entries.as_chunks::<W>().0;
    out.extend(u32s(indexes).flat_map(|index| entries[index as usize]));
}

/// Appends to the one value in `out` those that the differences make of it.
fn sum_up<const W: usize>(differences: &[u8], out: &mut Vec<u8>) {
    let integer = |raw: &[u8]| {
        let mut wide = [0; 8];
        wide[..W].copy_from_slice(raw);
        u64::from_le_bytes(wide)
    };
    let mut value = integer(out);
    let start = out.len();
    out.resize(start + differences.len(), 0);
    let slots = out[start..].as_chunks_mut::<W>().0;
    for (slot, difference) in slots.iter_mut().zip(differences.as_chunks::<W>().0) {
        value = value.wrapping_add(integer(difference));
        slot.copy_from_slice(&value.to_le_bytes()[..W]);
    }
}
