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

mod adaptive;
mod choice;
#[cfg(feature = "pipeline")]
mod chunker;
#[cfg(feature = "pipeline")]
mod dictionary;
#[cfg(feature = "pipeline")]
mod lanes;
#[cfg(feature = "pipeline")]
mod maker;
mod price;
#[cfg(feature = "pipeline")]
mod produce;
#[cfg(feature = "pipeline")]
mod queue;

pub use adaptive::{Adaptive, Plan};
#[cfg(feature = "pipeline")]
pub use chunker::{Chunker, Cut, Settings};
#[cfg(feature = "pipeline")]
pub use maker::Maker;
pub use price::Passage;
#[cfg(feature = "pipeline")]
pub use produce::{Failure, Times, produce};
#[cfg(feature = "pipeline")]
pub use queue::{Queued, Receiver, Sender, queue};
