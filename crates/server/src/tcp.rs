//! The TCP connection to a client: its settings, what it delivers, and whether the client still
//! answers.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use dray_chooser::{Delivery, DeliveryMeter, TcpInfo};
use socket2::SockRef;

/// The most bytes that the kernel keeps while it can't send them. Its default is megabytes, which
/// is seconds on a slow line: λ would learn of them too late, and so would a cancel.
const UNSENT_BYTES_MAX: u32 = 256 << 10;

/// The congestion control for large results. A lost packet would halve CUBIC's rate.
const FOR_LARGE_RESULTS: &[u8] = b"bbr";

/// Watches a TCP socket that others write to.
pub(crate) struct TcpMonitor {
    meter: DeliveryMeter<OwnedFd>,
    /// The client's host, unless it is this one.
    pub(crate) host: Option<IpAddr>,
    /// The congestion control has its final setting.
    has_control: bool,
}

impl TcpMonitor {
    /// Watches a socket, and limits its unsent bytes. `host` is the client's host; `None` is a
    /// proxy on this one. Returns `None` if the kernel has no figures about the socket.
    pub(crate) fn of(stream: &impl AsFd, host: Option<IpAddr>) -> Option<Self> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let _ = SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        Some(Self { meter: DeliveryMeter::new(socket)?, host, has_control: host.is_none() })
    }

    /// Asks for a congestion control that a lost packet does not slow down, because a large result
    /// follows. Small results are better off without: BBR spreads each over its round trip.
    pub(crate) fn expect_large_result(&mut self) {
        if !std::mem::replace(&mut self.has_control, true) {
            // A kernel without it keeps the present one.
            let _ = SockRef::from(self.meter.socket()).set_tcp_congestion(FOR_LARGE_RESULTS);
        }
    }

    /// The shortest recent round trip.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.meter.round_trip()
    }

    /// What was delivered since the last call.
    pub(crate) fn take_delivery(&mut self) -> Option<Delivery> {
        self.meter.take()
    }
}

/// Tells whether the client of a TCP socket still answers.
pub(crate) struct Presence(OwnedFd);

impl Presence {
    /// `None` if the kernel does not tell.
    pub(crate) fn of(stream: &impl AsFd) -> Option<Self> {
        let presence = Self(stream.as_fd().try_clone_to_owned().ok()?);
        presence.unacknowledged()?;
        Some(presence)
    }

    /// How long the client has owed an acknowledgement; zero if it owes none.
    pub(crate) fn unacknowledged(&self) -> Option<Duration> {
        TcpInfo::of(self.0.as_fd()).ok()?.unacknowledged()
    }
}
