//! The server's side of a connection.

use bytes::Bytes;
use dray_format::{Chunk, HEADER_BYTES, StateFrame, crc32c};
use dray_page::PackedPage;

use crate::frame::{FRAME_HEADER_BYTES, Frame, HANDSHAKE_BYTES_MAX, Kind, MESSAGE_BYTES_MAX};
use crate::message::{
    Cancel, DIGEST_BYTES, Error, Finished, Hello, Message, PartRequest, PlanRequest, Planned,
    Progress, Query, Report, RowLayout, ShareRequest, SourcePath, Started, Unfit, Welcome,
};
use crate::{
    ESTIMATES_SINCE, Instance, PAGES_SINCE, PATHS_SINCE, PLANS_SINCE, ProtocolError, Refusal,
    Result, SOURCES_SINCE, UNFIT_SINCE, VERSION,
};

/// A message from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// The client's hello; answer with [`ServerSession::welcome`] or an error.
    Hello(Hello),
    /// A statement to run.
    Query(Query),
    /// A statement to divide into parts; answer with [`ServerSession::planned`] or an error.
    Plan(PlanRequest),
    /// A part to run.
    Part(PartRequest),
    /// Give up what is held for the plan of the connection's pass.
    Release,
    /// Make the connection's next plan under the snapshot of this earlier one.
    Share(ShareRequest),
    /// A request to stop the running statement.
    Cancel,
    /// A cancel of a statement that has ended; nothing to do.
    Ignored,
    /// The client closes the connection.
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

/// The server's state of a connection: which messages may be sent and received next.
#[derive(Debug)]
pub struct ServerSession {
    state: State,
    /// The version that the connection uses.
    version: u16,
    /// The source of the hello.
    source: String,
    statement: u32,
    /// CRC-32C of the running statement's query.
    query: u32,
    /// Chunks and pages sent.
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
            version: VERSION,
            source: String::new(),
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
    /// A session with a running statement, whose request came by another protocol: PostgreSQL's
    /// COPY.
    pub fn running(statement: u32) -> Self {
        Self { state: State::Running, statement, ..Self::default() }
    }

    /// The number of the last statement; 0 before the first.
    pub fn statement(&self) -> u32 {
        self.statement
    }

    /// The rows sent for the running statement, and the chunks and pages.
    pub fn sent(&self) -> (u64, u64) {
        (self.rows, self.chunks)
    }

