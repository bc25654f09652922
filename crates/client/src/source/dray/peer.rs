//! The user at the other end of a Unix socket.

#![allow(unsafe_code, reason = "getsockopt takes a pointer")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The effective user of the process that listens at the other end. (rustix's `UCred` can't hold
/// the process number 0, which a process of another namespace has.)
pub(super) fn peer_user(stream: &UnixStream) -> io::Result<libc::uid_t> {
    const BYTES: libc::socklen_t = size_of::<libc::ucred>() as libc::socklen_t;
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = BYTES;
    // SAFETY: the borrowed stream keeps the descriptor open. The kernel writes at most `bytes`
    // bytes to `found`, which has as many, and its fields may have any value.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut bytes,
        )
    };
    match (failed, bytes) {
        (0, BYTES) => Ok(found.uid),
        (0, _) => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
