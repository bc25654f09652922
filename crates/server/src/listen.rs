//! Listeners, and the set-up of accepted sockets.

use std::fs::{File, TryLockError};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use chrono::{DateTime, Utc};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use crate::certificate::Validity;
use crate::liveness::{LivenessReader, enable_keepalive};
use crate::local_socket::LocalSocket;
use crate::options::ServeError;
use crate::pipes::receive_first;
use crate::slots::Peer;
use crate::socket::{OpenSocket, PeerLocality, ReadHalf, WriteHalf};
use crate::tcp::{Presence, TcpMonitor};

/// The send buffer of a Unix socket. It causes fewer wake-ups than the kernel's default of 208 KiB.
const UNIX_SEND_BUFFER_BYTES: usize = 1 << 20;

/// How often, and after which pause, a server tries to lock the folder of its Unix socket. Others
/// hold the lock while they start; whoever holds it longer is no server.
const LOCK_TRIES: usize = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Connections that wait to be accepted. The kernel caps the number.
const UNIX_BACKLOG: i32 = 1024;

/// A listening socket.
pub(crate) enum Listener {
    Tcp { listener: TcpListener, tls: Option<TlsAcceptor> },
    // Dropped in this order: once the socket is closed, the file may be another server's.
    Unix { file: SocketFile, listener: UnixListener },
    Local(LocalSocket),
}

