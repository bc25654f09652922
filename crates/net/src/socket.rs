//! Sockets to a server: plain TCP, TLS, Unix.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::stream::{Readable, TimedStream, is_timeout, write_all};
use crate::tcp::{TcpParams, connect_tcp, connect_unix};
use crate::tls::{Tls, TlsError, TlsStream};
use crate::wait::Wait;

/// An address of a host.
#[derive(Debug, Clone)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// An address and a port.
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
    /// Connects to one address. Reads and writes fail for good when the server has not moved for
    /// `read_timeout`.
    ///
    /// # Errors
    /// When nobody answers there in time.
    pub fn open(
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

    /// Starts TLS. A Unix socket stays as it is.
    ///
    /// # Errors
    /// When the server is not trusted, or does not finish before the wait ends.
    pub fn encrypt(self, tls: &Tls, wait: &mut Wait<'_>) -> Result<Self, TlsError> {
        Ok(match self.0 {
            Stream::Tcp(stream) => Self(Stream::Tls(Box::new(tls.start(stream, wait)?))),
            other => Self(other),
        })
    }

    /// Fills the buffer while the wait lasts.
    ///
    /// # Errors
    /// When the stream ends or breaks before, or the wait ends.
    pub fn receive(&mut self, buffer: &mut [u8], wait: &mut Wait<'_>) -> io::Result<()> {
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
    ///
    /// # Errors
    /// When the stream breaks or the wait ends.
    pub fn send(&mut self, bytes: &[u8], wait: &mut Wait<'_>) -> io::Result<()> {
        write_all(self, bytes, |error| error, &mut || wait.check())
    }

    /// Whether the socket is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.0, Stream::Tls(_))
    }

    /// Whether the server is on this host, and nobody else can read along.
    pub fn is_unix(&self) -> bool {
        matches!(self.0, Stream::Unix(_))
    }

    /// Ends the connection in both directions, so that the server sees it, too. What fails has
    /// ended already.
    pub fn shut_down(&self) {
        let _ = match &self.0 {
            Stream::Unix(stream) => stream.stream().shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.stream().shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.sock.stream().shutdown(Shutdown::Both),
        };
    }

    /// The stream of TCP, which may carry TLS.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match &self.0 {
            Stream::Unix(_) => None,
            Stream::Tcp(stream) => Some(stream.stream()),
            Stream::Tls(stream) => Some(stream.sock.stream()),
        }
    }

    /// The encrypted stream, if it is one.
    pub fn tls(&self) -> Option<&TlsStream> {
        match &self.0 {
            Stream::Tls(stream) => Some(stream),
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
