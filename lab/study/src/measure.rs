//! Measures the processor time of one thread to encode and decode. Cases alternate, and every
//! decoded value is compared with its source once.

use std::hint::black_box;

use arrow_array::RecordBatch;
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::Result;
use crate::codec::{AnyCodec, concatenate};
use crate::data::plain_bytes;

/// A measurement repeats until it has taken this long, so that reading the clock does not count.
const RUN_NS_MIN: f64 = 10e6;
/// A case that takes longer than this has only [`SLOW_ROUNDS`] rounds.
const SLOW_NS: f64 = 1e9;
const SLOW_ROUNDS: usize = 3;

/// A format and the rows it is measured on.
pub struct Case {
    /// The experiment's name.
    pub experiment: &'static str,
    /// The name of the table, or of what was made of it.
    pub data: String,
    /// The format's name in the report.
    pub name: String,
    /// Requested bytes of a chunk's rows before encoding; `None` if all rows are one message.
    pub chunk_bytes: Option<usize>,
    /// The rows, one message per chunk.
    pub chunks: Vec<RecordBatch>,
    /// If `chunks` are drawn rows: the sample in file order, in chunks of the same size.
    pub sample: Vec<RecordBatch>,
    /// The format.
    pub codec: AnyCodec,
}

/// The measurements of a case.
#[derive(Debug, Serialize)]
pub struct Measurement {
    experiment: &'static str,
    data: String,
    case: String,
    chunk_bytes: Option<usize>,
    chunks: usize,
    rows: usize,
    columns: usize,
    /// Bytes of the chunks in Arrow's layout, and encoded.
    plain_bytes: usize,
    encoded_bytes: usize,
    /// The same for the sample in file order.
    sample_plain_bytes: usize,
    sample_encoded_bytes: usize,
    sample_chunks: usize,
    /// Processor time for all chunks, one entry per round.
    encode_ns: Vec<f64>,
    decode_ns: Vec<f64>,
}

/// Measures all cases in alternating rounds. A first round warms up and compares the values.
///
/// # Errors
/// If a case fails, or decodes other values than were encoded.
pub fn measure(cases: &[Case], rounds: usize) -> Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    let mut messages = Vec::new();
    for case in cases {
        let sent = round_trip(case, &case.chunks)?;
        // A case without a separate sample has the sample as its chunks.
        let sample = match case.sample.is_empty() {
            true => None,
            false => Some(round_trip(case, &case.sample)?),
        };
        let bytes = |messages: &[Bytes]| messages.iter().map(Bytes::len).sum::<usize>();
        let sample_chunks = if case.sample.is_empty() { &case.chunks } else { &case.sample };
        measured.push(Measurement {
            experiment: case.experiment,
            data: case.data.clone(),
            case: case.name.clone(),
            chunk_bytes: case.chunk_bytes,
            chunks: case.chunks.len(),
            rows: case.chunks.iter().map(RecordBatch::num_rows).sum(),
            columns: case.chunks[0].num_columns(),
            plain_bytes: case.chunks.iter().map(plain_bytes).sum(),
            encoded_bytes: bytes(&sent),
            sample_plain_bytes: sample_chunks.iter().map(plain_bytes).sum(),
            sample_encoded_bytes: bytes(sample.as_ref().unwrap_or(&sent)),
            sample_chunks: sample_chunks.len(),
            encode_ns: Vec::new(),
            decode_ns: Vec::new(),
        });
        messages.push(sent);
    }
    for _ in 0..rounds {
        for ((case, messages), measurement) in cases.iter().zip(&messages).zip(&mut measured) {
            let last = measurement
                .encode_ns
                .last()
                .zip(measurement.decode_ns.last())
                .map_or(0.0, |(encode, decode)| encode + decode);
            if last > SLOW_NS && measurement.encode_ns.len() >= SLOW_ROUNDS {
                continue;
            }
            measurement.encode_ns.push(processor_time(|| {
                case.chunks.iter().try_for_each(|chunk| {
                    black_box(case.codec.encode(chunk)?);
                    Ok(())
                })
            })?);
            measurement.decode_ns.push(processor_time(|| {
                messages.iter().try_for_each(|message| {
                    black_box(case.codec.decode(message.clone())?);
                    Ok(())
                })
            })?);
        }
    }
    Ok(measured)
}

/// Encodes the chunks, and compares the decoded values with them.
fn round_trip(case: &Case, chunks: &[RecordBatch]) -> Result<Vec<Bytes>> {
    let failed = |what: &str| format!("{}, {}, {}: {what}", case.experiment, case.data, case.name);
    let mut messages = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let message =
            concatenate(case.codec.encode(chunk).map_err(|error| failed(&error.to_string()))?);
        let decoded =
            case.codec.decode(message.clone()).map_err(|error| failed(&error.to_string()))?;
        if decoded.num_rows() != chunk.num_rows() || decoded.columns() != chunk.columns() {
            return Err(failed("decoded other values than were encoded").into());
        }
        messages.push(message);
    }
    Ok(messages)
}

/// The processor time of a run in nanoseconds, as the mean of enough runs.
fn processor_time(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = processor_ns();
    let mut runs = 0.0;
    loop {
        run()?;
        runs += 1.0;
        let spent = processor_ns() - start;
        if spent >= RUN_NS_MIN {
            return Ok(spent / runs);
        }
    }
}

/// The processor time of this thread so far, in nanoseconds.
fn processor_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
