//! Symbols: frequent byte strings that a code stands for (`spec/encodings.md` section 3.1).

/// The most bytes of a symbol.
pub(crate) const SYMBOL_BYTES_MAX: usize = 16;
/// Codes that stand for a byte each, after those of the symbols.
pub(crate) const BYTE_CODES: usize = 256;
/// The most symbols, so that a code has at most 12 bits.
pub(crate) const SYMBOLS_MAX: usize = 4096 - BYTE_CODES;

/// A symbol of 1 to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol {
    /// Zeros after the symbol's last byte.
    bytes: [u8; SYMBOL_BYTES_MAX],
    len: u8,
}

impl Symbol {
    /// A symbol of these bytes, if it can have that many.
    pub(crate) fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; SYMBOL_BYTES_MAX];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        // At most 16.
        (!from.is_empty()).then_some(Self { bytes, len: from.len() as u8 })
    }

    /// This symbol followed by `other`, if that is not too long.
    pub(crate) fn joined(&self, other: &Self) -> Option<Self> {
        let mut bytes = self.bytes;
        let (start, len) = (self.len(), self.len() + other.len());
        bytes.get_mut(start..len)?.copy_from_slice(other.as_slice());
        Some(Self { bytes, len: len as u8 })
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// All 16 bytes as two little-endian words.
    pub(crate) fn words(&self) -> [u64; 2] {
        let [first, rest] = *self.bytes.as_chunks::<8>().0 else { return [0; 2] };
        [u64::from_le_bytes(first), u64::from_le_bytes(rest)]
    }
}
