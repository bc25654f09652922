//! One statement: have it planned, send what its producers make, and watch the client meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_chooser::{Chooser, Delivery};
use dray_format::FIELDS_MAX;
use dray_transfer::Receiver;
use dray_wire::{
    ClientEvent, Encoded, ErrorKind, Finished, Known, PriceSet, Query, Refusal, Report,
    ServerError, Started,
};
use tracing::info;

use crate::begin::{Begin, Begun, Line, Producers, Running, panicked};
use crate::compute::Lease;
use crate::connection::{Closed, Connection, Stall, ns_since, stopped};
use crate::engine::{self, Plan};
use crate::planning::{Planning, StopOnDrop};
use crate::socket::Outgoing;
use crate::tcp::TcpMonitor;
use crate::turns::Turn;

/// A result of more than this is worth another congestion control,
const LONG_RESULT_BYTES: u64 = 256 << 10;
/// and so is one that is known to have so many values: with two bits each it would be as long.
const LONG_RESULT_VALUES: u64 = 1 << 20;
/// Chunks up to this size wait for what comes right behind them, so that a small result is one
/// write.
const SMALL_CHUNK_BYTES: u64 = 16 << 10;
/// How often a client hears how far its statement is.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Runs a statement and sends its result, or its error. The connection stays unless it breaks.
pub(crate) async fn run(connection: &mut Connection, query: Query) -> Result<(), Closed> {
    let started = Instant::now();
    let query = Arc::new(query);
    let ended = match run_to_end(connection, &query, started).await {
        Ok(()) => Ok(None),
        Err(Stop::Failed(error)) => {
            let mut out = Vec::new();
            connection.session.failed(error.clone(), &mut out).map_err(|_| Closed)?;
            connection.send(out).await.map(|()| Some(error))
        }
        Err(Stop::Closed) => Err(Closed),
    };
    let (rows, chunks) = connection.session.sent();
    let outcome = match &ended {
        Ok(None) => "finished".to_owned(),
        Ok(Some(error)) => format!("failed: {}", error.message),
        Err(Closed) => "abandoned".to_owned(),
    };
    connection.shared.metrics.statement_ended(matches!(ended, Ok(None)), started.elapsed());
    info!(
        statement = query.statement,
        rows,
        chunks,
        ms = started.elapsed().as_millis(),
        sql = query.sql,
        "{outcome}"
    );
    ended.map(|_| ())
}

