//! The server's side of a connection.

use bytes::Bytes;
use dray_format::{Chunk, HEADER_BYTES, StateFrame, crc32c};

use crate::frame::{FRAME_HEADER_BYTES, Frame, HANDSHAKE_BYTES_MAX, Kind, MESSAGE_BYTES_MAX};
use crate::message::{
    Cancel, DIGEST_BYTES, Error, Finished, Hello, Message, Progress, Query, Report, Started,
    Welcome,
};
use crate::{ProtocolError, Refusal, Result, VERSION};

/// What the client said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// It greets; answer with [`ServerSession::welcome`] or an error.
    Hello(Hello),
    /// It wants a statement run.
    Query(Query),
    /// It wants the running statement stopped.
    Cancel,
    /// Nothing to do: a cancel that crossed the end of its statement.
    Ignored,
    /// It leaves.
    Goodbye,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AwaitingHello,
    Greeted,
    Ready,
    Running,
    Closed,
}

/// What a server may send, and what a client may ask, in this order.
#[derive(Debug)]
pub struct ServerSession {
    state: State,
    statement: u32,
    /// CRC-32C of the running statement's query.
    query: u32,
    chunks: u64,
    /// State frames sent.
    states: u32,
    rows: u64,
    digest: u32,
}

impl Default for ServerSession {
    fn default() -> Self {
        Self {
            state: State::AwaitingHello,
            statement: 0,
            query: 0,
            chunks: 0,
            states: 0,
            rows: 0,
            digest: 0,
        }
    }
}

impl ServerSession {
    /// A session in which a statement runs already: its request came another way, through
    /// PostgreSQL's COPY.
    pub fn running(statement: u32) -> Self {
        Self { state: State::Running, statement, ..Self::default() }
    }

    /// The number of the last statement; 0 before the first.
    pub fn statement(&self) -> u32 {
        self.statement
    }

    /// Rows and chunks sent for the running statement.
    pub fn sent(&self) -> (u64, u64) {
        (self.rows, self.chunks)
    }

