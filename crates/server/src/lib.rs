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
mod arrow_files;
mod attended;
mod begin;
pub mod catalog;
mod certificate;
mod compute;
mod connection;
mod dialect;
mod engine;
mod error_text;
mod functions;
pub mod left_behind;
mod listen;
mod metrics;
mod pipes;
mod plan_rule;
mod planning;
mod prices;
mod safety;
mod server;
mod socket;
pub mod sort;
mod statement;
mod tcp;
mod thread;
pub mod tpch;
mod turns;

pub use metrics::Metrics;
pub use server::{ServeError, ServeOptions, Server};
