//! Strings coded with symbols that are trained on them: `spec/encodings.md` section 3.1.
//!
//! ```text
//! sample of the data ──train──▶ symbols ──▶ Matcher     reused for the next chunks
//!                                             │
//!                all of the data ──parse──────┴──▶ codes
//! ```

mod matcher;
mod parse;
mod training;

use std::time::Duration;

use bytes::Bytes;

use self::matcher::Matcher;
use self::parse::parse;
use self::training::{code_bits, train};
use super::fixed_values::{FixedValues, Order};
use super::values::EncodedValues;
use crate::clock::Clock;
use crate::compress::{Compressor, Packer};
use crate::error::Result;
use crate::sink::{Sink, Sinks, TableClaim};
use crate::symbols::Symbol;

/// Less data does not pay for a table.
const DATA_BYTES_MIN: usize = 8 << 10;
/// A column with at least this much data reuses its matcher, which takes 300 KB, for the next
/// chunks. Smaller columns rebuild it: with hundreds of columns, an encoder would take much more
/// memory than its chunks.
const MATCHER_DATA_BYTES_MIN: usize = 256 << 10;
/// A table is trained on this much of the data, taken in stretches from all over it.
const SAMPLE_BYTES: usize = 128 << 10;
const STRETCH_BYTES: usize = 1 << 10;
/// The most chunks until the next training, if the last ones did not help.
const PAUSE_MAX: u32 = 64;

/// The symbols of one column, from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct SymbolHistory {
    table: Option<Table>,
    /// Chunks until the next training, if the last one did not help.
    pause: u32,
    next_pause: u32,
    /// The training time since [`Self::take_training_time`] was last called.
    training_time: Duration,
    /// The budget for the table at the reader.
    claim: TableClaim,
}

/// A trained table.
#[derive(Debug)]
struct Table {
    symbols: Vec<Symbol>,
    matcher: Option<Matcher>,
    lengths: Bytes,
    stored: Bytes,
    raw_bytes: usize,
    /// The compressor of `stored`.
    compressor: Compressor,
    /// The size of the codes relative to the data, in the first chunk.
    share: f64,
    /// The bytes of the data that the sample was taken from.
    trained_bytes: usize,
    /// Its number at the reader, once it is in a state frame.
    number: Option<u32>,
}

/// Strings as codes, ready to be written.
pub(super) struct Coded<'a> {
    table: &'a mut Table,
    claim: &'a mut TableClaim,
    codes: Vec<[u8; 2]>,
}

impl SymbolHistory {
    /// The codes of `data`, if they save an eighth of it. With `has_state` the table may go into a
    /// state frame.
    pub(super) fn encode(
        &mut self,
        data: &[u8],
        clock: Clock,
        has_state: bool,
    ) -> Option<Coded<'_>> {
        if data.len() < DATA_BYTES_MIN {
            return None;
        }
        let mut codes = Vec::with_capacity(data.len() / 4);
        let mut fresh = false;
        if self.table.is_none() {
            if self.pause > 0 {
                self.pause -= 1;
                return None;
            }
            self.table = self.train(data, clock);
            fresh = true;
        }
        let mut table = self.table.take();
        if let Some(table) = &mut table {
            table.parse(data, &mut codes);
            let share = table.coded_bytes(codes.len()) as f64 / data.len() as f64;
            if fresh {
                table.share = share;
            }
            // The data has changed, or there is much more of it: a new table may be worth its
            // training.
            let outgrown =
                table.trained_bytes < SAMPLE_BYTES && data.len() / 4 >= table.trained_bytes;
            if share > table.share * 1.25 || outgrown {
                (table.share, table.trained_bytes) = (share, data.len());
                if let Some(mut other) = self.train(data, clock) {
                    let mut other_codes = Vec::with_capacity(data.len() / 4);
                    other.parse(data, &mut other_codes);
                    other.share = other.coded_bytes(other_codes.len()) as f64 / data.len() as f64;
                    if other.share + 0.01 < share {
                        (*table, codes) = (other, other_codes);
                    }
                }
            }
        }
        self.table = table;
        let table = self.table.as_ref();
        if table.is_some_and(|table| table.pays(codes.len(), data.len(), has_state)) {
            self.next_pause = 0;
        } else if table.is_none_or(|table| table.coded_bytes(codes.len()) > data.len() / 8 * 7) {
            self.table = None;
            self.next_pause = (self.next_pause * 2).clamp(1, PAUSE_MAX);
            self.pause = self.next_pause;
            return None;
        } else {
            // Too little data for the table, but it may suit the next chunk.
            return None;
        }
        let Self { table, claim, .. } = self;
        table.as_mut().map(|table| Coded { table, claim, codes })
    }

    fn train(&mut self, data: &[u8], clock: Clock) -> Option<Table> {
        let start = clock();
        let table = Table::train(data);
        self.training_time += clock().saturating_sub(start);
        table
    }

    /// The time of trainings since this was last called.
    pub(crate) fn take_training_time(&mut self) -> Duration {
        std::mem::take(&mut self.training_time)
    }
}

