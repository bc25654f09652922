//! The server: files as SQL tables, and their results to clients.
//!
//! ```text
//!   listen ──▶ connection ──▶ statement ──▶ compute: threads of the statement's own
//!                                 │            begin ──▶ engine: SQL, plan, a stream of batches for each partition
//!                                 │                        │ planning: how much the engine is given
//!                                 │         transfer: cut, encode, queue
//!                                 ◀────────────────────────┘
//!                            socket: number, write what is ready, read what the client says meanwhile
//! ```
//!
//! The runtime that [`Server::run`] is polled on has the sockets, and computes nothing.
//!
//! [`catalog`] turns what the user names into tables. The engine is DataFusion; what it can't do is
//! not done here.

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
mod functions;
mod listen;
mod liveness;
mod metrics;
mod options;
mod pipes;
mod plan_rule;
mod planning;
mod prices;
mod server;
mod slots;
mod socket;
pub mod sort;
pub mod stale_files;
mod statement;
pub mod tpch;
mod way;

pub use metrics::Metrics;
pub use options::{ServeError, ServeOptions};
pub use server::Server;
