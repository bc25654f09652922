//! An allocator that does not fail within one entry from C.
//!
//! Much of what runs here allocates in ways that abort the process when memory is short, and an
//! abort of one backend restarts the whole server. So some memory is put aside while there is
//! enough ([`prepare`]), and what the system refuses is taken from it. An entry that used it ends
//! with an error ([`touched`]), which frees the stream. The reserve is only an address range until
//! it is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What every stream needs: messages, schemas, the digits of a number. What grows with values can
/// fail elsewhere.
pub(crate) const RESERVE_BYTES_MIN: usize = 16 << 20;
/// Pieces begin at multiples of this.
const PIECE_ALIGNMENT: usize = 16;

/// Several threads allocate. The reserve is put aside, enlarged and given back only while one of
/// them has work, so there need be no order between the atomics.
struct Reserve {
    start: AtomicUsize,
    bytes: AtomicUsize,
    pieces: Mutex<Pieces>,
    touched: AtomicBool,
    /// The system's allocator knows how large blocks are here.
    taught: AtomicBool,
    /// Allocations until the system's begin to fail; 0 for never. Only tests set it.
    #[cfg(feature = "test-allocator")]
    fail_after: AtomicUsize,
}

struct Pieces {
    /// Where the next one begins.
    used: usize,
    /// Those that have not been freed.
    live: usize,
}

#[global_allocator]
static RESERVE: Reserve = Reserve {
    start: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    pieces: Mutex::new(Pieces { used: 0, live: 0 }),
    touched: AtomicBool::new(false),
    taught: AtomicBool::new(false),
    #[cfg(feature = "test-allocator")]
    fail_after: AtomicUsize::new(0),
};

/// Puts at least `bytes` aside. False if the system does not have them.
pub(crate) fn prepare(bytes: usize) -> bool {
    let bytes = bytes.max(RESERVE_BYTES_MIN);
    if RESERVE.bytes.load(Relaxed) >= bytes {
        return true;
    }
    release();
    // Pieces that are still in use hold the old reserve in place.
    if RESERVE.bytes.load(Relaxed) > 0 {
        return false;
    }
    let Ok(layout) = Layout::from_size_align(bytes, PIECE_ALIGNMENT) else { return false };
    // SAFETY: the layout's size is not 0, and what is freed was allocated with it.
    let start = unsafe {
        if !RESERVE.taught.swap(true, Relaxed) {
            // From the first large block that is freed glibc's malloc learns to keep the memory of
            // smaller ones (mallopt(3)). Before, it gives that of each chunk back to the system,
            // and the next one waits for fresh pages. The compiler must not see that nobody uses
            // the block.
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

/// Gives the reserve back, unless pieces of it are in use.
pub(crate) fn release() {
    let bytes = RESERVE.bytes.load(Relaxed);
    if bytes == 0 || RESERVE.pieces().live > 0 {
        return;
    }
    RESERVE.bytes.store(0, Relaxed);
    let start = RESERVE.start.swap(0, Relaxed);
    if let Ok(layout) = Layout::from_size_align(bytes, PIECE_ALIGNMENT) {
        // SAFETY: `prepare` allocated it with this layout, and no piece of it is in use.
        unsafe { System.dealloc(start as *mut u8, layout) };
    }
}

/// Whether the reserve has served something since this was last asked.
pub(crate) fn touched() -> bool {
    RESERVE.touched.load(Relaxed) && RESERVE.touched.swap(false, Relaxed)
}

/// Makes every allocation from the `n`th from now on fail; 0 for none.
#[cfg(feature = "test-allocator")]
pub(crate) fn fail_after(n: usize) {
    RESERVE.fail_after.store(n, Relaxed);
}

impl Reserve {
    /// # Safety
    /// As [`GlobalAlloc::alloc`].
    #[inline]
    unsafe fn system(&self, layout: Layout) -> *mut u8 {
        #[cfg(feature = "test-allocator")]
        if self.is_test_failure() {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    #[cfg(feature = "test-allocator")]
    fn is_test_failure(&self) -> bool {
        self.fail_after.fetch_update(Relaxed, Relaxed, |n| (n > 1).then(|| n - 1)) == Err(1)
    }

    fn holds(&self, pointer: *mut u8) -> bool {
        (pointer as usize).wrapping_sub(self.start.load(Relaxed)) < self.bytes.load(Relaxed)
    }

    #[cold]
    fn piece(&self, layout: Layout) -> *mut u8 {
        self.touched.store(true, Relaxed);
        let (start, bytes) = (self.start.load(Relaxed), self.bytes.load(Relaxed));
        let room = layout
            .size()
            .saturating_add(layout.align().max(PIECE_ALIGNMENT))
            .next_multiple_of(PIECE_ALIGNMENT);
        let mut pieces = self.pieces();
        let at = if pieces.live == 0 { 0 } else { pieces.used };
        let end = at.saturating_add(room);
        if end > bytes {
            return null_mut();
        }
        *pieces = Pieces { used: end, live: pieces.live + 1 };
        (start + at).next_multiple_of(layout.align().max(PIECE_ALIGNMENT)) as *mut u8
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: memory comes from the system's allocator, or is a piece of the reserve that nobody else
// has: pieces are handed out one behind the other, and only from the start again when all of them
// have been freed.
unsafe impl GlobalAlloc for Reserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let pointer = unsafe { self.system(layout) };
        if pointer.is_null() { self.piece(layout) } else { pointer }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.holds(pointer) {
            self.pieces().live -= 1;
        } else {
            // SAFETY: what is not the reserve's is the system's.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        #[cfg(feature = "test-allocator")]
        let refused = self.is_test_failure();
        #[cfg(not(feature = "test-allocator"))]
        let refused = false;
        if !refused && !self.holds(pointer) {
            // SAFETY: the caller's promise; what is not the reserve's is the system's.
            let grown = unsafe { System.realloc(pointer, layout, bytes) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller promises that this is a layout.
        let moved = self.piece(unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) });
        if !moved.is_null() {
            // SAFETY: both have room for the smaller of the two, and a new piece overlaps nothing.
            unsafe {
                std::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(bytes));
                self.dealloc(pointer, layout);
            }
        }
        moved
    }
}
