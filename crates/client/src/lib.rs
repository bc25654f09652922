//! Connections to a Dray server, and results as Arrow.
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
//! [`Connection`] blocks; [`AsyncConnection`] is the same for programs on tokio. The protocol
//! itself is `dray-wire`'s. A chunk's body goes from the socket straight into the memory that its
//! arrays will point to (`pool`), and is decoded there (`dray-format`).

#![deny(unsafe_code)]

mod asynchronous;
pub mod calendar;
mod connection;
mod dictionaries;
mod error;
mod feed;
mod join;
mod link;
mod pool;
mod results;
mod transport;
mod uri;

pub use asynchronous::{AsyncConnection, AsyncResults};
pub use connection::{
    ConnectOptions, Connection, ExtensionChoice, Partitions, PostgresOptions, QueryOptions, Watch,
    Wish, timeout_of,
};
pub use dray_format::arrow::StringLayout;
pub use dray_format::{ColumnProfile, Limits, Profile};
pub use dray_pgtypes::{NonFinite, NumericAs, Options as TypeOptions};
pub use dray_postgres::{Description, Options as RowOptions, enclosable, is_query, other_library};
pub use dray_wire::{
    Checksums, CompressionChoice, Estimate, Finished, Known, PriceSet, Report, Secret,
};
pub use error::{Error, ErrorKind, Result};
pub use feed::Feed;
pub use link::{Route, RouteKind};
pub use results::{Progress, Results, Stats};
pub use uri::Uri;
