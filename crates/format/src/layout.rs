//! The rules of a chunk's layout that its writer and its reader share: alignment, padding and
//! limits (`spec/chunk.md` sections 3 to 5, `spec/state.md` section 2).

use crate::error::{Result, refuse};

/// The most values, items or bytes of strings in one column of a chunk (chunk.md section 3).
pub const COUNT_MAX: usize = (1 << 31) - 1;
/// The most values of a chunk that take no bytes (chunk.md section 5).
pub const WEIGHTLESS_MAX: usize = 1 << 24;

/// Table numbers are below this (state.md section 2).
pub(crate) const TABLE_NUMBERS: u32 = 1 << 16;
/// The most entries of a table (state.md section 2).
pub(crate) const TABLE_ENTRIES_MAX: usize = 1 << 14;
/// The most bytes of a table's entries (state.md section 2).
pub(crate) const TABLE_BYTES_MAX: usize = 1 << 16;

/// The body, and buffers of [`LARGE_BUFFER_BYTES`] or more, begin at a multiple of this.
pub(crate) const LARGE_ALIGNMENT: usize = 64;
const SMALL_ALIGNMENT: usize = 8;
/// Buffers of this size or more have the large alignment (chunk.md section 4).
pub(crate) const LARGE_BUFFER_BYTES: usize = 4096;

/// The alignment of a buffer of `bytes` bytes in the body (chunk.md section 4).
pub(crate) fn alignment(bytes: usize) -> usize {
    if bytes >= LARGE_BUFFER_BYTES { LARGE_ALIGNMENT } else { SMALL_ALIGNMENT }
}

/// Checks that padding is zero.
pub(crate) fn check_padding(padding: &[u8]) -> Result<()> {
    if padding.iter().any(|byte| *byte != 0) {
        refuse!(Reserved, "a byte of padding is not 0");
    }
    Ok(())
}

/// Checks that a column may have this many values, items or bytes of strings.
pub(crate) fn check_count(count: usize) -> Result<()> {
    if count > COUNT_MAX {
        refuse!(Limit, "{count} values or bytes in one column, over the limit of {COUNT_MAX}");
    }
    Ok(())
}

/// The number of items in `n` lists of `size` items.
pub(crate) fn fixed_list_total(n: usize, size: usize) -> Result<usize> {
    match n.checked_mul(size) {
        Some(total) if total <= COUNT_MAX => Ok(total),
        _ => refuse!(Limit, "{n} lists of {size} items are too many"),
    }
}