/// Why a statement stopped before its end.
enum Stop {
    Failed(ServerError),
    Closed,
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

async fn run_to_end(
    connection: &mut Connection,
    query: &Arc<Query>,
    arrived: Instant,
) -> Result<(), Stop> {
    let shared = connection.shared.clone();
    let turn = turn(connection).await?;
    let lease = shared.compute.lease(Some(turn)).map_err(|cause| {
        let what = format!("the server can't start a thread for the statement: {cause}");
        engine::error(ErrorKind::Resources, "53000", what, "try again later")
    })?;
    let begun = planned(connection, &lease, query).await?;
    // Whatever comes: what joins hold is in there.
    let _elsewhere = DropElsewhere {
        plan: Some(begun.plan.clone()).filter(|plan| !plan.is_small()),
        lease: &lease,
    };
    let Begun { plan, plan_ns, compression, checksums, running } = begun;
    let mut out = Vec::new();
    let started = Started {
        statement: query.statement,
        // The session fills it in.
        query: 0,
        schema: plan.schema.clone(),
        estimate: plan.estimate,
        compression,
        checksums,
        plan_ns,
    };
    if let Err(cause) = connection.session.started(&started, &mut out) {
        let (sqlstate, hint) = match cause.refusal() {
            Refusal::Frame => ("54011", "select fewer columns"),
            _ if plan.schema.nodes() > FIELDS_MAX => ("54011", "select fewer columns"),
            _ => ("0A000", ""),
        };
        return Err(engine::error(ErrorKind::Query, sqlstate, cause.to_string(), hint).into());
    }
    let mut finished = Finished { planned_only: query.plan_only, ..Finished::default() };
    if let Some(Running { producers, chunks, adaptive, times, admitted: _admitted }) = running {
        if let Some(tcp) = &mut connection.tcp {
            // What passed before is no part of this.
            let _ = tcp.take_delivery();
            if let Known::Exact(rows) = plan.estimate.rows
                && rows.saturating_mul(plan.schema.fields.len() as u64) >= LONG_RESULT_VALUES
            {
                tcp.expect_large_result();
            }
        }
        let encoded = vec![Encoded::default(); plan.schema.fields.len()];
        let mut transfer = Transfer {
            connection,
            plan: &plan,
            producers,
            adaptive,
            encoded,
            out,
            sent_bytes: 0,
            socket_ns: 0,
        };
        transfer.run(chunks).await?;
        transfer.report();
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        finished.execute_ns = ns(times.execute());
        finished.encode_ns = ns(times.encode());
        finished.queue_ns = ns(times.queue());
        finished.socket_ns = transfer.socket_ns;
        out = transfer.out;
    }
    finished.total_ns = ns_since(arrived);
    connection.shared.metrics.rows_sent(connection.session.sent().0);
    connection.session.finished(finished, &mut out).map_err(|_| Closed)?;
    Ok(connection.send(out).await?)
}

/// Waits until the statement may run.
async fn turn(connection: &mut Connection) -> Result<Turn, Stop> {
    let shared = connection.shared.clone();
    let places = shared.turns.statements();
    let abandoned = shared.compute.abandoned();
    if abandoned * 2 >= places.all.max(2) {
        let what = format!(
            "{abandoned} statements that were stopped have not ended yet: no other one is begun"
        );
        return Err(engine::error(ErrorKind::Resources, "53300", what, "try again later").into());
    }
    let share = connection.place.share.clone();
    if let Some(turn) = shared.turns.take(&share) {
        return Ok(turn);
    }
    let mut stopping = shared.stopping.clone();
    let wait = async {
        tokio::select! {
            turn = tokio::time::timeout(shared.wait_timeout, shared.turns.wait(&share)) => turn.map_err(|_| {
                let (all, limit, peer) = (places.all, shared.wait_timeout, places.of_a_peer);
                let what = format!("no turn within {limit:?}: {all} statements run at a time, {peer} of one host");
                let hint = "try again later, or raise the server's --statements or --statements-per-host";
                engine::error(ErrorKind::Resources, "53300", what, hint)
            }),
            () = stopped(&mut stopping) => Err(engine::error(ErrorKind::Shutdown, "57P01", "the server is stopping", "")),
        }
    };
    Ok(watched(connection, wait).await??)
}

/// Has a statement planned and begun on its own threads.
async fn planned(
    connection: &mut Connection,
    lease: &Lease,
    query: &Arc<Query>,
) -> Result<Begun, Stop> {
    let shared = connection.shared.clone();
    let line = Line {
        link: connection.link,
        round_trip: connection.tcp.as_ref().and_then(TcpMonitor::round_trip).unwrap_or_default(),
        price_ns: connection.price_ns,
    };
    let (planning, limit, query) = (Planning::new(), shared.plan_timeout, query.clone());
    let stops = StopOnDrop(planning.clone());
    let work = lease.run(move |workers| {
        let begin = Begin {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            planning: &planning,
        };
        begin.statement(&query, line)
    });
    let begun = async {
        tokio::select! {
            biased;
            begun = work => begun.unwrap_or_else(|panic| Err(panicked(panic))),
            () = stops.0.late(limit) => {
                let what = format!("planning the statement took more than {limit:?}");
                Err(engine::error(ErrorKind::Limit, "54001", what, "split the statement, or raise --plan-timeout"))
            }
        }
    };
    Ok(watched(connection, begun).await??)
}

/// Keeps a plan, and has it dropped where that may take its time.
struct DropElsewhere<'a> {
    plan: Option<Plan>,
    lease: &'a Lease,
}

impl Drop for DropElsewhere<'_> {
    fn drop(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.lease.dispose(plan);
        }
    }
}

/// A statement whose producers run.
struct Transfer<'a> {
    connection: &'a mut Connection,
    plan: &'a Plan,
    producers: Producers,
    adaptive: Option<Arc<Chooser>>,
    /// What encoding each column took so far.
    encoded: Vec<Encoded>,
    /// Small frames that wait for the next write.
    out: Vec<u8>,
    sent_bytes: u64,
    socket_ns: u64,
}

