//! The frames of spec/protocol.md, as a Dray server and PostgreSQL's extension send them: reading
//! one, and turning it into an event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{HEADER_BYTES, Header, Profile, Schema, Tables};
use dray_page::{HEADER_BYTES as PAGE_HEADER_BYTES, VerifiedPage};
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, Kind, ServerEvent};

use super::{Event, ReceiveContext, ReceivedBatch, ReceivedPage, Start, out_of_turn};
use crate::error::{Error, Result};
use crate::memory::Arena;

/// A frame that was received.
#[derive(Debug)]
pub(crate) enum Frame {
    Message(ServerEvent),
    Chunk(Chunk),
    /// A page, of which nothing but its header was checked, and the bytes of it that travelled.
    Page(Bytes, u64),
}

/// A chunk as it was received: its sizes are within the limits, its bytes are not checked yet.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) header: Header,
    pub(crate) descriptors: Vec<u8>,
    pub(crate) body: Bytes,
    /// The stream's tables when the chunk came.
    pub(crate) tables: Arc<Tables>,
}

impl Chunk {
    /// Checks and decodes the chunk.
    ///
    /// # Errors
    /// Protocol, if it is damaged.
    pub(crate) fn decode(
        &self,
        decoder: &Decoder,
        memory: &mut Arena,
        profile: Option<&mut Profile>,
    ) -> Result<RecordBatch> {
        let Self { header, descriptors, body, tables } = self;
        header.verify(&[descriptors, body])?;
        let columns = &mut memory.columns(header);
        Ok(decoder.decode(header, descriptors, body, tables, Some(columns), profile)?)
    }
}

