//! The pipe that a client on a Unix socket may offer for everything that the server sends (protocol.md section 9).
//!
//! A socket copies into the kernel what the client copies out again. A pipe takes references to the pages instead: it is
//! lent the memory, and the one copy left is the client's.
//!
//! ```text
//!   parts of a chunk ──vmsplice──▶ pipe: references to pages ──read──▶ the client's memory
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
use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Sender;

/// Smaller parts are copied: cheaper than two references to pages and their return.
const LENT_BYTES_MIN: usize = 16 << 10;
/// How many parts one system call takes.
const PARTS_PER_WRITE: usize = 64;
/// How often to look whether what was lent has been read.
const RECLAIM_EVERY: Duration = Duration::from_millis(5);

/// Waits for a client's first bytes, and for the pipe that may come with them.
pub(crate) async fn receive_first(stream: &UnixStream) -> io::Result<(BytesMut, Option<PipeWriter>)> {
    let mut bytes = vec![0; 4096];
    let mut offered = Vec::new();
    let count = loop {
        stream.readable().await?;
        let received = stream.try_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
    Ok((received, offered.pop().filter(|_| trusted).and_then(PipeWriter::new)))
}

/// The write end of a client's pipe.
pub(crate) struct PipeWriter {
    pipe: Sender,
    /// Bytes that went into the pipe.
    written: u64,
    /// What the pipe refers to, each with the value of `written` behind it.
    lent: VecDeque<(u64, Bytes)>,
}

impl PipeWriter {
    /// None if it is not the write end of a pipe.
    fn new(offered: OwnedFd) -> Option<Self> {
        let pipe = Sender::from_owned_fd(offered).ok()?;
        Some(Self { pipe, written: 0, lent: VecDeque::new() })
    }

    /// Writes the parts, and takes away what has been written. Safe to drop and call again.
    pub(crate) async fn write(&mut self, parts: &mut VecDeque<Bytes>) -> io::Result<()> {
        while !parts.is_empty() {
            self.pipe.writable().await?;
            let lend = parts[0].len() >= LENT_BYTES_MIN;
            let alike = parts.iter().take_while(|part| (part.len() >= LENT_BYTES_MIN) == lend).take(PARTS_PER_WRITE);
            let written = match lend {
                true => {
                    let slices: Vec<_> = alike.map(|part| IoSliceRaw::from_slice(part)).collect();
                    // SAFETY: the descriptor is a pipe's write end, so nothing is written to the parts. They are not
                    // changed either while the pipe refers to them: `Bytes` never changes, and `lent` keeps it.
                    self.pipe.try_io(|| Ok(unsafe { vmsplice(&self.pipe, &slices, SpliceFlags::NONBLOCK) }?))
                }
                false => self.pipe.try_write_vectored(&alike.map(|part| IoSlice::new(part)).collect::<Vec<_>>()),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(parts, written, lend),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            self.reclaim()?;
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
        if !self.lent.is_empty() {
            let unread = match self.has_reader()? {
                true => rustix::io::ioctl_fionread(&self.pipe)?,
                false => 0,
            };
            // Saturating: the client may write into its own pipe.
            let read = self.written.saturating_sub(unread);
            while self.lent.front().is_some_and(|(end, _)| *end <= read) {
                self.lent.pop_front();
            }
        }
        Ok(())
    }

    fn has_reader(&self) -> io::Result<bool> {
        let mut pipe = [PollFd::new(&self.pipe, PollFlags::empty())];
        poll(&mut pipe, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(!pipe[0].revents().contains(PollFlags::ERR))
    }

    /// Gives back what the client reads, for as long as this is polled.
    pub(crate) async fn keep_reclaiming(&mut self) -> Infallible {
        // An error has the connection closed at the next write; until then what is lent stays so.
        while !self.lent.is_empty() && self.reclaim().is_ok() {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
        std::future::pending().await
    }

    /// Lets the client read what is still in the pipe.
    pub(crate) async fn finish(&mut self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while !self.lent.is_empty() && self.reclaim().is_ok() && Instant::now() < deadline {
            tokio::time::sleep(RECLAIM_EVERY).await;
        }
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        // The client could still read it: better never freed than filled with something else meanwhile.
        if self.reclaim().is_err() || !self.lent.is_empty() {
            std::mem::forget(std::mem::take(&mut self.lent));
        }
    }
}
