//! Reading and writing little-endian fields.

use crate::error::{Error, ErrorKind, Result};

/// A reader over a byte slice. Every read names its field, and its error says which field the bytes
/// end in.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    truncated: ErrorKind,
}

macro_rules! reads {
    ($($name:ident: $type:ty),*) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        pub fn $name(&mut self, field: &'static str) -> Result<$type> {
            let mut raw = [0; size_of::<$type>()];
            let taken = self.take(size_of::<$type>(), field)?;
            raw.copy_from_slice(taken);
            Ok(<$type>::from_le_bytes(raw))
        }
    )*};
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`. Its errors are of kind `truncated`.
    pub fn new(bytes: &'a [u8], truncated: ErrorKind) -> Self {
        Self { bytes, truncated }
    }

    reads!(u8: u8, i8: i8, u16: u16, u32: u32, u64: u64);

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(Error::new(
                self.truncated,
                format!(
                    "the bytes end in field {field}: {count} needed, {} left",
                    self.bytes.len()
                ),
            ));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// A u32 length, then that many bytes.
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8]> {
        let count = self.u32(field)?;
        self.take(count as usize, field)
    }

    /// A u32 length, then that many bytes of UTF-8.
    pub fn string(&mut self, field: &'static str) -> Result<&'a str> {
        let bytes = self.bytes(field)?;
        std::str::from_utf8(bytes)
            .map_err(|_| Error::new(self.truncated, format!("field {field} is not UTF-8")))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }
}

/// Appends the length of `bytes` as a u32, then `bytes`.
///
/// # Errors
/// When the length does not fit.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let Ok(count) = u32::try_from(bytes.len()) else {
        return Err(Error::new(
            ErrorKind::Limit,
            format!("{} bytes are too many for one field", bytes.len()),
        ));
    };
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
