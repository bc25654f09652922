//! The keys of the rows of a block.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::Keys;

/// How many of so many rows, which are sorted, have keys less than this one.
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
        Self {
            rows: 0,
            bytes: Vec::new(),
            places: width.map_or(Places::Ends(Vec::new()), Places::Even),
        }
    }

    /// Keys as they were written: their ends, if they have not one width, and their bytes.
    pub fn from_parts(
        width: Option<usize>,
        rows: usize,
        ends: &[u8],
        bytes: Vec<u8>,
    ) -> Result<Self> {
        let ends = || ends.as_chunks::<4>().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let keys =
            Self { rows, bytes, places: width.map_or_else(|| Places::Ends(ends()), Places::Even) };
        let are_whole = match &keys.places {
            Places::Even(width) => Some(keys.bytes.len()) == width.checked_mul(rows),
            Places::Ends(ends) => {
                let end = ends.last().map_or(0, |end| *end as usize);
                ends.len() == rows && ends.is_sorted() && end == keys.bytes.len()
            }
        };
        if are_whole { Ok(keys) } else { Err(Error::missing("a key of a block")) }
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

    /// The key of a row, if there is one.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let place = match &self.places {
            Places::Even(width) => row * width..(row + 1) * width,
            Places::Ends(ends) => {
                let end = *ends.get(row)? as usize;
                let start = if row == 0 { 0 } else { *ends.get(row - 1)? as usize };
                start..end
            }
        };
        self.bytes.get(place)
    }

    /// How many keys are less than this one, if they are sorted.
    pub fn rows_before(&self, key: &[u8]) -> Result<usize> {
        rows_before(self.rows, key, |row| self.get(row))
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

#[cfg(test)]
mod tests {
    use super::{BlockKeys, rows_before};
    use crate::error::Error;

    #[test]
    fn keys_that_are_not_whole_are_refused() {
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
