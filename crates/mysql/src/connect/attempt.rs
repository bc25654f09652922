//! An attempt at one address: socket, TLS, login.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use dray_chooser::TcpInfo;
use dray_net::{Address, Socket, Tls, TlsFailure, Wait};

use super::greeting::Greeting;
use super::login::{Link, compressor, encrypt_request, log_in as log_in_over};
use super::no_connection;
use super::params::{ConnectParams, Place};
use super::tls::{SslMode, failed as tls_failed};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::packets::PacketStream;
use crate::session::Session;

/// Connects, encrypts the connection as the user wants it, and logs in.
pub(super) fn log_in(
    params: &ConnectParams,
    address: &Address,
    wait: &mut Wait<'_>,
) -> Result<Session<Connection>> {
    let place = described(params, address);
    let mut attempt = |mode| {
        let socket = Socket::open(address, &params.tcp, params.read_timeout, wait)
            .map_err(|cause| no_connection(&place, cause))?;
        log_in_to(params, mode, address, socket, wait)
            .map_err(|error| error.after(&format!("can't log in to {place}")))
    };
    let session = match attempt(params.ssl_mode)? {
        None => attempt(SslMode::Disabled)?,
        session => session,
    };
    session.ok_or_else(|| Error::usage("a login without TLS failed by TLS"))
}

/// Logs in over a socket. Returns None with PREFERRED if the server's TLS is too old for this
/// client: whoever asks for no more takes a connection without.
fn log_in_to(
    params: &ConnectParams,
    mode: SslMode,
    address: &Address,
    socket: Socket,
    wait: &mut Wait<'_>,
) -> Result<Option<Session<Connection>>> {
    let mut packets = PacketStream::new(Connection::new(socket));
    let is_trusted = matches!(address, Address::Unix(_)) || mode < SslMode::Required;
    let greeting =
        Greeting::read(&mut packets, is_trusted, &mut || wait.check().map_err(too_late))?;
    let compressor = compressor(&greeting, params.compress, round_trip(packets.stream().socket()))?;
    if let (Address::Tcp(address), Place::Tcp { host, .. }) = (address, &params.place)
        && mode != SslMode::Disabled
    {
        match greeting.has_tls() {
            true => {
                let tls = Tls::prepare(&params.tls, host, address.ip()).map_err(tls_failed)?;
                packets.send(&encrypt_request(&greeting, params, compressor), &mut || {
                    wait.check().map_err(too_late)
                })?;
                let mut is_too_old = false;
                let encrypted = packets.replace(|connection| {
                    let encrypted = connection.into_socket().encrypt(&tls, wait);
                    is_too_old = encrypted
                        .as_ref()
                        .is_err_and(|error| error.failure == TlsFailure::NothingInCommon);
                    Ok(Connection::new(encrypted.map_err(tls_failed)?))
                });
                if is_too_old && mode == SslMode::Preferred {
                    return Ok(None);
                }
                packets = encrypted?;
            }
            // Somebody in between may have taken TLS out of the greeting.
            false if mode >= SslMode::Required => {
                let what = "the server does not have TLS, which ssl-mode asks for";
                return Err(Error::new(ErrorKind::Connection, what)
                    .with_hint("give the server a certificate, or take ssl-mode=PREFERRED"));
            }
            false => {}
        }
    }
    let socket = packets.stream().socket();
    let link = Link { is_tls: socket.is_tls(), is_unix: socket.is_unix() };
    let mut check = || wait.check().map_err(too_late);
    log_in_over(packets, params, &greeting, compressor, link, &mut check).map(Some)
}

/// The round trip, which the kernel has measured by now; zero on this host, or if it does not say.
fn round_trip(socket: &Socket) -> Duration {
    let info = socket.tcp().and_then(|stream| TcpInfo::of(stream.as_fd()).ok());
    info.and_then(|info| info.round_trip()).unwrap_or_default()
}

/// The server's address, for messages.
fn described(params: &ConnectParams, address: &Address) -> String {
    match (&params.place, address) {
        (Place::Tcp { host, .. }, Address::Tcp(address)) if *host != address.ip().to_string() => {
            format!("{} ({})", params.place(), address.ip())
        }
        _ => params.place(),
    }
}

pub(super) fn too_late(cause: io::Error) -> Error {
    Error::new(ErrorKind::Connection, "the server did not finish the login").with_cause(cause)
}
