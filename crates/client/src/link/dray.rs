//! Dray's own protocol: the greeting, queries, and the bytes in between.

use std::io::{self, Read};
use std::time::Instant;

use arrow::array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Checksum, ChunkKind, Compression, write};
use dray_postgres::{Wait, is_timeout, parse_seconds, write_all};
use dray_wire::{ClientSession, Query, Secret, ServerEvent, Welcome};

use super::{Deadline, Link, Received, Route, Wanted, receive_frame};
use crate::connection::{ConnectOptions, PostgresOptions, QueryOptions, Wish};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;
use crate::transport::Transport;
use crate::uri::Uri;

/// Small messages and the heads of chunks are read through a buffer of this size.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// Asked whenever nothing moves; an error ends the wait.
type Patient<'a> = &'a mut dyn FnMut() -> Result<()>;

/// A connection to a Dray server.
#[derive(Debug)]
pub(crate) struct DrayLink {
    transport: Transport,
    session: ClientSession,
    buffer: Vec<u8>,
    /// The part of the buffer that has been read.
    consumed: usize,
    server: String,
    place: String,
    /// The connection broke, or its protocol did.
    broken: bool,
}

impl DrayLink {
    /// Connects to the server at `uri`.
    ///
    /// # Errors
    /// When the uri is not one, nobody answers there, or the server refuses.
    pub(crate) fn connect(
        uri: &str,
        options: &ConnectOptions,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let started = Instant::now();
        let uri: Uri = uri.parse()?;
        let mut options = options.clone();
        for (key, value) in &uri.options {
            match key.as_str() {
                "token" => options.token = Some(value.as_str().into()),
                "read_timeout" => {
                    let refused = || {
                        Error::usage("the uri's option read_timeout is no time")
                            .hint("expected seconds above 0")
                    };
                    options.read_timeout = Some(parse_seconds(value).ok_or_else(refused)?);
                }
                "plain_token" => {
                    options.plain_token = value.parse().map_err(|_| {
                        Error::usage("the uri's option plain_token is neither true nor false")
                            .hint("plain_token=true")
                    })?;
                }
                "ca" => options.ca = Some(value.into()),
                // The uri was parsed, so that only known ones are left.
                _ => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "an option of the uri was overlooked",
                    ));
                }
            }
        }
        let from_environment = || std::env::var("DRAY_TOKEN").ok().map(Secret::from);
        let token =
            uri.token.clone().or(options.token).or_else(from_environment).unwrap_or_default();
        let mut wait = Wait::new(started + options.timeout, wanted);
        let transport =
            Transport::connect(&uri, options.ca.as_deref(), options.read_timeout, &mut wait)?;
        if !token.is_empty() && !options.plain_token && !transport.is_private() {
            let what = format!("the token would travel to {uri} as plain text");
            return Err(Error::usage(what).hint(
                "use drays:// with a server that has a certificate, or say plain_token=true where the network is trusted",
            ));
        }
        let mut connection = Self {
            transport,
            session: ClientSession::default(),
            buffer: Vec::with_capacity(READ_BUFFER_BYTES),
            consumed: 0,
            server: String::new(),
            // Parsed, the uri does not show its token.
            place: uri.to_string(),
            broken: false,
        };
        let mut hello = Vec::new();
        connection.session.hello(token.reveal(), &options.client, &mut hello)?;
        let mut patient = || {
            wait.check().map_err(|_| {
                let what = format!("{uri} did not greet within {:?}", options.timeout);
                Error::new(ErrorKind::Connection, what)
                    .hint("is a dray server there, and TLS the same at both ends?")
            })
        };
        connection.send(&hello, &mut patient)?;
        match connection.receive_patiently(&mut Arena::default(), &mut patient)? {
            Received::Event(ServerEvent::Welcome(Welcome { server, .. })) => {
                connection.server = server
            }
            Received::Event(ServerEvent::Error(error)) => return Err(error.into()),
            _ => {
                return Err(Error::new(
                    ErrorKind::Protocol,
                    format!("{uri} did not answer the greeting"),
                ));
            }
        }
        Ok(connection)
    }

    fn send_cancel(&mut self, patient: Patient<'_>) -> Result<()> {
        let mut out = Vec::new();
        self.session.cancel(&mut out)?;
        self.send(&out, patient)
    }

    fn send(&mut self, message: &[u8], patient: Patient<'_>) -> Result<()> {
        // Half a message may be on its way.
        write_all(&mut self.transport, message, broke, patient).inspect_err(|_| self.broken = true)
    }

    /// Waits until something has come of the next frame. Nothing is lost when patience ends
    /// meanwhile.
    fn await_frame(&mut self, patient: Patient<'_>) -> Result<()> {
        while self.consumed == self.buffer.len() {
            match self.fill_buffer() {
                Ok(_) => {}
                Err(cause) if is_timeout(&cause) => patient()?,
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

    fn receive_patiently(&mut self, arena: &mut Arena, patient: Patient<'_>) -> Result<Received> {
        // The session is lent to the reading of a frame, which reads through the rest of this.
        let mut session = std::mem::take(&mut self.session);
        let received =
            receive_frame(&mut session, arena, &mut |room| self.read_exact(room, patient));
        self.session = session;
        received.inspect_err(|_| self.broken = true)
    }

    fn read_exact(&mut self, mut room: &mut [u8], patient: Patient<'_>) -> Result<()> {
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
                let read = self.transport.read(room).and_then(at_least_one);
                room = &mut room[*read.as_ref().unwrap_or(&0)..];
                read
            } else {
                self.fill_buffer()
            };
            match read {
                Ok(_) => {}
                Err(cause) if is_timeout(&cause) => patient()?,
                Err(cause) => return Err(broke(cause)),
            }
        }
    }
}

