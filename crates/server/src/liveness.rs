//! Detects clients that vanished without closing their connection.
//!
//! On an idle connection the kernel's keepalive probes detect that. While sent data is not
//! acknowledged, the kernel does not probe but retransmits, for about a quarter of an hour.
//! `TCP_USER_TIMEOUT` would shorten that, but it also ends connections whose client acknowledges
//! everything and has a full receive buffer, for example a client that pauses between two batches
//! (`tcp_probe_timer` in the kernel's net/ipv4/tcp_timer.c). So the server checks by itself.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::tcp::Presence;

/// Keepalive: the idle time before the first probe, the time between probes, and the number of
/// unanswered probes. As in the client (crates/postgres/src/net/tcp.rs), a vanished peer is
/// detected within about a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 3;
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);
/// Checks within that time.
const CHECKS: u32 = 6;

/// The read half of a TCP connection. Reading fails once the client has vanished.
///
/// The server reads from a client at all times, also while it sends, so it always notices.
pub(crate) struct LivenessReader<R> {
    read: R,
    /// None if the kernel doesn't report acknowledgements.
    presence: Option<Presence>,
    check_interval: Duration,
    next_check: Pin<Box<Sleep>>,
    /// Consecutive checks at which nothing had been acknowledged since the one before.
    checks_failed: u32,
}

impl<R> LivenessReader<R> {
    pub(crate) fn new(read: R, presence: Option<Presence>) -> Self {
        Self::with_max(read, presence, UNACKNOWLEDGED_MAX)
    }

    fn with_max(read: R, presence: Option<Presence>, unacknowledged_max: Duration) -> Self {
        let check_interval = unacknowledged_max / CHECKS;
        let next_check = Box::pin(sleep(check_interval));
        Self { read, presence, check_interval, next_check, checks_failed: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LivenessReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(read) = Pin::new(&mut this.read).poll_read(cx, buffer) {
            return Poll::Ready(read);
        }
        let Some(presence) = &this.presence else { return Poll::Pending };
        while this.next_check.as_mut().poll(cx).is_ready() {
            let failed = presence.unacknowledged().is_some_and(|time| time >= this.check_interval);
            this.checks_failed = if failed { this.checks_failed + 1 } else { 0 };
            // One more than `CHECKS`: at the first failure the data may have just been sent.
            if this.checks_failed > CHECKS {
                let time = this.check_interval * CHECKS;
                let what = format!("the client has acknowledged nothing for {time:?}");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)));
            }
            this.next_check.as_mut().reset(Instant::now() + this.check_interval);
        }
        Poll::Pending
    }
}

/// Enables the kernel's keepalive probes.
pub(crate) fn enable_keepalive(stream: &impl AsFd) -> io::Result<()> {
    let probes = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_COUNT);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;
    use std::net::TcpStream as Client;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const MAX: Duration = Duration::from_millis(600);

    async fn connected() -> (Client, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client =
            tokio::task::spawn_blocking(move || Client::connect(address).unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn the_kernel_probes() {
        let (_client, server) = connected().await;
        enable_keepalive(&server).unwrap();
        let socket = SockRef::from(&server);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_COUNT);
    }

    #[tokio::test]
    async fn a_client_that_vanished_is_noticed() {
        let (client, server) = connected().await;
        let presence = Presence::of(&server);
        let (read, mut write) = server.into_split();
        let mut read = LivenessReader::with_max(read, presence, MAX);
        vanish(&client);
        write.write_all(b"anybody there?").await.unwrap();
        let noticed = read.read_u8().await.unwrap_err();
        assert_eq!(noticed.kind(), io::ErrorKind::TimedOut, "{noticed}");
    }

    /// A client may pause while it reads a result.
    #[tokio::test]
    async fn a_client_that_pauses_is_there() {
        const BYTES: usize = 32 << 20;
        let (client, server) = connected().await;
        let presence = Presence::of(&server);
        let (read, mut write) = server.into_split();
        let mut read = LivenessReader::with_max(read, presence, MAX);
        let written = tokio::spawn(async move {
            write.write_all(&vec![7; BYTES]).await.unwrap();
            write
        });
        let pause = tokio::time::timeout(MAX * 5, read.read_u8()).await;
        assert!(pause.is_err() && !written.is_finished());
        let reader = tokio::task::spawn_blocking(move || {
            let mut buffer = vec![0; BYTES];
            std::io::Read::read_exact(&mut { client }, &mut buffer)
                .map(|()| buffer.iter().all(|byte| *byte == 7))
        });
        assert!(reader.await.unwrap().unwrap());
        written.await.unwrap();
    }

    /// Drops every packet to this socket before it is acknowledged.
    #[allow(unsafe_code, reason = "setsockopt takes a pointer to the filter")]
    fn vanish(client: &Client) {
        let mut nothing =
            libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        let bytes = size_of_val(&program) as libc::socklen_t;
        // SAFETY: `program` and the filter that it points to live until the call returns, and the
        // kernel copies both.
        let answer = unsafe {
            let client = std::os::fd::AsRawFd::as_raw_fd(client);
            libc::setsockopt(
                client,
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                bytes,
            )
        };
        assert_eq!(answer, 0);
    }
}
