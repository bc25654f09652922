//! Threads of a backend, which work while its own thread, PostgreSQL's, goes on.
//!
//! ```text
//!   PostgreSQL's thread        the slots, in order        a worker
//!   begin ───── job ─────▶ made │ running │ waiting ──▶ run ──┐
//!   next ◀───── made ────────┘       ▲                        │
//!                                    └───────── made ─────────┘
//! ```
//!
//! A worker touches what its job brings, and nothing of PostgreSQL's. It has all signals blocked,
//! so that their handlers, which do not expect it, run in the backend's own thread. A panic ends
//! its job alone. Nothing is left of a worker once [`Workers`] are dropped.
//!
//! These are POSIX threads and not those of `std`, which keep values of their own in the library's
//! thread-local storage: for a library that was loaded at run time glibc allocates that at first
//! use, and ends the process where memory is short.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// An address range of which pages are taken as they are used.
const STACK_BYTES: usize = 1 << 20;
/// As `top -H` and debuggers show a worker.
const NAME: &CStr = c"dray encode";

/// Some threads, which run jobs of one kind.
pub(crate) struct Workers<J: Send, M: Send> {
    shared: Arc<Shared<J, M>>,
    threads: Vec<libc::pthread_t>,
    under_way: usize,
}

struct Shared<J, M> {
    run: fn(J) -> M,
    slots: Mutex<Slots<J, M>>,
    /// There is a job, or the end.
    begun: Condvar,
    /// A job has been done.
    done: Condvar,
    /// The first of the slots is made.
    is_ready: AtomicBool,
}

struct Slots<J, M> {
    queue: VecDeque<Slot<J, M>>,
    /// The number of the first of them.
    first: u64,
    stopped: bool,
}

enum Slot<J, M> {
    Waiting(J),
    Running,
    Made(thread::Result<M>),
}

impl<J: Send + 'static, M: Send + 'static> Workers<J, M> {
    /// Starts `count` threads, or as many as the system allows; none if it allows none.
    pub(crate) fn start(count: usize, run: fn(J) -> M) -> Option<Self> {
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
        // One heap for all threads: what one of them frees is another's next block, and nothing is
        // kept twice.
        #[cfg(target_env = "gnu")]
        // SAFETY: it sets a number.
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

    /// Whether each thread has a job: one must be taken before another one is begun.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way >= self.threads.len()
    }

    /// How many jobs have been begun and not taken.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether [`Self::next`] has something at once.
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

    /// Waits for the job that was begun first, and takes what it made, or its panic. None if none
    /// is under way.
    pub(crate) fn next(&mut self) -> Option<thread::Result<M>> {
        let mut slots = self.shared.lock();
        loop {
            match slots.queue.pop_front()? {
                Slot::Made(made) => {
                    slots.first += 1;
                    self.shared.is_ready.store(slots.is_ready(), Relaxed);
                    self.under_way -= 1;
                    return Some(made);
                }
                other => slots.queue.push_front(other),
            }
            slots = self.shared.done.wait(slots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<J: Send, M: Send> Drop for Workers<J, M> {
    /// Ends all threads, each after the job that it runs. Jobs that wait are dropped.
    fn drop(&mut self) {
        let waiting = {
            let mut slots = self.shared.lock();
            slots.stopped = true;
            std::mem::take(&mut slots.queue)
        };
        self.shared.begun.notify_all();
        drop(waiting);
        for thread in self.threads.drain(..) {
            // SAFETY: it was started, and has not been joined.
            unsafe { libc::pthread_join(thread, null_mut()) };
        }
    }
}

impl<J, M> Shared<J, M> {
    fn lock(&self) -> MutexGuard<'_, Slots<J, M>> {
        // What is in there is whole between any two statements.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job, and takes it and its number; none at the end.
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

    fn put(&self, number: u64, made: thread::Result<M>) {
        let mut slots = self.lock();
        let at = usize::try_from(number - slots.first).unwrap_or(usize::MAX);
        // At the end there is nobody who would have it.
        if let Some(slot) = slots.queue.get_mut(at) {
            *slot = Slot::Made(made);
        }
        self.is_ready.store(slots.is_ready(), Relaxed);
        drop(slots);
        self.done.notify_one();
    }
}

impl<J, M> Slots<J, M> {
    fn is_ready(&self) -> bool {
        matches!(self.queue.front(), Some(Slot::Made(_)))
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// What a thread does from its beginning to its end.
extern "C" fn work<J: Send, M: Send>(shared: *mut c_void) -> *mut c_void {
    // SAFETY: `start_thread` gave it to this thread.
    let shared = unsafe { Arc::from_raw(shared.cast_const().cast::<Shared<J, M>>()) };
    // SAFETY: it is a string that ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    while let Some((number, job)) = shared.take() {
        let made = catch_unwind(AssertUnwindSafe(|| (shared.run)(job)));
        shared.put(number, made);
    }
    null_mut()
}

fn start_thread<J: Send, M: Send>(shared: &Arc<Shared<J, M>>) -> Option<libc::pthread_t> {
    let given = Arc::into_raw(shared.clone());
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: both are filled before they are used, and the attributes are destroyed if they were
    // initialized.
    let started = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 && {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
            let code = libc::pthread_create(
                thread.as_mut_ptr(),
                attributes.as_ptr(),
                work::<J, M>,
                given.cast_mut().cast::<c_void>(),
            );
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            code == 0
        }
    };
    if !started {
        // SAFETY: there is no thread that has it.
        drop(unsafe { Arc::from_raw(given) });
        return None;
    }
    // SAFETY: pthread_create has filled it.
    Some(unsafe { thread.assume_init() })
}

/// All signals are blocked in this thread, and in those that it starts, until this is dropped.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> Option<Self> {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: each is filled before it is used; that of a call that failed is not.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let code = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (code == 0).then(|| Self { before: before.assume_init() })
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is that of this thread.
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
    fn jobs_come_back_in_their_order() {
        let run = |n: u64| {
            // Later ones are done first.
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
    fn jobs_that_wait_are_dropped_at_the_end() {
        static RUN: AtomicUsize = AtomicUsize::new(0);
        let run = |held: Arc<()>| {
            thread::sleep(Duration::from_millis(50));
            RUN.fetch_add(1, Relaxed);
            held
        };
        let held = Arc::new(());
        let mut workers = Workers::start(1, run).unwrap();
        for _ in 0..3 {
            workers.begin(held.clone());
        }
        while Arc::strong_count(&held) == 4
            && workers.shared.lock().queue.iter().all(|slot| matches!(slot, Slot::Waiting(_)))
        {
            thread::yield_now();
        }
        drop(workers);
        assert_eq!((RUN.load(Relaxed), Arc::strong_count(&held)), (1, 1));
    }

    /// How many of the signals that can be blocked are.
    fn blocked() -> usize {
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is filled before it is used.
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
        // SIGKILL and SIGSTOP can't be.
        assert_eq!(workers.next().unwrap().unwrap(), 29);
    }
}
