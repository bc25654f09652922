//! Worker threads of a backend, beside PostgreSQL's own thread.
//!
//! ```text
//!   PostgreSQL's thread        the slots, in order        a worker
//!   begin ───── job ─────▶ done │ running │ waiting ──▶ run ──┐
//!   next ◀──── result ───────┘       ▲                        │
//!                                    └──────── result ────────┘
//! ```
//!
//! A worker touches its job, and nothing of PostgreSQL's. It blocks all signals: their handlers
//! expect to run in the backend's own thread. A panic ends only its job. When [`Workers`] are
//! dropped, all threads have ended.
//!
//! These are POSIX threads, not those of `std`. The latter keep values in the thread-local storage
//! of the library. For a library that is loaded at run time, glibc allocates that storage at its
//! first use, and ends the process if memory is short.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The size of a stack. It is an address range; pages are taken as they are used.
const STACK_BYTES: usize = 1 << 20;
/// The name of a worker in `top -H` and in debuggers.
const NAME: &CStr = c"dray encode";

/// Threads that run jobs `J` of one kind, each with a result `R`. Results come in the order of
/// their jobs.
pub(crate) struct Workers<J: Send, R: Send> {
    shared: Arc<Shared<J, R>>,
    threads: Vec<libc::pthread_t>,
    /// The jobs that were begun and whose result was not taken.
    under_way: usize,
}

struct Shared<J, R> {
    run: fn(J) -> R,
    slots: Mutex<Slots<J, R>>,
    /// A job waits, or the workers should end.
    begun: Condvar,
    /// A job is done.
    done: Condvar,
    /// The first job is done.
    is_ready: AtomicBool,
}

struct Slots<J, R> {
    queue: VecDeque<Slot<J, R>>,
    /// The number of the first job in the queue. Jobs are numbered from 0.
    first: u64,
    /// The workers should end.
    stopped: bool,
}

enum Slot<J, R> {
    Waiting(J),
    Running,
    Done(thread::Result<R>),
}

