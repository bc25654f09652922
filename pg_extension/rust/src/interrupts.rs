//! The server's flags that ask a statement to end. Its signal handlers set them.
//!
//! They are only read here. An entry that sees one returns, and C raises the error.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `QueryCancelPending` and `ProcDiePending`, of type `volatile sig_atomic_t`. `InterruptPending`
/// is no use: the statement may go on after what it announces.
static FLAGS: [AtomicPtr<c_int>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// Sets where the flags are.
///
/// # Safety
/// Each flag is null, or aligned and valid for reads for the rest of the process. While a thread
/// calls [`pending`], only signal handlers that run in that thread write to them.
pub(crate) unsafe fn watch(flags: [*mut c_int; 2]) {
    FLAGS.iter().zip(flags).for_each(|(to, from)| to.store(from, Relaxed));
}

/// Whether a flag is set. Called by the backend's own thread only.
pub(crate) fn pending() -> bool {
    FLAGS.iter().any(|flag| {
        let flag = flag.load(Relaxed);
        // SAFETY: the promise of `watch`: the flag is valid, and only handlers of this thread
        // write.
        !flag.is_null() && unsafe { flag.read_volatile() } != 0
    })
}
