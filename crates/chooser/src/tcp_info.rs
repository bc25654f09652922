//! What Linux knows about a TCP connection: its round trip, what it has delivered, and whether the
//! other end still answers.

#![allow(unsafe_code, reason = "the kernel fills a buffer")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::price::Delivery;

/// The bytes of `struct tcp_info` (include/uapi/linux/tcp.h) up to the last field that is read
/// here. The structure grows at its end from version to version.
const INFO_BYTES: usize = 232;
/// Offsets of its fields.
const UNACKED: usize = 24;
const LAST_ACK_RECV: usize = 56;
const RTT: usize = 68;
const BYTES_ACKED: usize = 120;
const MIN_RTT: usize = 148;
const BUSY_TIME: usize = 168;
const RWND_LIMITED: usize = 176;
const SND_WND: usize = 228;

const _: () = assert!(SND_WND + size_of::<u32>() == INFO_BYTES);

/// The state of a TCP connection when the kernel was asked: Linux's `TCP_INFO`.
///
/// A value is `None` if the kernel is too old to report it.
#[derive(Debug)]
pub struct TcpInfo {
    bytes: [u8; INFO_BYTES],
    /// How many of the bytes the kernel knows of.
    filled: usize,
}

impl TcpInfo {
    /// Asks the kernel about a socket.
    ///
    /// # Errors
    /// The socket is not TCP's, or the system is not Linux.
    #[cfg(target_os = "linux")]
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        let mut info = Self { bytes: [0; INFO_BYTES], filled: 0 };
        let mut filled = INFO_BYTES as libc::socklen_t;
        // SAFETY: the descriptor is open while it is borrowed. The kernel writes at most `filled`
        // bytes, and the buffer has as many.
        let code = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.bytes.as_mut_ptr().cast(),
                &raw mut filled,
            )
        };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
        info.filled = filled as usize;
        debug_assert!(info.filled <= INFO_BYTES);
        Ok(info)
    }

    /// Other systems have no such structure.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_socket: BorrowedFd<'_>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The shortest recent round trip. The smoothed one includes the time for which a reader delays
    /// acknowledgements: 40 ms if it has nothing to send.
    pub fn round_trip(&self) -> Option<Duration> {
        let smoothed = self.u32_at(RTT)?;
        let least = self.u32_at(MIN_RTT).map_or(smoothed, |least| least.min(smoothed));
        Some(Duration::from_micros(least.into()))
    }

    /// What the connection has delivered since it was opened.
    pub fn delivery(&self) -> Option<Delivery> {
        Some(Delivery {
            bytes: self.u64_at(BYTES_ACKED)?,
            busy: Duration::from_micros(self.u64_at(BUSY_TIME)?),
            receiver_limited: Duration::from_micros(self.u64_at(RWND_LIMITED)?),
        })
    }

    /// How long the other end has owed an acknowledgement, to the millisecond; zero if it owes
    /// none.
    ///
    /// It owes none while its receive window is full: it would answer, but the kernel asks it only
    /// every two minutes, by repeating what it has sent.
    pub fn unacknowledged(&self) -> Option<Duration> {
        let is_owed = self.u32_at(UNACKED)? > 0 && self.u32_at(SND_WND)? > 0;
        let silent = self.u32_at(LAST_ACK_RECV).filter(|_| is_owed).unwrap_or_default();
        Some(Duration::from_millis(silent.into()))
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.filled_from(offset)?.first_chunk().map(|raw| u32::from_ne_bytes(*raw))
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.filled_from(offset)?.first_chunk().map(|raw| u64::from_ne_bytes(*raw))
    }

    fn filled_from(&self, offset: usize) -> Option<&[u8]> {
        self.bytes.get(..self.filled)?.get(offset..)
    }
}

/// Measures the deliveries of one TCP connection, span by span.
#[derive(Debug)]
pub struct DeliveryMeter<S> {
    socket: S,
    /// All deliveries up to the last call of [`Self::take`].
    taken: Delivery,
}

impl<S: AsFd> DeliveryMeter<S> {
    /// A meter that begins now. `None` if the kernel has no figures about this socket.
    pub fn new(socket: S) -> Option<Self> {
        let taken = TcpInfo::of(socket.as_fd()).ok()?.delivery()?;
        Some(Self { socket, taken })
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The shortest recent round trip.
    pub fn round_trip(&self) -> Option<Duration> {
        TcpInfo::of(self.socket.as_fd()).ok()?.round_trip()
    }

    /// What was delivered since the last call, or since the meter began.
    pub fn take(&mut self) -> Option<Delivery> {
        let now = TcpInfo::of(self.socket.as_fd()).ok()?.delivery()?;
        let before = std::mem::replace(&mut self.taken, now);
        Some(now.since(before))
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_that_have_arrived_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let mut meter = DeliveryMeter::new(sender.try_clone().unwrap()).unwrap();
        assert!(meter.round_trip().unwrap() < Duration::from_secs(1));
        sender.write_all(&[0; 50_000]).unwrap();
        reader.read_exact(&mut [0; 50_000]).unwrap();
        // The last of them may not have been acknowledged before the reader closes.
        drop(reader);
        assert_eq!(sender.read(&mut [0]).unwrap(), 0);
        // Closing counts as a byte.
        assert!((50_000..=50_001).contains(&meter.take().unwrap().bytes));
        assert!(meter.take().unwrap().bytes <= 1);
    }

    #[test]
    fn a_reader_that_does_not_read_limits_the_delivery() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _reader = listener.accept().unwrap();
        let mut meter = DeliveryMeter::new(sender.try_clone().unwrap()).unwrap();
        sender.set_nonblocking(true).unwrap();
        // Write until the reader's buffer is full.
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            let _ = sender.write(&[0; 1 << 16]);
        }
        assert!(meter.take().unwrap().bytes >= 1 << 16);
        std::thread::sleep(Duration::from_millis(200));
        let Delivery { busy, receiver_limited, .. } = meter.take().unwrap();
        assert!(
            busy > Duration::from_millis(150) && receiver_limited > busy / 10 * 9,
            "{busy:?}, {receiver_limited:?}"
        );
    }

    #[test]
    fn other_sockets_have_no_figures() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(DeliveryMeter::new(one).is_none());
    }
}
