//! Rows that lie together, and their keys: what pieces in memory and runs on disk are made of.

use std::sync::Arc;

use dray_format::Batch;
use dray_page::{Object, VerifiedPage};

use super::block_keys::BlockKeys;
use crate::error::{Error, Result};

/// Rows that lie together, and their keys.
#[derive(Debug)]
pub(crate) struct Block {
    pub rows: BlockPayload,
    pub keys: BlockKeys,
}

/// How rows lie in memory.
#[derive(Debug)]
pub(crate) enum BlockPayload {
    /// One behind the other, as they are spilled.
    Page(VerifiedPage),
    /// As they came, with the bytes that each would have in a page.
    Batch(Batch, Arc<[u32]>),
}

impl Block {
    /// Rows, each with its key.
    pub fn new(rows: BlockPayload, keys: BlockKeys) -> Result<Self> {
        let block = Self { rows, keys };
        match (block.len(), block.keys.len()) {
            (rows, keys) if rows == keys => Ok(block),
            (rows, keys) => Err(Error::Internal(format!("a block of {rows} rows has {keys} keys"))),
        }
    }

    pub fn len(&self) -> usize {
        match &self.rows {
            BlockPayload::Page(page) => page.len(),
            BlockPayload::Batch(batch, _) => batch.rows,
        }
    }

    pub fn is_kept(&self) -> bool {
        matches!(self.rows, BlockPayload::Batch(..))
    }

    /// A row as an object, if it is one.
    #[inline]
    pub fn object(&self, row: usize) -> Option<Object<'_>> {
        match &self.rows {
            BlockPayload::Page(page) => page.object(row),
            BlockPayload::Batch(..) => None,
        }
    }
}

/// A block of a source, counted over all pieces, and a row in it.
pub(crate) type RowLocation = (u32, u32);
