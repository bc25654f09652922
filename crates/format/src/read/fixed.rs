//! Values of fixed width: `spec/encodings.md` section 2.

use bytes::Bytes;

use super::checks::check_indexes;
use super::{Destination, Reader};
use crate::bitpack::{self, NarrowReference};
use crate::column::{u32_at, u32s};
use crate::error::{Result, refuse};
use crate::output::{Appender, Flat, OutputBuffer};
use crate::word::{Word, for_word};

/// A set of encodings: a bit per code.
#[derive(Clone, Copy)]
pub(super) struct Codes(u16);

impl Codes {
    /// For a column's own values.
    pub(super) const VALUES: Self = Self(0b110_1111_1111);
    /// For the parts of an encoding, lengths and indexes: plain, constant, frame, patched and
    /// Huffman.
    pub(super) const PARTS: Self = Self(0b100_0100_0111);
    /// For the lengths of Huffman codes: plain, constant, frame and patched.
    pub(super) const CODE_LENGTHS: Self = Self(0b100_0111);
    /// For the parts of patched: plain, constant and frame.
    pub(super) const INNER: Self = Self(0b000_0111);
    /// For differences from another column: as for parts, and dictionary.
    pub(super) const DIFFERENCES: Self = Self(0b100_0100_1111);
    /// For the entries of a dictionary: plain and constant.
    pub(super) const ENTRIES: Self = Self(0b000_0011);
}

impl Reader<'_, '_> {
    /// n values of `width` bytes in one of the `allowed` encodings. The caller has charged them.
    pub(super) fn fixed(
        &mut self,
        n: usize,
        width: usize,
        allowed: Codes,
        to: Destination,
    ) -> Result<Bytes> {
        let code = self.descriptors.u8("encoding")?;
        if code > 10 || allowed.0 >> code & 1 == 0 {
            refuse!(Code, "encoding {code} is unknown or not allowed here");
        }
        match code {
            0 => self.buffer(n * width, to),
            1 => {
                self.note("constant");
                let value = self.descriptors.take(width, "constant")?;
                if n == 0 {
                    refuse!(Constant, "a constant for no values");
                }
                let mut output = self.output(n * width, to)?;
                for_word!(width, [u8 u16 u32 u64 u128], repeat, (value, n, &mut output), else {
                    output.append(|out| (0..n).for_each(|_| out.extend_from_slice(value)));
                });
                output.finish()
            }
            2 => {
                self.note("frame");
                self.frame(n, width, to)?.finish()
            }
            3 => self.dictionary(n, width, to),
            4 => self.runs(n, width, to),
            5 => self.delta(n, width, to),
            6 => self.patched(n, width, to),
            7 => self.decimals(n, width, to),
            10 => self.huffman(n, width, to),
            _ => {
                self.note("stream dictionary");
                let tables = self.tables;
                let entries = tables.fixed(self.descriptors.u32("table")?, width)?;
                self.dictionary_values(n, width, entries, to)
            }
        }
    }

    /// n values of a frame. The buffer may still be changed.
    fn frame(&mut self, n: usize, width: usize, to: Destination) -> Result<OutputBuffer> {
        let bits = u32::from(self.descriptors.u8("bits")?);
        if !matches!(width, 1 | 2 | 4 | 8 | 16) || bits > 64 || bits as usize > width * 8 {
            refuse!(Bits, "a frame of {bits} bits for values of {width} bytes");
        }
        let reference = self.descriptors.take(width, "reference")?;
        let Some(packed_bytes) = bitpack::packed_bytes(n, bits) else {
            refuse!(Limit, "{n} values are too many")
        };
        let packed = self.buffer(packed_bytes, Destination::Scratch)?;
        if bitpack::has_bits_past_end(&packed, n, bits) {
            refuse!(Bitmap, "bits are set past the end of {n} values of {bits} bits");
        }
        let mut output = self.output(n * width, to)?;
        match width {
            1 => output.append(|out| bitpack::unpack(&packed, n, bits, word::<u8>(reference), out)),
            2 => {
                output.append(|out| bitpack::unpack(&packed, n, bits, word::<u16>(reference), out))
            }
            4 => {
                output.append(|out| bitpack::unpack(&packed, n, bits, word::<u32>(reference), out))
            }
            8 => {
                output.append(|out| bitpack::unpack(&packed, n, bits, word::<u64>(reference), out))
            }
            _ => output.append(|out| unpack_128(&packed, n, bits, word(reference), out)),
        }
        Ok(output)
    }

    fn dictionary(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("dictionary");
        let count = self.dictionary_count(n)?;
        let entries = self.fixed(count, width, Codes::ENTRIES, Destination::Scratch)?;
        self.dictionary_values(n, width, &entries, to)
    }

    pub(super) fn dictionary_count(&mut self, n: usize) -> Result<usize> {
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 || count > n {
            refuse!(Index, "a dictionary of {count} entries for {n} values");
        }
        Ok(count)
    }

    /// n values given by their indexes into `entries`.
    fn dictionary_values(
        &mut self,
        n: usize,
        width: usize,
        entries: &[u8],
        to: Destination,
    ) -> Result<Bytes> {
        let indexes = self.fixed(n, 4, Codes::PARTS, Destination::Scratch)?;
        check_indexes(&indexes, entries.len() / width)?;
        let mut output = self.output(n * width, to)?;
        for_word!(width, [u8 u16 u32 u64 u128], gather, (entries, &indexes, &mut output), else {
            output.append(|out| {
                u32s(&indexes).for_each(|index| {
                    out.extend_from_slice(&entries[index as usize * width..][..width]);
                });
            });
        });
        output.finish()
    }

