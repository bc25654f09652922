//! An attempt at one address of one host: socket, TLS, login, and the kind of server.

use std::io;

use bytes::BytesMut;
use dray_net::{Address, Socket, Wait};
use postgres_protocol::message::frontend;

use super::LoggedIn;
use super::cancel::Canceller;
use super::login::log_in;
use super::login_messages::{LoginMessages, LoginState};
use super::params::{ConnectParams, Host, Place, SslMode, Target};
use super::tls::Tls;
use crate::error::{Error, ErrorKind, Result};

/// SQLSTATE `cannot_connect_now`: the server starts, stops or recovers, so another host may do
/// better.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// What to try after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Address,
    Host,
    /// Nothing: the server was reached and refused.
    Nothing,
}

pub(super) struct Failure {
    pub(super) errors: Vec<Error>,
    pub(super) next: Next,
    /// Whether the server may accept the connection with the other choice of encryption.
    other_encryption: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { errors: vec![error], next: Next::Nothing, other_encryption: false }
    }
}

/// One address of one host.
pub(super) struct Attempt<'a> {
    params: &'a ConnectParams,
    host: &'a Host,
    address: Address,
    place: String,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(params: &'a ConnectParams, host: &'a Host, address: Address) -> Self {
        let mut place = host.uri(&params.dbname);
        if let (Place::Tcp { name, .. }, Address::Tcp(address)) = (&host.place, &address)
            && *name != address.ip().to_string()
        {
            place = format!("{place} ({})", address.ip());
        }
        Self { params, host, address, place }
    }

    /// Tries plain and encrypted connections in the order of `sslmode`.
    pub(super) fn run(&self, target: Target, wait: &mut Wait<'_>) -> Result<LoggedIn, Failure> {
        let session = match (&self.address, self.params.tls.mode) {
            (Address::Unix(_), _) | (_, SslMode::Disable) => self.log_in(false, wait),
            (_, SslMode::Allow) => {
                self.log_in(false, wait).or_else(|failure| self.try_other(failure, true, wait))
            }
            (_, SslMode::Prefer) => {
                self.log_in(true, wait).or_else(|failure| self.try_other(failure, false, wait))
            }
            _ => self.log_in(true, wait),
        };
        let mut session = session?;
        match self.mismatch(&mut session, target, wait)? {
            None => Ok(session),
            Some(mismatch) => {
                // Terminate, as a courtesy: the session ends anyway.
                let _ = session.socket.send(b"X\0\0\0\x04", wait);
                let error = Error::new(ErrorKind::Connection, format!("{} {mismatch}", self.place));
                let error = error.with_hint("target_session_attrs asks for another kind of server");
                Err(Failure { next: Next::Host, ..error.into() })
            }
        }
    }

    fn try_other(
        &self,
        mut first: Failure,
        encrypted: bool,
        wait: &mut Wait<'_>,
    ) -> Result<LoggedIn, Failure> {
        if !first.other_encryption || wait.check().is_err() {
            return Err(first);
        }
        self.log_in(encrypted, wait).map_err(|second| {
            first.errors.extend(second.errors);
            Failure { errors: first.errors, ..second }
        })
    }

    fn log_in(&self, encrypted: bool, wait: &mut Wait<'_>) -> Result<LoggedIn, Failure> {
        let mut socket =
            match Socket::open(&self.address, &self.params.tcp, self.params.read_timeout, wait) {
                Ok(socket) => socket,
                Err(cause) => {
                    return Err(Failure {
                        next: Next::Address,
                        ..no_connection(&self.place, cause).into()
                    });
                }
            };
        let mut tls = None;
        if encrypted {
            let (encrypted, used) = self.encrypt(socket, wait)?;
            socket = encrypted;
            tls = Some(used).filter(|_| socket.is_tls());
        }
        let (socket, LoginState { parameters, key, .. }) = log_in(
            socket,
            self.params,
            self.host.password.as_deref(),
            wait,
        )
        .map_err(|refusal| {
            let next = match refusal.error.sqlstate() {
                Some(CANNOT_CONNECT_NOW) => Next::Host,
                _ if wait.is_over() => Next::Address,
                _ => Next::Nothing,
            };
            // The other choice only makes sense if the server has seen this one: an encrypted login
            // needs a server with TLS.
            let other_encryption = refusal.unauthenticated && encrypted == tls.is_some();
            Failure { errors: vec![self.explain_refusal(refusal.error)], next, other_encryption }
        })?;
        let Self { params, address, place, .. } = self;
        Ok(LoggedIn {
            socket,
            parameters,
            canceller: Canceller {
                address: address.clone(),
                tcp: params.tcp.clone(),
                tls,
                key,
                place: place.clone(),
                process: std::process::id(),
            },
            deadline: wait.deadline(),
            place: self.host.uri(&params.dbname),
            process_id: key.map(|(process_id, _)| process_id),
            user: params.user.clone(),
            dbname: params.dbname.clone(),
        })
    }

    fn encrypt(&self, socket: Socket, wait: &mut Wait<'_>) -> Result<(Socket, Tls), Failure> {
        let (Place::Tcp { name, .. }, Address::Tcp(address)) = (&self.host.place, &self.address)
        else {
            return Err(Error::new(ErrorKind::Usage, "no TLS over Unix sockets").into());
        };
        let encrypted = Tls::prepare(&self.params.tls, name, address.ip())
            .and_then(|tls| Ok((tls.encrypt(socket, wait)?, tls)));
        let (socket, tls) = encrypted.map_err(|error| {
            let next = if wait.is_over() { Next::Address } else { Next::Nothing };
            Failure { errors: vec![self.explain(error)], next, other_encryption: true }
        })?;
        match self.params.tls.mode {
            SslMode::Prefer => Ok((socket, tls)),
            _ if socket.is_tls() => Ok((socket, tls)),
            _ => {
                let error = Error::new(
                    ErrorKind::Connection,
                    "the server does not have TLS, which sslmode asks for",
                );
                Err(self
                    .explain(error.with_hint("set ssl = on at the server, or sslmode=prefer"))
                    .into())
            }
        }
    }

    /// The same error with the server's address.
    fn explain(&self, error: Error) -> Error {
        Error::new(
            error.kind(),
            format!("can't log in to {}: {}", self.place, error.message_and_cause()),
        )
        .with_sqlstate(error.sqlstate().unwrap_or_default())
        .with_hint(error.hint().unwrap_or_default())
    }

    /// A refused login, with a hint if the password file was ignored.
    fn explain_refusal(&self, error: Error) -> Error {
        let error = self.explain(error);
        match &self.params.password_warning {
            Some(warning)
                if error.kind() == ErrorKind::Authentication && error.hint().is_none() =>
            {
                error.with_hint(warning.as_str())
            }
            Some(warning) if error.kind() == ErrorKind::Authentication => {
                let hint = error.hint().unwrap_or_default().to_owned();
                error.with_hint(format!("{hint}; {warning}"))
            }
            _ => error,
        }
    }

    /// Why the session is not what `target_session_attrs` asks for; None if it is.
    fn mismatch(
        &self,
        session: &mut LoggedIn,
        target: Target,
        wait: &mut Wait<'_>,
    ) -> Result<Option<&'static str>, Failure> {
        let failed = |error| Failure::from(self.explain(error));
        Ok(match target {
            Target::Any | Target::PreferStandby => None,
            Target::ReadWrite | Target::ReadOnly => {
                let read_only = is_read_only(session, wait).map_err(failed)?;
                match (target, read_only) {
                    (Target::ReadWrite, true) => Some("is read-only"),
                    (Target::ReadOnly, false) => Some("is not read-only"),
                    _ => None,
                }
            }
            Target::Primary | Target::Standby => {
                let standby = is_standby(session, wait).map_err(failed)?;
                match (target, standby) {
                    (Target::Primary, true) => Some("is a standby"),
                    (Target::Standby, false) => Some("is not a standby"),
                    _ => None,
                }
            }
        })
    }
}

