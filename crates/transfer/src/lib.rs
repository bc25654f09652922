//! The pipeline between a source and a socket. It knows neither: batches come in, chunks go out.
//!
//! ```text
//!   a producer for each stream of batches                       one writer
//!   ┌──────────────────────────────────────┐   bounded queue   ┌──────────────┐
//!   │ next batch ──▶ Chunker ──▶ encode    │ ─ ─ ─ ─ ─ ─ ─ ─ ▶ │ number, send │
//!   └──────────────────────────────────────┘  counted in bytes └──────────────┘
//! ```
//!
//! Encoding happens in the task that made the batch, so it scales with the source; where a source
//! has fewer streams than threads, several chunks of a stream are made side by side, and leave in
//! order. The queue holds a fixed number of encoded bytes, so a slow reader holds the producers
//! back, and a transfer takes the same memory whatever the result's size.

#![forbid(unsafe_code)]

mod chunker;
mod dictionary;
mod lanes;
mod maker;
mod produce;
mod queue;

pub use chunker::{Chunker, Cut, Settings};
pub use maker::Maker;
pub use produce::{Failure, Times, produce};
pub use queue::{Queued, Receiver, Sender, queue};
