//! Parses bytes into codes.

use super::matcher::{Matcher, Tables};
use crate::symbols::SYMBOL_BYTES_MAX;

/// Bytes that are parsed at a time, in four lanes side by side. The next symbol's position is known
/// only after the lookup of the one before; meanwhile the processor works on the other lanes.
const BLOCK_BYTES: usize = 4 * LANE_BYTES;
const LANE_BYTES: usize = 8 << 10;

/// Appends the codes of `data`, little-endian: the longest symbol at each position.
pub(super) fn parse(matcher: &Matcher, data: &[u8], out: &mut Vec<[u8; 2]>) {
    let Some(tables) = matcher.tables() else { return };
    let mut codes = vec![[0; 2]; BLOCK_BYTES];
    for block in data.chunks(BLOCK_BYTES) {
        let mut parts = block.chunks(block.len().div_ceil(4));
        let mut outputs = codes.chunks_mut(LANE_BYTES);
        let mut lane = || Lane {
            data: parts.next().unwrap_or_default(),
            codes: outputs.next().unwrap_or_default(),
            count: 0,
        };
        let (mut a, mut b, mut c, mut d) = (lane(), lane(), lane(), lane());
        while a.step(&tables) && b.step(&tables) && c.step(&tables) && d.step(&tables) {}
        for mut lane in [a, b, c, d] {
            while lane.step(&tables) {}
            lane.finish(matcher, &tables);
            out.extend_from_slice(&lane.codes[..lane.count]);
        }
    }
}

struct Lane<'a> {
    data: &'a [u8],
    /// As many codes as there are bytes.
    codes: &'a mut [[u8; 2]],
    count: usize,
}

impl Lane<'_> {
    /// Parses one symbol, unless the end of the data is near.
    #[inline(always)]
    fn step(&mut self, tables: &Tables<'_>) -> bool {
        let (Some(raw), Some(code)) =
            (self.data.first_chunk::<SYMBOL_BYTES_MAX>(), self.codes.get_mut(self.count))
        else {
            return false;
        };
        let found = tables.find(u128::from_le_bytes(*raw));
        *code = found.code().to_le_bytes();
        self.count += 1;
        self.data = &self.data[found.len()..];
        true
    }

    /// Parses the last few bytes.
    fn finish(&mut self, matcher: &Matcher, tables: &Tables<'_>) {
        while let Some(first) = self.data.first() {
            let mut raw = [0; SYMBOL_BYTES_MAX];
            let left = self.data.len().min(raw.len());
            raw[..left].copy_from_slice(&self.data[..left]);
            let mut found = tables.find(u128::from_le_bytes(raw));
            if found.len() > left {
                found = matcher.byte(*first);
            }
            if let Some(code) = self.codes.get_mut(self.count) {
                *code = found.code().to_le_bytes();
            }
            self.count += 1;
            self.data = &self.data[found.len()..];
        }
    }
}
