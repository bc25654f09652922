//! What a caller can ask of a connection and of a query.

use std::path::PathBuf;
use std::time::Duration;

use arrow::array::RecordBatch;
use dray_format::Limits;
use dray_format::arrow::StringLayout;
use dray_pgtypes::{NonFinite, NumericAs};
use dray_wire::{Checksums, CompressionChoice, RowLayout, Secret};

use crate::error::{Error, Result};

/// How to connect. An option that the uri carries after its `?` overrides the one here.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The server's token. A token in the uri comes first, the variable `DRAY_TOKEN` last.
    pub token: Option<Secret>,
    /// Allows the token to travel unencrypted. Without it, a token is sent over TLS, a Unix socket
    /// or loopback only.
    pub plain_token: bool,
    /// A PEM file with the authority of the server's certificate; replaces the system's
    /// authorities.
    pub ca: Option<PathBuf>,
    /// The limit for connecting as a whole: name lookup, TCP, TLS, and the server's greeting or
    /// login.
    pub timeout: Duration,
    /// How long the server may be silent while the client waits for it. After that the statement
    /// fails and the connection is closed. The uri's own value comes first; None is unlimited.
    pub read_timeout: Option<Duration>,
    /// Moves a connection over plain TCP to a Unix socket, if the server runs on this host as this
    /// user and offers one. Without it, the connection stays on TCP.
    pub local_socket: bool,
    /// The name of this client in the server's log.
    pub client: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let client = concat!("dray-client ", env!("CARGO_PKG_VERSION")).to_owned();
        Self {
            token: None,
            plain_token: false,
            ca: None,
            timeout: Duration::from_secs(10),
            read_timeout: None,
            local_socket: true,
            client,
        }
    }
}

/// The longest timeout in seconds: ten years, which a clock can still add.
const TIMEOUT_SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// A timeout of `seconds`.
///
/// # Errors
/// Usage, if `seconds` is NaN, not above zero, or more than ten years.
pub fn timeout_from_seconds(seconds: f64) -> Result<Duration> {
    // A fraction below the clock's resolution rounds to zero.
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if !timeout.is_zero() && seconds <= TIMEOUT_SECONDS_MAX => Ok(timeout),
        _ => Err(Error::usage(format!(
            "a timeout of {seconds} seconds, expected more than 0 and at most ten years"
        ))),
    }
}

/// How a query's result travels and what it becomes.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The values of `$1, $2 …`, or of `?` in their order: a batch of one row.
    pub parameters: Option<RecordBatch>,
    /// How a PostgreSQL server is told the parameters' types.
    pub parameter_typing: ParameterTyping,
    /// The largest chunks to accept.
    pub limits: Limits,
    /// The least number of rows of a batch. The last batch, and batches of `batch_bytes`, may have
    /// fewer.
    pub batch_rows: usize,
    /// The bytes of Arrow data that make a batch, however few its rows: joining more would be
    /// copying for nothing.
    pub batch_bytes: u64,
    /// How chunks are compressed.
    pub compression: CompressionChoice,
    /// Whether chunks carry checksums.
    pub checksums: Checksums,
    /// The Arrow layout of strings.
    pub strings: StringLayout,
    /// Plans the statement without running it: the result has an estimate and no rows.
    pub plan_only: bool,
    /// Whether an estimate of the result's rows is worth a question to the database, since somebody
    /// watches the progress. MySQL and MariaDB need one, and MongoDB behind a Dray server.
    pub estimate: bool,
    /// How the rows of [`Connection::objects`](crate::Connection::objects) travel. Other results
    /// are always chunks.
    pub objects: RowLayout,
    /// Options for databases. MySQL and MariaDB refuse `extension` and `numeric`; a Dray server all
    /// of them but `nonfinite` for a source of PostgreSQL, MySQL or MariaDB.
    pub postgres: PostgresOptions,
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            parameters: None,
            parameter_typing: ParameterTyping::Values,
            limits: Limits::default(),
            batch_rows: 65_536,
            batch_bytes: 8 << 20,
            compression: CompressionChoice::Auto,
            checksums: Checksums::Auto,
            strings: StringLayout::default(),
            plan_only: false,
            estimate: false,
            objects: RowLayout::Either,
            postgres: PostgresOptions::default(),
        }
    }
}

/// How a PostgreSQL server is told the types of parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParameterTyping {
    /// Each value as a literal would be: an integer has the smallest type that holds it, and NULL
    /// none.
    #[default]
    Values,
    /// By the Arrow type of its column, NULL too. So all rows of one schema have the same types.
    Columns,
}

/// How the result of a database is read, and what becomes of values that Arrow can't hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whether to use the server's extension.
    pub extension: ExtensionChoice,
    /// What `numeric` without a declared precision becomes.
    pub numeric: NumericAs,
    /// What to do about infinite dates, NaN among decimals, 24:00, and MySQL's `0000-00-00`.
    pub nonfinite: NonFinite,
    /// The number of connections that read a table.
    pub partitions: Partitions,
    /// The column by whose values several connections divide a table of MySQL, first of an index.
    /// None is the primary key.
    pub partition_by: Option<String>,
    /// Keeps the order of the table's rows, or of MySQL's primary key, when several connections
    /// read it.
    pub ordered: bool,
}

/// The number of connections that read a table of PostgreSQL or MySQL under one snapshot. A
/// statement that can't be split is read over one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Partitions {
    /// Chosen by the table's size, the round trip to the server, this machine's processors and
    /// PostgreSQL's free connections. One for servers of MySQL, where a snapshot for several holds
    /// back other sessions.
    #[default]
    Auto,
    /// This many, from 1 to 64.
    Exactly(u8),
}

impl std::str::FromStr for Partitions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(count @ 1..=64)) => Ok(Self::Exactly(count)),
            _ => Err(format!("partitions {text:?}, expected auto or a number from 1 to 64")),
        }
    }
}

impl std::fmt::Display for Partitions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(count) => write!(f, "{count}"),
        }
    }
}

/// The connections besides its own over which a statement may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherConnections {
    /// The most of them.
    pub at_most: usize,
    /// Whether they may begin under MySQL's `FLUSH TABLES WITH READ LOCK`, which holds back other
    /// sessions for a moment.
    pub may_lock: bool,
}

/// Whether to use PostgreSQL's extension `dray`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtensionChoice {
    /// Where the server has it, except for statements whose last result had few rows.
    #[default]
    Auto,
    /// Always; the query fails without it.
    Always,
    /// Never.
    Never,
}

impl std::str::FromStr for ExtensionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("extension {text:?}, expected auto, always or never")),
        }
    }
}

impl std::fmt::Display for ExtensionChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        })
    }
}
