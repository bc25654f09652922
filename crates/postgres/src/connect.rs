//! From a connection string to a socket that is logged in: which host, which address, with or without TLS, as libpq
//! decides it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::error::{Error, ErrorKind, Result};
use crate::frames::{Frames, Seen};
use crate::login::log_in;
use crate::params::{ConnectParams, Host, NO_TIMEOUT, Place, SslMode, Target, TcpParams, socket_path};
use crate::socket::{Address, Socket, is_timeout};
use crate::tls::Tls;

/// `cannot_connect_now`: the server starts, stops or recovers, so that another host may be better.
const CANNOT_CONNECT_NOW: &str = "57P03";
/// How long a request to cancel may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A socket with a session at its other end, which waits for its first query.
#[derive(Debug)]
pub struct LoggedIn {
    /// What follows ReadyForQuery is read from here.
    pub socket: Socket,
    /// What the server reported: `server_version`, `client_encoding`, `TimeZone` and so on.
    pub parameters: BTreeMap<String, String>,
    /// Ends what the session is doing.
    pub canceller: Canceller,
    /// The server as a uri without user and password, for messages.
    pub place: String,
    /// The number of the server's process, as it said at login; a pooler says another.
    pub process_id: Option<i32>,
    /// Who is logged in.
    pub user: String,
    /// Where.
    pub dbname: String,
}

/// Asks the server to end what a session is doing, over a connection of its own.
#[derive(Clone)]
pub struct Canceller {
    address: Address,
    tcp: TcpParams,
    tls: Option<Tls>,
    key: Option<(i32, i32)>,
    place: String,
}

/// Without its key, which lets anybody cancel.
impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Sends the request and waits until the server has taken it. Whether there was something to cancel is not known:
    /// if so, the session's query ends by an error with SQLSTATE 57014.
    ///
    /// # Errors
    /// The server can't be reached, or it gave the session no key for cancelling.
    pub fn cancel(&self) -> Result<()> {
        let failed = || Error::new(ErrorKind::Connection, format!("can't cancel at {}", self.place));
        let (process, secret) = self.key.ok_or_else(|| failed().hint("the server gave no key for it at login"))?;
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let socket = Socket::open(&self.address, &self.tcp, deadline).map_err(|cause| failed().cause(cause))?;
        let mut socket = match &self.tls {
            Some(tls) => socket.encrypt(tls, deadline).map_err(|cause| failed().cause(cause))?,
            None => socket,
        };
        if self.tls.is_some() && !socket.is_tls() {
            return Err(failed().hint("the server had TLS before, but not now"));
        }
        let mut request = BytesMut::new();
        frontend::cancel_request(process, secret, &mut request);
        let sent = socket.write_all(&request).and_then(|()| socket.flush());
        sent.map_err(|cause| failed().cause(cause))?;
        // The server closes the connection once it has passed the request on, and sends nothing.
        while Instant::now() < deadline {
            match socket.read(&mut [0]) {
                Err(error) if is_timeout(&error) => {}
                _ => break,
            }
        }
        Ok(())
    }
}

/// Connects to the first host that lets us in and is what the string asks for.
///
/// Each address may take so long as `connect_timeout` says, or the given time if it says nothing.
///
/// # Errors
/// Connection errors list every place that was tried; Authentication errors have the server's SQLSTATE and message.
pub fn connect(params: &ConnectParams, timeout: Duration) -> Result<LoggedIn> {
    let timeout = params.connect_timeout.unwrap_or(timeout).min(NO_TIMEOUT);
    let mut failures = Vec::new();
    let targets = match params.target {
        Target::PreferStandby => &[Target::Standby, Target::Any][..],
        _ => std::slice::from_ref(&params.target),
    };
    let mut hosts: Vec<_> = params.hosts.iter().collect();
    if params.shuffle {
        shuffle(&mut hosts);
    }
    for target in targets {
        for host in &hosts {
            let mut addresses = match resolve(host) {
                Ok(addresses) => addresses,
                Err(cause) => {
                    failures.push(no_connection(&host.uri(&params.dbname), cause));
                    continue;
                }
            };
            if params.shuffle {
                shuffle(&mut addresses);
            }
            for address in addresses {
                let attempt = Attempt::new(params, host, address, Instant::now() + timeout);
                let next = match attempt.run(*target) {
                    Ok(session) => return Ok(session),
                    Err(failure) => {
                        failures.extend(failure.errors);
                        failure.next
                    }
                };
                match next {
                    Next::Address => {}
                    Next::Host => break,
                    Next::Nothing => return Err(merge(failures)),
                }
            }
        }
    }
    Err(merge(failures))
}

/// Where one tries next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Address,
    Host,
    /// The server has been found and has said no: another one is not asked.
    Nothing,
}

struct Failure {
    errors: Vec<Error>,
    next: Next,
    /// Whether a server that refuses one encryption may accept the other.
    other_encryption: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { errors: vec![error], next: Next::Nothing, other_encryption: false }
    }
}

