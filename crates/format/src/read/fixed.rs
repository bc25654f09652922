//! Values of fixed width: `spec/encodings.md` section 2.

use bytes::Bytes;

use super::checks::check_indexes;
use super::{Reader, reserved};
use crate::bitpack::{self, Near};
use crate::column::{u32_at, u32s};
use crate::error::{Result, refuse};
use crate::word::{Word, for_word};

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
                let out = for_word!(width, [u8 u16 u32 u64 u128], repeated, (value, n), else {
                    let mut out = reserved(n * width)?;
                    (0..n).for_each(|_| out.extend_from_slice(value));
                    Ok(out)
                });
                Ok(Bytes::from(out?))
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
        match width {
            1 => unpacked::<u8>(&packed, n, bits, reference),
            2 => unpacked::<u16>(&packed, n, bits, reference),
            4 => unpacked::<u32>(&packed, n, bits, reference),
            8 => unpacked::<u64>(&packed, n, bits, reference),
            _ => unpacked_128(&packed, n, bits, reference),
        }
    }

    fn dictionary(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("dictionary");
        let count = self.dictionary_count(n)?;
        let entries = self.fixed(count, width, Codes::ENTRIES)?;
        let indexes = self.fixed(n, 4, Codes::PARTS)?;
        check_indexes(&indexes, count)?;
        let out = for_word!(width, [u8 u16 u32 u64 u128], gathered, (&entries, &indexes), else {
            let mut out = reserved(n * width)?;
            for index in u32s(&indexes) {
                out.extend_from_slice(&entries[index as usize * width..][..width]);
            }
            Ok(out)
        });
        Ok(Bytes::from(out?))
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
        let out = for_word!(width, [u8 u16 u32 u64 u128], stretched, (&entries, &lengths, n), else {
            let mut out = reserved(n * width)?;
            for (entry, length) in entries.chunks_exact(width).zip(u32s(&lengths)) {
                (0..length).for_each(|_| out.extend_from_slice(entry));
            }
            Ok(out)
        });
        Ok(Bytes::from(out?))
    }

    fn delta(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("delta");
        if !matches!(width, 1 | 2 | 4 | 8) {
            refuse!(Bits, "differences of values of {width} bytes");
        }
        let first = self.descriptors.take(width, "first")?;
        let Some(count) = n.checked_sub(1) else { refuse!(Constant, "the first of no values") };
        let differences = self.fixed(count, width, Codes::PARTS)?;
        let out = match width {
            1 => summed::<u8>(first, &differences),
            2 => summed::<u16>(first, &differences),
            4 => summed::<u32>(first, &differences),
            _ => summed::<u64>(first, &differences),
        };
        Ok(Bytes::from(out?))
    }

    fn patched(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("patched");
        let mut out = self.frame(n, width)?;
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 {
            refuse!(Positions, "no exceptions among {n} values");
        }
        self.exceptions(count, n, width, &mut out)?;
        Ok(Bytes::from(out))
    }

    /// Puts `count` exceptions in their places among n values.
    pub(super) fn exceptions(&mut self, count: usize, n: usize, width: usize, out: &mut [u8]) -> Result<()> {
        if count > n {
            refuse!(Positions, "{count} exceptions among {n} values");
        }
        let positions = self.fixed(count, 4, Codes::INNER)?;
        let rise = u32s(&positions).zip(u32s(&positions[4..])).fold(true, |rise, (a, b)| rise & (a < b));
        if !rise || u32_at(&positions, count - 1) as usize >= n {
            refuse!(Positions, "the positions of exceptions do not rise, or reach {n}");
        }
        let exceptions = self.fixed(count, width, Codes::INNER)?;
        for_word!(width, [u8 u16 u32 u64 u128], patch, (out, &positions, &exceptions), else {});
        Ok(())
    }
}

/// The word at the start of some bytes, which have as many.
fn word<T: Word>(bytes: &[u8]) -> T {
    T::slice(bytes).first().map_or(T::ZERO, T::of)
}

fn unpacked<T: Word + bitpack::Sums<Raw = <T as Word>::Raw>>(
    packed: &[u8],
    n: usize,
    bits: u32,
    reference: &[u8],
) -> Result<Vec<u8>> {
    let mut out = reserved(n)?;
    bitpack::unpack(packed, n, bits, word::<T>(reference), &mut out);
    Ok(T::bytes(out))
}

fn unpacked_128(packed: &[u8], n: usize, bits: u32, reference: &[u8]) -> Result<Vec<u8>> {
    let mut out = reserved(n)?;
    let reference: u128 = word(reference);
    match Near::new(reference.cast_signed(), bits) {
        Some(near) => bitpack::unpack(packed, n, bits, near, &mut out),
        None => bitpack::unpack(packed, n, bits, reference, &mut out),
    }
    Ok(out.into_flattened())
}

/// A value n times.
fn repeated<T: Word>(value: &[u8], n: usize) -> Result<Vec<u8>> {
    let mut out = reserved(n)?;
    out.resize(n, word::<T>(value).raw());
    Ok(T::bytes(out))
}

fn gathered<T: Word>(entries: &[u8], indexes: &[u8]) -> Result<Vec<u8>> {
    Ok(T::bytes(looked_up(T::slice(entries), indexes)?))
}

/// The entry of each index; all indexes are below the number of entries, of which there is one.
pub(super) fn looked_up<R: Copy>(entries: &[R], indexes: &[u8]) -> Result<Vec<R>> {
    /// A table of so many has a place for every index of one byte.
    const FEW: usize = 256;
    let mut out = reserved(indexes.len() / 4)?;
    match entries {
        [first, ..] if entries.len() <= FEW => {
            let mut table = [*first; FEW];
            table[..entries.len()].copy_from_slice(entries);
            let table = &table;
            out.extend(u32s(indexes).map(move |index| table[index as usize % FEW]));
        }
        _ => out.extend(u32s(indexes).map(move |index| entries[index as usize])),
    }
    Ok(out)
}

/// Each entry as often as its length says; n values in all.
fn stretched<T: Word>(entries: &[u8], lengths: &[u8], n: usize) -> Result<Vec<u8>> {
    let mut out = reserved(n)?;
    for (entry, length) in T::slice(entries).iter().zip(u32s(lengths)) {
        out.resize(out.len() + length as usize, *entry);
    }
    Ok(T::bytes(out))
}

/// The first value, and those that the differences make of it.
fn summed<T: Word>(first: &[u8], differences: &[u8]) -> Result<Vec<u8>> {
    let differences = T::slice(differences);
    let mut value = word::<T>(first);
    let mut out = reserved(differences.len() + 1)?;
    out.push(value.raw());
    out.extend(differences.iter().map(|raw| {
        value = value.plus(T::of(raw));
        value.raw()
    }));
    Ok(T::bytes(out))
}

fn patch<T: Word>(out: &mut [u8], positions: &[u8], exceptions: &[u8]) {
    let out = T::slice_mut(out);
    for (exception, position) in T::slice(exceptions).iter().zip(u32s(positions)) {
        out[position as usize] = *exception;
    }
}
