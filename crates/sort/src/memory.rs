//! Memory: the budget that it is reserved from, the cache of free pages, and the blocks of rows and
//! keys.

mod block;
mod block_keys;
mod budget;
mod page_cache;

pub(crate) use self::block::{Block, BlockPayload, PayloadLayout, RowLocation};
pub(crate) use self::block_keys::{BlockKeys, rows_before};
pub(crate) use self::budget::Reservation;
pub use self::budget::{FixedBudget, MemoryBudget, memory_bytes_default};
pub(crate) use self::page_cache::PageCache;
