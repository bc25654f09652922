//! A Dray server: connecting, queries, and the frames of results.

mod greeting;
#[cfg(target_os = "linux")]
mod peer;
mod plan;
mod transport;
mod uri;

use std::io::{self, Read};
use std::time::Instant;

use arrow::array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Checksum, ChunkKind, Compression, write};
use dray_net::{Wait, is_timeout, write_all};
use dray_pgtypes::NonFinite;
use dray_wire::partition::PartDescriptor;
use dray_wire::{
    ClientSession, PASS_PREFIX, PartRequest, Query, RowLayout, Secret, ServerEvent, Unfit,
};

use self::greeting::Greeting;
use self::transport::Transport;
pub use self::uri::Uri;
use super::frames::{DecoderCache, Frame, FrameEvents, read_frame};
use super::{Event, PlannedParts, ReceiveContext, Source, SourceKind, StopDeadline, cancelled};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Arena;
use crate::options::{ConnectOptions, PostgresOptions, QueryOptions};
use crate::partition::PlanOptions;
use crate::stats::{PathKind, TransferPath};
use crate::watch::{CancelCheck, Verdict};

/// The buffer that small messages and the headers of chunks are read through.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// Called while the socket is silent; an error ends the wait.
type SocketCheck<'a> = &'a mut dyn FnMut() -> Result<()>;

/// A connection to a Dray server.
#[derive(Debug)]
pub(crate) struct DraySource {
    transport: Transport,
    session: ClientSession,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were used.
    consumed: usize,
    server: String,
    /// The kind of database that the server passes statements on to; None if it runs them itself.
    dialect: Option<SourceKind>,
    /// Whether it passes statements on.
    is_relayed: bool,
    place: String,
    /// The server's address for readers of parts.
    shared_uri: String,
    /// The options of the connection, without a token.
    options: ConnectOptions,
    /// Lets the next statement be the part that it is for.
    ticket: Option<Vec<u8>>,
    /// How the server has read its source for the last statement, if it said so.
    source_path: Option<String>,
    /// The connection broke, or the server broke the protocol.
    broken: bool,
    /// Of the running statement.
    events: FrameEvents,
    decoders: DecoderCache,
}

impl DraySource {
    /// Connects to the server at `uri`, while `keep_waiting` returns true.
    ///
    /// # Errors
    /// When the uri is malformed, nobody answers there, or the server refuses.
    pub(crate) fn connect(
        uri: &str,
        options: &ConnectOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let started = Instant::now();
        let uri: Uri = uri.parse()?;
        let mut options = options.clone();
        for (key, value) in &uri.options {
            match key.as_str() {
                "token" => options.token = Some(value.as_str().into()),
                "read_timeout" => options.read_timeout = uri.read_timeout()?,
                "plain_token" => options.plain_token = boolean(key, value)?,
                "local_socket" => options.local_socket = boolean(key, value)?,
                "ca" => options.ca = Some(value.into()),
                // Parsing the uri has refused unknown options.
                _ => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "an option of the uri is not handled",
                    ));
                }
            }
        }
        let from_environment = || std::env::var("DRAY_TOKEN").ok().map(Secret::from);
        let token = uri
            .token
            .clone()
            .or(options.token.take())
            .or_else(from_environment)
            .unwrap_or_default();
        let mut wait = Wait::new(started + options.timeout, keep_waiting);
        let transport =
            Transport::connect(&uri, options.ca.as_deref(), options.read_timeout, &mut wait)?;
        // A pass opens nothing but rows that travel over the same line.
        let is_pass = token.reveal().starts_with(PASS_PREFIX);
        if !token.is_empty() && !is_pass && !options.plain_token && !transport.is_private() {
            let what = format!("the token would travel to {uri} as plain text");
            return Err(Error::usage(what).with_hint(
                "use drays:// with a server that has a certificate, or plain_token=true in a \
                 trusted network",
            ));
        }
        // A parsed uri is printed without its token.
        let (place, shared_uri) = (uri.to_string(), uri.shared(options.local_socket));
        let source = uri.source.clone().unwrap_or_default();
        Greeting { token, source, options: &options, place, shared_uri }.greet(transport, &mut wait)
    }

    fn send_cancel(&mut self, check: SocketCheck<'_>) -> Result<()> {
        let mut out = Vec::new();
        self.session.cancel(&mut out)?;
        self.send(&out, check)
    }

    fn send(&mut self, message: &[u8], check: SocketCheck<'_>) -> Result<()> {
        // Half a message may be on its way.
        write_all(&mut self.transport, message, broke, check).inspect_err(|_| self.broken = true)
    }

    /// Why the server closed the connection, if it said so while nobody listened.
    fn last_words(&mut self) -> Option<Error> {
        let mut waits = 0;
        let mut gone = || {
            // The first read may pause for the check alone.
            waits += 1;
            match waits {
                1 => Ok(()),
                _ => Err(Error::new(ErrorKind::Connection, "the server is gone")),
            }
        };
        match self.read_frame(&mut Arena::default(), &mut gone) {
            Ok(Frame::Message(ServerEvent::Error(error))) => Some(error.into()),
            _ => None,
        }
    }

    /// Waits until the next frame begins to arrive. Nothing is lost when the check ends the wait.
    fn await_frame(&mut self, check: SocketCheck<'_>) -> Result<()> {
        while self.consumed == self.buffer.len() {
            match self.fill_buffer() {
                Ok(_) => {}
                Err(cause) if is_timeout(&cause) => check()?,
                Err(cause) => {
                    self.broken = true;
                    return Err(broke(cause));
                }
            }
        }
        Ok(())
    }

    fn fill_buffer(&mut self) -> io::Result<usize> {
        self.consumed = 0;
        self.buffer.resize(READ_BUFFER_BYTES, 0);
        let read = self.transport.read(&mut self.buffer).and_then(at_least_one);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read
    }

    fn read_frame(&mut self, memory: &mut Arena, check: SocketCheck<'_>) -> Result<Frame> {
        // The session is taken out while a frame is read, since reading borrows the rest of `self`.
        let mut session = std::mem::take(&mut self.session);
        let frame = read_frame(&mut session, memory, &mut |buffer| self.read_exact(buffer, check));
        self.session = session;
        frame.inspect_err(|_| self.broken = true)
    }

    fn read_exact(&mut self, mut to: &mut [u8], check: SocketCheck<'_>) -> Result<()> {
        loop {
            let buffered = &self.buffer[self.consumed..];
            let count = buffered.len().min(to.len());
            let (head, rest) = to.split_at_mut(count);
            head.copy_from_slice(&buffered[..count]);
            self.consumed += count;
            to = rest;
            if to.is_empty() {
                return Ok(());
            }
            debug_assert_eq!(self.consumed, self.buffer.len(), "the buffer is used up first");
            let read = if to.len() >= READ_BUFFER_BYTES {
                let read = self.transport.read(to).and_then(at_least_one);
                to = &mut to[*read.as_ref().unwrap_or(&0)..];
                read
            } else {
                self.fill_buffer()
            };
            match read {
                Ok(_) => {}
                Err(cause) if is_timeout(&cause) => check()?,
                Err(cause) => return Err(broke(cause)),
            }
        }
    }
}

