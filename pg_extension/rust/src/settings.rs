//! What the options of COPY say.

use dray_format::{Compression, Limits};
use dray_pgtypes::Options;
use dray_wire::CompressionChoice;

/// How a stream is cut, encoded and typed.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The largest chunks that the client accepts.
    pub(crate) limits: Limits,
    /// How many rows end a chunk.
    pub(crate) chunk_rows: usize,
    /// As chosen: never auto.
    pub(crate) compression: CompressionChoice,
    /// Whether chunks carry checksums.
    pub(crate) checksums: bool,
    /// How types become columns.
    pub(crate) options: Options,
    /// Whether the database's strings are UTF-8; if not, the server must convert them.
    pub(crate) is_utf8: bool,
    /// What the planner expects.
    pub(crate) rows_estimate: u64,
    pub(crate) plan_ns: u64,
}

/// The compression that was asked for. `auto` is what is fastest: within a host every encoding costs more than the bytes that
/// it saves.
pub(crate) fn chosen(compression: CompressionChoice, client_is_local: bool) -> CompressionChoice {
    match compression {
        CompressionChoice::Auto if client_is_local => CompressionChoice::None,
        CompressionChoice::Auto => CompressionChoice::Light,
        named => named,
    }
}

/// What the writer of chunks calls it.
pub(crate) fn writer_compression(chosen: CompressionChoice) -> Compression {
    match chosen {
        CompressionChoice::None => Compression::Compact,
        CompressionChoice::Auto | CompressionChoice::Light => Compression::Light,
        CompressionChoice::Lz4 => Compression::Lz4,
        CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
    }
}
