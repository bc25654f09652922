//! Ctrl-C. The first one asks the running statement to stop, the second ends the program at once;
//! so does the first when no statement runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Whether the user wants to stop. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    raised: AtomicBool,
    /// A statement runs, which looks at `raised` now and then.
    watched: AtomicBool,
    /// A file that must not stay behind.
    unfinished: Mutex<Option<PathBuf>>,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP, unless they are ignored.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed =
            |cause: std::io::Error| Failure::Start(format!("can't handle signals: {cause}"));
        let state = Arc::new(State::default());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        let ignored = ignored_signals();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            // `nohup` and background jobs have had it ignored, and mean it.
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                continue;
            }
            let heard = state.clone();
            let _entered = runtime.enter();
            let mut signals = signal(kind).map_err(failed)?;
            runtime.spawn(async move {
                while signals.recv().await.is_some() {
                    heard.signalled();
                }
            });
        }
        let listener = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("signals".to_owned()).spawn(listener).map_err(failed)?;
        Ok(Self(state))
    }

    /// Whether the user wants to stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(SeqCst)
    }

    /// From now on, somebody asks [`Self::is_raised`].
    pub(crate) fn will_be_watched(&self) {
        self.0.watched.store(true, SeqCst);
    }

    /// Names a file to remove if the program must end at once; none if it is finished or gone.
    pub(crate) fn set_unfinished(&self, path: Option<PathBuf>) {
        *self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }
}

impl State {
    fn signalled(&self) {
        if self.raised.swap(true, SeqCst) || !self.watched.load(SeqCst) {
            self.leave();
        }
    }

    fn leave(&self) {
        if let Some(path) = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // There is nobody left to tell.
            let _ = fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED)
    }
}

/// The signals that this process was started to ignore, a bit for each; none where the system
/// doesn't tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
