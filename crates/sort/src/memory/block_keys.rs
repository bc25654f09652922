//! The keys of the rows of a block, and binary search in sorted keys.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{Keys, WORD_BYTES};

/// How many of `rows` sorted rows have keys less than `key`.
pub(crate) fn rows_before<'k>(
    rows: usize,
    key: &[u8],
    key_of: impl Fn(usize) -> Option<&'k [u8]>,
) -> Result<usize> {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = low.midpoint(high);
        let found = key_of(middle).ok_or_else(|| Error::missing("the key of a sorted row"))?;
        if found < key { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// The keys of the rows of a block, together less than 4 GiB.
#[derive(Debug)]
pub(crate) struct BlockKeys {
    rows: usize,
    bytes: Vec<u8>,
    bounds: KeyBounds,
}

#[derive(Debug)]
enum KeyBounds {
    /// Keys of this many bytes each.
    Fixed(usize),
    /// Where each key ends.
    Variable(Vec<u32>),
}

impl BlockKeys {
    /// No keys yet. `width` is the bytes of every key; `None` if they differ in size.
    pub fn new(width: Option<usize>) -> Self {
        Self {
            rows: 0,
            bytes: Vec::new(),
            bounds: width.map_or(KeyBounds::Variable(Vec::new()), KeyBounds::Fixed),
        }
    }

    /// Keys that were written as [`parts`](Self::parts).
    ///
    /// # Errors
    /// [`Error::Internal`] if the parts don't make `rows` keys.
    pub fn from_parts(
        width: Option<usize>,
        rows: usize,
        ends: &[u8],
        bytes: Vec<u8>,
    ) -> Result<Self> {
        let ends = || ends.as_chunks::<4>().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let keys = Self {
            rows,
            bytes,
            bounds: width.map_or_else(|| KeyBounds::Variable(ends()), KeyBounds::Fixed),
        };
        let are_complete = match &keys.bounds {
            KeyBounds::Fixed(width) => Some(keys.bytes.len()) == width.checked_mul(rows),
            KeyBounds::Variable(ends) => {
                let end = ends.last().map_or(0, |end| *end as usize);
                ends.len() == rows && ends.is_sorted() && end == keys.bytes.len()
            }
        };
        if are_complete { Ok(keys) } else { Err(Error::missing("a key of a block")) }
    }

    /// The keys of a batch; `width` as in [`new`](Self::new).
    pub fn from_keys(width: Option<usize>, keys: Keys) -> Result<Self> {
        let mut all = Self::new(width);
        if let KeyBounds::Fixed(_) = all.bounds {
            all.rows = keys.len();
            all.bytes = keys.into_bytes();
            all.end()?;
            return Ok(all);
        }
        all.extend(&keys, 0..keys.len())?;
        all.shrink();
        Ok(all)
    }

    /// The bytes of all keys.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// The key of a row; `None` if there is no such row.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let range = match &self.bounds {
            KeyBounds::Fixed(width) => row * width..(row + 1) * width,
            KeyBounds::Variable(ends) => {
                let end = *ends.get(row)? as usize;
                let start = if row == 0 { 0 } else { *ends.get(row - 1)? as usize };
                start..end
            }
        };
        self.bytes.get(range)
    }

    /// Whether keys of one width ascend.
    pub fn is_sorted(&self) -> bool {
        match self.bounds {
            KeyBounds::Fixed(WORD_BYTES) => {
                self.bytes.as_chunks().0.iter().map(|key| u64::from_be_bytes(*key)).is_sorted()
            }
            KeyBounds::Fixed(width) => width == 0 || self.bytes.chunks_exact(width).is_sorted(),
            KeyBounds::Variable(_) => false,
        }
    }

    /// How many keys are less than `key`. The keys must be sorted.
    pub fn rows_before(&self, key: &[u8]) -> Result<usize> {
        rows_before(self.rows, key, |row| self.get(row))
    }

    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        self.rows += 1;
        self.bytes.extend_from_slice(key);
        let end = self.end()?;
        if let KeyBounds::Variable(ends) = &mut self.bounds {
            ends.push(end);
        }
        Ok(())
    }

    /// Appends the keys of a range of rows.
    pub fn extend(&mut self, keys: &Keys, rows: Range<usize>) -> Result<()> {
        match self.bounds {
            KeyBounds::Fixed(_) => {
                self.rows += rows.len();
                self.bytes.extend_from_slice(keys.bytes(rows));
            }
            KeyBounds::Variable(_) => {
                rows.into_iter().try_for_each(|row| self.push(keys.get(row)))?
            }
        }
        self.end().map(drop)
    }

    /// Where the last key ends.
    ///
    /// # Errors
    /// [`Error::Setting`] beyond 4 GiB.
    fn end(&self) -> Result<u32> {
        let refused = |_| Error::Setting("the keys of a page are larger than 4 GiB".into());
        u32::try_from(self.bytes.len()).map_err(refused)
    }

    /// The bytes of the keys, and those of their ends, which keys of fixed width don't have.
    pub fn parts(&self) -> (&[u8], Vec<u8>) {
        let ends = match &self.bounds {
            KeyBounds::Fixed(_) => Vec::new(),
            KeyBounds::Variable(ends) => ends.iter().flat_map(|end| end.to_le_bytes()).collect(),
        };
        (&self.bytes, ends)
    }

    pub fn memory_bytes(&self) -> usize {
        let ends = match &self.bounds {
            KeyBounds::Fixed(_) => 0,
            KeyBounds::Variable(ends) => ends.capacity() * size_of::<u32>(),
        };
        self.bytes.capacity() + ends
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        if let KeyBounds::Variable(ends) = &mut self.bounds {
            ends.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockKeys, rows_before};
    use crate::error::Error;

    #[test]
    fn incomplete_keys_are_refused() {
        let ends =
            |ends: &[u32]| ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>();
        let is_internal = |keys| matches!(keys, Err(Error::Internal(_)));
        assert!(is_internal(BlockKeys::from_parts(Some(8), 2, &[], vec![0; 15]).map(drop)));
        assert!(is_internal(
            BlockKeys::from_parts(Some(usize::MAX), 2, &[], vec![0; 15]).map(drop)
        ));
        for wrong in [&[1, 3][..], &[1, 0, 3], &[1, 2, 4], &[1, 2]] {
            assert!(
                is_internal(BlockKeys::from_parts(None, 3, &ends(wrong), vec![0; 3]).map(drop)),
                "{wrong:?}"
            );
        }
        let keys = BlockKeys::from_parts(None, 3, &ends(&[1, 1, 3]), b"abc".to_vec()).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|row| keys.get(row)),
            [Some(&b"a"[..]), Some(b""), Some(b"bc"), None]
        );
        assert!(matches!(rows_before(4, b"z", |row| keys.get(row)), Err(Error::Internal(_))));
    }
}
