//! An allocator that does not fail during a call from C.
//!
//! Much Rust code aborts the process when an allocation fails, and when one backend aborts, the
//! whole server restarts. So memory is put aside while there is enough ([`prepare`]), and serves
//! allocations that the system refuses. An entry that used it returns an error ([`take_used`]), and
//! the stream is freed. The reserve is only an address range until it is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The reserve of every stream, for messages, schemas, the digits of a number. Allocations that
/// grow with values are fallible, and don't need it.
pub(crate) const RESERVE_BYTES_MIN: usize = 16 << 20;
/// The alignment of blocks.
const BLOCK_ALIGNMENT: usize = 16;

/// Several threads allocate. The reserve is put aside, enlarged and given back only while a single
/// one of them works, so the atomics need no order between them.
struct Reserve {
    start: AtomicUsize,
    bytes: AtomicUsize,
    blocks: Mutex<Blocks>,
    /// The reserve has served an allocation.
    used: AtomicBool,
    /// malloc has learned to keep memory: see [`prepare`].
    malloc_tuned: AtomicBool,
    /// The allocations until those of the system fail; 0 for never. Only tests set it.
    #[cfg(feature = "test-allocator")]
    fail_after: AtomicUsize,
}

/// The blocks that were allocated from the reserve, one after another.
struct Blocks {
    /// The end of the last block.
    end: usize,
    /// The blocks that have not been freed.
    live: usize,
}

#[global_allocator]
static RESERVE: Reserve = Reserve {
    start: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    blocks: Mutex::new(Blocks { end: 0, live: 0 }),
    used: AtomicBool::new(false),
    malloc_tuned: AtomicBool::new(false),
    #[cfg(feature = "test-allocator")]
    fail_after: AtomicUsize::new(0),
};

/// Puts at least `bytes` bytes aside. Returns false if the system refuses them. Only one thread may
/// work here meanwhile.
pub(crate) fn prepare(bytes: usize) -> bool {
    let bytes = bytes.max(RESERVE_BYTES_MIN);
    if RESERVE.bytes.load(Relaxed) >= bytes {
        return true;
    }
    release();
    // Blocks in use keep the old reserve in place.
    if RESERVE.bytes.load(Relaxed) > 0 {
        return false;
    }
    let Ok(layout) = Layout::from_size_align(bytes, BLOCK_ALIGNMENT) else { return false };
    // SAFETY: the size of the layout is not 0, and the block that is freed was allocated with it.
    let start = unsafe {
        if !RESERVE.malloc_tuned.swap(true, Relaxed) {
            // When a large block is freed, glibc's malloc learns to keep the memory of smaller ones
            // (mallopt(3)). Before, it returns the memory of each chunk to the system, and the next
            // chunk waits for fresh pages. The black box keeps the compiler from removing a block
            // that nobody uses.
            let first = std::hint::black_box(System.alloc(layout));
            if !first.is_null() {
                System.dealloc(first, layout);
            }
        }
        RESERVE.system(layout)
    };
    if start.is_null() {
        return false;
    }
    RESERVE.start.store(start as usize, Relaxed);
    RESERVE.bytes.store(bytes, Relaxed);
    true
}

/// Gives the reserve back, unless blocks of it are in use. Only one thread may work here meanwhile.
pub(crate) fn release() {
    let bytes = RESERVE.bytes.load(Relaxed);
    if bytes == 0 || RESERVE.blocks().live > 0 {
        return;
    }
    RESERVE.bytes.store(0, Relaxed);
    let start = RESERVE.start.swap(0, Relaxed);
    if let Ok(layout) = Layout::from_size_align(bytes, BLOCK_ALIGNMENT) {
        // SAFETY: `prepare` allocated it with this layout, and no block of it is in use.
        unsafe { System.dealloc(start as *mut u8, layout) };
    }
}

/// Whether the reserve has served an allocation since the last call.
pub(crate) fn take_used() -> bool {
    RESERVE.used.load(Relaxed) && RESERVE.used.swap(false, Relaxed)
}

/// Makes all allocations of the system fail from the `n`th on, counted from now; 0 for none.
#[cfg(feature = "test-allocator")]
pub(crate) fn fail_after(n: usize) {
    RESERVE.fail_after.store(n, Relaxed);
}

impl Reserve {
    /// Allocates from the system, unless a test wants that to fail.
    ///
    /// # Safety
    /// The size of the layout is not 0, as [`GlobalAlloc::alloc`] requires.
    #[inline]
    unsafe fn system(&self, layout: Layout) -> *mut u8 {
        #[cfg(feature = "test-allocator")]
        if self.is_test_failure() {
            return null_mut();
        }
        // SAFETY: the caller promises a size above 0.
        unsafe { System.alloc(layout) }
    }

    #[cfg(feature = "test-allocator")]
    fn is_test_failure(&self) -> bool {
        self.fail_after.fetch_update(Relaxed, Relaxed, |n| (n > 1).then(|| n - 1)) == Err(1)
    }

    /// Whether a block is of the reserve.
    fn contains(&self, pointer: *mut u8) -> bool {
        (pointer as usize).wrapping_sub(self.start.load(Relaxed)) < self.bytes.load(Relaxed)
    }

    /// Allocates a block of the reserve; null if it does not fit.
    #[cold]
    fn block(&self, layout: Layout) -> *mut u8 {
        self.used.store(true, Relaxed);
        let (start, bytes) = (self.start.load(Relaxed), self.bytes.load(Relaxed));
        let alignment = layout.align().max(BLOCK_ALIGNMENT);
        // Includes the padding before the block.
        let needed = layout.size().saturating_add(alignment).next_multiple_of(BLOCK_ALIGNMENT);
        let mut blocks = self.blocks();
        let at = if blocks.live == 0 { 0 } else { blocks.end };
        let end = at.saturating_add(needed);
        if end > bytes {
            return null_mut();
        }
        *blocks = Blocks { end, live: blocks.live + 1 };
        (start + at).next_multiple_of(alignment) as *mut u8
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: memory comes from the system's allocator, or is a block of the reserve that nobody else
// has. Blocks follow each other without overlap; they begin at the start again only once all of
// them have been freed. Nothing here allocates.
unsafe impl GlobalAlloc for Reserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller of `alloc` promises a size above 0.
        let pointer = unsafe { self.system(layout) };
        if pointer.is_null() { self.block(layout) } else { pointer }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.contains(pointer) {
            self.blocks().live -= 1;
        } else {
            // SAFETY: a block that is not of the reserve is the system's, allocated with this
            // layout.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        #[cfg(feature = "test-allocator")]
        let refused = self.is_test_failure();
        #[cfg(not(feature = "test-allocator"))]
        let refused = false;
        if !refused && !self.contains(pointer) {
            // SAFETY: a block that is not of the reserve is the system's, allocated with this
            // layout. The caller promises a new size above 0 that does not overflow.
            let grown = unsafe { System.realloc(pointer, layout, bytes) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller promises that the new size does not overflow with this alignment.
        let layout_after = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let moved = self.block(layout_after);
        if !moved.is_null() {
            // SAFETY: both blocks have the smaller of the two sizes, and a new block overlaps
            // nothing. The old one was allocated with this layout.
            unsafe {
                std::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(bytes));
                self.dealloc(pointer, layout);
            }
        }
        moved
    }
}