impl Table {
    fn train(data: &[u8]) -> Option<Self> {
        let mut sample = Vec::with_capacity(SAMPLE_BYTES.min(data.len()));
        if data.len() <= SAMPLE_BYTES {
            sample.extend_from_slice(data);
        } else {
            let stretches = SAMPLE_BYTES / STRETCH_BYTES;
            let last = data.len() - STRETCH_BYTES;
            (0..stretches).for_each(|i| {
                sample.extend_from_slice(&data[i * last / stretches..][..STRETCH_BYTES])
            });
        }
        let (mut symbols, likely_bytes) = train(&sample, data.len());
        if symbols.is_empty() || likely_bytes > data.len() / 8 * 7 {
            return None;
        }
        // Sorted symbols share prefixes, which LZ4 finds.
        symbols.sort_unstable();
        Some(Self::new(symbols, data.len()))
    }

    fn new(symbols: Vec<Symbol>, trained_bytes: usize) -> Self {
        let raw: Vec<u8> = symbols.iter().flat_map(Symbol::as_slice).copied().collect();
        // At most 16.
        let lengths: Vec<u8> = symbols.iter().map(|symbol| symbol.len() as u8).collect();
        let raw_bytes = raw.len();
        let packed = Packer::default()
            .pack(Compressor::Lz4, 0, &raw)
            .filter(|packed| packed.len() < raw_bytes / 10 * 9);
        Self {
            symbols,
            matcher: None,
            lengths: Bytes::from(lengths),
            compressor: if packed.is_some() { Compressor::Lz4 } else { Compressor::None },
            stored: Bytes::from(packed.unwrap_or(raw)),
            raw_bytes,
            share: 1.0,
            trained_bytes,
            number: None,
        }
    }

    fn parse(&mut self, data: &[u8], codes: &mut Vec<[u8; 2]>) {
        let matcher = self.matcher.take().unwrap_or_else(|| Matcher::of(&self.symbols));
        parse(&matcher, data, codes);
        self.matcher = Some(matcher).filter(|_| data.len() >= MATCHER_DATA_BYTES_MIN);
    }

    /// Writes the symbols, in a chunk or in a state frame.
    fn write(&self, sink: &mut Sink) -> Result<()> {
        sink.descriptors.push(0);
        sink.put_u32(self.lengths.len())?;
        EncodedValues::new(FixedValues::new(self.lengths.clone(), 1, Order::Unsigned))
            .write(sink)?;
        sink.stored_buffer(self.compressor, self.stored.clone(), self.raw_bytes)
    }

    /// The bytes of this many codes.
    fn coded_bytes(&self, codes: usize) -> usize {
        codes * code_bits(self.lengths.len()) / 8
    }

    /// Whether this many codes save an eighth of the data, together with the table unless the
    /// reader has it.
    fn pays(&self, codes: usize, data_bytes: usize, has_state: bool) -> bool {
        let table = if has_state && self.number.is_some() {
            0
        } else {
            self.stored.len() + self.lengths.len() / 2
        };
        self.coded_bytes(codes) + table < data_bytes / 8 * 7
    }
}

impl Coded<'_> {
    /// Writes the table, or its number, and the codes.
    pub(super) fn write(self, sinks: &mut Sinks) -> Result<()> {
        let Self { table, claim, codes } = self;
        if let Some(state) = &mut sinks.state
            && table.number.is_none()
        {
            let bytes = table.lengths.len() + table.raw_bytes;
            table.number = state.claim(claim, bytes, bytes);
            if let Some(number) = table.number {
                let sink = state.begin(number);
                table.write(sink)?;
                sink.count(bytes, 1);
            }
        }
        let sink = &mut sinks.chunk;
        match table.number.filter(|_| sinks.state.is_some()) {
            Some(number) => {
                sink.descriptors.push(1);
                sink.descriptors.extend_from_slice(&number.to_le_bytes());
            }
            None => table.write(sink)?,
        }
        sink.put_u32(codes.len())?;
        EncodedValues::new(FixedValues::new(
            Bytes::from(codes.into_flattened()),
            2,
            Order::Unsigned,
        ))
        .or_huffman()
        .write(sink)
    }
}
