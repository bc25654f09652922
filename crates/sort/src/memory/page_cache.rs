//! Memory of pages that are gone: it stays reserved, and is that of the next pages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_page::Rooms;

use super::budget::{MemoryBudget, Reservation};

/// Pages share slabs of so many bytes, if that is no larger part of the memory than this.
/// Allocators put something of their own before a slab, and divide memory into powers of two, so
/// this is not one: with 8 MiB 40 MiB more were resident of a sort in 1 GiB.
const SLAB_BYTES_MAX: usize = 31 * (256 << 10);
const SLAB_SHARE: usize = 64;
/// An allocator takes about such a part more than it is asked for. It is reserved, unless the
/// memory is too small for that to matter.
const ALLOCATOR_SHARE: usize = 24;
const ALLOCATOR_BYTES_MIN: usize = 1 << 20;

/// The memory of pages. What is used is reserved by those who use it, and what is free here.
#[derive(Debug)]
pub(crate) struct PageCache {
    rooms: Arc<Rooms>,
    reserved: Mutex<Reservation>,
    /// For the allocator.
    _slack: Option<Reservation>,
}

impl PageCache {
    pub fn new(memory: &Arc<dyn MemoryBudget>, page_bytes: usize) -> Self {
        let slab_bytes = (memory.bytes_max() / SLAB_SHARE).min(SLAB_BYTES_MAX);
        let slack = Some(memory.bytes_max() / ALLOCATOR_SHARE)
            .filter(|bytes| *bytes >= ALLOCATOR_BYTES_MIN);
        Self {
            rooms: Rooms::new(page_bytes, slab_bytes),
            reserved: Mutex::new(Reservation::none(memory)),
            _slack: slack.and_then(|bytes| Reservation::try_new(memory, bytes)),
        }
    }

    /// Where builders take their pages from.
    pub fn rooms(&self) -> &Arc<Rooms> {
        &self.rooms
    }

    /// Reserves what is free by now, or gives it back where that is refused.
    pub fn keep(&self) {
        let mut reserved = self.lock();
        let page_bytes = self.rooms.page_bytes();
        let free = page_bytes * self.rooms.free_count();
        reserved.shrink_to(free);
        let more = free - reserved.bytes();
        if !reserved.try_grow(more) {
            self.rooms.keep(reserved.bytes() / page_bytes);
        }
    }

    /// Leaves so many bytes, or as many as there are, to someone who reserves them for pages.
    pub fn leave(&self, bytes: usize) {
        let mut reserved = self.lock();
        let rest = reserved.bytes().saturating_sub(bytes);
        reserved.shrink_to(rest);
    }

    /// Gives back all that is free, and says whether anything was.
    pub fn clear(&self) -> bool {
        let mut reserved = self.lock();
        self.rooms.keep(0);
        let any = reserved.bytes() > 0;
        reserved.shrink_to(0);
        any
    }

    /// Keeps no more free than what others have reserved so many bytes for.
    pub fn keep_for(&self, bytes: usize) {
        let mut reserved = self.lock();
        self.rooms.keep(bytes / self.rooms.page_bytes());
        reserved.shrink_to(0);
    }

    fn lock(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
