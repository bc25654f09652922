//! A connection: the greeting, queries, and the bytes in between.

use std::borrow::BorrowMut;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use bytes::Bytes;
use dray_format::arrow::{StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{Compression, HEADER_BYTES, Header, Limits, write};
use dray_wire::{Checksums, ClientSession, CompressionChoice, FRAME_HEADER_BYTES, Kind, Query, ServerEvent, Welcome};

use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;
use crate::results::{Progress, Results};
use crate::transport::{Transport, is_timeout};
use crate::uri::Uri;

/// Small messages and the heads of chunks are read through a buffer of this size.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// How to connect. Options that a uri carries after its `?` come first.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The server's token; the uri's own comes first, the variable `DRAY_TOKEN` last.
    pub token: Option<String>,
    /// A PEM file with the authority of the server's certificate, instead of the system's.
    pub ca: Option<PathBuf>,
    /// How long to wait for the connection and the server's greeting.
    pub timeout: Duration,
    /// What the server's log calls this client.
    pub client: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let client = concat!("dray-client ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { token: None, ca: None, timeout: Duration::from_secs(10), client }
    }
}

/// How a query's result travels and what it becomes.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The values of `$1, $2 …`: a batch of one row.
    pub parameters: Option<RecordBatch>,
    /// The largest chunks to accept.
    pub limits: Limits,
    /// Batches hold at least this many rows, but for the last one.
    pub batch_rows: usize,
    /// How chunks are compressed.
    pub compression: CompressionChoice,
    /// Whether they carry checksums.
    pub checksums: Checksums,
    /// How strings are held.
    pub strings: StringLayout,
    /// Plan, but don't run: the result has an estimate and no rows.
    pub plan_only: bool,
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            parameters: None,
            limits: Limits::default(),
            batch_rows: 65_536,
            compression: CompressionChoice::Auto,
            checksums: Checksums::Auto,
            strings: StringLayout::default(),
            plan_only: false,
        }
    }
}

/// Looks at a statement's progress now and then, at least every 50 ms or so; false cancels the statement.
pub type Watch = Box<dyn FnMut(&Progress) -> bool + Send>;

/// A connection to a server. It runs one statement at a time.
#[derive(Debug)]
pub struct Connection {
    transport: Transport,
    session: ClientSession,
    buffer: Vec<u8>,
    /// The part of the buffer that has been read.
    consumed: usize,
    server: String,
    connect_time: Duration,
    /// The connection broke, or its protocol did.
    broken: bool,
}

/// What the server sent next.
pub(crate) enum Received {
    Event(ServerEvent),
    Chunk { header: Header, descriptors: Vec<u8>, body: Bytes },
}

impl Connection {
    /// Connects to the server at `uri`.
    ///
    /// # Errors
    /// When the uri is not one, nobody answers there, or the server refuses.
    pub fn connect(uri: &str, options: &ConnectOptions) -> Result<Self> {
        let started = Instant::now();
        let uri: Uri = uri.parse()?;
        let mut options = options.clone();
        for (key, value) in &uri.options {
            match key.as_str() {
                "token" => options.token = Some(value.clone()),
                "ca" => options.ca = Some(value.into()),
                _ => {
                    let what = format!("unknown option {key:?} in the uri");
                    return Err(Error::usage(what).hint("token and ca are known"));
                }
            }
        }
        let token =
            uri.token.clone().or(options.token).or_else(|| std::env::var("DRAY_TOKEN").ok()).unwrap_or_default();
        let mut connection = Self {
            transport: Transport::connect(&uri, options.timeout, options.ca.as_deref())?,
            session: ClientSession::default(),
            buffer: Vec::with_capacity(READ_BUFFER_BYTES),
            consumed: 0,
            server: String::new(),
            connect_time: Duration::ZERO,
            broken: false,
        };
        let mut hello = Vec::new();
        connection.session.hello(&token, &options.client, &mut hello)?;
        connection.send(&hello)?;
        let deadline = started + options.timeout;
        let mut patient = || match Instant::now() < deadline {
            true => Ok(()),
            false => {
                let what = format!("{uri} did not greet within {:?}", options.timeout);
                Err(Error::new(ErrorKind::Connection, what)
                    .hint("is a dray server there, and TLS the same at both ends?"))
            }
        };
        match connection.receive(&mut Arena::default(), &mut patient)? {
            Received::Event(ServerEvent::Welcome(Welcome { server, .. })) => connection.server = server,
            Received::Event(ServerEvent::Error(error)) => return Err(error.into()),
            _ => return Err(Error::new(ErrorKind::Protocol, format!("{uri} did not answer the greeting"))),
        }
        connection.connect_time = started.elapsed();
        Ok(connection)
    }

    /// The server's name and version.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// How long connecting took.
    pub fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// Whether another query can be sent.
    pub fn is_usable(&self) -> bool {
        !self.broken && self.session.is_ready()
    }

    /// Runs a statement. Its result borrows the connection until it is read to the end or dropped, which cancels it.
    ///
    /// # Errors
    /// When the statement does not plan, or the connection breaks.
    pub fn query(&mut self, sql: &str, options: &QueryOptions) -> Result<Results<&mut Self>> {
        Results::start(self, sql, options, None)
    }

