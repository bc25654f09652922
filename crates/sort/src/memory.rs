//! Memory: the budget it is reserved from, the pages that are used again, and the blocks that rows
//! lie in.

mod block;
mod block_keys;
mod budget;
mod page_cache;

pub(crate) use self::block::{Block, BlockPayload, RowLocation};
pub(crate) use self::block_keys::{BlockKeys, rows_before};
pub(crate) use self::budget::Reservation;
pub use self::budget::{FixedBudget, MemoryBudget, memory_bytes_default};
pub(crate) use self::page_cache::PageCache;