    fn runs(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("runs");
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 || count > n {
            refuse!(Runs, "{count} runs of {n} values");
        }
        let entries = self.fixed(count, width, Codes::PARTS, Destination::Scratch)?;
        let lengths = self.fixed(count, 4, Codes::PARTS, Destination::Scratch)?;
        let total = u32s(&lengths).try_fold(0, |total: usize, length| match length {
            0 => None,
            length => total.checked_add(length as usize),
        });
        if total != Some(n) {
            refuse!(Runs, "{count} runs do not make {n} values");
        }
        let mut output = self.output(n * width, to)?;
        for_word!(width, [u8 u16 u32 u64 u128], stretch, (&entries, &lengths, &mut output), else {
            output.append(|out| {
                for (entry, length) in entries.chunks_exact(width).zip(u32s(&lengths)) {
                    (0..length).for_each(|_| out.extend_from_slice(entry));
                }
            });
        });
        output.finish()
    }

    fn delta(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("delta");
        if !matches!(width, 1 | 2 | 4 | 8) {
            refuse!(Bits, "differences of values of {width} bytes");
        }
        let first = self.descriptors.take(width, "first")?;
        let Some(count) = n.checked_sub(1) else { refuse!(Constant, "the first of no values") };
        let differences = self.fixed(count, width, Codes::PARTS, Destination::Scratch)?;
        let mut output = self.output(n * width, to)?;
        match width {
            1 => sum::<u8>(first, &differences, &mut output),
            2 => sum::<u16>(first, &differences, &mut output),
            4 => sum::<u32>(first, &differences, &mut output),
            _ => sum::<u64>(first, &differences, &mut output),
        }
        output.finish()
    }

    fn patched(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("patched");
        let mut output = self.frame(n, width, to)?;
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 {
            refuse!(Positions, "no exceptions among {n} values");
        }
        self.exceptions(count, n, width, output.written())?;
        output.finish()
    }

    /// Writes `count` exceptions over their places among n values.
    pub(super) fn exceptions(
        &mut self,
        count: usize,
        n: usize,
        width: usize,
        out: &mut [u8],
    ) -> Result<()> {
        if count > n {
            refuse!(Positions, "{count} exceptions among {n} values");
        }
        let positions = self.fixed(count, 4, Codes::INNER, Destination::Scratch)?;
        let rise =
            u32s(&positions).zip(u32s(&positions[4..])).fold(true, |rise, (a, b)| rise & (a < b));
        if !rise || u32_at(&positions, count - 1) as usize >= n {
            refuse!(Positions, "the positions of exceptions do not rise, or reach {n}");
        }
        let exceptions = self.fixed(count, width, Codes::INNER, Destination::Scratch)?;
        for_word!(width, [u8 u16 u32 u64 u128], patch, (out, &positions, &exceptions), else {});
        Ok(())
    }
}

/// The word that these bytes begin with.
pub(super) fn word<T: Word>(bytes: &[u8]) -> T {
    T::slice(bytes).first().map_or(T::ZERO, T::of)
}

fn unpack_128(
    packed: &[u8],
    n: usize,
    bits: u32,
    reference: u128,
    out: &mut Appender<'_, [u8; 16]>,
) {
    match NarrowReference::new(reference.cast_signed(), bits) {
        Some(narrow) => bitpack::unpack(packed, n, bits, narrow, out),
        None => bitpack::unpack(packed, n, bits, reference, out),
    }
}

/// Writes a value n times.
fn repeat<T: Word>(value: &[u8], n: usize, output: &mut OutputBuffer) {
    output.append(|out| out.repeat(word::<T>(value).raw(), n));
}

/// Writes the entry of each index.
fn gather<T: Word>(entries: &[u8], indexes: &[u8], output: &mut OutputBuffer) {
    output.append(|out| look_up(T::slice(entries), indexes, out));
}

/// Appends the entry of each index. All indexes are in range, and there is at least one entry.
pub(super) fn look_up<R: Flat>(entries: &[R], indexes: &[u8], out: &mut Appender<'_, R>) {
    /// A table of this size has a place for every index of one byte, so that no index is checked.
    const FEW: usize = 256;
    match entries {
        [first, ..] if entries.len() <= FEW => {
            let mut table = [*first; FEW];
            table[..entries.len()].copy_from_slice(entries);
            let table = &table;
            out.extend(u32s(indexes).map(move |index| table[index as usize % FEW]));
        }
        _ => out.extend(u32s(indexes).map(move |index| entries[index as usize])),
    }
}

/// Writes each entry as often as its length says.
fn stretch<T: Word>(entries: &[u8], lengths: &[u8], output: &mut OutputBuffer) {
    output.append(|out| {
        for (entry, length) in T::slice(entries).iter().zip(u32s(lengths)) {
            out.repeat(*entry, length as usize);
        }
    });
}

/// Writes the first value, and the running sums with the differences.
fn sum<T: Word>(first: &[u8], differences: &[u8], output: &mut OutputBuffer) {
    output.append(|out| {
        // As a local of the closure it stays in a register.
        let mut value = word::<T>(first);
        out.push(value.raw());
        out.extend(T::slice(differences).iter().map(|raw| {
            value = value.plus(T::of(raw));
            value.raw()
        }));
    });
}

/// Writes exceptions over their places.
fn patch<T: Word>(out: &mut [u8], positions: &[u8], exceptions: &[u8]) {
    let out = T::slice_mut(out);
    for (exception, position) in T::slice(exceptions).iter().zip(u32s(positions)) {
        out[position as usize] = *exception;
    }
}
