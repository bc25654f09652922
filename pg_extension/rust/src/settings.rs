//! What the options of COPY say.

use std::os::fd::BorrowedFd;

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
    /// As chosen: auto if the stream adapts.
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
    /// How many threads may help to make chunks.
    pub(crate) threads: usize,
    /// The client's socket, to ask the kernel what it delivers. It stays open while the stream is.
    pub(crate) socket: Option<BorrowedFd<'static>>,
}

/// The compression that was asked for. Within a host every encoding costs more than the bytes that
/// it saves, so `auto` is none there; elsewhere the stream adapts.
pub(crate) fn chosen(compression: CompressionChoice, client_is_local: bool) -> CompressionChoice {
    match compression {
        CompressionChoice::Auto if client_is_local => CompressionChoice::None,
        named => named,
    }
}

/// What the writer of chunks calls it; of a stream that adapts, the most that it does.
pub(crate) fn writer_compression(chosen: CompressionChoice) -> Compression {
    match chosen {
        CompressionChoice::None => Compression::Compact,
        CompressionChoice::Auto => Compression::Zstd(LEVEL_MAX),
        CompressionChoice::Light => Compression::Light,
        CompressionChoice::Lz4 => Compression::Lz4,
        CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
    }
}

/// The highest level of zstd that a stream which adapts goes to: a chunk can't be interrupted.
pub(crate) const LEVEL_MAX: i32 = 3;
