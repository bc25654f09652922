//! Values of fixed width, which may be sent wider than they are here.

use bytes::Bytes;

use super::range::narrowed;
use super::sample::{SPREAD, spread};
use crate::word::{Word, for_word};

/// How values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Signed,
    Unsigned,
    /// They are not integers.
    None,
}

impl Order {
    /// The bits to flip so that values compare as unsigned integers: the sign.
    pub(super) fn bias<T: Word>(self) -> T {
        match self {
            Self::Signed => T::truncated(1 << (T::BITS - 1)),
            _ => T::ZERO,
        }
    }
}

/// Values of fixed width.
#[derive(Debug, Clone)]
pub(super) struct FixedValues {
    pub(super) bytes: Bytes,
    /// Bytes of a value.
    pub(super) width: usize,
    /// Bytes of a value as it is sent, at most 16 if that differs from `width`. Only integers are
    /// widened.
    pub(super) wire: usize,
    pub(super) order: Order,
    /// Added to each value after widening.
    base: u128,
}

impl FixedValues {
    /// Values that are sent in their own width.
    pub(super) fn new(bytes: Bytes, width: usize, order: Order) -> Self {
        Self { bytes, width, wire: width, order, base: 0 }
    }

    /// Signed integers that are widened.
    pub(super) fn signed(bytes: Bytes, width: usize, wire: usize) -> Self {
        Self { bytes, width, wire, order: Order::Signed, base: 0 }
    }

    /// Lengths, positions or indexes, which are sent as unsigned integers of 32 bits.
    pub(super) fn unsigned(bytes: impl Into<Bytes>, width: usize) -> Self {
        Self { bytes: bytes.into(), width, wire: 4, order: Order::Unsigned, base: 0 }
    }

    /// Other values of the same kind.
    pub(super) fn of(&self, bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::from(bytes), ..self.clone() }
    }

    /// Integers of 16 bytes as integers of 8, if their range fits. Every later pass over them takes
    /// half the time.
    pub(super) fn narrowed(self) -> Self {
        if self.width != 16 || self.order != Order::Signed || self.are_constant() {
            return self;
        }
        match narrowed(&self.bytes) {
            Some((bytes, order, base)) => {
                Self { bytes: Bytes::from(bytes), width: 8, order, base, ..self }
            }
            None => self,
        }
    }

    /// The number of values; 0 if they take no bytes.
    pub(super) fn count(&self) -> usize {
        self.bytes.len().checked_div(self.width).unwrap_or(0)
    }

    /// The bytes of the values unencoded.
    pub(super) fn plain_bytes(&self) -> usize {
        self.count() * self.wire
    }

    /// Whether there are values, and all are equal.
    pub(super) fn are_constant(&self) -> bool {
        is_constant(&self.bytes, self.width)
    }

    /// Whether the specification allows the encoding delta for them.
    pub(super) fn have_differences(&self) -> bool {
        self.order != Order::None && self.wire <= 8
    }

    /// A sorted sample of the whole column.
    pub(super) fn spread(&self) -> Option<[u64; SPREAD]> {
        for_word!(self.width, [u8 u16 u32 u64 u128], spread, (&self.bytes, self.order), else None)
    }

    /// A value as it is sent.
    pub(super) fn widened(&self, value: &[u8]) -> Vec<u8> {
        match self.width == self.wire {
            true => value.to_vec(),
            false => self.extended(value)[..self.wire].to_vec(),
        }
    }

    fn extended(&self, value: &[u8]) -> [u8; 16] {
        let mut wide = [0; 16];
        wide[..self.width].copy_from_slice(value);
        let unused = 128 - 8 * self.width;
        let extended = match self.order {
            Order::Signed => (i128::from_le_bytes(wide) << unused >> unused).cast_unsigned(),
            _ => u128::from_le_bytes(wide),
        };
        extended.wrapping_add(self.base).to_le_bytes()
    }

    /// All values as they are sent.
    pub(super) fn plain(self) -> Bytes {
        if self.width == self.wire {
            return self.bytes;
        }
        // There are few: entries, or values that packing would not make smaller.
        let mut out = Vec::with_capacity(self.plain_bytes());
        for value in self.bytes.chunks_exact(self.width) {
            out.extend_from_slice(&self.extended(value)[..self.wire]);
        }
        Bytes::from(out)
    }
}

/// Whether there are values, and all are equal.
pub(super) fn is_constant(values: &[u8], width: usize) -> bool {
    values.len() >= width && values[width..] == values[..values.len() - width]
}
