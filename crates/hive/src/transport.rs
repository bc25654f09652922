//! Bytes to and from a server: in frames once SASL has let the user in, else as they are.
//!
//! A frame is a length of four bytes, big-endian, and its bytes. A message may have several frames,
//! and does not say how long it is. So it is read while it is understood, from a buffer of fixed
//! size, and has a budget: nothing that it announces may be longer than what is left of it.

use std::io::{self, Read, Write};

use dray_net::{CancelCheck, is_timeout, write_all};

use crate::error::{Error, Result};

/// The most bytes that are read from the socket at once.
const READ_BYTES: usize = 256 << 10;
/// The largest message. What is read of one is kept, so this also limits memory.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// A connection that carries messages.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    stream: S,
    /// `buffer[start..end]` was read and not used yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_framed: bool,
    /// What is left of the frame.
    frame_left: usize,
    /// What a message may still have.
    budget: usize,
    is_broken: bool,
}

impl<S: Read + Write> Transport<S> {
    /// A transport over a connection on which nothing waits to be read.
    pub(crate) fn new(stream: S, is_framed: bool) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            is_framed,
            frame_left: 0,
            budget: 0,
            is_broken: false,
        }
    }

    /// Whether nobody knows what comes next.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Sends a message and prepares for its answer.
    ///
    /// # Errors
    /// If the connection breaks, or the check ends the wait.
    pub(crate) fn send(&mut self, message: &[u8], check: CancelCheck<'_, Error>) -> Result<()> {
        // Unless the answer is read to its end.
        self.is_broken = true;
        self.budget = MESSAGE_BYTES_MAX;
        let mut out = Vec::with_capacity(message.len() + 4);
        if self.is_framed {
            let bytes = i32::try_from(message.len());
            let bytes =
                bytes.map_err(|_| Error::Limit("the statement is over 2 GiB".to_owned()))?;
            out.extend(bytes.to_be_bytes());
        }
        out.extend(message);
        write_all(&mut self.stream, &out, |cause| broke(&cause), check)
    }

    /// Ends the answer: nothing may come after it.
    ///
    /// # Errors
    /// If something has.
    pub(crate) fn end_message(&mut self) -> Result<()> {
        if self.frame_left > 0 || self.start < self.end {
            return Err(Error::protocol("more than one answer came"));
        }
        self.is_broken = false;
        Ok(())
    }

    /// The bytes that the message may still have.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// The next bytes of the message: at least one, at most `bytes_max`, which is not 0.
    #[inline]
    pub(crate) fn chunk(
        &mut self,
        bytes_max: usize,
        check: CancelCheck<'_, Error>,
    ) -> Result<&[u8]> {
        if self.start == self.end || self.is_framed && self.frame_left == 0 {
            self.await_bytes(check)?;
        }
        let mut bytes = bytes_max.min(self.end - self.start);
        if self.is_framed {
            bytes = bytes.min(self.frame_left);
            self.frame_left -= bytes;
        }
        self.budget = self.budget.checked_sub(bytes).ok_or_else(too_large)?;
        let from = self.start;
        self.start += bytes;
        Ok(&self.buffer[from..self.start])
    }

    /// The next `N` bytes of the message.
    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        check: CancelCheck<'_, Error>,
    ) -> Result<[u8; N]> {
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            let chunk = self.chunk(N - filled, check)?;
            array[filled..filled + chunk.len()].copy_from_slice(chunk);
            filled += chunk.len();
        }
        Ok(array)
    }

    /// Waits until there are bytes of the message.
    fn await_bytes(&mut self, check: CancelCheck<'_, Error>) -> Result<()> {
        while self.is_framed && self.frame_left == 0 {
            let mut header = [0; 4];
            for byte in &mut header {
                if self.start == self.end {
                    self.fill(check)?;
                }
                *byte = self.buffer[self.start];
                self.start += 1;
            }
            self.budget = self.budget.checked_sub(header.len()).ok_or_else(too_large)?;
            let bytes = usize::try_from(i32::from_be_bytes(header));
            let bytes = bytes.map_err(|_| Error::protocol("a frame has a length below 0"))?;
            if bytes > self.budget {
                return Err(too_large());
            }
            self.frame_left = bytes;
        }
        if self.start == self.end {
            self.fill(check)?;
        }
        Ok(())
    }

    /// Fills the buffer, which is empty, with at least one byte.
    fn fill(&mut self, check: CancelCheck<'_, Error>) -> Result<()> {
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(Error::Lost("the server closed the connection".to_owned())),
                Ok(read) => {
                    (self.start, self.end) = (0, read);
                    return Ok(());
                }
                Err(cause) if is_timeout(&cause) => check()?,
                Err(cause) => return Err(broke(&cause)),
            }
        }
    }
}

fn broke(cause: &io::Error) -> Error {
    Error::Lost(format!("the connection to the server broke: {cause}"))
}

#[cold]
fn too_large() -> Error {
    Error::Limit(format!("an answer of the server has over {MESSAGE_BYTES_MAX} bytes"))
}
