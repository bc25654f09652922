//! Dray's own protocol: the greeting, queries, and the bytes in between.

use std::io::{Read, Write};
use std::time::Instant;

use arrow::array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Compression, write};
use dray_wire::{ClientSession, Query, ServerEvent, Welcome};

use super::{Deadline, Link, Received, Route, Wanted, receive_frame};
use crate::connection::{ConnectOptions, PostgresOptions, QueryOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;
use crate::transport::{Transport, is_timeout};
use crate::uri::Uri;

/// Small messages and the heads of chunks are read through a buffer of this size.
const READ_BUFFER_BYTES: usize = 16 << 10;

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
    pub(crate) fn connect(uri: &str, options: &ConnectOptions) -> Result<Self> {
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
            // Parsed, the uri does not show its token.
            place: uri.to_string(),
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
        match connection.receive_patiently(&mut Arena::default(), &mut patient)? {
            Received::Event(ServerEvent::Welcome(Welcome { server, .. })) => connection.server = server,
            Received::Event(ServerEvent::Error(error)) => return Err(error.into()),
            _ => return Err(Error::new(ErrorKind::Protocol, format!("{uri} did not answer the greeting"))),
        }
        Ok(connection)
    }

    fn send_cancel(&mut self) -> Result<()> {
        let mut out = Vec::new();
        self.session.cancel(&mut out)?;
        self.send(&out)
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let sent = self.transport.write_all(message).and_then(|()| self.transport.flush());
        sent.map_err(|cause| {
            self.broken = true;
            Error::new(ErrorKind::Connection, "the connection to the server broke").cause(cause)
        })
    }

    fn receive_patiently(&mut self, arena: &mut Arena, patient: &mut dyn FnMut() -> Result<()>) -> Result<Received> {
        // The session is lent to the reading of a frame, which reads through the rest of this.
        let mut session = std::mem::take(&mut self.session);
        let received = receive_frame(&mut session, arena, &mut |room| self.read_exact(room, patient));
        self.session = session;
        received.inspect_err(|_| self.broken = true)
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

    fn send_query(&mut self, sql: &str, options: &QueryOptions, _wanted: Wanted<'_>) -> Result<()> {
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
        self.send(&out)
    }

    fn receive(&mut self, arena: &mut Arena, wanted: Wanted<'_>) -> Result<Received> {
        // A cancel is sent between frames only: here the frame is read on.
        let mut patient = || {
            wanted();
            Ok(())
        };
        self.receive_patiently(arena, &mut patient)
    }

    fn stop(&mut self, arena: &mut Arena) {
        let deadline = Deadline::default();
        let mut drained = self.send_cancel();
        while drained.is_ok() && self.is_running() {
            drained =
                deadline.check().and_then(|()| self.receive_patiently(arena, &mut || deadline.check()).map(|_| ()));
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
