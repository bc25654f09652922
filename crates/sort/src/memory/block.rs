//! Blocks: rows that lie together in memory, and their keys.

use dray_format::Batch;
use dray_page::{Object, VerifiedPage};

use super::block_keys::BlockKeys;
use super::rows::RowSizes;
use crate::error::{Error, Result};

/// How the payload of rows, all of their columns, lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadLayout {
    /// Each row is an object in a page, as it is spilled (`spec/page.md`).
    Pages,
    /// Rows stay in the batches that they came in, and are gathered column by column. Only batches
    /// of flat columns are kept like this: gathering a nested row would copy each of its items,
    /// while an object is one `memcpy`.
    Batches,
}

/// Rows, each with its key.
#[derive(Debug)]
pub(crate) struct Block {
    pub payload: BlockPayload,
    pub keys: BlockKeys,
}

/// The payload of a block.
#[derive(Debug)]
pub(crate) enum BlockPayload {
    Page(VerifiedPage),
    Batch { batch: Batch, row_bytes: RowSizes },
}

impl Block {
    /// A block of rows and their keys.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are not as many keys as rows.
    pub fn new(payload: BlockPayload, keys: BlockKeys) -> Result<Self> {
        let block = Self { payload, keys };
        match (block.len(), block.keys.len()) {
            (rows, keys) if rows == keys => Ok(block),
            (rows, keys) => Err(Error::Internal(format!("a block of {rows} rows has {keys} keys"))),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match &self.payload {
            BlockPayload::Page(page) => page.len(),
            BlockPayload::Batch { batch, .. } => batch.rows,
        }
    }

    /// A row as an object; `None` if the block has no such row, or is a batch.
    #[inline]
    pub fn object(&self, row: usize) -> Option<Object<'_>> {
        match &self.payload {
            BlockPayload::Page(page) => page.object(row),
            BlockPayload::Batch { .. } => None,
        }
    }
}
