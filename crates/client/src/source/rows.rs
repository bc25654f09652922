//! Rows of a database as batches: what a result begins with, and what a batch cost.

use std::time::{Duration, Instant};

use dray_format::BuiltBatch;
use dray_format::arrow::Decoder;
use dray_wire::{CompressionChoice, Estimate};

use super::{ReceivedBatch, Start};
use crate::error::{Error, Result};

/// What is known of rows before the first of them.
pub(super) fn start_of(decoder: &Decoder, estimate: Estimate) -> Box<Start> {
    Box::new(Start {
        schema: decoder.schema().clone(),
        estimate,
        compression: CompressionChoice::None,
        checksums: false,
        plan: Duration::ZERO,
    })
}

/// What reading a batch of rows cost.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) began: Instant,
    pub(super) wire_bytes: u64,
    /// Waiting for the server and reading from the socket.
    pub(super) receive: Duration,
}

/// Rows that a session has just built. `not_utf8` is the message of text that is none.
///
/// # Errors
/// When text is not UTF-8.
pub(super) fn received(
    built: BuiltBatch,
    cost: Cost,
    decoder: &Decoder,
    not_utf8: fn(&dray_format::Error) -> String,
) -> Result<ReceivedBatch> {
    let arrived = Instant::now();
    let decoded_bytes = built.batch().plain_bytes(0, built.batch().rows);
    Ok(ReceivedBatch {
        batch: decoder.built(built).map_err(|error| Error::of_rows(error, not_utf8))?,
        wire_bytes: cost.wire_bytes,
        decoded_bytes,
        arrived,
        receive: cost.receive,
        parse: (arrived - cost.began).saturating_sub(cost.receive),
        decode: arrived.elapsed(),
    })
}
