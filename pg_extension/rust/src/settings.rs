//! The settings of a stream, from the options of COPY and from the server.

use std::os::fd::BorrowedFd;

use dray_format::{Compression, Limits};
use dray_pgtypes::Options;
use dray_wire::CompressionChoice;

/// How a stream is cut, encoded and typed.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The limits of what the client accepts.
    pub(crate) limits: Limits,
    /// The most rows of a chunk.
    pub(crate) chunk_rows: usize,
    /// `Auto` if the stream adapts.
    pub(crate) compression: CompressionChoice,
    /// Whether chunks carry checksums.
    pub(crate) checksums: bool,
    /// How PostgreSQL types become columns.
    pub(crate) options: Options,
    /// Whether the encoding of the database is UTF-8. If not, the server must convert strings.
    pub(crate) is_utf8: bool,
    /// The planner's estimate of the rows.
    pub(crate) rows_estimate: u64,
    /// The time that planning took.
    pub(crate) plan_ns: u64,
    /// The most threads to start for encoding.
    pub(crate) threads: usize,
    /// The client's socket, to ask the kernel what it delivers. Whoever makes the settings promises
    /// that it stays open while the stream is.
    pub(crate) socket: Option<BorrowedFd<'static>>,
}

/// The compression that the options ask for. On one host, encoding costs more than the bytes that
/// it saves, so `auto` is none there. Between hosts, the stream adapts.
pub(crate) fn chosen(compression: CompressionChoice, client_is_local: bool) -> CompressionChoice {
    match compression {
        CompressionChoice::Auto if client_is_local => CompressionChoice::None,
        named => named,
    }
}

/// The compression for the chunk encoder. If the stream adapts, it is the strongest one.
pub(crate) fn writer_compression(chosen: CompressionChoice) -> Compression {
    match chosen {
        CompressionChoice::None => Compression::Compact,
        CompressionChoice::Auto => Compression::Zstd(LEVEL_MAX),
        CompressionChoice::Light => Compression::Light,
        CompressionChoice::Lz4 => Compression::Lz4,
        CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
    }
}

/// The highest zstd level of a stream that adapts. Encoding a chunk can't be interrupted.
pub(crate) const LEVEL_MAX: i32 = 3;
