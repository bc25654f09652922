//! Sockets that nobody waits for without end: connecting within a deadline, and reads and writes
//! that give up after a while, so that the caller can look around. Dray's own protocol runs over
//! them, too.
//!
//! ```text
//!   Wait     until when, and whether still wanted: held by whoever connects
//!   Line     a socket: gives up by `WouldBlock` at least every 50 ms, even while bytes trickle in
//!            │ counts the server's silence (`read_timeout`)
//!            └ belongs to the process that made it: a fork's child can't use it
//! ```

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{SockAddr, SockRef, Socket, TcpKeepalive, Type};

/// How long a read or write waits before the caller may look whether it is still wanted.
pub const TICK: Duration = Duration::from_millis(50);
/// A peer that is gone is noticed within a minute: the first probe, the time between two, and how
/// many get no answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 3;
/// How long sent bytes may stay without an acknowledgement.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one waits before one asks again at a Unix socket whose queue is full.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(10);

/// Until when somebody waits for a connection, and whether it is still wanted.
pub struct Wait<'a> {
    deadline: Instant,
    /// Once false, always false.
    wanted: &'a mut dyn FnMut() -> bool,
}

impl std::fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<'a> Wait<'a> {
    /// Waits until then, as long as it is wanted; `wanted` that has been false stays so.
    pub fn new(deadline: Instant, wanted: &'a mut dyn FnMut() -> bool) -> Self {
        Self { deadline, wanted }
    }

    /// The same wait, with an earlier end.
    pub fn until(&mut self, deadline: Instant) -> Wait<'_> {
        Wait { deadline: deadline.min(self.deadline), wanted: &mut *self.wanted }
    }

    /// The same wait for one of several things that are tried one after the other: each gets its
    /// share of the time.
    pub fn share(&mut self, things_left: usize) -> Wait<'_> {
        let now = Instant::now();
        let rest = self.deadline.saturating_duration_since(now);
        self.until(now + rest / u32::try_from(things_left.max(1)).unwrap_or(u32::MAX))
    }

    /// When it ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Fails once the time is over, or nobody waits any more.
    ///
    /// # Errors
    /// `TimedOut` or `Other`, neither of which [`is_timeout`] takes for a tick.
    pub fn check(&mut self) -> io::Result<()> {
        if !(self.wanted)() {
            return Err(io::Error::other("connecting was cancelled"));
        }
        match self.is_over() {
            false => Ok(()),
            true => Err(io::Error::new(io::ErrorKind::TimedOut, "the time to connect is over")),
        }
    }
}

/// What the kernel does about a peer that is gone.
#[derive(Debug, Clone)]
pub struct TcpParams {
    /// None to send no probes.
    pub keepalive: Option<TcpKeepalive>,
    /// None for the system's.
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
    /// libpq's: what is not said is as in [`TcpParams::default`], and what is said to be 0 the
    /// system's.
    pub(crate) fn new(
        keepalives: bool,
        [idle, interval, count]: [Option<u32>; 3],
        user_timeout: Option<Duration>,
    ) -> Self {
        let seconds = |said: Option<u32>, default: Duration| {
            let time = said.map_or(default, |seconds| Duration::from_secs(seconds.into()));
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
        // Only Linux has it; libpq, too, does without elsewhere.
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

/// A blocking socket whose reads and writes fail by `WouldBlock` when nothing moves for [`TICK`],
/// and reads now and then while something does; they may be tried again.
#[derive(Debug)]
pub struct Line<S> {
    stream: S,
    /// When a reader last had the chance to look around.
    looked: Instant,
    /// How long reads and writes have waited for the peer since it last moved.
    silent: Duration,
    silence_max: Option<Duration>,
    /// The process that made it.
    process: u32,
}

impl<S> Line<S> {
    /// Over a stream whose reads and writes give up after [`TICK`] by themselves. They fail for
    /// good when the peer has not moved for `silence_max`.
    pub fn new(stream: S, silence_max: Option<Duration>) -> Self {
        let looked = Instant::now();
        Self { stream, looked, silent: Duration::ZERO, silence_max, process: std::process::id() }
    }

    /// What it is over.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    fn patiently(&mut self, work: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        check_process(self.process)?;
        let began = Instant::now();
        let done = work(&mut self.stream);
        match &done {
            Err(error) if is_timeout(error) => {
                self.looked = Instant::now();
                self.silent += self.looked.duration_since(began);
                match self.silence_max {
                    Some(max) if self.silent >= max => Err(silence(max)),
                    _ => done,
                }
            }
            _ => {
                self.silent = Duration::ZERO;
                done
            }
        }
    }
}

impl<S: Read> Read for Line<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.looked.elapsed() >= TICK {
            self.looked = Instant::now();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.patiently(|stream| stream.read(buffer))
    }
}

impl<S: Write> Write for Line<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Fails in another process than the one with this number: both ends of a fork would read each
/// other's answers.
///
/// # Errors
/// With the two processes' numbers.
pub fn check_process(owner: u32) -> io::Result<()> {
    match std::process::id() {
        process if process == owner => Ok(()),
        process => Err(io::Error::other(format!(
            "the connection belongs to process {owner}, and this is process {process}: connect again after a fork"
        ))),
    }
}

/// The peer has not moved for so long.
#[derive(Debug)]
struct Silence(Duration);

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server has sent nothing for {:?}, which is the read_timeout", self.0)
    }
}

impl std::error::Error for Silence {}

fn silence(max: Duration) -> io::Error {
    io::Error::other(Silence(max))
}

/// Whether a read or write failed because the peer was silent for as long as `read_timeout`.
pub fn is_silence(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<Silence>())
}

/// Whether a read or write only ran out of patience. `TimedOut` is not among them: by that the
/// kernel says that the peer is gone.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The addresses of a host.
///
/// # Errors
/// When it has none, or is not found in time.
pub fn resolve(name: &str, port: u16, wait: &mut Wait<'_>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (sender, receiver) = sync_channel(1);
    let owned = name.to_owned();
    // Nothing but a thread of its own ends the wait for a name server. Nobody may be left to hear
    // of the answer.
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
                return Err(io::Error::other("the look-up of the name failed"));
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
/// When nobody answers there, or not in time.
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
/// As [`connect_tcp`].
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
            // A server takes no connections at the moment, and its Unix socket's queue is full.
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

/// Writes all of it, and asks `wait` at least every [`TICK`] or so.
///
/// # Errors
/// When the connection breaks or the wait ends.
pub fn write_all<E>(
    stream: &mut (impl Write + ?Sized),
    mut bytes: &[u8],
    mut failed: impl FnMut(io::Error) -> E,
    wait: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut looked = Instant::now();
    loop {
        if looked.elapsed() >= TICK {
            looked = Instant::now();
            wait()?;
        }
        let moved = match bytes.is_empty() {
            false => stream.write(bytes),
            true => stream.flush().map(|()| 0),
        };
        match moved {
            Ok(0) if bytes.is_empty() => return Ok(()),
            Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_timeout(&error) => wait()?,
            Err(error) => return Err(failed(error)),
        }
    }
}