impl Link for DrayLink {
    fn server(&self) -> &str {
        &self.server
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

    fn route(&self) -> Route {
        Route::default()
    }

    fn send_query(&mut self, sql: &str, options: &QueryOptions, wanted: Wanted<'_>) -> Result<()> {
        if self.broken {
            return Err(Error::usage("the connection is broken; connect again"));
        }
        if options.postgres != PostgresOptions::default() {
            return Err(Error::usage(
                "extension, numeric, nonfinite, partitions and ordered are for PostgreSQL; this is a Dray server",
            ));
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
        let mut stop = None;
        self.send(&out, &mut || within(wanted(), &mut stop))
    }

    fn receive(&mut self, arena: &mut Arena, wanted: Wanted<'_>) -> Result<Received> {
        self.await_frame(&mut || match wanted() {
            Wish::Continue => Ok(()),
            _ => Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled")),
        })?;
        // A cancel is sent between frames only: here the frame is read on.
        let mut stop = None;
        self.receive_patiently(arena, &mut || within(wanted(), &mut stop))
    }

    fn stop(&mut self, arena: &mut Arena, wanted: Wanted<'_>) {
        let deadline = Deadline::default();
        let mut patient = || deadline.check(wanted());
        let mut drained = self.send_cancel(&mut patient);
        while drained.is_ok() && self.is_running() {
            drained =
                patient().and_then(|()| self.receive_patiently(arena, &mut patient).map(|_| ()));
        }
        if drained.is_err() {
            self.break_off();
        }
    }
}

impl Drop for DrayLink {
    fn drop(&mut self) {
        if self.is_usable() {
            let mut out = Vec::new();
            self.session.goodbye(&mut out);
            // A courtesy, which nobody waits for; the server notices either way.
            let _ = self.send(&out, &mut || {
                Err(Error::new(ErrorKind::Connection, "the server takes nothing"))
            });
        }
    }
}

/// Whether to go on with a message of which a part has been read or sent: for a while, even if it
/// is to be cancelled.
fn within(wish: Wish, stop: &mut Option<Deadline>) -> Result<()> {
    match wish {
        Wish::Continue => Ok(()),
        wish => stop.get_or_insert_default().check(wish),
    }
}

fn broke(cause: io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => {
            let what = "the server closed the connection before the end";
            Error::new(ErrorKind::Connection, what)
                .hint("what had arrived of a result is not whole")
        }
        _ => Error::new(ErrorKind::Connection, "the connection to the server broke").cause(cause),
    }
}

/// No bytes at all are the end of the connection.
fn at_least_one(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

fn encode_parameters(parameters: Option<&RecordBatch>) -> Result<Vec<u8>> {
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
