//! The writer: takes chunks from the queue, and writes them to the socket as frames.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_chooser::{Chooser, Delivery};
use dray_format::Chunk;
use dray_page::{HEADER_BYTES, PackedPage};
use dray_transfer::{Payload, Receiver};
use dray_wire::{
    Encoded, ErrorKind, FRAME_HEADER_BYTES, PriceSet, ProtocolError, Report, ServerError,
};

use super::produce::Producers;
use super::stop::{Stop, check_event, check_producer};
use super::work::Work;
use crate::connection::{Connection, StallDetector, ns};
use crate::engine;
use crate::socket::Outgoing;
use crate::tcp::TcpMonitor;

/// A result of more bytes counts as large, and gets the congestion control for large results.
pub(super) const LARGE_RESULT_BYTES: u64 = 256 << 10;
/// Chunks up to this size are held back until the next write, so that a small result is a single
/// write.
const SMALL_CHUNK_BYTES: usize = 16 << 10;
/// How often the client receives the statement's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// The writer of one result.
pub(super) struct ChunkWriter<'a> {
    connection: &'a mut Connection,
    work: &'a Work,
    producers: Producers,
    chooser: Option<Arc<Chooser>>,
    /// What encoding took so far, by column.
    encoded: Vec<Encoded>,
    /// Small frames that wait for the next write.
    out: Vec<u8>,
    sent_bytes: u64,
    socket_ns: u64,
}

impl<'a> ChunkWriter<'a> {
    /// A writer of the producers' chunks. `out` has the messages to send before the first chunk.
    pub(super) fn new(
        connection: &'a mut Connection,
        work: &'a Work,
        producers: Producers,
        chooser: Option<Arc<Chooser>>,
        out: Vec<u8>,
    ) -> Self {
        let encoded = vec![Encoded::default(); work.schema().fields.len()];
        Self { connection, work, producers, chooser, encoded, out, sent_bytes: 0, socket_ns: 0 }
    }

    /// Sends all chunks, until the queue ends and all producers have finished.
    pub(super) async fn run(&mut self, mut chunks: Receiver) -> Result<(), Stop> {
        let first = tokio::time::Instant::now() + PROGRESS_INTERVAL;
        let mut progress = tokio::time::interval_at(first, PROGRESS_INTERVAL);
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut waiting = Instant::now();
        loop {
            tokio::select! {
                biased;
                chunk = chunks.receive() => match chunk {
                    Some(queued) => {
                        if let Some(chooser) = &self.chooser {
                            chooser.starved(waiting.elapsed());
                        }
                        match queued.payload.clone() {
                            Payload::Chunk(chunk) => self.send(chunk).await?,
                            Payload::Pages(pages) => self.send_pages(pages).await?,
                        }
                        waiting = Instant::now();
                    }
                    None => break,
                },
                event = self.connection.event() => check_event(event?)?,
                _ = progress.tick() => {
                    let rows_read = self.work.rows_read();
                    let told = self.connection.session.progress(rows_read, &mut self.out);
                    told.map_err(|_| Stop::Closed)?;
                }
                // Nothing else to do: flush what is held back.
                () = std::future::ready(()), if !self.out.is_empty() => {
                    self.write(Vec::new()).await?;
                }
            }
            self.check_producers()?;
        }
        while let Some(ended) = self.producers.join_next().await {
            check_producer(ended)?;
        }
        Ok(())
    }

    /// Frames a chunk, and writes it unless it is small.
    async fn send(&mut self, chunk: Chunk) -> Result<(), Stop> {
        let (chunk_bytes, state_bytes) = (chunk.chunk_bytes(), chunk.state_bytes());
        debug_assert_eq!(chunk.columns().len(), self.encoded.len());
        for (sum, written) in self.encoded.iter_mut().zip(chunk.columns()) {
            sum.decoded_bytes += written.decoded_bytes;
            sum.encode_ns += written.encode_ns;
        }
        let parts = self.connection.session.chunk(chunk, &mut self.out).map_err(unframed)?;
        self.connection.shared.metrics.chunk_sent(chunk_bytes + state_bytes);
        if chunk_bytes <= SMALL_CHUNK_BYTES as u64 && self.out.len() <= SMALL_CHUNK_BYTES {
            parts.iter().for_each(|part| self.out.extend_from_slice(part));
            return Ok(());
        }
        self.write(parts).await
    }

