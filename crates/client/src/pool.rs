//! Memory that chunks are received into.
//!
//! Touching fresh memory costs more than filling it: a page fault and 4 KiB of zeros for every 4 KiB. So the memory is in
//! large blocks backed by huge pages, and a block whose arrays are all gone is used again.
//!
//! ```text
//!   block │ body of chunk 1 │ body of chunk 2 │ … │ free │     a table: many bodies a block, kept as long as any array
//!   block │ body of chunk 7 │ free │                          a stream: one body a block, back in the pool when dropped
//! ```

#![allow(unsafe_code, reason = "blocks are mapped from the system and written through raw pointers")]

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

/// Blocks are whole huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Free blocks are kept up to this many bytes.
const FREE_BYTES_MAX: usize = 32 << 20;
/// Smaller bodies come from the heap: clearing a huge page takes longer than a small result.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// Bodies start at multiples of this: the chunk's own alignment.
const ALIGNMENT: usize = 64;

/// Blocks to receive into. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool(Arc<Free>);

#[derive(Debug, Default)]
struct Free(Mutex<Vec<Mapping>>);

impl Pool {
    fn take(&self, bytes: usize) -> io::Result<Block> {
        let mut free = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A block much larger than what it holds would be wasted on it.
        let fits = |mapping: &Mapping| mapping.bytes >= bytes && mapping.bytes <= (4 * bytes).max(HUGE_PAGE_BYTES);
        let fitting = free.iter().position(fits);
        let mapping = match fitting {
            Some(at) => free.swap_remove(at),
            None => Mapping::new(bytes)?,
        };
        Ok(Block { mapping: Some(mapping), pool: Arc::downgrade(&self.0) })
    }
}

/// Receives bodies one after the other.
#[derive(Debug)]
pub(crate) struct Arena {
    pool: Pool,
    /// Bodies share blocks of this size; with 0 each has its own.
    block_bytes: usize,
    current: Option<(Arc<Block>, usize)>,
}

impl Arena {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, block_bytes: 0, current: None }
    }

    /// Whether the bodies will be kept together (a table) or dropped one by one (a stream).
    pub(crate) fn set_block_bytes(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes;
    }

    /// Room for a body of `bytes` bytes, filled by `fill`.
    pub(crate) fn receive<E: From<io::Error>>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        if bytes < SMALL_BODY_BYTES {
            let mut body = vec![0; bytes];
            fill(&mut body)?;
            return Ok(Bytes::from(body));
        }
        let (block, start) = match self.current.take() {
            Some((block, used)) if bytes <= block.bytes() - used => (block, used),
            _ => (Arc::new(self.pool.take(bytes.max(self.block_bytes))?), 0),
        };
        // SAFETY: `start + bytes` is within the block, which stays mapped while `block` lives. The range is handed out once:
        // `current` moves past it below, and blocks come from the pool only when no body refers to them any more. The
        // mapping is zeroed or holds old bytes: initialised either way.
        let room = unsafe { std::slice::from_raw_parts_mut(block.pointer().add(start), bytes) };
        fill(room)?;
        if self.block_bytes > 0 {
            let used = (start + bytes).next_multiple_of(ALIGNMENT).min(block.bytes());
            self.current = Some((block.clone(), used));
        }
        Ok(Bytes::from_owner(Body { block, start, bytes }))
    }
}

/// A part of a block that a chunk's body fills.
struct Body {
    block: Arc<Block>,
    start: usize,
    bytes: usize,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range was checked and filled by `receive`, is never written again while this body lives, and the
        // block stays mapped as long.
        unsafe { std::slice::from_raw_parts(self.block.pointer().add(self.start), self.bytes) }
    }
}

/// A mapping on loan from a pool.
#[derive(Debug)]
struct Block {
    mapping: Option<Mapping>,
    pool: Weak<Free>,
}

impl Block {
    fn pointer(&self) -> *mut u8 {
        self.mapping.as_ref().map_or(NonNull::dangling().as_ptr(), |mapping| mapping.start.as_ptr())
    }

    fn bytes(&self) -> usize {
        self.mapping.as_ref().map_or(0, |mapping| mapping.bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let (Some(mapping), Some(pool)) = (self.mapping.take(), self.pool.upgrade()) else { return };
        let mut free = pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.iter().map(|mapping| mapping.bytes).sum::<usize>() + mapping.bytes <= FREE_BYTES_MAX {
            free.push(mapping);
        }
    }
}

/// Anonymous memory from the system, on huge pages where it gives them.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory, owned by this value alone.
unsafe impl Send for Mapping {}
// SAFETY: nothing is written through a shared mapping but in `Arena::receive`, to ranges that nobody else has.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = start.ok_or_else(io::Error::last_os_error)?;
        #[cfg(target_os = "linux")]
        // SAFETY: advice about the mapping that was just made; where the kernel does not take it, nothing changes.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and no body refers to it: each holds its block.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(arena: &mut Arena, bytes: usize, value: u8) -> Bytes {
        arena
            .receive(bytes, |room| {
                room.fill(value);
                io::Result::Ok(())
            })
            .unwrap()
    }

    #[test]
    fn a_stream_uses_its_blocks_again() {
        let mut arena = Arena::new(Pool::default());
        let first = receive(&mut arena, 100_000, 1);
        let address = first.as_ptr();
        let second = receive(&mut arena, 100_000, 2);
        assert_ne!(address, second.as_ptr());
        drop(first);
        assert_eq!(receive(&mut arena, 120_000, 3).as_ptr(), address);
        assert!(second.iter().all(|byte| *byte == 2));
    }

    #[test]
    fn a_table_packs_bodies_into_blocks() {
        let mut arena = Arena::new(Pool::default());
        arena.set_block_bytes(4 << 20);
        let bodies: Vec<Bytes> = (0..100).map(|i| receive(&mut arena, 100_001, i)).collect();
        for (i, body) in bodies.iter().enumerate() {
            assert_eq!(body.as_ptr() as usize % ALIGNMENT, 0);
            assert!(body.iter().all(|byte| usize::from(*byte) == i));
        }
    }

    #[test]
    fn a_body_outlives_its_pool() {
        let mut arena = Arena::new(Pool::default());
        let body = receive(&mut arena, 100_000, 9);
        drop(arena);
        assert!(body.len() == 100_000 && body.iter().all(|byte| *byte == 9));
    }
}
