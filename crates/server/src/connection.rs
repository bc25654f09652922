//! One connection: the handshake, then one statement at a time.

mod stall;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_chooser::Line;
use dray_wire::{
    ClientEvent, ErrorKind, Instance, PASS_PREFIX, Secret, ServerError, ServerSession, ShareRequest,
};
use tokio::sync::watch;
use tracing::{Instrument, debug, info, info_span};

pub(crate) use self::stall::StallDetector;
use crate::admission::Admission;
use crate::compute::Compute;
use crate::engine::{self, Engine};
use crate::grants::Grants;
use crate::known_costs::KnownCosts;
use crate::known_lines::KnownLines;
use crate::metrics::Metrics;
use crate::relay::{Relay, RelaySession};
use crate::slots::{ConnectionSlot, Slots};
use crate::socket::{FrameReader, OpenSocket, Outgoing, PeerLocality, ReadError, WriteHalf};
use crate::statement::{self, Extent};
use crate::tcp::TcpMonitor;
use crate::tickets::{PlanId, Tickets};

/// How often to look whether others wait for a source.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) admission: Arc<Admission>,
    pub(crate) grants: Grants,
    pub(crate) tickets: Tickets,
    /// Names the local socket in each welcome.
    pub(crate) instance: Instance,
    /// See [`crate::ServeOptions`] for this and the other options.
    pub(crate) hello_timeout: Duration,
    pub(crate) behind_proxy: bool,
    pub(crate) stall_timeout: Duration,
    pub(crate) stall_timeout_contended: Duration,
    pub(crate) wait_timeout: Duration,
    pub(crate) plan_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) known_costs: KnownCosts,
    pub(crate) known_lines: KnownLines,
    pub(crate) slots: Slots,
    pub(crate) compute: Arc<Compute>,
    /// Becomes true when the server stops: running statements finish, no new one starts.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Shared {
    /// How long a client may read nothing before its connection is closed.
    fn stall_timeout(&self) -> Duration {
        let is_contended = self.slots.has_waiting()
            || self.admission.has_waiting()
            || self.grants.has_waiting()
            || *self.stopping.borrow();
        if is_contended {
            self.stall_timeout_contended.min(self.stall_timeout)
        } else {
            self.stall_timeout
        }
    }
}

/// A connection: its session, its socket and its slot.
pub(crate) struct Connection {
    pub(crate) session: ServerSession,
    /// The only plan whose parts the client may read, if it came with a pass.
    pub(crate) plan: Option<PlanId>,
    /// The earlier plan whose snapshot the next plan is to have.
    pub(crate) share: Option<ShareRequest>,
    /// The source that gets the client's statements; None if the server runs them itself.
    pub(crate) relay: Option<Arc<Relay>>,
    /// The client's session of it, from the first statement on.
    pub(crate) source: Option<Arc<SourceInUse>>,
    pub(crate) reader: FrameReader,
    pub(crate) socket: WriteHalf,
    pub(crate) locality: PeerLocality,
    /// The kernel's TCP statistics, if the client is on another host.
    pub(crate) tcp: Option<TcpMonitor>,
    /// What the last adaptive transfer to this host left, on any connection.
    pub(crate) line: Option<Line>,
    pub(crate) slot: ConnectionSlot,
    pub(crate) shared: Arc<Shared>,
}

/// A client's session of a source.
pub(crate) struct SourceInUse {
    pub(crate) relay: Arc<Relay>,
    pub(crate) session: RelaySession,
}

/// The connection is over, and the reason has been logged.
pub(crate) struct Closed;

