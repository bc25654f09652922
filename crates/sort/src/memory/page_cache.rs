//! The cache of free pages, whose memory stays reserved for the next pages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_page::PagePool;

use super::budget::{MemoryBudget, Reservation};

/// Pages share slabs of at most this many bytes, and at most `1 / SLAB_DIVISOR` of the budget.
/// Allocators put a header before a slab and divide memory into powers of two, so the size is not
/// one: slabs of 8 MiB made a sort in 1 GiB take 40 MiB more resident memory.
const SLAB_BYTES_MAX: usize = 31 * (256 << 10);
const SLAB_DIVISOR: usize = 64;
/// An allocator takes about `1 / ALLOCATOR_DIVISOR` of the budget on top of what is allocated. This
/// is reserved, unless the budget is so small that it does not matter.
const ALLOCATOR_DIVISOR: usize = 24;
const ALLOCATOR_BYTES_MIN: usize = 1 << 20;

/// The pages of a sort. The memory of a page in use is reserved by its user, that of a free page
/// here.
#[derive(Debug)]
pub(crate) struct PageCache {
    pool: Arc<PagePool>,
    reserved: Mutex<Reservation>,
    /// Reserved for the allocator's overhead.
    _slack: Option<Reservation>,
}

impl PageCache {
    pub fn new(memory: &Arc<dyn MemoryBudget>, page_bytes: usize) -> Self {
        let slab_bytes = (memory.bytes_max() / SLAB_DIVISOR).min(SLAB_BYTES_MAX);
        let slack = Some(memory.bytes_max() / ALLOCATOR_DIVISOR)
            .filter(|bytes| *bytes >= ALLOCATOR_BYTES_MIN);
        Self {
            pool: PagePool::new(page_bytes, slab_bytes),
            reserved: Mutex::new(Reservation::none(memory)),
            _slack: slack.and_then(|bytes| Reservation::try_new(memory, bytes)),
        }
    }

    /// The pool that builders allocate their pages from.
    pub fn pool(&self) -> &Arc<PagePool> {
        &self.pool
    }

    /// Reserves the pages that are free now, or frees them to the system if the budget refuses.
    pub fn retain_free(&self) {
        let mut reserved = self.lock();
        let page_bytes = self.pool.page_bytes();
        let free = page_bytes * self.pool.free_count();
        reserved.shrink_to(free);
        let more = free - reserved.bytes();
        if !reserved.try_grow(more) {
            self.pool.shrink_to(reserved.bytes() / page_bytes);
        }
    }

    /// Releases up to `bytes` of the reservation, so that a user of the free pages can reserve
    /// them. The pages stay in the pool.
    pub fn release(&self, bytes: usize) {
        let mut reserved = self.lock();
        let rest = reserved.bytes().saturating_sub(bytes);
        reserved.shrink_to(rest);
    }

    /// Frees all free pages to the system and releases their memory; false if none was reserved.
    pub fn clear(&self) -> bool {
        let mut reserved = self.lock();
        self.pool.shrink_to(0);
        let any = reserved.bytes() > 0;
        reserved.shrink_to(0);
        any
    }

    /// Releases the reservation, and frees pages to the system until they fit in the `bytes` that
    /// their users have reserved.
    pub fn shrink_to_users(&self, bytes: usize) {
        let mut reserved = self.lock();
        self.pool.shrink_to(bytes / self.pool.page_bytes());
        reserved.shrink_to(0);
    }

    fn lock(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
