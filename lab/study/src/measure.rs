//! One core's time to encode and decode: processor time, cases in alternation, and every value
//! compared once.

use std::hint::black_box;

use arrow_array::RecordBatch;
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::Result;
use crate::codec::{AnyCodec, joined};
use crate::data::plain_bytes;

/// A measurement repeats its chunks until it has taken so long: the clock's own time must not
/// count.
const LEAST_NS: f64 = 10e6;
/// Rounds of a case that takes longer than this in one are fewer.
const LONG_NS: f64 = 1e9;
const LONG_ROUNDS: usize = 3;

/// A format on some rows.
pub struct Case {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What the rows are.
    pub data: String,
    /// What the report calls the format.
    pub name: String,
    /// Bytes of a chunk's rows as asked for; none where all rows are one message.
    pub chunk_bytes: Option<usize>,
    /// The rows, a message each.
    pub chunks: Vec<RecordBatch>,
    /// The undisturbed sample cut to chunks of the same size, where the rows are drawn.
    pub sample: Vec<RecordBatch>,
    /// The format.
    pub codec: AnyCodec,
}

/// What a case took.
#[derive(Debug, Serialize)]
pub struct Figures {
    experiment: &'static str,
    data: String,
    case: String,
    chunk_bytes: Option<usize>,
    chunks: usize,
    rows: usize,
    columns: usize,
    /// In Arrow's layout, and encoded.
    plain_bytes: usize,
    encoded_bytes: usize,
    /// The same of the sample in file order.
    sample_plain_bytes: usize,
    sample_encoded_bytes: usize,
    sample_chunks: usize,
    /// Of all chunks, a round each.
    encode_ns: Vec<f64>,
    decode_ns: Vec<f64>,
}

/// Measures all cases, one after another in each round, after a round that warms up and compares
/// the values.
///
/// # Errors
/// When a case fails, or gives other values back.
pub fn measure(cases: &[Case], rounds: usize) -> Result<Vec<Figures>> {
    let mut measured = Vec::new();
    let mut messages = Vec::new();
    for case in cases {
        let sent = round_trip(case, &case.chunks)?;
        // Without a sample of their own, the chunks are the sample.
        let sample = match case.sample.is_empty() {
            true => None,
            false => Some(round_trip(case, &case.sample)?),
        };
        let bytes = |messages: &[Bytes]| messages.iter().map(Bytes::len).sum::<usize>();
        let sample_chunks = if case.sample.is_empty() { &case.chunks } else { &case.sample };
        measured.push(Figures {
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
        for ((case, messages), figures) in cases.iter().zip(&messages).zip(&mut measured) {
            let last = figures
                .encode_ns
                .last()
                .zip(figures.decode_ns.last())
                .map_or(0.0, |(encode, decode)| encode + decode);
            if last > LONG_NS && figures.encode_ns.len() >= LONG_ROUNDS {
                continue;
            }
            figures.encode_ns.push(processor_time(|| {
                case.chunks.iter().try_for_each(|chunk| {
                    black_box(case.codec.encode(chunk)?);
                    Ok(())
                })
            })?);
            figures.decode_ns.push(processor_time(|| {
                messages.iter().try_for_each(|message| {
                    black_box(case.codec.decode(message.clone())?);
                    Ok(())
                })
            })?);
        }
    }
    Ok(measured)
}

/// Encodes the chunks, and compares what comes back.
fn round_trip(case: &Case, chunks: &[RecordBatch]) -> Result<Vec<Bytes>> {
    let failed = |what: &str| format!("{}, {}, {}: {what}", case.experiment, case.data, case.name);
    let mut messages = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let message = joined(case.codec.encode(chunk).map_err(|error| failed(&error.to_string()))?);
        let decoded =
            case.codec.decode(message.clone()).map_err(|error| failed(&error.to_string()))?;
        if decoded.num_rows() != chunk.num_rows() || decoded.columns() != chunk.columns() {
            return Err(failed("other values came back").into());
        }
        messages.push(message);
    }
    Ok(messages)
}

/// The processor time of a run in nanoseconds: the mean of as many as a measurement needs.
fn processor_time(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = processor_ns();
    let mut runs = 0.0;
    loop {
        run()?;
        runs += 1.0;
        let spent = processor_ns() - start;
        if spent >= LEAST_NS {
            return Ok(spent / runs);
        }
    }
}

/// The time that this thread has run so far: what other programs take is not in it.
fn processor_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
