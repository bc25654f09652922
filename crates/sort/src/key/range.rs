//! Ranges of keys, and the key prefixes that bound them.

use std::sync::Arc;

/// The longest prefix of a key that bounds a range or serves as a cutoff key, in bytes.
pub(crate) const PREFIX_BYTES: usize = 32;

/// The first [`PREFIX_BYTES`] bytes of a key, or all of a shorter one.
pub(crate) fn key_prefix(key: &[u8]) -> &[u8] {
    key.get(..PREFIX_BYTES).unwrap_or(key)
}

/// The keys that are not less than `from` and less than `until`. `None` is unbounded.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRange {
    pub from: Option<Arc<[u8]>>,
    pub until: Option<Arc<[u8]>>,
}
