//! Names of sources: `spec/protocol.md` section 14.

/// The most bytes of a source's name.
pub const SOURCE_NAME_BYTES_MAX: usize = 64;

/// Whether a text has the form of a source's name: 1 to [`SOURCE_NAME_BYTES_MAX`] of the letters
/// `a` to `z` in either case, digits, `_` and `-`.
pub fn is_source_name(text: &str) -> bool {
    (1..=SOURCE_NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
