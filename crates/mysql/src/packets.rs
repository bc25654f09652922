//! Packets over a socket: a length of three bytes, a sequence number, and the payload. A payload of
//! 16 MiB or more comes in several packets, the last of which is shorter than that.
//!
//! Payloads are read in place. Only those of several packets are copied together.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use dray_net::{is_timeout, is_tls_error, write_all};

use crate::answer::server_error;
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::fields::malformed;

/// The most bytes that are read from the socket at once.
const READ_BYTES: usize = 256 << 10;
const HEADER_BYTES: usize = 4;
/// The payload of a packet that another one continues.
const PART_BYTES: usize = 0xff_ffff;
/// The largest payload, rows apart.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The first byte of an error.
pub(crate) const ERROR: u8 = 0xff;
/// What to do about a connection that was closed before a statement was answered.
const CLOSED: &str = "a server closes the connection of a session that was idle for wait_timeout, \
                      and that of a statement over max_allowed_packet; connect again";

/// A socket with buffers for reading and writing packets.
#[derive(Debug)]
pub(crate) struct PacketStream<S> {
    stream: S,
    /// `buffer[start..end]` was read and not used yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The parts of a payload that comes in several packets.
    joined: Vec<u8>,
    /// The last packet was a part that another one continues.
    continues: bool,
    /// The sequence number of the next packet, in either direction.
    sequence: u8,
    /// The numbers are checked.
    is_numbered: bool,
    /// Something has arrived since the last command was sent.
    answered: bool,
    broken: bool,
    /// The time spent in reading, mostly waiting.
    waited: Duration,
}

