//! One connection: the greeting, then a statement at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_wire::{ClientEvent, ErrorKind, Secret, ServerError, ServerSession};
use tokio::sync::watch;
use tracing::{Instrument, debug, info, info_span};

use crate::admission::Admission;
use crate::compute::Compute;
use crate::engine::{self, Engine};
use crate::metrics::Metrics;
use crate::prices::Prices;
use crate::socket::{FrameReader, Link, Open, Outgoing, ReadError, WriteHalf};
use crate::statement;
use crate::tcp::TcpMonitor;
use crate::turns::{Place, Turns};

/// How often to look whether a client still reads.
const STALL_LOOK_EVERY: Duration = Duration::from_millis(100);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) admission: Admission,
    pub(crate) token: Option<Secret>,
    pub(crate) hello_timeout: Duration,
    /// Who comes over loopback is elsewhere.
    pub(crate) behind_proxy: bool,
    pub(crate) stall_timeout: Duration,
    /// The same while others wait for the place.
    pub(crate) stall_timeout_wanted: Duration,
    /// How long a statement waits for its turn.
    pub(crate) wait_timeout: Duration,
    pub(crate) plan_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) prices: Prices,
    /// Who may connect and run statements at the same time.
    pub(crate) turns: Turns,
    pub(crate) compute: Arc<Compute>,
    /// True once the server stops: running statements finish, no new one begins.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Shared {
    /// How long a client may read nothing before it is given up.
    fn stall_limit(&self) -> Duration {
        let is_wanted =
            self.turns.are_wanted() || self.admission.is_wanted() || *self.stopping.borrow();
        if is_wanted {
            self.stall_timeout_wanted.min(self.stall_timeout)
        } else {
            self.stall_timeout
        }
    }
}

/// Watches that a client reads what is sent to it.
pub(crate) struct Stall {
    unsent_bytes: usize,
    since: Instant,
    looks: tokio::time::Interval,
}

impl Stall {
    /// So much is to be sent.
    pub(crate) fn begin(unsent_bytes: usize) -> Self {
        let looks = tokio::time::interval_at(
            tokio::time::Instant::now() + STALL_LOOK_EVERY,
            STALL_LOOK_EVERY,
        );
        Self { unsent_bytes, since: Instant::now(), looks }
    }

    /// Waits until it is time for a look.
    pub(crate) async fn look(&mut self) {
        self.looks.tick().await;
    }

    /// Fails when nothing has been read for too long: so much is unsent now.
    pub(crate) fn check(&mut self, unsent_bytes: usize, shared: &Shared) -> Result<(), Closed> {
        if unsent_bytes != self.unsent_bytes {
            (self.unsent_bytes, self.since) = (unsent_bytes, Instant::now());
            return Ok(());
        }
        let limit = shared.stall_limit();
        if self.since.elapsed() < limit {
            return Ok(());
        }
        info!("closed: the client read nothing for {limit:?}");
        Err(Closed)
    }
}

/// A connection's two halves and its session.
pub(crate) struct Connection {
    pub(crate) session: ServerSession,
    pub(crate) reader: FrameReader,
    pub(crate) socket: WriteHalf,
    pub(crate) link: Link,
    /// Watches the connection, if the client is on another host.
    pub(crate) tcp: Option<TcpMonitor>,
    /// λ at the end of the last statement that adapted, here or on another connection to this host,
    /// in nanoseconds a byte.
    pub(crate) price_ns: Option<f64>,
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
}

/// The connection is over; the reason has been logged.
pub(crate) struct Closed;

/// Serves one connection to its end. Its greeting must come before `deadline`.
pub(crate) async fn serve(
    open: Open,
    deadline: tokio::time::Instant,
    peer: String,
    place: Place,
    shared: Arc<Shared>,
) {
    let mut connection = Connection {
        session: ServerSession::default(),
        reader: FrameReader::new(open.read, open.received, shared.admission.requests()),
        socket: open.write,
        link: open.link,
        price_ns: open.tcp.as_ref().and_then(|tcp| shared.prices.of(tcp.host?)),
        tcp: open.tcp,
        place,
        shared: shared.clone(),
    };
    shared.metrics.connection_opened();
    let _ = connection.run(deadline).instrument(info_span!("connection", peer)).await;
    if let WriteHalf::Pipes(pipes) = &mut connection.socket {
        pipes.finish(|| shared.stall_limit()).await;
    }
    shared.metrics.connection_closed();
}

