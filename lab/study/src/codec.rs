//! A format: rows to the bytes of one message, and back.

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::Result;
use crate::compressors::Compressor;

/// How rows become a message. Both ends know the schema.
pub trait Codec: Send + Sync {
    /// The message, in parts that a socket gathers.
    ///
    /// # Errors
    /// When the format cannot hold the rows.
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>>;

    /// The rows of a message.
    ///
    /// # Errors
    /// When the message is not one of this format.
    fn decode(&self, message: Bytes) -> Result<RecordBatch>;
}

/// A codec as experiments pass it around.
pub type AnyCodec = Box<dyn Codec>;

/// A codec whose whole message is compressed, as the paper does it.
pub struct Compressed {
    /// The format below.
    pub inner: AnyCodec,
    /// What its messages go through.
    pub compressor: Compressor,
}

impl Codec for Compressed {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let message = joined(self.inner.encode(rows)?);
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

/// A message in one piece, which a message of one part is already.
pub fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut out = Vec::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.into()
}

/// Reads a message from its start to its end; each read says when there is too little.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("the message is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next bytes, as many as the type says.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("the message is too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn u32(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// A varint as Protocol Buffers have it.
    ///
    /// # Errors
    /// As [`Self::take`], and when it is longer than ten bytes.
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

    /// The bytes up to a zero, which is taken, too.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub fn terminated(&mut self) -> Result<&'a [u8]> {
        let end = memchr::memchr(0, self.0).ok_or("a string does not end")?;
        let value = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(value)
    }
}

/// Writes a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
