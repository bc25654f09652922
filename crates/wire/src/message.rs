//! The messages of `spec/protocol.md` sections 2 and 3.

mod client;
mod plan;
mod server;

use dray_format::{Cursor, ErrorKind as FormatErrorKind};

pub(crate) use self::client::check_limits;
pub use self::client::{Cancel, Checksums, CompressionChoice, Hello, Query, RowLayout, Unfit};
pub use self::plan::{
    PARTS_MAX, PASS_PREFIX, PartRequest, PlanRequest, Planned, PlannedPart, ShareRequest,
    TICKET_BYTES_MAX,
};
#[cfg(feature = "partition")]
pub(crate) use self::plan::{check_pass, check_ticket};
pub(crate) use self::server::DIGEST_BYTES;
use self::server::put_count;
pub use self::server::{
    Encoded, Error, ErrorKind, Estimate, Finished, Known, PriceSet, Progress, Report, SourcePath,
    Started, Welcome,
};
use crate::frame::{FRAME_HEADER_BYTES, Frame, Kind, MESSAGE_BYTES_MAX};
use crate::{ProtocolError, Refusal, Result};

/// A message, with the encoding of its fields.
pub(crate) trait Message: Sized {
    const KIND: Kind;
    /// Maximum payload that the other side accepts.
    const PAYLOAD_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;
    fn read(cursor: &mut Cursor<'_>) -> Result<Self>;

    /// The part of a payload that the statement's digest covers.
    fn digested(payload: &[u8]) -> &[u8] {
        payload
    }

    /// Decodes a payload that consists of exactly this message.
    fn decode(payload: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(payload, FormatErrorKind::Truncated);
        let message = Self::read(&mut cursor).map_err(|error| error.in_message(Self::KIND))?;
        match cursor.remaining() {
            0 => Ok(message),
            left => Err(invalid(format!("{left} bytes are left over")).in_message(Self::KIND)),
        }
    }

    /// Appends the message as a frame. On failure `out` is unchanged.
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        let frame = self.write(out).and_then(|()| {
            let bytes = out.len() - start - FRAME_HEADER_BYTES;
            match u32::try_from(bytes) {
                Ok(payload_bytes) if u64::from(payload_bytes) <= Self::PAYLOAD_BYTES_MAX => {
                    Ok(Frame { kind: Self::KIND, payload_bytes })
                }
                _ => {
                    let (kind, bytes_max) = (Self::KIND, Self::PAYLOAD_BYTES_MAX);
                    let what = format!(
                        "a {kind:?} message of {bytes} bytes is over the limit of {bytes_max}"
                    );
                    Err(ProtocolError::new(Refusal::Frame, what))
                }
            }
        });
        match frame {
            Ok(frame) => out[start..start + FRAME_HEADER_BYTES].copy_from_slice(&frame.encode()),
            Err(_) => out.truncate(start),
        }
        frame.map(|_| ())
    }
}

/// The error of an undefined value.
fn invalid(what: impl Into<String>) -> ProtocolError {
    ProtocolError::new(Refusal::Payload, what)
}
fn boolean(cursor: &mut Cursor<'_>, field: &'static str) -> Result<bool> {
    match cursor.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(format!("field {field} is {other}, expected 0 or 1"))),
    }
}
