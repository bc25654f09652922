//! Frames: `spec/protocol.md` section 1.

use crate::{ProtocolError, Result};

/// The size of a frame's header in bytes.
pub const FRAME_HEADER_BYTES: usize = 8;
/// The largest payload before welcome.
pub(crate) const HANDSHAKE_BYTES_MAX: u32 = 64 << 10;
/// The largest payload of a message that is not a chunk.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 16 << 20;

/// What a frame carries, by its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "protocol.md sections 2 and 3 describe each")]
pub enum Kind {
    Hello = 0x01,
    Query = 0x02,
    Cancel = 0x03,
    Goodbye = 0x05,
    Welcome = 0x81,
    Started = 0x82,
    Chunk = 0x83,
    Progress = 0x84,
    Finished = 0x85,
    Error = 0x86,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Hello,
        Self::Query,
        Self::Cancel,
        Self::Goodbye,
        Self::Welcome,
        Self::Started,
        Self::Chunk,
        Self::Progress,
        Self::Finished,
        Self::Error,
    ];
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// What it carries.
    pub kind: Kind,
    /// How many bytes follow the header.
    pub payload_bytes: u32,
}

impl Frame {
    /// Reads a header.
    ///
    /// # Errors
    /// When the kind is unknown or a reserved byte is not 0.
    pub fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Self> {
        let [a, b, c, d, code, reserved @ ..] = *bytes;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == code);
        let Some(kind) = kind.filter(|_| reserved == [0; 3]) else {
            return Err(ProtocolError::new(format!(
                "received {bytes:02x?} where a frame should begin; is the other end a Dray of the same version, and TLS the same at both ends?"
            )));
        };
        Ok(Self { kind, payload_bytes: u32::from_le_bytes([a, b, c, d]) })
    }

    /// The header's bytes.
    pub fn encode(self) -> [u8; FRAME_HEADER_BYTES] {
        let [a, b, c, d] = self.payload_bytes.to_le_bytes();
        [a, b, c, d, self.kind as u8, 0, 0, 0]
    }

    pub(crate) fn check(self, payload_bytes_max: u64) -> Result<Self> {
        if u64::from(self.payload_bytes) > payload_bytes_max {
            return Err(ProtocolError::new(format!(
                "a {:?} message of {} bytes is over the limit of {payload_bytes_max}",
                self.kind, self.payload_bytes
            )));
        }
        Ok(self)
    }
}
