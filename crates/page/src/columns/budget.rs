//! The bytes that a batch may still take.

use crate::error::{Result, refuse};

#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: u64,
    left: u64,
}

impl Budget {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, left: bytes_max }
    }

    pub(super) fn reset(&mut self) {
        self.left = self.bytes_max;
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn taken(&self) -> u64 {
        self.bytes_max - self.left
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> Result<()> {
        let taken =
            (count as u64).checked_mul(bytes as u64).and_then(|taken| self.left.checked_sub(taken));
        let Some(left) = taken else {
            refuse!(
                Limit,
                "the batch grows over {} bytes; fewer objects make a smaller one",
                self.bytes_max
            );
        };
        self.left = left;
        Ok(())
    }
}