/// Reads a frame. A chunk's body and a page go straight into their memory.
///
/// # Errors
/// Whatever `read_exact` fails with, and Protocol if the frame is not allowed here.
pub(crate) fn read_frame(
    session: &mut ClientSession,
    memory: &mut Arena,
    read_exact: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<Frame> {
    let mut raw = [0; FRAME_HEADER_BYTES];
    read_exact(&mut raw)?;
    let frame = session.frame(&raw)?;
    if frame.kind == Kind::Page {
        let mut raw = [0; PAGE_HEADER_BYTES];
        read_exact(&mut raw)?;
        let header = session.page(frame, &raw)?;
        let page = memory.pages().receive(&header, read_exact)?;
        return Ok(Frame::Page(page, header.packed_bytes()));
    }
    if frame.kind != Kind::Chunk {
        // The session has bounded the payload.
        let mut payload = vec![0; frame.payload_bytes as usize];
        read_exact(&mut payload)?;
        return Ok(Frame::Message(session.message(frame, &payload)?));
    }
    let mut raw = [0; HEADER_BYTES];
    read_exact(&mut raw)?;
    let header = session.chunk(frame, &raw)?;
    // The session has checked both sizes against the query's limits.
    let mut descriptors =
        vec![0; usize::try_from(header.descriptor_bytes_padded()).unwrap_or(usize::MAX)];
    read_exact(&mut descriptors)?;
    let body = memory.receive_chunk(&header, read_exact)?;
    Ok(Frame::Chunk(Chunk { header, descriptors, body, tables: session.tables() }))
}

/// Turns the frames of one result into events.
#[derive(Debug, Default)]
pub(crate) struct FrameEvents {
    strings: StringLayout,
    /// Known once the result has started.
    decoder: Option<Decoder>,
    /// Bytes of state frames that count with the next chunk.
    state_bytes: u64,
}

impl FrameEvents {
    pub(crate) fn new(strings: StringLayout) -> Self {
        Self { strings, ..Self::default() }
    }

    /// The event of a frame that took `receive` to arrive; None for a frame that only prepares
    /// others.
    ///
    /// # Errors
    /// The server's own error if the frame is one; Protocol if the frame is damaged or out of turn.
    pub(crate) fn event(
        &mut self,
        frame: Frame,
        receive: Duration,
        decoders: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<Event>> {
        Ok(Some(match frame {
            Frame::Chunk(chunk) => {
                let decoder = self.decoder.as_ref().ok_or_else(out_of_turn)?;
                let arrived = Instant::now();
                let batch = chunk.decode(decoder, context.memory, Some(context.profile))?;
                Event::Batch(ReceivedBatch {
                    batch,
                    wire_bytes: std::mem::take(&mut self.state_bytes) + chunk.header.chunk_bytes(),
                    decoded_bytes: chunk.header.decoded_bytes,
                    arrived,
                    receive,
                    parse: Duration::ZERO,
                    decode: arrived.elapsed(),
                })
            }
            Frame::Page(page, wire_bytes) => {
                let layout = context.layout.ok_or_else(out_of_turn)?;
                let arrived = Instant::now();
                let page = VerifiedPage::verify(layout, page)?;
                Event::Page(ReceivedPage {
                    page,
                    wire_bytes: std::mem::take(&mut self.state_bytes) + wire_bytes,
                    arrived,
                    receive,
                    decode: arrived.elapsed(),
                })
            }
            Frame::Message(ServerEvent::Started(started)) if self.decoder.is_none() => {
                let decoder = decoders.decoder(started.schema, self.strings);
                let schema = decoder.schema().clone();
                self.decoder = Some(decoder);
                Event::Started(Start {
                    schema,
                    estimate: started.estimate,
                    compression: started.compression,
                    checksums: started.checksums,
                    plan: Duration::from_nanos(started.plan_ns),
                })
            }
            Frame::Message(ServerEvent::State(state)) => {
                self.state_bytes += state.frame_bytes();
                return Ok(None);
            }
            Frame::Message(ServerEvent::Progress(progress)) => {
                Event::Progress { rows_read: progress.rows_read }
            }
            Frame::Message(ServerEvent::Report(report)) => Event::Report(report),
            // It is no event of the rows; a Dray server's is taken before.
            Frame::Message(ServerEvent::Path(_)) => return Ok(None),
            Frame::Message(ServerEvent::Finished(finished)) => {
                Event::Finished { server: Some(finished) }
            }
            Frame::Message(ServerEvent::Error(error)) => return Err(Error::from(error)),
            Frame::Message(
                ServerEvent::Started(_) | ServerEvent::Welcome(_) | ServerEvent::Planned(_),
            ) => {
                return Err(out_of_turn());
            }
        }))
    }
}

/// The decoder of the last statement. The next statement often has the same columns.
#[derive(Debug, Default)]
pub(crate) struct DecoderCache(Option<(StringLayout, Decoder)>);

impl DecoderCache {
    /// A decoder for a stream of this schema.
    pub(crate) fn decoder(&mut self, schema: Arc<Schema>, strings: StringLayout) -> Decoder {
        match &self.0 {
            Some((layout, decoder)) if *layout == strings && decoder.is_for(&schema) => {
                decoder.clone()
            }
            _ => {
                let decoder = Decoder::new(schema, strings);
                self.0 = Some((strings, decoder.clone()));
                decoder
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
    use dray_format::{Checksum, ChunkKind, Compression, Limits, write};
    use dray_wire::{CompressionChoice, Estimate, Started};

    use super::*;
    use crate::error::ErrorKind;

    fn rows() -> RecordBatch {
        let numbers = Arc::new(Int64Array::from_iter_values(0..100)) as _;
        RecordBatch::try_from_iter_with_nullable([("n", numbers, false)]).unwrap()
    }

    fn started() -> Frame {
        Frame::Message(ServerEvent::Started(Started {
            statement: 1,
            query: 0,
            schema: Arc::new(schema_from_arrow(&rows().schema()).unwrap()),
            estimate: Estimate::default(),
            compression: CompressionChoice::None,
            checksums: true,
            plan_ns: 7,
        }))
    }

    fn chunk() -> Chunk {
        let schema = schema_from_arrow(&rows().schema()).unwrap();
        let batch = batch_from_arrow(&rows()).unwrap();
        let bytes =
            write(&schema, &[batch], Compression::None, Checksum::Crc32c, ChunkKind::Regular)
                .unwrap()
                .to_bytes(0);
        let (raw, rest) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        let header = Header::decode(raw, &Limits::default()).unwrap();
        let (descriptors, body) = rest.split_at(header.descriptor_bytes_padded() as usize);
        let (descriptors, body) = (descriptors.to_vec(), Bytes::copy_from_slice(body));
        Chunk { header, descriptors, body, tables: Arc::default() }
    }

    fn events(frames: impl IntoIterator<Item = Frame>) -> Result<Vec<Event>> {
        let mut events = FrameEvents::new(StringLayout::default());
        let mut decoders = DecoderCache::default();
        let (mut memory, mut profile) = (Arena::default(), Profile::default());
        let mut context =
            ReceiveContext { memory: &mut memory, profile: &mut profile, layout: None };
        let mut event = |frame| events.event(frame, Duration::ZERO, &mut decoders, &mut context);
        frames.into_iter().filter_map(|frame| event(frame).transpose()).collect()
    }

    #[test]
    fn a_chunk_is_verified_and_decoded() {
        let events = events([started(), Frame::Chunk(chunk())]).unwrap();
        let [Event::Started(start), Event::Batch(batch)] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((&start.schema, start.plan.as_nanos()), (&rows().schema(), 7));
        let numbers = batch.batch.column(0).as_primitive::<Int64Type>();
        assert!(numbers.values().iter().copied().eq(0..100));
        assert_eq!(batch.wire_bytes, chunk().header.chunk_bytes());
    }

    #[test]
    fn damaged_and_early_chunks_are_refused() {
        let mut damaged = chunk();
        let mut body = damaged.body.to_vec();
        body[17] ^= 1;
        damaged.body = body.into();
        for frames in [
            vec![started(), Frame::Chunk(damaged)],
            vec![Frame::Chunk(chunk())],
            vec![started(), started()],
        ] {
            assert_eq!(events(frames).unwrap_err().kind(), ErrorKind::Protocol);
        }
    }
}
