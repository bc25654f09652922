//! TLS to a PostgreSQL server.

use std::io;
use std::net::IpAddr;

use dray_net::{Socket, TlsError, TlsFailure, Wait, server_end_point};

use super::params::TlsParams;
use crate::error::{Error, ErrorKind, Result};

/// The protocol's name (RFC 7301), known to PostgreSQL 17. Without SSLRequest the server must agree
/// to it.
pub(super) const ALPN: &[u8] = b"postgresql";

/// How to encrypt a connection to one host.
#[derive(Clone)]
pub(crate) struct Tls {
    tls: dray_net::Tls,
    pub(crate) direct: bool,
}

impl Tls {
    /// Reads the certificates. `host` is the expected name; `address` replaces one that can't be a
    /// server's name.
    pub(crate) fn prepare(params: &TlsParams, host: &str, address: IpAddr) -> Result<Self> {
        let tls = dray_net::Tls::prepare(&params.certificates, host, address).map_err(failed)?;
        Ok(Self { tls, direct: params.direct })
    }

    /// Starts TLS, after asking the server for it unless it starts directly. The socket stays plain
    /// if the server has no TLS.
    pub(crate) fn encrypt(&self, mut socket: Socket, wait: &mut Wait<'_>) -> Result<Socket> {
        if !self.direct && !ask_for_tls(&mut socket, wait)? {
            return Ok(socket);
        }
        let socket = socket.encrypt(&self.tls, wait).map_err(failed)?;
        if self.direct && socket.tls().is_some_and(|tls| tls.conn.alpn_protocol() != Some(ALPN)) {
            let error = Error::new(
                ErrorKind::Connection,
                "the server at the other end of TLS is not PostgreSQL's",
            );
            return Err(error.with_hint("sslnegotiation=direct needs PostgreSQL 17"));
        }
        Ok(socket)
    }
}

/// Sends SSLRequest and reads its answer, which is one byte instead of a message.
fn ask_for_tls(socket: &mut Socket, wait: &mut Wait<'_>) -> Result<bool> {
    let mut request = bytes::BytesMut::new();
    postgres_protocol::message::frontend::ssl_request(&mut request);
    let silent = |cause: io::Error| {
        Error::new(ErrorKind::Connection, "the server did not answer whether it has TLS")
            .with_cause(cause)
    };
    socket.send(&request, wait).map_err(silent)?;
    let mut answer = [0];
    socket.receive(&mut answer, wait).map_err(silent)?;
    match &answer {
        b"S" => Ok(true),
        b"N" => Ok(false),
        // The server's message can't be trusted before it has shown who it is (CVE-2024-10977).
        b"E" => Err(Error::new(
            ErrorKind::Connection,
            "the server answered the request for TLS by an error",
        )),
        [other] => {
            let what = format!(
                "the server answered the request for TLS by byte {other:#04x}, not by S or N"
            );
            Err(Error::new(ErrorKind::Protocol, what).with_hint("is it a PostgreSQL server?"))
        }
    }
}

/// The channel that SCRAM may bind the login to, if the server's certificate has one.
pub(crate) fn channel_binding(socket: &Socket) -> Option<Vec<u8>> {
    server_end_point(socket.tls()?.conn.peer_certificates()?.first()?)
}

/// The error of TLS, with the keywords that may help.
fn failed(error: TlsError) -> Error {
    let (kind, hint) = match error.failure {
        TlsFailure::Connection => (ErrorKind::Connection, error.hint),
        TlsFailure::NoRoots => (
            ErrorKind::Authentication,
            "name it by sslrootcert; sslrootcert=system takes the system's roots",
        ),
        TlsFailure::Authority => (
            ErrorKind::Authentication,
            "sslrootcert names the file with the server's authority; \
             sslrootcert=system takes the system's",
        ),
        TlsFailure::Name => (
            ErrorKind::Authentication,
            "sslmode=verify-full expects the host's name in the server's certificate",
        ),
        TlsFailure::NothingInCommon | TlsFailure::Refused => {
            (ErrorKind::Authentication, error.hint)
        }
    };
    let failed = Error::new(kind, error.message).with_hint(hint);
    match error.cause {
        Some(cause) => failed.with_cause(cause),
        None => failed,
    }
}
