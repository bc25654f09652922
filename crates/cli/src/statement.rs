//! Arguments of the client commands: a server, a statement, its parameters and limits.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use dray_client::{
    CompressionChoice, ConnectOptions, Connection, ErrorKind, ExtensionChoice, Limits, NonFinite,
    NumericAs, Objects, Partitions, PostgresOptions, QueryOptions, Results, RowLayout, Secret,
    timeout_from_seconds,
};
use dray_sort::ByteSize;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::parameters;
use crate::progress::Meter;
use crate::serve::read_token;

/// A statement and where to run it.
#[derive(Debug, Args)]
pub(crate) struct Statement {
    /// The server: dray://HOST[:PORT], drays://HOST[:PORT] (TLS), dray+unix:///PATH,
    /// postgresql://USER@HOST/DATABASE, mysql://… or mariadb://USER@HOST/DATABASE
    uri: String,
    /// The statement, or - to read it from standard input
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// Read the statement from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The value of the next parameter: $1, $2 …, or ? of MySQL; see below
    #[arg(short, long = "param", value_name = "VALUE", allow_hyphen_values = true)]
    parameters: Vec<String>,
    /// Compression of the transfer: auto, none, light, lz4, zstd or zstd:LEVEL
    #[arg(long, value_name = "CHOICE", default_value_t, help_heading = "Transfer")]
    compression: CompressionChoice,
    /// Maximum size of a chunk, as sent
    #[arg(long, value_name = "SIZE", help_heading = "Transfer")]
    chunk_bytes_max: Option<ByteSize>,
    /// Maximum size of a chunk, decoded
    #[arg(long, value_name = "SIZE", help_heading = "Transfer")]
    decoded_bytes_max: Option<ByteSize>,
    /// Maximum size of a single row
    #[arg(long, value_name = "SIZE", help_heading = "Transfer")]
    row_bytes_max: Option<ByteSize>,
    /// Use the server's extension dray: auto (if installed, except for statements that had few
    /// rows), always or never
    #[arg(long, value_name = "WHEN", default_value_t, help_heading = "PostgreSQL")]
    extension: ExtensionChoice,
    /// The type of numeric without a precision: text, float64 or decimal(PRECISION,SCALE)
    #[arg(long, value_name = "TYPE", default_value_t, help_heading = "PostgreSQL")]
    numeric: NumericAs,
    /// Infinite dates, NaN in decimals, 24:00, and MySQL's 0000-00-00 become: error, null, or text,
    /// which changes the type of all such columns
    #[arg(long, value_name = "WHAT", default_value_t, help_heading = "PostgreSQL and MySQL")]
    nonfinite: NonFinite,
    /// Connections that read a table in one snapshot: auto, or a number
    #[arg(long, value_name = "N", default_value_t, help_heading = "PostgreSQL and MySQL")]
    partitions: Partitions,
    /// Column by whose values several connections divide a table of MySQL, the first of an index
    /// [default: that of the primary key]
    #[arg(long, value_name = "COLUMN", help_heading = "PostgreSQL and MySQL")]
    partition_by: Option<String>,
    /// Keep the order of the table's rows with several connections
    #[arg(long, help_heading = "PostgreSQL and MySQL")]
    ordered: bool,
    #[command(flatten)]
    login: Login,
    /// No progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What to do with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    PlanOnly,
}

/// How to log in to a server.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// File with the server's token; alternatively, set the variable DRAY_TOKEN
    #[arg(long, value_name = "FILE", conflicts_with = "token", help_heading = "Connection")]
    token_file: Option<PathBuf>,
    /// The server's token. Other users can see it in the list of processes, so prefer
    /// --token-file
    #[arg(long, value_name = "TOKEN", help_heading = "Connection")]
    token: Option<Secret>,
    /// Send the token without TLS, over a trusted network
    #[arg(long, help_heading = "Connection")]
    plain_token: bool,
    /// Stay on TCP, instead of moving to a Unix socket of a Dray server that runs on this host as
    /// this user
    #[arg(long, help_heading = "Connection")]
    no_local_socket: bool,
    /// PEM file with the certificate authority of the server, instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    ca: Option<PathBuf>,
    /// Timeout for connecting, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, help_heading = "Connection")]
    timeout: f64,
    /// Timeout for each wait for data from the server, in seconds [default: none]
    #[arg(long, value_name = "SECONDS", help_heading = "Connection")]
    read_timeout: Option<f64>,
}

impl Statement {
    /// Connects and sends the statement.
    pub(crate) fn start(
        &self,
        mode: Mode,
        interrupt: &Interrupt,
        meter: &Meter,
    ) -> Result<Results<Connection>, Failure> {
        let (connection, sql, options) = self.connect(mode)?;
        let watch = meter.watch(interrupt.clone());
        Connection::query_with(connection, &sql, &options, Some(watch))
            .map_err(|error| failed(error, interrupt))
    }