    /// Decodes a frame's header and checks it against the limits. Pass the payload to
    /// [`Self::message`].
    ///
    /// # Errors
    /// If the frame is not allowed in the current state.
    pub fn frame(&self, bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Frame> {
        let frame = Frame::decode(bytes, &Kind::CLIENT, |_| match self.state {
            State::AwaitingHello => HANDSHAKE_BYTES_MAX,
            _ => MESSAGE_BYTES_MAX,
        })?;
        let expected = match frame.kind {
            Kind::Hello => self.state == State::AwaitingHello,
            Kind::Query => self.state == State::Ready,
            Kind::Plan | Kind::Part => self.state == State::Ready && self.version >= PLANS_SINCE,
            Kind::Release | Kind::Share => {
                self.state == State::Ready && self.version >= SOURCES_SINCE
            }
            Kind::Cancel => matches!(self.state, State::Ready | State::Running),
            Kind::Goodbye => !matches!(self.state, State::AwaitingHello | State::Closed),
            _ => false,
        };
        if !expected {
            let what = match (frame.kind, self.state) {
                (Kind::Query | Kind::Plan | Kind::Part, State::Running) => {
                    "a query while a statement is running on the connection".into()
                }
                (kind, _) => format!("the client sent {kind:?} out of turn"),
            };
            return Err(ProtocolError::new(Refusal::Order, what));
        }
        Ok(frame)
    }

    /// Checks that the client may close the connection now, with `unread_bytes` of a frame unread.
    ///
    /// # Errors
    /// If there was no hello, or a message is incomplete.
    pub fn check_end(&self, unread_bytes: usize) -> Result<()> {
        if unread_bytes == 0 && self.state != State::AwaitingHello {
            return Ok(());
        }
        Err(ProtocolError::new(
            Refusal::Cut,
            "the client closed the connection within a message or before hello",
        ))
    }

    /// Decodes the payload of a frame.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn message(&mut self, frame: Frame, payload: &[u8]) -> Result<ClientEvent> {
        match frame.kind {
            Kind::Hello => {
                let hello = Hello::decode(payload)?;
                self.state = State::Greeted;
                self.version = VERSION.min(hello.version_max);
                self.source.clone_from(&hello.source);
                Ok(ClientEvent::Hello(hello))
            }
            Kind::Query => {
                self.check_statement(payload)?;
                let query = Query::decode(payload)?;
                for (asks, since, for_what) in [
                    (query.layout != RowLayout::Chunks, PAGES_SINCE, "pages"),
                    (query.estimate, ESTIMATES_SINCE, "a question for an estimate"),
                    (query.unfit != Unfit::Error, UNFIT_SINCE, "unfit values"),
                ] {
                    if asks && self.version < since {
                        let what =
                            format!("{for_what}, in version {} of the protocol", self.version);
                        return Err(ProtocolError::new(Refusal::Order, what));
                    }
                }
                self.begin(query.statement, payload);
                Ok(ClientEvent::Query(query))
            }
            Kind::Plan => {
                self.check_statement(payload)?;
                let request = PlanRequest::decode(payload)?;
                self.begin(request.statement, payload);
                Ok(ClientEvent::Plan(request))
            }
            Kind::Part => {
                self.check_statement(payload)?;
                let request = PartRequest::decode(payload)?;
                self.begin(request.query.statement, payload);
                Ok(ClientEvent::Part(request))
            }
            Kind::Cancel => {
                let cancel = Cancel::decode(payload)?;
                if cancel.statement == 0 {
                    return Err(ProtocolError::new(Refusal::Order, "a cancel of statement 0"));
                }
                let running = self.state == State::Running && cancel.statement == self.statement;
                Ok(if running { ClientEvent::Cancel } else { ClientEvent::Ignored })
            }
            Kind::Share => Ok(ClientEvent::Share(ShareRequest::decode(payload)?)),
            Kind::Release if payload.is_empty() => Ok(ClientEvent::Release),
            Kind::Goodbye if payload.is_empty() => {
                self.state = State::Closed;
                Ok(ClientEvent::Goodbye)
            }
            kind @ (Kind::Goodbye | Kind::Release) => {
                let what = format!("a {kind:?} message has no fields");
                Err(ProtocolError::new(Refusal::Payload, what))
            }
            kind => Err(ProtocolError::new(Refusal::Kind, format!("the client sent {kind:?}"))),
        }
    }

    /// Checks the number with which each statement begins.
    fn check_statement(&self, payload: &[u8]) -> Result<()> {
        let Some(raw) = payload.first_chunk() else { return Ok(()) };
        let (statement, last) = (u32::from_le_bytes(*raw), self.statement);
        if statement > last {
            return Ok(());
        }
        let what = format!("statement {statement}, expected a number above {last}");
        Err(ProtocolError::new(Refusal::Order, what))
    }

    fn begin(&mut self, statement: u32, payload: &[u8]) {
        (self.statement, self.query) = (statement, crc32c(0, payload));
        self.state = State::Running;
        (self.chunks, self.states, self.rows, self.digest) = (0, 0, 0, 0);
    }

