//! Receipts: `spec/partitions.md` section 4.

use dray_format::{Cursor, ErrorKind as FormatErrorKind};

use super::{LAYOUT_VERSION, RandomId, altered, check_place, check_start, invalid, seal};
use crate::{ProtocolError, Refusal, Result};

const MAGIC: [u8; 4] = *b"DRYR";
/// The size of a receipt.
pub const RECEIPT_BYTES: usize = 80;
/// Where its seal begins.
const SEAL_AT: usize = 64;

/// That a part was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The plan's name.
    pub plan: RandomId,
    /// The part's number.
    pub index: u32,
    /// The number of parts of the plan.
    pub count: u32,
    /// Rows that were handed out.
    pub rows: u64,
    /// Their digest.
    pub digest: u64,
    /// Names this reading of the part.
    pub reading: RandomId,
}

impl Receipt {
    /// The receipt's bytes.
    pub fn encode(&self) -> [u8; RECEIPT_BYTES] {
        let mut out = Vec::with_capacity(RECEIPT_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&LAYOUT_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.plan.0);
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        out.extend_from_slice(&self.reading.0);
        debug_assert_eq!(out.len(), SEAL_AT);
        let mut bytes = [0; RECEIPT_BYTES];
        let seal = seal(&out);
        bytes[..SEAL_AT].copy_from_slice(&out);
        bytes[SEAL_AT..].copy_from_slice(&seal[..RECEIPT_BYTES - SEAL_AT]);
        bytes
    }

    /// Reads a receipt.
    ///
    /// # Errors
    /// When the bytes are not a receipt, of another version, or changed.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        check_start(bytes, MAGIC, "receipt")?;
        let Some((body, found)) =
            bytes.split_at_checked(SEAL_AT).filter(|_| bytes.len() == RECEIPT_BYTES)
        else {
            let what = format!("a receipt of {} bytes, expected {RECEIPT_BYTES}", bytes.len());
            return Err(ProtocolError::new(Refusal::Size, what));
        };
        if seal(body)[..RECEIPT_BYTES - SEAL_AT] != *found {
            return Err(altered("receipt"));
        }
        let mut cursor = Cursor::new(&body[MAGIC.len() + 2..], FormatErrorKind::Truncated);
        if cursor.u16("flags")? != 0 {
            return Err(invalid("a receipt has flags, expected none"));
        }
        let receipt = Self {
            plan: RandomId::read(&mut cursor, "plan")?,
            index: cursor.u32("index")?,
            count: cursor.u32("count")?,
            rows: cursor.u64("rows")?,
            digest: cursor.u64("digest")?,
            reading: RandomId::read(&mut cursor, "reading")?,
        };
        check_place(receipt.index, receipt.count)?;
        Ok(receipt)
    }
}

impl RandomId {
    pub(super) fn read(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self> {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(cursor.take(16, field)?);
        Ok(Self(bytes))
    }
}
