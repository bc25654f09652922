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

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use dray_net::{Address, Wait, resolve};

pub use self::cancel::Canceller;
use self::greeting::Greeting;
use self::login::Link;
pub use self::params::ConnectParams;
use self::params::Place;
use crate::connection::Connection;
use crate::error::{CancelCheck, Error, ErrorKind, Result};
use crate::packets::PacketStream;
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

/// Logs in over a stream that is connected already, to a Unix socket if the uri names one. There is
/// no TLS, and no compression unless the uri asks for it.
///
/// # Errors
/// When the server refuses, or the stream breaks, or the check ends the wait.
pub fn log_in_over<S: Read + Write>(
    stream: S,
    params: &ConnectParams,
    check: CancelCheck<'_>,
) -> Result<Session<Connection<S>>> {
    let mut packets = PacketStream::new(Connection::new(stream));
    let greeting = Greeting::read(&mut packets, true, check)?;
    let compressor = login::compressor(&greeting, params.compress, Duration::ZERO)?;
    let link = Link { is_tls: false, is_unix: matches!(params.place, Place::Unix(_)) };
    login::log_in(packets, params, &greeting, compressor, link, check)
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A server that sends bursts, whatever it receives. No read goes beyond one.
    struct Script(VecDeque<Vec<u8>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(burst) = self.0.front_mut() else { return Ok(0) };
            let count = burst.len().min(buffer.len());
            buffer[..count].copy_from_slice(&burst[..count]);
            burst.drain(..count);
            if burst.is_empty() {
                self.0.pop_front();
            }
            Ok(count)
        }
    }

    impl Write for Script {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn packet(payload: &[u8], number: u8) -> Vec<u8> {
        let [a, b, c, ..] = payload.len().to_le_bytes();
        [&[a, b, c, number], payload].concat()
    }

    #[test]
    fn logins_over_streams() {
        let greeting = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\
            \xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";
        let ok = b"\0\0\0\x02\0\0\0";
        // The stored form of a compressed packet.
        let compressed = [&[11u8, 0, 0, 1, 0, 0, 0][..], &packet(ok, 1)[..]].concat();
        for (options, answer, compression) in
            [("", packet(ok, 1), None), ("&compress=zlib", compressed, Some("zlib"))]
        {
            let uri = format!("mysql://me:secret@localhost/shop?protocol=tcp{options}");
            let params = ConnectParams::parse_with(&uri, &|_| None).unwrap();
            let bursts = [packet(greeting, 0), packet(ok, 2), answer];
            let mut check = || Ok(());
            let script = Script(bursts.into());
            let mut session = log_in_over(script, &params, &mut check).unwrap();
            assert_eq!(session.stream().compression(), compression);
            assert!(session.ask("DO 0", &mut check).unwrap().is_empty());
        }
    }
}
