//! The compressions that a column may get, and what each is expected to cost before it is measured.

use dray_format::{Compression, Type};

/// The length of [`CANDIDATES`].
pub(crate) const CANDIDATE_COUNT: usize = 8;
/// The candidates, from the fastest to the smallest. Those after light compress its output.
pub(crate) const CANDIDATES: [Candidate; CANDIDATE_COUNT] = [
    Candidate::new(Compression::None, 0.0, [0.0, 0.0], [1.0, 1.0], 0.0),
    Candidate::new(Compression::Light, 2e3, [0.0, 0.0], [1.0, 1.0], 0.1),
    Candidate::new(Compression::Symbols, 90e3, [0.0, 1.5], [1.0, 0.6], 0.3),
    Candidate::new(Compression::Lz4, 4e3, [2.0, 2.0], [0.97, 0.55], 0.4),
    Candidate::new(Compression::Zstd(1), 15e3, [4.0, 3.5], [0.85, 0.33], 1.0),
    Candidate::new(Compression::Zstd(3), 15e3, [6.0, 6.0], [0.83, 0.31], 1.0),
    Candidate::new(Compression::Zstd(9), 30e3, [40.0, 30.0], [0.8, 0.29], 1.0),
    Candidate::new(Compression::Zstd(19), 100e3, [400.0, 450.0], [0.77, 0.27], 1.2),
];
/// The indexes of plain, light and symbols in [`CANDIDATES`].
pub(crate) const NONE: usize = 0;
pub(crate) const LIGHT: usize = 1;
pub(crate) const SYMBOLS: usize = 2;

/// A compression, and its expected costs. Pairs hold one value for each [`ValueKind`].
pub(crate) struct Candidate {
    pub(crate) compression: Compression,
    /// Fixed cost of encoding a column of a chunk, in nanoseconds.
    pub(crate) chunk_ns: f64,
    /// Encoding time beyond light's, in nanoseconds per byte that light would send.
    pub(crate) more_ns: [f64; 2],
    /// Bytes sent per byte that light would send.
    pub(crate) share: [f64; 2],
    /// Decoding time, in nanoseconds per decoded byte.
    pub(crate) decode_ns: f64,
}

impl Candidate {
    const fn new(
        compression: Compression,
        chunk_ns: f64,
        more_ns: [f64; 2],
        share: [f64; 2],
        decode_ns: f64,
    ) -> Self {
        Self { compression, chunk_ns, more_ns, share, decode_ns }
    }
}

/// The kinds of values that differ in their expected costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Numbers = 0,
    Strings = 1,
}

impl ValueKind {
    /// `Strings` if there are strings or bytes anywhere in the type.
    pub(crate) fn of(data_type: &Type) -> Self {
        if has_strings(data_type) { Self::Strings } else { Self::Numbers }
    }
}

fn has_strings(data_type: &Type) -> bool {
    match data_type {
        Type::Utf8 | Type::Binary => true,
        Type::List(item) | Type::FixedList { item, .. } => has_strings(&item.data_type),
        Type::Map { key, value, .. } => {
            has_strings(&key.data_type) || has_strings(&value.data_type)
        }
        Type::Struct(fields) => fields.iter().any(|field| has_strings(&field.data_type)),
        Type::Dictionary { value, .. } => has_strings(value),
        _ => false,
    }
}

/// The number of candidates, from the first on, that need no zstd level above `level_max`.
pub(crate) fn candidates_up_to(level_max: i32) -> usize {
    CANDIDATES
        .iter()
        .filter(|it| !matches!(it.compression, Compression::Zstd(level) if level > level_max))
        .count()
}
