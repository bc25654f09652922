//! The thread of a session.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use dray_driver::{Driver, Session, Sink, Statement};
use dray_wire::ServerError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

use super::sink::{ResultSink, lost};

use crate::statement::panic_error;

/// A session of a source, for one client. Dropping it closes the session, and frees its place once
/// the database has stopped what still ran.
#[derive(Debug)]
pub(crate) struct RelaySession {
    statements: Sender<Turn>,
    /// One permit: a client whose statement is still being stopped can't send more.
    turns: Arc<Semaphore>,
}

/// A statement, and the permit to run.
type Turn = (Statement, ResultSink, OwnedSemaphorePermit);

impl RelaySession {
    /// Starts the session's thread, which holds `permit` until it ends.
    ///
    /// # Errors
    /// If the system can't start more threads.
    pub(super) fn start(
        name: String,
        driver: Arc<dyn Driver>,
        permit: OwnedSemaphorePermit,
    ) -> io::Result<Self> {
        let (sender, statements) = channel();
        let serve = move || {
            serve(&name, &*driver, &statements);
            drop(permit);
        };
        std::thread::Builder::new().name("source".to_owned()).spawn(serve)?;
        Ok(Self { statements: sender, turns: Arc::new(Semaphore::new(1)) })
    }

    /// Begins a statement, once the one before has been stopped.
    ///
    /// # Errors
    /// If the thread has ended.
    pub(crate) async fn begin(
        &self,
        statement: Statement,
        sink: ResultSink,
    ) -> Result<(), ServerError> {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| lost())?;
        self.statements.send((statement, sink, turn)).map_err(|_| lost())
    }
}

fn serve(name: &str, driver: &dyn Driver, statements: &Receiver<Turn>) {
    let mut session: Option<Box<dyn Session>> = None;
    for (statement, mut sink, turn) in statements {
        let run = AssertUnwindSafe(|| {
            let session = match &mut session {
                Some(session) => session,
                none => {
                    let stopped = sink.watch();
                    let opened = driver.open(&mut || !stopped())?;
                    debug!(source = name, server = opened.server(), "connected to the source");
                    none.insert(opened)
                }
            };
            session.run(&statement, &mut sink)
        });
        let ran = catch_unwind(run);
        let has_panicked = ran.is_err();
        let ended = ran.unwrap_or_else(|panic| Err(panic_error(panic)));
        if let Err(error) = &ended
            && session.is_none()
            && !sink.is_stopped()
        {
            warn!(source = name, "can't connect to the source: {}", error.message);
        }
        session = session.filter(|session| !has_panicked && session.is_usable());
        drop(turn);
        sink.end(ended);
    }
}
