//! What the kernel knows of the way to a client over TCP: its round trip, and whether the reader holds it up.

#![allow(unsafe_code, reason = "the kernel fills a structure")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// What the kernel keeps of data that it can't send yet. Its default is megabytes, seconds on a slow line: λ would learn
/// of them too late, and so would a cancel.
const UNSENT_BYTES_MAX: u32 = 256 << 10;

/// A look at a TCP socket that others write to.
pub(crate) struct Way {
    socket: OwnedFd,
    /// What it was busy and held up by the reader when it was last asked, in microseconds.
    seen: (u64, u64),
}

impl Way {
    /// Of a socket to another host, whose buffer is made small. None where the kernel has no such figures.
    pub(crate) fn of(stream: &impl AsFd) -> Option<Self> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        let mut way = Self { socket, seen: (0, 0) };
        way.reader_share()?;
        Some(way)
    }

    /// The smoothed round trip.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.info().ok()?.u32_at(RTT)?.into()))
    }

    /// The share of the time since the last call, as far as there was something to send, in which the reader had no room.
    pub(crate) fn reader_share(&mut self) -> Option<f64> {
        let info = self.info().ok()?;
        let now = (info.u64_at(BUSY_TIME)?, info.u64_at(RECEIVER_LIMITED)?);
        let (busy, limited) = (now.0.saturating_sub(self.seen.0), now.1.saturating_sub(self.seen.1));
        self.seen = now;
        Some(if busy == 0 { 0.0 } else { limited as f64 / busy as f64 })
    }

    #[cfg(target_os = "linux")]
    fn info(&self) -> io::Result<Info> {
        let mut info = Info { bytes: [0; INFO_BYTES], filled: 0 };
        let mut filled = INFO_BYTES as libc::socklen_t;
        // SAFETY: the descriptor is open as long as `self`, and the kernel writes at most `filled` bytes, which are there.
        let answer = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
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
    fn info(&self) -> io::Result<Info> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Linux's `struct tcp_info` (include/uapi/linux/tcp.h), which has grown at its end from version to version.
struct Info {
    bytes: [u8; INFO_BYTES],
    filled: usize,
}

const INFO_BYTES: usize = 192;
/// Where its fields are.
const RTT: usize = 68;
const BUSY_TIME: usize = 168;
const RECEIVER_LIMITED: usize = 176;

impl Info {
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
        let mut way = Way::of(&sender).unwrap();
        assert!(way.round_trip().unwrap() < Duration::from_secs(1));
        sender.set_nonblocking(true).unwrap();
        // Until the reader's buffer is full.
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            let _ = sender.write(&[0; 1 << 16]);
        }
        way.reader_share().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(way.reader_share().unwrap() > 0.9);
    }
}
