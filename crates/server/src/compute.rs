//! Threads that compute, apart from those that do network I/O.
//!
//! ```text
//!   network: sockets, cancels, signals       executor, one for each running statement
//!   ┌───────────────────────────────┐  job  ┌─────────────────────────────────────────┐
//!   │ connection ── statement ──────┼──────▶│ planner: SQL, plan, the first batch     │
//!   │      ▲                        │       │    │ producers                          │
//!   │      └────── chunks ──────────┼───────│ workers × threads: partitions, encoding │
//!   └───────────────────────────────┘       └─────────────────────────────────────────┘
//! ```
//!
//! A planner rule or a join of the engine may run for minutes without yielding, and can't be
//! stopped meanwhile. So each statement has its own threads, and the system schedules them. Workers
//! have a lower priority than network threads and planners: otherwise a short statement would wait
//! behind all long ones.
//!
//! An executor is reused once nothing runs on it. If its threads keep running after the statement
//! has ended, it is abandoned: it runs at the lowest priority, and is dropped when it ends.

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

use crate::slots::StatementSlot;
use crate::thread::{set_nice, thread_id};

/// The planner's stack. Planning, comparing and dropping a plan recurse as deep as the statement is
/// nested. The kernel provides the memory when it is first used.
const PLANNER_STACK_BYTES: usize = 64 << 20;
/// A worker's stack. Evaluating expressions recurses.
const WORKER_STACK_BYTES: usize = 16 << 20;
/// The nice(2) value of workers, and that of all threads of an abandoned executor.
const WORKER_NICE: i32 = 5;
const ABANDONED_NICE: i32 = 19;
/// How long an executor may keep running after its statement before it is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);
/// How often to check that it has ended: the interval starts at the minimum and doubles.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(1);
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(100);
/// Idle executors to keep for the next statements.
const IDLE_MAX: usize = 4;

/// A panic's payload.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The pool of executors.
pub(crate) struct Compute {
    /// Workers of each executor.
    threads: usize,
    /// A stack: the executor that was used last is taken first, while its memory is cached.
    idle: Mutex<Vec<Executor>>,
    /// Executors that are abandoned.
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

    /// An executor. It holds `slot` until everything that runs there has ended.
    ///
    /// # Errors
    /// If the system can't start more threads.
    pub(crate) fn lease(self: &Arc<Self>, slot: Option<StatementSlot>) -> io::Result<Lease> {
        let idle = lock(&self.idle).pop();
        let executor = idle.map_or_else(|| Executor::start(self.threads), Ok)?;
        Ok(Lease { executor: Some(executor), slot, compute: self.clone() })
    }

    /// How many threads encode and compute for a statement.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The number of statements that have ended while their threads still run.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Keeps an idle executor for the next statement.
    fn put(&self, executor: Executor) {
        debug_assert!(executor.is_idle());
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push(executor);
        }
    }

    /// Waits until nothing runs on an executor, then frees it and its slot.
    async fn reclaim(self: Arc<Self>, executor: Executor, slot: Option<StatementSlot>) {
        let stopped = Instant::now();
        let mut interval = CHECK_INTERVAL_MIN;
        while !executor.is_idle() && stopped.elapsed() < ABANDONED_AFTER {
            tokio::time::sleep(interval).await;
            interval = (interval * 2).min(CHECK_INTERVAL_MAX);
        }
        if executor.is_idle() {
            self.put(executor);
        } else {
            let abandoned = self.abandoned.fetch_add(1, Ordering::Relaxed) + 1;
            warn!(
                abandoned,
                "a statement has ended, but its threads still run; they now run at the lowest \
                 priority"
            );
            executor.lower_priority();
            while !executor.is_idle() {
                tokio::time::sleep(CHECK_INTERVAL_MAX).await;
            }
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
            info!(
                ms = stopped.elapsed().as_millis(),
                "the threads of an abandoned statement have ended"
            );
        }
        drop(slot);
    }
}

/// The use of an executor. Dropping it returns the executor to the pool.
pub(crate) struct Lease {
    /// Some until it is dropped.
    executor: Option<Executor>,
    slot: Option<StatementSlot>,
    compute: Arc<Compute>,
}

impl Lease {
    /// Runs `work` on the planner's thread. If this future is dropped, the result is dropped there.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Handle) -> T + Send + 'static,
    ) -> Result<T, Panic> {
        let (done, result) = oneshot::channel();
        let job = move |workers: &Handle| {
            // This fails if the caller is gone.
            let _ = done.send(catch_unwind(AssertUnwindSafe(|| work(workers))));
        };
        self.submit(Box::new(job));
        result.await.unwrap_or_else(|_| Err(Box::new("the planner's thread has ended")))
    }

    /// The runtime of the workers.
    pub(crate) fn workers(&self) -> Option<&Handle> {
        self.executor.as_ref()?.workers.as_ref().map(Runtime::handle)
    }

    /// Drops a value on the planner's thread, because dropping it may take long or recurse deeply.
    pub(crate) fn dispose(&self, value: impl Send + 'static) {
        self.submit(Box::new(move |_| drop(catch_unwind(AssertUnwindSafe(|| drop(value))))));
    }

    fn submit(&self, job: Job) {
        if let Some(executor) = &self.executor {
            executor.jobs.fetch_add(1, Ordering::Relaxed);
            // If the planner is gone, the job is dropped, and `run` fails.
            let _ = executor.planner.send(job);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(executor) = self.executor.take() else { return };
        if executor.is_idle() {
            self.compute.put(executor);
        } else if let Ok(network) = Handle::try_current() {
            network.spawn(self.compute.clone().reclaim(executor, self.slot.take()));
        }
    }
}

type Job = Box<dyn FnOnce(&Handle) + Send>;

/// A planner thread and its workers.
struct Executor {
    planner: Sender<Job>,
    /// Jobs that the planner has not finished.
    jobs: Arc<AtomicUsize>,
    /// Some until it is dropped.
    workers: Option<Runtime>,
    /// The system's IDs of all its threads.
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
        // The runtime panics if it can't start its threads.
        let refused = |_| io::Error::other("the system gives no more threads");
        let runtime = catch_unwind(AssertUnwindSafe(|| builder.build())).map_err(refused)??;
        let (planner, jobs) = channel();
        let unfinished = Arc::new(AtomicUsize::new(0));
        let executor = Self {
            planner,
            jobs: unfinished.clone(),
            workers: Some(runtime),
            threads: threads.clone(),
        };
        let handle = executor.workers.as_ref().map(|runtime| runtime.handle().clone());
        let plan = move || {
            lock(&threads).insert(thread_id());
            if let Some(workers) = handle {
                run_jobs(&jobs, &unfinished, &workers);
            }
        };
        let named =
            std::thread::Builder::new().name("dray-plan".into()).stack_size(PLANNER_STACK_BYTES);
        named.spawn(plan)?;
        Ok(executor)
    }

    /// Whether nothing runs on it.
    fn is_idle(&self) -> bool {
        let tasks = self.workers.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        tasks == 0 && self.jobs.load(Ordering::Acquire) == 0
    }

    /// Gives all its threads the lowest priority. Raising it again would need privileges.
    fn lower_priority(&self) {
        lock(&self.threads).iter().for_each(|thread| set_nice(*thread, ABANDONED_NICE));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Don't wait for threads that may not end.
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

/// The planner thread's loop.
fn run_jobs(jobs: &Receiver<Job>, unfinished: &AtomicUsize, workers: &Handle) {
    for job in jobs {
        job(workers);
        unfinished.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can't leave these values half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
