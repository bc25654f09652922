//! Rows that need not be kept, because so many as are wanted come before them.

use std::sync::Arc;

use crate::key::key_prefix;

/// A key, or the beginning of one, that as many rows are not greater than as are wanted.
#[derive(Debug, Clone)]
pub(crate) struct CutoffKey(Arc<[u8]>);

impl CutoffKey {
    /// What comes behind the row with this key.
    pub fn behind(key: &[u8]) -> Self {
        Self(key_prefix(key).into())
    }

    /// What comes behind so many rows as are wanted. Of sorted rows these are samples: the
    /// beginning of a key, and how many rows, beyond those of the sample before, are not greater.
    pub fn of<'k>(samples: impl Iterator<Item = (&'k [u8], usize)>, wanted: u64) -> Option<Self> {
        let mut samples: Vec<_> = samples.collect();
        samples.sort_unstable();
        let mut rows = 0u64;
        let enough = |(_, more): &&(&[u8], usize)| {
            rows += *more as u64;
            rows >= wanted
        };
        samples.iter().find(enough).map(|(key, _)| Self::behind(key))
    }

    /// Whether a row with this key may be among those that are wanted.
    #[inline]
    pub fn is_before(&self, key: &[u8]) -> bool {
        *key_prefix(key) <= *self.0
    }

    /// The one that drops more.
    pub fn or(self, other: Option<Self>) -> Self {
        other.filter(|other| other.0 < self.0).unwrap_or(self)
    }
}
