//! Huffman codes: which bits stand for which value (`spec/encodings.md` section 3.2).

/// The longest code.
pub(crate) const CODE_BITS_MAX: usize = 13;
/// Values are below this.
pub(crate) const VALUES_MAX: usize = 1 << 12;
/// The number of bit strings that values are divided over, to be decoded side by side.
pub(crate) const QUARTERS: usize = 4;

/// The code of one value. The first bit is the least significant one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) value: usize,
    pub(crate) bits: u16,
    pub(crate) len: usize,
}

/// The canonical codes of these lengths; a value of length 0 has no code. None if a code is longer
/// than [`CODE_BITS_MAX`], or if the codes are not complete.
pub(crate) fn codes(lengths: &[u8]) -> Option<impl Iterator<Item = Code> + '_> {
    let mut counts = [0usize; CODE_BITS_MAX + 1];
    for length in lengths {
        *counts.get_mut(usize::from(*length))? += 1;
    }
    counts[0] = 0;
    let mut next = [0usize; CODE_BITS_MAX + 1];
    let mut code = 0;
    for len in 1..=CODE_BITS_MAX {
        code = (code + counts[len - 1]) << 1;
        next[len] = code;
    }
    if code + counts[CODE_BITS_MAX] != 1 << CODE_BITS_MAX {
        return None;
    }
    Some(lengths.iter().enumerate().filter(|(_, len)| **len > 0).map(move |(value, len)| {
        let len = usize::from(*len);
        // No code of a complete set has more bits than its length.
        let bits = (next[len] as u16).reverse_bits() >> (u16::BITS as usize - len);
        next[len] += 1;
        Code { value, bits, len }
    }))
}

/// The number of values in each quarter of `n`.
pub(crate) fn quarters(n: usize) -> [usize; QUARTERS] {
    let full = n.div_ceil(QUARTERS);
    std::array::from_fn(|quarter| n.saturating_sub(quarter * full).min(full))
}
