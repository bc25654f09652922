//! The server: its options, its listeners, and how it stops.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use datafusion::prelude::SessionContext;
use dray_wire::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::admission::Admission;
use crate::catalog::{self, CatalogError, CatalogOptions};
use crate::compute::Compute;
use crate::connection::{self, Shared};
use crate::engine::Engine;
use crate::listen::{Incoming, Listener, tls_acceptor};
use crate::metrics::Metrics;
use crate::prices::Prices;
use crate::safety;
use crate::turns::{Place, Places, Turns};

/// The largest request for metrics that is read, in bytes.
const METRICS_REQUEST_BYTES_MAX: u64 = 8 << 10;

/// So many are answered at a time, each within this time.
const METRICS_CONNECTIONS_MAX: usize = 8;
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);
/// So many clients at a time are told that there is no place for them, each within this time.
const REFUSALS_MAX: usize = 16;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

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

/// A server that has its tables and its sockets.
pub struct Server {
    listeners: Vec<Listener>,
    metrics: Option<TcpListener>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Opens the tables and binds the sockets. Nothing is answered until [`Server::run`].
    ///
    /// # Errors
    /// When a table can't be opened, an address can't be bound, or an address other than loopback
    /// has no token.
    pub async fn open(options: ServeOptions) -> Result<Self, ServeError> {
        // Sockets first: a port that is taken should not be found out after minutes of loading.
        let bound = Bound::new(&options).await?;
        let compute = Compute::new(options.catalog.threads);
        let failed =
            |cause: std::io::Error| ServeError::new(format!("can't start a thread: {cause}"));
        let lease = compute.lease(None).map_err(failed)?;
        let catalog = options.catalog.clone();
        let opened = lease.run(move |workers| workers.block_on(catalog::open(&catalog))).await;
        let context = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Self::new(bound, &context, compute, options))
    }

    /// As [`Server::open`], for a session whose tables and functions the caller has registered;
    /// `options.catalog` is ignored.
    ///
    /// # Errors
    /// As there, but for the tables.
    pub async fn with_context(
        context: SessionContext,
        options: ServeOptions,
    ) -> Result<Self, ServeError> {
        let compute = Compute::new(options.catalog.threads);
        Ok(Self::new(Bound::new(&options).await?, &context, compute, options))
    }

    fn new(
        bound: Bound,
        context: &SessionContext,
        compute: Arc<Compute>,
        options: ServeOptions,
    ) -> Self {
        let (stop, stopping) = watch::channel(false);
        let engine = Engine::new(context);
        let shared = Arc::new(Shared {
            admission: Admission::new(engine.memory_pool()),
            engine,
            token: options.token,
            hello_timeout: options.hello_timeout,
            behind_proxy: options.behind_proxy,
            stall_timeout: options.stall_timeout,
            stall_timeout_wanted: options.stall_timeout_wanted,
            wait_timeout: options.wait_timeout,
            plan_timeout: options.plan_timeout,
            metrics: Arc::new(Metrics::default()),
            prices: Prices::default(),
            turns: Turns::new(
                Places::of(options.connections_max, options.connections_per_host),
                Places::of(options.statements_max, options.statements_per_host),
            ),
            compute,
            stopping,
        });
        let Bound { listeners, metrics, certificate_expires } = bound;
        certificate_expires.into_iter().for_each(|at| shared.metrics.certificate_expires(at));
        Self { listeners, metrics, shared, stop }
    }

    /// What the server counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// The uris that clients connect to.
    pub fn uris(&self) -> Vec<String> {
        self.listeners.iter().map(Listener::uri).collect()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` is done; then takes no new connection or statement, and lets those that
    /// run finish. Dropping the future ends them at once.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listeners, metrics, shared, stop: stopping } = self;
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        let mut connections = JoinSet::new();
        let mut accepting = JoinSet::new();
        let (incoming, mut arrivals) = tokio::sync::mpsc::channel(16);
        for listener in listeners {
            let incoming = incoming.clone();
            accepting.spawn(async move {
                loop {
                    match listener.accept().await {
                        Ok(client) => {
                            if incoming.send(client).await.is_err() {
                                return;
                            }
                        }
                        Err(cause) => {
                            // Out of descriptors, most likely: wait for some to be given back.
                            warn!("can't accept a connection: {cause}");
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            });
        }
        if let Some(listener) = metrics {
            accepting.spawn(serve_metrics(listener, shared.metrics.clone()));
        }
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(client) = arrivals.recv() => match shared.turns.open(client.counted_as(shared.behind_proxy)) {
                    Ok(place) => drop(connections.spawn(serve(client, place, shared.clone()))),
                    Err(why) => {
                        warn!(peer = client.peer(), "refused: {why}");
                        // Those for whom there is no time are closed without a word.
                        if let Ok(turn) = refusals.clone().try_acquire_owned() {
                            connections.spawn(refuse(client, why, shared.clone(), turn));
                        }
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        accepting.shutdown().await;
        let _ = stopping.send(true);
        if !connections.is_empty() {
            info!("stopping: {} connections are finishing", connections.len());
        }
        while connections.join_next().await.is_some() {}
    }
}

/// The sockets of a server that is being opened.
struct Bound {
    listeners: Vec<Listener>,
    metrics: Option<TcpListener>,
    /// The first certificate to do so, of those that are shown to clients.
    certificate_expires: Option<DateTime<Utc>>,
}

impl Bound {
    async fn new(options: &ServeOptions) -> Result<Self, ServeError> {
        safety::check(options)?;
        let (tls, certificate_expires) = match &options.tls {
            Some((certificates, key)) => {
                let (tls, expires) = tls_acceptor(certificates, key)?;
                (Some(tls), expires)
            }
            None => (None, None),
        };
        let mut listeners = Vec::new();
        for address in &options.listen {
            listeners.push(Listener::tcp(*address, tls.clone()).await?);
        }
        if let Some(path) = &options.unix {
            listeners.push(Listener::unix(path).await?);
        }
        let metrics = match options.metrics {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|cause| {
                ServeError::new(format!("can't listen on http://{address} for metrics: {cause}"))
            })?),
            None => None,
        };
        Ok(Self { listeners, metrics, certificate_expires })
    }
}

async fn serve(client: Incoming, place: Place, shared: Arc<Shared>) {
    let peer = client.peer();
    let deadline = tokio::time::Instant::now() + shared.hello_timeout;
    match client.open(deadline, shared.behind_proxy).await {
        Ok(open) => connection::serve(open, deadline, peer, place, shared).await,
        Err(cause) => debug!(peer, "closed: {cause}"),
    }
}

async fn refuse(client: Incoming, why: String, shared: Arc<Shared>, _turn: OwnedSemaphorePermit) {
    let deadline = tokio::time::Instant::now() + REFUSAL_TIMEOUT;
    if let Ok(open) = client.open(deadline, shared.behind_proxy).await {
        connection::refuse(open, deadline, why, &shared).await;
    }
}

/// Answers every request with the counters: HTTP enough for a scraper.
async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    let places = Arc::new(Semaphore::new(METRICS_CONNECTIONS_MAX));
    loop {
        // Others wait in the system's queue, where they take no descriptors from clients.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(tokio::time::timeout(METRICS_TIMEOUT, async move {
            let _place = place;
            let mut request = Vec::new();
            let (read, mut write) = stream.split();
            let mut read = read.take(METRICS_REQUEST_BYTES_MAX);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                if read.read_buf(&mut request).await? == 0 {
                    break;
                }
            }
            let found = request.starts_with(b"GET /metrics");
            let (status, body) =
                if found { ("200 OK", metrics.render()) } else { ("404 Not Found", String::new()) };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            write.write_all(head.as_bytes()).await?;
            write.write_all(body.as_bytes()).await
        }));
    }
}
