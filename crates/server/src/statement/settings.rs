//! How a statement's chunks are made: their limits, compression and checksums.

use std::sync::Arc;

use dray_chooser::{Chooser, thread_cpu_time};
use dray_format::{Compression, Limits, Schema};
use dray_page::Layout;
use dray_transfer::{Pages, Settings};
use dray_wire::{Checksums, CompressionChoice, ErrorKind, Query, RowLayout, ServerError};

use crate::admission::Admission;
use crate::engine;
use crate::socket::PeerLocality;

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

/// When rows become pages (protocol.md section 13). Where the client takes either and bytes cost
/// nothing, all do; where it wants compressed columns, none.
///
/// # Errors
/// Query, if the client takes pages alone and the schema has none.
pub(super) fn pages(
    schema: &Schema,
    row_layout: RowLayout,
    compression: CompressionChoice,
    chooser: Option<&Arc<Chooser>>,
) -> Result<Option<Pages>, ServerError> {
    let layout = || Layout::new(schema.clone());
    match (row_layout, compression, chooser) {
        (RowLayout::Chunks, ..) => Ok(None),
        (RowLayout::Pages, ..) => match layout() {
            Ok(layout) => Ok(Some(Pages::Always(layout))),
            Err(cause) => Err(engine::error(
                ErrorKind::Query,
                "0A000",
                cause.to_string(),
                "ask for layout auto",
            )),
        },
        (RowLayout::Either, _, Some(chooser)) => {
            Ok(layout().ok().map(|layout| Pages::Cheaper(layout, chooser.clone())))
        }
        (RowLayout::Either, CompressionChoice::None, None) => {
            Ok(layout().ok().map(Pages::Preferred))
        }
        (RowLayout::Either, _, None) => Ok(None),
    }
}

/// How many chunks of a statement exist at a time outside its queue: those that are being encoded,
/// one that is being cut and one that is being sent.
pub(super) fn chunks_in_progress(threads: usize) -> u64 {
    threads as u64 + 2
}
