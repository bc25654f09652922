//! The statement that runs, and how it is cancelled.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Canceller = Arc<dyn Fn() + Send + Sync>;

/// How often a statement is cancelled until it ends. A cancel that comes before the driver runs the
/// statement has no effect.
const AGAIN: Duration = Duration::from_millis(200);

/// Which statement runs.
#[derive(Default)]
pub(super) struct Running(Mutex<State>);

#[derive(Default)]
struct State {
    canceller: Option<Canceller>,
    /// Counts statements.
    number: u64,
    runs: bool,
    is_cancelled: bool,
}

impl Running {
    pub(super) fn set_canceller(&self, canceller: Canceller) {
        self.state().canceller = Some(canceller);
    }

    /// A statement is about to run.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        state.number += 1;
        state.runs = true;
        state.is_cancelled = false;
    }

    /// The statement has ended, and can't be cancelled any longer. Returns whether it was.
    pub(super) fn end(&self) -> bool {
        let mut state = self.state();
        state.runs = false;
        state.is_cancelled
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// Cancels the statement that runs, if any.
    pub(super) fn cancel(self: &Arc<Self>) {
        let number = {
            let mut state = self.state();
            if !state.runs || state.is_cancelled {
                return;
            }
            state.is_cancelled = true;
            state.number
        };
        let running = self.clone();
        std::thread::spawn(move || {
            while running.cancel_once(number) {
                std::thread::sleep(AGAIN);
            }
        });
    }

    /// Whether the statement still ran. The lock keeps the cancel from the one after it.
    fn cancel_once(&self, number: u64) -> bool {
        let state = self.state();
        let runs = state.runs && state.number == number;
        if let Some(canceller) = state.canceller.as_ref().filter(|_| runs) {
            canceller();
        }
        runs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { number, runs, is_cancelled, .. } = &*self.state();
        f.debug_struct("Running")
            .field("number", number)
            .field("runs", runs)
            .field("is_cancelled", is_cancelled)
            .finish_non_exhaustive()
    }
}
