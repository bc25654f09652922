//! The processor time of a thread.

#![allow(unsafe_code, reason = "the kernel fills a structure")]

use std::time::Duration;

/// The processor time that the calling thread has used; zero if the system does not tell.
///
/// It measures encoding better than wall time: a thread that waits for a processor takes no longer
/// to encode.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a `timespec`, valid for writes, which the kernel fills.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    match (code, u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (0, Ok(seconds), Ok(nanoseconds)) => Duration::new(seconds, nanoseconds),
        _ => Duration::ZERO,
    }
}