    /// The same for rows that are read as objects, and travel in this layout.
    pub(crate) fn start_objects(
        &self,
        layout: RowLayout,
        interrupt: &Interrupt,
        meter: &Meter,
    ) -> Result<Objects<Connection>, Failure> {
        let (connection, sql, options) = self.connect(Mode::Run)?;
        let options = QueryOptions { objects: layout, ..options };
        let watch = meter.watch(interrupt.clone());
        Connection::objects_with(connection, &sql, &options, Some(watch))
            .map_err(|error| failed(error, interrupt))
    }

    fn connect(&self, mode: Mode) -> Result<(Connection, String, QueryOptions), Failure> {
        let options = self.query_options(mode)?;
        let connect_options = self.login.options()?;
        let sql = self.sql()?;
        let connection =
            Connection::connect(&self.uri, &connect_options).map_err(Failure::Client)?;
        Ok((connection, sql, options))
    }

    /// The options of connections.
    pub(crate) fn connect_options(&self) -> Result<ConnectOptions, Failure> {
        self.login.options()
    }

    /// The requested compression.
    pub(crate) fn compression(&self) -> CompressionChoice {
        self.compression
    }

    fn sql(&self) -> Result<String, Failure> {
        let unreadable = |name: String| move |cause| Failure::Usage(format!("{name}: {cause}"));
        match (self.sql.as_deref(), &self.file) {
            (Some("-"), _) => {
                let mut sql = String::new();
                std::io::stdin()
                    .read_to_string(&mut sql)
                    .map_err(unreadable("standard input".to_owned()))?;
                Ok(sql)
            }
            (Some(sql), _) => Ok(sql.to_owned()),
            (None, Some(path)) => {
                std::fs::read_to_string(path).map_err(unreadable(path.display().to_string()))
            }
            (None, None) => Err(Failure::Usage("no statement given".to_owned())),
        }
    }

    fn query_options(&self, mode: Mode) -> Result<QueryOptions, Failure> {
        let limits = Limits::default();
        let chosen = |size: Option<ByteSize>, default| size.map_or(default, |size| size.0);
        let chunk_bytes_max = chosen(self.chunk_bytes_max, limits.chunk_bytes_max);
        // Raising one limit also raises those that must be at least as high.
        let limits = Limits {
            chunk_bytes_max,
            decoded_bytes_max: chosen(
                self.decoded_bytes_max,
                limits.decoded_bytes_max.max(chunk_bytes_max),
            ),
            row_bytes_max: chosen(self.row_bytes_max, limits.row_bytes_max.max(chunk_bytes_max)),
        };
        Ok(QueryOptions {
            parameters: parameters::row(&self.parameters).map_err(Failure::Usage)?,
            limits,
            compression: self.compression,
            plan_only: mode == Mode::PlanOnly,
            // The meter shows on terminals alone.
            estimate: mode == Mode::PlanOnly || (!self.quiet && std::io::stderr().is_terminal()),
            postgres: PostgresOptions {
                extension: self.extension,
                numeric: self.numeric,
                nonfinite: self.nonfinite,
                partitions: self.partitions,
                partition_by: self.partition_by.clone(),
                ordered: self.ordered,
            },
            ..QueryOptions::default()
        })
    }
}

impl Login {
    /// The options of the connection.
    pub(crate) fn options(&self) -> Result<ConnectOptions, Failure> {
        let from_file =
            self.token_file.as_deref().map(read_token).transpose().map_err(Failure::Usage)?;
        let seconds = |name: &str, value: f64| {
            timeout_from_seconds(value)
                .map_err(|_| Failure::Usage(format!("--{name} {value}: expected seconds above 0")))
        };
        let timeout = seconds("timeout", self.timeout)?;
        let read_timeout =
            self.read_timeout.map(|value| seconds("read-timeout", value)).transpose()?;
        Ok(ConnectOptions {
            token: self.token.clone().or(from_file),
            plain_token: self.plain_token,
            ca: self.ca.clone(),
            timeout,
            read_timeout,
            local_socket: !self.no_local_socket,
            client: concat!("dray ", env!("CARGO_PKG_VERSION")).to_owned(),
        })
    }
}

/// The failure of a statement, or the interrupt that cancelled it.
pub(crate) fn failed(error: dray_client::Error, interrupt: &Interrupt) -> Failure {
    match error.kind() {
        ErrorKind::Cancelled if interrupt.is_raised() => Failure::Interrupted,
        _ => Failure::Client(error),
    }
}
