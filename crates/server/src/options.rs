//! What to serve, where, and to whom.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dray_driver::Driver;
use dray_wire::Secret;

use crate::catalog::{CatalogError, CatalogOptions};

/// How many sessions of a source may be open, unless its options say otherwise.
const SOURCE_CONNECTIONS_MAX: usize = 16;

/// What to serve, where, and to whom.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The tables.
    pub catalog: CatalogOptions,
    /// TCP addresses to listen on. Without TLS and without `behind_proxy`, clients of this host and
    /// user move from there to a Unix socket that the server also listens on (protocol.md section
    /// 11).
    pub listen: Vec<SocketAddr>,
    /// A Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// A certificate chain and its key, both PEM. With them the TCP addresses speak TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The token that opens everything. Every address but loopback requires it or `grants`.
    pub token: Option<Secret>,
    /// Tokens that open some sources only.
    pub grants: Vec<Grant>,
    /// A secret that servers have in common: each reads the parts of the others' plans, if it
    /// serves the same versions of the same files. Without one, and with a session of the caller's,
    /// a server reads its own.
    pub plan_secret: Option<Secret>,
    /// The databases that statements are passed on to.
    pub sources: Vec<SourceOptions>,
    /// An address that serves `GET /metrics` in Prometheus' text format, without authentication.
    pub metrics: Option<SocketAddr>,
    /// Whether other hosts may reach the address of `metrics`.
    pub metrics_public: bool,
    /// Maximum number of open connections. Further clients receive an error.
    pub connections_max: usize,
    /// Maximum number of open connections from one host; None is three quarters of
    /// `connections_max`. All clients on Unix sockets count as one host.
    pub connections_per_host: Option<usize>,
    /// Maximum number of running statements. Further statements wait.
    pub statements_max: usize,
    /// Maximum number of running statements from one host; None is three quarters of
    /// `statements_max`.
    pub statements_per_host: Option<usize>,
    /// How long a statement waits for a slot, and then for memory, before it fails.
    pub wait_timeout: Duration,
    /// How long planning a statement may take.
    pub plan_timeout: Duration,
    /// How long a client may take to send its hello.
    pub hello_timeout: Duration,
    /// Treat clients over loopback as remote, because a tunnel or a proxy connects for them:
    /// transfers to them adapt and carry checksums.
    pub behind_proxy: bool,
    /// How long a client may read nothing of a result before its connection is closed.
    pub stall_timeout: Duration,
    /// The same while other statements wait for a slot or for memory, or the server stops.
    pub stall_timeout_contended: Duration,
}

impl ServeOptions {
    /// The defaults for a catalog, without an address to listen on.
    pub fn new(catalog: CatalogOptions) -> Self {
        Self {
            catalog,
            listen: Vec::new(),
            unix: None,
            tls: None,
            token: None,
            grants: Vec::new(),
            plan_secret: None,
            sources: Vec::new(),
            metrics: None,
            metrics_public: false,
            connections_max: 1024,
            connections_per_host: None,
            statements_max: 64,
            statements_per_host: None,
            wait_timeout: Duration::from_secs(60),
            plan_timeout: Duration::from_secs(120),
            hello_timeout: Duration::from_secs(10),
            behind_proxy: false,
            stall_timeout: Duration::from_secs(15 * 60),
            stall_timeout_contended: Duration::from_secs(30),
        }
    }
}

/// A token that opens the named sources and no others.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The token.
    pub token: Secret,
    /// Names of sources; `files` stands for the server's own tables.
    pub sources: Vec<String>,
}

/// A database that statements are passed on to, and its name.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// The name that clients use.
    pub name: String,
    /// The database.
    pub driver: Arc<dyn Driver>,
    /// Maximum number of open sessions. Further clients wait.
    pub connections_max: usize,
}

impl SourceOptions {
    /// The defaults for a source.
    pub fn new(name: String, driver: Arc<dyn Driver>) -> Self {
        Self { name, driver, connections_max: SOURCE_CONNECTIONS_MAX }
    }
}

/// Why a server could not start, as a sentence for the user.
#[derive(Debug)]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

impl From<CatalogError> for ServeError {
    fn from(error: CatalogError) -> Self {
        Self(error.to_string())
    }
}
