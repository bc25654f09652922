//! Reading the parts of a value.

use super::fixed;
use crate::error::{Error, Result};

/// The rest of a value.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(wrong_length)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(fixed(self.take(4)?)?))
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(fixed(self.take(8)?)?))
    }

    /// A value after its length, which is -1 for NULL.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            bytes => self.take(usize::try_from(bytes).map_err(|_| wrong_length())?).map(Some),
        }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(wrong_length()) }
    }
}

#[cold]
pub(super) fn wrong_length() -> Error {
    Error::Malformed("a value that ends too soon or too late".to_owned())
}
