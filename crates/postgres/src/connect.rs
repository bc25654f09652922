//! From a connection string to a socket that is logged in, as libpq does it: the order of hosts and
//! addresses, and the time for each.

mod attempt;
mod cancel;
mod certificate;
mod conninfo;
mod files;
mod keywords;
mod login;
mod login_messages;
mod params;
mod socket;
mod tls;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

use self::attempt::{Attempt, Next, no_connection};
pub use self::cancel::Canceller;
pub use self::params::{ConnectParams, parse_seconds};
use self::params::{Host, NO_TIMEOUT, Place, Target, socket_path};
use self::socket::Address;
pub use self::socket::Socket;
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Wait, resolve};

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

/// One error for all that was tried; a server's answer tells more than a host that does not answer.
fn merge(mut failures: Vec<Error>) -> Error {
    let mut messages: Vec<String> = Vec::new();
    for failure in &failures {
        let message = failure.message_and_cause();
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    let telling = failures.iter().rposition(|failure| failure.sqlstate().is_some());
    let telling = telling.unwrap_or(failures.len().saturating_sub(1));
    if telling >= failures.len() {
        return Error::new(ErrorKind::Usage, "no host to connect to");
    }
    let telling = failures.swap_remove(telling);
    Error::new(telling.kind(), messages.join("; "))
        .with_sqlstate(telling.sqlstate().unwrap_or_default())
        .with_hint(telling.hint().unwrap_or_default())
}

/// Puts things into an order by chance: the standard library's hash keys are random.
fn shuffle<T>(things: &mut [T]) {
    for end in (1..things.len()).rev() {
        let random = usize::try_from(RandomState::new().hash_one(end) >> 1).unwrap_or(0);
        things.swap(end, random % (end + 1));
    }
}
