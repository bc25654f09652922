//! Memory for statements: each waits until the least that it needs is free, and what is on its way
//! to clients is counted.
//!
//! ```text
//!   --memory  ├── 3/4: sorts, aggregates, joins: a share each, as many statements at a time as there are shares
//!             └── 1/4: results on their way: chunks that are made and wait in queues
//! ```
//!
//! The engine's pool divides all of the memory among those that ask. Who comes last may then get
//! less than an operator can begin with; here it waits instead. Statements that keep nothing and
//! send little are not held up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::info;

use crate::engine;
use crate::slots::Waits;

/// What is counted, in bytes: semaphores count to 2³² only.
const UNIT_BYTES: u64 = 4 << 10;
/// The share of a statement that sorts, aggregates or joins, unless the memory is less.
const SHARE_BYTES: u64 = 64 << 20;
/// So many such statements run at a time, however little memory there is.
const SHARES_MIN: u64 = 2;
/// Results on their way get such a part of the memory,
const RESULTS_PART: u64 = 4;
/// and one of them such a part of that.
const RESULT_PART: u64 = 4;
/// The largest chunks, whatever the client accepts and how much memory there is.
const CHUNK_BYTES_CEILING: u64 = 16 << 20;
const CHUNK_BYTES_FLOOR: u64 = 64 << 10;
/// Queries and parameters that are being received get such a part of the memory, and so much at
/// least: one of the largest.
const REQUESTS_PART: u64 = 8;
const REQUESTS_BYTES_MIN: u64 = 64 << 20;
/// How long a statement waits for its share.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The memory of a server's statements.
#[derive(Debug)]
pub(crate) struct Admission {
    pool: Arc<dyn MemoryPool>,
    memory_bytes: Option<u64>,
    shares: Arc<Semaphore>,
    results: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    waiting: AtomicUsize,
    wait_max: Duration,
}

/// What a statement needs before it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    /// Whether it has operators that keep rows.
    pub(crate) keeps_rows: bool,
    /// The bytes of chunks that it makes before its client has taken any.
    pub(crate) result_bytes: u64,
    /// The bytes of record batches that are read as a whole.
    pub(crate) scan_bytes: u64,
}

/// A statement's part of the memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    _share: Option<OwnedSemaphorePermit>,
    _result: Option<OwnedSemaphorePermit>,
    _reservation: MemoryReservation,
}