    /// As [`Connection::query`], for a result that owns the connection or shares it in its own way, and is watched.
    ///
    /// # Errors
    /// As there.
    pub fn query_with<C: BorrowMut<Self>>(
        connection: C,
        sql: &str,
        options: &QueryOptions,
        watch: Option<Watch>,
    ) -> Result<Results<C>> {
        Results::start(connection, sql, options, watch)
    }

    /// Sends a query; the server's answer is read with [`Self::receive`].
    pub(crate) fn send_query(&mut self, sql: &str, options: &QueryOptions) -> Result<()> {
        if self.broken {
            return Err(Error::usage("the connection is broken; connect again"));
        }
        let query = Query {
            statement: 1,
            sql: sql.to_owned(),
            parameters: encode_parameters(options.parameters.as_ref())?,
            limits: options.limits,
            chunk_rows: u32::try_from(options.batch_rows).unwrap_or(u32::MAX),
            compression: options.compression,
            checksums: options.checksums,
            plan_only: options.plan_only,
        };
        let mut out = Vec::new();
        self.session.query(query, &mut out).map_err(|cause| Error::usage(cause.to_string()))?;
        self.send(&out)
    }

    /// Asks the server to stop the running statement.
    pub(crate) fn send_cancel(&mut self) -> Result<()> {
        let mut out = Vec::new();
        self.session.cancel(&mut out)?;
        self.send(&out)
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.broken && self.session.is_running()
    }

    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let sent = self.transport.write_all(message).and_then(|()| self.transport.flush());
        sent.map_err(|cause| {
            self.broken = true;
            Error::new(ErrorKind::Connection, "the connection to the server broke").cause(cause)
        })
    }

    /// Waits for what the server sends next. `patient` is asked now and then whether to go on.
    pub(crate) fn receive(&mut self, arena: &mut Arena, patient: &mut dyn FnMut() -> Result<()>) -> Result<Received> {
        self.receive_next(arena, patient).inspect_err(|_| self.broken = true)
    }

    fn receive_next(&mut self, arena: &mut Arena, patient: &mut dyn FnMut() -> Result<()>) -> Result<Received> {
        let mut raw = [0; FRAME_HEADER_BYTES];
        self.read_exact(&mut raw, patient)?;
        let frame = self.session.frame(&raw)?;
        if frame.kind != Kind::Chunk {
            // The session has bounded the payload.
            let mut payload = vec![0; frame.payload_bytes as usize];
            self.read_exact(&mut payload, patient)?;
            return Ok(Received::Event(self.session.message(frame, &payload)?));
        }
        let mut raw = [0; HEADER_BYTES];
        self.read_exact(&mut raw, patient)?;
        let header = self.session.chunk(frame, &raw)?;
        // Both sizes are within the query's limits: the session has held the header against them.
        let mut descriptors = vec![0; usize::try_from(header.descriptor_bytes_padded()).unwrap_or(usize::MAX)];
        self.read_exact(&mut descriptors, patient)?;
        let body = arena.receive(header.body_bytes as usize, |room| self.read_exact(room, patient))?;
        Ok(Received::Chunk { header, descriptors, body })
    }

    fn read_exact(&mut self, mut room: &mut [u8], patient: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        loop {
            let buffered = &self.buffer[self.consumed..];
            let count = buffered.len().min(room.len());
            let (head, rest) = room.split_at_mut(count);
            head.copy_from_slice(&buffered[..count]);
            self.consumed += count;
            room = rest;
            if room.is_empty() {
                return Ok(());
            }
            let read = if room.len() >= READ_BUFFER_BYTES {
                let read = self.transport.read(room);
                room = &mut room[*read.as_ref().unwrap_or(&0)..];
                read
            } else {
                self.consumed = 0;
                self.buffer.resize(READ_BUFFER_BYTES, 0);
                let read = self.transport.read(&mut self.buffer);
                self.buffer.truncate(*read.as_ref().unwrap_or(&0));
                read
            };
            match read {
                Ok(0) => {
                    let what = "the server closed the connection before the end";
                    return Err(
                        Error::new(ErrorKind::Connection, what).hint("what had arrived of a result is not whole")
                    );
                }
                Ok(_) => {}
                Err(cause) if is_timeout(&cause) => patient()?,
                Err(cause) => {
                    return Err(Error::new(ErrorKind::Connection, "the connection to the server broke").cause(cause));
                }
            }
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Self {
        Self::new(ErrorKind::Resources, "no memory to receive into").cause(cause)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_usable() {
            let mut out = Vec::new();
            self.session.goodbye(&mut out);
            // A courtesy; the server notices either way.
            let _ = self.send(&out);
        }
    }
}

fn encode_parameters(parameters: Option<&RecordBatch>) -> Result<Vec<u8>> {
    let Some(row) = parameters.filter(|row| row.num_columns() > 0) else { return Ok(Vec::new()) };
    if row.num_rows() != 1 {
        return Err(Error::usage(format!("{} rows of parameters, expected 1", row.num_rows())));
    }
    let schema = schema_from_arrow(&row.schema())?;
    let chunk = write(&schema, &[batch_from_arrow(row)?], Compression::None, false, false)?.to_bytes(0);
    Ok(Query::parameters_of(&schema, &chunk)?)
}
