//! Memory of pages that are gone: it stays reserved, and is that of the next pages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_page::Rooms;

use crate::memory::{Memory, Reservation};

/// Pages share slabs of so many bytes, if that is no larger part of the memory than this.
const SLAB_BYTES_MAX: usize = 4 << 20;
const SLAB_SHARE: usize = 64;

/// The memory of pages. What is used is reserved by those who use it, and what is free here.
#[derive(Debug)]
pub(crate) struct Stock {
    rooms: Arc<Rooms>,
    reserved: Mutex<Reservation>,
}

impl Stock {
    pub fn new(memory: &Arc<dyn Memory>, page_bytes: usize) -> Self {
        let slab_bytes = (memory.bytes_max() / SLAB_SHARE).min(SLAB_BYTES_MAX);
        Self { rooms: Rooms::new(page_bytes, slab_bytes), reserved: Mutex::new(Reservation::none(memory)) }
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

    /// Gives back all that is free, and what becomes free from now on.
    pub fn close(&self) {
        self.rooms.close();
        self.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