impl Admission {
    pub(crate) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        let memory_bytes = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => Some(bytes as u64),
            MemoryLimit::Infinite | MemoryLimit::Unknown => None,
        };
        let semaphore = |bytes: Option<u64>| {
            let units = bytes.map_or(Semaphore::MAX_PERMITS, |bytes| units(bytes).max(1) as usize);
            Arc::new(Semaphore::new(units))
        };
        let results = memory_bytes.map(|bytes| bytes / RESULTS_PART);
        Self {
            pool,
            memory_bytes,
            shares: semaphore(memory_bytes.map(|bytes| bytes - bytes / RESULTS_PART)),
            results: semaphore(results),
            requests: semaphore(
                memory_bytes.map(|bytes| (bytes / REQUESTS_PART).max(REQUESTS_BYTES_MIN)),
            ),
            waiting: AtomicUsize::new(0),
            wait_max: WAIT_MAX,
        }
    }

    /// The room of requests that are being received, in units of [`UNIT_BYTES`].
    pub(crate) fn requests(&self) -> Arc<Semaphore> {
        self.requests.clone()
    }

    /// The largest chunks that are made for a client which accepts `asked`, where `chunks` of them
    /// are there at a time.
    pub(crate) fn chunk_bytes_max(&self, asked: u64, chunks: u64) -> u64 {
        let result = self.memory_bytes.map_or(u64::MAX, |bytes| bytes / RESULTS_PART / RESULT_PART);
        asked.min((result / chunks.max(1)).clamp(CHUNK_BYTES_FLOOR, CHUNK_BYTES_CEILING))
    }

    /// Waits until there is memory for a statement.
    ///
    /// # Errors
    /// If there is none for too long.
    pub(crate) async fn admit(&self, need: Need) -> Result<Admitted, ServerError> {
        let share = match self.memory_bytes {
            Some(bytes) if need.keeps_rows || need.scan_bytes > 0 => {
                let most = bytes - bytes / RESULTS_PART;
                if need.scan_bytes > most {
                    let message = format!(
                        "the files' record batches take {} MB together, for which the server has no memory",
                        need.scan_bytes / 1_000_000
                    );
                    let hint = "write the files in smaller batches, or raise the server's --memory";
                    return Err(engine::error(ErrorKind::Resources, "53200", message, hint));
                }
                let keeps = if need.keeps_rows { share_bytes(bytes) } else { 0 };
                Some(self.units(&self.shares, (keeps + need.scan_bytes).min(most)).await?)
            }
            _ => None,
        };
        let result = match self.memory_bytes {
            Some(bytes) => {
                let most = bytes / RESULTS_PART;
                Some(self.units(&self.results, need.result_bytes.min(most)).await?)
            }
            None => None,
        };
        let reservation = MemoryConsumer::new("results").register(&self.pool);
        // There is room: the semaphore has seen to that; what sorts have taken, they give back.
        reservation.grow(
            usize::try_from(need.result_bytes.saturating_add(need.scan_bytes))
                .unwrap_or(usize::MAX >> 1),
        );
        Ok(Admitted { _share: share, _result: result, _reservation: reservation })
    }

    /// Whether a statement waits for memory.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn units(
        &self,
        room: &Arc<Semaphore>,
        bytes: u64,
    ) -> Result<OwnedSemaphorePermit, ServerError> {
        let wanted = units(bytes);
        if let Ok(permit) = room.clone().try_acquire_many_owned(wanted) {
            return Ok(permit);
        }
        let _waits = Waits::begin(&self.waiting);
        info!("a statement waits for {bytes} bytes of memory that others use");
        match tokio::time::timeout(self.wait_max, room.clone().acquire_many_owned(wanted)).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(engine::error(
                ErrorKind::Resources,
                "53200",
                format!(
                    "other statements had the memory for {} s that this one needs to begin",
                    self.wait_max.as_secs()
                ),
                "try again later, read results to their end, or raise the server's --memory",
            )),
        }
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// The share of one statement.
fn share_bytes(memory_bytes: u64) -> u64 {
    SHARE_BYTES.min((memory_bytes - memory_bytes / RESULTS_PART) / SHARES_MIN)
}

/// Units of [`Admission::requests`] for so many bytes.
pub(crate) fn request_units(bytes: u64) -> u32 {
    units(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

    use std::sync::Arc;
    use std::time::Duration;

    use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
    use futures::FutureExt;

    use super::{Admission, Need};

    fn admission(bytes: usize) -> Admission {
        let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
        Admission { wait_max: Duration::from_millis(20), ..Admission::new(pool) }
    }

    #[tokio::test]
    async fn statements_wait_for_their_share() {
        let admission = admission(256 << 20);
        let sort = Need { keeps_rows: true, result_bytes: 1 << 20, scan_bytes: 0 };
        let first = [
            admission.admit(sort).await.unwrap(),
            admission.admit(sort).await.unwrap(),
            admission.admit(sort).await.unwrap(),
        ];
        assert_eq!(admission.pool.reserved(), 3 << 20);
        assert!(admission.admit(sort).now_or_never().is_none());
        let refused = admission.admit(sort).await.unwrap_err();
        assert_eq!(refused.sqlstate, "53200");
        // Who keeps nothing goes past.
        let scan = Need { keeps_rows: false, ..sort };
        admission.admit(scan).now_or_never().unwrap().unwrap();
        let file = Need { scan_bytes: 200 << 20, ..scan };
        assert!(admission.admit(file).await.unwrap_err().message.contains("209 MB"));
        drop(first);
        assert_eq!(admission.pool.reserved(), 0);
        admission.admit(sort).await.unwrap();
    }

    #[test]
    fn chunks_have_a_ceiling() {
        let small = admission(128 << 20);
        assert_eq!(small.chunk_bytes_max(1 << 20, 8), 1 << 20);
        assert_eq!(small.chunk_bytes_max(u64::from(u32::MAX), 8), 1 << 20);
        assert_eq!(admission(16 << 30).chunk_bytes_max(u64::from(u32::MAX), 8), 16 << 20);
        assert_eq!(admission(1 << 20).chunk_bytes_max(1 << 20, 8), 64 << 10);
    }
}