/// The file of a Unix socket. Dropping it removes the file, if it is still the same.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The numbers of its device and its inode.
    id: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), id: file_id(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it, and another server may have made one of its own.
        if file_id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn file_id(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// An accepted connection, before TLS and hello.
pub(crate) enum Incoming {
    Tcp(TcpStream, SocketAddr, Option<TlsAcceptor>),
    Unix(UnixStream),
}

impl Listener {
    pub(crate) async fn tcp(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await.map_err(|cause| {
            ServeError::new(format!("can't listen on tcp://{address}: {cause}"))
        })?;
        // Connections inherit the listener's congestion control. One that started with BBR would
        // keep its pacing under any other.
        prefer_congestion(&SockRef::from(&listener), SAME_HOST_CONTROLS);
        Ok(Self::Tcp { listener, tls })
    }

    pub(crate) async fn unix(path: &Path) -> Result<Self, ServeError> {
        let failed = |cause: io::Error| {
            ServeError::new(format!("can't listen on {}: {cause}", path.display()))
        };
        // Of two servers that start at once, each could take the other's socket for a stale one,
        // which does not listen yet.
        let _lock = lock_folder(path).await;
        if path.exists() {
            use std::os::unix::fs::FileTypeExt;
            if !std::fs::metadata(path).map_err(failed)?.file_type().is_socket() {
                return Err(ServeError::new(format!(
                    "{} exists and is not a socket",
                    path.display()
                )));
            }
            match UnixStream::connect(path).await {
                Ok(_) => {
                    return Err(ServeError::new(format!(
                        "another server listens on {}",
                        path.display()
                    )));
                }
                // The socket of a server that was killed.
                Err(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(failed)?;
                }
                // The server may only be busy, or another user's.
                Err(cause) => {
                    return Err(ServeError::new(format!(
                        "can't tell whether a server listens on {}: {cause}; if none does, remove \
                         the file",
                        path.display()
                    )));
                }
            }
        }
        let listener = bind_private(path).map_err(failed)?;
        Ok(Self::Unix { file: SocketFile::new(path).map_err(failed)?, listener })
    }

    /// The URI that clients connect to; None for the local socket, which they find by themselves.
    pub(crate) fn uri(&self) -> Option<String> {
        Some(match self {
            Self::Tcp { listener, tls } => {
                let scheme = if tls.is_some() { "drays" } else { "dray" };
                listener
                    .local_addr()
                    .map_or_else(|_| scheme.to_owned(), |address| format!("{scheme}://{address}"))
            }
            Self::Unix { file, .. } => format!("dray+unix://{}", file.path.display()),
            Self::Local(_) => return None,
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Self::Tcp { listener, tls } => {
                let (stream, peer) = listener.accept().await?;
                Ok(Incoming::Tcp(stream, peer, tls.clone()))
            }
            Self::Unix { listener, .. } => Ok(Incoming::Unix(listener.accept().await?.0)),
            Self::Local(socket) => Ok(Incoming::Unix(socket.accept().await?)),
        }
    }
}

/// Locks the folder of a socket until the file is closed. None if it can't be locked: it may not be
/// read, or its file system has no locks.
async fn lock_folder(socket: &Path) -> Option<File> {
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    for _ in 0..LOCK_TRIES {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// Creates a Unix socket that only this user can connect to, from the moment its file exists:
/// without a token, access to the file is what admits a client.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    // Linux gives the file the socket's mode (net/unix/af_unix.c: unix_bind_bsd).
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(0o600)).map_err(io::Error::from)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    // The folder's default access control list may have granted others more.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listen_unix(socket)
}

/// Listens on a bound Unix socket.
pub(crate) fn listen_unix(socket: socket2::Socket) -> io::Result<UnixListener> {
    socket.listen(UNIX_BACKLOG)?;
    socket.set_nonblocking(true)?;
    UnixListener::from_std(std::os::unix::net::UnixListener::from(socket))
}

impl Incoming {
    pub(crate) fn peer(&self) -> String {
        match self {
            Self::Tcp(_, peer, _) => peer.to_string(),
            Self::Unix(_) => "unix".to_owned(),
        }
    }

    /// The peer whose slots it takes. Behind a proxy, the peers of loopback connections are
    /// unknown.
    pub(crate) fn slot_peer(&self, behind_proxy: bool) -> Peer {
        match self {
            Self::Tcp(_, peer, _) if behind_proxy && peer.ip().to_canonical().is_loopback() => {
                Peer::Proxy
            }
            Self::Tcp(_, peer, _) => Peer::at(peer.ip()),
            Self::Unix(_) => Peer::Unix,
        }
    }

    /// Sets up the socket and does the TLS handshake. `deadline` is that of the client's hello.
    /// With `behind_proxy`, clients over loopback count as remote.
    pub(crate) async fn open(
        self,
        deadline: Instant,
        behind_proxy: bool,
    ) -> io::Result<OpenSocket> {
        let (stream, peer, tls) = match self {
            Self::Unix(stream) => return open_unix(stream, deadline).await,
            Self::Tcp(stream, peer, tls) => (stream, peer, tls),
        };
        let over_loopback = is_same_host(peer.ip(), stream.local_addr()?.ip());
        tune(&stream)?;
        let loopback = over_loopback && !behind_proxy;
        let tcp = match loopback {
            true => None,
            false => TcpMonitor::of(&stream, (!over_loopback).then_some(peer.ip())),
        };
        let presence = Presence::of(&stream);
        let (read, write, locality): (ReadHalf, _, _) = match tls {
            Some(acceptor) => {
                let accepted = timeout_at(deadline, acceptor.accept(stream)).await;
                let (read, write) =
                    tokio::io::split(accepted.map_err(|_| io::ErrorKind::TimedOut)??);
                let read = Box::new(LivenessReader::new(read, presence));
                (read, WriteHalf::Socket(Box::new(write)), PeerLocality::Tls { loopback })
            }
            None => {
                let (read, write) = stream.into_split();
                let read = Box::new(LivenessReader::new(read, presence));
                let locality = if loopback { PeerLocality::Loopback } else { PeerLocality::Remote };
                (read, WriteHalf::Socket(Box::new(write)), locality)
            }
        };
        Ok(OpenSocket { read, received: BytesMut::new(), write, locality, tcp })
    }
}

async fn open_unix(stream: UnixStream, deadline: Instant) -> io::Result<OpenSocket> {
    // After the deadline the connection goes on without bytes: waiting for the hello then fails
    // with an error message.
    let first = timeout_at(deadline, receive_first(&stream)).await;
    let (received, pipes) = first.unwrap_or_else(|_| Ok((BytesMut::new(), None)))?;
    // Best effort: the kernel caps the size.
    let _ = SockRef::from(&stream).set_send_buffer_size(UNIX_SEND_BUFFER_BYTES);
    let (read, write) = stream.into_split();
    let (read, write): (_, WriteHalf) = match pipes {
        Some(pipes) => {
            write.forget();
            (read, WriteHalf::Pipes(pipes))
        }
        None => (read, WriteHalf::Socket(Box::new(write))),
    };
    let locality = PeerLocality::Unix;
    Ok(OpenSocket { read: Box::new(read), received, write, locality, tcp: None })
}

fn is_same_host(peer: IpAddr, local: IpAddr) -> bool {
    peer.is_loopback() || peer == local
}

/// Congestion controls for clients on the same host, where BBR's pacing costs half the rate.
const SAME_HOST_CONTROLS: &[&[u8]] = &[b"cubic", b"reno"];

/// Sets the first of these congestion controls that the kernel has, or keeps the default.
fn prefer_congestion(socket: &SockRef<'_>, controls: &[&[u8]]) {
    let _ = controls.iter().any(|name| socket.set_tcp_congestion(name).is_ok());
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    enable_keepalive(stream)
}

/// Reads a certificate chain and its key, both PEM. Also returns when the first of the chain's
/// certificates expires.
pub(crate) fn tls_acceptor(
    certificates: &Path,
    key: &Path,
) -> Result<(TlsAcceptor, Option<DateTime<Utc>>), ServeError> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let failed = |path: &Path, cause: &dyn std::fmt::Display| {
        ServeError::new(format!("{}: {cause}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| failed(certificates, &cause))?;
    if chain.is_empty() {
        return Err(failed(certificates, &"no certificate in this file"));
    }
    let valid: Vec<_> = chain.iter().filter_map(|certificate| Validity::of(certificate)).collect();
    let fault = valid.iter().find_map(|validity| validity.fault(Utc::now()));
    if let Some(fault) = fault {
        warn!(
            "the certificate in {} {fault}; clients will refuse it, so replace it",
            certificates.display()
        );
    }
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|cause| failed(key, &cause))?;
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(|cause| failed(certificates, &cause))?
    .with_no_client_auth()
    .with_single_cert(chain, key_der)
    .map_err(|cause| failed(certificates, &cause))?;
    Ok((TlsAcceptor::from(Arc::new(config)), valid.iter().map(|validity| validity.ends).min()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_unix_socket_is_private_from_its_first_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dray.sock");
        let watch = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut seen = 0;
                while seen < 200 {
                    if let Ok(metadata) = std::fs::metadata(&path) {
                        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
                        seen += 1;
                    }
                }
            }
        });
        // On a busy machine the watcher misses most of the sockets' short lives.
        while !watch.is_finished() {
            let listener = Listener::unix(&path).await.unwrap();
            UnixStream::connect(&path).await.unwrap();
            drop(listener);
        }
        watch.join().unwrap();
    }

    fn refusal(listened: Result<Listener, ServeError>) -> String {
        listened.err().unwrap().to_string()
    }

    #[tokio::test]
    async fn a_server_that_is_too_busy_to_accept_keeps_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dray.sock");
        let socket = || {
            let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
            let socket = socket.unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let address = socket2::SockAddr::unix(&path).unwrap();
        let busy = socket();
        busy.bind(&address).unwrap();
        busy.listen(0).unwrap();
        let mut clients = Vec::new();
        let full = loop {
            let client = socket();
            match client.connect(&address) {
                Ok(()) => clients.push(client),
                Err(cause) => break cause,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let kept = file_id(&path).unwrap();
        let refused = refusal(Listener::unix(&path).await);
        assert!(refused.starts_with("can't tell whether a server listens on "), "{refused}");
        assert_eq!(file_id(&path).unwrap(), kept);
        // One that accepts is named as such.
        busy.accept().unwrap();
        let refused = refusal(Listener::unix(&path).await);
        assert!(refused.starts_with("another server listens on "), "{refused}");
        // One that is gone leaves its file to the next one.
        drop((busy, clients));
        let next = Listener::unix(&path).await.unwrap();
        UnixStream::connect(&path).await.unwrap();
        drop(next);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn servers_that_start_at_once_look_at_a_stale_socket_one_after_the_other() {
        use std::os::unix::net::UnixListener as StdListener;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dray.sock");
        drop(StdListener::bind(&path).unwrap());
        // Another one has the lock, and replaces the socket while the first one starts.
        let lock = File::open(folder.path()).unwrap();
        lock.lock().unwrap();
        let other = async {
            tokio::task::yield_now().await;
            std::fs::remove_file(&path).unwrap();
            let listener = StdListener::bind(&path).unwrap();
            drop(lock);
            listener
        };
        let (started, _listener) = tokio::join!(Listener::unix(&path), other);
        let refused = refusal(started);
        assert!(refused.starts_with("another server listens on "), "{refused}");
    }

    #[tokio::test]
    async fn a_listener_removes_no_file_but_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dray.sock");
        let first = Listener::unix(&path).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = Listener::unix(&path).await.unwrap();
        drop(first);
        UnixStream::connect(&path).await.unwrap();
        drop(second);
        assert!(!path.exists());
    }
}
