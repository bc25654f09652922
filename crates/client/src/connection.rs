//! Connections, and what can be asked of them.

use std::borrow::BorrowMut;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{Limits, Schema};
use dray_pgtypes::{NonFinite, NumericAs};
use dray_wire::{Checksums, CompressionChoice, Secret};

use crate::error::{Error, ErrorKind, Result};
use crate::link::{DrayLink, Link, PostgresLink};
use crate::results::{Progress, Results};

/// How to connect. Options that a uri carries after its `?` come first.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The server's token; the uri's own comes first, the variable `DRAY_TOKEN` last.
    pub token: Option<Secret>,
    /// Whether a token may travel as it is. Unless asked for, it goes over TLS, a Unix socket or
    /// loopback only.
    pub plain_token: bool,
    /// A PEM file with the authority of the server's certificate, instead of the system's.
    pub ca: Option<PathBuf>,
    /// How long connecting may take in all: finding the address, TCP, TLS, the server's greeting or
    /// login.
    pub timeout: Duration,
    /// How long the server may send nothing while it is waited for, before a statement ends by an
    /// error and its connection with it; the uri's own comes first. None to wait as long as it
    /// takes.
    pub read_timeout: Option<Duration>,
    /// What the server's log calls this client.
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
            client,
        }
    }
}

/// The longest wait for a connection, in seconds, which a clock can still add: ten years.
const TIMEOUT_SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// A wait for a connection of so many seconds.
///
/// # Errors
/// Usage errors of what is no wait: zero, less, NaN, and more than ten years.
pub fn timeout_of(seconds: f64) -> Result<Duration> {
    // A wait shorter than the clock's step would be none.
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
    /// The values of `$1, $2 …`: a batch of one row.
    pub parameters: Option<RecordBatch>,
    /// The largest chunks to accept.
    pub limits: Limits,
    /// Batches hold at least this many rows, but for the last one and those of `batch_bytes`.
    pub batch_rows: usize,
    /// What has arrived with so many bytes of Arrow data is a batch, however few its rows: joining
    /// is copying.
    pub batch_bytes: u64,
    /// How chunks are compressed.
    pub compression: CompressionChoice,
    /// Whether they carry checksums.
    pub checksums: Checksums,
    /// How strings are held.
    pub strings: StringLayout,
    /// Plan, but don't run: the result has an estimate and no rows.
    pub plan_only: bool,
    /// What is said to PostgreSQL only.
    pub postgres: PostgresOptions,
}

/// How a result of PostgreSQL comes, and what becomes of values that Arrow does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whether the server's extension is used.
    pub extension: ExtensionChoice,
    /// What `numeric` without a declared precision becomes.
    pub numeric: NumericAs,
    /// What to do about infinite dates, NaN among decimals, and 24:00.
    pub nonfinite: NonFinite,
    /// Over how many connections a table is read.
    pub partitions: Partitions,
    /// Whether rows come in the order of the table even so.
    pub ordered: bool,
}

/// Over how many connections a table of PostgreSQL is read, under one snapshot. What can't be split
/// comes over one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Partitions {
    /// As many as the table's size, this machine's processors and the server's free connections
    /// suggest.
    #[default]
    Auto,
    /// So many.
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

/// Whether PostgreSQL's extension `dray` is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtensionChoice {
    /// Where the server has it, but for statements whose last result had few rows.
    #[default]
    Auto,
    /// Always: without it, fail.
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

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            parameters: None,
            limits: Limits::default(),
            batch_rows: 65_536,
            batch_bytes: 8 << 20,
            compression: CompressionChoice::Auto,
            checksums: Checksums::Auto,
            strings: StringLayout::default(),
            plan_only: false,
            postgres: PostgresOptions::default(),
        }
    }
}

/// What somebody who watches a statement wants of it. What was wanted first is still wanted later,
/// or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// That it goes on.
    #[default]
    Continue,
    /// That it is cancelled: the server has two seconds to confirm, after which the connection can
    /// be used again.
    Cancel,
    /// That nobody waits for the server, not even for a cancelled statement's end: the connection
    /// is given up.
    Leave,
}

/// Looks at a statement's progress now and then, at least every 50 ms or so, until its end.
pub type Watch = Box<dyn FnMut(&Progress) -> Wish + Send>;

