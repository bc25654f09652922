//! The Rust half of the PostgreSQL extension: rows come in as datums, frames of `spec/protocol.md`
//! go out.
//!
//! ```text
//!   C: receiver.c                           Rust: this crate
//!   a row ──────────────── dray_push_row ──▶ row_assembler.rs ─▶ appender.rs (datum.rs reads)
//!   a value only the server can read ◀────── NeedsDetoasting, NeedsSerialized
//!   its bytes ──────────── dray_push_serialized ─▶ row_assembler.rs ─▶ dray-pgtypes, dray-format
//!   a full chunk ───────── dray_next_chunk ▶ scheduler.rs ─▶ cutter.rs ─▶ chunk_encoder.rs
//!   the parts of a frame ◀────────────────── stream.rs            (here or in workers.rs)
//! ```
//!
//! Nothing here calls PostgreSQL, so no `ereport` crosses a Rust frame. Nothing unwinds into C:
//! each entry of [`ffi`] catches panics. Nothing aborts for want of memory: [`reserve`] serves the
//! allocations that can't fail, until the entry returns.

#![deny(unsafe_code)]

mod accounting;
#[allow(unsafe_code, reason = "appends without checking for space")]
mod appender;
mod chunk_encoder;
mod cutter;
#[allow(unsafe_code, reason = "reads what PostgreSQL's datums point to")]
mod datum;
mod encode_policy;
mod failure;
#[allow(unsafe_code, reason = "the entries that C calls")]
pub mod ffi;
#[allow(unsafe_code, reason = "reads the server's flags")]
mod interrupts;
#[allow(unsafe_code, reason = "the allocator")]
mod reserve;
#[allow(unsafe_code, reason = "appends datums without checks")]
mod row_assembler;
mod scheduler;
mod settings;
#[allow(unsafe_code, reason = "passes datums on")]
mod stream;
#[allow(unsafe_code, reason = "POSIX threads")]
mod workers;
