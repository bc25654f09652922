//! The number and the priority of a thread of this process.

#![allow(unsafe_code, reason = "asks the kernel")]

/// The system's number of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn thread_id() -> i32 {
    // By its number: the C library has a function for it since glibc 2.30 only.
    // SAFETY: it takes no arguments and can't fail.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    // The kernel's numbers of threads are below 2^22.
    number as i32
}

/// Other systems have no such numbers.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_id() -> i32 {
    0
}

/// Sets the nice value of a thread of this process, where threads have their own (nice(2)).
pub(crate) fn set_nice(thread: i32, nice: i32) {
    if cfg!(target_os = "linux")
        && let Some(thread) = rustix::process::Pid::from_raw(thread)
    {
        // The thread may have ended, which is no error.
        let _ = rustix::process::setpriority_process(Some(thread), nice);
    }
}
