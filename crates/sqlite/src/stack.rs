//! The stack that a statement takes. SQLite compiles views, subqueries and triggers by recursion,
//! and its limits of depth count each of them alone.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dray_driver::STACK_BYTES;

/// What a statement may take when SQLite asks for leave to go on. The rest is for what it does
/// without asking.
const STATEMENT_BYTES: usize = STACK_BYTES / 2;

/// The stack of the thread that runs a session's statement.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// Where the statement began.
    start: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl Stack {
    /// A statement begins in this thread.
    pub(crate) fn begin(&self) {
        self.start.store(here(), Ordering::Relaxed);
        self.is_exceeded.store(false, Ordering::Relaxed);
    }

    /// Whether the statement may go deeper.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = self.start.load(Ordering::Relaxed).abs_diff(here()) < STATEMENT_BYTES;
        if !has_room {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        has_room
    }

    /// Whether the statement has been refused because it went too deep.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }
}

/// An address in the frame of a function that is called here.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(black_box(&local)).addr()
}
