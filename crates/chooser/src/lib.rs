//! Chooses how each column of a chunk is compressed, and how many rows the chunk has.
//!
//! ```text
//!                        ┌──────────── Adaptive ────────────┐
//!   what was encoded ───▶│ choice: what each column costs   │
//!   what was sent ──────▶│ price: λ, the price of a byte    │──▶ compression, rows
//!                        └──────────────────────────────────┘
//! ```
//!
//! The pipeline of the server (`dray-transfer`) and the PostgreSQL extension share this crate. It
//! has no runtime, starts no threads and does no I/O.

#![forbid(unsafe_code)]

mod adaptive;
mod choice;
mod price;

pub use adaptive::{Adaptive, Plan};
pub use price::Passage;
