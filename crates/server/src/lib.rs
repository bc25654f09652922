//! The server: files as SQL tables, and their results to clients.
//!
//! ```text
//!   listen ──▶ connection ──▶ statement ──▶ engine: SQL, plan, a stream of batches for each partition
//!                                 │                       │
//!                                 │        transfer: cut, encode, queue
//!                                 ◀───────────────────────┘
//!                            socket: number, write what is ready, read what the client says meanwhile
//! ```
//!
//! [`catalog`] turns what the user names into tables. The engine is DataFusion; what it can't do is not done here.

#![deny(unsafe_code)]

pub mod catalog;
mod connection;
mod engine;
mod listen;
mod metrics;
mod pipes;
mod prices;
mod server;
mod socket;
pub mod sort;
mod statement;
pub mod tpch;
mod way;

pub use metrics::Metrics;
pub use server::{ServeError, ServeOptions, Server};
