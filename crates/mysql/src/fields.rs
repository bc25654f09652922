//! The fields of a packet, read in order. Each read names its field in its error.

use crate::error::{Error, ErrorKind, Result};

/// What is left of a packet's payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn bytes(&mut self, count: usize, field: &str) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(|| cut_off(field))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(|| cut_off(field))?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self, field: &str) -> Result<u8> {
        self.array(field).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, field: &str) -> Result<u16> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, field: &str) -> Result<u32> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A length-encoded integer: one byte, or a mark and 2, 3 or 8 bytes.
    pub(crate) fn integer(&mut self, field: &str) -> Result<u64> {
        match self.u8(field)? {
            0xfc => self.u16(field).map(u64::from),
            0xfd => {
                let [a, b, c] = self.array(field)?;
                Ok(u32::from_le_bytes([a, b, c, 0]).into())
            }
            0xfe => self.array(field).map(u64::from_le_bytes),
            // NULL, and the mark of an error.
            mark @ (0xfb | 0xff) => {
                Err(malformed(format!("byte {mark:#04x} begins no integer ({field})")))
            }
            small => Ok(small.into()),
        }
    }

    /// A length-encoded string.
    pub(crate) fn string(&mut self, field: &str) -> Result<&'a [u8]> {
        let length = self.integer(field)?;
        self.bytes(usize::try_from(length).map_err(|_| cut_off(field))?, field)
    }

    /// A length-encoded string; None is NULL.
    pub(crate) fn nullable_string(&mut self, field: &str) -> Result<Option<&'a [u8]>> {
        match self.0.split_first() {
            Some((0xfb, rest)) => {
                self.0 = rest;
                Ok(None)
            }
            _ => self.string(field).map(Some),
        }
    }

    /// A string that ends with a zero byte.
    pub(crate) fn zero_ended(&mut self, field: &str) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(|| cut_off(field))?;
        let string = self.bytes(end, field)?;
        self.u8(field)?;
        Ok(string)
    }
}

fn cut_off(field: &str) -> Error {
    malformed(format!("the packet ends in its {field}"))
}

#[cold]
pub(crate) fn malformed(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Protocol, format!("the server's answer can't be understood: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (bytes, expected) in [
            (&[250][..], Some(250)),
            (&[0xfc, 1, 2], Some(0x201)),
            (&[0xfd, 1, 2, 3], Some(0x3_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80], Some((1 << 63) + 1)),
            (&[], None),
            (&[0xfb], None),
            (&[0xff], None),
            (&[0xfc, 1], None),
            (&[0xfd, 1, 2], None),
            (&[0xfe, 1, 2, 3, 4, 5, 6, 7], None),
        ] {
            let found = Fields::new(bytes).integer("number");
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{bytes:?}");
        }
    }

    #[test]
    fn strings() {
        let mut fields = Fields::new(b"\x02ab\xfbc\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff");
        assert_eq!(fields.string("a").unwrap(), b"ab");
        assert_eq!(fields.nullable_string("b").unwrap(), None);
        assert_eq!(fields.zero_ended("c").unwrap(), b"c");
        let error = fields.string("last field").unwrap_err();
        assert!(error.to_string().contains("last field"), "{error}");
    }
}
