//! The process's pool of free blocks.
//!
//! Free blocks stay for a second. Beyond [`RESIDENT_BYTES_MAX`] the system may take their pages
//! sooner if it needs them.

#![allow(unsafe_code, reason = "blocks are mapped from the system")]

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Blocks are whole huge pages.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;
/// How long a free block waits to be used again.
const LINGER: Duration = Duration::from_secs(1);
/// Free blocks beyond this many bytes are offered to the system while they wait.
const RESIDENT_BYTES_MAX: usize = 32 << 20;

static FREE: Mutex<Free> = Mutex::new(Free { blocks: Vec::new(), has_sweeper: false });

struct Free {
    /// Each with the moment it became free, the latest last.
    blocks: Vec<(Instant, Mapping)>,
    /// A thread runs that unmaps blocks after [`LINGER`].
    has_sweeper: bool,
}

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system has no memory for a block.
#[derive(Debug)]
pub(crate) struct NoMemory {
    pub(super) bytes: usize,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the system has no {} bytes of memory", self.bytes)
    }
}

impl std::error::Error for NoMemory {}

/// A block of at least `bytes` bytes: the free one that was used last, if one fits.
///
/// # Errors
/// When the system has no memory.
pub(super) fn take(bytes: usize) -> Result<Block, NoMemory> {
    // A small request would waste most of a large block.
    let fits = |mapping: &Mapping| {
        mapping.bytes >= bytes && mapping.bytes <= (4 * bytes).max(HUGE_PAGE_BYTES)
    };
    let mut free = free();
    debug_assert!(free.blocks.is_sorted_by_key(|(since, _)| *since), "the sweeper relies on it");
    let mapping = match free.blocks.iter().rposition(|(_, mapping)| fits(mapping)) {
        Some(at) => free.blocks.remove(at).1,
        None => Mapping::new(bytes).ok_or(NoMemory { bytes })?,
    };
    debug_assert!(mapping.bytes >= bytes);
    Ok(Block(Some(mapping)))
}

fn give_back(mapping: Mapping) {
    let mut free = free();
    if free.blocks.iter().map(|(_, mapping)| mapping.bytes).sum::<usize>() >= RESIDENT_BYTES_MAX {
        mapping.offer_to_system();
    }
    free.blocks.push((Instant::now(), mapping));
    if !free.has_sweeper {
        // Without a thread that unmaps them later, free blocks go at once.
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
        let expired = free.blocks.partition_point(|(since, _)| since.elapsed() >= LINGER);
        let expired: Vec<_> = free.blocks.drain(..expired).collect();
        free.has_sweeper = !free.blocks.is_empty();
        let done = !free.has_sweeper;
        drop(free);
        // Unmapping takes long, so it happens after the lock is released.
        drop(expired);
        if done {
            return;
        }
    }
}

/// A mapping that returns to the pool when it is dropped. It is Some until then.
#[derive(Debug)]
pub(super) struct Block(Option<Mapping>);

impl Block {
    /// The first byte. The mapping stays in place while the block lives, and all of its bytes are
    /// initialized: they are zeros or what was written before.
    ///
    /// Whoever writes through the pointer must have the written range to itself.
    pub(super) fn pointer(&self) -> *mut u8 {
        self.0.as_ref().map_or(NonNull::dangling().as_ptr(), |mapping| mapping.start.as_ptr())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |mapping| mapping.bytes)
    }

    /// Faults all pages in, and keeps their contents.
    pub(super) fn touch(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mapping) = &self.0 {
            // SAFETY: the range is exactly a mapping that lives as long as `self`. The advice makes
            // its pages present and leaves their bytes as they are.
            let _ = unsafe {
                madvise(mapping.start.as_ptr().cast(), mapping.bytes, Advice::LinuxPopulateWrite)
            };
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

/// Anonymous memory from the system, on huge pages where it has them.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory that this value alone owns; no thread has a special claim to
// it.
unsafe impl Send for Mapping {}
// SAFETY: a shared mapping is written only through `Block::pointer`, whose users have the range
// that they write to themselves.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// None if the system has no memory.
    fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?;
        // SAFETY: without an address and without `FIXED` the system chooses a range that is free,
        // so no existing memory changes.
        let start = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE).ok()?
        };
        #[cfg(target_os = "linux")]
        // SAFETY: the range is exactly the mapping that was just made. It is best effort.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        Some(Self { start: NonNull::new(start.cast())?, bytes })
    }

    /// Lets the system take the pages when it needs some; they then read as zeros. A page that is
    /// written first stays.
    fn offer_to_system(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: the range is exactly this mapping, and no `Block` refers to it any longer, so
        // nobody relies on its bytes. Old bytes and zeros are both initialized.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxFree) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `bytes` are the bounds of the mapping that `new` made, and no
        // reference into it is left: each `Body` keeps its block, and a block owns its mapping. It
        // can't fail for such bounds.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
