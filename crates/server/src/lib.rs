//! The server: it serves files as SQL tables, and sends query results to clients.
//!
//! ```text
//!   network threads                          the statement's own threads (compute)
//!   listen ─▶ connection ─▶ statement ─────▶ start ─▶ engine: SQL, plan (planning: its limits)
//!                              send           │          │ a stream of batches per partition
//!                               ▲             │          ▼
//!             socket ◀──────────┴─── queue ◀──┴─ produce: chunks (crate transfer)
//! ```
//!
//! The runtime that polls [`Server::run`] only does I/O on sockets. Everything else runs on threads
//! that each statement has for itself, so that no statement delays another one's I/O.
//!
//! [`catalog`] turns files and folders into tables. The query engine is DataFusion. Statements for
//! a named source are passed on by a [`Driver`](dray_driver::Driver) to a database, whose rows take
//! the place of the engine's.

#![deny(unsafe_code)]

mod admission;
mod arrow_batch_size;
pub mod catalog;
mod certificate;
mod compute;
mod connection;
mod dialect;
mod engine;
mod error_text;
mod exposure;
pub mod files;
mod functions;
mod grants;
mod known_costs;
mod known_lines;
mod listen;
mod liveness;
mod local_socket;
mod metrics;
mod options;
mod pipes;
mod plan_rule;
mod planning;
mod relay;
mod server;
mod slots;
mod socket;
pub mod sort;
pub mod stale_files;
mod statement;
mod tcp;
mod thread;
mod tickets;
pub mod tpch;
mod wide_keys;

pub use metrics::Metrics;
pub use options::{Grant, ServeError, ServeOptions, SourceOptions};
pub use server::Server;
