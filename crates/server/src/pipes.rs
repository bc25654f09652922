//! Pipes that a client on a Unix socket may offer for all that the server sends (protocol.md
//! section 9).
//!
//! Bytes through a socket are copied twice: into the kernel, and out of it. A pipe takes references
//! to the server's pages instead, so that only the client copies. Two pipes take turns, because
//! reader and writer exclude each other at one.
//!
//! ```text
//!   parts of a chunk ──vmsplice──▶ pipes: references to pages ──read──▶ the client's memory
//!          └── stay in `lent` until the client has read past them
//! ```

#![allow(unsafe_code, reason = "lending memory to the kernel")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::pipe::{IoSliceRaw, SpliceFlags, fcntl_getpipe_size, vmsplice};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Sender;

/// The bytes that go through one pipe before the next one takes its turn (protocol.md section 9).
const STRIPE_BYTES: u64 = 256 << 10;
/// The most pipes that a client may offer.
const PIPES_MAX: usize = 4;
/// Smaller parts are copied into the pipe, which is cheaper than referring to their pages.
const LENT_BYTES_MIN: usize = 16 << 10;
/// The most parts in one system call.
const PARTS_PER_WRITE: usize = 64;
/// The time between two checks of how far the client has read.
const RECLAIM_EVERY: Duration = Duration::from_millis(5);

/// Waits for a client's first bytes, and for the pipes that may come with them. Pipes are accepted
/// only from root and from the server's own user, because their owner can hold on to the server's
/// memory.
pub(crate) async fn receive_first(stream: &UnixStream) -> io::Result<(BytesMut, Option<Pipes>)> {
    let mut bytes = vec![0; 4096];
    let mut offered = Vec::new();
    let count = loop {
        stream.readable().await?;
        let received = stream.try_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES_MAX))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut slices = [io::IoSliceMut::new(&mut bytes)];
            let received = recvmsg(stream, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    offered.extend(descriptors);
                }
            }
            Ok(received.bytes)
        });
        match received {
            Ok(count) => break count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    };
    let received = BytesMut::from(&bytes[..count]);
    let user = stream.peer_cred()?.uid();
    let trusted = user == 0 || user == rustix::process::geteuid().as_raw();
    Ok((received, Some(offered).filter(|_| trusted).and_then(Pipes::new)))
}

/// The write ends of a client's pipes.
pub(crate) struct Pipes {
    /// Not empty.
    pipes: Vec<Sender>,
    /// The bytes that all pipes together can hold.
    capacity: u64,
    /// The bytes that were written to them.
    written: u64,
    /// The parts that the pipes may refer to, in the order of writing.
    lent: VecDeque<Lent>,
}

/// Memory that the pipes may refer to.
struct Lent {
    /// The value of [`Pipes::written`] after it.
    end: u64,
    _bytes: Bytes,
}

/// How parts go into a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The pipe refers to their pages.
    Lend,
    /// The kernel copies them.
    Copy,
}

impl Mode {
    fn of(part: &Bytes) -> Self {
        if part.len() >= LENT_BYTES_MIN { Self::Lend } else { Self::Copy }
    }
}

impl Pipes {
    /// `None` unless all are write ends of pipes, and there is at least one.
    fn new(offered: Vec<OwnedFd>) -> Option<Self> {
        let pipes: Vec<Sender> =
            offered.into_iter().map(Sender::from_owned_fd).collect::<io::Result<_>>().ok()?;
        let capacities = pipes.iter().map(|pipe| Some(fcntl_getpipe_size(pipe).ok()? as u64));
        let capacity = capacities.sum::<Option<u64>>().filter(|capacity| *capacity > 0)?;
        Some(Self { pipes, capacity, written: 0, lent: VecDeque::new() })
    }

