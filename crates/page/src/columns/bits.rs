//! A bitmap under construction.

use bytes::Bytes;
use dray_format::Bitmap;

#[derive(Debug, Default)]
pub(super) struct Bits {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

impl Bits {
    #[inline]
    pub(super) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
    }

    pub(super) fn finish(self) -> Bitmap {
        Bitmap { bytes: Bytes::from(self.bytes), offset: 0, len: self.len }
    }
}
