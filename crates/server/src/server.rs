//! The server: it binds sockets, opens tables, accepts connections and stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use datafusion::prelude::SessionContext;
use dray_wire::Instance;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::admission::Admission;
use crate::catalog::{self, Fingerprint};
use crate::compute::Compute;
use crate::connection::{self, Shared};
use crate::engine::Engine;
use crate::exposure;
use crate::grants::Grants;
use crate::known_costs::KnownCosts;
use crate::known_lines::KnownLines;
use crate::listen::{Incoming, Listener, tls_acceptor};
use crate::local_socket::LocalSocket;
use crate::metrics::{Metrics, endpoint};
use crate::options::{ServeError, ServeOptions};
use crate::slots::{ConnectionSlot, SlotLimits, Slots};
use crate::tickets::Tickets;

/// Refused clients that are told the reason at a time, and the time for each.
const REFUSALS_MAX: usize = 16;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A server with open tables and bound sockets.
///
/// Its futures are boxed, so that a program that awaits them does not compile their code once more:
/// it is all of the server's, and takes minutes.
pub struct Server {
    listeners: Vec<Listener>,
    metrics: Option<TcpListener>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Binds the sockets and opens the tables. No client is answered before [`Server::run`].
    ///
    /// # Errors
    /// If a table can't be opened, an address can't be bound, or other hosts can reach an address
    /// that requires no token.
    pub fn open(options: ServeOptions) -> BoxFuture<'static, Result<Self, ServeError>> {
        Box::pin(Self::open_tables(options))
    }

    async fn open_tables(options: ServeOptions) -> Result<Self, ServeError> {
        // Sockets first, so that a port in use is reported before minutes of loading.
        let bound = Bound::new(&options).await?;
        let grants = Grants::new(&options, has_files(&options))?;
        let compute = Compute::new(options.catalog.threads);
        let failed =
            |cause: std::io::Error| ServeError::new(format!("can't start a thread: {cause}"));
        let lease = compute.lease(None).map_err(failed)?;
        let catalog = options.catalog.clone();
        let opened = lease.run(move |workers| workers.block_on(catalog::open(&catalog))).await;
        let context = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Self::new(bound, &context, compute, grants, options)
    }

    /// Like [`Server::open`], with the tables and functions of an existing session. Of
    /// `options.catalog` only the number of threads is used.
    ///
    /// # Errors
    /// If an address can't be bound, or other hosts can reach an address that requires no token.
    pub fn with_context(
        context: SessionContext,
        options: ServeOptions,
    ) -> BoxFuture<'static, Result<Self, ServeError>> {
        Box::pin(async move {
            let compute = Compute::new(options.catalog.threads);
            let grants = Grants::new(&options, true)?;
            Self::new(Bound::new(&options).await?, &context, compute, grants, options)
        })
    }

    fn new(
        bound: Bound,
        context: &SessionContext,
        compute: Arc<Compute>,
        grants: Grants,
        options: ServeOptions,
    ) -> Result<Self, ServeError> {
        let served = context.copied_config().get_extension::<Fingerprint>();
        let tickets = match options.plan_secret.as_ref().zip(served) {
            Some((secret, served)) => Tickets::shared(secret, &served),
            None => Tickets::new()
                .map_err(|_| ServeError::new("the system gives no random bytes".to_owned()))?,
        };
        let (stop, stopping) = watch::channel(false);
        let engine = Engine::new(context);
        let shared = Arc::new(Shared {
            admission: Arc::new(Admission::new(engine.memory_pool(), options.wait_timeout)),
            engine,
            metrics: Arc::new(Metrics::of(
                grants.sources().map(|relay| (relay.name.clone(), relay.metrics.clone())).collect(),
            )),
            grants,
            tickets,
            instance: bound.instance,
            hello_timeout: options.hello_timeout,
            behind_proxy: options.behind_proxy,
            stall_timeout: options.stall_timeout,
            stall_timeout_contended: options.stall_timeout_contended,
            wait_timeout: options.wait_timeout,
            plan_timeout: options.plan_timeout,
            known_costs: KnownCosts::default(),
            known_lines: KnownLines::default(),
            slots: Slots::new(
                SlotLimits::new(options.connections_max, options.connections_per_host),
                SlotLimits::new(options.statements_max, options.statements_per_host),
            ),
            compute,
            stopping,
        });
        let Bound { listeners, metrics, certificate_expires, .. } = bound;
        certificate_expires.into_iter().for_each(|at| shared.metrics.certificate_expires(at));
        Ok(Self { listeners, metrics, shared, stop })
    }

    /// The server's counters.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// The URIs that clients connect to.
    pub fn uris(&self) -> Vec<String> {
        self.listeners.iter().filter_map(Listener::uri).collect()
    }

    /// The address of the metrics endpoint.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes. Then it accepts no new connections or statements, and waits
    /// for running statements. Dropping the future ends them at once.
    pub fn run<'a>(self, stop: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
        self.run_until(Box::pin(stop))
    }

    fn run_until(self, stop: BoxFuture<'_, ()>) -> BoxFuture<'_, ()> {
        Box::pin(self.accept_until(stop))
    }

    async fn accept_until(self, mut stop: BoxFuture<'_, ()>) {
        let Self { listeners, metrics, shared, stop: stopping } = self;
        for relay in shared.grants.sources() {
            relay.check();
        }
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
                            // Probably out of file descriptors: wait until some are closed.
                            warn!("can't accept a connection: {cause}");
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            });
        }
        if let Some(listener) = metrics {
            accepting.spawn(endpoint::serve(listener, shared.metrics.clone()));
        }
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(client) = arrivals.recv() => {
                    let peer = client.slot_peer(shared.behind_proxy);
                    match shared.slots.try_connection(peer) {
                        Ok(slot) => drop(connections.spawn(serve(client, slot, shared.clone()))),
                        Err(reason) => {
                            warn!(peer = client.peer(), "refused: {reason}");
                            // Beyond the limit, connections are closed without a message.
                            if let Ok(permit) = refusals.clone().try_acquire_owned() {
                                connections.spawn(refuse(client, reason, shared.clone(), permit));
                            }
                        }
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
        accepting.shutdown().await;
        let _ = stopping.send(true);
        if !connections.is_empty() {
            info!("stopping: waiting for {} connections", connections.len());
        }
        while connections.join_next().await.is_some() {}
    }
}

