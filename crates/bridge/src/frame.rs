//! Frames: `spec/bridge.md` section 1.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a payload of JSON.
pub const JSON_FRAME_MAX: usize = 16 << 20;
/// The most bytes of a payload of kind [`Kind::Data`].
pub const BYTES_FRAME_MAX: usize = 1 << 20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `O`: open the database.
    Open,
    /// `Q`: run a statement.
    Query,
    /// `C`: cancel the statement that runs.
    Cancel,
    /// `D`: bytes of parameters or of a result.
    Data,
    /// `R`: the database is open.
    Ready,
    /// `B`: the columns are known.
    Begun,
    /// `F`: the result is complete.
    Finished,
    /// `E`: it failed.
    Failure,
}

impl Kind {
    /// Its letter.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Open => b'O',
            Self::Query => b'Q',
            Self::Cancel => b'C',
            Self::Data => b'D',
            Self::Ready => b'R',
            Self::Begun => b'B',
            Self::Finished => b'F',
            Self::Failure => b'E',
        }
    }

    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'O' => Self::Open,
            b'Q' => Self::Query,
            b'C' => Self::Cancel,
            b'D' => Self::Data,
            b'R' => Self::Ready,
            b'B' => Self::Begun,
            b'F' => Self::Finished,
            b'E' => Self::Failure,
            _ => return None,
        })
    }

    const fn payload_max(self) -> usize {
        match self {
            Self::Data => BYTES_FRAME_MAX,
            _ => JSON_FRAME_MAX,
        }
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The payload's object.
    ///
    /// # Errors
    /// If it is not JSON, or lacks a member.
    pub fn object<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.payload)
            .map_err(|cause| malformed(format!("a frame {} with {cause}", self.letter())))
    }

    fn letter(&self) -> char {
        char::from(self.kind.letter())
    }
}

/// Reads a frame; None if the input ends before it. Memory grows only by bytes that have come.
///
/// # Errors
/// If reading fails, the input ends within the frame, or the frame's kind or length is not allowed.
pub fn read_frame(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut letter = [0];
    if read_some(input, &mut letter)? == 0 {
        return Ok(None);
    }
    let [letter] = letter;
    let kind =
        Kind::of(letter).ok_or_else(|| malformed(format!("a frame of kind {letter:#04x}")))?;
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(within)?;
    let length = u32::from_le_bytes(length);
    if usize::try_from(length).is_ok_and(|length| length > kind.payload_max()) {
        return Err(malformed(format!("a frame {} of {length} bytes", char::from(letter))));
    }
    let mut payload = Vec::new();
    let read = input.take(length.into()).read_to_end(&mut payload)?;
    if u32::try_from(read) != Ok(length) {
        return Err(within(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Some(Frame { kind, payload }))
}

fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Writes a frame.
///
/// # Errors
/// If writing fails, or the payload is too long.
pub fn write_frame(output: &mut impl Write, kind: Kind, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= kind.payload_max());
    let Some(length) = length else {
        let what = format!("a frame of {} bytes is too long", payload.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    let [a, b, c, d] = length.to_le_bytes();
    output.write_all(&[kind.letter(), a, b, c, d])?;
    output.write_all(payload)?;
    output.flush()
}

/// Writes a frame with an object.
///
/// # Errors
/// Those of [`write_frame`].
pub(crate) fn write_object(
    output: &mut impl Write,
    kind: Kind,
    object: &impl Serialize,
) -> io::Result<()> {
    write_frame(output, kind, &serde_json::to_vec(object)?)
}

/// The other side sent what can't be right: `what`, such as "a frame of kind 0x00".
pub(crate) fn malformed(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

fn within(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::UnexpectedEof => io::Error::new(kind, "an end within a frame"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, Kind::Data, b"abc").unwrap();
        write_object(&mut bytes, Kind::Cancel, &serde_json::json!({})).unwrap();
        assert_eq!(bytes, b"D\x03\0\0\0abcC\x02\0\0\0{}");
        let mut input = bytes.as_slice();
        let frame = read_frame(&mut input).unwrap().unwrap();
        assert_eq!(frame, Frame { kind: Kind::Data, payload: b"abc".to_vec() });
        assert_eq!(read_frame(&mut input).unwrap().unwrap().kind, Kind::Cancel);
        assert_eq!(read_frame(&mut input).unwrap(), None);
    }

    #[test]
    fn hostile_frames_are_refused() {
        for (bytes, what) in [
            (&b"X\0\0\0\0"[..], "kind 0x58"),
            (b"D\x01\0\x10\0", "of 1048577 bytes"),
            (b"F\x01\0\0\x01", "of 16777217 bytes"),
            (b"F\xFF\xFF\xFF\xFF", "of 4294967295 bytes"),
            (b"F\x01", "end within a frame"),
            (b"F\x02\0\0\0{", "end within a frame"),
        ] {
            let error = read_frame(&mut &bytes[..]).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
        let frame = Frame { kind: Kind::Finished, payload: b"{\"rows\":-1}".to_vec() };
        assert!(frame.object::<crate::Finished>().is_err());
    }

    #[test]
    fn too_long_payloads_are_not_written() {
        let payload = vec![0; BYTES_FRAME_MAX + 1];
        assert!(write_frame(&mut Vec::new(), Kind::Data, &payload).is_err());
    }
}