/// One address of one host.
struct Attempt<'a> {
    params: &'a ConnectParams,
    host: &'a Host,
    address: Address,
    deadline: Instant,
    place: String,
}

impl<'a> Attempt<'a> {
    fn new(params: &'a ConnectParams, host: &'a Host, address: Address, deadline: Instant) -> Self {
        let mut place = host.uri(&params.dbname);
        if let (Place::Tcp { name, .. }, Address::Tcp(address)) = (&host.place, &address)
            && *name != address.ip().to_string()
        {
            place = format!("{place} ({})", address.ip());
        }
        Self { params, host, address, deadline, place }
    }

    /// Plain and encrypted in the order of `sslmode`.
    fn run(&self, target: Target) -> Result<LoggedIn, Failure> {
        let session = match (&self.address, self.params.tls.mode) {
            (Address::Unix(_), _) | (_, SslMode::Disable) => self.log_in(false),
            (_, SslMode::Allow) => self.log_in(false).or_else(|failure| self.try_other(failure, true)),
            (_, SslMode::Prefer) => self.log_in(true).or_else(|failure| self.try_other(failure, false)),
            _ => self.log_in(true),
        };
        let mut session = session?;
        match self.has_attributes(&mut session, target)? {
            None => Ok(session),
            Some(mismatch) => {
                // Terminate, for courtesy: the session ends anyway.
                let _ = session.socket.write_all(b"X\0\0\0\x04").and_then(|()| session.socket.flush());
                let error = Error::new(ErrorKind::Connection, format!("{} {mismatch}", self.place));
                let error = error.hint("target_session_attrs asks for another kind of server");
                Err(Failure { next: Next::Host, ..error.into() })
            }
        }
    }

    fn try_other(&self, mut first: Failure, encrypted: bool) -> Result<LoggedIn, Failure> {
        if !first.other_encryption {
            return Err(first);
        }
        self.log_in(encrypted).map_err(|second| {
            first.errors.extend(second.errors);
            Failure { errors: first.errors, ..second }
        })
    }

    fn log_in(&self, encrypted: bool) -> Result<LoggedIn, Failure> {
        let mut socket = match Socket::open(&self.address, &self.params.tcp, self.deadline) {
            Ok(socket) => socket,
            Err(cause) => return Err(Failure { next: Next::Address, ..no_connection(&self.place, cause).into() }),
        };
        let mut tls = None;
        if encrypted {
            let (encrypted, used) = self.encrypt(socket)?;
            socket = encrypted;
            tls = Some(used).filter(|_| socket.is_tls());
        }
        let (socket, Seen { parameters, key, .. }) =
            log_in(socket, self.params, self.host.password.as_deref(), self.deadline).map_err(|refusal| {
                let next = match refusal.error.sqlstate() {
                    CANNOT_CONNECT_NOW => Next::Host,
                    _ if Instant::now() >= self.deadline => Next::Address,
                    _ => Next::Nothing,
                };
                // Of the two ways, the server has seen an encrypted one only if it has TLS.
                let other_encryption = refusal.unauthenticated && encrypted == tls.is_some();
                Failure { errors: vec![self.explain_refusal(refusal.error)], next, other_encryption }
            })?;
        let Self { params, address, place, .. } = self;
        Ok(LoggedIn {
            socket,
            parameters,
            canceller: Canceller { address: address.clone(), tcp: params.tcp.clone(), tls, key, place: place.clone() },
            place: self.host.uri(&params.dbname),
            process_id: key.map(|(process_id, _)| process_id),
            user: params.user.clone(),
            dbname: params.dbname.clone(),
        })
    }

    fn encrypt(&self, socket: Socket) -> Result<(Socket, Tls), Failure> {
        let (Place::Tcp { name, .. }, Address::Tcp(address)) = (&self.host.place, &self.address) else {
            return Err(Error::new(ErrorKind::Usage, "no TLS over Unix sockets").into());
        };
        let encrypted = Tls::prepare(&self.params.tls, name, address.ip())
            .and_then(|tls| Ok((socket.encrypt(&tls, self.deadline)?, tls)));
        let (socket, tls) = encrypted.map_err(|error| {
            let next = if Instant::now() >= self.deadline { Next::Address } else { Next::Nothing };
            Failure { errors: vec![self.explain(error)], next, other_encryption: true }
        })?;
        match self.params.tls.mode {
            SslMode::Prefer => Ok((socket, tls)),
            _ if socket.is_tls() => Ok((socket, tls)),
            _ => {
                let error = Error::new(ErrorKind::Connection, "the server does not have TLS, which sslmode asks for");
                Err(self.explain(error.hint("set ssl = on at the server, or sslmode=prefer")).into())
            }
        }
    }

    /// The same error with the place.
    fn explain(&self, error: Error) -> Error {
        Error::new(error.kind(), format!("can't log in to {}: {}", self.place, error.message()))
            .with_sqlstate(error.sqlstate())
            .hint(error.help())
    }

