//! Finds the longest symbol that some bytes begin with, without a branch.
//!
//! Four tables are probed at once, by the first 2, 3, 4 and 8 bytes. A slot holds few symbols; a
//! candidate that does not fit is dropped. (FSST, by Boncz, Neumann and Leis 2020, drops symbols in
//! the same way, with one table.)
//!
//! ```text
//! bytes  c a r e f u l l y _ d e …
//!        └─┘ pairs       2 bytes, or 1
//!        └───┘ triples   3
//!        └─────┘ short   4 to 7, up to 3 a slot
//!        └─────────────┘ long   8 to 16, up to 3 a slot
//! ```

use std::hint::select_unpredictable;

use crate::symbols::{BYTE_CODES, SYMBOLS_MAX, Symbol};

/// The most symbols in a slot.
const SLOT_SYMBOLS: usize = 3;
// All tables together take 300 KB: that they stay in the cache matters more than that every symbol
// fits.
const TRIPLE_BITS: u32 = 12;
const SHORT_BITS: u32 = 10;
const LONG_BITS: u32 = 10;

/// A code in the lower 12 bits, and the length of its symbol minus one in the upper 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found(u16);

const _: () = assert!(SYMBOLS_MAX + BYTE_CODES <= 1 << 12);

impl Found {
    fn new(code: usize, len: usize) -> Self {
        // At most 4095 and 15.
        Self((code | (len - 1) << 12) as u16)
    }

    pub(super) fn code(self) -> u16 {
        self.0 & 0xFFF
    }

    pub(super) fn len(self) -> usize {
        usize::from(self.0 >> 12) + 1
    }
}

/// Symbols with the same first bytes, by length. If there are fewer than three, the last one
/// repeats.
#[repr(align(64))]
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The first 8 bytes of all symbols; unused for short ones.
    first: u64,
    /// The other bytes.
    rest: [u64; SLOT_SYMBOLS],
    mask: [u64; SLOT_SYMBOLS],
    found: [Found; SLOT_SYMBOLS],
    count: u8,
}

#[derive(Debug, Clone, Copy)]
struct Triple {
    bytes: u32,
    found: Found,
}

/// The lookup tables of a set of symbols.
#[derive(Debug)]
pub(super) struct Matcher {
    bytes: Vec<Found>,
    pairs: Vec<Found>,
    triples: Vec<Triple>,
    short: Vec<Slot>,
    long: Vec<Slot>,
}

/// Fibonacci hashing: the upper bits of the product.
#[inline]
fn hash(key: u64, bits: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
}

/// A key that hashes to another slot than `at`. An empty slot holds it, so that no key that is
/// looked up there is equal.
fn stranger(at: usize) -> u64 {
    // Zero hashes to slot 0, and one does not.
    u64::from(at == 0)
}

/// The lowest `bytes` bytes of a word.
fn low_bytes(bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { u64::MAX >> (64 - 8 * bytes) }
}

const TRIPLE: u64 = 0xFF_FFFF;
const SHORT: u64 = 0xFFFF_FFFF;

impl Matcher {
    /// A matcher of the single bytes. Their codes follow those of `count` symbols.
    pub(super) fn new(count: usize) -> Self {
        let empty = |at: usize, mask: u64| Slot {
            first: stranger(at),
            rest: [stranger(at); SLOT_SYMBOLS],
            mask: [mask; SLOT_SYMBOLS],
            found: [Found(0); SLOT_SYMBOLS],
            count: 0,
        };
        Self {
            bytes: (0..BYTE_CODES).map(|byte| Found::new(count + byte, 1)).collect(),
            pairs: (0..1 << 16).map(|pair| Found::new(count + pair % BYTE_CODES, 1)).collect(),
            triples: (0..1 << TRIPLE_BITS)
                .map(|at| Triple { bytes: stranger(at) as u32, found: Found(0) })
                .collect(),
            short: (0..1 << SHORT_BITS).map(|at| empty(at, SHORT)).collect(),
            long: (0..1 << LONG_BITS).map(|at| empty(at, 0)).collect(),
        }
    }

    /// A matcher of these symbols; the code of each is its position. They come from another
    /// matcher, so all of them fit.
    pub(super) fn of(symbols: &[Symbol]) -> Self {
        let mut matcher = Self::new(symbols.len());
        symbols.iter().enumerate().for_each(|(code, symbol)| {
            matcher.insert(symbol, code);
        });
        matcher
    }

    /// Adds a new symbol with its code. Returns whether it fits.
    pub(super) fn insert(&mut self, symbol: &Symbol, code: usize) -> bool {
        let len = symbol.len();
        let [first, rest] = symbol.words();
        let found = Found::new(code, len);
        match len {
            1 => {
                self.bytes[first as usize] = found;
                for pair in (first as usize..1 << 16).step_by(BYTE_CODES) {
                    let slot = &mut self.pairs[pair];
                    *slot = if slot.len() == 1 { found } else { *slot };
                }
            }
            2 => self.pairs[first as usize] = found,
            3 => {
                let at = hash(first, TRIPLE_BITS);
                let triple = &mut self.triples[at];
                if u64::from(triple.bytes) != stranger(at) {
                    return false;
                }
                *triple = Triple { bytes: first as u32, found };
            }
            4..8 => {
                let slot = &mut self.short[hash(first & SHORT, SHORT_BITS)];
                return slot.insert(
                    slot.rest[0] & SHORT == first & SHORT,
                    0,
                    first,
                    low_bytes(len),
                    found,
                );
            }
            _ => {
                let slot = &mut self.long[hash(first, LONG_BITS)];
                return slot.insert(slot.first == first, first, rest, low_bytes(len - 8), found);
            }
        }
        true
    }