/// Tells a client for which there is no place why, once it has greeted.
pub(crate) async fn refuse(
    open: Open,
    deadline: tokio::time::Instant,
    why: String,
    shared: &Shared,
) {
    let Open { read, received, write: mut socket, .. } = open;
    let mut session = ServerSession::default();
    let mut reader = FrameReader::new(read, received, shared.admission.requests());
    let told = async {
        let _ = reader.next(|header| session.frame(header)).await;
        let hint = "try again later, or raise the server's --connections or --connections-per-host";
        let mut out = Vec::new();
        if session.closed(engine::error(ErrorKind::Resources, "53300", why, hint), &mut out).is_ok()
        {
            let mut outgoing = Outgoing::default();
            outgoing.push(Bytes::from(out));
            let _ = outgoing.write(&mut socket).await;
        }
    };
    let _ = tokio::time::timeout_at(deadline, told).await;
}

impl Connection {
    async fn run(&mut self, deadline: tokio::time::Instant) -> Result<(), Closed> {
        self.greet(deadline).await?;
        loop {
            let mut stopping = self.shared.stopping.clone();
            let event = tokio::select! {
                event = self.event() => event?,
                () = stopped(&mut stopping) => {
                    return self.close(engine::error(ErrorKind::Shutdown, "57P01", "the server is stopping", "")).await;
                }
            };
            match event {
                ClientEvent::Query(query) => {
                    statement::run(self, query).await?;
                    self.reader.release();
                }
                ClientEvent::Goodbye => return Ok(()),
                _ => {}
            }
        }
    }

    async fn greet(&mut self, deadline: tokio::time::Instant) -> Result<(), Closed> {
        let timeout = self.shared.hello_timeout;
        let Ok(event) = tokio::time::timeout_at(deadline, self.event()).await else {
            debug!("no greeting within {timeout:?}");
            let message = format!("no greeting came within {timeout:?}");
            return self.close(engine::error(ErrorKind::Protocol, "08P01", message, "")).await;
        };
        let ClientEvent::Hello(hello) = event? else { return Err(Closed) };
        if let Some(token) = &self.shared.token
            && !equal_in_constant_time(token.reveal().as_bytes(), hello.token.reveal().as_bytes())
        {
            self.shared.metrics.refused();
            info!(
                client = hello.client,
                "refused: {} token",
                if hello.token.is_empty() { "no" } else { "wrong" }
            );
            let message = if hello.token.is_empty() {
                "this server asks for a token"
            } else {
                "the token is wrong"
            };
            let hint = "give the server's token: dray://TOKEN@host, the option token, or the variable DRAY_TOKEN";
            return self
                .close(engine::error(ErrorKind::Authentication, "28000", message, hint))
                .await;
        }
        info!(client = hello.client, "connected");
        let mut out = Vec::new();
        let name = concat!("dray ", env!("CARGO_PKG_VERSION"));
        self.session.welcome(name, &mut out).map_err(|_| Closed)?;
        self.send(out).await
    }

    /// The client's next message.
    pub(crate) async fn event(&mut self) -> Result<ClientEvent, Closed> {
        let Self { session, reader, socket, .. } = &mut *self;
        let read = tokio::select! {
            biased;
            read = reader.next(|header| session.frame(header)) => read,
            never = socket.keep_reclaiming() => match never {},
        };
        let event = match read {
            Ok((frame, payload)) => self.session.message(frame, &payload),
            Err(ReadError::Protocol(error)) => Err(error),
            Err(ReadError::Gone) => {
                debug!("the client is gone");
                return Err(Closed);
            }
        };
        match event {
            Ok(event) => Ok(event),
            Err(error) => {
                info!("closed: {error}");
                self.close(engine::error(ErrorKind::Protocol, "08P01", error.to_string(), ""))
                    .await
                    .and(Err(Closed))
            }
        }
    }

    /// Sends a small message.
    pub(crate) async fn send(&mut self, message: Vec<u8>) -> Result<(), Closed> {
        let mut outgoing = Outgoing::default();
        outgoing.push(Bytes::from(message));
        let mut stall = Stall::begin(outgoing.bytes());
        loop {
            tokio::select! {
                biased;
                written = outgoing.write(&mut self.socket) => return written.map_err(|_| Closed),
                () = stall.look() => stall.check(outgoing.bytes(), &self.shared)?,
            }
        }
    }

    /// Says why, and ends the connection.
    pub(crate) async fn close(&mut self, error: ServerError) -> Result<(), Closed> {
        let mut out = Vec::new();
        if self.session.closed(error, &mut out).is_ok() {
            // A client that does not read must not hold the connection open.
            let deadline = self.shared.hello_timeout;
            let _ = tokio::time::timeout(deadline, self.send(out)).await;
        }
        Err(Closed)
    }
}

/// Waits until the server stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender is gone only when the server is.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Compares secrets without telling by the time where they differ.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b));
    std::hint::black_box(differences) == 0 && a.len() == b.len()
}

/// Nanoseconds since a moment.
pub(crate) fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
