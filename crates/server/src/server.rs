//! The server: its options, its listeners, and how it stops.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::SessionContext;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::catalog::{self, CatalogError, CatalogOptions};
use crate::connection::{self, Shared};
use crate::engine::Engine;
use crate::listen::{Incoming, Listener, tls_acceptor};
use crate::metrics::Metrics;
use crate::prices::Prices;

/// The largest request for metrics that is read, in bytes.
const METRICS_REQUEST_BYTES_MAX: u64 = 8 << 10;

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
    pub token: Option<String>,
    /// An address that answers `GET /metrics` in Prometheus' format.
    pub metrics: Option<SocketAddr>,
    /// The most connections at a time; more are closed at once.
    pub connections_max: usize,
    /// The most statements that run at a time; others wait.
    pub statements_max: usize,
    /// How long a client may take to greet.
    pub hello_timeout: Duration,
    /// Clients that seem to be on this host come through a tunnel or a proxy: transfers to them adapt, with checksums.
    pub behind_proxy: bool,
    /// How long a client may read nothing of a result before it is given up.
    pub stall_timeout: Duration,
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
            connections_max: 1024,
            statements_max: 64,
            hello_timeout: Duration::from_secs(10),
            behind_proxy: false,
            stall_timeout: Duration::from_secs(15 * 60),
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
    connections_max: usize,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Opens the tables and binds the sockets. Nothing is answered until [`Server::run`].
    ///
    /// # Errors
    /// When a table can't be opened, an address can't be bound, or an address other than loopback has no token.
    pub async fn open(options: ServeOptions) -> Result<Self, ServeError> {
        // Sockets first: a port that is taken should not be found out after minutes of loading.
        let bound = Bound::new(&options).await?;
        let context = catalog::open(&options.catalog).await?;
        Ok(Self::new(bound, context, options))
    }

    /// As [`Server::open`], for a session whose tables and functions the caller has registered; `options.catalog` is ignored.
    ///
    /// # Errors
    /// As there, but for the tables.
    pub async fn with_context(context: SessionContext, options: ServeOptions) -> Result<Self, ServeError> {
        Ok(Self::new(Bound::new(&options).await?, context, options))
    }

    fn new(bound: Bound, context: SessionContext, options: ServeOptions) -> Self {
        let (stop, stopping) = watch::channel(false);
        let shared = Arc::new(Shared {
            engine: Engine::new(context),
            token: options.token,
            hello_timeout: options.hello_timeout,
            behind_proxy: options.behind_proxy,
            stall_timeout: options.stall_timeout.max(Duration::from_millis(1)),
            metrics: Arc::new(Metrics::default()),
            prices: Prices::default(),
            statements: Arc::new(Semaphore::new(options.statements_max.max(1))),
            stopping,
        });
        let Bound { listeners, metrics } = bound;
        Self { listeners, metrics, shared, connections_max: options.connections_max, stop }
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

    /// Serves until `stop` is done; then takes no new connection or statement, and lets those that run finish. Dropping
    /// the future ends them at once.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listeners, metrics, shared, connections_max, stop: stopping } = self;
        let open = Arc::new(Semaphore::new(connections_max));
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
                Some(client) = arrivals.recv() => match open.clone().try_acquire_owned() {
                    Ok(place) => {
                        let shared = shared.clone();
                        connections.spawn(async move {
                            serve(client, shared).await;
                            drop(place);
                        });
                    }
                    Err(_) => warn!(peer = client.peer(), "closed: {connections_max} connections are open already"),
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
}

impl Bound {
    async fn new(options: &ServeOptions) -> Result<Self, ServeError> {
        if options.listen.is_empty() && options.unix.is_none() {
            return Err(ServeError::new("nowhere to listen: give an address or a Unix socket"));
        }
        let open = options.listen.iter().find(|address| !address.ip().is_loopback());
        if let (Some(address), None) = (open, &options.token) {
            let what =
                format!("tcp://{address} can be reached from other hosts: give --token-file, or listen on 127.0.0.1");
            return Err(ServeError::new(what));
        }
        if let (Some(address), None) = (open, &options.tls) {
            warn!(
                "tcp://{address} is not encrypted, and neither are the tokens sent to it; give --tls-cert and --tls-key"
            );
        }
        let tls = match &options.tls {
            Some((certificates, key)) => Some(tls_acceptor(certificates, key)?),
            None => None,
        };
        let mut listeners = Vec::new();
        for address in &options.listen {
            listeners.push(Listener::tcp(*address, tls.clone()).await?);
        }
        if let Some(path) = &options.unix {
            listeners.push(Listener::unix(path).await?);
        }
        let metrics =
            match options.metrics {
                Some(address) => Some(TcpListener::bind(address).await.map_err(|cause| {
                    ServeError::new(format!("can't listen on http://{address} for metrics: {cause}"))
                })?),
                None => None,
            };
        Ok(Self { listeners, metrics })
    }
}

async fn serve(client: Incoming, shared: Arc<Shared>) {
    let peer = client.peer();
    let deadline = tokio::time::Instant::now() + shared.hello_timeout;
    match client.open(deadline, shared.behind_proxy).await {
        Ok(open) => connection::serve(open, deadline, peer, shared).await,
        Err(cause) => debug!(peer, "closed: {cause}"),
    }
}

/// Answers every request with the counters: HTTP enough for a scraper.
async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(tokio::time::timeout(Duration::from_secs(5), async move {
            let mut request = Vec::new();
            let (read, mut write) = stream.split();
            let mut read = read.take(METRICS_REQUEST_BYTES_MAX);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                if read.read_buf(&mut request).await? == 0 {
                    break;
                }
            }
            let found = request.starts_with(b"GET /metrics");
            let (status, body) = if found { ("200 OK", metrics.render()) } else { ("404 Not Found", String::new()) };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            write.write_all(head.as_bytes()).await?;
            write.write_all(body.as_bytes()).await
        }));
    }
}
