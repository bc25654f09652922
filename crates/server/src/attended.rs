//! Clients that have vanished without a word.
//!
//! Where nothing is under way to one, the kernel's own probes find that out. What has been sent is
//! not probed for, but sent again, for about a quarter of an hour; and `TCP_USER_TIMEOUT`, which
//! would shorten that, also ends connections whose client acknowledges everything and has no room
//! for more, as one has that pauses between two batches (`tcp_probe_timer` in the kernel's
//! net/ipv4/tcp_timer.c). So the server looks itself.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::way::Presence;

/// These are the client's (crates/postgres/src/net/tcp.rs): a peer that is gone is noticed within
/// about a minute. The first probe, the time between two, and how many get no answer;
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 3;
/// and how long sent bytes may stay without an acknowledgement.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);
/// How often it is looked, in that time.
const LOOKS: u32 = 6;

/// What a client says over TCP: an error once it has vanished. A server listens all the time.
pub(crate) struct Attended<R> {
    read: R,
    /// None where the kernel does not tell.
    presence: Option<Presence>,
    /// The time from one look to the next, and the next one.
    pause: Duration,
    look: Pin<Box<Sleep>>,
    /// At so many looks, one after the other, nothing had come since the one before.
    in_vain: u32,
}

impl<R> Attended<R> {
    pub(crate) fn new(read: R, presence: Option<Presence>) -> Self {
        Self::with_max(read, presence, UNACKNOWLEDGED_MAX)
    }

    fn with_max(read: R, presence: Option<Presence>, unacknowledged_max: Duration) -> Self {
        let pause = unacknowledged_max / LOOKS;
        Self { read, presence, pause, look: Box::pin(sleep(pause)), in_vain: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Attended<R> {
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
        while this.look.as_mut().poll(cx).is_ready() {
            let is_in_vain = presence.unacknowledged().is_some_and(|time| time >= this.pause);
            this.in_vain = if is_in_vain { this.in_vain + 1 } else { 0 };
            // At the first one, what is not acknowledged may have been sent just before it.
            if this.in_vain > LOOKS {
                let what =
                    format!("the client has acknowledged nothing for {:?}", this.pause * LOOKS);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)));
            }
            this.look.as_mut().reset(Instant::now() + this.pause);
        }
        Poll::Pending
    }
}

/// Has the kernel probe for a client that nothing is sent to.
pub(crate) fn keep_alive(stream: &impl AsFd) -> io::Result<()> {
    let probes = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_COUNT);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "tests")]
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
        keep_alive(&server).unwrap();
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
        let mut read = Attended::with_max(read, presence, MAX);
        vanish(&client);
        write.write_all(b"anybody there?").await.unwrap();
        let noticed = read.read_u8().await.unwrap_err();
        assert_eq!(noticed.kind(), io::ErrorKind::TimedOut, "{noticed}");
    }

    /// It may come back to a result that it has left for a while.
    #[tokio::test]
    async fn a_client_that_pauses_is_there() {
        const BYTES: usize = 32 << 20;
        let (client, server) = connected().await;
        let presence = Presence::of(&server);
        let (read, mut write) = server.into_split();
        let mut read = Attended::with_max(read, presence, MAX);
        let written = tokio::spawn(async move {
            write.write_all(&vec![7; BYTES]).await.unwrap();
            write
        });
        let pause = tokio::time::timeout(MAX * 5, read.read_u8()).await;
        assert!(pause.is_err() && !written.is_finished());
        let reader = tokio::task::spawn_blocking(move || {
            let mut room = vec![0; BYTES];
            std::io::Read::read_exact(&mut { client }, &mut room)
                .map(|()| room.iter().all(|byte| *byte == 7))
        });
        assert!(reader.await.unwrap().unwrap());
        written.await.unwrap();
    }

    /// What comes to this socket from now on gets lost before it is acknowledged.
    #[allow(unsafe_code, reason = "a socket's filter is set by a pointer")]
    fn vanish(client: &Client) {
        let mut nothing =
            libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        let bytes = size_of_val(&program) as libc::socklen_t;
        // SAFETY: the kernel copies the program, which is there.
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
