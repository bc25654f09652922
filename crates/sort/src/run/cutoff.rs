//! Cutoff keys: the bound beyond which no row of a limited result lies (Chronis, Do, Graefe and
//! Peters, "External Merge Sort for Top-K Queries", 2020).

use std::sync::Arc;

use crate::key::key_prefix;

/// A key prefix. At least as many rows as the limit admits have keys that are not greater, so rows
/// with greater keys are not needed.
#[derive(Debug, Clone)]
pub(crate) struct CutoffKey(Arc<[u8]>);

impl CutoffKey {
    /// Excludes rows after the one with this key.
    pub fn at(key: &[u8]) -> Self {
        Self(key_prefix(key).into())
    }

    /// Excludes rows after the first `limit` ones, if the samples show where these end. A sample is
    /// a key prefix and a number of rows: those since the sample before it in the same run, none of
    /// which is greater than the prefix.
    pub fn from_samples<'k>(
        samples: impl Iterator<Item = (&'k [u8], usize)>,
        limit: u64,
    ) -> Option<Self> {
        let mut samples: Vec<_> = samples.collect();
        samples.sort_unstable();
        let mut rows = 0u64;
        let is_enough = |(_, more): &&(&[u8], usize)| {
            rows += *more as u64;
            rows >= limit
        };
        samples.iter().find(is_enough).map(|(key, _)| Self::at(key))
    }

    /// Whether a row with this key may be needed.
    #[inline]
    pub fn admits(&self, key: &[u8]) -> bool {
        *key_prefix(key) <= *self.0
    }

    /// The lesser of two cutoff keys, which excludes more rows.
    pub fn min(self, other: Option<Self>) -> Self {
        other.filter(|other| other.0 < self.0).unwrap_or(self)
    }
}
