//! Ctrl-C. The first one asks the running statement to stop, the second ends the program at once; so does the first when no
//! statement runs.

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
    /// Takes over SIGINT, SIGTERM and SIGHUP.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |cause: std::io::Error| Failure::Start(format!("can't handle signals: {cause}"));
        let state = Arc::new(State::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        let (mut interrupt, mut terminate, mut hangup) = {
            let _entered = runtime.enter();
            let listen = |kind| signal(kind).map_err(failed);
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?)
        };
        let heard = state.clone();
        let listener = move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    if heard.raised.swap(true, SeqCst) || !heard.watched.load(SeqCst) {
                        heard.leave();
                    }
                }
            });
        };
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
    fn leave(&self) {
        if let Some(path) = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // There is nobody left to tell.
            let _ = fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED)
    }
}
