//! Sockets to a server: plain TCP, TLS, Unix. Reads give up after a while, so that the caller can look around.

use std::io::{self, IoSlice, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::SockRef;

use crate::error::{Error, ErrorKind, Result};
use crate::uri::{Place, Uri};

/// How long a read waits before the caller may look whether it is still wanted.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// What the kernel may hold of a Unix socket's data.
const UNIX_BUFFER_BYTES: usize = 1 << 20;
/// What it may hold of a pipe's.
const PIPE_BUFFER_BYTES: usize = 512 << 10;
/// While the server fills one, the client empties the other.
const PIPES: usize = 2;
/// So many bytes come through one pipe before it is the next one's turn (protocol.md section 9).
const STRIPE_BYTES: u64 = 256 << 10;

/// A socket to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(TcpStream),
    Unix(Unix),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    pub(crate) fn connect(uri: &Uri, timeout: Duration, ca: Option<&Path>) -> Result<Self> {
        let failed = |cause: io::Error| {
            let hint = match cause.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => "is `dray serve` running there?",
                _ => "",
            };
            Error::new(ErrorKind::Connection, format!("can't connect to {uri}")).cause(cause).hint(hint)
        };
        match &uri.place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(failed)?;
                stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(failed)?;
                // Best effort: the kernel caps it.
                let _ = SockRef::from(&stream).set_recv_buffer_size(UNIX_BUFFER_BYTES);
                Ok(Self::Unix(Unix { stream, pipes: Pipes::offer() }))
            }
            Place::Tcp { host, port, tls } => {
                let stream = connect_tcp(host, *port, timeout).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(failed)?;
                match tls {
                    true => start_tls(stream, host, uri, ca).map(|stream| Self::Tls(Box::new(stream))),
                    false => Ok(Self::Tcp(stream)),
                }
            }
        }
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buffer),
            Self::Unix(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            _ => Ok(()),
        }
    }
}

/// A Unix socket, and the pipes that the server may answer through instead (protocol.md section 9).
#[derive(Debug)]
pub(crate) struct Unix {
    stream: UnixStream,
    /// None once it is known that the server answers over the socket.
    pipes: Option<Pipes>,
}

/// Pipes for the server to lend its memory to.
#[derive(Debug)]
struct Pipes {
    readers: Vec<PipeReader>,
    /// To be sent with the first bytes.
    writers: Vec<PipeWriter>,
    received: u64,
}

impl Pipes {
    /// None where the system has no such pipes to give.
    fn offer() -> Option<Self> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        for _ in 0..PIPES {
            let (reader, writer) = io::pipe().ok()?;
            #[cfg(target_os = "linux")]
            rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BUFFER_BYTES).ok()?;
            rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).ok()?;
            readers.push(reader);
            writers.push(writer);
        }
        Some(Self { readers, writers, received: 0 })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let reader = &mut self.readers[(self.received / STRIPE_BYTES) as usize % PIPES];
        let stripe_rest = STRIPE_BYTES - self.received % STRIPE_BYTES;
        let bytes = buffer.len().min(usize::try_from(stripe_rest).unwrap_or(usize::MAX));
        let read = match reader.read(&mut buffer[..bytes]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_readable(reader)?;
                reader.read(&mut buffer[..bytes])
            }
            read => read,
        }?;
        self.received += read as u64;
        Ok(read)
    }
}

impl Unix {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(pipes) = &mut self.pipes {
            let read = pipes.read(buffer)?;
            if read > 0 || pipes.received > 0 {
                return Ok(read);
            }
            self.pipes = None;
        }
        self.stream.read(buffer)
    }

    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let writers = self.pipes.as_mut().map(|pipes| std::mem::take(&mut pipes.writers)).unwrap_or_default();
        if writers.is_empty() {
            return self.stream.write(buffer);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = writers.iter().map(AsFd::as_fd).collect();
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        Ok(sendmsg(&self.stream, &[IoSlice::new(buffer)], &mut control, SendFlags::NOSIGNAL)?)
    }
}

/// Waits until there is something to read, but no longer than [`READ_TIMEOUT`].
fn wait_readable(pipe: &PipeReader) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: READ_TIMEOUT.subsec_nanos().into() };
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout))?;
    Ok(())
}

/// Whether a read only ran out of patience.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Tries the addresses of a host in turn.
fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("no address for {host}"));
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn start_tls(
    mut stream: TcpStream,
    host: &str,
    uri: &Uri,
    ca: Option<&Path>,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let refused = |what: String| Error::new(ErrorKind::Authentication, what);
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let found = found.map_err(|cause| refused(format!("{}: {cause}", path.display())))?;
            if found.is_empty() {
                return Err(refused(format!("{}: no certificate in this file", path.display())));
            }
            for certificate in found {
                roots.add(certificate).map_err(|cause| refused(format!("{}: {cause}", path.display())))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| refused(cause.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|cause| refused(format!("{host}: {cause}")))?;
    let mut session = ClientConnection::new(Arc::new(config), name).map_err(|cause| refused(cause.to_string()))?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while session.is_handshaking() {
        match session.complete_io(&mut stream) {
            Ok(_) => {}
            Err(cause) if is_timeout(&cause) && Instant::now() < deadline => {}
            Err(cause) => {
                let error = refused(format!("no TLS with {uri}")).cause(cause);
                return Err(error.hint("name the file with the server's authority in the option ca, if it has its own"));
            }
        }
    }
    Ok(StreamOwned::new(session, stream))
}
