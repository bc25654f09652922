//! A format: it encodes rows as one message and decodes them.

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::Result;
use crate::compressors::Compressor;

/// Encodes and decodes messages. Both ends know the schema.
pub trait Codec: Send + Sync {
    /// Encodes rows as the buffers of one message, for a vectored write.
    ///
    /// # Errors
    /// If the format cannot represent the rows.
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>>;

    /// Decodes the rows of a message.
    ///
    /// # Errors
    /// If the message is malformed.
    fn decode(&self, message: Bytes) -> Result<RecordBatch>;
}

/// A codec of any format.
pub type AnyCodec = Box<dyn Codec>;

/// A codec that compresses each message as a whole, as the paper does.
pub struct Compressed {
    /// The format of the plain message.
    pub inner: AnyCodec,
    /// The compressor of the message.
    pub compressor: Compressor,
}

impl Codec for Compressed {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let message = concatenate(self.inner.encode(rows)?);
        let mut out = Vec::with_capacity(message.len() / 2);
        out.extend_from_slice(&u32::try_from(message.len())?.to_le_bytes());
        self.compressor.compress(&message, &mut out)?;
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let (length, compressed) =
            message.split_first_chunk::<4>().ok_or("a message without a length")?;
        let plain = self.compressor.decompress(compressed, u32::from_le_bytes(*length) as usize)?;
        self.inner.decode(plain.into())
    }
}

/// A message as one buffer; a message of one buffer is not copied.
pub fn concatenate(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut out = Vec::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.into()
}

/// A cursor over a message. Each read fails if the message is too short.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next `count` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("the message is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("the message is too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A 32-bit little-endian integer.
    ///
    /// # Errors
    /// If fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// A varint of Protocol Buffers.
    ///
    /// # Errors
    /// If the message ends first, or the varint is longer than ten bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for (i, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.0 = &self.0[i + 1..];
                return Ok(value);
            }
        }
        Err("a varint does not end".into())
    }

    /// The bytes before the next zero byte, which is consumed as well.
    ///
    /// # Errors
    /// If there is no zero byte.
    #[inline]
    pub fn terminated(&mut self) -> Result<&'a [u8]> {
        let end = memchr::memchr(0, self.0).ok_or("a string does not end")?;
        let value = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(value)
    }
}

/// Appends a varint of Protocol Buffers.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