impl<S: Read + Write> PacketStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            joined: Vec::new(),
            continues: false,
            sequence: 0,
            is_numbered: true,
            answered: true,
            broken: false,
            waited: Duration::ZERO,
        }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Replaces the stream by another over the same connection, such as one that is encrypted or
    /// compressed.
    ///
    /// # Errors
    /// When the server has sent more than it was asked for: what came before the change must not
    /// count as what comes after it.
    pub(crate) fn replace<T: Read + Write>(
        self,
        with: impl FnOnce(S) -> Result<T>,
    ) -> Result<PacketStream<T>> {
        if self.start != self.end {
            return Err(malformed("more than was asked for, before the connection changes"));
        }
        let sequence = self.sequence;
        Ok(PacketStream { sequence, ..PacketStream::new(with(self.stream)?) })
    }

    /// The same stream, whose numbers do not count. The server begins them anew within a compressed
    /// answer; the compressed packets have numbers of their own.
    pub(crate) fn unnumbered(self) -> Self {
        Self { is_numbered: false, ..self }
    }

    /// Whether the connection broke or was given up.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Gives the connection up, since nobody knows what comes next.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    /// The time spent in reading from the socket so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Sends a command, which begins a new sequence.
    pub(crate) fn command(&mut self, payload: &[u8], check: CancelCheck<'_>) -> Result<()> {
        self.sequence = 0;
        self.answered = false;
        self.send_numbered(payload, check)
    }

    /// Sends a payload.
    pub(crate) fn send(&mut self, payload: &[u8], check: CancelCheck<'_>) -> Result<()> {
        if !self.is_numbered {
            // Within a compressed connection 0 is the number of a command alone.
            self.sequence = self.sequence.max(1);
        }
        self.send_numbered(payload, check)
    }

    fn send_numbered(&mut self, payload: &[u8], check: CancelCheck<'_>) -> Result<()> {
        let mut out = Vec::with_capacity(payload.len() + HEADER_BYTES);
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES));
            let [a, b, c, ..] = part.len().to_le_bytes();
            out.extend([a, b, c, self.sequence]);
            out.extend(part);
            self.sequence = self.sequence.wrapping_add(1);
            rest = after;
            if part.len() < PART_BYTES {
                break;
            }
        }
        let (answered, mut is_closed) = (self.answered, false);
        let failed = |cause: io::Error| {
            is_closed = !answered && is_of_closed(&cause);
            broke(cause, answered)
        };
        let sent = write_all(&mut self.stream, &out, failed, check);
        sent.map_err(|error| {
            // Half a packet may be on its way.
            self.broken = true;
            match is_closed {
                true => self.parting_error(check).unwrap_or(error),
                false => error,
            }
        })
    }

    /// The error that a server has sent before it closed the connection, as it does instead of
    /// reading the rest of what is too large.
    #[cold]
    fn parting_error(&mut self, check: CancelCheck<'_>) -> Option<Error> {
        self.fill(HEADER_BYTES, check).ok()?;
        let head = &self.buffer[self.start..];
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if bytes >= READ_BYTES {
            return None;
        }
        self.fill(HEADER_BYTES + bytes, check).ok()?;
        let from = self.start + HEADER_BYTES;
        let payload = &self.buffer[from..from + bytes];
        let is_error = payload.first() == Some(&ERROR);
        is_error.then(|| match server_error(payload) {
            Ok(error) => error.with_kind(ErrorKind::Connection),
            Err(error) => error,
        })
    }

    /// The next payload. One over `bytes_max` stays where it is, so that [`Self::skip`] can pass
    /// it.
    #[inline]
    pub(crate) fn next(&mut self, bytes_max: usize, check: CancelCheck<'_>) -> Result<&[u8]> {
        let bytes = self.peek(check)?;
        if bytes == PART_BYTES || self.continues {
            return self.next_joined(bytes_max, check);
        }
        if bytes > bytes_max {
            return Err(too_large(bytes, bytes_max));
        }
        self.fill(HEADER_BYTES + bytes, check)?;
        let from = self.start + HEADER_BYTES;
        self.start = from + bytes;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(&self.buffer[from..from + bytes])
    }

    /// Passes over the next payload. Returns it only if it has at most `bytes_max` bytes.
    pub(crate) fn skip(
        &mut self,
        bytes_max: usize,
        check: CancelCheck<'_>,
    ) -> Result<Option<&[u8]>> {
        let mut bytes = self.peek(check)?;
        if !self.continues && bytes <= bytes_max.min(PART_BYTES - 1) {
            return self.next(bytes_max, check).map(Some);
        }
        loop {
            self.start += HEADER_BYTES;
            self.sequence = self.sequence.wrapping_add(1);
            self.continues = bytes == PART_BYTES;
            while bytes > 0 {
                self.fill(1, check)?;
                let count = bytes.min(self.end - self.start);
                self.start += count;
                bytes -= count;
                check()?;
            }
            if !self.continues {
                return Ok(None);
            }
            bytes = self.peek(check)?;
        }
    }

    /// Joins a payload of several packets.
    fn next_joined(&mut self, bytes_max: usize, check: CancelCheck<'_>) -> Result<&[u8]> {
        self.joined.clear();
        loop {
            let bytes = self.peek(check)?;
            let total = self.joined.len() + bytes;
            if total > bytes_max {
                return Err(too_large(total, bytes_max));
            }
            self.fill(HEADER_BYTES + bytes, check)?;
            self.joined.try_reserve(bytes).map_err(|_| no_memory(total))?;
            let from = self.start + HEADER_BYTES;
            self.joined.extend(&self.buffer[from..from + bytes]);
            self.start = from + bytes;
            self.sequence = self.sequence.wrapping_add(1);
            self.continues = bytes == PART_BYTES;
            if !self.continues {
                return Ok(&self.joined);
            }
        }
    }

    /// The payload's length of the next packet. Its number is checked, unless it is compressed.
    #[inline]
    fn peek(&mut self, check: CancelCheck<'_>) -> Result<usize> {
        self.fill(HEADER_BYTES, check)?;
        let head = &self.buffer[self.start..];
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        match head[3] == self.sequence || !self.is_numbered {
            true => Ok(bytes),
            false => Err(self.out_of_sequence(check)),
        }
    }

    /// The error of a packet with a wrong number. A server that closes the connection may send an
    /// error whose number is not the next.
    #[cold]
    fn out_of_sequence(&mut self, check: CancelCheck<'_>) -> Error {
        let (found, expected) = (self.buffer[self.start + 3], self.sequence);
        self.broken = true;
        self.parting_error(check).unwrap_or_else(|| {
            malformed(format!("packet {found} where packet {expected} was expected"))
        })
    }

    /// The error of a server that broke the protocol, so that nothing it sends can be trusted.
    #[cold]
    pub(crate) fn out_of_order(&mut self, what: &str) -> Error {
        self.broken = true;
        malformed(what)
    }

    /// Fills the buffer to at least `bytes` bytes.
    #[inline]
    fn fill(&mut self, bytes: usize, check: CancelCheck<'_>) -> Result<()> {
        if self.end - self.start >= bytes { Ok(()) } else { self.fill_more(bytes, check) }
    }

    fn fill_more(&mut self, bytes: usize, check: CancelCheck<'_>) -> Result<()> {
        debug_assert!(self.start <= self.end && self.end <= self.buffer.len());
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < bytes {
            // The caller has checked the size against a limit.
            let more = bytes.next_multiple_of(READ_BYTES) - self.buffer.len();
            self.buffer.try_reserve_exact(more).map_err(|_| no_memory(bytes))?;
            self.buffer.resize(self.buffer.len() + more, 0);
        }
        while self.end < bytes {
            let asked = Instant::now();
            let read = self.stream.read(&mut self.buffer[self.end..]);
            self.waited += asked.elapsed();
            match read {
                Ok(0) => {
                    self.broken = true;
                    let what = "the server closed the connection before the end";
                    let hint = match self.answered {
                        true => "what had arrived of a result is not whole",
                        false => CLOSED,
                    };
                    return Err(Error::new(ErrorKind::Connection, what).with_hint(hint));
                }
                Ok(read) => {
                    self.end += read;
                    self.answered = true;
                }
                Err(cause) if is_timeout(&cause) => check()?,
                Err(cause) => {
                    self.broken = true;
                    return Err(broke(cause, self.answered));
                }
            }
        }
        Ok(())
    }

    /// Sends COM_QUIT, as a courtesy: the server notices the end either way.
    pub(crate) fn say_goodbye(&mut self) {
        if !self.broken {
            let mut now_or_never = || Err(Error::wait_ended("the server takes nothing"));
            let _ = self.command(&[1], &mut now_or_never);
        }
    }
}

fn broke(cause: io::Error, answered: bool) -> Error {
    // With TLS 1.3 the server refuses a client's certificate after the handshake.
    let (kind, what) = match is_tls_error(&cause) {
        true => (ErrorKind::Authentication, "TLS failed"),
        false => (ErrorKind::Connection, "the connection to the server broke"),
    };
    let hint = if !answered && is_of_closed(&cause) { CLOSED } else { "" };
    Error::new(kind, what).with_hint(hint).with_cause(cause)
}

/// Whether a stream failed because the other end has closed it.
fn is_of_closed(cause: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(cause.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("no memory for a packet of {bytes} bytes"))
}

#[cold]
fn too_large(bytes: usize, bytes_max: usize) -> Error {
    let what = format!("a packet has {bytes} bytes or more, over the limit of {bytes_max}");
    Error::new(ErrorKind::Limit, what).with_sqlstate(LIMIT_EXCEEDED)
}
