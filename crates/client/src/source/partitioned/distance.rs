//! How far away a server is, and how many ranges that allows.

use std::os::fd::AsFd;
use std::time::Duration;

use dray_chooser::TcpInfo;
use dray_net::Socket;

/// Ranges for each worker, so that all workers end at about the same time.
const RANGES: usize = 8;
/// Beyond a building, the round trips that begin a range cost more than an uneven end.
const RANGES_FAR: usize = 2;
const FAR: Duration = Duration::from_millis(3);

/// How many ranges each worker reads from the server of this connection.
pub(in super::super) fn ranges_per_worker(socket: &Socket) -> usize {
    let info = socket.tcp().and_then(|stream| TcpInfo::of(stream.as_fd()).ok());
    match info.and_then(|info| info.round_trip()) {
        Some(round_trip) if round_trip > FAR => RANGES_FAR,
        _ => RANGES,
    }
}
