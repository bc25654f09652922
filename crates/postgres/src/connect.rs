//! From a connection string to a socket that is logged in: which host, which address, with or
//! without TLS, as libpq decides it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::error::{Error, ErrorKind, Result};
use crate::frames::{Frames, Seen};
use crate::line::{TcpParams, Wait, check_process, is_timeout, resolve};
use crate::login::log_in;
use crate::params::{ConnectParams, Host, NO_TIMEOUT, Place, SslMode, Target, socket_path};
use crate::socket::{Address, Socket};
use crate::tls::Tls;

/// `cannot_connect_now`: the server starts, stops or recovers, so that another host may be better.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// A socket with a session at its other end, which waits for its first query.
#[derive(Debug)]
pub struct LoggedIn {
    /// What follows ReadyForQuery is read from here.
    pub socket: Socket,
    /// What the server reported: `server_version`, `client_encoding`, `TimeZone` and so on.
    pub parameters: BTreeMap<String, String>,
    /// Ends what the session is doing.
    pub canceller: Canceller,
    /// When what is left of connecting must be done.
    pub deadline: Instant,
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
    /// The process that is logged in: a fork's child must not end what its parent is doing.
    process: u32,
}

/// Without its key, which lets anybody cancel.
impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Sends the request and waits until the server has taken it. Whether there was something to
    /// cancel is not known: if so, the session's query ends by an error with SQLSTATE 57014.
    ///
    /// # Errors
    /// The server can't be reached before the wait ends, or it gave the session no key for
    /// cancelling.
    pub fn cancel(&self, wait: &mut Wait<'_>) -> Result<()> {
        let failed =
            || Error::new(ErrorKind::Connection, format!("can't cancel at {}", self.place));
        check_process(self.process).map_err(|cause| failed().cause(cause))?;
        let (process, secret) =
            self.key.ok_or_else(|| failed().hint("the server gave no key for it at login"))?;
        let socket = Socket::open(&self.address, &self.tcp, None, wait)
            .map_err(|cause| failed().cause(cause))?;
        let mut socket = match &self.tls {
            Some(tls) => socket.encrypt(tls, wait).map_err(|cause| failed().cause(cause))?,
            None => socket,
        };
        if self.tls.is_some() && !socket.is_tls() {
            return Err(failed().hint("the server had TLS before, but not now"));
        }
        let mut request = BytesMut::new();
        frontend::cancel_request(process, secret, &mut request);
        socket.send(&request, wait).map_err(|cause| failed().cause(cause))?;
        // The server closes the connection once it has passed the request on, and sends nothing.
        loop {
            match socket.read(&mut [0]) {
                Err(error) if is_timeout(&error) => {
                    wait.check().map_err(|cause| failed().cause(cause))?
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Connects to the first host that lets us in and is what the string asks for, as long as `wanted`
/// says so.
///
/// All of it may take so long as `timeout` says: each host and each address gets its share of what
/// is left. If the string has `connect_timeout`, each address may take that long, as libpq has it.
///
/// # Errors
/// Connection errors list every place that was tried; Authentication errors have the server's
/// SQLSTATE and message.
pub fn connect(
    params: &ConnectParams,
    timeout: Duration,
    wanted: &mut dyn FnMut() -> bool,
) -> Result<LoggedIn> {
    let timeout =
        if params.connect_timeout.is_some() { NO_TIMEOUT } else { timeout.min(NO_TIMEOUT) };
    let mut wait = Wait::new(Instant::now() + timeout, wanted);
    let mut failures = Vec::new();
    let targets = match params.target {
        Target::PreferStandby => &[Target::Standby, Target::Any][..],
        _ => std::slice::from_ref(&params.target),
    };
    let mut hosts: Vec<_> = params.hosts.iter().collect();
    if params.shuffle {
        shuffle(&mut hosts);
    }
    let mut tries_left = targets.len() * hosts.len();
    for target in targets {
        for host in &hosts {
            let mut share = wait.share(tries_left);
            tries_left -= 1;
            let found = match params.connect_timeout {
                Some(timeout) => addresses(host, &mut share.until(Instant::now() + timeout)),
                None => addresses(host, &mut share),
            };
            let mut addresses = match found {
                Ok(addresses) => addresses,
                Err(cause) => {
                    failures.push(no_connection(&host.uri(&params.dbname), cause));
                    if wait.check().is_err() {
                        return Err(merge(failures));
                    }
                    continue;
                }
            };
            if params.shuffle {
                shuffle(&mut addresses);
            }
            let count = addresses.len();
            for (i, address) in addresses.into_iter().enumerate() {
                let mut attempt_wait = match params.connect_timeout {
                    Some(timeout) => share.until(Instant::now() + timeout),
                    None => share.share(count - i),
                };
                let next = match Attempt::new(params, host, address).run(*target, &mut attempt_wait)
                {
                    Ok(session) => return Ok(session),
                    Err(failure) => {
                        failures.extend(failure.errors);
                        failure.next
                    }
                };
                match next {
                    Next::Nothing => return Err(merge(failures)),
                    _ if share.check().is_err() => break,
                    Next::Address => {}
                    Next::Host => break,
                }
            }
            if wait.check().is_err() {
                return Err(merge(failures));
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
    place: String,
}

impl<'a> Attempt<'a> {
    fn new(params: &'a ConnectParams, host: &'a Host, address: Address) -> Self {
        let mut place = host.uri(&params.dbname);
        if let (Place::Tcp { name, .. }, Address::Tcp(address)) = (&host.place, &address)
            && *name != address.ip().to_string()
        {
            place = format!("{place} ({})", address.ip());
        }
        Self { params, host, address, place }
    }

    /// Plain and encrypted in the order of `sslmode`.
    fn run(&self, target: Target, wait: &mut Wait<'_>) -> Result<LoggedIn, Failure> {
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
        match self.has_attributes(&mut session, target, wait)? {
            None => Ok(session),
            Some(mismatch) => {
                // Terminate, for courtesy: the session ends anyway.
                let _ = session.socket.send(b"X\0\0\0\x04", wait);
                let error = Error::new(ErrorKind::Connection, format!("{} {mismatch}", self.place));
                let error = error.hint("target_session_attrs asks for another kind of server");
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
        let (socket, Seen { parameters, key, .. }) = log_in(
            socket,
            self.params,
            self.host.password.as_deref(),
            wait,
        )
        .map_err(|refusal| {
            let next = match refusal.error.sqlstate() {
                CANNOT_CONNECT_NOW => Next::Host,
                _ if wait.is_over() => Next::Address,
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
            .and_then(|tls| Ok((socket.encrypt(&tls, wait)?, tls)));
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
                    .explain(error.hint("set ssl = on at the server, or sslmode=prefer"))
                    .into())
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
            Some(warning)
                if error.kind() == ErrorKind::Authentication && error.help().is_empty() =>
            {
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
    fn has_attributes(
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

/// Servers since version 14 report it; the others, and poolers, are asked.
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

/// The only value of a query's only row, as text.
fn ask(session: &mut LoggedIn, query: &str, wait: &mut Wait<'_>) -> Result<String> {
    let failed = || Error::new(ErrorKind::Connection, format!("no answer to {query:?}"));
    let mut request = BytesMut::new();
    frontend::query(query, &mut request).map_err(|cause| failed().cause(cause))?;
    session.socket.send(&request, wait).map_err(|cause| failed().cause(cause))?;
    let mut answer = None;
    loop {
        let message = Frames::read_message(&mut session.socket, wait)?;
        match message.first() {
            Some(b'Z') => return answer.ok_or_else(failed),
            // Tag, length, number of columns, length of the first one.
            Some(b'D') => {
                answer = message.get(11..).map(|value| String::from_utf8_lossy(value).into_owned())
            }
            _ => {}
        }
    }
}

fn addresses(host: &Host, wait: &mut Wait<'_>) -> io::Result<Vec<Address>> {
    match &host.place {
        Place::Unix(folder) => Ok(vec![Address::Unix(socket_path(folder, host.port))]),
        Place::Tcp { address: Some(address), .. } => {
            Ok(vec![Address::Tcp((*address, host.port).into())])
        }
        Place::Tcp { name, .. } => {
            Ok(resolve(name, host.port, wait)?.into_iter().map(Address::Tcp).collect())
        }
    }
}

fn no_connection(place: &str, cause: io::Error) -> Error {
    let hint = match cause.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            "is the server running there?"
        }
        io::ErrorKind::TimedOut => {
            "is the server running there, and does a firewall let us through?"
        }
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
    Error::new(telling.kind(), messages.join("; "))
        .with_sqlstate(telling.sqlstate())
        .hint(telling.help())
}

/// Puts things into an order by chance: the standard library's hash keys are random.
fn shuffle<T>(things: &mut [T]) {
    for end in (1..things.len()).rev() {
        let random = usize::try_from(RandomState::new().hash_one(end) >> 1).unwrap_or(0);
        things.swap(end, random % (end + 1));
    }
}
