//! Memory for pages that is used again.
//!
//! Pages of one size are made and dropped by the thousand. An allocator rounds each up to a size of
//! its own, keeps what one thread has freed from the others, and has the next one's memory faulted
//! in and cleared by the system. So their memory comes in slabs of several pages, and goes back
//! here when a page is dropped, by whatever thread.
//!
//! ```text
//!   slab │ page 0 │ page 1 │ free │ page 3 │ …      the free room with the least address is the next page's, so that slabs become free as a whole
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use crate::error::{Error, ErrorKind};

/// What a page in memory begins at a multiple of.
const PAGE_ALIGNMENT: usize = 64;

/// Memory for pages of one size, in any thread.
#[derive(Debug)]
pub struct Rooms {
    page_bytes: usize,
    slab_pages_max: usize,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// By their addresses.
    rooms: BTreeMap<usize, BytesMut>,
    made: usize,
}

impl Rooms {
    /// Rooms for pages of `page_bytes`, which are taken from the system in slabs of at most
    /// `slab_bytes_max`, the first ones smaller.
    pub fn new(page_bytes: usize, slab_bytes_max: usize) -> Arc<Self> {
        let slab_pages_max = (slab_bytes_max / page_bytes.max(1)).max(1);
        Arc::new(Self { page_bytes, slab_pages_max, free: Mutex::default() })
    }

    /// The size of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// How many rooms are free.
    pub fn free_count(&self) -> usize {
        self.lock().rooms.len()
    }

    /// Gives free rooms back to the system, those with the largest addresses, until there are at
    /// most so many. The system gets a slab when none of it is in use.
    pub fn keep(&self, count: usize) {
        let mut free = self.lock();
        let mut dropped = Vec::new();
        while free.rooms.len() > count {
            dropped.extend(free.rooms.pop_last());
        }
        drop(free);
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a page that `fill` writes, all of them, over what was there before.
    ///
    /// # Errors
    /// Those of `fill`, and when there is no memory.
    pub fn fill<E: From<Error>>(
        self: &Arc<Self>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut room = Room { memory: self.take_used()?, home: self.clone() };
        fill(&mut room.memory)?;
        Ok(Bytes::from_owner(room))
    }

    /// Zeros for a page.
    pub(crate) fn take(&self) -> Result<BytesMut, Error> {
        let mut memory = self.take_used()?;
        memory.fill(0);
        Ok(memory)
    }

    fn take_used(&self) -> Result<BytesMut, Error> {
        let mut free = self.lock();
        if let Some((_, memory)) = free.rooms.pop_first() {
            return Ok(memory);
        }
        let pages = free.made.clamp(1, self.slab_pages_max);
        let mut slab = zeros(pages * self.page_bytes)?;
        let memory = slab.split_to(self.page_bytes);
        free.made += pages;
        while !slab.is_empty() {
            let next = slab.split_to(self.page_bytes);
            free.rooms.insert(next.as_ptr().addr(), next);
        }
        Ok(memory)
    }

    fn give_back(&self, memory: BytesMut) {
        self.lock().rooms.insert(memory.as_ptr().addr(), memory);
    }
}

/// The memory of a page that goes back when it is dropped.
pub(crate) struct Room {
    memory: BytesMut,
    home: Arc<Rooms>,
}

impl Room {
    /// The page's bytes, as long as anybody has them.
    pub fn share(memory: BytesMut, home: Arc<Rooms>) -> Bytes {
        Bytes::from_owner(Self { memory, home })
    }
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.memory));
    }
}

/// So many zeros, aligned as a page is.
pub(crate) fn zeros(bytes: usize) -> Result<BytesMut, Error> {
    let mut memory = Vec::new();
    let wanted = bytes + PAGE_ALIGNMENT;
    let refused =
        |_| Error::new(ErrorKind::Limit, format!("no memory for a page of {bytes} bytes"));
    memory.try_reserve_exact(wanted).map_err(refused)?;
    memory.resize(wanted, 0);
    // At most 63, on every platform that has pointers of bytes.
    let start = memory.as_ptr().align_offset(PAGE_ALIGNMENT).min(PAGE_ALIGNMENT);
    let mut memory = BytesMut::from(Bytes::from(memory)).split_off(start);
    memory.truncate(bytes);
    Ok(memory)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by them")]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_used_again() {
        let rooms = Rooms::new(4096, 16384);
        let share = |value: u8| {
            let mut memory = rooms.take().unwrap();
            assert!(memory.len() == 4096 && memory.iter().all(|byte| *byte == 0));
            assert_eq!(memory.as_ptr().addr() % PAGE_ALIGNMENT, 0);
            memory.fill(value);
            Room::share(memory, rooms.clone())
        };
        let pages: Vec<Bytes> = (0..9).map(share).collect();
        assert!(
            pages
                .iter()
                .enumerate()
                .all(|(value, page)| page.iter().all(|byte| usize::from(*byte) == value))
        );
        // Slabs of 1, 1, 2, 4 and 4 pages.
        assert_eq!(rooms.free_count(), 3);
        let addresses =
            |pages: &[Bytes]| pages.iter().map(|page| page.as_ptr().addr()).collect::<Vec<_>>();
        let mut before = addresses(&pages);
        drop(pages);
        assert_eq!(rooms.free_count(), 12);
        rooms.keep(12);
        let again: Vec<Bytes> = (0..12).map(share).collect();
        let after = addresses(&again);
        assert!(after.is_sorted());
        before.retain(|address| !after.contains(address));
        assert!(before.is_empty() && rooms.free_count() == 0);
        drop(again);
        let filled = rooms.fill(|memory| {
            memory.fill(7);
            Ok::<(), Error>(())
        });
        assert!(filled.unwrap().iter().all(|byte| *byte == 7));
        assert_eq!(rooms.free_count(), 12);
        rooms.keep(2);
        assert_eq!(rooms.free_count(), 2);
    }
}
