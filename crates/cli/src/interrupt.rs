//! Ctrl-C. The first one stops the running statement, the second ends the program. Without a
//! running statement, the first one ends the program. If an upload has to be aborted before that,
//! the next one does not wait for it.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dray_store::Uploading;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;
/// How long the end of the program waits for the abort of an upload.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interrupt flag. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    raised: AtomicBool,
    /// Whether a running statement polls `raised`.
    polled: AtomicBool,
    /// What to remove when the program ends.
    unfinished: Mutex<Option<Unfinished>>,
}

/// Output that is not complete.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// A temporary file.
    File(PathBuf),
    /// An object in a store.
    Object(Uploading),
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP, unless they are ignored.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed =
            |cause: std::io::Error| Failure::Start(format!("can't handle signals: {cause}"));
        let state = Arc::new(State::default());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let ignored = ignored_signals();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            // `nohup` and shells ignore signals for background jobs on purpose.
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                continue;
            }
            let signalled = state.clone();
            let _entered = runtime.enter();
            let mut signals = signal(kind).map_err(failed)?;
            runtime.spawn(async move {
                while signals.recv().await.is_some() {
                    signalled.signalled();
                }
            });
        }
        let listener = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("signals".to_owned()).spawn(listener).map_err(failed)?;
        Ok(Self(state))
    }

    /// Whether the user has interrupted.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(SeqCst)
    }

    /// Announces that the caller polls [`Self::is_raised`].
    pub(crate) fn set_polled(&self) {
        self.0.polled.store(true, SeqCst);
    }

    /// Sets what to remove if the program is interrupted; None once it is complete or gone.
    pub(crate) fn set_unfinished(&self, output: Option<Unfinished>) {
        *self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }
}

impl State {
    fn signalled(&self) {
        if self.raised.swap(true, SeqCst) || !self.polled.load(SeqCst) {
            self.exit();
        }
    }

    /// Ends the program. An upload is aborted first, in the background: this returns.
    fn exit(&self) {
        let unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The program ends, so a failure can't be reported.
        match unfinished {
            Some(Unfinished::File(path)) => drop(fs::remove_file(path)),
            Some(Unfinished::Object(upload)) => {
                tokio::spawn(async move {
                    let aborting = tokio::task::spawn_blocking(move || upload.abort());
                    let _ = tokio::time::timeout(ABORT_TIMEOUT, aborting).await;
                    std::process::exit(INTERRUPTED)
                });
                return;
            }
            None => {}
        }
        std::process::exit(INTERRUPTED)
    }
}

/// The signals that this process inherited as ignored, one bit each; 0 if the system doesn't tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
