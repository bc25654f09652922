//! Messages over a socket: PostgreSQL's protocol, version 3 (its manual, chapter "Frontend/Backend
//! Protocol").
//!
//! Rows and COPY data, nearly all of the bytes, are read in place. All other messages go through
//! `postgres-protocol`.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use dray_net::{Readable, TICK, is_timeout, write_all};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorFields, Message};
use postgres_protocol::message::frontend;

use super::settings::Settings;
use crate::error::{CancelCheck, Error, ErrorKind, Result};

/// The most bytes that are read from the socket at once.
const READ_BYTES: usize = 256 << 10;
/// A tag, and a length that counts itself and the body.
const HEADER_BYTES: usize = 5;
/// The largest message, rows and COPY data apart. An error may quote a statement.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: u8,
    pub(crate) body_bytes: usize,
}

impl Header {
    /// Whether the message is asynchronous, so that it may come at any time: a notice, a
    /// notification or a setting.
    #[inline]
    pub(crate) fn is_async(self) -> bool {
        matches!(self.tag, b'N' | b'A' | b'S')
    }
}

/// A socket with buffers for reading and writing messages.
#[derive(Debug)]
pub(crate) struct MessageStream<S> {
    stream: S,
    /// `buffer[start..end]` was read and not used yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    out: BytesMut,
    broken: bool,
    /// The time spent in reading, mostly waiting.
    waited: Duration,
    /// The settings that the server has reported, at login and since.
    settings: Settings,
}