impl Source for DraySource {
    fn server(&self) -> &str {
        &self.server
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Dray
    }

    fn dialect(&self) -> SourceKind {
        self.dialect.unwrap_or(SourceKind::Dray)
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn is_usable(&self) -> bool {
        !self.broken && self.session.is_ready()
    }

    fn is_running(&self) -> bool {
        !self.broken && self.session.is_running()
    }

    fn break_off(&mut self) {
        self.broken = true;
    }

    fn parameters_in(&self, sql: &str) -> usize {
        let count = match self.dialect {
            Some(SourceKind::Mysql) => dray_mysql::parameters_in(sql, true),
            // Most have `?`, and SQLite has both.
            Some(SourceKind::Other) => {
                dray_mysql::parameters_in(sql, false).max(dray_postgres::parameters_in(sql, false))
            }
            _ => dray_postgres::parameters_in(sql, false),
        };
        count.unwrap_or_default()
    }

    fn path(&self) -> TransferPath {
        let transport = self.transport.name();
        let reason = match &self.source_path {
            Some(path) => format!("{transport}; at the source, {path}"),
            None => transport.to_owned(),
        };
        TransferPath { kind: PathKind::Server, reason }
    }

    fn start(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        layout: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        // First, so that no other statement gets it.
        let ticket = self.ticket.take();
        self.source_path = None;
        if self.broken {
            return Err(Error::usage("the connection is broken; connect again"));
        }
        // What becomes of the values of a part is in its plan.
        let unfit = match (&ticket, self.dialect) {
            (None, Some(SourceKind::Postgres | SourceKind::Mysql)) => unfit(&options.postgres)?,
            _ => {
                check_options(&options.postgres)?;
                Unfit::Error
            }
        };
        let query = Query {
            statement: 1,
            sql: sql.to_owned(),
            parameters: encode_parameters(options.parameters.as_ref())?,
            limits: options.limits,
            chunk_rows: u32::try_from(options.batch_rows).unwrap_or(u32::MAX),
            compression: options.compression,
            checksums: options.checksums,
            plan_only: options.plan_only,
            layout,
            estimate: options.estimate && ticket.is_none(),
            unfit,
        };
        let mut out = Vec::new();
        let appended = match ticket {
            Some(ticket) => self.session.part(PartRequest { query, ticket }, &mut out),
            None => self.session.query(query, &mut out),
        };
        appended.map_err(|cause| Error::usage(cause.to_string()))?;
        self.events = FrameEvents::new(options.strings);
        let mut deadline = None;
        let sent = self.send(&out, &mut || finish_message(cancel(), &mut deadline));
        sent.map_err(|error| self.last_words().unwrap_or(error))
    }

    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        let began = Instant::now();
        loop {
            self.await_frame(&mut || match cancel() {
                Verdict::Continue => Ok(()),
                _ => Err(cancelled()),
            })?;
            // A cancel is sent between frames only, so this frame is read to its end.
            let mut deadline = None;
            let frame =
                self.read_frame(context.memory, &mut || finish_message(cancel(), &mut deadline))?;
            // The statement has failed, the connection has not.
            if let Frame::Message(ServerEvent::Error(error)) = frame {
                return Err(error.into());
            }
            if let Frame::Message(ServerEvent::Path(told)) = frame {
                self.source_path = Some(told.path);
                continue;
            }
            let event = self.events.event(frame, began.elapsed(), &mut self.decoders, context);
            if let Some(event) = event.inspect_err(|_| self.broken = true)? {
                return Ok(event);
            }
        }
    }

