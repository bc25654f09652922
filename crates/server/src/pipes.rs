//! The pipes that a client on a Unix socket may offer for everything that the server sends
//! (protocol.md section 9).
//!
//! A socket copies into the kernel what the client copies out again. A pipe takes references to the
//! pages instead: it is lent the memory, and the one copy left is the client's. Two pipes take
//! turns, as only one end can have a pipe's lock.
//!
//! ```text
//!   parts of a chunk ──vmsplice──▶ pipes: references to pages ──read──▶ the client's memory
//!          └── kept in `lent` until the client has read past them
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

/// So many bytes go through one pipe before it is the next one's turn (protocol.md section 9).
const STRIPE_BYTES: u64 = 256 << 10;
/// A client may offer so many pipes.
const PIPES_MAX: usize = 4;
/// Smaller parts are copied: cheaper than two references to pages and their return.
const LENT_BYTES_MIN: usize = 16 << 10;
/// How many parts one system call takes.
const PARTS_PER_WRITE: usize = 64;
/// How often to look whether what was lent has been read.
const RECLAIM_EVERY: Duration = Duration::from_millis(5);

/// Waits for a client's first bytes, and for the pipes that may come with them.
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
    /// At least one.
    pipes: Vec<Sender>,
    /// What they hold together at most, in bytes.
    capacity: u64,
    /// Bytes that went into them.
    written: u64,
    /// What the pipes refer to, each with the value of `written` behind it.
    lent: VecDeque<(u64, Bytes)>,
}

impl Pipes {
    /// None unless all are write ends of pipes, and there is one.
    fn new(offered: Vec<OwnedFd>) -> Option<Self> {
        let pipes: Vec<Sender> =
            offered.into_iter().map(Sender::from_owned_fd).collect::<io::Result<_>>().ok()?;
        let capacities = pipes.iter().map(|pipe| Some(fcntl_getpipe_size(pipe).ok()? as u64));
        let capacity = capacities.sum::<Option<u64>>().filter(|capacity| *capacity > 0)?;
        Some(Self { pipes, capacity, written: 0, lent: VecDeque::new() })
    }

    /// Writes the parts, and takes away what has been written. Safe to drop and call again.
    pub(crate) async fn write(&mut self, parts: &mut VecDeque<Bytes>) -> io::Result<()> {
        while !parts.is_empty() {
            let pipe = &self.pipes[(self.written / STRIPE_BYTES) as usize % self.pipes.len()];
            pipe.writable().await?;
            let lend = parts[0].len() >= LENT_BYTES_MIN;
            let slices = front_slices(parts, lend, STRIPE_BYTES - self.written % STRIPE_BYTES);
            let written = match lend {
                true => {
                    let slices: Vec<_> =
                        slices.iter().map(|slice| IoSliceRaw::from_slice(slice)).collect();
                    // SAFETY: the descriptor is a pipe's write end, so nothing is written to the
                    // parts. They are not changed either while the pipe refers to them: `Bytes`
                    // never changes, and `lent` keeps it.
                    pipe.try_io(|| Ok(unsafe { vmsplice(pipe, &slices, SpliceFlags::NONBLOCK) }?))
                }
                false => pipe.try_write_vectored(&slices),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(parts, written, lend),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            // What went in before all that the pipes can hold has been read. Asking them would wait
            // for their reader.
            self.give_back(self.written.saturating_sub(self.capacity));
        }
        Ok(())
    }

    fn advance(&mut self, parts: &mut VecDeque<Bytes>, mut written: usize, lend: bool) {
        while written > 0 {
            let Some(front) = parts.front_mut() else { return };
            let taken = written.min(front.len());
            self.written += taken as u64;
            if lend {
                self.lent.push_back((self.written, front.slice(..taken)));
            }
            front.advance(taken);
            if front.is_empty() {
                parts.pop_front();
            }
            written -= taken;
        }
    }

    /// Gives back what the client has read, or never will.
    fn reclaim(&mut self) -> io::Result<()> {
        let mut unread = 0;
        if self.have_reader()? {
            for pipe in &self.pipes {
                unread += rustix::io::ioctl_fionread(pipe)?;
            }
        }
        // Saturating: the client may write into its own pipe.
        self.give_back(self.written.saturating_sub(unread));
        Ok(())
    }

    /// Gives back what went in before so many bytes had.
    fn give_back(&mut self, read: u64) {
        while self.lent.front().is_some_and(|(end, _)| *end <= read) {
            self.lent.pop_front();
        }
    }

    fn have_reader(&self) -> io::Result<bool> {
        let mut pipes: Vec<_> =
            self.pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::empty())).collect();
        poll(&mut pipes, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(pipes.iter().any(|pipe| !pipe.revents().contains(PollFlags::ERR)))
    }

    /// Gives back what the client reads, for as long as this is polled.
    pub(crate) async fn keep_reclaiming(&mut self) -> Infallible {
        // An error has the connection closed at the next write; until then what is lent stays so.
        while !self.lent.is_empty() && self.reclaim().is_ok() {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
        std::future::pending().await
    }

    /// Lets the client read what is still in the pipes.
    pub(crate) async fn finish(&mut self, timeout: impl Fn() -> Duration) {
        let started = Instant::now();
        while !self.lent.is_empty() && self.reclaim().is_ok() && started.elapsed() < timeout() {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
    }
}

/// The parts at the front that are all to be lent, or all not, as far as `bytes_max` bytes.
fn front_slices(parts: &VecDeque<Bytes>, lend: bool, bytes_max: u64) -> Vec<IoSlice<'_>> {
    let mut room = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut slices = Vec::new();
    for part in
        parts.iter().take_while(|part| (part.len() >= LENT_BYTES_MIN) == lend).take(PARTS_PER_WRITE)
    {
        slices.push(IoSlice::new(&part[..part.len().min(room)]));
        room -= part.len().min(room);
        if room == 0 {
            break;
        }
    }
    slices
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // The client could still read it: better never freed than filled with something else
        // meanwhile.
        if !self.lent.is_empty() && (self.reclaim().is_err() || !self.lent.is_empty()) {
            std::mem::forget(std::mem::take(&mut self.lent));
        }
    }
}
