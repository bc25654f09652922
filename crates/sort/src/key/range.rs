//! Ranges of keys, and the beginnings of keys that tell them apart.

use std::sync::Arc;

/// So many bytes of a key are looked at to find out what is wanted, and how a merge is divided.
pub(crate) const PREFIX_BYTES: usize = 32;

/// The beginning of a key.
pub(crate) fn key_prefix(key: &[u8]) -> &[u8] {
    key.get(..PREFIX_BYTES).unwrap_or(key)
}

/// Which keys are meant: those that are not less than `from`, and less than `until`.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRange {
    pub from: Option<Arc<[u8]>>,
    pub until: Option<Arc<[u8]>>,
}
