//! What to serve, where, and to whom.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dray_wire::Secret;

use crate::catalog::{CatalogError, CatalogOptions};

/// What to serve, where, and to whom.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The tables.
    pub catalog: CatalogOptions,
    /// TCP addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// A Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// A certificate chain and its key, PEM: the TCP addresses speak TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The token that clients must give. Required on any address but loopback.
    pub token: Option<Secret>,
    /// An address that answers `GET /metrics` in Prometheus' format, to everybody who can reach it.
    pub metrics: Option<SocketAddr>,
    /// That address may be one that other hosts can reach.
    pub metrics_public: bool,
    /// The most connections at a time; more are told so, and closed.
    pub connections_max: usize,
    /// The most of them from one host; three quarters of all if nothing is said. All over the Unix
    /// socket are one host's.
    pub connections_per_host: Option<usize>,
    /// The most statements that run at a time; others wait.
    pub statements_max: usize,
    /// The most of them from one host; three quarters of all if nothing is said.
    pub statements_per_host: Option<usize>,
    /// How long a statement waits for its turn before it is refused.
    pub wait_timeout: Duration,
    /// How long a statement may be planned.
    pub plan_timeout: Duration,
    /// How long a client may take to greet.
    pub hello_timeout: Duration,
    /// Clients that seem to be on this host come through a tunnel or a proxy: transfers to them
    /// adapt, with checksums.
    pub behind_proxy: bool,
    /// How long a client may read nothing of a result before it is given up.
    pub stall_timeout: Duration,
    /// The same while statements of others wait for a turn, or the server stops.
    pub stall_timeout_wanted: Duration,
}

impl ServeOptions {
    /// The defaults for a catalog: nothing to listen on yet.
    pub fn new(catalog: CatalogOptions) -> Self {
        Self {
            catalog,
            listen: Vec::new(),
            unix: None,
            tls: None,
            token: None,
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
            stall_timeout_wanted: Duration::from_secs(30),
        }
    }
}

/// Why a server could not start.
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
