//! Sockets to a PostgreSQL server: plain TCP, TLS, Unix. Reads give up after a while, so that the caller can look around.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::error::{Error, ErrorKind, Result};
use crate::params::TcpParams;
use crate::tls::{self, Tls, TlsStream};

/// How long a read waits before the caller may look whether it is still wanted.
const READ_TIMEOUT: Duration = Duration::from_millis(50);

/// One place that a host's name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A blocking socket to a server. A read that gets nothing for 50 ms fails by `WouldBlock` or `TimedOut`; it may be
/// tried again.
#[derive(Debug)]
pub struct Socket(Stream);

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
}

impl Socket {
    /// Connects to one address.
    pub(crate) fn open(address: &Address, params: &TcpParams, deadline: Instant) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(READ_TIMEOUT))?;
                Ok(Self(Stream::Unix(stream)))
            }
            Address::Tcp(address) => {
                let rest = deadline.saturating_duration_since(Instant::now());
                // No time at all would be refused as an argument.
                let stream = TcpStream::connect_timeout(address, rest.max(Duration::from_millis(1)))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(READ_TIMEOUT))?;
                if let Some(keepalive) = &params.keepalive {
                    let socket = SockRef::from(&stream);
                    socket.set_keepalive(true)?;
                    socket.set_tcp_keepalive(keepalive)?;
                }
                // Only Linux has it; libpq, too, does without elsewhere.
                #[cfg(target_os = "linux")]
                if let Some(timeout) = params.user_timeout {
                    SockRef::from(&stream).set_tcp_user_timeout(Some(timeout))?;
                }
                Ok(Self(Stream::Tcp(stream)))
            }
        }
    }

    /// Asks the server for TLS, if it is not begun at once. What is left is plain if the server has none.
    pub(crate) fn encrypt(mut self, tls: &Tls, deadline: Instant) -> Result<Self> {
        if !tls.direct && !self.ask_for_tls(deadline)? {
            return Ok(self);
        }
        match self.0 {
            Stream::Tcp(stream) => tls.start(stream, deadline).map(|stream| Self(Stream::Tls(Box::new(stream)))),
            other => Ok(Self(other)),
        }
    }

    /// SSLRequest and its answer, which is one byte and no message.
    fn ask_for_tls(&mut self, deadline: Instant) -> Result<bool> {
        let mut request = bytes::BytesMut::new();
        postgres_protocol::message::frontend::ssl_request(&mut request);
        let failed = |cause: io::Error| {
            Error::new(ErrorKind::Connection, "the server did not answer whether it has TLS").cause(cause)
        };
        self.write_all(&request).map_err(failed)?;
        let mut answer = [0];
        self.read_until(&mut answer, deadline).map_err(failed)?;
        match &answer {
            b"S" => Ok(true),
            b"N" => Ok(false),
            // The server's reason is not to be trusted before it has shown who it is (CVE-2024-10977).
            b"E" => Err(Error::new(ErrorKind::Connection, "the server answered the request for TLS by an error")),
            [other] => {
                let what = format!("the server answered the request for TLS by byte {other:#04x}, not by S or N");
                Err(Error::new(ErrorKind::Protocol, what).hint("is it a PostgreSQL server?"))
            }
        }
    }

    /// Fills the buffer; the time that is left until the deadline may pass.
    pub(crate) fn read_until(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !is_timeout(&error) => return Err(error),
                Err(_) if Instant::now() < deadline => {}
                Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the time to connect is over")),
            }
        }
        Ok(())
    }

    /// Whether what goes through is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.0, Stream::Tls(_))
    }

    /// What SCRAM may bind the login to.
    pub(crate) fn channel_binding(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Stream::Tls(stream) => tls::channel_binding(stream),
            _ => None,
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
            _ => Ok(()),
        }
    }
}

/// Whether a read only ran out of patience.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
