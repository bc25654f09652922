//! Results whose bytes somebody else receives: the data of a COPY, on a connection that belongs to
//! a driver.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::{Buf, BytesMut};
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{HEADER_BYTES, Limits};
use dray_postgres::{CopyReader, Description, Options};
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, Kind, ServerEvent};

use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// Takes in a COPY's data, however it is cut, and gives a table.
#[derive(Debug)]
pub struct Feed {
    source: Source,
    decoder: Option<Decoder>,
    strings: StringLayout,
    batches: Vec<RecordBatch>,
}

#[derive(Debug)]
enum Source {
    /// `FORMAT binary`.
    Rows(Box<CopyReader>),
    /// `FORMAT dray`.
    Frames { session: Box<ClientSession>, buffer: BytesMut, arena: Arena, ended: bool },
}

impl Feed {
    /// For the rows of [`Description::copy_statement`].
    ///
    /// # Errors
    /// When a column is of a type that can't be built.
    pub fn of_rows(
        description: &Description,
        options: Options,
        strings: StringLayout,
    ) -> Result<Self> {
        let reader = CopyReader::new(description, options)?;
        let decoder = Some(Decoder::new(reader.schema().clone(), strings));
        Ok(Self { source: Source::Rows(Box::new(reader)), decoder, strings, batches: Vec::new() })
    }

    /// For the frames of the extension.
    pub fn of_frames(limits: Limits, strings: StringLayout) -> Self {
        let mut arena = Arena::default();
        arena.set_block_bytes(crate::results::TABLE_BLOCK_BYTES);
        let session = Box::new(ClientSession::of_copy(limits));
        let source = Source::Frames { session, buffer: BytesMut::new(), arena, ended: false };
        Self { source, decoder: None, strings, batches: Vec::new() }
    }

    /// Takes in data.
    ///
    /// # Errors
    /// When it is damaged, or a value has no place in its column.
    pub fn feed(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.source {
            Source::Rows(reader) => {
                let mut full = Vec::new();
                reader.feed(data, &mut |built| full.push(built))?;
                for built in full {
                    let decoder = self.decoder.as_ref().ok_or_else(out_of_turn)?;
                    self.batches.push(decoder.built(built).map_err(Error::of_rows)?);
                }
                Ok(())
            }
            Source::Frames { buffer, .. } => {
                buffer.extend_from_slice(data);
                while self.frame()? {}
                Ok(())
            }
        }
    }

    /// Uses one frame, if it is there whole.
    fn frame(&mut self) -> Result<bool> {
        let Source::Frames { session, buffer, arena, ended } = &mut self.source else {
            return Ok(false);
        };
        let Some(raw) = buffer.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(false) };
        // A frame that is too large is refused before it is waited for.
        let frame = session.frame(raw)?;
        if buffer.len() - FRAME_HEADER_BYTES < frame.payload_bytes as usize {
            return Ok(false);
        }
        buffer.advance(FRAME_HEADER_BYTES);
        let payload = buffer.split_to(frame.payload_bytes as usize);
        if frame.kind == Kind::Chunk {
            let raw = payload.first_chunk::<HEADER_BYTES>().ok_or_else(out_of_turn)?;
            let header = session.chunk(frame, raw)?;
            let descriptors_bytes =
                usize::try_from(header.descriptor_bytes_padded()).unwrap_or(usize::MAX);
            let (descriptors, body) = payload[HEADER_BYTES..]
                .split_at_checked(descriptors_bytes)
                .ok_or_else(out_of_turn)?;
            // Arrays point into the body, which so gets the alignment that they want.
            let body = arena.receive_chunk(&header, |room| {
                room.copy_from_slice(body);
                Ok::<_, Error>(())
            })?;
            header.verify(&[descriptors, &body])?;
            let decoder = self.decoder.as_ref().ok_or_else(out_of_turn)?;
            let columns = &mut arena.columns(&header);
            self.batches.push(decoder.decode(
                &header,
                descriptors,
                &body,
                &session.tables(),
                Some(columns),
                None,
            )?);
            return Ok(true);
        }
        match session.message(frame, &payload)? {
            ServerEvent::Started(started) => {
                self.decoder = Some(Decoder::new(started.schema, self.strings))
            }
            ServerEvent::Finished(_) => *ended = true,
            ServerEvent::Error(error) => return Err(error.into()),
            _ => {}
        }
        Ok(true)
    }

    /// The table, after all data. `counted` are the rows that the server says it has sent, as far
    /// as the driver tells.
    ///
    /// # Errors
    /// When the data has ended too soon, or has other rows.
    pub fn finish(self, counted: Option<u64>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut batches = self.batches;
        let decoder = self.decoder.ok_or_else(cut)?;
        match self.source {
            Source::Rows(reader) => {
                let last = decoder.built(reader.finish()?).map_err(Error::of_rows)?;
                if last.num_rows() > 0 {
                    batches.push(last);
                }
            }
            Source::Frames { ended: true, buffer, .. } if buffer.is_empty() => {}
            Source::Frames { .. } => return Err(cut()),
        }
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        if let Some(counted) = counted.filter(|counted| *counted != rows) {
            let what =
                format!("the server says that it has sent {counted} rows, but {rows} arrived");
            return Err(Error::new(ErrorKind::Protocol, what));
        }
        Ok((decoder.schema().clone(), batches))
    }
}

fn out_of_turn() -> Error {
    Error::new(ErrorKind::Protocol, "the data is out of turn")
}

fn cut() -> Error {
    Error::new(ErrorKind::Protocol, "the data of the COPY ended too soon")
}
