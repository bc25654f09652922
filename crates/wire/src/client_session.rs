//! The client's side of a connection.

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{
    ErrorKind as FormatErrorKind, HEADER_BYTES, Header, Limits, StateHeader, Tables, crc32c,
};
use dray_page::{
    ErrorKind as PageErrorKind, HEADER_BYTES as PAGE_HEADER_BYTES, Header as PageHeader, PAGE_BYTES,
};

use crate::frame::{FRAME_HEADER_BYTES, Frame, HANDSHAKE_BYTES_MAX, Kind, MESSAGE_BYTES_MAX};
use crate::message::{
    Cancel, Checksums, Error, Finished, Hello, Message, PartRequest, PlanRequest, Planned,
    Progress, Query, Report, RowLayout, ShareRequest, SourcePath, Started, Unfit, Welcome,
    check_limits,
};
use crate::{
    ESTIMATES_SINCE, PAGES_SINCE, PATHS_SINCE, PLANS_SINCE, ProtocolError, Refusal, Result,
    SOURCES_SINCE, Secret, UNFIT_SINCE, VERSION, VERSION_MIN,
};

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// The connection is established.
    Welcome(Welcome),
    /// A result starts.
    Started(Started),
    /// The statement's progress.
    Progress(Progress),
    /// Statistics of the transfer.
    Report(Report),
    /// How the source is read.
    Path(SourcePath),
    /// A plan of parts.
    Planned(Planned),
    /// Dictionaries for later chunks, which [`ClientSession::tables`] returns.
    State(StateHeader),
    /// The result is complete, and all of it has arrived.
    Finished(Finished),
    /// The statement ended with an error, or the connection if the statement is 0.
    Error(Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    AwaitingWelcome,
    Ready,
    AwaitingStarted,
    AwaitingPlanned,
    Streaming,
    Closed,
}

/// The client's state of a connection: which messages may be sent and received next.
#[derive(Debug)]
pub struct ClientSession {
    state: State,
    /// The version that the connection uses.
    version: u16,
    /// The source of the hello.
    source: String,
    statement: u32,
    limits: Limits,
    expected: Expected,
    /// The number of columns of the result.
    columns: usize,
    /// Whether each of its chunks must have a checksum.
    checksums: bool,
    /// Chunks and pages.
    chunks: u64,
    rows: u64,
    digest: u32,
    /// The current dictionaries.
    tables: Arc<Tables>,
}

/// What the answer to the running statement must match.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    /// CRC-32C of the query's payload; 0 if the statement was sent by another protocol.
    query: u32,
    checksums: bool,
    plan_only: bool,
    layout: RowLayout,
}

impl Default for ClientSession {
    fn default() -> Self {
        Self {
            state: State::New,
            version: VERSION,
            source: String::new(),
            statement: 0,
            limits: Limits::default(),
            expected: Expected::default(),
            columns: 0,
            checksums: false,
            chunks: 0,
            rows: 0,
            digest: 0,
            tables: Arc::default(),
        }
    }
}

impl ClientSession {
    /// A session for a result within another protocol, starting with the started message
    /// (protocol.md section 10).
    pub fn of_copy(limits: Limits) -> Self {
        Self { state: State::AwaitingStarted, statement: 1, limits, ..Self::default() }
    }

