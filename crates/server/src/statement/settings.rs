//! How a statement's chunks are made: their limits, compression and checksums.

use dray_format::{Compression, Limits};
use dray_transfer::Settings;
use dray_wire::{Checksums, CompressionChoice, Query};

use crate::admission::Admission;
use crate::socket::PeerLocality;
use dray_chooser::thread_cpu_time;

/// Rows of a chunk, unless the client asks for another number.
const CHUNK_ROWS: usize = 65_536;
/// The largest decoded size of a chunk, and of the stream dictionaries, whatever the client
/// accepts.
const DECODED_BYTES_CEILING: u64 = 64 << 20;

/// The settings of a query's chunks, in a plan of `threads` threads.
pub(super) fn settings(
    query: &Query,
    locality: PeerLocality,
    admission: &Admission,
    threads: usize,
) -> Settings {
    let chunks = chunks_in_progress(threads) + 2;
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
        compression: match resolve_compression(query.compression, locality) {
            CompressionChoice::Auto | CompressionChoice::None => Compression::None,
            CompressionChoice::Light => Compression::Light,
            CompressionChoice::Lz4 => Compression::Lz4,
            CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
        },
        checksum: match query.checksums {
            Checksums::Auto => locality.needs_checksums(),
            Checksums::On => true,
            Checksums::Off => false,
        },
        clock: Some(thread_cpu_time),
    }
}

/// Turns `auto` into `none` on the same host. To other hosts it stays: the transfer adapts
/// (encodings.md section 6).
pub(super) fn resolve_compression(
    choice: CompressionChoice,
    locality: PeerLocality,
) -> CompressionChoice {
    match choice {
        CompressionChoice::Auto if locality.is_same_host() => CompressionChoice::None,
        other => other,
    }
}

/// How many chunks of a statement exist at a time outside its queue: those that are being encoded,
/// one that is being cut and one that is being sent.
pub(super) fn chunks_in_progress(threads: usize) -> u64 {
    threads as u64 + 2
}
