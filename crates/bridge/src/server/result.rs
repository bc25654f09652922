//! A statement's result on its way from a bridge.

use dray_driver::{Estimate, Known, Sink};

use super::session::End;
use crate::frame::{Frame, Kind, malformed};
use crate::message::{Begun, Finished, Query};
use crate::stream::{Decoder, Part, StreamError, StreamLimits};

/// A result that comes in frames.
pub(super) struct Incoming {
    decoder: Decoder,
    plan_only: bool,
    begun: Option<Begun>,
    rows: u64,
    /// Whether the sink takes no more.
    pub(super) is_stopped: bool,
}

impl Incoming {
    pub(super) fn new(query: &Query) -> Self {
        // A batch of several rows ends with the row that makes it too large. What is beside the
        // values is less than them.
        let body_bytes = query.row_bytes.saturating_add(query.batch_bytes.saturating_mul(2));
        let limits = StreamLimits {
            batch_rows: query.batch_rows,
            body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
        };
        let decoder = Decoder::new(limits);
        Self { decoder, plan_only: query.plan_only, begun: None, rows: 0, is_stopped: false }
    }

    /// Takes a frame; true if the result is complete.
    pub(super) fn take(&mut self, frame: &Frame, sink: &mut dyn Sink) -> Result<bool, End> {
        match frame.kind {
            // What comes of a statement that nobody waits for does not matter.
            Kind::Begun | Kind::Data if self.is_stopped => Ok(false),
            Kind::Finished if self.is_stopped => Ok(true),
            Kind::Begun if self.begun.is_none() => {
                self.begun = Some(frame.object()?);
                Ok(false)
            }
            Kind::Data if self.begun.is_some() => {
                self.decode(&frame.payload, sink)?;
                Ok(false)
            }
            Kind::Finished => {
                let Finished { rows } = frame.object()?;
                if !self.decoder.has_ended() {
                    return Err(malformed("a result whose stream has not ended").into());
                }
                match rows == self.rows {
                    true => Ok(true),
                    false => Err(malformed(format!("{} rows of {rows}", self.rows)).into()),
                }
            }
            _ => Err(unexpected(frame)),
        }
    }

    fn decode(&mut self, mut bytes: &[u8], sink: &mut dyn Sink) -> Result<(), End> {
        let refused = |cause: StreamError| malformed(cause.to_string());
        while let Some(part) = self.decoder.next(&mut bytes).map_err(refused)? {
            let taken = match part {
                Part::Schema(schema) => {
                    let rows = self.begun.as_ref().and_then(|begun| begun.estimated_rows);
                    let rows = rows.map_or(Known::Unknown, Known::Estimate);
                    sink.begin(schema, Estimate { rows, ..Estimate::default() })
                }
                Part::Batch(_) if self.plan_only => {
                    return Err(malformed("rows of a statement that was only to be planned").into());
                }
                Part::Batch(batch) => {
                    self.rows = self.rows.saturating_add(batch.num_rows() as u64);
                    sink.batch(batch)
                }
                Part::End => Ok(()),
            };
            if taken.is_err() {
                self.is_stopped = true;
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The bridge sent a frame that can't come here.
pub(super) fn unexpected(frame: &Frame) -> End {
    let kind = char::from(frame.kind.letter());
    malformed(format!("a frame {kind} out of turn")).into()
}
