//! Threads that compute. Those of the network never do.
//!
//! ```text
//!   network: sockets, cancels, signals        executor, one for each running statement
//!   ┌───────────────────────────────┐  job   ┌──────────────────────────────────────────────┐
//!   │ connection ── statement ──────┼───────▶│ planner: SQL, plan, the first batch            │
//!   │      ▲                        │        │    │ producers                                │
//!   │      └────── chunks ──────────┼────────│ workers ×threads: partitions, encoding        │
//!   └───────────────────────────────┘        └──────────────────────────────────────────────┘
//! ```
//!
//! The engine yields when it likes: a rule of its planner or a join may take minutes between two
//! yields, and no task can be stopped there. So each statement has threads of its own, and the
//! system shares the processors among statements. Workers have a lower priority than the network
//! and planners, or a short statement would wait behind all the long ones.
//!
//! An executor is given back when nothing runs on it any more. One whose statement has stopped, but
//! not its threads, is abandoned: it gets what time nobody else wants, and goes when it ends.

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::thread::{set_nice, thread_id};
use crate::turns::Turn;

/// A plan is as deep as its statement, and so is the stack of what plans, compares and drops it.
/// The system gives the memory when it is touched.
const PLANNER_STACK_BYTES: usize = 64 << 20;
/// Expressions are evaluated by functions that call themselves.
const WORKER_STACK_BYTES: usize = 16 << 20;
/// How much workers stand back behind the network and planners, and behind everything else when
/// abandoned, by nice(2).
const WORKER_NICE: i32 = 5;
const ABANDONED_NICE: i32 = 19;
/// Threads that run on for so long after their statement has stopped are abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);
/// How often to look whether they have ended, at first and later.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// So many executors are kept for the next statements.
const IDLE_MAX: usize = 4;

/// A panic's payload.
pub(crate) type Panic = Box<dyn Any + Send>;

/// All executors.
pub(crate) struct Compute {
    /// Workers of each.
    threads: usize,
    /// The last one given back is the first one taken: its memory is still in the cache.
    idle: Mutex<Vec<Executor>>,
    abandoned: AtomicUsize,
}

impl Compute {
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            threads: threads.max(1),
            idle: Mutex::default(),
            abandoned: AtomicUsize::new(0),
        })
    }

    /// An executor, and the turn that goes with it until all has ended that runs there.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(crate) fn lease(self: &Arc<Self>, turn: Option<Turn>) -> io::Result<Lease> {
        let idle = lock(&self.idle).pop();
        let executor = idle.map_or_else(|| Executor::start(self.threads), Ok)?;
        Ok(Lease { executor: Some(executor), turn, compute: self.clone() })
    }

    /// Statements that were stopped and still run.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn put(&self, executor: Executor) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push(executor);
        }
    }

    /// Waits until nothing runs on an executor any more; then others may have it, and its turn.
    async fn reclaim(self: Arc<Self>, executor: Executor, turn: Option<Turn>) {
        let stopped = Instant::now();
        let mut look = LOOK_EVERY.0;
        while !executor.is_quiet() && stopped.elapsed() < ABANDONED_AFTER {
            tokio::time::sleep(look).await;
            look = (look * 2).min(LOOK_EVERY.1);
        }
        if executor.is_quiet() {
            self.put(executor);
        } else {
            let abandoned = self.abandoned.fetch_add(1, Ordering::Relaxed) + 1;
            warn!(
                abandoned,
                "a statement was stopped and still runs: it gets what time nobody else wants"
            );
            executor.stand_back();
            while !executor.is_quiet() {
                tokio::time::sleep(LOOK_EVERY.1).await;
            }
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
            info!(ms = stopped.elapsed().as_millis(), "a statement that was stopped has ended");
        }
        drop(turn);
    }
}

/// The right to an executor.
pub(crate) struct Lease {
    /// There until it is dropped.
    executor: Option<Executor>,
    turn: Option<Turn>,
    compute: Arc<Compute>,
}

