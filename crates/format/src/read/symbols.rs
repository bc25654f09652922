//! Strings coded with symbols: `spec/encodings.md` section 3.1.

use bytes::Bytes;

use super::fixed::Codes;
use super::{Reader, zeros};
use crate::error::{Result, refuse};
use crate::symbols::{BYTE_CODES, SYMBOL_BYTES_MAX, SYMBOLS_MAX};

/// What a code of 12 bits may be.
const SLOTS: usize = SYMBOLS_MAX + BYTE_CODES;

/// What each code stands for. Codes that a table does not have stand for no bytes.
struct Slots {
    bytes: Vec<[u8; SYMBOL_BYTES_MAX]>,
    lengths: Vec<u8>,
}

impl Reader<'_> {
    /// The data of strings, `total` bytes, which the caller has held against what was declared.
    pub(super) fn symbols(&mut self, total: usize) -> Result<Bytes> {
        self.note("symbols");
        match self.descriptors.u8("table")? {
            0 => {}
            code => refuse!(Code, "unknown table of symbols {code}"),
        }
        let count = self.descriptors.u32("symbols")? as usize;
        if count > SYMBOLS_MAX {
            refuse!(Symbols, "a table of {count} symbols, over the limit of {SYMBOLS_MAX}");
        }
        let lengths = self.fixed(count, 1, Codes::PARTS)?;
        if let Some(length) = lengths.iter().find(|length| !(1..=SYMBOL_BYTES_MAX).contains(&usize::from(**length))) {
            refuse!(Symbols, "a symbol of {length} bytes, expected 1 to {SYMBOL_BYTES_MAX}");
        }
        // At most 3840 times 16.
        let table = self.buffer(lengths.iter().map(|length| usize::from(*length)).sum())?;
        let slots = Slots::new(&lengths, &table);
        let codes = self.descriptors.u32("codes")? as usize;
        // Each stands for a byte at least.
        if codes > total {
            refuse!(Offsets, "{codes} codes for {total} bytes of strings");
        }
        let codes = self.fixed(codes, 2, Codes::PARTS)?;
        let codes = codes.as_chunks().0;
        let largest = codes.iter().fold(0, |largest: u16, code| largest.max(u16::from_le_bytes(*code)));
        if usize::from(largest) >= count + BYTE_CODES {
            refuse!(Index, "code {largest}, of a table of {count} symbols");
        }
        match slots.expand(codes, total)? {
            Some(data) => Ok(Bytes::from(data)),
            None => refuse!(Offsets, "the codes stand for other than the {total} bytes of the strings"),
        }
    }
}

impl Slots {
    fn new(lengths: &[u8], table: &[u8]) -> Self {
        let mut slots = Self { bytes: vec![[0; SYMBOL_BYTES_MAX]; SLOTS], lengths: vec![0; SLOTS] };
        let mut rest = table;
        for ((slot, slot_length), length) in slots.bytes.iter_mut().zip(&mut slots.lengths).zip(lengths) {
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

    /// The bytes that the codes stand for, if they are `total`.
    fn expand(&self, codes: &[[u8; 2]], total: usize) -> Result<Option<Vec<u8>>> {
        let (Some(bytes), Some(lengths)) = (self.bytes.first_chunk::<SLOTS>(), self.lengths.first_chunk::<SLOTS>())
        else {
            return Ok(None);
        };
        // A symbol is copied with what lies behind it, so that the copy has a length the compiler knows; the next overwrites that.
        let mut out = zeros(total + SYMBOL_BYTES_MAX)?;
        let mut at = 0;
        for code in codes {
            let code = usize::from(u16::from_le_bytes(*code)) % SLOTS;
            let Some(room) = out.get_mut(at..at + SYMBOL_BYTES_MAX) else { return Ok(None) };
            room.copy_from_slice(&bytes[code]);
            at += usize::from(lengths[code]);
        }
        out.truncate(total);
        Ok((at == total).then_some(out))
    }
}
