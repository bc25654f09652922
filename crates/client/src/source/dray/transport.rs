//! Sockets to a Dray server: plain TCP, TLS, Unix. Reads and writes give up after [`TICK`], so that
//! the caller can look around.

use std::io::{self, IoSlice, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dray_net::{
    TICK, TcpParams, TimedStream, Wait, connect_tcp, connect_unix, is_timeout, resolve,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::SockRef;

use super::uri::{Place, Uri};
use crate::error::{Error, ErrorKind, Result};

/// The kernel's buffer for a Unix socket.
const UNIX_BUFFER_BYTES: usize = 1 << 20;
/// The kernel's buffer for a pipe.
const PIPE_BUFFER_BYTES: usize = 512 << 10;
/// The server fills one pipe while the client empties the other.
const PIPES: usize = 2;
/// Bytes that come through one pipe before the next one takes over (protocol.md section 9).
const STRIPE_BYTES: u64 = 256 << 10;

/// A socket to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(TimedStream<TcpStream>),
    Unix(TimedStream<Unix>),
    Tls(Box<StreamOwned<ClientConnection, TimedStream<TcpStream>>>),
}

impl Transport {
    /// Connects while the wait lasts. Later reads fail once the server is silent for
    /// `read_timeout`.
    pub(crate) fn connect(
        uri: &Uri,
        ca: Option<&Path>,
        read_timeout: Option<Duration>,
        wait: &mut Wait<'_>,
    ) -> Result<Self> {
        let failed = |cause: io::Error| {
            let hint = match cause.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                    "is `dray serve` running there?"
                }
                _ => "",
            };
            Error::new(ErrorKind::Connection, format!("can't connect to {uri}"))
                .with_cause(cause)
                .with_hint(hint)
        };
        match &uri.place {
            Place::Unix(path) => {
                let stream = connect_unix(path, wait).map_err(failed)?;
                Ok(Self::over_unix(stream, read_timeout))
            }
            Place::Tcp { host, port, tls } => {
                let stream = connect_host(host, *port, wait).map_err(failed)?;
                let stream = TimedStream::new(stream, read_timeout);
                match tls {
                    true => start_tls(stream, host, uri, ca, wait)
                        .map(|stream| Self::Tls(Box::new(stream))),
                    false => Ok(Self::Tcp(stream)),
                }
            }
        }
    }

    /// Connects to the local socket of this name, if a process of this user listens there
    /// (protocol.md section 11).
    #[cfg(target_os = "linux")]
    pub(crate) fn connect_local(
        name: &str,
        read_timeout: Option<Duration>,
        wait: &mut Wait<'_>,
    ) -> io::Result<Self> {
        // A byte 0 before the name stands for the abstract namespace.
        let stream = connect_unix(Path::new(&format!("\0{name}")), wait)?;
        if super::peer::peer_user(&stream)? != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Self::over_unix(stream, read_timeout))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn connect_local(
        _: &str,
        _: Option<Duration>,
        _: &mut Wait<'_>,
    ) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn over_unix(stream: UnixStream, read_timeout: Option<Duration>) -> Self {
        // Best effort: the kernel caps it.
        let _ = SockRef::from(&stream).set_recv_buffer_size(UNIX_BUFFER_BYTES);
        Self::Unix(TimedStream::new(Unix { stream, pipes: Pipes::offer() }, read_timeout))
    }

    /// What the bytes travel over, in words.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "over TCP",
            Self::Unix(_) => "over a Unix socket",
            Self::Tls(_) => "over TLS",
        }
    }

    /// Whether this is TCP without TLS, and both ends have the same host's addresses.
    pub(crate) fn is_plain_on_this_host(&self) -> bool {
        let Self::Tcp(line) = self else { return false };
        let (Ok(peer), Ok(own)) = (line.stream().peer_addr(), line.stream().local_addr()) else {
            return false;
        };
        peer.ip().to_canonical().is_loopback() || peer.ip() == own.ip()
    }

    /// Whether nobody on a network can see the bytes.
    pub(crate) fn is_private(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Tls(_) => true,
            Self::Tcp(line) => {
                line.stream().peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
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
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

/// A Unix socket, and the pipes that the server may answer through instead (protocol.md section 9).
#[derive(Debug)]
pub(crate) struct Unix {
    stream: UnixStream,
    /// None once the server has answered over the socket.
    pipes: Option<Pipes>,
}

/// Pipes that the server can lend its memory to.
#[derive(Debug)]
struct Pipes {
    readers: Vec<PipeReader>,
    /// Sent with the first bytes.
    writers: Vec<PipeWriter>,
    received: u64,
}

impl Pipes {
    /// Makes the pipes; None if the system can't.
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

impl AsFd for Unix {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Read for Unix {
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
}

impl Write for Unix {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(writers) = self
            .pipes
            .as_mut()
            .map(|pipes| &mut pipes.writers)
            .filter(|writers| !writers.is_empty())
        else {
            return self.stream.write(buffer);
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = writers.iter().map(AsFd::as_fd).collect();
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent =
            sendmsg(&self.stream, &[IoSlice::new(buffer)], &mut control, SendFlags::NOSIGNAL)?;
        writers.clear();
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for data, at most for [`TICK`].
fn wait_readable(pipe: &PipeReader) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout))?;
    Ok(())
}

/// Tries the addresses of a host in turn, each for its share of the time.
fn connect_host(host: &str, port: u16, wait: &mut Wait<'_>) -> io::Result<TcpStream> {
    let addresses = resolve(host, port, wait)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for (i, address) in addresses.iter().enumerate() {
        match connect_tcp(*address, &TcpParams::default(), &mut wait.share(addresses.len() - i)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
        wait.check()?;
    }
    Err(last)
}

fn start_tls(
    mut stream: TimedStream<TcpStream>,
    host: &str,
    uri: &Uri,
    ca: Option<&Path>,
    wait: &mut Wait<'_>,
) -> Result<StreamOwned<ClientConnection, TimedStream<TcpStream>>> {
    let refused = |what: String| Error::new(ErrorKind::Authentication, what);
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let found = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let found = found.map_err(|cause| refused(format!("{}: {cause}", path.display())))?;
            if found.is_empty() {
                return Err(refused(format!("{}: no certificate in this file", path.display())));
            }
            for certificate in found {
                roots
                    .add(certificate)
                    .map_err(|cause| refused(format!("{}: {cause}", path.display())))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| refused(cause.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|cause| refused(format!("{host}: {cause}")))?;
    let mut session = ClientConnection::new(Arc::new(config), name)
        .map_err(|cause| refused(cause.to_string()))?;
    let late = |cause| {
        let error =
            Error::new(ErrorKind::Connection, format!("no TLS with {uri}")).with_cause(cause);
        error.with_hint("is a dray server there, and TLS the same at both ends?")
    };
    while session.is_handshaking() {
        match session.complete_io(&mut stream) {
            // A server that sends a byte now and then does not extend the wait.
            Ok(_) => wait.check().map_err(late)?,
            Err(cause) if is_timeout(&cause) => wait.check().map_err(late)?,
            Err(cause) => {
                let error = refused(format!("no TLS with {uri}")).with_cause(cause);
                return Err(error.with_hint(
                    "name the file with the server's authority in the option ca, if it has its own",
                ));
            }
        }
    }
    Ok(StreamOwned::new(session, stream))
}
