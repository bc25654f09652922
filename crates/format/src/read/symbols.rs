//! Strings coded with symbols: `spec/encodings.md` section 3.1.

use bytes::Bytes;

use super::fixed::Codes;
use super::{Destination, Reader};
use crate::error::{Result, refuse};
use crate::symbols::{BYTE_CODES, SYMBOL_BYTES_MAX, SYMBOLS_MAX};

/// The largest number of codes.
const SLOTS: usize = SYMBOLS_MAX + BYTE_CODES;

/// The bytes that each code stands for. Codes that a table does not have stand for none.
struct Slots {
    /// The number of symbols.
    count: usize,
    bytes: Vec<[u8; SYMBOL_BYTES_MAX]>,
    lengths: Vec<u8>,
}

impl Reader<'_, '_> {
    /// The data of strings: `total` bytes, which the caller has checked against the budget.
    pub(super) fn symbols(&mut self, total: usize, to: Destination) -> Result<Bytes> {
        self.note("symbols");
        let slots = match self.descriptors.u8("table")? {
            0 => {
                let (lengths, symbols) = self.symbol_table()?;
                Slots::new(&lengths, &symbols)
            }
            1 => {
                let tables = self.tables;
                let (lengths, symbols) = tables.symbols(self.descriptors.u32("table")?)?;
                Slots::new(lengths, symbols)
            }
            code => refuse!(Code, "unknown table of symbols {code}"),
        };
        let codes = self.descriptors.u32("codes")? as usize;
        // Each code stands for at least one byte.
        if codes > total {
            refuse!(Offsets, "{codes} codes for {total} bytes of strings");
        }
        let codes = self.fixed(codes, 2, Codes::PARTS, Destination::Scratch)?;
        let codes = codes.as_chunks().0;
        let largest =
            codes.iter().fold(0, |largest: u16, code| largest.max(u16::from_le_bytes(*code)));
        if usize::from(largest) >= slots.count + BYTE_CODES {
            refuse!(Index, "code {largest}, of a table of {} symbols", slots.count);
        }
        // Each symbol is copied with a fixed size, and the next copy overwrites the excess. So the
        // buffer is longer than the data.
        let mut output = self.output(total + SYMBOL_BYTES_MAX, to)?;
        if slots.expand(codes, output.all()) != Some(total) {
            refuse!(Offsets, "the codes stand for other than the {total} bytes of the strings");
        }
        Ok(output.finish()?.slice(..total))
    }

    /// The lengths of symbols, at most 3840 of 1 to 16 bytes, and their bytes.
    pub(super) fn symbol_table(&mut self) -> Result<(Bytes, Bytes)> {
        let count = self.descriptors.u32("symbols")? as usize;
        if count > SYMBOLS_MAX {
            refuse!(Symbols, "a table of {count} symbols, over the limit of {SYMBOLS_MAX}");
        }
        let lengths = self.fixed(count, 1, Codes::PARTS, Destination::Scratch)?;
        if let Some(length) =
            lengths.iter().find(|length| !(1..=SYMBOL_BYTES_MAX).contains(&usize::from(**length)))
        {
            refuse!(Symbols, "a symbol of {length} bytes, expected 1 to {SYMBOL_BYTES_MAX}");
        }
        // At most 3840 times 16.
        let symbols = self.buffer(
            lengths.iter().map(|length| usize::from(*length)).sum(),
            Destination::Scratch,
        )?;
        Ok((lengths, symbols))
    }
}

impl Slots {
    fn new(lengths: &[u8], table: &[u8]) -> Self {
        let (bytes, slot_lengths) = (vec![[0; SYMBOL_BYTES_MAX]; SLOTS], vec![0; SLOTS]);
        let mut slots = Self { count: lengths.len(), bytes, lengths: slot_lengths };
        let mut rest = table;
        for ((slot, slot_length), length) in
            slots.bytes.iter_mut().zip(&mut slots.lengths).zip(lengths)
        {
            let (symbol, after) = rest.split_at(usize::from(*length));
            slot[..symbol.len()].copy_from_slice(symbol);
            *slot_length = *length;
            rest = after;
        }
        for (byte, slot) in (0..=u8::MAX).zip(slots.bytes.iter_mut().skip(lengths.len())) {
            slot[0] = byte;
        }
        slots.lengths[lengths.len()..][..BYTE_CODES].fill(1);
        slots
    }

    /// Writes the bytes of the codes, and up to [`SYMBOL_BYTES_MAX`] arbitrary ones after them.
    /// Returns the number of bytes; none if `out` is too short.
    fn expand(&self, codes: &[[u8; 2]], out: &mut [u8]) -> Option<usize> {
        let bytes = self.bytes.first_chunk::<SLOTS>()?;
        let lengths = self.lengths.first_chunk::<SLOTS>()?;
        let mut at = 0;
        for code in codes {
            let code = usize::from(u16::from_le_bytes(*code)) % SLOTS;
            out.get_mut(at..at + SYMBOL_BYTES_MAX)?.copy_from_slice(&bytes[code]);
            at += usize::from(lengths[code]);
        }
        Some(at)
    }
}
