//! The server's messages during login, handed out one whole message at a time.
//!
//! ```text
//!   socket ── LoginMessages ── BorrowedSocket ── tokio-postgres (SCRAM, MD5, …)
//!                │
//!                └─ LoginState: settings, the key for cancelling, the stage of authentication
//! ```
//!
//! tokio-postgres reads all that there is. A notice after ReadyForQuery would stay in its buffer
//! and be lost. So it gets no byte after ReadyForQuery; those stay in the socket.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use dray_net::{Socket, Wait, is_timeout, is_tls_error};

use super::params::RequiredAuth;
use crate::error::{Error, ErrorKind, Result};

/// A tag and a length.
const HEADER_BYTES: usize = 5;
/// Messages of a login are much shorter.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The messages of a login.
pub(crate) struct LoginMessages<'a> {
    pub(crate) socket: Socket,
    pub(crate) wait: Wait<'a>,
    required_auth: RequiredAuth,
    has_password: bool,
    pub(crate) state: LoginState,
    /// Why a read or write failed. tokio-postgres would only say that one did.
    pub(crate) failure: Option<Error>,
    message: Vec<u8>,
    /// The bytes of the message that were handed out.
    handed_out: usize,
}

/// What the messages said.
#[derive(Default)]
pub(crate) struct LoginState {
    /// The settings that the server reported.
    pub(crate) parameters: BTreeMap<String, String>,
    /// The process number and the secret for cancelling.
    pub(crate) key: Option<(i32, i32)>,
    pub(crate) authenticated: bool,
    /// Whether the server asked for authentication.
    pub(crate) asked: bool,
    ready: bool,
}

impl<'a> LoginMessages<'a> {
    pub(crate) fn new(
        socket: Socket,
        wait: Wait<'a>,
        required_auth: RequiredAuth,
        has_password: bool,
    ) -> Self {
        Self {
            socket,
            wait,
            required_auth,
            has_password,
            state: LoginState::default(),
            failure: None,
            message: Vec::new(),
            handed_out: 0,
        }
    }

    /// Reads the next whole message: tag, length and body.
    pub(crate) fn read_message(socket: &mut Socket, wait: &mut Wait<'_>) -> Result<Vec<u8>> {
        let mut header = [0; HEADER_BYTES];
        socket.receive(&mut header, wait).map_err(broken)?;
        let [tag, length @ ..] = header;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if !(4..MESSAGE_BYTES_MAX).contains(&length) {
            let what = format!(
                "expected a message of PostgreSQL's protocol, found tag {tag:#04x} and length \
                     {length}"
            );
            return Err(
                Error::new(ErrorKind::Protocol, what).with_hint("is it a PostgreSQL server?")
            );
        }
        let mut message = header.to_vec();
        message.resize(1 + length, 0);
        socket.receive(&mut message[HEADER_BYTES..], wait).map_err(broken)?;
        Ok(message)
    }

    /// Notes what the message says. Refuses authentication that the user does not allow.
    fn inspect(&mut self) -> Result<()> {
        let (header, body) = self.message.split_at(HEADER_BYTES);
        match header[0] {
            b'R' => {
                let method =
                    body.first_chunk().map(|code| u32::from_be_bytes(*code)).unwrap_or(u32::MAX);
                self.check_auth(method)?;
            }
            b'S' => {
                let mut strings = body
                    .split(|byte| *byte == 0)
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                if let (Some(name), Some(value)) = (strings.next(), strings.next()) {
                    self.state.parameters.insert(name, value);
                }
            }
            b'K' => {
                if let (Some(process), Some(secret)) = (body.first_chunk(), body.last_chunk()) {
                    self.state.key =
                        Some((i32::from_be_bytes(*process), i32::from_be_bytes(*secret)));
                }
            }
            b'Z' => self.state.ready = true,
            _ => {}
        }
        Ok(())
    }

    /// Checks the kind of authentication that the server asks for (PostgreSQL's manual, section
    /// "Message Formats").
    fn check_auth(&mut self, code: u32) -> Result<()> {
        let refused = |what: String| Err(Error::new(ErrorKind::Authentication, what));
        let method = match code {
            0 if self.state.asked => {
                self.state.authenticated = true;
                return Ok(());
            }
            0 => "none",
            3 => "password",
            5 => "md5",
            10 => "scram-sha-256",
            // The further steps of SASL.
            11 | 12 => return Ok(()),
            2 | 7 | 8 => {
                return refused(
                    "the server asks for GSSAPI (Kerberos), which is not supported".into(),
                );
            }
            9 => {
                return refused(
                    "the server asks for SSPI (GSSAPI on Windows), which is not supported".into(),
                );
            }
            other => {
                return refused(format!(
                    "the server asks for authentication method {other}, which is not known"
                ));
            }
        };
        if !self.required_auth.allows(method) {
            return refused(format!(
                "the server asks for authentication {method:?}, which require_auth does not allow"
            ));
        }
        if code != 0 && !self.has_password {
            let error = Error::new(
                ErrorKind::Authentication,
                "the server asks for a password, but none is given",
            );
            return Err(error.with_hint("give one in the uri, in PGPASSWORD or in ~/.pgpass"));
        }
        self.state.asked = true;
        self.state.authenticated = code == 0;
        Ok(())
    }

    fn hand_out(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.handed_out == self.message.len() {
            if self.state.ready {
                return Err(Error::new(ErrorKind::Protocol, "a login read on after ReadyForQuery"));
            }
            self.message = Self::read_message(&mut self.socket, &mut self.wait)?;
            self.inspect()?;
            self.handed_out = 0;
        }
        let read = (&self.message[self.handed_out..]).read(buffer).unwrap_or(0);
        self.handed_out += read;
        Ok(read)
    }

    fn retry<T>(&mut self, mut work: impl FnMut(&mut Socket) -> io::Result<T>) -> Result<T> {
        loop {
            match work(&mut self.socket) {
                Err(cause) if is_timeout(&cause) => self.wait.check().map_err(broken)?,
                done => return done.map_err(broken),
            }
        }
    }

    fn note_failure<T>(&mut self, result: Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.failure = Some(error);
            io::ErrorKind::Other.into()
        })
    }
}

impl Read for LoginMessages<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.hand_out(buffer);
        self.note_failure(read)
    }
}

impl Write for LoginMessages<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.retry(|socket| socket.write(bytes));
        self.note_failure(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.retry(Write::flush);
        self.note_failure(flushed)
    }
}

/// An error of the socket, for the user.
fn broken(cause: io::Error) -> Error {
    // With TLS 1.3 the server refuses a client's certificate after the handshake.
    let (kind, what) = match is_tls_error(&cause) {
        true => (ErrorKind::Authentication, "TLS failed"),
        false => (ErrorKind::Connection, "the connection broke during login"),
    };
    Error::new(kind, what).with_cause(cause)
}