    /// What the server said to our login: perhaps a password is right where it was not looked for.
    fn explain_refusal(&self, error: Error) -> Error {
        let error = self.explain(error);
        match &self.params.password_warning {
            Some(warning) if error.kind() == ErrorKind::Authentication && error.help().is_empty() => {
                error.hint(warning.as_str())
            }
            Some(warning) if error.kind() == ErrorKind::Authentication => {
                let help = error.help().to_owned();
                error.hint(format!("{help}; {warning}"))
            }
            _ => error,
        }
    }

    /// What makes the session another one than `target_session_attrs` asks for.
    fn has_attributes(&self, session: &mut LoggedIn, target: Target) -> Result<Option<&'static str>, Failure> {
        let failed = |error| Failure::from(self.explain(error));
        Ok(match target {
            Target::Any | Target::PreferStandby => None,
            Target::ReadWrite | Target::ReadOnly => {
                let read_only = is_read_only(session, self.deadline).map_err(failed)?;
                match (target, read_only) {
                    (Target::ReadWrite, true) => Some("is read-only"),
                    (Target::ReadOnly, false) => Some("is not read-only"),
                    _ => None,
                }
            }
            Target::Primary | Target::Standby => {
                let standby = is_standby(session, self.deadline).map_err(failed)?;
                match (target, standby) {
                    (Target::Primary, true) => Some("is a standby"),
                    (Target::Standby, false) => Some("is not a standby"),
                    _ => None,
                }
            }
        })
    }
}

/// Servers since version 14 report it; the others, and poolers, are asked.
fn is_read_only(session: &mut LoggedIn, deadline: Instant) -> Result<bool> {
    let reported = ["default_transaction_read_only", "in_hot_standby"].map(|name| session.parameters.get(name));
    match reported {
        [Some(read_only), Some(standby)] => Ok(read_only == "on" || standby == "on"),
        _ => ask(session, "SHOW transaction_read_only", deadline).map(|answer| answer == "on"),
    }
}

fn is_standby(session: &mut LoggedIn, deadline: Instant) -> Result<bool> {
    match session.parameters.get("in_hot_standby") {
        Some(standby) => Ok(standby == "on"),
        None => ask(session, "SELECT pg_catalog.pg_is_in_recovery()", deadline).map(|answer| answer == "t"),
    }
}

/// The only value of a query's only row, as text.
fn ask(session: &mut LoggedIn, query: &str, deadline: Instant) -> Result<String> {
    let failed = || Error::new(ErrorKind::Connection, format!("no answer to {query:?}"));
    let mut request = BytesMut::new();
    frontend::query(query, &mut request).map_err(|cause| failed().cause(cause))?;
    let sent = session.socket.write_all(&request).and_then(|()| session.socket.flush());
    sent.map_err(|cause| failed().cause(cause))?;
    let mut answer = None;
    loop {
        let message = Frames::read_message(&mut session.socket, deadline)?;
        match message.first() {
            Some(b'Z') => return answer.ok_or_else(failed),
            // Tag, length, number of columns, length of the first one.
            Some(b'D') => answer = message.get(11..).map(|value| String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }
}

fn resolve(host: &Host) -> io::Result<Vec<Address>> {
    let addresses = match &host.place {
        Place::Unix(folder) => return Ok(vec![Address::Unix(socket_path(folder, host.port))]),
        Place::Tcp { address: Some(address), .. } => return Ok(vec![Address::Tcp((*address, host.port).into())]),
        Place::Tcp { name, .. } => (name.as_str(), host.port).to_socket_addrs()?,
    };
    let addresses: Vec<SocketAddr> = addresses.collect();
    match addresses.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        false => Ok(addresses.into_iter().map(Address::Tcp).collect()),
    }
}

fn no_connection(place: &str, cause: io::Error) -> Error {
    let hint = match cause.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => "is the server running there?",
        io::ErrorKind::TimedOut => "is the server running there, and does a firewall let us through?",
        _ => "",
    };
    Error::new(ErrorKind::Connection, format!("can't connect to {place}")).cause(cause).hint(hint)
}

/// One error for all that was tried; a server's answer tells more than a host that does not answer.
fn merge(mut failures: Vec<Error>) -> Error {
    let mut messages: Vec<String> = Vec::new();
    for failure in &failures {
        let message = failure.message();
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    let telling = failures.iter().rposition(|failure| !failure.sqlstate().is_empty());
    let telling = telling.unwrap_or(failures.len().saturating_sub(1));
    if telling >= failures.len() {
        return Error::new(ErrorKind::Usage, "no host to connect to");
    }
    let telling = failures.swap_remove(telling);
    Error::new(telling.kind(), messages.join("; ")).with_sqlstate(telling.sqlstate()).hint(telling.help())
}

/// Puts things into an order by chance: the standard library's hash keys are random.
fn shuffle<T>(things: &mut [T]) {
    for end in (1..things.len()).rev() {
        let random = usize::try_from(RandomState::new().hash_one(end) >> 1).unwrap_or(0);
        things.swap(end, random % (end + 1));
    }
}