/// Servers since version 14 report it. Others, and poolers, are asked.
fn is_read_only(session: &mut LoggedIn, wait: &mut Wait<'_>) -> Result<bool> {
    let reported = ["default_transaction_read_only", "in_hot_standby"]
        .map(|name| session.parameters.get(name));
    match reported {
        [Some(read_only), Some(standby)] => Ok(read_only == "on" || standby == "on"),
        _ => ask(session, "SHOW transaction_read_only", wait).map(|answer| answer == "on"),
    }
}

fn is_standby(session: &mut LoggedIn, wait: &mut Wait<'_>) -> Result<bool> {
    match session.parameters.get("in_hot_standby") {
        Some(standby) => Ok(standby == "on"),
        None => {
            ask(session, "SELECT pg_catalog.pg_is_in_recovery()", wait).map(|answer| answer == "t")
        }
    }
}

/// The only value of a query's answer, as text.
fn ask(session: &mut LoggedIn, query: &str, wait: &mut Wait<'_>) -> Result<String> {
    let failed = || Error::new(ErrorKind::Connection, format!("no answer to {query:?}"));
    let mut request = BytesMut::new();
    frontend::query(query, &mut request).map_err(|cause| failed().with_cause(cause))?;
    session.socket.send(&request, wait).map_err(|cause| failed().with_cause(cause))?;
    let mut answer = None;
    loop {
        let message = LoginMessages::read_message(&mut session.socket, wait)?;
        match message.first() {
            Some(b'Z') => return answer.ok_or_else(failed),
            // Skips the tag, the length, the number of columns and the length of the first one.
            Some(b'D') => {
                answer = message.get(11..).map(|value| String::from_utf8_lossy(value).into_owned())
            }
            _ => {}
        }
    }
}

pub(super) fn no_connection(place: &str, cause: io::Error) -> Error {
    let hint = match cause.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            "is the server running there?"
        }
        io::ErrorKind::TimedOut => {
            "is the server running there, and does a firewall let us through?"
        }
        _ => "",
    };
    Error::new(ErrorKind::Connection, format!("can't connect to {place}"))
        .with_cause(cause)
        .with_hint(hint)
}
