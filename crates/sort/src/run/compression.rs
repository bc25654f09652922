//! When to pack what is spilled: when the disk takes longer for what packing spares than packing
//! takes.
//!
//! Writing ends in the system's cache, which takes bytes at the speed of memory until there are
//! more that the disk does not have yet than it may hold. From then on it is as slow as the disk.
//! So both are measured all the time, and when packed bytes are so few that the disk takes them
//! with ease, others go as they are.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::options::SpillCompression;

/// Means are those of about so many bytes, the last ones.
const WINDOW_BYTES: f64 = (4 << 20) as f64;
/// One byte in so many is packed to see what that would take.
const TRIED_SHARE: usize = 64;
/// As long as bytes are packed, the disk has less to do; and what it took long to write it takes
/// long to read. So that is gone on with until it spares less than this part of what it takes.
const STILL_PAYS: f64 = 0.25;
/// Of the time that packing takes, unpacking takes about this part.
const UNPACKING: f64 = 0.25;

/// What writing and packing take, of all threads.
#[derive(Debug)]
pub(crate) struct CompressionPolicy {
    compression: SpillCompression,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Seconds a byte of those that are written.
    writing: Mean,
    /// Seconds a byte before it is packed.
    packing: Mean,
    /// Bytes that one becomes.
    packed: Mean,
    /// Whether bytes are packed now.
    pays: bool,
    /// Bytes that were not packed since some were.
    untried: usize,
}

/// A mean a byte.
#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    bytes: f64,
}

impl Mean {
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
        Self { compression, seen: Mutex::default() }
    }

    /// Whether so many bytes are to be packed.
    pub fn packs(&self, bytes: usize) -> bool {
        match self.compression {
            SpillCompression::None => false,
            SpillCompression::Lz4 => true,
            SpillCompression::Auto => {
                let mut seen = self.seen();
                let spared = seen.writing.get() * (1.0 - seen.packed.get());
                let least = if seen.pays { STILL_PAYS } else { 1.0 };
                seen.pays = spared > least * seen.packing.get() * (1.0 + UNPACKING)
                    && seen.packing.bytes > 0.0;
                if !seen.pays {
                    seen.untried += bytes;
                }
                seen.pays || seen.untried / TRIED_SHARE >= bytes
            }
        }
    }

    pub fn packed(&self, bytes: usize, compressed_bytes: usize, took: Duration) {
        let mut seen = self.seen();
        seen.packing.add(took.as_secs_f64(), bytes);
        seen.packed.add(compressed_bytes as f64, bytes);
        seen.untried = 0;
    }

    pub fn written(&self, bytes: usize, took: Duration) {
        self.seen().writing.add(took.as_secs_f64(), bytes);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 256 << 10;

    /// Writes and, where it is said to pay, packs to a half, at so many microseconds for each write
    /// and each packing. Returns how often it packed.
    fn packed_of(
        policy: &CompressionPolicy,
        times: usize,
        packing_us: u64,
        written_us: impl Fn(bool) -> u64,
    ) -> usize {
        let packs = |_: &usize| {
            let packs = policy.packs(BYTES);
            let bytes = if packs { BYTES / 2 } else { BYTES };
            if packs {
                policy.packed(BYTES, bytes, Duration::from_micros(packing_us));
            }
            policy.written(bytes, Duration::from_micros(written_us(packs)));
            packs
        };
        (0..times).filter(packs).count()
    }

    #[test]
    fn a_disk_that_becomes_slow_and_fast_again() {
        let policy = CompressionPolicy::new(SpillCompression::Auto);
        // Into the cache: the first time it is tried after 64 blocks.
        assert_eq!(packed_of(&policy, 640, 400, |packs| if packs { 50 } else { 100 }), 10);
        // 100 MB/s.
        assert!(packed_of(&policy, 640, 400, |packs| if packs { 1300 } else { 2600 }) > 500);
        assert!(packed_of(&policy, 1280, 400, |packs| if packs { 50 } else { 100 }) < 200);
    }

    #[test]
    fn bytes_that_do_not_become_fewer() {
        let policy = CompressionPolicy::new(SpillCompression::Auto);
        let packs = |_: &usize| {
            let packs = policy.packs(BYTES);
            if packs {
                policy.packed(BYTES, BYTES + 1000, Duration::from_micros(100));
            }
            policy.written(BYTES, Duration::from_micros(2600));
            packs
        };
        assert_eq!((0..640).filter(packs).count(), 10);
    }

    #[test]
    fn always_or_never() {
        for (compression, packed) in [(SpillCompression::Lz4, 100), (SpillCompression::None, 0)] {
            assert_eq!(packed_of(&CompressionPolicy::new(compression), 100, 400, |_| 2600), packed);
        }
    }
}
