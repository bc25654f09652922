//! Rows that lie together, and their keys: what pieces in memory and runs on disk are made of.

use std::ops::Range;
use std::sync::Arc;

use dray_format::Batch;
use dray_page::{Object, VerifiedPage};

use crate::error::{Error, Result};
use crate::key::Keys;

/// Rows that lie together, and their keys.
#[derive(Debug)]
pub(crate) struct Block {
    pub rows: BlockRows,
    pub keys: BlockKeys,
}

/// How rows lie in memory.
#[derive(Debug)]
pub(crate) enum BlockRows {
    /// One behind the other, as they are spilled.
    Page(VerifiedPage),
    /// As they came, with the bytes that each would have in a page.
    Batch(Batch, Arc<[u32]>),
}

impl Block {
    pub fn len(&self) -> usize {
        match &self.rows {
            BlockRows::Page(page) => page.len(),
            BlockRows::Batch(batch, _) => batch.rows,
        }
    }

    pub fn is_kept(&self) -> bool {
        matches!(self.rows, BlockRows::Batch(..))
    }

    /// A row as an object, if it is one.
    #[inline]
    pub fn object(&self, row: usize) -> Option<Object<'_>> {
        match &self.rows {
            BlockRows::Page(page) => page.object(row),
            BlockRows::Batch(..) => None,
        }
    }
}

/// The keys of the rows of a block, less than 4 GiB.
#[derive(Debug)]
pub(crate) struct BlockKeys {
    rows: usize,
    bytes: Vec<u8>,
    places: Places,
}

#[derive(Debug)]
enum Places {
    Even(usize),
    Ends(Vec<u32>),
}

impl BlockKeys {
    /// No keys yet, of one width or of many.
    pub fn new(width: Option<usize>) -> Self {
        Self { rows: 0, bytes: Vec::new(), places: width.map_or(Places::Ends(Vec::new()), Places::Even) }
    }

    /// Keys as they were written: their ends, if they have not one width, and their bytes.
    pub fn from_parts(width: Option<usize>, rows: usize, ends: &[u8], bytes: Vec<u8>) -> Self {
        let ends = || ends.as_chunks::<4>().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        Self { rows, bytes, places: width.map_or_else(|| Places::Ends(ends()), Places::Even) }
    }

    /// These keys, which have one width or many.
    pub fn from_keys(width: Option<usize>, keys: Keys) -> Result<Self> {
        let mut all = Self::new(width);
        all.extend(&keys, 0..keys.len())?;
        all.shrink();
        Ok(all)
    }

    /// The bytes of the keys.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// The key of a row; nothing if there is no such row.
    #[inline(always)]
    pub fn get(&self, row: usize) -> &[u8] {
        let place = match &self.places {
            Places::Even(width) => row * width..(row + 1) * width,
            Places::Ends(ends) => {
                let end_of = |row: usize| ends.get(row).map_or(0, |end| *end as usize);
                row.checked_sub(1).map_or(0, end_of)..end_of(row)
            }
        };
        self.bytes.get(place).unwrap_or_default()
    }

    /// How many keys are less than this one, if they are sorted.
    pub fn rows_before(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        self.rows += 1;
        self.bytes.extend_from_slice(key);
        let end = self.end()?;
        if let Places::Ends(ends) = &mut self.places {
            ends.push(end);
        }
        Ok(())
    }

    /// Appends the keys of some rows.
    pub fn extend(&mut self, keys: &Keys, rows: Range<usize>) -> Result<()> {
        match self.places {
            Places::Even(_) => {
                self.rows += rows.len();
                self.bytes.extend_from_slice(keys.bytes(rows));
            }
            Places::Ends(_) => rows.into_iter().try_for_each(|row| self.push(keys.get(row)))?,
        }
        self.end().map(drop)
    }

    fn end(&self) -> Result<u32> {
        let refused = |_| Error::Setting("the keys of a page are larger than 4 GiB".into());
        u32::try_from(self.bytes.len()).map_err(refused)
    }

    /// The bytes of the keys and of their ends, as they are written.
    pub fn parts(&self) -> (&[u8], Vec<u8>) {
        let ends = match &self.places {
            Places::Even(_) => Vec::new(),
            Places::Ends(ends) => ends.iter().flat_map(|end| end.to_le_bytes()).collect(),
        };
        (&self.bytes, ends)
    }

    pub fn memory_bytes(&self) -> usize {
        let ends = match &self.places {
            Places::Even(_) => 0,
            Places::Ends(ends) => ends.capacity() * size_of::<u32>(),
        };
        self.bytes.capacity() + ends
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        if let Places::Ends(ends) = &mut self.places {
            ends.shrink_to_fit();
        }
    }
}