impl Lease {
    /// Runs something on the thread with the large stack. The rest is dropped there if nobody waits
    /// for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Handle) -> T + Send + 'static,
    ) -> Result<T, Panic> {
        let (done, result) = oneshot::channel();
        let job = move |workers: &Handle| {
            // Nobody waits any more: dropped here.
            let _ = done.send(catch_unwind(AssertUnwindSafe(|| work(workers))));
        };
        self.submit(Box::new(job));
        result.await.unwrap_or_else(|_| Err(Box::new("the thread that plans is gone")))
    }

    /// Drops what takes long to drop, or many calls, elsewhere.
    pub(crate) fn dispose(&self, what: impl Send + 'static) {
        self.submit(Box::new(move |_| drop(catch_unwind(AssertUnwindSafe(|| drop(what))))));
    }

    fn submit(&self, job: Job) {
        if let Some(executor) = &self.executor {
            executor.jobs.fetch_add(1, Ordering::Relaxed);
            // Fails only if the planner is gone; whoever waits for the job hears of it.
            let _ = executor.planner.send(job);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(executor) = self.executor.take() else { return };
        if executor.is_quiet() {
            self.compute.put(executor);
        } else if let Ok(network) = Handle::try_current() {
            network.spawn(self.compute.clone().reclaim(executor, self.turn.take()));
        }
    }
}

type Job = Box<dyn FnOnce(&Handle) + Send>;

/// A planner and its workers.
struct Executor {
    planner: Sender<Job>,
    /// Jobs that the planner has not ended.
    jobs: Arc<AtomicUsize>,
    /// There until it is dropped.
    workers: Option<Runtime>,
    /// All its threads, by the system's numbers.
    threads: Arc<Mutex<BTreeSet<i32>>>,
}

impl Executor {
    fn start(workers: usize) -> io::Result<Self> {
        let threads: Arc<Mutex<BTreeSet<i32>>> = Arc::default();
        let (begun, ended) = (threads.clone(), threads.clone());
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(workers)
            .thread_name("dray-work")
            .thread_stack_size(WORKER_STACK_BYTES)
            .enable_time()
            .on_thread_start(move || {
                let thread = thread_id();
                lock(&begun).insert(thread);
                set_nice(thread, WORKER_NICE);
            })
            .on_thread_stop(move || {
                lock(&ended).remove(&thread_id());
            });
        // The runtime panics where it can't start its threads.
        let refused = |_| io::Error::other("the system gives no more threads");
        let runtime = catch_unwind(AssertUnwindSafe(|| builder.build())).map_err(refused)??;
        let (planner, jobs) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let executor = Self {
            planner,
            jobs: waiting.clone(),
            workers: Some(runtime),
            threads: threads.clone(),
        };
        let handle = executor.workers.as_ref().map(|runtime| runtime.handle().clone());
        let plan = move || {
            lock(&threads).insert(thread_id());
            if let Some(workers) = handle {
                work_off(&jobs, &waiting, &workers);
            }
        };
        let named =
            std::thread::Builder::new().name("dray-plan".into()).stack_size(PLANNER_STACK_BYTES);
        named.spawn(plan)?;
        Ok(executor)
    }

    /// Whether nothing runs on it.
    fn is_quiet(&self) -> bool {
        let tasks = self.workers.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        tasks == 0 && self.jobs.load(Ordering::Acquire) == 0
    }

    /// Leaves the processors to everything else. There is no way back without privileges.
    fn stand_back(&self) {
        lock(&self.threads).iter().for_each(|thread| set_nice(*thread, ABANDONED_NICE));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Nobody waits for threads that may not end.
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

/// The planner's life.
fn work_off(jobs: &Receiver<Job>, waiting: &AtomicUsize, workers: &Handle) {
    for job in jobs {
        job(workers);
        waiting.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