    /// The code of a single byte.
    pub(super) fn byte(&self, byte: u8) -> Found {
        self.bytes[usize::from(byte)]
    }

    /// The tables as arrays, whose sizes the compiler knows.
    pub(super) fn tables(&self) -> Option<Tables<'_>> {
        Some(Tables {
            pairs: self.pairs.first_chunk()?,
            triples: self.triples.first_chunk()?,
            short: self.short.first_chunk()?,
            long: self.long.first_chunk()?,
        })
    }
}

/// A [`Matcher`]'s tables.
pub(super) struct Tables<'a> {
    pairs: &'a [Found; 1 << 16],
    triples: &'a [Triple; 1 << TRIPLE_BITS],
    short: &'a [Slot; 1 << SHORT_BITS],
    long: &'a [Slot; 1 << LONG_BITS],
}

impl Tables<'_> {
    /// The longest symbol that 16 bytes, read as a little-endian number, begin with.
    #[inline(always)]
    pub(super) fn find(&self, bytes: u128) -> Found {
        // The lower and the upper half.
        let (first, rest) = (bytes as u64, (bytes >> 64) as u64);
        let triple = self.triples[hash(first & TRIPLE, TRIPLE_BITS)];
        let short = &self.short[hash(first & SHORT, SHORT_BITS)];
        let long = &self.long[hash(first, LONG_BITS)];
        // None of these can be predicted: a branch would cost more than all of them.
        let mut found = self.pairs[(first & 0xFFFF) as usize].0;
        found =
            select_unpredictable(u64::from(triple.bytes) == first & TRIPLE, triple.found.0, found);
        for i in 0..SLOT_SYMBOLS {
            let hit = (first ^ short.rest[i]) & short.mask[i] == 0;
            found = select_unpredictable(hit, short.found[i].0, found);
        }
        let differs = first ^ long.first;
        for i in 0..SLOT_SYMBOLS {
            let hit = differs | (rest ^ long.rest[i]) & long.mask[i] == 0;
            found = select_unpredictable(hit, long.found[i].0, found);
        }
        Found(found)
    }
}

impl Slot {
    /// Inserts a symbol by its length, if it fits. `same` tells whether it has the first bytes of
    /// the slot.
    fn insert(&mut self, same: bool, first: u64, rest: u64, mask: u64, found: Found) -> bool {
        let count = usize::from(self.count);
        if count == SLOT_SYMBOLS || count > 0 && !same {
            return false;
        }
        self.first = first;
        let at = (0..count).find(|at| self.found[*at].len() > found.len()).unwrap_or(count);
        self.rest.copy_within(at..SLOT_SYMBOLS - 1, at + 1);
        self.mask.copy_within(at..SLOT_SYMBOLS - 1, at + 1);
        self.found.copy_within(at..SLOT_SYMBOLS - 1, at + 1);
        (self.rest[at], self.mask[at], self.found[at]) = (rest, mask, found);
        for again in count + 1..SLOT_SYMBOLS {
            (self.rest[again], self.mask[again], self.found[again]) =
                (self.rest[count], self.mask[count], self.found[count]);
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_symbol_is_found() {
        let mut seed = 88172645463325252u64;
        let mut next = |end: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % end
        };
        for alphabet in [1, 2, 3, 40, 256] {
            let mut symbols: Vec<Symbol> = Vec::new();
            let mut matcher = Matcher::new(SYMBOLS_MAX);
            for _ in 0..SYMBOLS_MAX {
                let bytes: Vec<u8> = (0..1 + next(16)).map(|_| next(alphabet) as u8).collect();
                let symbol = Symbol::new(&bytes).filter(|symbol| !symbols.contains(symbol));
                symbols.extend(symbol.filter(|symbol| matcher.insert(symbol, symbols.len())));
            }
            let Some(tables) = matcher.tables() else { panic!("tables of another size") };
            for i in 0..20_000 {
                // Random bytes, every other time after a symbol.
                let mut bytes: Vec<u8> = (0..32).map(|_| next(alphabet) as u8).collect();
                if i % 2 == 0 {
                    bytes.splice(0..0, symbols[i % symbols.len()].as_slice().iter().copied());
                }
                let longest = symbols
                    .iter()
                    .filter(|symbol| bytes.starts_with(symbol.as_slice()))
                    .max_by_key(|s| s.len());
                let Some(raw) = bytes.first_chunk() else { continue };
                let found = tables.find(u128::from_le_bytes(*raw));
                match longest {
                    Some(symbol) => {
                        assert_eq!(symbols.get(usize::from(found.code())), Some(symbol))
                    }
                    None => assert_eq!(found, Found::new(SYMBOLS_MAX + usize::from(bytes[0]), 1)),
                }
                assert_eq!(found.len(), longest.map_or(1, Symbol::len));
            }
        }
    }
}
