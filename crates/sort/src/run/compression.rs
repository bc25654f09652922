//! Decides when to compress spilled data: when compressing takes less time than the disk would take
//! for the bytes it saves.
//!
//! Writes end in the system's page cache, at the speed of memory, until the cache holds all the
//! unwritten bytes that it may. From then on they are as slow as the disk. The speeds of writing
//! and of compressing are therefore measured all the time. When compressed bytes are so few that
//! the disk keeps up easily, later ones are written uncompressed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::options::SpillCompression;

/// Averages are over about this many of the latest bytes.
const WINDOW_BYTES: f64 = (4 << 20) as f64;
/// While compression does not pay, one byte in this many is compressed as a trial.
const TRIAL_DIVISOR: usize = 64;
/// The least ratio of time saved to time spent at which compression goes on. It is below 1, because
/// compression relieves the disk that its benefit is measured on, and what is written slowly is
/// read slowly again.
const RATIO_TO_CONTINUE: f64 = 0.25;
/// The time of decompressing, as a part of the time of compressing.
const DECOMPRESSING: f64 = 0.25;

/// Decides whether to compress, by what all threads have measured.
#[derive(Debug)]
pub(crate) struct CompressionPolicy {
    compression: SpillCompression,
    measured: Mutex<Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    /// Seconds to write a byte.
    write_seconds: Average,
    /// Seconds to compress a byte.
    compress_seconds: Average,
    /// Compressed bytes for each byte.
    ratio: Average,
    is_compressing: bool,
    /// Uncompressed bytes since the last compression.
    untried_bytes: usize,
}

/// An average for each byte.
#[derive(Debug, Default)]
struct Average {
    sum: f64,
    bytes: f64,
}

impl Average {
    fn add(&mut self, sum: f64, bytes: usize) {
        if self.bytes > WINDOW_BYTES {
            self.sum /= 2.0;
            self.bytes /= 2.0;
        }
        self.sum += sum;
        self.bytes += bytes as f64;
    }

    fn get(&self) -> f64 {
        self.sum / self.bytes.max(1.0)
    }
}

impl CompressionPolicy {
    pub fn new(compression: SpillCompression) -> Self {
        Self { compression, measured: Mutex::default() }
    }

    /// Whether to compress the next `bytes` bytes.
    pub fn compresses(&self, bytes: usize) -> bool {
        match self.compression {
            SpillCompression::None => false,
            SpillCompression::Lz4 => true,
            SpillCompression::Auto => {
                let mut measured = self.measured();
                let saved = measured.write_seconds.get() * (1.0 - measured.ratio.get());
                let least_ratio = if measured.is_compressing { RATIO_TO_CONTINUE } else { 1.0 };
                measured.is_compressing = saved
                    > least_ratio * measured.compress_seconds.get() * (1.0 + DECOMPRESSING)
                    && measured.compress_seconds.bytes > 0.0;
                if !measured.is_compressing {
                    measured.untried_bytes += bytes;
                }
                measured.is_compressing || measured.untried_bytes / TRIAL_DIVISOR >= bytes
            }
        }
    }

    /// Records that `bytes` were compressed.
    pub fn record_compression(&self, bytes: usize, compressed_bytes: usize, took: Duration) {
        let mut measured = self.measured();
        measured.compress_seconds.add(took.as_secs_f64(), bytes);
        measured.ratio.add(compressed_bytes as f64, bytes);
        measured.untried_bytes = 0;
    }

    /// Records that `bytes` were written, compressed or not.
    pub fn record_write(&self, bytes: usize, took: Duration) {
        self.measured().write_seconds.add(took.as_secs_f64(), bytes);
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 256 << 10;

    /// Writes `times` blocks, and compresses them to half if the policy says so. A compression
    /// takes `compress_us` microseconds, a write what `write_us` says for a compressed block or
    /// another. Returns how many blocks were compressed.
    fn compressions(
        policy: &CompressionPolicy,
        times: usize,
        compress_us: u64,
        write_us: impl Fn(bool) -> u64,
    ) -> usize {
        let compresses = |_: &usize| {
            let compresses = policy.compresses(BYTES);
            let bytes = if compresses { BYTES / 2 } else { BYTES };
            if compresses {
                policy.record_compression(BYTES, bytes, Duration::from_micros(compress_us));
            }
            policy.record_write(bytes, Duration::from_micros(write_us(compresses)));
            compresses
        };
        (0..times).filter(compresses).count()
    }

    #[test]
    fn a_disk_that_becomes_slow_and_fast_again() {
        let policy = CompressionPolicy::new(SpillCompression::Auto);
        // The page cache is fast: one block in 64 is tried.
        assert_eq!(compressions(&policy, 640, 400, |is_half| if is_half { 50 } else { 100 }), 10);
        // 100 MB/s.
        assert!(compressions(&policy, 640, 400, |is_half| if is_half { 1300 } else { 2600 }) > 500);
        assert!(compressions(&policy, 1280, 400, |is_half| if is_half { 50 } else { 100 }) < 200);
    }

    #[test]
    fn incompressible_bytes() {
        let policy = CompressionPolicy::new(SpillCompression::Auto);
        let compresses = |_: &usize| {
            let compresses = policy.compresses(BYTES);
            if compresses {
                policy.record_compression(BYTES, BYTES + 1000, Duration::from_micros(100));
            }
            policy.record_write(BYTES, Duration::from_micros(2600));
            compresses
        };
        assert_eq!((0..640).filter(compresses).count(), 10);
    }

    #[test]
    fn always_or_never() {
        for (compression, compressed) in [(SpillCompression::Lz4, 100), (SpillCompression::None, 0)]
        {
            let policy = CompressionPolicy::new(compression);
            assert_eq!(compressions(&policy, 100, 400, |_| 2600), compressed);
        }
    }
}