/// Whether there are tables of the server's own, or nothing else either.
fn has_files(options: &ServeOptions) -> bool {
    !options.catalog.tables.is_empty()
        || options.catalog.tpch_scale.is_some()
        || options.sources.is_empty()
}

/// The bound sockets of a server.
struct Bound {
    listeners: Vec<Listener>,
    instance: Instance,
    metrics: Option<TcpListener>,
    /// When the first certificate of the chain expires.
    certificate_expires: Option<DateTime<Utc>>,
}

impl Bound {
    async fn new(options: &ServeOptions) -> Result<Self, ServeError> {
        exposure::check(options)?;
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
        let local = LocalSocket::bind(options);
        let instance = local.as_ref().map_or(Instance::NONE, LocalSocket::instance);
        listeners.extend(local.map(Listener::Local));
        let metrics = match options.metrics {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|cause| {
                ServeError::new(format!("can't listen on http://{address} for metrics: {cause}"))
            })?),
            None => None,
        };
        Ok(Self { listeners, instance, metrics, certificate_expires })
    }
}

async fn serve(client: Incoming, slot: ConnectionSlot, shared: Arc<Shared>) {
    let peer = client.peer();
    let deadline = tokio::time::Instant::now() + shared.hello_timeout;
    match client.open(deadline, shared.behind_proxy).await {
        Ok(open) => connection::serve(open, deadline, peer, slot, shared).await,
        Err(cause) => debug!(peer, "closed: {cause}"),
    }
}

async fn refuse(
    client: Incoming,
    reason: String,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
) {
    let deadline = tokio::time::Instant::now() + REFUSAL_TIMEOUT;
    if let Ok(open) = client.open(deadline, shared.behind_proxy).await {
        connection::refuse(open, deadline, reason, &shared).await;
    }
}
