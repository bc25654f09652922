//! Cancelling what runs, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use adbc_core::CancelHandle;
use adbc_core::error::Result;
use dray_client::{Progress, Verdict, Watch};

use crate::error::invalid_state;

/// Whether something runs, and whether it was cancelled. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancel(Arc<State>);

#[derive(Debug, Default)]
struct State {
    runs: AtomicBool,
    requested: AtomicBool,
}

impl Cancel {
    /// Notes that something runs, until the returned guard is dropped. A request from before is
    /// forgotten.
    pub(crate) fn begin(&self) -> Running {
        self.0.requested.store(false, SeqCst);
        self.0.runs.store(true, SeqCst);
        Running(self.clone())
    }

    /// Asks what runs to stop. Returns false if nothing runs.
    pub(crate) fn request(&self) -> bool {
        let runs = self.0.runs.load(SeqCst);
        if runs {
            self.0.requested.store(true, SeqCst);
        }
        runs
    }

    /// Whether what runs was asked to stop.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.requested.load(SeqCst)
    }

    /// What the client should do.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.is_requested() { Verdict::Cancel } else { Verdict::Continue }
    }

    /// What the client asks while a statement runs.
    pub(crate) fn watch(&self) -> Watch {
        let cancel = self.clone();
        Box::new(move |_: &Progress| cancel.verdict())
    }
}

/// Something that runs.
#[derive(Debug)]
pub(crate) struct Running(Cancel);

impl Running {
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.runs.store(false, SeqCst);
    }
}

impl CancelHandle for Cancel {
    fn try_cancel(&self) -> Result<()> {
        match self.request() {
            true => Ok(()),
            false => Err(invalid_state("nothing runs that could be cancelled")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_cancelled() {
        let cancel = Cancel::default();
        assert!(cancel.try_cancel().is_err());
        let running = cancel.begin();
        assert!(cancel.try_cancel().is_ok() && running.cancel().is_requested());
        drop(running);
        assert!(cancel.try_cancel().is_err());
        let _again = cancel.begin();
        assert!(!cancel.is_requested());
    }
}
