//! Memory that chunks are received and decoded into.
//!
//! Touching fresh memory costs more than filling it: each 4 KiB take a page fault and a page of
//! zeros. So memory comes in large blocks on huge pages, a block is used again once all arrays in
//! it are gone, and while a table fills one block a thread touches the next.

mod arena;
mod pool;

pub(crate) use self::arena::{Arena, TABLE_BLOCK_BYTES, page_pool};
pub(crate) use self::pool::NoMemory;