impl Transfer<'_> {
    async fn run(&mut self, mut chunks: Receiver) -> Result<(), Stop> {
        let mut progress =
            tokio::time::interval_at(tokio::time::Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut waiting = Instant::now();
        loop {
            tokio::select! {
                biased;
                chunk = chunks.receive() => match chunk {
                    Some(queued) => {
                        if let Some(adaptive) = &self.adaptive {
                            adaptive.starved(waiting.elapsed());
                        }
                        let (chunk_bytes, state_bytes) = (queued.chunk.chunk_bytes(), queued.chunk.state_bytes());
                        for (sum, written) in self.encoded.iter_mut().zip(queued.chunk.columns()) {
                            sum.decoded_bytes += written.decoded_bytes;
                            sum.encode_ns += written.encode_ns;
                        }
                        let parts = self.connection.session.chunk(queued.chunk.clone(), &mut self.out);
                        let parts = parts.map_err(|cause| engine::error(ErrorKind::Internal, "XX000", cause.to_string(), ""))?;
                        self.connection.shared.metrics.chunk_sent(chunk_bytes + state_bytes);
                        if chunk_bytes <= SMALL_CHUNK_BYTES && self.out.len() <= SMALL_CHUNK_BYTES as usize {
                            parts.iter().for_each(|part| self.out.extend_from_slice(part));
                        } else {
                            self.write(parts).await?;
                        }
                        waiting = Instant::now();
                    }
                    None => break,
                },
                event = self.connection.event() => stop_on(event?)?,
                _ = progress.tick() => {
                    self.connection.session.progress(self.plan.rows_read(), &mut self.out).map_err(|_| Stop::Closed)?;
                }
                // Nothing else to do: what waits goes out.
                () = std::future::ready(()), if !self.out.is_empty() => self.write(Vec::new()).await?,
            }
            self.check_producers()?;
        }
        while let Some(ended) = self.producers.join_next().await {
            producer_ended(ended)?;
        }
        Ok(())
    }

    /// Says how the transfer went, unless it was a small one.
    fn report(&mut self) {
        let (_, chunks) = self.connection.session.sent();
        if let Some(adaptive) = &self.adaptive {
            self.connection.price_ns = Some(adaptive.price_ns());
            if let Some(host) = self.connection.tcp.as_ref().and_then(|tcp| tcp.host) {
                self.connection.shared.prices.set(host, adaptive.price_ns());
            }
            self.connection.shared.metrics.price_set(adaptive.price_ns());
        }
        self.connection.shared.metrics.encoded(&self.encoded);
        if chunks < 2 {
            return;
        }
        let prices = self.adaptive.iter().flat_map(|adaptive| adaptive.history());
        // Floats become whole numbers by saturation.
        let price = |(at, ns): (Duration, f64)| PriceSet {
            at_ms: u32::try_from(at.as_millis()).unwrap_or(u32::MAX),
            price_ps: (ns * 1e3) as u32,
        };
        let report = Report {
            columns: std::mem::take(&mut self.encoded),
            prices: prices.map(price).collect(),
            ..Report::default()
        };
        let sent = self.out.len();
        if self.connection.session.report(report, &mut self.out).is_err() {
            // Too many columns for one message.
            self.out.truncate(sent);
        }
    }

    /// Stops as soon as a producer has failed.
    fn check_producers(&mut self) -> Result<(), Stop> {
        while let Some(ended) = self.producers.try_join_next() {
            producer_ended(ended)?;
        }
        Ok(())
    }

    /// Sends the waiting messages and the parts behind them. A cancel that comes meanwhile stops
    /// the producers at once, but the frame that has begun is finished.
    async fn write(&mut self, parts: Vec<Bytes>) -> Result<(), Stop> {
        let started = Instant::now();
        self.sent_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if let Some(tcp) =
            self.connection.tcp.as_mut().filter(|_| self.sent_bytes > LONG_RESULT_BYTES)
        {
            tcp.expect_large_result();
        }
        let mut outgoing = Outgoing::default();
        outgoing.push(Bytes::from(std::mem::take(&mut self.out)));
        parts.into_iter().for_each(|part| outgoing.push(part));
        let bytes = outgoing.bytes() as u64;
        let mut stall = Stall::begin(outgoing.bytes());
        let mut stopped = Ok(());
        loop {
            let Connection { session, reader, socket, .. } = &mut *self.connection;
            tokio::select! {
                biased;
                written = outgoing.write(socket) => {
                    let busy = started.elapsed();
                    self.socket_ns += u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
                    if let Some(adaptive) = &self.adaptive {
                        let tcp = self.connection.tcp.as_mut();
                        let delivery = tcp.and_then(TcpMonitor::take_delivery);
                        adaptive.sent(busy, delivery.unwrap_or(Delivery { bytes, busy, ..Delivery::default() }));
                    }
                    return written.map_err(|_| Stop::Closed).and(stopped);
                }
                read = reader.next(|header| session.frame(header)) => match read {
                    Ok((frame, payload)) => {
                        let event = session.message(frame, &payload).map_err(|_| Stop::Closed)?;
                        if let Err(stop) = stop_on(event) {
                            self.producers.abort_all();
                            stopped = Err(stop);
                        }
                    }
                    Err(_) => return Err(Stop::Closed),
                },
                () = stall.look() => stall.check(outgoing.bytes(), &self.connection.shared)?,
            }
        }
    }
}

/// Waits for something that sends nothing, and stops when the client cancels or leaves.
async fn watched<T>(connection: &mut Connection, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            event = connection.event() => stop_on(event?)?,
        }
    }
}

fn stop_on(event: ClientEvent) -> Result<(), Stop> {
    match event {
        ClientEvent::Cancel => Err(engine::error(
            ErrorKind::Cancelled,
            "57014",
            "the statement was cancelled at the client's request",
            "",
        )
        .into()),
        ClientEvent::Goodbye => Err(Stop::Closed),
        _ => Ok(()),
    }
}

fn producer_ended(
    ended: Result<Result<(), ServerError>, tokio::task::JoinError>,
) -> Result<(), Stop> {
    match ended {
        Ok(result) => result.map_err(Stop::from),
        Err(join) => Err(match join.try_into_panic() {
            Ok(panic) => panicked(panic),
            Err(_) => engine::error(ErrorKind::Cancelled, "57014", "the statement was stopped", ""),
        }
        .into()),
    }
}