    /// Reads a frame's header and holds it against the limits; the payload goes to
    /// [`Self::message`].
    ///
    /// # Errors
    /// When the frame is not one that may come now.
    pub fn frame(&self, bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Frame> {
        let frame = Frame::decode(bytes, &Kind::CLIENT, |_| match self.state {
            State::AwaitingHello => HANDSHAKE_BYTES_MAX,
            _ => MESSAGE_BYTES_MAX,
        })?;
        let expected = match frame.kind {
            Kind::Hello => self.state == State::AwaitingHello,
            Kind::Query => self.state == State::Ready,
            Kind::Cancel => matches!(self.state, State::Ready | State::Running),
            Kind::Goodbye => !matches!(self.state, State::AwaitingHello | State::Closed),
            _ => false,
        };
        if !expected {
            let what = match (frame.kind, self.state) {
                (Kind::Query, State::Running) => {
                    "a query while a statement is running on the connection".into()
                }
                (kind, _) => format!("the client sent {kind:?} out of turn"),
            };
            return Err(ProtocolError::new(Refusal::Order, what));
        }
        Ok(frame)
    }

    /// Whether the client may close the connection now, with `unread_bytes` of a frame unread.
    ///
    /// # Errors
    /// When it has not greeted, or stopped within a message.
    pub fn check_end(&self, unread_bytes: usize) -> Result<()> {
        if unread_bytes == 0 && self.state != State::AwaitingHello {
            return Ok(());
        }
        Err(ProtocolError::new(
            Refusal::Cut,
            "the client closed the connection within a message or before hello",
        ))
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn message(&mut self, frame: Frame, payload: &[u8]) -> Result<ClientEvent> {
        match frame.kind {
            Kind::Hello => {
                let hello = Hello::decode(payload)?;
                self.state = State::Greeted;
                Ok(ClientEvent::Hello(hello))
            }
            Kind::Query => {
                if let Some(raw) = payload.first_chunk() {
                    let (statement, last) = (u32::from_le_bytes(*raw), self.statement);
                    if statement <= last {
                        let what = format!("statement {statement}, expected a number above {last}");
                        return Err(ProtocolError::new(Refusal::Order, what));
                    }
                }
                let query = Query::decode(payload)?;
                self.statement = query.statement;
                self.query = crc32c(0, payload);
                self.state = State::Running;
                (self.chunks, self.states, self.rows, self.digest) = (0, 0, 0, 0);
                Ok(ClientEvent::Query(query))
            }
            Kind::Cancel => {
                let cancel = Cancel::decode(payload)?;
                if cancel.statement == 0 {
                    return Err(ProtocolError::new(Refusal::Order, "a cancel of statement 0"));
                }
                let running = self.state == State::Running && cancel.statement == self.statement;
                Ok(if running { ClientEvent::Cancel } else { ClientEvent::Ignored })
            }
            Kind::Goodbye if payload.is_empty() => {
                self.state = State::Closed;
                Ok(ClientEvent::Goodbye)
            }
            Kind::Goodbye => {
                Err(ProtocolError::new(Refusal::Payload, "a Goodbye message has no fields"))
            }
            kind => Err(ProtocolError::new(Refusal::Kind, format!("the client sent {kind:?}"))),
        }
    }

    /// Appends the answer to a greeting.
    ///
    /// # Errors
    /// Never for a session in order.
    pub fn welcome(&mut self, server: &str, out: &mut Vec<u8>) -> Result<()> {
        Welcome { version: VERSION, server: server.to_owned() }.encode(out)?;
        self.state = State::Ready;
        Ok(())
    }

    /// Appends the beginning of a result, the query's checksum filled in.
    ///
    /// # Errors
    /// When the schema is too large for one message.
    pub fn started(&mut self, started: &Started, out: &mut Vec<u8>) -> Result<()> {
        self.told(&Started { query: self.query, ..started.clone() }, out)
    }

    /// Numbers a chunk and appends its frame's and its own header, behind its state frame if there
    /// is one; the parts returned follow them.
    ///
    /// # Errors
    /// When the chunk is too large for a frame.
    pub fn chunk(&mut self, mut chunk: Chunk, out: &mut Vec<u8>) -> Result<Vec<Bytes>> {
        if let Some(state) = chunk.take_state() {
            self.state(state, out)?;
        }
        let Ok(payload_bytes) = u32::try_from(chunk.chunk_bytes()) else {
            let what = format!("a chunk of {} bytes is too large", chunk.chunk_bytes());
            return Err(ProtocolError::new(Refusal::Frame, what));
        };
        let rows = u64::from(chunk.rows());
        let (header, parts): ([u8; HEADER_BYTES], _) = chunk.numbered(self.chunks, self.states);
        out.extend_from_slice(&Frame { kind: Kind::Chunk, payload_bytes }.encode());
        out.extend_from_slice(&header);
        self.chunks += 1;
        self.rows += rows;
        self.digest = crc32c(self.digest, &header);
        Ok(parts)
    }

    fn state(&mut self, state: StateFrame, out: &mut Vec<u8>) -> Result<()> {
        let too_large = || {
            ProtocolError::new(Refusal::Frame, "a state frame is too large, or there are too many")
        };
        let payload_bytes = u32::try_from(state.frame_bytes()).map_err(|_| too_large())?;
        let (header, parts) = state.numbered(self.states.into());
        self.states = self.states.checked_add(1).ok_or_else(too_large)?;
        self.digest = crc32c(self.digest, &header);
        out.extend_from_slice(&Frame { kind: Kind::State, payload_bytes }.encode());
        out.extend_from_slice(&header);
        parts.iter().for_each(|part| out.extend_from_slice(part));
        Ok(())
    }

    /// Appends how far the statement is.
    ///
    /// # Errors
    /// Never for a session in order.
    pub fn progress(&mut self, rows_read: u64, out: &mut Vec<u8>) -> Result<()> {
        self.told(&Progress { statement: self.statement, rows_read, rows_sent: self.rows }, out)
    }

    /// Appends how the transfer went.
    ///
    /// # Errors
    /// When it is too large for a message.
    pub fn report(&mut self, report: Report, out: &mut Vec<u8>) -> Result<()> {
        self.told(&Report { statement: self.statement, ..report }, out)
    }

    /// Appends the trailer, its counts and digest filled in from what was sent.
    ///
    /// # Errors
    /// Never for a session in order.
    pub fn finished(&mut self, times: Finished, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Ready;
        let (statement, rows, chunks) = (self.statement, self.rows, self.chunks);
        self.told(&Finished { statement, rows, chunks, digest: 0, ..times }, out)?;
        // The digest covers what is before it, and is the last field.
        let at = out.len() - DIGEST_BYTES;
        out[at..].copy_from_slice(&self.digest.to_le_bytes());
        Ok(())
    }

    /// Appends a message of the running statement, and counts it in.
    fn told<M: Message>(&mut self, message: &M, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        message.encode(out)?;
        self.digest = crc32c(self.digest, M::covered(&out[start + FRAME_HEADER_BYTES..]));
        Ok(())
    }

    /// Appends the statement's error, its texts cut where they are very long; the connection stays.
    ///
    /// # Errors
    /// Never for a session in order.
    pub fn failed(&mut self, error: Error, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Ready;
        Error { statement: self.statement, ..error }.encode(out)
    }

    /// Appends an error that ends the connection, its texts cut where they are very long.
    ///
    /// # Errors
    /// Never for a session in order.
    pub fn closed(&mut self, error: Error, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Closed;
        Error { statement: 0, ..error }.encode(out)
    }
}
