//! What is known of the line to a client before a stream begins.

use std::time::Duration;

/// λ and what bounds it, as the last stream over a line left them, or as first guesses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// λ, in nanoseconds per byte.
    pub price_ns: f64,
    /// Nanoseconds that a byte takes on the network.
    pub(crate) byte_ns: f64,
    /// The share of the processors' time that encoding takes, and the share of the encoding
    /// threads' time in which they wait for a processor.
    pub(crate) running: f64,
    pub(crate) waiting: f64,
    /// No stream has measured it.
    pub(crate) is_guess: bool,
}

impl Line {
    /// A line whose round trip alone is known. λ is that of 1 Gbit/s within a building and of
    /// 100 Mbit/s beyond.
    pub fn guessed(round_trip: Duration) -> Self {
        Self::of_price(if round_trip > Duration::from_millis(3) { 80.0 } else { 8.0 })
    }

    /// A line on which a byte seems to take `price_ns` nanoseconds, which is also its λ.
    pub fn of_price(price_ns: f64) -> Self {
        Self { price_ns, byte_ns: price_ns, running: 0.0, waiting: 0.0, is_guess: true }
    }
}
