//! Connections to a Dray server, PostgreSQL, MySQL or MariaDB, and results as Arrow.
//!
//! ```no_run
//! use dray_client::{ConnectOptions, Connection, QueryOptions};
//!
//! let mut connection = Connection::connect("dray://localhost", &ConnectOptions::default())?;
//! for batch in connection.query("SELECT * FROM lineitem", &QueryOptions::default())? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), dray_client::Error>(())
//! ```
//!
//! [`Connection`] blocks; [`AsyncConnection`] is the same for programs on tokio.
//!
//! ```text
//!   Connection ── Source: Dray server, PostgreSQL … ──▶ batches ──▶ Results ──▶ the caller
//!                   └ decodes into memory.rs                        └ joins, counts, cancels
//! ```

#![deny(unsafe_code)]

mod asynchronous;
mod connection;
mod copy_decoder;
mod error;
pub mod export;
mod held_plan;
mod lease;
mod memory;
mod objects;
mod options;
mod partition;
mod results;
mod source;
mod stats;
mod transaction;
mod watch;
mod write;

pub use asynchronous::{AsyncConnection, AsyncResults};
pub use connection::Connection;
pub use copy_decoder::CopyDecoder;
pub use dray_format::arrow::StringLayout;
pub use dray_format::calendar;
pub use dray_format::{ColumnProfile, Limits, Profile};
pub use dray_pgtypes::{NonFinite, NumericAs, Options as TypeOptions};
pub use dray_postgres::{Description, Options as RowOptions, enclosable, is_query, other_library};
pub use dray_wire::{
    Checksums, CompressionChoice, Estimate, Finished, Known, PriceSet, Report, RowLayout, Secret,
};
pub use error::{Error, ErrorKind, Result, panic_text};
pub use held_plan::{HeldPlan, HoldOptions, Lent};
pub use lease::{ConnectionSlot, Lease, LeaseError};
pub use objects::Objects;
pub use options::{
    ConnectOptions, ExtensionChoice, OtherConnections, ParameterTyping, Partitions,
    PostgresOptions, QueryOptions, timeout_from_seconds,
};
pub use partition::{Part, Plan, PlanOptions, Proof};
pub use results::Results;
pub use source::{SourceKind, Uri};
pub use stats::{PathKind, Progress, Stats, TransferPath};
pub use transaction::{Isolation, Transaction};
pub use watch::{Verdict, Watch};
pub use write::{WriteMode, WriteOptions, WriteStats};