/// Serves a connection to its end. The client's hello must arrive before `deadline`.
pub(crate) async fn serve(
    open: OpenSocket,
    deadline: tokio::time::Instant,
    peer: String,
    slot: ConnectionSlot,
    shared: Arc<Shared>,
) {
    let mut connection = Connection {
        session: ServerSession::default(),
        plan: None,
        share: None,
        relay: None,
        source: None,
        reader: FrameReader::new(open.read, open.received, shared.admission.clone()),
        socket: open.write,
        locality: open.locality,
        line: open.tcp.as_ref().and_then(|tcp| shared.known_lines.of(tcp.host?)),
        tcp: open.tcp,
        slot,
        shared: shared.clone(),
    };
    shared.metrics.connection_opened();
    let _ = connection.run(deadline).instrument(info_span!("connection", peer)).await;
    if let WriteHalf::Pipes(pipes) = &mut connection.socket {
        pipes.finish(|| shared.stall_timeout()).await;
    }
    shared.metrics.connection_closed();
}

/// Tells a client without a slot why it is refused, after its hello.
pub(crate) async fn refuse(
    open: OpenSocket,
    deadline: tokio::time::Instant,
    reason: String,
    shared: &Shared,
) {
    let OpenSocket { read, received, write: mut socket, .. } = open;
    let mut session = ServerSession::default();
    let mut reader = FrameReader::new(read, received, shared.admission.clone());
    let tell = async {
        let _ = reader.next(|header| session.frame(header)).await;
        let hint = "try again later, or raise the server's --connections or --connections-per-host";
        let error = engine::error(ErrorKind::Resources, "53300", reason, hint);
        let mut out = Vec::new();
        if session.closed(error, &mut out).is_ok() {
            let mut outgoing = Outgoing::default();
            outgoing.push(Bytes::from(out));
            let _ = outgoing.write(&mut socket).await;
        }
    };
    let _ = tokio::time::timeout_at(deadline, tell).await;
}

impl Connection {
    async fn run(&mut self, deadline: tokio::time::Instant) -> Result<(), Closed> {
        self.greet(deadline).await?;
        loop {
            let (shared, in_use) = (self.shared.clone(), self.source.clone());
            let mut stopping = shared.stopping.clone();
            let event = tokio::select! {
                event = self.event() => event?,
                () = stopped(&mut stopping) => return self.close(stopping_error()).await,
                () = idle_too_long(in_use.as_deref(), &shared) => {
                    return self.close(idle_error(&shared)).await;
                }
            };
            match event {
                ClientEvent::Query(_) | ClientEvent::Plan(_) if self.plan.is_some() => {
                    return self.refuse_beyond_pass().await;
                }
                ClientEvent::Query(query) => statement::run(self, query, Extent::Whole).await?,
                ClientEvent::Plan(request) => statement::plan(self, request).await?,
                ClientEvent::Part(part) => statement::run_part(self, part).await?,
                ClientEvent::Release => self.release().await,
                ClientEvent::Share(earlier) => self.share = Some(earlier),
                ClientEvent::Goodbye => return Ok(()),
                _ => {}
            }
            self.reader.release();
        }
    }

    /// Gives up what is held for the plan of the client's pass.
    async fn release(&mut self) {
        if let (Some(relay), Some(plan)) = (&self.relay, self.plan) {
            relay.release(plan).await;
        }
    }

    async fn greet(&mut self, deadline: tokio::time::Instant) -> Result<(), Closed> {
        let timeout = self.shared.hello_timeout;
        let Ok(event) = tokio::time::timeout_at(deadline, self.event()).await else {
            debug!("no hello within {timeout:?}");
            let message = format!("no hello arrived within {timeout:?}");
            return self.close(engine::error(ErrorKind::Protocol, "08P01", message, "")).await;
        };
        let ClientEvent::Hello(hello) = event? else { return Err(Closed) };
        if let Err(error) = self.admit(&hello.token, &hello.source) {
            self.shared.metrics.refused();
            info!(client = hello.client, "refused: {}", error.message);
            return self.close(error).await;
        }
        let source = self.relay.as_ref().map(|relay| relay.name.as_str());
        info!(client = hello.client, source, "connected");
        let mut out = Vec::new();
        let name = concat!("dray ", env!("CARGO_PKG_VERSION"));
        let dialect = self.relay.as_ref().map_or("", |relay| relay.dialect());
        let welcome = self.session.welcome(name, self.shared.instance, dialect, &mut out);
        welcome.map_err(|_| Closed)?;
        self.send(out).await
    }

