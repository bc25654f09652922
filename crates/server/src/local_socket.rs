//! The Unix socket that clients of this host and user move to from TCP: `spec/protocol.md`
//! section 11. Its name is in Linux's abstract namespace, so no file remains of it.

use std::io;

use dray_wire::{INSTANCE_BYTES, Instance};
use tokio::net::{UnixListener, UnixStream};
use tracing::{debug, warn};

use crate::listen::listen_unix;
use crate::options::ServeOptions;

/// A server's local socket.
pub(crate) struct LocalSocket {
    listener: UnixListener,
    instance: Instance,
}

impl LocalSocket {
    /// Binds the local socket of a server with these options; None if it must not have one, or the
    /// system has no such sockets. A connection that a proxy makes is not its client's: the client
    /// must not get around the proxy.
    pub(crate) fn bind(options: &ServeOptions) -> Option<Self> {
        let is_plain_tcp = !options.listen.is_empty() && options.tls.is_none();
        if !cfg!(target_os = "linux") || !is_plain_tcp || options.behind_proxy {
            return None;
        }
        let bound = Self::bind_random();
        bound.inspect_err(|cause| warn!("clients on this host stay on TCP: {cause}")).ok()
    }

    fn bind_random() -> io::Result<Self> {
        let mut bytes = [0; INSTANCE_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
        let instance = Instance::new(bytes);
        let name = instance.socket_name().ok_or(io::ErrorKind::InvalidData)?;
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        // A byte 0 before the name stands for the abstract namespace.
        socket.bind(&socket2::SockAddr::unix(format!("\0{name}"))?)?;
        Ok(Self { listener: listen_unix(socket)?, instance })
    }

    pub(crate) fn instance(&self) -> Instance {
        self.instance
    }

    /// The next connection of the server's own user; others are closed. Root is refused, too: root
    /// in a container that shares the host's network can reach the socket. Cancel safe.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let user = stream.peer_cred().map(|peer| peer.uid());
            if user.as_ref().is_ok_and(|user| *user == rustix::process::geteuid().as_raw()) {
                return Ok(stream);
            }
            debug!("closed a connection to the local socket by {user:?}");
        }
    }
}