    /// Whether a query may be sent.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether a statement is running.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::AwaitingStarted | State::AwaitingPlanned | State::Streaming)
    }

    /// The number of the last statement.
    pub fn statement(&self) -> u32 {
        self.statement
    }

    /// Appends a hello. `source` names the source that gets the statements; empty for the server's
    /// own tables.
    ///
    /// # Errors
    /// If the token is longer than a server accepts, or no source can have this name.
    pub fn hello(
        &mut self,
        token: &str,
        client: &str,
        source: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let hello = Hello {
            version_min: if source.is_empty() { VERSION_MIN } else { SOURCES_SINCE },
            version_max: VERSION,
            token: token.into(),
            client: client.to_owned(),
            source: source.to_owned(),
        };
        hello.encode(out)?;
        self.source = hello.source;
        self.state = State::AwaitingWelcome;
        Ok(())
    }

    /// Appends a query, and sets its statement number.
    ///
    /// # Errors
    /// If a statement is running, the connection is not ready, the query exceeds a limit, or it is
    /// for pages alone, or says what becomes of unfit values, and the server's version has none. A
    /// server without pages gets a query for chunks in place of one for either. One that knows no
    /// questions for estimates gets none.
    pub fn query(&mut self, mut query: Query, out: &mut Vec<u8>) -> Result<()> {
        if query.layout == RowLayout::Pages {
            self.check_version(PAGES_SINCE, "pages")?;
        }
        if query.unfit != Unfit::Error {
            self.check_version(UNFIT_SINCE, "values of nonfinite")?;
        }
        if self.version < PAGES_SINCE {
            query.layout = RowLayout::Chunks;
        }
        query.estimate &= self.version >= ESTIMATES_SINCE;
        self.send(query, |query| query, out)
    }

    /// Appends the request to read a part, and sets its statement number. The answer is that to a
    /// query.
    ///
    /// # Errors
    /// Those of [`ClientSession::query`], and if the server's version has no plans.
    pub fn part(&mut self, part: PartRequest, out: &mut Vec<u8>) -> Result<()> {
        self.check_version(PLANS_SINCE, "plans of partitions")?;
        self.send(part, |part| &mut part.query, out)
    }

    /// Appends the request for a plan, and sets its statement number.
    ///
    /// # Errors
    /// Those of [`ClientSession::part`].
    pub fn plan(&mut self, mut plan: PlanRequest, out: &mut Vec<u8>) -> Result<()> {
        self.check_version(PLANS_SINCE, "plans of partitions")?;
        plan.statement = self.next_statement()?;
        let start = out.len();
        plan.encode(out)?;
        let query = crc32c(0, &out[start + FRAME_HEADER_BYTES..]);
        self.expected = Expected { query, ..Expected::default() };
        self.statement = plan.statement;
        self.state = State::AwaitingPlanned;
        Ok(())
    }

    fn check_version(&self, needed: u16, for_what: &str) -> Result<()> {
        if self.state != State::Ready || self.version >= needed {
            return Ok(());
        }
        let what = format!(
            "the server speaks version {} of the protocol, and {for_what} need {needed}: update \
             the server",
            self.version
        );
        Err(ProtocolError::new(Refusal::Version, what))
    }

    /// The number of a statement that is sent now.
    fn next_statement(&self) -> Result<u32> {
        if self.state != State::Ready {
            let what = match self.is_running() {
                true => {
                    "a statement is still running on this connection; read its result to the end \
                     or cancel it"
                }
                false => "the connection is closed",
            };
            return Err(ProtocolError::new(Refusal::Order, what));
        }
        self.statement.checked_add(1).ok_or_else(|| {
            ProtocolError::new(Refusal::Order, "too many statements on one connection")
        })
    }

    /// Appends a message with a query, whose result starts next.
    fn send<M: Message>(
        &mut self,
        mut message: M,
        query: impl Fn(&mut M) -> &mut Query,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let statement = self.next_statement()?;
        check_limits(&query(&mut message).limits)?;
        query(&mut message).statement = statement;
        let start = out.len();
        message.encode(out)?;
        let query = query(&mut message);
        self.expected = Expected {
            query: crc32c(0, &out[start + FRAME_HEADER_BYTES..]),
            checksums: query.checksums == Checksums::On,
            plan_only: query.plan_only,
            layout: query.layout,
        };
        self.statement = query.statement;
        self.limits = query.limits;
        self.state = State::AwaitingStarted;
        (self.chunks, self.rows, self.digest) = (0, 0, 0);
        self.tables = Arc::default();
        Ok(())
    }

    /// Appends a request to stop the running statement, if there is one. The server still ends the
    /// statement with finished or an error.
    ///
    /// # Errors
    /// Never: a cancel always fits in a frame.
    pub fn cancel(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.is_running() { Cancel { statement: self.statement }.encode(out) } else { Ok(()) }
    }

    /// Appends a release of the plan of the connection's pass.
    ///
    /// # Errors
    /// If a statement is running, the connection is not ready, or the server's version has none.
    pub fn release(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.check_version(SOURCES_SINCE, "releases of plans")?;
        self.next_statement()?;
        out.extend_from_slice(&Frame { kind: Kind::Release, payload_bytes: 0 }.encode());
        Ok(())
    }

    /// Appends the pass of an earlier plan, whose snapshot the next plan is to have.
    ///
    /// # Errors
    /// If a statement is running, the connection is not ready, or the server's version has none.
    pub fn share(&mut self, pass: &Secret, out: &mut Vec<u8>) -> Result<()> {
        self.check_version(SOURCES_SINCE, "plans under one snapshot")?;
        self.next_statement()?;
        ShareRequest { pass: pass.clone() }.encode(out)
    }

    /// Appends a goodbye, which closes the session.
    pub fn goodbye(&mut self, out: &mut Vec<u8>) {
        self.state = State::Closed;
        out.extend_from_slice(&Frame { kind: Kind::Goodbye, payload_bytes: 0 }.encode());
    }

    /// Decodes a frame's header and checks it against the limits. For a chunk or a page, next read
    /// [`HEADER_BYTES`] bytes and pass them to [`Self::chunk`] or [`Self::page`]. For other frames,
    /// read the payload and pass it to [`Self::message`].
    ///
    /// # Errors
    /// If the frame is not allowed in the current state.
    pub fn frame(&self, bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Frame> {
        let frame = Frame::decode(bytes, &Kind::SERVER, |kind| match (self.state, kind) {
            (State::New | State::AwaitingWelcome, _) => HANDSHAKE_BYTES_MAX,
            (_, Kind::Chunk) => self.limits.row_bytes_max,
            (_, Kind::Page) => self.limits.row_bytes_max.max(PAGE_BYTES as u64),
            (_, Kind::State) => self.limits.chunk_bytes_max,
            _ => MESSAGE_BYTES_MAX,
        })?;
        let expected = match frame.kind {
            Kind::Welcome => self.state == State::AwaitingWelcome,
            Kind::Started => self.state == State::AwaitingStarted,
            Kind::Planned => self.state == State::AwaitingPlanned,
            Kind::Page => self.state == State::Streaming && self.version >= PAGES_SINCE,
            Kind::Path => self.state == State::Streaming && self.version >= PATHS_SINCE,
            Kind::Chunk | Kind::State | Kind::Progress | Kind::Report | Kind::Finished => {
                self.state == State::Streaming
            }
            Kind::Error => self.state != State::Closed,
            _ => false,
        };
        if !expected {
            return Err(ProtocolError::new(
                Refusal::Order,
                format!("the server sent {:?} out of turn", frame.kind),
            ));
        }
        if frame.kind == Kind::Chunk && (frame.payload_bytes as usize) < HEADER_BYTES {
            let what =
                format!("a chunk of {} bytes is shorter than its header", frame.payload_bytes);
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Size), what));
        }
        if frame.kind == Kind::Page && (frame.payload_bytes as usize) < PAGE_HEADER_BYTES {
            let what =
                format!("a page of {} bytes is shorter than its header", frame.payload_bytes);
            return Err(ProtocolError::new(Refusal::Page(PageErrorKind::Size), what));
        }
        Ok(frame)
    }

    /// Checks that the server may close the connection now, with `unread_bytes` of a frame unread.
    ///
    /// # Errors
    /// If an answer is missing or incomplete.
    pub fn check_end(&self, unread_bytes: usize) -> Result<()> {
        if unread_bytes == 0 && matches!(self.state, State::Ready | State::Closed) {
            return Ok(());
        }
        Err(ProtocolError::new(Refusal::Cut, "the server closed the connection before the end"))
    }

    /// Decodes the header of a chunk that fills `frame`, and checks it against the query's limits.
    ///
    /// # Errors
    /// If the header is invalid, or the chunk is out of sequence.
    pub fn chunk(&mut self, frame: Frame, bytes: &[u8; HEADER_BYTES]) -> Result<Header> {
        self.check_expected("a chunk", self.expected.layout.allows_chunks())?;
        let header = Header::decode(bytes, &self.limits)?;
        self.check_checksum(header.checksum.is_some())?;
        self.check_sequence("chunk", header.sequence)?;
        if header.chunk_bytes() != u64::from(frame.payload_bytes) {
            let what = format!(
                "a chunk of {} bytes in a frame of {}",
                header.chunk_bytes(),
                frame.payload_bytes
            );
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Size), what));
        }
        self.count(header.rows, bytes);
        Ok(header)
    }

    /// Decodes the header of a page that fills `frame`. Its size tells how much memory the page
    /// takes, which is at most a standard page more than the limit of a row.
    ///
    /// # Errors
    /// If the header is invalid, the page was not asked for, has a size that is not sent, or is out
    /// of sequence.
    pub fn page(&mut self, frame: Frame, bytes: &[u8; PAGE_HEADER_BYTES]) -> Result<PageHeader> {
        self.check_expected("a page", self.expected.layout.allows_pages())?;
        let header = PageHeader::decode(bytes)?;
        if !header.has_travelling_size() || header.packed_bytes() != u64::from(frame.payload_bytes)
        {
            let what = format!(
                "a page of {} bytes, of which {} travel, in a frame of {}",
                header.page_bytes,
                header.packed_bytes(),
                frame.payload_bytes
            );
            return Err(ProtocolError::new(Refusal::Page(PageErrorKind::Size), what));
        }
        self.check_checksum(header.checksum.is_some())?;
        self.check_sequence("page", header.sequence)?;
        self.count(header.objects, bytes);
        Ok(header)
    }

    fn check_expected(&self, what: &str, is_asked_for: bool) -> Result<()> {
        let why = match self.expected.plan_only {
            true => " of a statement that was to be planned only",
            false if !is_asked_for => ", which was not asked for",
            false => return Ok(()),
        };
        Err(ProtocolError::new(Refusal::Query, format!("the server sent {what}{why}")))
    }

    fn check_sequence(&self, what: &str, sequence: u64) -> Result<()> {
        if sequence == self.chunks {
            return Ok(());
        }
        let what = format!("{what} {sequence}, expected {}", self.chunks);
        Err(ProtocolError::new(Refusal::Sequence, what))
    }

    /// Counts a chunk or a page with this header.
    fn count(&mut self, rows: u32, header: &[u8]) {
        self.chunks += 1;
        self.rows = self.rows.saturating_add(rows.into());
        self.digest = crc32c(self.digest, header);
    }

    /// The current dictionaries, with which the chunk whose header was decoded last must be
    /// decoded.
    pub fn tables(&self) -> Arc<Tables> {
        self.tables.clone()
    }

    /// Decodes a state frame that fills a frame.
    fn state(&mut self, payload: &[u8]) -> Result<StateHeader> {
        let Some((raw, rest)) = payload.split_first_chunk::<HEADER_BYTES>() else {
            let what =
                format!("a state frame of {} bytes is shorter than its header", payload.len());
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Size), what));
        };
        let header = StateHeader::decode(raw, &self.limits)?;
        self.check_checksum(header.has_checksum())?;
        if header.sequence() != u64::from(self.tables.frames()) {
            let what =
                format!("state frame {}, expected {}", header.sequence(), self.tables.frames());
            return Err(ProtocolError::new(Refusal::Sequence, what));
        }
        if header.frame_bytes() != payload.len() as u64 {
            let what = format!(
                "a state frame of {} bytes in a frame of {}",
                header.frame_bytes(),
                payload.len()
            );
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Size), what));
        }
        // The check of the size proves that both parts are within the payload.
        debug_assert!(header.body_bytes() as usize <= rest.len());
        let (descriptors, body) = rest.split_at(rest.len() - header.body_bytes() as usize);
        let tables = Arc::make_mut(&mut self.tables);
        tables.receive(&header, descriptors, &Bytes::copy_from_slice(body), &self.limits)?;
        self.digest = crc32c(self.digest, raw);
        Ok(header)
    }

    /// Decodes the payload of a frame that is not a chunk.
    ///
    /// # Errors
    /// If the payload is invalid, or a trailer does not match the chunks that arrived.
    pub fn message(&mut self, frame: Frame, payload: &[u8]) -> Result<ServerEvent> {
        if !matches!(frame.kind, Kind::Welcome | Kind::State) {
            self.check_statement(frame.kind, payload)?;
        }
        match frame.kind {
            Kind::Welcome => {
                let welcome = Welcome::decode(payload)?;
                if welcome.source != self.source {
                    let what = "the server welcomes to another source than the one asked for";
                    return Err(ProtocolError::new(Refusal::Query, what));
                }
                (self.state, self.version) = (State::Ready, welcome.version);
                Ok(ServerEvent::Welcome(welcome))
            }
            Kind::Started => {
                let started = Started::decode(payload)?;
                self.check_query(started.query)?;
                self.check_started(&started)?;
                self.state = State::Streaming;
                self.columns = started.schema.fields.len();
                self.checksums = started.checksums;
                self.digest = crc32c(0, payload);
                Ok(ServerEvent::Started(started))
            }
            Kind::Planned => {
                let planned = Planned::decode(payload)?;
                Planned::check_digest(payload)?;
                self.check_query(planned.query)?;
                self.state = State::Ready;
                Ok(ServerEvent::Planned(planned))
            }
            Kind::State => self.state(payload).map(ServerEvent::State),
            Kind::Progress => {
                self.digest = crc32c(self.digest, payload);
                Progress::decode(payload).map(ServerEvent::Progress)
            }
            Kind::Report => {
                self.digest = crc32c(self.digest, payload);
                let report = Report::decode(payload)?;
                if report.columns.len() != self.columns {
                    let what = format!(
                        "a report of {} columns, expected {}",
                        report.columns.len(),
                        self.columns
                    );
                    return Err(ProtocolError::new(Refusal::Payload, what));
                }
                Ok(ServerEvent::Report(report))
            }
            Kind::Path => {
                self.digest = crc32c(self.digest, payload);
                SourcePath::decode(payload).map(ServerEvent::Path)
            }
            Kind::Finished => {
                let finished = Finished::decode(payload)?;
                self.digest = crc32c(self.digest, Finished::digested(payload));
                if finished.planned_only != self.expected.plan_only {
                    let what = match self.expected.plan_only {
                        true => "the statement was to be planned only, but the server ran it",
                        false => "the server planned the statement, but did not run it",
                    };
                    return Err(ProtocolError::new(Refusal::Query, what));
                }
                if (finished.rows, finished.chunks, finished.digest)
                    != (self.rows, self.chunks, self.digest)
                {
                    let what = format!(
                        "the result is incomplete: {} rows in {} chunks arrived, the server sent \
                         {} in {}",
                        self.rows, self.chunks, finished.rows, finished.chunks
                    );
                    return Err(ProtocolError::new(Refusal::Finished, what));
                }
                self.state = State::Ready;
                Ok(ServerEvent::Finished(finished))
            }
            Kind::Error => {
                let error = Error::decode(payload)?;
                self.state = if error.statement == 0 { State::Closed } else { State::Ready };
                Ok(ServerEvent::Error(error))
            }
            kind => Err(ProtocolError::new(Refusal::Kind, format!("the server sent {kind:?}"))),
        }
    }

    /// Checks that an answer belongs to the query that was sent.
    fn check_query(&self, received: u32) -> Result<()> {
        let sent = self.expected.query;
        if received == sent {
            return Ok(());
        }
        let what = format!(
            "the server answered a different query: its checksum is {received:08x}, that of the \
             query is {sent:08x}; run it again"
        );
        Err(ProtocolError::new(Refusal::Query, what))
    }

    /// Checks that a result is sent as the query asks.
    fn check_started(&self, started: &Started) -> Result<()> {
        if self.expected.checksums && !started.checksums {
            return Err(ProtocolError::new(
                Refusal::Query,
                "checksums were asked for, and the server sends none",
            ));
        }
        Ok(())
    }

    fn check_checksum(&self, has_checksum: bool) -> Result<()> {
        if self.checksums && !has_checksum {
            let what = "a chunk, page or state frame without the checksum that was announced";
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Checksum), what));
        }
        Ok(())
    }

    /// Checks the statement number with which each answer begins. 0 in an error means the
    /// connection.
    fn check_statement(&self, kind: Kind, payload: &[u8]) -> Result<()> {
        let Some(raw) = payload.first_chunk() else { return Ok(()) };
        let statement = u32::from_le_bytes(*raw);
        let of_connection = kind == Kind::Error && statement == 0;
        if of_connection || self.is_running() && statement == self.statement {
            return Ok(());
        }
        let what =
            format!("the server sent {kind:?} for statement {statement}, which does not run");
        Err(ProtocolError::new(Refusal::Order, what))
    }
}