    /// Checks a client's token, which may also be a pass, and whether it opens this source.
    fn admit(&mut self, token: &Secret, source: &str) -> Result<(), ServerError> {
        let shared = self.shared.clone();
        let found = token.reveal();
        if let Some(opens) = shared.grants.opened_by(token) {
            self.relay = shared.grants.source(source, opens)?;
            // Where nobody needs a pass, it still says which plan its client releases.
            self.plan = shared.tickets.admit(found).ok();
            return Ok(());
        }
        if found.starts_with(PASS_PREFIX) {
            let plan = shared.tickets.admit(found)?;
            self.plan = Some(plan);
            self.relay = shared.grants.source_of_plan(source, plan)?;
            return Ok(());
        }
        let message = match found.is_empty() {
            true => "this server requires a token",
            false => "the token is wrong",
        };
        let hint = "pass the server's token: dray://TOKEN@host, the option token, or the variable \
                    DRAY_TOKEN";
        Err(engine::error(ErrorKind::Authentication, "28000", message, hint))
    }

    /// Closes a connection whose pass is not for what it asks.
    pub(crate) async fn refuse_beyond_pass(&mut self) -> Result<(), Closed> {
        info!("closed: the pass is not for this");
        self.shared.metrics.refused();
        let what = "the connection's pass is only for the parts of one plan";
        let hint = "connect with the server's token";
        self.close(engine::error(ErrorKind::Authentication, "28000", what, hint)).await
    }

    /// The client's next message. Cancel safe.
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
            Err(ReadError::NoMemory(error)) => {
                info!("closed: {}", error.message);
                return self.close(error).await.and(Err(Closed));
            }
            Err(ReadError::Closed) => {
                debug!("the client closed the connection");
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
        let mut stall = StallDetector::new(outgoing.bytes());
        loop {
            tokio::select! {
                biased;
                written = outgoing.write(&mut self.socket) => return written.map_err(|_| Closed),
                () = stall.tick() => stall.check(outgoing.bytes(), &self.shared)?,
            }
        }
    }

    /// Sends the reason and ends the connection.
    pub(crate) async fn close(&mut self, error: ServerError) -> Result<(), Closed> {
        let mut out = Vec::new();
        if self.session.closed(error, &mut out).is_ok() {
            // A client that does not read must not keep the connection open.
            let timeout = self.shared.hello_timeout;
            let _ = tokio::time::timeout(timeout, self.send(out)).await;
        }
        Err(Closed)
    }
}

/// Waits until the server stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // It fails only if the sender is gone, and then the server has stopped.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

pub(crate) fn stopping_error() -> ServerError {
    engine::error(ErrorKind::Shutdown, "57P01", "the server is stopping", "")
}

/// Waits until others have waited for a source's session while this client's was idle for too long.
pub(crate) async fn idle_too_long(source: Option<&SourceInUse>, shared: &Shared) {
    let Some(source) = source else { return std::future::pending().await };
    tokio::time::sleep(shared.stall_timeout_contended).await;
    while !source.relay.has_waiting() {
        tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
    }
}

fn idle_error(shared: &Shared) -> ServerError {
    let what = format!(
        "the connection was idle for more than {:?} while others waited for its source",
        shared.stall_timeout_contended
    );
    engine::error(ErrorKind::Source, "57P05", what, "connect again")
}

/// Nanoseconds since `start`.
pub(crate) fn ns_since(start: Instant) -> u64 {
    ns(start.elapsed())
}

/// A duration in nanoseconds, at most `u64::MAX`.
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
