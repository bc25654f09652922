//! Memory: the budget that it is reserved from, the cache of free pages, the blocks of rows and
//! keys, and gathering rows from the batches that they came in.

mod block;
mod block_keys;
mod budget;
mod gather;
mod moves;
mod page_cache;
mod rows;

pub(crate) use self::block::{Block, BlockPayload, PayloadLayout};
pub(crate) use self::block_keys::{BlockKeys, rows_before};
pub(crate) use self::budget::Reservation;
pub use self::budget::{FixedBudget, MemoryBudget, memory_bytes_default};
pub(crate) use self::gather::{BatchGatherer, can_gather, slice};
pub(crate) use self::page_cache::PageCache;
pub(crate) use self::rows::{RowLocation, RowSizes};
