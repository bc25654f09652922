//! Reading the parts of a packet.

use crate::error::{Error, Result};

/// The rest of a packet, or of a value. All numbers are little-endian.
#[derive(Debug, Clone)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `bytes` bytes.
    ///
    /// # Errors
    /// When fewer are left, as in all reads.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(ended)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next N bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(ended)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A length-encoded integer.
    #[inline]
    pub fn integer(&mut self) -> Result<u64> {
        let first = self.byte()?;
        self.integer_after(first)
    }

    #[inline]
    fn integer_after(&mut self, first: u8) -> Result<u64> {
        match first {
            0..=0xFA => Ok(first.into()),
            0xFC => Ok(u16::from_le_bytes(self.array()?).into()),
            0xFD => {
                let [low, middle, high] = self.array()?;
                Ok(u32::from_le_bytes([low, middle, high, 0]).into())
            }
            0xFE => Ok(u64::from_le_bytes(self.array()?)),
            _ => Err(Error::malformed(format!("the byte {first:#04x} for a length"))),
        }
    }

    /// A string or other bytes after their length-encoded length.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let first = self.byte()?;
        self.bytes_after(first)
    }

    #[inline]
    fn bytes_after(&mut self, first: u8) -> Result<&'a [u8]> {
        let bytes = self.integer_after(first)?;
        self.take(usize::try_from(bytes).map_err(|_| ended())?)
    }

    /// A value of the text protocol; None is NULL.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.byte()? {
            0xFB => Ok(None),
            first => self.bytes_after(first).map(Some),
        }
    }

    /// Checks that nothing is left of `what`.
    ///
    /// # Errors
    /// When something is.
    pub fn end(&self, what: &str) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(Error::malformed(format!("{left} bytes after the end of {what}"))),
        }
    }
}

#[cold]
fn ended() -> Error {
    Error::malformed("a packet that ends too soon")
}
