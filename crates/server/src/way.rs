//! What the kernel knows of the way to a client over TCP: its round trip, what has passed, whether
//! the reader holds it up, and whether it is still there. And what it knows of a thread: its
//! number, its priority, and the processor time that it has used.

#![allow(unsafe_code, reason = "the kernel fills structures")]

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use dray_chooser::Delivery;

/// What the kernel keeps of data that it can't send yet. Its default is megabytes, seconds on a
/// slow line: λ would learn of them too late, and so would a cancel.
const UNSENT_BYTES_MAX: u32 = 256 << 10;

/// A lost packet would halve CUBIC's rate.
const FOR_LARGE_RESULTS: &[u8] = b"bbr";

/// A look at a TCP socket that others write to.
pub(crate) struct Way {
    socket: OwnedFd,
    /// The host at its end, unless that is this one.
    pub(crate) host: Option<IpAddr>,
    /// What it had carried when it was last asked.
    seen: Carried,
    /// Whether it has the congestion control that it is to have.
    has_control: bool,
}

/// What a socket has carried since it was opened.
#[derive(Clone, Copy, Default)]
struct Carried {
    bytes: u64,
    busy_us: u64,
    receiver_limited_us: u64,
}

impl Way {
    /// Of a socket to a client on another host, or, without a `host`, to a proxy of one; its buffer
    /// is made small. None where the kernel has no such figures.
    pub(crate) fn of(stream: &impl AsFd, host: Option<IpAddr>) -> Option<Self> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        let mut way = Self { socket, host, seen: Carried::default(), has_control: host.is_none() };
        way.delivery()?;
        Some(way)
    }

    /// A large result is on its way: from now on the connection asks for a congestion control that
    /// a lost packet does not slow down. Small results are better off without: BBR spreads each
    /// over its round trip.
    pub(crate) fn expect_much(&mut self) {
        if !std::mem::replace(&mut self.has_control, true) {
            // With another kernel it stays what it is.
            let _ = socket2::SockRef::from(&self.socket).set_tcp_congestion(FOR_LARGE_RESULTS);
        }
    }

    /// The shortest round trip of late. The smoothed one has in it how long a reader held back what
    /// it acknowledges: 40 ms where it had nothing to say.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let info = self.info().ok()?;
        let smoothed = info.u32_at(RTT)?;
        Some(Duration::from_micros(
            info.u32_at(MIN_RTT).map_or(smoothed, |least| least.min(smoothed)).into(),
        ))
    }

    /// What has passed since the last call.
    pub(crate) fn delivery(&mut self) -> Option<Delivery> {
        let info = self.info().ok()?;
        let now = Carried {
            bytes: info.u64_at(BYTES_ACKED)?,
            busy_us: info.u64_at(BUSY_TIME)?,
            receiver_limited_us: info.u64_at(RECEIVER_LIMITED)?,
        };
        let before = std::mem::replace(&mut self.seen, now);
        Some(Delivery {
            bytes: now.bytes.saturating_sub(before.bytes),
            busy: Duration::from_micros(now.busy_us.saturating_sub(before.busy_us)),
            receiver_limited: Duration::from_micros(
                now.receiver_limited_us.saturating_sub(before.receiver_limited_us),
            ),
        })
    }

    fn info(&self) -> io::Result<Info> {
        Info::of(&self.socket)
    }
}

/// A look at whether a TCP socket's client is still there.
pub(crate) struct Presence(OwnedFd);

impl Presence {
    /// None where the kernel does not tell.
    pub(crate) fn of(stream: &impl AsFd) -> Option<Self> {
        let presence = Self(stream.as_fd().try_clone_to_owned().ok()?);
        presence.unacknowledged()?;
        Some(presence)
    }

    /// How long nothing has been heard of a client that has room for what was sent to it; nothing
    /// where all was acknowledged.
    pub(crate) fn unacknowledged(&self) -> Option<Duration> {
        let info = Info::of(&self.0).ok()?;
        // A client without room answers, but the kernel asks it only every two minutes, by sending
        // what it has sent before.
        let is_expected = info.u32_at(UNACKED)? > 0 && info.u32_at(SEND_WINDOW)? > 0;
        let silent = info.u32_at(LAST_ACK_RECEIVED).filter(|_| is_expected).unwrap_or_default();
        Some(Duration::from_millis(silent.into()))
    }
}

/// The processor time of this thread, or nothing where there is no such clock.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which is there.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    match (answer, u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (0, Ok(seconds), Ok(nanoseconds)) => Duration::new(seconds, nanoseconds),
        _ => Duration::ZERO,
    }
}

/// The system's number of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn thread_id() -> i32 {
    // SAFETY: it has no arguments and can't fail.
    unsafe { libc::gettid() }
}

/// Threads have no such numbers.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_id() -> i32 {
    0
}

/// Gives a thread of this process a lower priority, by nice(2), if the system lets a thread have
/// one of its own.
pub(crate) fn stand_back(thread: i32, nice: i32) {
    if cfg!(target_os = "linux")
        && let Some(thread) = rustix::process::Pid::from_raw(thread)
    {
        // One that is gone has no need of it.
        let _ = rustix::process::setpriority_process(Some(thread), nice);
    }
}

/// Linux's `struct tcp_info` (include/uapi/linux/tcp.h), which has grown at its end from version to
/// version.
struct Info {
    bytes: [u8; INFO_BYTES],
    filled: usize,
}

const INFO_BYTES: usize = 232;
/// Where its fields are.
const UNACKED: usize = 24;
const LAST_ACK_RECEIVED: usize = 56;
const RTT: usize = 68;
const BYTES_ACKED: usize = 120;
const MIN_RTT: usize = 148;
const BUSY_TIME: usize = 168;
const RECEIVER_LIMITED: usize = 176;
const SEND_WINDOW: usize = 228;

impl Info {
    #[cfg(target_os = "linux")]
    fn of(socket: &OwnedFd) -> io::Result<Self> {
        let mut info = Self { bytes: [0; INFO_BYTES], filled: 0 };
        let mut filled = INFO_BYTES as libc::socklen_t;
        // SAFETY: the descriptor is open as long as it is owned, and the kernel writes at most
        // `filled` bytes, which are there.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.bytes.as_mut_ptr().cast(),
                &raw mut filled,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        info.filled = filled as usize;
        Ok(info)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_socket: &OwnedFd) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let filled = self.bytes.get(..self.filled)?;
        filled.get(at..)?.first_chunk().map(|raw| u32::from_ne_bytes(*raw))
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        let filled = self.bytes.get(..self.filled)?;
        filled.get(at..)?.first_chunk().map(|raw| u64::from_ne_bytes(*raw))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_reader_that_does_not_read_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _reader = listener.accept().unwrap();
        let mut way = Way::of(&sender, Some([127, 0, 0, 1].into())).unwrap();
        assert!(way.round_trip().unwrap() < Duration::from_secs(1));
        sender.set_nonblocking(true).unwrap();
        // Until the reader's buffer is full.
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            let _ = sender.write(&[0; 1 << 16]);
        }
        assert!(way.delivery().unwrap().bytes >= 1 << 16);
        std::thread::sleep(Duration::from_millis(200));
        let Delivery { busy, receiver_limited, .. } = way.delivery().unwrap();
        assert!(
            busy > Duration::from_millis(150) && receiver_limited > busy / 10 * 9,
            "{busy:?}, {receiver_limited:?}"
        );
    }
}
