//! A global allocator for the fuzz targets, which aborts if hostile input makes a decoder allocate
//! more than its limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An allocator that counts the allocated bytes, and aborts above a limit.
pub struct LimitedAllocator {
    live: AtomicUsize,
    live_max: AtomicUsize,
}

impl LimitedAllocator {
    /// Aborts if more than `live_max` bytes are allocated at a time.
    pub const fn new(live_max: usize) -> Self {
        Self { live: AtomicUsize::new(0), live_max: AtomicUsize::new(live_max) }
    }

    /// Runs `run`, which may allocate `bytes` in addition to what is already allocated. Not for use
    /// by several threads at a time.
    pub fn within<T>(&self, bytes: usize, run: impl FnOnce() -> T) -> T {
        let live_max = self.live_max.swap(self.live.load(Relaxed).saturating_add(bytes), Relaxed);
        let out = run();
        self.live_max.store(live_max, Relaxed);
        out
    }

    fn count(&self, bytes: usize) {
        let live_max = self.live_max.load(Relaxed);
        if self.live.fetch_add(bytes, Relaxed) + bytes > live_max {
            eprintln!(
                "the limit of {live_max} allocated bytes is exceeded by an allocation of {bytes}"
            );
            std::process::abort();
        }
    }
}

// SAFETY: every call goes to the system's allocator with unchanged arguments, and returns its
// result.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: `layout` has a size above 0, as the caller guarantees for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: `layout` has a size above 0, as the caller guarantees for this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        self.count(bytes);
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller guarantees that this allocator, and so `System`, returned `block` for
        // `layout`, and that `bytes` is above 0 and does not overflow when rounded up.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller guarantees that this allocator, and so `System`, returned `block` for
        // `layout`.
        unsafe { System.dealloc(block, layout) }
    }
}