impl<S: Read + Write> MessageStream<S> {
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            out: BytesMut::new(),
            broken: false,
            waited: Duration::ZERO,
            settings: Settings::default(),
        }
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

    /// The settings by which results are read.
    pub(crate) fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Whether backslashes escape in plain strings, once the server has reported it.
    pub(crate) fn escapes(&self) -> Option<bool> {
        self.settings.escapes()
    }

    /// The buffer where messages are written before [`Self::send`].
    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Sends the written messages.
    pub(crate) fn send(&mut self, check: CancelCheck<'_>) -> Result<()> {
        let sent = write_all(&mut self.stream, &self.out, broke, check);
        self.out.clear();
        // Half a message may be on its way.
        sent.inspect_err(|_| self.broken = true)
    }

    /// Sends the written messages, and meanwhile keeps what the server sends: it may take nothing
    /// until that is read.
    pub(crate) fn send_and_read(&mut self, check: CancelCheck<'_>) -> Result<()>
    where
        S: Readable,
    {
        let out = std::mem::take(&mut self.out);
        let sent = self.write_and_read(&out, check);
        self.out = out;
        self.out.clear();
        sent.inspect_err(|_| self.broken = true)
    }

    fn write_and_read(&mut self, mut bytes: &[u8], check: CancelCheck<'_>) -> Result<()>
    where
        S: Readable,
    {
        let mut checked = Instant::now();
        loop {
            if checked.elapsed() >= TICK {
                checked = Instant::now();
                check()?;
            }
            let moved = match bytes.is_empty() {
                false => self.stream.write(bytes),
                true => self.stream.flush().map(|()| 0),
            };
            match moved {
                Ok(0) if bytes.is_empty() => return Ok(()),
                Ok(0) => return Err(broke(io::ErrorKind::WriteZero.into())),
                Ok(written) => bytes = &bytes[written..],
                Err(cause) if is_timeout(&cause) => {
                    check()?;
                    self.read_arrived()?;
                }
                Err(cause) => return Err(broke(cause)),
            }
        }
    }

    /// Whether the next message has arrived as a whole.
    pub(crate) fn has_arrived(&mut self) -> Result<bool>
    where
        S: Readable,
    {
        loop {
            let found = &self.buffer[self.start..self.end];
            if let [_, a, b, c, d, ..] = *found
                && found.len() > u32::from_be_bytes([a, b, c, d]) as usize
            {
                return Ok(true);
            }
            if !self.read_arrived()? {
                return Ok(false);
            }
        }
    }

    /// Reads what has arrived, without waiting for more. Returns whether there was anything.
    fn read_arrived(&mut self) -> Result<bool>
    where
        S: Readable,
    {
        if !self.stream.is_readable() {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            if self.end >= MESSAGE_BYTES_MAX {
                return Err(self.out_of_order("more notices than data"));
            }
            self.buffer.resize(self.end + READ_BYTES, 0);
        }
        match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => {
                self.broken = true;
                Err(broke(io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(read) => {
                self.end += read;
                Ok(true)
            }
            Err(cause) if is_timeout(&cause) => Ok(false),
            Err(cause) => {
                self.broken = true;
                Err(broke(cause))
            }
        }
    }

    /// Sends Terminate, as a courtesy: the server notices the end either way.
    pub(crate) fn say_goodbye(&mut self) {
        if !self.broken {
            self.out.clear();
            frontend::terminate(&mut self.out);
            let mut now_or_never = || Err(Error::wait_ended("the server takes nothing"));
            let _ = self.send(&mut now_or_never);
        }
    }

    /// The header of the next message, which stays the next until its body is read.
    #[inline]
    pub(crate) fn peek(&mut self, check: CancelCheck<'_>) -> Result<Header> {
        self.fill(HEADER_BYTES, check)?;
        let head = &self.buffer[self.start..];
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        match length.checked_sub(4) {
            Some(body_bytes) => Ok(Header { tag: head[0], body_bytes }),
            None => Err(self.out_of_order(&format!("a message of {length} bytes"))),
        }
    }

    /// Reads the whole body of the next message.
    #[inline]
    pub(crate) fn body(&mut self, header: Header, check: CancelCheck<'_>) -> Result<&[u8]> {
        let bytes = HEADER_BYTES + header.body_bytes;
        self.fill(bytes, check)?;
        let body = &self.buffer[self.start + HEADER_BYTES..self.start + bytes];
        self.start += bytes;
        Ok(body)
    }

    /// Skips the header of the next message, so that its body can be read in parts.
    pub(crate) fn enter(&mut self) {
        self.start += HEADER_BYTES;
    }

    /// Reads a part of a body.
    pub(crate) fn read_exact(&mut self, mut to: &mut [u8], check: CancelCheck<'_>) -> Result<()> {
        while !to.is_empty() {
            let buffered = &self.buffer[self.start..self.end];
            if buffered.is_empty() && to.len() >= READ_BYTES / 4 {
                // Large parts are read straight to their place.
                let read = self.read(0, to, check)?;
                to = &mut to[read..];
                continue;
            }
            if buffered.is_empty() {
                self.fill(1, check)?;
                continue;
            }
            let count = buffered.len().min(to.len());
            to[..count].copy_from_slice(&buffered[..count]);
            self.start += count;
            to = &mut to[count..];
        }
        Ok(())
    }

    /// The tag of the next message that is not asynchronous.
    pub(crate) fn next_tag(&mut self, check: CancelCheck<'_>) -> Result<u8> {
        loop {
            let header = self.peek(check)?;
            if !header.is_async() {
                return Ok(header.tag);
            }
            self.message_or_async(check)?;
        }
    }

    /// Reads the next message that is not asynchronous. It must be no row and no COPY data.
    pub(crate) fn message(&mut self, check: CancelCheck<'_>) -> Result<Message> {
        loop {
            if let Some(message) = self.message_or_async(check)? {
                return Ok(message);
            }
        }
    }

    /// Reads the next message. An asynchronous one gives None; a setting is noted.
    pub(crate) fn message_or_async(&mut self, check: CancelCheck<'_>) -> Result<Option<Message>> {
        let header = self.peek(check)?;
        if header.body_bytes > MESSAGE_BYTES_MAX {
            return Err(self.out_of_order(&format!("a message of {} bytes", header.body_bytes)));
        }
        self.fill(HEADER_BYTES + header.body_bytes, check)?;
        let bytes = HEADER_BYTES + header.body_bytes;
        let mut raw = BytesMut::from(&self.buffer[self.start..self.start + bytes]);
        self.start += bytes;
        match Message::parse(&mut raw) {
            Ok(Some(Message::NoticeResponse(_) | Message::NotificationResponse(_))) => {}
            Ok(Some(Message::ParameterStatus(status))) => {
                // A value may be in any encoding; those that matter are ASCII.
                if let (Ok(name), Ok(value)) = (status.name(), status.value()) {
                    self.settings.report(name, value);
                }
            }
            Ok(Some(message)) => return Ok(Some(message)),
            Ok(None) => return Err(self.out_of_order("half a message")),
            Err(cause) => return Err(self.out_of_order(&cause.to_string())),
        }
        Ok(None)
    }

    /// The error of a server that broke the protocol, so that nothing it sends can be trusted.
    #[cold]
    pub(crate) fn out_of_order(&mut self, what: &str) -> Error {
        self.broken = true;
        Error::new(ErrorKind::Protocol, format!("the server's answer can't be understood: {what}"))
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
            // A large row. The caller has checked its size against a limit.
            let more = bytes.next_multiple_of(READ_BYTES) - self.buffer.len();
            let reserved = self.buffer.try_reserve_exact(more);
            reserved.map_err(|_| {
                Error::new(ErrorKind::Limit, format!("no memory for a message of {bytes} bytes"))
            })?;
            self.buffer.resize(self.buffer.len() + more, 0);
        }
        while self.end < bytes {
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = self.read(self.end, &mut buffer, check);
            self.buffer = buffer;
            self.end += read?;
        }
        Ok(())
    }

    /// Reads at least one byte to `to[from..]`.
    fn read(&mut self, from: usize, to: &mut [u8], check: CancelCheck<'_>) -> Result<usize> {
        let to = &mut to[from..];
        loop {
            let asked = Instant::now();
            let read = self.stream.read(to);
            self.waited += asked.elapsed();
            match read {
                Ok(0) => {
                    self.broken = true;
                    let what = "the server closed the connection before the end";
                    return Err(Error::new(ErrorKind::Connection, what)
                        .with_hint("what had arrived of a result is not whole"));
                }
                Ok(read) => return Ok(read),
                Err(cause) if is_timeout(&cause) => check()?,
                Err(cause) => {
                    self.broken = true;
                    return Err(broke(cause));
                }
            }
        }
    }
}

fn broke(cause: io::Error) -> Error {
    Error::new(ErrorKind::Connection, "the connection to the server broke").with_cause(cause)
}

/// An error that the server reports. Its position counts the characters that were sent, of which
/// `sent_before` precede `statement`.
pub(crate) fn server_error(
    mut fields: ErrorFields<'_>,
    statement: &str,
    sent_before: usize,
) -> Error {
    let (mut message, mut sqlstate, mut detail, mut hint, mut position) =
        (String::new(), String::new(), String::new(), String::new(), None);
    while let Ok(Some(field)) = fields.next() {
        let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'M' => message = value(),
            b'C' => sqlstate = value(),
            b'D' => detail = value(),
            b'H' => hint = value(),
            b'P' => {
                position = value()
                    .parse::<usize>()
                    .ok()
                    .and_then(|position| position.checked_sub(sent_before))
            }
            _ => {}
        }
    }
    if let Some(line) = position.and_then(|position| line_of(statement, position)) {
        message = format!("{message}, at {line}");
    }
    if !detail.is_empty() {
        message = format!("{message}: {detail}");
    }
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate).with_hint(hint)
}

/// The line and column of a statement's character `position`, counted from 1.
fn line_of(statement: &str, position: usize) -> Option<String> {
    let at = statement
        .char_indices()
        .nth(position.checked_sub(1)?)
        .map_or(statement.len(), |(at, _)| at);
    let before = &statement[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some(match statement.trim_end().contains('\n') {
        true => format!("line {line}, column {column}"),
        false => format!("column {column}"),
    })
}
