//! The bytes of the PostgreSQL extension: rows come in as datums, frames of `spec/protocol.md` go
//! out.
//!
//! ```text
//!   C: receiver.c                          Rust: this crate
//!   a row ──────────────── dray_push_row ──▶ appender.rs (datum.rs reads)
//!   a value that only the server can read ◀── Plain, Sent
//!   its bytes ──────────── dray_push_sent ─▶ dray-pgtypes ─▶ BatchBuilder (dray-format)
//!   a full chunk ───────── dray_next_chunk ─▶ stream.rs ─▶ workers.rs ─▶ chunk_encoder.rs
//!   the parts of a frame ◀───────────────────────┴───────────────┘
//! ```
//!
//! Nothing here calls PostgreSQL, so that no `ereport` can cross a frame of Rust. Nothing unwinds
//! into C: each entry of [`ffi`] catches panics. Nothing aborts for want of memory: [`reserve`]
//! serves what can't fail, until the entry returns.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "appends without checks for room")]
mod appender;
mod chunk_encoder;
#[allow(unsafe_code, reason = "reads what PostgreSQL's datums point to")]
mod datum;
#[allow(unsafe_code, reason = "the entries that C calls")]
pub mod ffi;
#[allow(unsafe_code, reason = "reads the server's flags")]
mod interrupts;
#[allow(unsafe_code, reason = "the allocator")]
mod reserve;
mod settings;
#[allow(unsafe_code, reason = "passes datums on")]
mod stream;
#[allow(unsafe_code, reason = "POSIX threads")]
mod workers;
