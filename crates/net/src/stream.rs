//! Streams whose reads and writes give up regularly.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::TICK;

/// The peer sends no more. Other systems tell only of an end in both directions.
#[cfg(target_os = "linux")]
const HUNG_UP: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const HUNG_UP: PollFlags = PollFlags::HUP;

/// A blocking socket whose reads and writes fail with `WouldBlock` when nothing moves for [`TICK`].
/// Reads also do so now and then while bytes arrive. Both can be retried.
#[derive(Debug)]
pub struct TimedStream<S> {
    stream: S,
    /// When a read last failed so that the caller could look around.
    ticked: Instant,
    /// How long reads and writes have waited since the peer last moved.
    silent: Duration,
    /// The limit of `silent`; None is unlimited.
    read_timeout: Option<Duration>,
    /// The process that made the stream.
    process: u32,
}

impl<S> TimedStream<S> {
    /// Wraps a stream whose own timeout for reads and writes is [`TICK`]. They fail for good when
    /// the peer has not moved for `read_timeout`.
    pub fn new(stream: S, read_timeout: Option<Duration>) -> Self {
        let ticked = Instant::now();
        Self { stream, ticked, silent: Duration::ZERO, read_timeout, process: std::process::id() }
    }

    /// The wrapped stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    fn timed(&mut self, work: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        check_process(self.process)?;
        let began = Instant::now();
        let done = work(&mut self.stream);
        match &done {
            Err(error) if is_timeout(error) => {
                self.ticked = Instant::now();
                self.silent += self.ticked.duration_since(began);
                match self.read_timeout {
                    Some(max) if self.silent >= max => Err(io::Error::other(ReadTimeout(max))),
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

impl<S: Read> Read for TimedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.timed(|stream| stream.read(buffer))
    }
}

impl<S: Write + AsFd> Write for TimedStream<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.timed(|stream| stream.write(buffer)).map_err(|error| {
            match is_timeout(&error) && self.polls(HUNG_UP) {
                // Its kernel takes no more bytes, and does not always say why.
                true => io::Error::new(io::ErrorKind::BrokenPipe, "the server has hung up"),
                false => error,
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A stream that can be asked whether something has arrived.
pub trait Readable {
    /// Whether a read would not wait. A stream that has ended is readable, too.
    fn is_readable(&self) -> bool;
}

impl<S: AsFd> TimedStream<S> {
    /// Whether one of these events has come, or the stream has ended in both directions.
    fn polls(&self, events: PollFlags) -> bool {
        let mut polled = [PollFd::new(&self.stream, events)];
        let now = Timespec::default();
        // If it can't be asked, the next write or read finds out.
        matches!(poll(&mut polled, Some(&now)), Ok(1..))
    }
}

impl<S: AsFd> Readable for TimedStream<S> {
    fn is_readable(&self) -> bool {
        self.polls(PollFlags::IN)
    }
}

/// Checks that this is the process `owner`. After a fork both processes would read each other's
/// answers.
///
/// # Errors
/// In any other process.
pub fn check_process(owner: u32) -> io::Result<()> {
    match std::process::id() {
        process if process == owner => Ok(()),
        process => Err(io::Error::other(format!(
            "the connection belongs to process {owner}, and this is process {process}: \
             connect again after a fork"
        ))),
    }
}

/// The peer has not moved for this long.
#[derive(Debug)]
struct ReadTimeout(Duration);

impl std::fmt::Display for ReadTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server has sent nothing for {:?}, which is the read_timeout", self.0)
    }
}

impl std::error::Error for ReadTimeout {}

/// Whether a read or write failed because the peer was silent for `read_timeout`.
pub fn is_read_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<ReadTimeout>())
}

/// Whether a read or write only gave up for a tick. `TimedOut` is no tick: with it the kernel says
/// that the peer is gone.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Called about every [`TICK`] while a socket is read or written; an error ends the wait.
pub type CancelCheck<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;

/// Writes all of `bytes` and flushes, and calls `check` about every [`TICK`].
///
/// # Errors
/// What `failed` makes of the stream's error, or the error of `check`.
pub fn write_all<E>(
    stream: &mut (impl Write + ?Sized),
    mut bytes: &[u8],
    mut failed: impl FnMut(io::Error) -> E,
    check: CancelCheck<'_, E>,
) -> Result<(), E> {
    let mut checked = Instant::now();
    loop {
        if checked.elapsed() >= TICK {
            checked = Instant::now();
            check()?;
        }
        let moved = match bytes.is_empty() {
            false => stream.write(bytes),
            true => stream.flush().map(|()| 0),
        };
        match moved {
            Ok(0) if bytes.is_empty() => return Ok(()),
            Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_timeout(&error) => check()?,
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_peer_that_hangs_up_is_noticed_while_it_takes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_write_timeout(Some(TICK)).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let mut stream = TimedStream::new(stream, None);
        let block = vec![0; 1 << 20];
        let full = loop {
            if let Err(error) = stream.write(&block) {
                break error;
            }
        };
        assert!(is_timeout(&full), "{full}");
        // It says that it sends no more, and reads nothing.
        peer.shutdown(Shutdown::Write).unwrap();
        let began = Instant::now();
        let ended = loop {
            match stream.write(&block) {
                Err(error) if is_timeout(&error) => {}
                other => break other,
            }
            assert!(began.elapsed() < Duration::from_secs(20));
        };
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
