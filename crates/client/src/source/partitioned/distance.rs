//! What the distance to a server allows: how many connections, and how many ranges.

use std::os::fd::AsFd;
use std::time::Duration;

use dray_chooser::{Line, TcpInfo};
use dray_net::Socket;

/// Ranges for each worker, so that all workers end at about the same time.
const RANGES: usize = 8;
/// Beyond a building, the round trips that begin a range cost more than an uneven end.
const RANGES_FAR: usize = 2;
const FAR: Duration = Duration::from_millis(3);
/// The fewest bytes to read that are worth a connection.
const CONNECTION_BYTES_MIN: u64 = 32 << 20;
/// Several connections have about this many round trips before they read.
const ROUND_TRIPS: f64 = 25.0;
/// The fewest round trips that reading must take for each of two connections. Several may save
/// nothing, so what they cost must be no more than a tenth of reading.
const READING_MIN: f64 = ROUND_TRIPS * 10.0 / 2.0;

/// The round trip to a server.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Distance(Duration);

impl Distance {
    /// That of a connection, as the kernel has measured it; zero if it does not say.
    pub(in super::super) fn of(socket: &Socket) -> Self {
        let info = socket.tcp().and_then(|stream| TcpInfo::of(stream.as_fd()).ok());
        Self(info.and_then(|info| info.round_trip()).unwrap_or_default())
    }

    /// How many ranges each worker reads.
    pub(in super::super) fn ranges_per_worker(self) -> usize {
        if self.0 > FAR { RANGES_FAR } else { RANGES }
    }

    /// How many connections a table of so many bytes is worth.
    pub(in super::super) fn connections_for(self, bytes: u64) -> usize {
        let reading_ns = self.0.as_nanos() as f64 * READING_MIN;
        let far_min = (reading_ns / Line::guessed(self.0).price_ns) as u64;
        usize::try_from(bytes / CONNECTION_BYTES_MIN.max(far_min)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_servers_need_large_tables() {
        let connections = |ms, megabytes: u64| {
            Distance(Duration::from_millis(ms)).connections_for(megabytes << 20)
        };
        assert_eq!([connections(0, 64), connections(0, 63), connections(1, 64)], [2, 1, 2]);
        assert_eq!([connections(10, 64), connections(25, 64), connections(25, 128)], [2, 1, 3]);
        assert_eq!([connections(100, 280), connections(100, 300)], [1, 2]);
    }
}
