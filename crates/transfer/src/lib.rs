//! The pipeline between a source and a socket. It knows neither: batches come in, chunks or pages
//! go out.
//!
//! ```text
//!   one producer per stream of batches                          one writer
//!   ┌──────────────────────────────────────┐   bounded queue   ┌──────────────┐
//!   │ next batch ──▶ Chunker ──▶ encode    │ ─ ─ ─ ─ ─ ─ ─ ─ ▶ │ number, send │
//!   └──────────────────────────────────────┘  counted in bytes └──────────────┘
//! ```
//!
//! The task that reads a batch also encodes it, so encoding scales with the source. Where a source
//! has fewer streams than threads, several chunks of a stream are encoded in parallel and leave in
//! order. The queue holds a fixed number of encoded bytes: a slow reader stops the producers, and a
//! transfer takes the same memory whatever the size of the result.

#![forbid(unsafe_code)]

mod chunk_encoder;
mod chunker;
mod dictionary;
mod parallel_encoder;
mod payload;
mod produce;
mod queue;

pub use chunk_encoder::ChunkEncoder;
pub use chunker::{Chunker, Settings, UnencodedChunk};
pub use payload::{EncodeError, PAGES_TIMES_CHUNK, Pages, Payload};
pub use produce::{Failure, Times, produce};
pub use queue::{Queued, Receiver, Sender, queue};
