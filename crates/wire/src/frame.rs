//! Frames: `spec/protocol.md` section 1.

use crate::{ProtocolError, Refusal, Result};

/// The size of a frame's header in bytes.
pub const FRAME_HEADER_BYTES: usize = 8;
/// Maximum payload before welcome.
pub(crate) const HANDSHAKE_BYTES_MAX: u64 = 64 << 10;
/// Maximum payload of a message, other than chunks, pages and state frames.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// The kind of message in a frame, with its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "protocol.md sections 2 and 3 describe each")]
pub enum Kind {
    Hello = 0x01,
    Query = 0x02,
    Cancel = 0x03,
    Goodbye = 0x05,
    Plan = 0x06,
    Part = 0x07,
    Release = 0x08,
    Share = 0x09,
    Welcome = 0x81,
    Started = 0x82,
    Chunk = 0x83,
    Progress = 0x84,
    Finished = 0x85,
    Error = 0x86,
    Report = 0x87,
    State = 0x88,
    Planned = 0x89,
    Page = 0x8A,
    Path = 0x8B,
}

impl Kind {
    /// The kinds that a client sends.
    pub(crate) const CLIENT: [Self; 8] = [
        Self::Hello,
        Self::Query,
        Self::Cancel,
        Self::Goodbye,
        Self::Plan,
        Self::Part,
        Self::Release,
        Self::Share,
    ];
    /// The kinds that a server sends.
    pub(crate) const SERVER: [Self; 11] = [
        Self::Welcome,
        Self::Started,
        Self::Chunk,
        Self::Progress,
        Self::Finished,
        Self::Error,
        Self::Report,
        Self::State,
        Self::Planned,
        Self::Page,
        Self::Path,
    ];
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The kind of message.
    pub kind: Kind,
    /// The number of bytes after the header.
    pub payload_bytes: u32,
}

impl Frame {
    /// Decodes a header. Fails if the kind is not one of `kinds`, or the payload is larger than
    /// `payload_bytes_max` of the kind.
    pub(crate) fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        kinds: &[Kind],
        payload_bytes_max: impl Fn(Kind) -> u64,
    ) -> Result<Self> {
        let [a, b, c, d, code, reserved @ ..] = *bytes;
        let not_a_frame = |refusal| {
            let what = format!(
                "received {bytes:02x?} instead of a frame header; is the other end Dray in the \
                 same version, and do both ends use TLS or neither?"
            );
            ProtocolError::new(refusal, what)
        };
        let kind = kinds
            .iter()
            .copied()
            .find(|kind| *kind as u8 == code)
            .ok_or_else(|| not_a_frame(Refusal::Kind))?;
        if reserved != [0; 3] {
            return Err(not_a_frame(Refusal::Frame));
        }
        let payload_bytes = u32::from_le_bytes([a, b, c, d]);
        let bytes_max = payload_bytes_max(kind);
        if u64::from(payload_bytes) > bytes_max {
            let what = format!(
                "a {kind:?} message of {payload_bytes} bytes is over the limit of {bytes_max}"
            );
            return Err(ProtocolError::new(Refusal::Frame, what));
        }
        Ok(Self { kind, payload_bytes })
    }

    /// The header's bytes.
    pub fn encode(self) -> [u8; FRAME_HEADER_BYTES] {
        let [a, b, c, d] = self.payload_bytes.to_le_bytes();
        [a, b, c, d, self.kind as u8, 0, 0, 0]
    }
}
