//! Blocking reads of an object, for readers of text and of Arrow messages. Bytes come ahead, since
//! each request takes a round trip.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::{Object, StoreError, StoreErrorKind};

/// The bytes of a request, unless more are asked for at once.
const AHEAD_BYTES: u64 = 4 << 20;

/// Reads an object. It blocks the calling thread.
#[derive(Debug)]
pub struct ObjectReader {
    object: Object,
    /// The place of the next [`Read::read`].
    at: u64,
    /// The last bytes that came, and their offset.
    window: Mutex<(u64, Bytes)>,
}

impl ObjectReader {
    pub(crate) fn new(object: Object) -> Self {
        Self { object, at: 0, window: Mutex::new((0, Bytes::new())) }
    }

    /// The bytes from `at`: at least one unless the object ends there, and `wanted` if they are
    /// there. A request asks for at least `ahead`.
    fn bytes_from(&self, at: u64, wanted: u64, ahead: u64) -> Result<Bytes, StoreError> {
        let size = self.object.bytes();
        let end = at.saturating_add(wanted).min(size);
        if at >= end {
            return Ok(Bytes::new());
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let until = window.0 + window.1.len() as u64;
        if at < window.0 || end > until {
            let end = at.saturating_add(wanted.max(ahead)).min(size);
            *window = (at, self.object.wait_for(at..end)?);
        }
        let rest = usize::try_from(at - window.0).ok().and_then(|from| window.1.get(from..));
        // Nothing would look like the object's end.
        let outside = || StoreError::new(StoreErrorKind::Other, "a read outside of what came");
        Ok(window.1.slice_ref(rest.ok_or_else(outside)?))
    }

    /// Fills `buffer` from an offset.
    ///
    /// # Errors
    /// If the object ends before, was replaced, or can't be read.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.fill(buffer, at, AHEAD_BYTES)
    }

    /// Fills `buffer` from an offset, and asks for nothing behind it.
    ///
    /// # Errors
    /// As those of [`Self::read_at`].
    pub fn read_alone_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.fill(buffer, at, 0)
    }

    fn fill(&self, buffer: &mut [u8], at: u64, ahead: u64) -> io::Result<()> {
        let bytes = self.bytes_from(at, buffer.len() as u64, ahead)?;
        match bytes.get(..buffer.len()) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let bytes = self.bytes_from(self.at, 1, AHEAD_BYTES)?;
        let count = bytes.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.object.bytes().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
