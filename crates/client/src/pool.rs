//! Memory that chunks are received into.
//!
//! Touching fresh memory costs more than filling it: a page fault and 4 KiB of zeros for every 4 KiB. So the memory is in
//! large blocks backed by huge pages, a block whose arrays are all gone is used again, and while a table fills one block, a
//! thread touches the next.
//!
//! ```text
//!   block │ body of chunk 1 │ body of chunk 2 │ … │ free │     a table: many bodies a block, kept as long as any array
//!   block │ body of chunk 7 │ free │                          a stream: one body a block, free again when dropped
//! ```
//!
//! Free blocks are the process's. They stay for a second, and the system may take their pages sooner if it needs them.

#![allow(unsafe_code, reason = "blocks are mapped from the system and written through raw pointers")]

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Blocks are whole huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Smaller bodies come from the heap: clearing a huge page takes longer than a small result.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// Bodies start at multiples of this: the chunk's own alignment.
const ALIGNMENT: usize = 64;
/// How long a free block waits to be used again.
const LINGER: Duration = Duration::from_secs(1);

/// Free blocks beyond so many bytes are offered to the system meanwhile.
const HELD_BYTES: usize = 32 << 20;

/// Whether there is a processor for the thread that touches the next block.
static TOUCHES_AHEAD: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1));

/// The free blocks of the process.
static FREE: Mutex<Free> = Mutex::new(Free { blocks: Vec::new(), has_sweeper: false });

struct Free {
    /// Each with the moment it became free, the latest last.
    blocks: Vec<(Instant, Mapping)>,
    /// A thread waits to give back those that were not wanted.
    has_sweeper: bool,
}

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of at least so many bytes: the one that was freed last, if one fits.
fn take(bytes: usize) -> io::Result<Block> {
    // A block much larger than what it holds would be wasted on it.
    let fits = |mapping: &Mapping| mapping.bytes >= bytes && mapping.bytes <= (4 * bytes).max(HUGE_PAGE_BYTES);
    let mut free = free();
    let mapping = match free.blocks.iter().rposition(|(_, mapping)| fits(mapping)) {
        Some(at) => free.blocks.remove(at).1,
        None => Mapping::new(bytes)?,
    };
    Ok(Block(Some(mapping)))
}

fn give_back(mapping: Mapping) {
    let mut free = free();
    if free.blocks.iter().map(|(_, mapping)| mapping.bytes).sum::<usize>() >= HELD_BYTES {
        mapping.offer_to_system();
    }
    free.blocks.push((Instant::now(), mapping));
    if !free.has_sweeper {
        // Without a thread to give them back, free blocks go at once.
        match std::thread::Builder::new().name("dray-sweep".to_owned()).spawn(sweep) {
            Ok(_) => free.has_sweeper = true,
            Err(_) => free.blocks.clear(),
        }
    }
}

fn sweep() {
    loop {
        std::thread::sleep(LINGER);
        let mut free = free();
        let unwanted = free.blocks.partition_point(|(since, _)| since.elapsed() >= LINGER);
        let unwanted: Vec<_> = free.blocks.drain(..unwanted).collect();
        free.has_sweeper = !free.blocks.is_empty();
        let done = !free.has_sweeper;
        drop(free);
        // Unmapping takes its time, in which others may want a block.
        drop(unwanted);
        if done {
            return;
        }
    }
}

/// Receives bodies one after the other.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Bodies share blocks of this size; with 0 each has its own.
    block_bytes: usize,
    current: Option<(Arc<Block>, usize)>,
    /// The block after the current one, whose pages a thread touches meanwhile.
    next: Option<Arc<Block>>,
}

impl Arena {
    /// Whether the bodies will be kept together (a table) or dropped one by one (a stream).
    pub(crate) fn set_block_bytes(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes;
    }

    /// The size of the blocks that bodies share; 0 if each has its own.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Some bytes, as a body.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        self.receive(bytes.len(), |room| {
            room.copy_from_slice(bytes);
            Ok(())
        })
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
            _ => (self.next_block(bytes)?, 0),
        };
        // SAFETY: `start + bytes` is within the block, which stays mapped while `block` lives. The range is handed out once:
        // `current` moves past it below, and a block becomes free only when no body refers to it any more. The
        // mapping is zeroed or holds old bytes: initialised either way.
        let room = unsafe { std::slice::from_raw_parts_mut(block.pointer().add(start), bytes) };
        fill(room)?;
        if self.block_bytes > 0 {
            let used = (start + bytes).next_multiple_of(ALIGNMENT).min(block.bytes());
            self.current = Some((block.clone(), used));
            if self.next.is_none() && used > block.bytes() / 4 && *TOUCHES_AHEAD {
                self.prepare_next();
            }
        }
        Ok(Bytes::from_owner(Body { block, start, bytes }))
    }

    fn next_block(&mut self, bytes: usize) -> io::Result<Arc<Block>> {
        match self.next.take().filter(|next| bytes <= next.bytes()) {
            Some(next) => Ok(next),
            None => Ok(Arc::new(take(bytes.max(self.block_bytes))?)),
        }
    }

    /// Takes the block that will be next, and has its pages touched. Where that can't be done, the reader touches them.
    fn prepare_next(&mut self) {
        if let Ok(block) = take(self.block_bytes) {
            let block = Arc::new(block);
            let touched = block.clone();
            let thread = std::thread::Builder::new().name("dray-touch".to_owned()).spawn(move || touched.touch());
            self.next = thread.is_ok().then_some(block);
        }
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

/// A mapping that goes back to the free ones. It is always there until then.
#[derive(Debug)]
struct Block(Option<Mapping>);

impl Block {
    fn pointer(&self) -> *mut u8 {
        self.0.as_ref().map_or(NonNull::dangling().as_ptr(), |mapping| mapping.start.as_ptr())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |mapping| mapping.bytes)
    }

    fn touch(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mapping) = &self.0 {
            // SAFETY: the mapping lives as long as `self`. Its pages are made present, and keep what is in them.
            let _ = unsafe { madvise(mapping.start.as_ptr().cast(), mapping.bytes, Advice::LinuxPopulateWrite) };
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(mapping) = self.0.take() {
            give_back(mapping);
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
        // SAFETY: a new anonymous mapping touches no existing memory.
        let start = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)?
        };
        #[cfg(target_os = "linux")]
        // SAFETY: advice about the mapping that was just made. Best effort.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Lets the system take the pages when it needs some; they then read as zeros. A page that is written first stays.
    fn offer_to_system(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: nobody refers to what is in the mapping any more, and both old bytes and zeros are initialised.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxFree) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and no body refers to it: each holds its block.
        // It can't fail: these are the bounds of a mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
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
        let mut arena = Arena::default();
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
        let mut arena = Arena::default();
        arena.set_block_bytes(4 << 20);
        let bodies: Vec<Bytes> = (0..100).map(|i| receive(&mut arena, 100_001, i)).collect();
        for (i, body) in bodies.iter().enumerate() {
            assert_eq!(body.as_ptr() as usize % ALIGNMENT, 0);
            assert!(body.iter().all(|byte| usize::from(*byte) == i));
        }
    }

    #[test]
    fn a_body_outlives_its_arena() {
        let mut arena = Arena::default();
        let body = receive(&mut arena, 100_000, 9);
        drop(arena);
        assert!(body.len() == 100_000 && body.iter().all(|byte| *byte == 9));
    }
}
