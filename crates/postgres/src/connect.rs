//! From a connection string to a socket that is logged in, as libpq does it: the order of hosts and
//! addresses, and the time for each.

mod attempt;
mod cancel;
mod conninfo;
mod files;
mod keywords;
mod login;
mod login_messages;
mod params;
mod shareable;
mod tls;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

use dray_net::{Address, Socket, Wait, resolve};

use self::attempt::{Attempt, Next, no_connection};
pub use self::cancel::Canceller;
pub use self::params::ConnectParams;
use self::params::{Host, NO_TIMEOUT, Place, Target, socket_path};
pub use self::shareable::{Shareable, shareable};
use crate::error::{Error, ErrorKind, Result};

/// A session that waits for its first statement.
#[derive(Debug)]
pub struct LoggedIn {
    /// The next bytes are those after ReadyForQuery.
    pub socket: Socket,
    /// The settings that the server reported: `server_version`, `client_encoding`, `TimeZone` and
    /// so on.
    pub parameters: BTreeMap<String, String>,
    /// Cancels what the session is doing.
    pub canceller: Canceller,
    /// When the rest of connecting must be done.
    pub deadline: Instant,
    /// The server's uri without user and password, for messages.
    pub place: String,
    /// The server process's number by its login; behind a pooler, statements run in others.
    pub process_id: Option<i32>,
    /// The user who is logged in.
    pub user: String,
    /// The database.
    pub dbname: String,
}

/// Connects to the first host that accepts the login and is the kind of server that the string asks
/// for, while `keep_waiting` returns true.
///
/// `timeout` limits all of it: each host and each address gets its share of the time that is left.
/// A `connect_timeout` in the string limits each address instead, as in libpq.
///
/// # Errors
/// Connection lists every place that was tried; Authentication has the server's SQLSTATE and
/// message.
pub fn connect(
    params: &ConnectParams,
    timeout: Duration,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<LoggedIn> {
    let timeout =
        if params.connect_timeout.is_some() { NO_TIMEOUT } else { timeout.min(NO_TIMEOUT) };
    let mut wait = Wait::new(Instant::now() + timeout, keep_waiting);
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

/// One error for all attempts. A server's answer says more than a host that does not answer.
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

/// Shuffles, with the random keys of the standard library's hashes.
fn shuffle<T>(items: &mut [T]) {
    for end in (1..items.len()).rev() {
        let random = usize::try_from(RandomState::new().hash_one(end) >> 1).unwrap_or(0);
        items.swap(end, random % (end + 1));
    }
}
