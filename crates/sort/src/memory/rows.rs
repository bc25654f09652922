//! The locations and the sizes of rows.

use std::sync::Arc;

/// The bytes of each row of a batch as an object.
#[derive(Debug, Clone)]
pub(crate) enum RowSizes {
    Equal { bytes: u32, rows: usize },
    Each(Arc<[u32]>),
}

impl RowSizes {
    pub fn new(sizes: &[u32]) -> Self {
        match sizes {
            [bytes, rest @ ..] if rest.iter().all(|other| other == bytes) => {
                Self::Equal { bytes: *bytes, rows: sizes.len() }
            }
            sizes => Self::Each(sizes.into()),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Equal { rows, .. } => *rows,
            Self::Each(sizes) => sizes.len(),
        }
    }

    /// The bytes of a row; `None` if there is no such row.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<u32> {
        match self {
            Self::Equal { bytes, rows } => (row < *rows).then_some(*bytes),
            Self::Each(sizes) => sizes.get(row).copied(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Equal { .. } => 0,
            Self::Each(sizes) => size_of_val(&sizes[..]),
        }
    }
}

/// A block, counted over all in-memory runs of a merge, and a row in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLocation {
    pub block: u32,
    pub row: u32,
}
