//! The thread of a session.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use dray_driver::{Division, Driver, STACK_BYTES, Session, Sink, Statement};
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{debug, warn};

use super::plans::HeldPlan;
use super::sink::{ResultSink, lost};
use crate::engine;
use crate::statement::panic_error;

/// A session of a source, for one client. Dropping it closes the session, and frees its place once
/// the database has stopped what still ran.
#[derive(Debug)]
pub(crate) struct RelaySession {
    thread: Sender<Turn>,
    /// One permit: a client whose statement is still being stopped can't send more.
    turns: Arc<Semaphore>,
}

/// What the thread does next, and the permit for it.
struct Turn {
    task: Task,
    statement: Statement,
    permit: OwnedSemaphorePermit,
}

enum Task {
    /// Run it.
    Run(ResultSink),
    /// Divide it into parts.
    Plan(PlanTask, oneshot::Sender<Divided>),
}

/// How a statement is to be divided into parts.
pub(crate) struct PlanTask {
    pub(crate) division: Division,
    /// The earlier plan of the division, which is held meanwhile.
    pub(crate) earlier: Option<Arc<HeldPlan>>,
    /// For the connections of the plan.
    pub(crate) permits: OwnedSemaphorePermit,
}

/// A statement as parts; None if the source has none.
type Divided = Result<Option<HeldPlan>, ServerError>;

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
        let (sender, turns) = channel();
        let serve = move || {
            serve(&name, &*driver, &turns);
            drop(permit);
        };
        source_thread().spawn(serve)?;
        Ok(Self { thread: sender, turns: Arc::new(Semaphore::new(1)) })
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
        self.give(Task::Run(sink), statement).await
    }

    /// Divides a statement into parts. Dropping this gives up.
    ///
    /// # Errors
    /// If the source refuses, or the thread has ended.
    pub(crate) async fn plan(&self, statement: Statement, task: PlanTask) -> Divided {
        let (sender, divided) = oneshot::channel();
        self.give(Task::Plan(task, sender), statement).await?;
        divided.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn give(&self, task: Task, statement: Statement) -> Result<(), ServerError> {
        let permit = self.turns.clone().acquire_owned().await.map_err(|_| lost())?;
        self.thread.send(Turn { task, statement, permit }).map_err(|_| lost())
    }
}

pub(super) fn no_thread(cause: io::Error) -> ServerError {
    let what = format!("the server can't start a thread for the source: {cause}");
    engine::error(ErrorKind::Resources, "53000", what, "try again later")
}

/// A thread that a driver may run on.
pub(super) fn source_thread() -> Builder {
    Builder::new().name("source".to_owned()).stack_size(STACK_BYTES)
}

fn serve(name: &str, driver: &dyn Driver, turns: &Receiver<Turn>) {
    let mut thread = Thread { name, driver, session: None };
    for Turn { task, statement, permit } in turns {
        match task {
            Task::Run(mut sink) => {
                let stopped = sink.watch();
                let ended =
                    thread.with_session(&stopped, |session| session.run(&statement, &mut sink));
                drop(permit);
                sink.end(ended);
            }
            Task::Plan(PlanTask { division, earlier, permits }, answer) => {
                let stopped = || answer.is_closed();
                let divided = thread.with_session(&stopped, |session| {
                    session.plan(&statement, &division, &mut || !stopped())
                });
                let divided = divided
                    .and_then(|parts| parts.map(|parts| HeldPlan::new(parts, permits)).transpose());
                drop((division, earlier));
                drop(permit);
                // Nobody waits if this fails, and then dropping the parts frees their snapshot.
                drop(answer.send(divided));
            }
        }
    }
}

/// The thread's session, which is opened when it is needed.
struct Thread<'a> {
    name: &'a str,
    driver: &'a dyn Driver,
    session: Option<Box<dyn Session>>,
}

impl Thread<'_> {
    /// Does something with the session, and gives it up if it is not usable afterwards.
    fn with_session<T>(
        &mut self,
        stopped: &dyn Fn() -> bool,
        work: impl FnOnce(&mut dyn Session) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let source = self.name;
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                let opened = catch(|| self.driver.open(&mut || !stopped()));
                if let Err(error) = &opened
                    && !stopped()
                {
                    warn!(source, "can't connect to the source: {}", error.message);
                }
                let session = opened?;
                debug!(source, server = session.server(), "connected to the source");
                session
            }
        };
        // A session that panics is not put back.
        let done = catch(|| {
            let done = work(&mut *session);
            Ok((session, done))
        });
        let (session, done) = done?;
        self.session = Some(session).filter(|session| session.is_usable());
        done
    }
}

/// A panic as an error.
pub(super) fn catch<T>(work: impl FnOnce() -> Result<T, ServerError>) -> Result<T, ServerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(panic)))
}
