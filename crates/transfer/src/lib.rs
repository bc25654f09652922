//! The pipeline between a source and a socket. It knows neither: batches come in, chunks go out.
//!
//! ```text
//!   a producer for each stream of batches                       one writer
//!   ┌──────────────────────────────────────┐   bounded queue   ┌──────────────┐
//!   │ next batch ──▶ Chunker ──▶ encode    │ ─ ─ ─ ─ ─ ─ ─ ─ ▶ │ number, send │
//!   └──────────────────────────────────────┘  counted in bytes └──────────────┘
//! ```
//!
//! Encoding happens in the task that made the batch, so it scales with the source. The queue holds a fixed number of
//! encoded bytes, so a slow reader holds the producers back, and a transfer takes the same memory whatever the result's
//! size.

#![forbid(unsafe_code)]

mod adaptive;
mod choice;
mod chunker;
mod dictionary;
mod price;
mod produce;
mod queue;

pub use adaptive::Adaptive;
pub use chunker::{Chunker, Settings};
pub use produce::{Failure, Times, produce};
pub use queue::{Queued, Receiver, Sender, queue};