    fn plan_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        self.plan_statement(sql, query, plan, cancel)
    }

    fn begin_part(&mut self, part: &PartDescriptor, _: CancelCheck<'_>) -> Result<String> {
        self.open_part(part)
    }

    fn stop(&mut self, cancel: CancelCheck<'_>) {
        let deadline = StopDeadline::default();
        let mut memory = Arena::default();
        let mut check = || deadline.check(cancel());
        let mut drained = self.send_cancel(&mut check);
        while drained.is_ok() && self.is_running() {
            let frame = check().and_then(|()| self.read_frame(&mut memory, &mut check));
            drained = frame.map(|frame| self.give_up(&frame));
        }
        if drained.is_err() {
            self.break_off();
        }
    }
}

impl Drop for DraySource {
    fn drop(&mut self) {
        if self.is_usable() {
            let mut out = Vec::new();
            self.session.goodbye(&mut out);
            // A courtesy that nobody waits for: the server notices the end either way.
            let _ = self.send(&out, &mut || {
                Err(Error::new(ErrorKind::Connection, "the server takes nothing"))
            });
        }
    }
}

/// What becomes of a source's unfit values. Refuses the other options.
fn unfit(options: &PostgresOptions) -> Result<Unfit> {
    check_options(&PostgresOptions { nonfinite: NonFinite::Error, ..options.clone() })?;
    Ok(match options.nonfinite {
        NonFinite::Error => Unfit::Error,
        NonFinite::Null => Unfit::Null,
        NonFinite::Text => Unfit::Text,
    })
}

/// Refuses options that a Dray server would ignore.
fn check_options(options: &PostgresOptions) -> Result<()> {
    match *options == PostgresOptions::default() {
        true => Ok(()),
        false => Err(Error::usage(
            "extension, numeric, partitions, partition_by and ordered are for PostgreSQL and MySQL \
             themselves, and nonfinite for whole results of them; this is a Dray server",
        )),
    }
}

/// The value of an option of a uri.
fn boolean(key: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| {
        Error::usage(format!("the uri's option {key} is neither true nor false"))
            .with_hint(format!("{key}=true"))
    })
}

/// Whether to go on with a message that is half read or sent: also after a cancel, for
/// [`STOP_TIMEOUT`](super::STOP_TIMEOUT).
fn finish_message(verdict: Verdict, deadline: &mut Option<StopDeadline>) -> Result<()> {
    match verdict {
        Verdict::Continue => Ok(()),
        verdict => deadline.get_or_insert_default().check(verdict),
    }
}

fn broke(cause: io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => {
            let what = "the server closed the connection before the end";
            Error::new(ErrorKind::Connection, what)
                .with_hint("what had arrived of a result is not whole")
        }
        _ => Error::new(ErrorKind::Connection, "the connection to the server broke")
            .with_cause(cause),
    }
}

/// Reading no bytes is the end of the connection.
fn at_least_one(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

pub(super) fn encode_parameters(parameters: Option<&RecordBatch>) -> Result<Vec<u8>> {
    let Some(row) = parameters.filter(|row| row.num_columns() > 0) else { return Ok(Vec::new()) };
    if row.num_rows() != 1 {
        return Err(Error::usage(format!("{} rows of parameters, expected 1", row.num_rows())));
    }
    let schema = schema_from_arrow(&row.schema())?;
    let chunk = write(
        &schema,
        &[batch_from_arrow(row)?],
        Compression::None,
        Checksum::None,
        ChunkKind::Regular,
    )?
    .to_bytes(0);
    Ok(Query::parameters_of(&schema, &chunk)?)
}