impl<J: Send + 'static, R: Send + 'static> Workers<J, R> {
    /// Starts `count` threads, or as many as the system allows. `None` if it allows none.
    pub(crate) fn start(count: usize, run: fn(J) -> R) -> Option<Self> {
        let shared = Arc::new(Shared {
            run,
            slots: Mutex::new(Slots {
                queue: VecDeque::with_capacity(count),
                first: 0,
                stopped: false,
            }),
            begun: Condvar::new(),
            done: Condvar::new(),
            is_ready: AtomicBool::new(false),
        });
        let mut workers = Self { shared, threads: Vec::with_capacity(count), under_way: 0 };
        let _blocked = SignalsBlocked::new()?;
        // One heap for all threads: the memory that one of them frees serves another.
        #[cfg(target_env = "gnu")]
        // SAFETY: this sets a number.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1)
        };
        for _ in 0..count {
            match start_thread(&workers.shared) {
                Some(thread) => workers.threads.push(thread),
                None => break,
            }
        }
        (!workers.threads.is_empty()).then_some(workers)
    }

    /// Whether each thread has a job. A result must be taken before another job is begun.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way >= self.threads.len()
    }

    /// How many jobs were begun whose result was not taken.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether [`Self::next`] returns a result at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.shared.is_ready.load(Relaxed)
    }

    /// Begins a job.
    pub(crate) fn begin(&mut self, job: J) {
        self.under_way += 1;
        self.shared.lock().queue.push_back(Slot::Waiting(job));
        self.shared.begun.notify_one();
    }

    /// Waits for the job that was begun first, and takes its result, or its panic. `None` if no job
    /// is under way.
    pub(crate) fn next(&mut self) -> Option<thread::Result<R>> {
        let mut slots = self.shared.lock();
        loop {
            match slots.queue.pop_front()? {
                Slot::Done(result) => {
                    slots.first += 1;
                    self.shared.is_ready.store(slots.is_ready(), Relaxed);
                    self.under_way -= 1;
                    return Some(result);
                }
                other => slots.queue.push_front(other),
            }
            slots = self.shared.done.wait(slots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<J: Send, R: Send> Drop for Workers<J, R> {
    /// Ends all threads, each after the job that it runs. Waiting jobs are dropped.
    fn drop(&mut self) {
        let waiting = {
            let mut slots = self.shared.lock();
            slots.stopped = true;
            std::mem::take(&mut slots.queue)
        };
        self.shared.begun.notify_all();
        drop(waiting);
        for thread in self.threads.drain(..) {
            // SAFETY: the thread was started, and has not been joined.
            unsafe { libc::pthread_join(thread, null_mut()) };
        }
    }
}

impl<J, R> Shared<J, R> {
    fn lock(&self) -> MutexGuard<'_, Slots<J, R>> {
        // The slots are consistent between any two statements, so a panic does no harm to them.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job, and takes it with its number. `None` if the worker should end.
    fn take(&self) -> Option<(u64, J)> {
        let mut slots = self.lock();
        while !slots.stopped {
            let first = slots.first;
            for (slot, number) in slots.queue.iter_mut().zip(first..) {
                match std::mem::replace(slot, Slot::Running) {
                    Slot::Waiting(job) => return Some((number, job)),
                    other => *slot = other,
                }
            }
            slots = self.begun.wait(slots).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Puts the result of a job in its slot.
    fn put(&self, number: u64, result: thread::Result<R>) {
        let mut slots = self.lock();
        let at = usize::try_from(number - slots.first).unwrap_or(usize::MAX);
        // After `drop` has taken the slots, nobody wants the result.
        if let Some(slot) = slots.queue.get_mut(at) {
            debug_assert!(matches!(slot, Slot::Running));
            *slot = Slot::Done(result);
        }
        self.is_ready.store(slots.is_ready(), Relaxed);
        drop(slots);
        self.done.notify_one();
    }
}

impl<J, R> Slots<J, R> {
    fn is_ready(&self) -> bool {
        matches!(self.queue.front(), Some(Slot::Done(_)))
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The main function of a thread.
extern "C" fn work<J: Send, R: Send>(shared: *mut c_void) -> *mut c_void {
    // SAFETY: `start_thread` has passed this thread a reference count of these types.
    let shared = unsafe { Arc::from_raw(shared.cast_const().cast::<Shared<J, R>>()) };
    // SAFETY: the name ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    while let Some((number, job)) = shared.take() {
        let result = catch_unwind(AssertUnwindSafe(|| (shared.run)(job)));
        shared.put(number, result);
    }
    null_mut()
}

fn start_thread<J: Send, R: Send>(shared: &Arc<Shared<J, R>>) -> Option<libc::pthread_t> {
    let passed = Arc::into_raw(shared.clone());
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: attributes and thread are initialized before they are used, and the attributes are
    // destroyed if they were initialized. `work` takes what is passed.
    let started = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 && {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
            let code = libc::pthread_create(
                thread.as_mut_ptr(),
                attributes.as_ptr(),
                work::<J, R>,
                passed.cast_mut().cast::<c_void>(),
            );
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            code == 0
        }
    };
    if !started {
        // SAFETY: no thread has taken the reference count that was passed.
        drop(unsafe { Arc::from_raw(passed) });
        return None;
    }
    // SAFETY: pthread_create has succeeded, and so has initialized it.
    Some(unsafe { thread.assume_init() })
}

/// Blocks all signals in this thread, and in threads that it starts, until this is dropped.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> Option<Self> {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: each set is initialized before it is used; after a failed call it is not used.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let code = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (code == 0).then(|| Self { before: before.assume_init() })
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is initialized: it is the earlier mask of this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut()) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn results_come_in_the_order_of_their_jobs() {
        let run = |n: u64| {
            // Later jobs are done first.
            thread::sleep(Duration::from_millis(3 - n % 3));
            n * n
        };
        let mut workers = Workers::start(3, run).unwrap();
        let mut found = Vec::new();
        for n in 0..50 {
            if workers.is_full() {
                found.push(workers.next().unwrap().unwrap());
            }
            workers.begin(n);
        }
        while let Some(made) = workers.next() {
            found.push(made.unwrap());
        }
        assert_eq!(found, (0..50).map(|n| n * n).collect::<Vec<_>>());
        assert_eq!((workers.under_way(), workers.is_ready()), (0, false));
    }

    #[test]
    fn a_panic_ends_its_job_alone() {
        let run = |n: u32| match n {
            1 => panic!("job {n}"),
            _ => n,
        };
        let mut workers = Workers::start(1, run).unwrap();
        let made: Vec<_> = (0..3)
            .map(|n| {
                workers.begin(n);
                workers.next().unwrap().map_err(|panic| panic_text(&*panic))
            })
            .collect();
        assert_eq!(made, [Ok(0), Err("job 1".to_owned()), Ok(2)]);
    }

    #[test]
    fn waiting_jobs_are_dropped_at_the_end() {
        static RUN: AtomicUsize = AtomicUsize::new(0);
        let run = |job: Arc<()>| {
            thread::sleep(Duration::from_millis(50));
            RUN.fetch_add(1, Relaxed);
            job
        };
        let job = Arc::new(());
        let mut workers = Workers::start(1, run).unwrap();
        for _ in 0..3 {
            workers.begin(job.clone());
        }
        while Arc::strong_count(&job) == 4
            && workers.shared.lock().queue.iter().all(|slot| matches!(slot, Slot::Waiting(_)))
        {
            thread::yield_now();
        }
        drop(workers);
        assert_eq!((RUN.load(Relaxed), Arc::strong_count(&job)), (1, 1));
    }

    /// The number of blocked signals, of those that can be blocked.
    fn blocked() -> usize {
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is initialized before it is used.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, null_mut(), mask.as_mut_ptr());
            (1..32).filter(|signal| libc::sigismember(mask.as_ptr(), *signal) == 1).count()
        }
    }

    #[test]
    fn workers_have_all_signals_blocked() {
        let before = blocked();
        let mut workers = Workers::start(2, |()| blocked()).unwrap();
        assert_eq!(blocked(), before);
        workers.begin(());
        // SIGKILL and SIGSTOP can't be blocked.
        assert_eq!(workers.next().unwrap().unwrap(), 29);
    }
}
