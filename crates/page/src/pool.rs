//! A pool of memory for pages.
//!
//! Pages of one size are made and dropped by the thousand. A general allocator rounds each of them
//! up to a size class, does not let other threads use what one thread has freed, and returns pages
//! to the system, which then faults in and clears the next ones. The pool takes memory in slabs of
//! several pages, and a dropped page goes back to the pool, from whatever thread.
//!
//! ```text
//! slab │ page 0 │ page 1 │ free │ page 3 │ …   the next page takes the free memory with the
//!                                              lowest address, so that whole slabs become free
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use crate::error::{Error, ErrorKind};

/// The alignment of a page in memory.
const PAGE_ALIGNMENT: usize = 64;

/// Memory for pages of one size, shared by threads.
#[derive(Debug)]
pub struct PagePool {
    page_bytes: usize,
    slab_pages_max: usize,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// Memory of free pages, by address.
    pages: BTreeMap<usize, BytesMut>,
    /// The pages of all slabs so far.
    allocated: usize,
}

impl PagePool {
    /// A pool for pages of `page_bytes`. Its slabs have at most `slab_bytes_max`; the first ones
    /// are smaller.
    pub fn new(page_bytes: usize, slab_bytes_max: usize) -> Arc<Self> {
        let slab_pages_max = (slab_bytes_max / page_bytes.max(1)).max(1);
        Arc::new(Self { page_bytes, slab_pages_max, free: Mutex::default() })
    }

    /// The size of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The number of free pages.
    pub fn free_count(&self) -> usize {
        self.lock().pages.len()
    }

    /// Gives free pages back, those with the highest addresses first, until at most `count` are
    /// left. The system gets a slab back once none of its pages is in the pool or in use.
    pub fn shrink_to(&self, count: usize) {
        let mut free = self.lock();
        let mut dropped = Vec::new();
        while free.pages.len() > count {
            dropped.extend(free.pages.pop_last());
        }
        drop(free);
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page that `fill` writes. It must overwrite every byte: the memory may hold an earlier
    /// page.
    ///
    /// # Errors
    /// Those of `fill`, and when there is no memory.
    pub fn fill<E: From<Error>>(
        self: &Arc<Self>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut page = PooledPage { memory: self.take_dirty()?, pool: self.clone() };
        fill(&mut page.memory)?;
        Ok(Bytes::from_owner(page))
    }

    /// A page of zeros.
    pub(crate) fn take(&self) -> Result<BytesMut, Error> {
        let mut memory = self.take_dirty()?;
        memory.fill(0);
        Ok(memory)
    }

    /// A page with arbitrary contents.
    fn take_dirty(&self) -> Result<BytesMut, Error> {
        let mut free = self.lock();
        if let Some((_, memory)) = free.pages.pop_first() {
            return Ok(memory);
        }
        let pages = free.allocated.clamp(1, self.slab_pages_max);
        let mut slab = zeros(pages * self.page_bytes)?;
        let memory = slab.split_to(self.page_bytes);
        free.allocated += pages;
        while !slab.is_empty() {
            let next = slab.split_to(self.page_bytes);
            free.pages.insert(next.as_ptr().addr(), next);
        }
        Ok(memory)
    }

    fn give_back(&self, memory: BytesMut) {
        debug_assert_eq!(memory.len(), self.page_bytes);
        let replaced = self.lock().pages.insert(memory.as_ptr().addr(), memory);
        debug_assert!(replaced.is_none(), "a page was given back twice");
    }
}

/// The memory of a page, which goes back to its pool when it is dropped.
pub(crate) struct PooledPage {
    memory: BytesMut,
    pool: Arc<PagePool>,
}

impl PooledPage {
    /// The page's bytes. The memory goes back to the pool when their last clone is dropped.
    pub fn into_bytes(memory: BytesMut, pool: Arc<PagePool>) -> Bytes {
        Bytes::from_owner(Self { memory, pool })
    }
}

impl AsRef<[u8]> for PooledPage {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for PooledPage {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.memory));
    }
}

/// Zeros with the alignment of a page.
pub(crate) fn zeros(bytes: usize) -> Result<BytesMut, Error> {
    let mut memory = Vec::new();
    let padded = bytes + PAGE_ALIGNMENT;
    let refused =
        |_| Error::new(ErrorKind::Limit, format!("no memory for a page of {bytes} bytes"));
    memory.try_reserve_exact(padded).map_err(refused)?;
    memory.resize(padded, 0);
    // `align_offset` may give up; the page is then unaligned.
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
    fn pages_are_used_again() {
        let pool = PagePool::new(4096, 16384);
        let share = |value: u8| {
            let mut memory = pool.take().unwrap();
            assert!(memory.len() == 4096 && memory.iter().all(|byte| *byte == 0));
            assert_eq!(memory.as_ptr().addr() % PAGE_ALIGNMENT, 0);
            memory.fill(value);
            PooledPage::into_bytes(memory, pool.clone())
        };
        let pages: Vec<Bytes> = (0..9).map(share).collect();
        assert!(
            pages
                .iter()
                .enumerate()
                .all(|(value, page)| page.iter().all(|byte| usize::from(*byte) == value))
        );
        // Slabs of 1, 1, 2, 4 and 4 pages.
        assert_eq!(pool.free_count(), 3);
        let addresses =
            |pages: &[Bytes]| pages.iter().map(|page| page.as_ptr().addr()).collect::<Vec<_>>();
        let mut before = addresses(&pages);
        drop(pages);
        assert_eq!(pool.free_count(), 12);
        pool.shrink_to(12);
        let again: Vec<Bytes> = (0..12).map(share).collect();
        let after = addresses(&again);
        assert!(after.is_sorted());
        before.retain(|address| !after.contains(address));
        assert!(before.is_empty() && pool.free_count() == 0);
        drop(again);
        let filled = pool.fill(|memory| {
            memory.fill(7);
            Ok::<(), Error>(())
        });
        assert!(filled.unwrap().iter().all(|byte| *byte == 7));
        assert_eq!(pool.free_count(), 12);
        pool.shrink_to(2);
        assert_eq!(pool.free_count(), 2);
    }
}
