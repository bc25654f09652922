//! From a uri to a session that is logged in.

mod attempt;
mod auth;
mod cancel;
mod greeting;
mod login;
mod option_files;
mod params;
mod tls;
mod uri;

use std::io;
use std::time::{Duration, Instant};

use dray_net::{Address, Wait, resolve};

pub use self::cancel::Canceller;
pub use self::params::ConnectParams;
use self::params::Place;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// Stands for an unlimited wait. A clock can still add it.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A session that waits for its first statement.
#[derive(Debug)]
pub struct LoggedIn {
    /// The session.
    pub session: Session<Connection>,
    /// Cancels what the session is doing.
    pub canceller: Canceller,
    /// When the rest of connecting must be done.
    pub deadline: Instant,
    /// The server's uri without user and password, for messages.
    pub place: String,
    /// The user who is logged in.
    pub user: String,
    /// The database, if one is selected.
    pub database: Option<String>,
}

/// Logs in to the first address of the host that accepts it, while `keep_waiting` returns true.
///
/// `timeout` limits all of it: each address gets its share of the time that is left. A
/// `connect-timeout` in the uri limits each address instead.
///
/// # Errors
/// Connection lists every address that was tried; Authentication has the server's SQLSTATE and
/// message.
pub fn connect(
    params: &ConnectParams,
    timeout: Duration,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<LoggedIn> {
    let connect_timeout = params.connect_timeout.map(|timeout| timeout.min(NO_TIMEOUT));
    let timeout = if connect_timeout.is_some() { NO_TIMEOUT } else { timeout.min(NO_TIMEOUT) };
    let mut wait = Wait::new(Instant::now() + timeout, keep_waiting);
    let addresses = match connect_timeout {
        Some(timeout) => addresses(params, &mut wait.until(Instant::now() + timeout)),
        None => addresses(params, &mut wait),
    };
    let addresses = addresses.map_err(|cause| no_connection(&params.place(), cause))?;
    let count = addresses.len();
    let mut failures: Vec<String> = Vec::new();
    for (i, address) in addresses.iter().enumerate() {
        let is_last = i + 1 == count;
        let mut share = match connect_timeout {
            Some(timeout) => wait.until(Instant::now() + timeout),
            None => wait.share(count - i),
        };
        let deadline = share.deadline();
        match attempt::log_in(params, address, &mut share) {
            Ok(mut session) => {
                let mut check = || share.check().map_err(attempt::too_late);
                let canceller = session
                    .set_up(&mut check)
                    .and_then(|()| Canceller::new(params, address, &mut session, &mut check))
                    .map_err(|error| error.after(&format!("can't use {}", params.place())))?;
                return Ok(LoggedIn {
                    canceller,
                    session,
                    deadline,
                    place: params.place(),
                    user: params.user.clone(),
                    database: params.database.clone(),
                });
            }
            // Who has answered will not do better at another address.
            Err(error) if error.kind() != ErrorKind::Connection || error.code().is_some() => {
                return Err(error);
            }
            Err(error) if is_last || wait.check().is_err() => {
                failures.push(error.message_and_cause());
                return Err(Error::new(error.kind(), failures.join("; "))
                    .with_hint(error.hint().unwrap_or_default()));
            }
            Err(error) => failures.push(error.message_and_cause()),
        }
    }
    Err(Error::usage("no address to connect to"))
}

fn addresses(params: &ConnectParams, wait: &mut Wait<'_>) -> io::Result<Vec<Address>> {
    match &params.place {
        Place::Unix(path) => Ok(vec![Address::Unix(path.clone())]),
        Place::Tcp { host, port } => {
            Ok(resolve(host, *port, wait)?.into_iter().map(Address::Tcp).collect())
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
    Error::new(ErrorKind::Connection, format!("can't connect to {place}"))
        .with_cause(cause)
        .with_hint(hint)
}