    /// Appends the answer to a hello. `dialect` names whose SQL the connection takes; empty for the
    /// server's own.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn welcome(
        &mut self,
        server: &str,
        instance: Instance,
        dialect: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let welcome = Welcome {
            version: self.version,
            server: server.to_owned(),
            instance,
            source: self.source.clone(),
            dialect: dialect.to_owned(),
        };
        welcome.encode(out)?;
        self.state = State::Ready;
        Ok(())
    }

    /// Appends the start of a result, and fills in the query's checksum.
    ///
    /// # Errors
    /// If the schema is too large for a message.
    pub fn started(&mut self, started: &Started, out: &mut Vec<u8>) -> Result<()> {
        self.append(&Started { query: self.query, ..started.clone() }, out)
    }

    /// Appends a plan, which ends its statement, and fills in the statement's number and checksum.
    ///
    /// # Errors
    /// If the plan is too large for a message. `out` is then unchanged.
    pub fn planned(&mut self, planned: Planned, out: &mut Vec<u8>) -> Result<()> {
        let (statement, query) = (self.statement, self.query);
        Planned { statement, query, ..planned }.encode(out)?;
        self.state = State::Ready;
        Ok(())
    }

    /// Numbers a chunk, and appends its state frame, if it has one, and the headers of its frame
    /// and of the chunk. Returns the parts that must follow.
    ///
    /// # Errors
    /// If the chunk is too large for a frame.
    pub fn chunk(&mut self, mut chunk: Chunk, out: &mut Vec<u8>) -> Result<Vec<Bytes>> {
        if let Some(state) = chunk.take_state() {
            self.state(state, out)?;
        }
        let Ok(payload_bytes) = u32::try_from(chunk.chunk_bytes()) else {
            let what = format!("a chunk of {} bytes is too large", chunk.chunk_bytes());
            return Err(ProtocolError::new(Refusal::Frame, what));
        };
        let rows = chunk.rows();
        let (header, parts): ([u8; HEADER_BYTES], _) = chunk.numbered(self.chunks, self.states);
        self.begin_rows(Frame { kind: Kind::Chunk, payload_bytes }, rows, &header, out);
        Ok(parts)
    }

    /// Numbers a page, and appends the headers of its frame and of the page. Returns the parts that
    /// must follow.
    ///
    /// # Errors
    /// If the page is too large for a frame.
    pub fn page(&mut self, page: PackedPage, out: &mut Vec<u8>) -> Result<[Bytes; 2]> {
        let Ok(payload_bytes) = u32::try_from(page.packed_bytes()) else {
            let what = format!("a page of {} bytes is too large", page.packed_bytes());
            return Err(ProtocolError::new(Refusal::Frame, what));
        };
        let objects = page.objects();
        let (header, parts) = page.numbered(self.chunks);
        self.begin_rows(Frame { kind: Kind::Page, payload_bytes }, objects, &header, out);
        Ok(parts)
    }

    /// Appends the headers of a chunk or a page, and counts it.
    fn begin_rows(&mut self, frame: Frame, rows: u32, header: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&frame.encode());
        out.extend_from_slice(header);
        self.chunks += 1;
        self.rows += u64::from(rows);
        self.digest = crc32c(self.digest, header);
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

    /// Appends the statement's progress.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn progress(&mut self, rows_read: u64, out: &mut Vec<u8>) -> Result<()> {
        self.append(&Progress { statement: self.statement, rows_read, rows_sent: self.rows }, out)
    }

    /// Appends the transfer's statistics.
    ///
    /// # Errors
    /// If the report is too large for a message. `out` is then unchanged.
    pub fn report(&mut self, report: Report, out: &mut Vec<u8>) -> Result<()> {
        self.append(&Report { statement: self.statement, ..report }, out)
    }

    /// Appends how the source is read, with a long text truncated; nothing if the client's version
    /// has no such message.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn path(&mut self, path: &str, out: &mut Vec<u8>) -> Result<()> {
        if self.version < PATHS_SINCE {
            return Ok(());
        }
        self.append(&SourcePath { statement: self.statement, path: path.to_owned() }, out)
    }

    /// Appends the trailer, and fills in the counts and the digest.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn finished(&mut self, times: Finished, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Ready;
        let (statement, rows, chunks) = (self.statement, self.rows, self.chunks);
        self.append(&Finished { statement, rows, chunks, digest: 0, ..times }, out)?;
        // The digest is the last field, and covers the fields before it.
        let at = out.len() - DIGEST_BYTES;
        out[at..].copy_from_slice(&self.digest.to_le_bytes());
        Ok(())
    }

    /// Appends a message of the running statement, and adds it to the digest.
    fn append<M: Message>(&mut self, message: &M, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        message.encode(out)?;
        self.digest = crc32c(self.digest, M::digested(&out[start + FRAME_HEADER_BYTES..]));
        Ok(())
    }

    /// Appends an error that ends the statement, with long texts truncated. The connection stays.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn failed(&mut self, error: Error, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Ready;
        Error { statement: self.statement, ..error }.encode(out)
    }

    /// Appends an error that ends the connection, with long texts truncated.
    ///
    /// # Errors
    /// Never: the message always fits in a frame.
    pub fn closed(&mut self, error: Error, out: &mut Vec<u8>) -> Result<()> {
        self.state = State::Closed;
        Error { statement: 0, ..error }.encode(out)
    }
}
