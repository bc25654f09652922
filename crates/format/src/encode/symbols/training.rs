//! Trains symbols on a sample, in rounds.
//!
//! A round parses the sample with the symbols of the round before, counts symbols and pairs of
//! neighbours, and selects the symbols and joined pairs that cover the most bytes. So the length of
//! a symbol can double from round to round. (Boncz, Neumann, Leis 2020: "FSST: Fast Random Access
//! String Compression", section 4.3. That longer symbols with more codes compress better is from
//! Gargiulo, Venturini 2025: "OnPair: Short Strings Compression for Fast Random Access".)

use super::super::huffman::{counts, entropy_bytes};
use super::matcher::Matcher;
use super::parse::parse;
use crate::symbols::{BYTE_CODES, SYMBOLS_MAX, Symbol};

/// The rounds: `(4, n)` parses the first quarter of the sample and selects at most n symbols. The
/// last rounds try smaller tables, whose codes have fewer bits.
const ROUNDS: [(usize, usize); 8] = [
    (4, SYMBOLS_MAX),
    (4, SYMBOLS_MAX),
    (2, SYMBOLS_MAX),
    (1, SYMBOLS_MAX),
    (1, SYMBOLS_MAX),
    (1, 1792),
    (1, 768),
    (1, 256),
];
/// The tables from this round on are candidates.
const FIRST_CANDIDATE: usize = 4;
/// Symbols occur at least this often in what was parsed.
const COUNT_MIN: u32 = 3;

/// The symbols that make `data_bytes` bytes like the sample smallest, and the likely size of these.
pub(super) fn train(sample: &[u8], data_bytes: usize) -> (Vec<Symbol>, usize) {
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut matcher = Matcher::new(0);
    let mut best = (Vec::new(), usize::MAX);
    let mut codes = Vec::new();
    for (round, (share, count_max)) in ROUNDS.into_iter().enumerate() {
        codes.clear();
        parse(&matcher, &sample[..sample.len() / share], &mut codes);
        (symbols, matcher) = select(&Counts::of(&codes), &symbols, count_max);
        if round >= FIRST_CANDIDATE {
            codes.clear();
            parse(&matcher, sample, &mut codes);
            let bytes = likely_bytes(&symbols, &codes, sample.len(), data_bytes);
            if bytes < best.1 {
                best = (symbols.clone(), bytes);
            }
        }
    }
    best
}

/// The bits of a code, with this many symbols.
pub(super) fn code_bits(symbols: usize) -> usize {
    (symbols + BYTE_CODES - 1).ilog2() as usize + 1
}

/// The likely size of the data and its table, from the codes of the sample.
fn likely_bytes(
    symbols: &[Symbol],
    codes: &[[u8; 2]],
    sample_bytes: usize,
    data_bytes: usize,
) -> usize {
    let codes = entropy_bytes(&counts(codes)) * data_bytes as f64 / sample_bytes.max(1) as f64;
    // Besides its bytes, a symbol has a length and the length of a Huffman code.
    let table: usize = symbols.iter().map(|symbol| symbol.len() + 2).sum();
    // LZ4 about halves the table, because sorted symbols share prefixes.
    codes as usize + table / 2
}

/// The occurrences of codes and of pairs of them.
struct Counts {
    codes: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl Counts {
    /// The most slots for pairs. A quarter of them stays empty; pairs that are new after that are
    /// not counted.
    const PAIRS_MAX: usize = 1 << 16;

    fn of(codes: &[[u8; 2]]) -> Self {
        let places = (codes.len() * 2).next_power_of_two().clamp(1 << 10, Self::PAIRS_MAX);
        let mut counts =
            Self { codes: vec![0; SYMBOLS_MAX + BYTE_CODES], pairs: vec![(0, 0); places] };
        let mut free = places / 4 * 3;
        let mut before = None;
        for code in codes {
            let code = u16::from_le_bytes(*code);
            counts.codes[usize::from(code)] += 1;
            if let Some(before) = before.replace(code) {
                counts.count_pair(u32::from(before) << 16 | u32::from(code), &mut free);
            }
        }
        counts
    }

    fn count_pair(&mut self, pair: u32, free: &mut usize) {
        let mask = self.pairs.len() - 1;
        let mut at = (pair.wrapping_mul(0x9E37_79B1) >> 16) as usize & mask;
        loop {
            let (there, count) = &mut self.pairs[at];
            if *count == 0 {
                if *free > 0 {
                    (*there, *count) = (pair, 1);
                    *free -= 1;
                }
                return;
            }
            if *there == pair {
                *count += 1;
                return;
            }
            at = (at + 1) & mask;
        }
    }
}

/// Selects at most `count_max` of the counted symbols and pairs: those that cover the most bytes,
/// if they fit into the matcher.
fn select(counts: &Counts, symbols: &[Symbol], count_max: usize) -> (Vec<Symbol>, Matcher) {
    let symbol = |code: usize| match symbols.get(code) {
        Some(symbol) => Some(*symbol),
        // The codes of the bytes come after those of the symbols.
        None => Symbol::new(&[(code - symbols.len()) as u8]),
    };
    let mut gains: Vec<(Symbol, u64)> = Vec::new();
    let mut gain =
        |symbol: Symbol, count: u32| gains.push((symbol, u64::from(count) * symbol.len() as u64));
    for (code, count) in counts.codes.iter().enumerate().filter(|(_, count)| **count >= COUNT_MIN) {
        symbol(code).into_iter().for_each(|symbol| gain(symbol, *count));
    }
    for (pair, count) in counts.pairs.iter().filter(|(_, count)| *count >= COUNT_MIN) {
        if let (Some(a), Some(b)) =
            (symbol((pair >> 16) as usize), symbol((pair & 0xFFFF) as usize))
        {
            a.joined(&b).into_iter().for_each(|joined| gain(joined, *count));
        }
    }
    // The same symbol may come from several pairs.
    gains.sort_unstable_by_key(|(symbol, _)| *symbol);
    gains.dedup_by(|next, first| {
        let same = next.0 == first.0;
        first.1 += if same { next.1 } else { 0 };
        same
    });
    gains.sort_unstable_by_key(|(symbol, gain)| (u64::MAX - gain, *symbol));
    let mut matcher = Matcher::new(count_max);
    let mut selected = Vec::with_capacity(count_max);
    for (symbol, _) in gains {
        if selected.len() == count_max {
            break;
        }
        if matcher.insert(&symbol, selected.len()) {
            selected.push(symbol);
        }
    }
    if selected.len() < count_max {
        matcher = Matcher::of(&selected);
    }
    (selected, matcher)
}
