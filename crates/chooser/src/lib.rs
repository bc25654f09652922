//! Chooses how each column of a chunk is compressed, and how many rows the chunk has.
//!
//! ```text
//!   encoded columns ──▶ ColumnCosts: what each compression costs ──┐
//!                                                                  ├──▶ compressions, rows
//!   bytes sent ───────▶ Price: λ, what a byte on the network costs ┘
//! ```
//!
//! [`Chooser`] holds both. Each column gets the compression with the least `encode_ns + λ · bytes`.
//! Where the client takes pages, the same sum decides between pages and columns.
//!
//! The pipeline of the server (`dray-transfer`) and the PostgreSQL extension share this crate. It
//! has no runtime and starts no threads. What it asks the kernel is in two modules: [`TcpInfo`] and
//! [`thread_cpu_time`].

#![deny(unsafe_code)]

mod candidate;
mod chooser;
mod column_costs;
mod cpu_time;
mod line;
mod page_costs;
mod price;
mod tcp_info;

pub use chooser::{Chooser, ColumnChoices};
pub use column_costs::ColumnCosts;
pub use cpu_time::thread_cpu_time;
pub use line::Line;
pub use price::Delivery;
pub use tcp_info::{DeliveryMeter, TcpInfo};
