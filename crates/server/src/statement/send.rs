//! The writer: chunks from the queue, as frames, to the socket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_transfer::{Adaptive, Passage, Receiver};
use dray_wire::{Encoded, ErrorKind, PriceSet, Report};

use super::produce::Producers;
use super::stop::{Stop, producer_ended, stop_on};
use crate::connection::{Connection, Stall};
use crate::engine::{self, Plan};
use crate::socket::Outgoing;
use crate::way::Way;

/// A result of more than this is worth another congestion control.
const LONG_RESULT_BYTES: u64 = 256 << 10;
/// Chunks up to this size wait for what comes right behind them, so that a small result is one
/// write.
const SMALL_CHUNK_BYTES: u64 = 16 << 10;
/// How often a client hears how far its statement is.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// A statement whose producers run.
pub(super) struct Transfer<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) plan: &'a Plan,
    pub(super) producers: Producers,
    pub(super) adaptive: Option<Arc<Adaptive>>,
    /// What encoding each column took so far.
    pub(super) encoded: Vec<Encoded>,
    /// Small frames that wait for the next write.
    pub(super) out: Vec<u8>,
    pub(super) sent_bytes: u64,
    pub(super) socket_ns: u64,
}

impl Transfer<'_> {
    pub(super) async fn run(&mut self, mut chunks: Receiver) -> Result<(), Stop> {
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
    pub(super) fn report(&mut self) {
        let (_, chunks) = self.connection.session.sent();
        if let Some(adaptive) = &self.adaptive {
            self.connection.price_ns = Some(adaptive.price_ns());
            if let Some(host) = self.connection.way.as_ref().and_then(|way| way.host) {
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
        if let Some(way) =
            self.connection.way.as_mut().filter(|_| self.sent_bytes > LONG_RESULT_BYTES)
        {
            way.expect_much();
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
                        let passage = self.connection.way.as_mut().and_then(Way::passage);
                        adaptive.sent(busy, passage.unwrap_or(Passage { bytes, busy, ..Passage::default() }));
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