    /// Frames pages, and writes them unless they are small.
    async fn send_pages(&mut self, pages: Vec<PackedPage>) -> Result<(), Stop> {
        let mut parts = Vec::with_capacity(3 * pages.len());
        for page in pages {
            self.connection.shared.metrics.chunk_sent(page.packed_bytes());
            let mut headers = Vec::with_capacity(FRAME_HEADER_BYTES + HEADER_BYTES);
            let rest = self.connection.session.page(page, &mut headers).map_err(unframed)?;
            parts.push(headers.into());
            parts.extend(rest);
        }
        let bytes = parts.iter().map(Bytes::len).sum::<usize>();
        if bytes <= SMALL_CHUNK_BYTES && self.out.len() <= SMALL_CHUNK_BYTES {
            parts.iter().for_each(|part| self.out.extend_from_slice(part));
            return Ok(());
        }
        self.write(parts).await
    }

    /// Writes the small frames that were held back, and `parts` after them. A cancel that arrives
    /// meanwhile stops the producers at once, but a frame that has begun is finished.
    async fn write(&mut self, parts: Vec<Bytes>) -> Result<(), Stop> {
        let started = Instant::now();
        self.sent_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if self.sent_bytes > LARGE_RESULT_BYTES
            && let Some(tcp) = &mut self.connection.tcp
        {
            tcp.expect_large_result();
        }
        let mut outgoing = Outgoing::default();
        outgoing.push(Bytes::from(std::mem::take(&mut self.out)));
        parts.into_iter().for_each(|part| outgoing.push(part));
        let bytes = outgoing.bytes() as u64;
        let mut stall = StallDetector::new(outgoing.bytes());
        let mut stopped = Ok(());
        loop {
            let Connection { session, reader, socket, .. } = &mut *self.connection;
            tokio::select! {
                biased;
                written = outgoing.write(socket) => {
                    let busy = started.elapsed();
                    self.socket_ns += ns(busy);
                    if let Some(chooser) = &self.chooser {
                        let tcp = self.connection.tcp.as_mut();
                        let delivery = tcp.and_then(TcpMonitor::take_delivery);
                        let whole = Delivery { bytes, busy, ..Delivery::default() };
                        chooser.sent(busy, delivery.unwrap_or(whole));
                    }
                    return written.map_err(|_| Stop::Closed).and(stopped);
                }
                read = reader.next(|header| session.frame(header)) => match read {
                    Ok((frame, payload)) => {
                        let event = session.message(frame, &payload).map_err(|_| Stop::Closed)?;
                        if let Err(stop) = check_event(event) {
                            self.producers.abort_all();
                            stopped = Err(stop);
                        }
                    }
                    Err(_) => return Err(Stop::Closed),
                },
                () = stall.tick() => stall.check(outgoing.bytes(), &self.connection.shared)?,
            }
        }
    }

    /// Fails as soon as a producer has failed.
    fn check_producers(&mut self) -> Result<(), Stop> {
        while let Some(ended) = self.producers.try_join_next() {
            check_producer(ended)?;
        }
        Ok(())
    }

    /// Records how the transfer went, and reports it to the client if there were several chunks.
    pub(super) fn report(&mut self) {
        let Connection { session, shared, tcp, line, .. } = &mut *self.connection;
        if let Some(chooser) = &self.chooser {
            let seen = chooser.line();
            *line = Some(seen);
            if let Some(host) = tcp.as_ref().and_then(|tcp| tcp.host) {
                shared.known_lines.set(host, seen);
            }
            shared.metrics.price_set(seen.price_ns);
            shared.known_costs.set(self.work.tables(), self.work.schema(), chooser.costs());
        }
        shared.metrics.encoded(&self.encoded);
        let (_, chunks) = session.sent();
        if chunks < 2 {
            return;
        }
        let prices = self.chooser.iter().flat_map(|chooser| chooser.history());
        // `as` saturates.
        let price = |(at, ns): (Duration, f64)| PriceSet {
            at_ms: u32::try_from(at.as_millis()).unwrap_or(u32::MAX),
            price_ps: (ns * 1e3) as u32,
        };
        let report = Report {
            columns: std::mem::take(&mut self.encoded),
            prices: prices.map(price).collect(),
            ..Report::default()
        };
        // It fails, and leaves `out` as it was, if there are too many columns for a message.
        let _ = session.report(report, &mut self.out);
    }

    /// What is still to send, and the nanoseconds spent on writing.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        (self.out, self.socket_ns)
    }
}

fn unframed(cause: ProtocolError) -> ServerError {
    engine::error(ErrorKind::Internal, "XX000", cause.to_string(), "")
}
