//! Sockets to a PostgreSQL server: plain TCP, TLS, Unix.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::tls::{self, Tls, TlsStream};
use crate::error::{Error, ErrorKind, Result};
use crate::net::{
    Readable, TcpParams, TimedStream, Wait, connect_tcp, connect_unix, is_timeout, write_all,
};

/// An address of a host.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A blocking socket to a server. A read or write that does not move for 50 ms fails with
/// `WouldBlock` and can be retried.
#[derive(Debug)]
pub struct Socket(Stream);

#[derive(Debug)]
enum Stream {
    Unix(TimedStream<UnixStream>),
    Tcp(TimedStream<TcpStream>),
    Tls(Box<TlsStream>),
}

impl Socket {
    /// Connects to one address.
    pub(crate) fn open(
        address: &Address,
        params: &TcpParams,
        read_timeout: Option<Duration>,
        wait: &mut Wait<'_>,
    ) -> io::Result<Self> {
        Ok(Self(match address {
            Address::Unix(path) => {
                Stream::Unix(TimedStream::new(connect_unix(path, wait)?, read_timeout))
            }
            Address::Tcp(address) => {
                Stream::Tcp(TimedStream::new(connect_tcp(*address, params, wait)?, read_timeout))
            }
        }))
    }

    /// Starts TLS, after asking the server for it unless it starts directly. The socket stays plain
    /// if the server has no TLS.
    pub(crate) fn encrypt(mut self, tls: &Tls, wait: &mut Wait<'_>) -> Result<Self> {
        if !tls.direct && !self.ask_for_tls(wait)? {
            return Ok(self);
        }
        match self.0 {
            Stream::Tcp(stream) => {
                tls.start(stream, wait).map(|stream| Self(Stream::Tls(Box::new(stream))))
            }
            other => Ok(Self(other)),
        }
    }

    /// Sends SSLRequest and reads its answer, which is one byte instead of a message.
    fn ask_for_tls(&mut self, wait: &mut Wait<'_>) -> Result<bool> {
        let mut request = bytes::BytesMut::new();
        postgres_protocol::message::frontend::ssl_request(&mut request);
        let failed = |cause: io::Error| {
            Error::new(ErrorKind::Connection, "the server did not answer whether it has TLS")
                .with_cause(cause)
        };
        self.send(&request, wait).map_err(failed)?;
        let mut answer = [0];
        self.receive(&mut answer, wait).map_err(failed)?;
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

    /// Fills the buffer while the wait lasts.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], wait: &mut Wait<'_>) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    ));
                }
                Ok(read) => filled += read,
                Err(error) if is_timeout(&error) => wait.check()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all bytes while the wait lasts.
    pub(crate) fn send(&mut self, bytes: &[u8], wait: &mut Wait<'_>) -> io::Result<()> {
        write_all(self, bytes, |error| error, &mut || wait.check())
    }

    /// Whether the socket is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.0, Stream::Tls(_))
    }

    /// The channel that SCRAM may bind the login to.
    pub(crate) fn channel_binding(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Stream::Tls(stream) => tls::channel_binding(stream),
            _ => None,
        }
    }
}

impl Readable for Socket {
    fn is_readable(&self) -> bool {
        match &self.0 {
            Stream::Unix(stream) => stream.is_readable(),
            Stream::Tcp(stream) => stream.is_readable(),
            // What has been decrypted already waits for the next one.
            Stream::Tls(stream) => stream.sock.is_readable(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Unix(stream) => stream.write(buffer),
            Stream::Tcp(stream) => stream.write(buffer),
            Stream::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::Tls(stream) => stream.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
        }
    }
}
