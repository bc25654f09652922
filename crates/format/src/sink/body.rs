//! The body of a frame: large buffers are shared, and small ones copied between them.

use bytes::{Bytes, BytesMut};

use crate::layout::{LARGE_ALIGNMENT, LARGE_BUFFER_BYTES, alignment};

static ZEROS: [u8; LARGE_ALIGNMENT] = [0; LARGE_ALIGNMENT];

/// A body under construction.
#[derive(Default)]
pub(super) struct Body {
    parts: Vec<Bytes>,
    /// The bytes after the last part.
    tail: BytesMut,
    bytes: usize,
}

impl Body {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pads the body to where a buffer of this size may begin.
    pub(super) fn align(&mut self, buffer_bytes: usize) {
        let padding = self.bytes.next_multiple_of(alignment(buffer_bytes)) - self.bytes;
        self.tail.extend_from_slice(&ZEROS[..padding]);
        self.bytes += padding;
    }

    pub(super) fn push(&mut self, part: Bytes) {
        self.bytes += part.len();
        if part.len() < LARGE_BUFFER_BYTES {
            self.tail.extend_from_slice(&part);
        } else {
            self.flush();
            self.parts.push(part);
        }
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.parts.push(self.tail.split().freeze());
        }
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        debug_assert_eq!(self.parts.iter().map(Bytes::len).sum::<usize>(), self.bytes);
        self.parts
    }
}
