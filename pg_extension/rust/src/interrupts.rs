//! Whether the server wants the statement to end: its own flags, which its signal handlers set.
//!
//! Nothing is done about it here. An entry that sees it returns, and C raises the error.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `QueryCancelPending` and `ProcDiePending`, which are `volatile sig_atomic_t`. Not
/// `InterruptPending`, which may also mean something after which the statement goes on.
static FLAGS: [AtomicPtr<c_int>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// Says where the flags are.
///
/// # Safety
/// They stay valid.
pub(crate) unsafe fn watch(flags: [*mut c_int; 2]) {
    FLAGS.iter().zip(flags).for_each(|(to, from)| to.store(from, Relaxed));
}

/// Whether one of them is set.
pub(crate) fn pending() -> bool {
    FLAGS.iter().any(|flag| {
        let flag = flag.load(Relaxed);
        // SAFETY: the promise of `watch`. Only signal handlers of this thread write to it.
        !flag.is_null() && unsafe { flag.read_volatile() } != 0
    })
}
