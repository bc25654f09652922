//! How a statement's chunks are made: their limits, their compression, their checksums.

use dray_format::{Compression, Limits};
use dray_transfer::Settings;
use dray_wire::{Checksums, CompressionChoice, Query};

use crate::admission::Admission;
use crate::socket::Link;
use crate::way;

/// Rows that end a chunk unless the client asks for another number.
const CHUNK_ROWS: usize = 65_536;
/// The most that a chunk, and the tables that outlive chunks, become at the client, whatever it
/// accepts.
const DECODED_BYTES_CEILING: u64 = 64 << 20;

/// What `auto` stands for on one host: none. Elsewhere the transfer adapts (encodings.md section
/// 6).
pub(super) fn resolved(choice: CompressionChoice, link: Link) -> CompressionChoice {
    match choice {
        CompressionChoice::Auto if link.is_same_host() => CompressionChoice::None,
        other => other,
    }
}

/// How many chunks there are of a statement at a time beside those in its queue: those that are
/// made, and what is cut next.
pub(super) fn chunks_made(threads: usize) -> u64 {
    threads as u64 + 2
}

pub(super) fn settings(
    query: &Query,
    link: Link,
    admission: &Admission,
    threads: usize,
) -> Settings {
    let chunks = chunks_made(threads) + 2;
    let limits = Limits {
        chunk_bytes_max: admission.chunk_bytes_max(query.limits.chunk_bytes_max, chunks),
        decoded_bytes_max: query.limits.decoded_bytes_max.min(DECODED_BYTES_CEILING),
        ..query.limits
    };
    Settings {
        limits,
        chunk_rows: match query.chunk_rows as usize {
            0 => CHUNK_ROWS,
            rows => rows,
        },
        compression: match resolved(query.compression, link) {
            CompressionChoice::Auto | CompressionChoice::None => Compression::None,
            CompressionChoice::Light => Compression::Light,
            CompressionChoice::Lz4 => Compression::Lz4,
            CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
        },
        checksum: match query.checksums {
            Checksums::Auto => link.needs_checksums(),
            Checksums::On => true,
            Checksums::Off => false,
        },
        clock: Some(way::processor_time),
    }
}