/// A connection to a server. It runs one statement at a time.
#[derive(Debug)]
pub struct Connection {
    link: Box<dyn Link>,
    /// The process that connected.
    process: u32,
    connect_time: Duration,
    /// That of the last statement: the next one may be the same.
    decoder: Option<(StringLayout, Decoder)>,
}

impl Connection {
    /// Connects to the server at `uri`: a Dray server, or PostgreSQL.
    ///
    /// # Errors
    /// When the uri is not one, nobody answers there, or the server refuses.
    pub fn connect(uri: &str, options: &ConnectOptions) -> Result<Self> {
        Self::connect_while(uri, options, &mut || true)
    }

    /// As [`Connection::connect`], as long as `wanted`, which is asked at least every 50 ms or so,
    /// says so.
    ///
    /// # Errors
    /// As there, and when it is not wanted any more.
    pub fn connect_while(
        uri: &str,
        options: &ConnectOptions,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let started = Instant::now();
        if options.timeout.is_zero()
            || options.read_timeout.is_some_and(|timeout| timeout.is_zero())
        {
            return Err(Error::usage("a timeout of 0, expected more")
                .hint("no read_timeout waits as long as it takes"));
        }
        let mut unwanted = false;
        let mut wanted = || {
            unwanted = unwanted || !wanted();
            !unwanted
        };
        let link = match PostgresLink::is_for(uri) {
            true => PostgresLink::connect(uri, options, &mut wanted)
                .map(|link| Box::new(link) as Box<dyn Link>),
            false => DrayLink::connect(uri, options, &mut wanted).map(|link| Box::new(link) as _),
        };
        let link = link.map_err(|error| match unwanted {
            true => Error::new(ErrorKind::Cancelled, "connecting was cancelled"),
            false => error,
        })?;
        Ok(Self {
            link,
            process: std::process::id(),
            connect_time: started.elapsed(),
            decoder: None,
        })
    }

    /// A connection that speaks through this link.
    #[cfg(test)]
    pub(crate) fn over(link: Box<dyn Link>) -> Self {
        Self { link, process: std::process::id(), connect_time: Duration::ZERO, decoder: None }
    }

    /// The server's name and version.
    pub fn server(&self) -> &str {
        self.link.server()
    }

    /// Where the server is, without secrets.
    pub fn place(&self) -> &str {
        self.link.place()
    }

    /// How long connecting took.
    pub fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// Whether another query can be sent.
    pub fn is_usable(&self) -> bool {
        self.is_own() && self.link.is_usable()
    }

    /// Whether this process has made it. A fork's child has a copy of its parent's, on which both
    /// would read each other's answers.
    pub(crate) fn is_own(&self) -> bool {
        std::process::id() == self.process
    }

    /// Refuses a fork's child.
    pub(crate) fn check_own(&self) -> Result<()> {
        match self.is_own() {
            true => Ok(()),
            false => {
                let what = format!(
                    "the connection belongs to process {}, of which this one is a fork",
                    self.process
                );
                Err(Error::usage(what).hint("connect again in the child"))
            }
        }
    }

    /// Runs a statement. Its result borrows the connection until it is read to the end or dropped,
    /// which cancels it.
    ///
    /// # Errors
    /// When the statement does not plan, or the connection breaks.
    pub fn query(&mut self, sql: &str, options: &QueryOptions) -> Result<Results<&mut Self>> {
        Results::start(self, sql, options, None)
    }

    /// As [`Connection::query`], for a result that owns the connection or shares it in its own way,
    /// and is watched.
    ///
    /// # Errors
    /// As there.
    pub fn query_with<C: BorrowMut<Self>>(
        connection: C,
        sql: &str,
        options: &QueryOptions,
        watch: Option<Watch>,
    ) -> Result<Results<C>> {
        Results::start(connection, sql, options, watch)
    }

    /// A decoder for a stream of this schema.
    pub(crate) fn decoder(&mut self, schema: Arc<Schema>, strings: StringLayout) -> Decoder {
        match &self.decoder {
            Some((layout, decoder)) if *layout == strings && decoder.is_for(&schema) => {
                decoder.clone()
            }
            _ => {
                let decoder = Decoder::new(schema, strings);
                self.decoder = Some((strings, decoder.clone()));
                decoder
            }
        }
    }

    pub(crate) fn link(&mut self) -> &mut dyn Link {
        &mut *self.link
    }
}
