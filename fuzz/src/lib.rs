//! What the fuzz targets share: a global allocator that ends the process when hostile input makes a
//! decoder take more memory than it may.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the bytes that are allocated, and aborts above a limit.
pub struct LimitedAllocator {
    live: AtomicUsize,
    live_max: AtomicUsize,
}

impl LimitedAllocator {
    /// An allocator that aborts when more than `live_max` bytes are allocated at one time.
    pub const fn new(live_max: usize) -> Self {
        Self { live: AtomicUsize::new(0), live_max: AtomicUsize::new(live_max) }
    }

    /// Runs something that may allocate so many bytes, beside what is allocated already.
    pub fn within<T>(&self, bytes: usize, run: impl FnOnce() -> T) -> T {
        let live_max = self.live_max.swap(self.live.load(Relaxed).saturating_add(bytes), Relaxed);
        let out = run();
        self.live_max.store(live_max, Relaxed);
        out
    }

    fn take(&self, bytes: usize) {
        let live_max = self.live_max.load(Relaxed);
        if self.live.fetch_add(bytes, Relaxed) + bytes > live_max {
            eprintln!("more than {live_max} bytes are allocated: {bytes} on top of the others");
            std::process::abort();
        }
    }
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        self.take(bytes);
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}
