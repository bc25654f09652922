//! Greeting a server: over the transport that the uri names, and perhaps once more over the
//! server's local socket, to which the connection then moves (protocol.md section 11).

use std::time::{Duration, Instant};

use dray_net::Wait;
use dray_wire::{ClientSession, Instance, Secret, ServerEvent, Welcome};

use super::transport::Transport;
use super::{DraySource, READ_BUFFER_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Arena;
use crate::options::ConnectOptions;
use crate::source::SourceKind;
use crate::source::frames::{DecoderCache, Frame, FrameEvents};

/// The most time for an attempt to move.
const MOVE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a client says to a server first, over each transport.
pub(super) struct Greeting<'a> {
    pub(super) token: Secret,
    /// The source that gets the statements; empty for the server's own tables.
    pub(super) source: String,
    pub(super) options: &'a ConnectOptions,
    /// The address that the user gave, without secrets.
    pub(super) place: String,
    /// The same for readers of parts.
    pub(super) shared_uri: String,
}

impl Greeting<'_> {
    /// Greets the server at the other end, and moves to its local socket if possible.
    ///
    /// # Errors
    /// When the server refuses, does not answer in time, or breaks the protocol.
    pub(super) fn greet(&self, transport: Transport, wait: &mut Wait<'_>) -> Result<DraySource> {
        let (connection, instance) = self.exchange(transport, wait)?;
        if !self.options.local_socket || !connection.transport.is_plain_on_this_host() {
            return Ok(connection);
        }
        // Dropping the first connection says goodbye there.
        if let Some(moved) = self.move_to(instance, wait) {
            return Ok(moved);
        }
        // Perhaps the attempt ended because nobody waits any longer.
        wait.check().map_err(|_| self.late())?;
        Ok(connection)
    }

    /// Greets the server's local socket; None if it can't be reached, or is another server's.
    fn move_to(&self, instance: Instance, wait: &mut Wait<'_>) -> Option<DraySource> {
        let name = instance.socket_name()?;
        // Time is left for the connection that there is.
        let mut wait = wait.share(2);
        let mut wait = wait.until(Instant::now() + MOVE_TIMEOUT);
        let transport =
            Transport::connect_local(&name, self.options.read_timeout, &mut wait).ok()?;
        let (connection, found) = self.exchange(transport, &mut wait).ok()?;
        (found == instance).then_some(connection)
    }

    /// Sends a hello and waits for the welcome.
    fn exchange(
        &self,
        transport: Transport,
        wait: &mut Wait<'_>,
    ) -> Result<(DraySource, Instance)> {
        let mut connection = DraySource {
            transport,
            session: ClientSession::default(),
            buffer: Vec::with_capacity(READ_BUFFER_BYTES),
            consumed: 0,
            server: String::new(),
            dialect: None,
            is_relayed: false,
            place: self.place.clone(),
            shared_uri: self.shared_uri.clone(),
            options: ConnectOptions { token: None, ..self.options.clone() },
            ticket: None,
            source_path: None,
            broken: false,
            events: FrameEvents::default(),
            decoders: DecoderCache::default(),
        };
        let mut hello = Vec::new();
        let Self { token, options, source, .. } = self;
        connection.session.hello(token.reveal(), &options.client, source, &mut hello)?;
        let mut check = || wait.check().map_err(|_| self.late());
        connection.send(&hello, &mut check)?;
        match connection.read_frame(&mut Arena::default(), &mut check)? {
            Frame::Message(ServerEvent::Welcome(Welcome { server, instance, dialect, .. })) => {
                connection.server = server;
                connection.dialect = dialect_of(&dialect);
                connection.is_relayed = !dialect.is_empty();
                Ok((connection, instance))
            }
            Frame::Message(ServerEvent::Error(error)) => Err(error.into()),
            _ => {
                let what = format!("{} did not answer the greeting", self.place);
                Err(Error::new(ErrorKind::Protocol, what))
            }
        }
    }

    fn late(&self) -> Error {
        let what = format!("{} did not greet within {:?}", self.place, self.options.timeout);
        Error::new(ErrorKind::Connection, what)
            .with_hint("is a dray server there, and TLS the same at both ends?")
    }
}

/// The kind of database that a dialect is of; None for the server's own.
fn dialect_of(name: &str) -> Option<SourceKind> {
    match name {
        "postgresql" => Some(SourceKind::Postgres),
        "mysql" => Some(SourceKind::Mysql),
        "" => None,
        _ => Some(SourceKind::Other),
    }
}
