//! The data of a COPY that a driver receives over its own connection.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::{Buf, BytesMut};
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{HEADER_BYTES, Limits};
use dray_pgtypes::not_utf8;
use dray_postgres::{CopyReader, Description, Options};
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, Kind, ServerEvent};

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Arena, TABLE_BLOCK_BYTES};

/// Decodes the data of a COPY into a table. The data may be cut anywhere.
#[derive(Debug)]
pub struct CopyDecoder {
    format: Format,
    /// Known once the columns are.
    decoder: Option<Decoder>,
    strings: StringLayout,
    batches: Vec<RecordBatch>,
}

#[derive(Debug)]
enum Format {
    /// `FORMAT binary`.
    Rows(Box<CopyReader>),
    /// `FORMAT dray`.
    Frames {
        session: Box<ClientSession>,
        /// The beginning of a frame.
        buffer: BytesMut,
        memory: Arena,
        ended: bool,
    },
}

impl CopyDecoder {
    /// Decodes rows: the data of [`Description::copy_statement`].
    ///
    /// # Errors
    /// When a column has a type that can't be built.
    pub fn of_rows(
        description: &Description,
        options: Options,
        strings: StringLayout,
    ) -> Result<Self> {
        let reader = CopyReader::new(description, options)?;
        let decoder = Some(Decoder::new(reader.schema().clone(), strings));
        Ok(Self { format: Format::Rows(Box::new(reader)), decoder, strings, batches: Vec::new() })
    }

    /// Decodes the frames of the extension.
    pub fn of_frames(limits: Limits, strings: StringLayout) -> Self {
        let mut memory = Arena::default();
        memory.set_block_bytes(TABLE_BLOCK_BYTES);
        let session = Box::new(ClientSession::of_copy(limits));
        let format = Format::Frames { session, buffer: BytesMut::new(), memory, ended: false };
        Self { format, decoder: None, strings, batches: Vec::new() }
    }

    /// Decodes the next data.
    ///
    /// # Errors
    /// When it is damaged, or a value does not fit its column.
    pub fn push(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.format {
            Format::Rows(reader) => {
                let mut full = Vec::new();
                reader.push(data, &mut |built| full.push(built))?;
                for built in full {
                    let decoder = self.decoder.as_ref().ok_or_else(out_of_turn)?;
                    self.batches.push(
                        decoder.built(built).map_err(|error| Error::of_rows(error, not_utf8))?,
                    );
                }
                Ok(())
            }
            Format::Frames { buffer, .. } => {
                buffer.extend_from_slice(data);
                while self.decode_frame()? {}
                Ok(())
            }
        }
    }

    /// Decodes the first frame of the buffer. Returns false if the frame is not complete.
    fn decode_frame(&mut self) -> Result<bool> {
        let Format::Frames { session, buffer, memory, ended } = &mut self.format else {
            return Ok(false);
        };
        let Some(raw) = buffer.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(false) };
        // A frame that is too large is refused here, before the rest of it is waited for.
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
            // Arrays point into the body, so it is copied to where it has their alignment.
            let body = memory.receive_chunk(&header, |to| {
                to.copy_from_slice(body);
                Ok::<_, Error>(())
            })?;
            header.verify(&[descriptors, &body])?;
            let decoder = self.decoder.as_ref().ok_or_else(out_of_turn)?;
            let (tables, columns) = (session.tables(), &mut memory.columns(&header));
            self.batches.push(decoder.decode(
                &header,
                descriptors,
                &body,
                &tables,
                Some(columns),
                None,
            )?);
            return Ok(true);
        }
        match session.message(frame, &payload)? {
            ServerEvent::Started(started) => {
                self.decoder = Some(Decoder::new(started.schema, self.strings));
            }
            ServerEvent::Finished(_) => *ended = true,
            ServerEvent::Error(error) => return Err(error.into()),
            _ => {}
        }
        Ok(true)
    }

    /// The table, after all data. `rows_sent` is the number of rows in the COPY's command tag, if
    /// the driver gives it.
    ///
    /// # Errors
    /// When the data ended too soon, or has another number of rows.
    pub fn finish(self, rows_sent: Option<u64>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut batches = self.batches;
        let decoder = self.decoder.ok_or_else(ended_too_soon)?;
        match self.format {
            Format::Rows(reader) => {
                let last = decoder
                    .built(reader.finish()?)
                    .map_err(|error| Error::of_rows(error, not_utf8))?;
                if last.num_rows() > 0 {
                    batches.push(last);
                }
            }
            Format::Frames { ended: true, buffer, .. } if buffer.is_empty() => {}
            Format::Frames { .. } => return Err(ended_too_soon()),
        }
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        if let Some(sent) = rows_sent.filter(|sent| *sent != rows) {
            let what = format!("the server says that it has sent {sent} rows, but {rows} arrived");
            return Err(Error::new(ErrorKind::Protocol, what));
        }
        Ok((decoder.schema().clone(), batches))
    }
}

fn out_of_turn() -> Error {
    Error::new(ErrorKind::Protocol, "the data is out of turn")
}

fn ended_too_soon() -> Error {
    Error::new(ErrorKind::Protocol, "the data of the COPY ended too soon")
}
