//! Connecting to addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::{TICK, Wait};

/// A peer that is gone is noticed within a minute: the first probe, the time between two, and the
/// number of probes without an answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 3;
/// How long sent bytes may stay without an acknowledgement.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before another attempt at a Unix socket whose queue is full.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(10);

/// How the kernel notices a peer that is gone.
#[derive(Debug, Clone)]
pub struct TcpParams {
    /// The probes of an idle connection; None sends none.
    pub keepalive: Option<TcpKeepalive>,
    /// How long sent bytes may stay without an acknowledgement; None is the system's value.
    pub user_timeout: Option<Duration>,
}

impl Default for TcpParams {
    fn default() -> Self {
        Self {
            keepalive: Some(keepalive(
                Some(KEEPALIVE_IDLE),
                Some(KEEPALIVE_INTERVAL),
                Some(KEEPALIVE_COUNT),
            )),
            user_timeout: Some(USER_TIMEOUT),
        }
    }
}

impl TcpParams {
    /// From what a connection string says, as libpq names it: idle time, interval and count of the
    /// probes. A missing one is as in [`TcpParams::default`], 0 is the system's value.
    pub fn new(
        keepalives: bool,
        [idle, interval, count]: [Option<u32>; 3],
        user_timeout: Option<Duration>,
    ) -> Self {
        let seconds = |given: Option<u32>, default: Duration| {
            let time = given.map_or(default, |seconds| Duration::from_secs(seconds.into()));
            Some(time).filter(|time| !time.is_zero())
        };
        let count = Some(count.unwrap_or(KEEPALIVE_COUNT)).filter(|count| *count > 0);
        let probes =
            keepalive(seconds(idle, KEEPALIVE_IDLE), seconds(interval, KEEPALIVE_INTERVAL), count);
        Self {
            keepalive: keepalives.then_some(probes),
            user_timeout: Some(user_timeout.unwrap_or(USER_TIMEOUT))
                .filter(|timeout| !timeout.is_zero()),
        }
    }

    fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        let socket = SockRef::from(stream);
        if let Some(keepalive) = &self.keepalive {
            socket.set_keepalive(true)?;
            socket.set_tcp_keepalive(keepalive)?;
        }
        // Only Linux has it; libpq ignores it elsewhere, too.
        #[cfg(target_os = "linux")]
        if let Some(timeout) = self.user_timeout {
            socket.set_tcp_user_timeout(Some(timeout))?;
        }
        Ok(())
    }
}

fn keepalive(
    idle: Option<Duration>,
    interval: Option<Duration>,
    count: Option<u32>,
) -> TcpKeepalive {
    let keepalive =
        idle.into_iter().fold(TcpKeepalive::new(), |keepalive, time| keepalive.with_time(time));
    let keepalive =
        interval.into_iter().fold(keepalive, |keepalive, time| keepalive.with_interval(time));
    count.into_iter().fold(keepalive, |keepalive, count| keepalive.with_retries(count))
}

/// The addresses of a host.
///
/// # Errors
/// When the host has none, or the lookup takes too long.
pub fn resolve(name: &str, port: u16, wait: &mut Wait<'_>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (sender, receiver) = sync_channel(1);
    let owned = name.to_owned();
    // A lookup can't be interrupted, so it has a thread of its own. Its answer may come too late
    // for anybody to receive it.
    let look_up = move || {
        let _ =
            sender.send((owned.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    };
    thread::Builder::new().name("dray-resolve".to_owned()).spawn(look_up)?;
    let found = loop {
        match receiver.recv_timeout(TICK) {
            Ok(found) => break found?,
            Err(RecvTimeoutError::Timeout) => wait.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the lookup of the name failed"));
            }
        }
    };
    match found.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address"))),
        false => Ok(found),
    }
}

/// Connects to an address.
///
/// # Errors
/// When nobody answers there in time.
pub fn connect_tcp(
    address: SocketAddr,
    params: &TcpParams,
    wait: &mut Wait<'_>,
) -> io::Result<TcpStream> {
    let stream = TcpStream::from(connect(&address.into(), wait)?);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))?;
    params.apply(&stream)?;
    Ok(stream)
}

/// Connects to a Unix socket.
///
/// # Errors
/// When nobody answers there in time.
pub fn connect_unix(path: &Path, wait: &mut Wait<'_>) -> io::Result<UnixStream> {
    let stream = UnixStream::from(connect(&SockAddr::unix(path)?, wait)?);
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))?;
    Ok(stream)
}

fn connect(address: &SockAddr, wait: &mut Wait<'_>) -> io::Result<Socket> {
    wait.check()?;
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    loop {
        match socket.connect(address) {
            Ok(()) => break,
            // The queue of the server's Unix socket is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait.check()?;
                thread::sleep(QUEUE_FULL_PAUSE);
            }
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {
                await_connected(&socket, wait)?;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    socket.set_nonblocking(false)?;
    Ok(socket)
}

fn await_connected(socket: &Socket, wait: &mut Wait<'_>) -> io::Result<()> {
    loop {
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&tick)) {
            Ok(0) | Err(Errno::INTR) => wait.check()?,
            Ok(_) => return socket.take_error()?.map_or(Ok(()), Err),
            Err(error) => return Err(error.into()),
        }
    }
}