    /// Writes the parts, and removes what has been written. Cancel safe.
    pub(crate) async fn write(&mut self, parts: &mut VecDeque<Bytes>) -> io::Result<()> {
        while !parts.is_empty() {
            let pipe = &self.pipes[(self.written / STRIPE_BYTES) as usize % self.pipes.len()];
            pipe.writable().await?;
            let mode = Mode::of(&parts[0]);
            let slices = front_slices(parts, mode, STRIPE_BYTES - self.written % STRIPE_BYTES);
            let written = match mode {
                Mode::Lend => {
                    let slices: Vec<_> =
                        slices.iter().map(|slice| IoSliceRaw::from_slice(slice)).collect();
                    // SAFETY: the descriptor is a pipe's write end, so the kernel only reads the
                    // parts. While the pipe refers to them they are valid and don't change: `lent`
                    // owns them, and `Bytes` is immutable.
                    pipe.try_io(|| Ok(unsafe { vmsplice(pipe, &slices, SpliceFlags::NONBLOCK) }?))
                }
                Mode::Copy => pipe.try_write_vectored(&slices),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(parts, written, mode),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            // All but the last `capacity` bytes have been read. Asking the pipes for more would
            // wait for their reader.
            self.release(self.written.saturating_sub(self.capacity));
        }
        Ok(())
    }

    /// Removes `written` bytes from the front of the parts.
    fn advance(&mut self, parts: &mut VecDeque<Bytes>, mut written: usize, mode: Mode) {
        debug_assert!(written <= parts.iter().map(Bytes::len).sum());
        while written > 0 {
            let Some(front) = parts.front_mut() else { return };
            let taken = written.min(front.len());
            self.written += taken as u64;
            if mode == Mode::Lend {
                self.lent.push_back(Lent { end: self.written, _bytes: front.slice(..taken) });
            }
            front.advance(taken);
            if front.is_empty() {
                parts.pop_front();
            }
            written -= taken;
        }
    }

    /// Releases what the client has read, or, if it is gone, everything.
    fn reclaim(&mut self) -> io::Result<()> {
        let mut unread = 0;
        if self.have_reader()? {
            for pipe in &self.pipes {
                unread += rustix::io::ioctl_fionread(pipe)?;
            }
        }
        // Saturating, because the client may write to its own pipes.
        self.release(self.written.saturating_sub(unread));
        Ok(())
    }

    /// Releases the memory of the first `read` bytes that were written.
    fn release(&mut self, read: u64) {
        while self.lent.front().is_some_and(|lent| lent.end <= read) {
            self.lent.pop_front();
        }
    }

    /// Whether the read end of any pipe is open.
    fn have_reader(&self) -> io::Result<bool> {
        let mut pipes: Vec<_> =
            self.pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::empty())).collect();
        poll(&mut pipes, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(pipes.iter().any(|pipe| !pipe.revents().contains(PollFlags::ERR)))
    }

    /// Releases what the client reads, while this is polled.
    pub(crate) async fn keep_reclaiming(&mut self) -> Infallible {
        // After an error, the next write closes the connection. Until then nothing is released.
        while !self.lent.is_empty() && self.reclaim().is_ok() {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
        std::future::pending().await
    }

    /// Waits until the client has read all that is in the pipes, or for `timeout`.
    pub(crate) async fn finish(&mut self, timeout: impl Fn() -> Duration) {
        let started = Instant::now();
        while !self.lent.is_empty() && self.reclaim().is_ok() && started.elapsed() < timeout() {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
    }
}

/// The parts at the front that go in by the same mode, at most `bytes_max` bytes of them.
fn front_slices(parts: &VecDeque<Bytes>, mode: Mode, bytes_max: u64) -> Vec<IoSlice<'_>> {
    let mut left = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut slices = Vec::new();
    for part in parts.iter().take_while(|part| Mode::of(part) == mode).take(PARTS_PER_WRITE) {
        slices.push(IoSlice::new(&part[..part.len().min(left)]));
        left -= part.len().min(left);
        if left == 0 {
            break;
        }
    }
    slices
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // The client may still read this memory. It is leaked, because freed memory could be filled
        // with other data meanwhile.
        if !self.lent.is_empty() && (self.reclaim().is_err() || !self.lent.is_empty()) {
            std::mem::forget(std::mem::take(&mut self.lent));
        }
    }
}
