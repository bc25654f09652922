//! What the kernel knows of the way to the client, where that is a TCP socket, and of a thread: the
//! processor time that it has used.

use std::ffi::c_int;
use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

use dray_chooser::Delivery;

/// A look at the socket that the server writes to.
pub(crate) struct Way {
    socket: c_int,
    /// What it had carried when it was last asked.
    seen: Carried,
    round_trip: Duration,
}

/// The beginning of Linux's `struct tcp_info` (include/uapi/linux/tcp.h), which has grown at its
/// end from version to version.
#[repr(C)]
struct Info {
    before_rtt: [u8; 68],
    rtt_us: u32,
    before_bytes_acked: [u8; 48],
    bytes_acked: u64,
    before_min_rtt: [u8; 20],
    min_rtt_us: u32,
    before_busy_time: [u8; 16],
    busy_us: u64,
    receiver_limited_us: u64,
}

const _: () = assert!(
    offset_of!(Info, rtt_us) == 68
        && offset_of!(Info, bytes_acked) == 120
        && offset_of!(Info, min_rtt_us) == 148
        && offset_of!(Info, busy_us) == 168
        && size_of::<Info>() == 184
);

#[derive(Clone, Copy)]
struct Carried {
    bytes: u64,
    busy_us: u64,
    receiver_limited_us: u64,
}

impl Way {
    /// Of the socket with this descriptor, which stays open. None if it is not TCP's, or the kernel
    /// has no such figures.
    pub(crate) fn of(socket: c_int) -> Option<Self> {
        let info = info(socket)?;
        // The smoothed one has in it how long readers held back what they acknowledge.
        let round_trip = Duration::from_micros(info.min_rtt_us.min(info.rtt_us).into());
        Some(Self { socket, seen: carried(&info), round_trip })
    }

    /// The shortest round trip of late when this was made.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// What has passed since the last call.
    pub(crate) fn delivery(&mut self) -> Option<Delivery> {
        let now = carried(&info(self.socket)?);
        let before = std::mem::replace(&mut self.seen, now);
        Some(Delivery {
            bytes: now.bytes.saturating_sub(before.bytes),
            busy: Duration::from_micros(now.busy_us.saturating_sub(before.busy_us)),
            receiver_limited: Duration::from_micros(
                now.receiver_limited_us.saturating_sub(before.receiver_limited_us),
            ),
        })
    }
}

fn carried(info: &Info) -> Carried {
    Carried {
        bytes: info.bytes_acked,
        busy_us: info.busy_us,
        receiver_limited_us: info.receiver_limited_us,
    }
}

fn info(socket: c_int) -> Option<Info> {
    let mut info = MaybeUninit::<Info>::uninit();
    let mut filled = size_of::<Info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most so many bytes, and says how many; any bytes are an `Info`.
    unsafe {
        let answer = libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut filled,
        );
        (answer == 0 && filled as usize == size_of::<Info>()).then(|| info.assume_init())
    }
}

/// The processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which is there.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn bytes_that_have_arrived_are_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let mut way = Way::of(sender.as_raw_fd()).unwrap();
        assert!(way.round_trip() < Duration::from_secs(1));
        sender.write_all(&[0; 50_000]).unwrap();
        reader.read_exact(&mut [0; 50_000]).unwrap();
        // The last of them may not have been acknowledged yet.
        drop(reader);
        assert_eq!(sender.read(&mut [0]).unwrap(), 0);
        assert!((50_000..=50_001).contains(&way.delivery().unwrap().bytes));
        assert!(way.delivery().unwrap().bytes <= 1);
    }

    #[test]
    fn what_is_not_tcp_has_no_figures() {
        assert!(Way::of(-1).is_none());
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Way::of(one.as_raw_fd()).is_none());
    }
}
