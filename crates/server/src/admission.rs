//! Memory admission: a statement starts once the least memory that it needs is free.
//!
//! ```text
//!   --memory  ├── 3/4: operators that buffer rows (sorts, aggregates, joins), a fixed part each
//!             └── 1/4: results: chunks that are being encoded or wait in queues
//! ```
//!
//! The engine's pool divides the memory among all operators that ask. Without admission, the last
//! one may get too little to start. With it, that operator's statement waits instead. Statements
//! that buffer nothing and send little are not held up.

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
use crate::slots::Waiting;

/// The bytes of one permit. A semaphore hands out at most 2³² - 1 permits at once.
const PERMIT_BYTES: u64 = 4 << 10;
/// What a statement that sorts, aggregates or joins reserves, unless there is less memory.
const OPERATOR_BYTES: u64 = 64 << 20;
/// The number of statements that buffer rows and can run at a time, however little memory there is.
const BUFFERING_STATEMENTS_MIN: u64 = 2;
/// Results get 1/4 of the memory,
const RESULTS_DIVISOR: u64 = 4;
/// and a single result at most 1/4 of that.
const RESULT_DIVISOR: u64 = 4;
/// The bounds of the chunk size, whatever the client accepts and however much memory there is.
const CHUNK_BYTES_CEILING: u64 = 16 << 20;
const CHUNK_BYTES_FLOOR: u64 = 64 << 10;
/// Queries and parameters that are being received get 1/8 of the memory, and at least the size of
/// the largest one.
const REQUESTS_DIVISOR: u64 = 8;
const REQUESTS_BYTES_MIN: u64 = 64 << 20;

/// The memory that statements share.
#[derive(Debug)]
pub(crate) struct Admission {
    pool: Arc<dyn MemoryPool>,
    /// None is unlimited.
    memory_bytes: Option<u64>,
    operators: Arc<Semaphore>,
    results: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    /// Statements that wait for memory.
    waiting: AtomicUsize,
    wait_timeout: Duration,
}

/// The memory that a statement needs before it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryNeed {
    /// Whether the plan has operators that buffer rows.
    pub(crate) buffers_rows: bool,
    /// The bytes of chunks that exist before the client has read any.
    pub(crate) result_bytes: u64,
    /// The bytes of Arrow record batches, which are read as a whole.
    pub(crate) scan_bytes: u64,
    /// Whether these are of a source, and not of files.
    pub(crate) reads_source: bool,
}

impl MemoryNeed {
    /// The error if record batches need more than `most` bytes.
    fn refusal(&self, most: u64) -> ServerError {
        let (needed, most) = (self.scan_bytes / 1_000_000, most / 1_000_000);
        let (message, hint) = match self.reads_source {
            true => (
                format!(
                    "rows of a source need {needed} MB at a time, and the server's memory has \
                     {most} MB for them"
                ),
                "raise the server's --memory",
            ),
            false => (
                format!(
                    "the files' record batches need {needed} MB at a time, more than the server's \
                     memory"
                ),
                "write the files in smaller batches, or raise the server's --memory",
            ),
        };
        engine::error(ErrorKind::Resources, "53200", message, hint)
    }
}

/// A statement's memory. Dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct MemoryGrant {
    _operators: Option<OwnedSemaphorePermit>,
    _result: Option<OwnedSemaphorePermit>,
    _reservation: MemoryReservation,
}

impl Admission {
    /// Statements wait at most `wait_timeout` for memory.
    pub(crate) fn new(pool: Arc<dyn MemoryPool>, wait_timeout: Duration) -> Self {
        let memory_bytes = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => Some(bytes as u64),
            MemoryLimit::Infinite | MemoryLimit::Unknown => None,
        };
        let semaphore = |bytes: Option<u64>| {
            let permits =
                bytes.map_or(Semaphore::MAX_PERMITS, |bytes| permits(bytes).max(1) as usize);
            Arc::new(Semaphore::new(permits))
        };
        Self {
            pool,
            memory_bytes,
            operators: semaphore(memory_bytes.map(operators_bytes)),
            results: semaphore(memory_bytes.map(|bytes| bytes / RESULTS_DIVISOR)),
            requests: semaphore(
                memory_bytes.map(|bytes| (bytes / REQUESTS_DIVISOR).max(REQUESTS_BYTES_MIN)),
            ),
            waiting: AtomicUsize::new(0),
            wait_timeout,
        }
    }

    /// Waits until there is memory for a request of so many bytes that is being received.
    ///
    /// # Errors
    /// SQLSTATE 53200 if it has waited too long.
    pub(crate) async fn admit_request(
        &self,
        bytes: u64,
    ) -> Result<OwnedSemaphorePermit, ServerError> {
        self.acquire(&self.requests, bytes).await
    }

    /// The largest chunks to make for a client that accepts `client_max` bytes, if `chunks` of
    /// them exist at a time.
    pub(crate) fn chunk_bytes_max(&self, client_max: u64, chunks: u64) -> u64 {
        let result =
            self.memory_bytes.map_or(u64::MAX, |bytes| bytes / RESULTS_DIVISOR / RESULT_DIVISOR);
        client_max.min((result / chunks.max(1)).clamp(CHUNK_BYTES_FLOOR, CHUNK_BYTES_CEILING))
    }

    /// Waits until there is memory for a statement.
    ///
    /// # Errors
    /// SQLSTATE 53200 if the statement needs more than there is, or has waited too long.
    pub(crate) async fn admit(&self, need: MemoryNeed) -> Result<MemoryGrant, ServerError> {
        let operators = match self.memory_bytes {
            Some(bytes) if need.buffers_rows || need.scan_bytes > 0 => {
                let most = operators_bytes(bytes);
                if need.scan_bytes > most {
                    return Err(need.refusal(most));
                }
                let buffered = if need.buffers_rows { buffered_bytes(bytes) } else { 0 };
                let bytes = (buffered + need.scan_bytes).min(most);
                Some(self.acquire(&self.operators, bytes).await?)
            }
            _ => None,
        };
        let result = match self.memory_bytes {
            Some(bytes) => {
                let most = bytes / RESULTS_DIVISOR;
                Some(self.acquire(&self.results, need.result_bytes.min(most)).await?)
            }
            None => None,
        };
        let reservation = MemoryConsumer::new("results").register(&self.pool);
        // The semaphores have set this memory aside. Sorts that hold more than their part give it
        // back.
        reservation.grow(
            usize::try_from(need.result_bytes.saturating_add(need.scan_bytes))
                .unwrap_or(usize::MAX >> 1),
        );
        Ok(MemoryGrant { _operators: operators, _result: result, _reservation: reservation })
    }

    /// Whether a statement waits for memory.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn acquire(
        &self,
        memory: &Arc<Semaphore>,
        bytes: u64,
    ) -> Result<OwnedSemaphorePermit, ServerError> {
        let permits = permits(bytes);
        if let Ok(permit) = memory.clone().try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        let _waiting = Waiting::new(&self.waiting);
        info!("a statement waits for {bytes} bytes of memory that other statements use");
        let acquired = memory.clone().acquire_many_owned(permits);
        match tokio::time::timeout(self.wait_timeout, acquired).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(engine::error(
                ErrorKind::Resources,
                "53200",
                format!(
                    "the statement waited {:?} for memory that other statements use",
                    self.wait_timeout
                ),
                "try again later, read results to their end, or raise the server's --memory",
            )),
        }
    }
}

/// Permits for some memory.
fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX)
}

/// The part of the memory that operators get.
fn operators_bytes(memory_bytes: u64) -> u64 {
    memory_bytes - memory_bytes / RESULTS_DIVISOR
}

/// What one statement with operators that buffer rows reserves.
fn buffered_bytes(memory_bytes: u64) -> u64 {
    OPERATOR_BYTES.min(operators_bytes(memory_bytes) / BUFFERING_STATEMENTS_MIN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::sync::Arc;
    use std::time::Duration;

    use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
    use futures::FutureExt;

    use super::{Admission, MemoryNeed};

    fn admission(bytes: usize) -> Admission {
        let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
        Admission::new(pool, Duration::from_millis(20))
    }

    #[tokio::test]
    async fn statements_wait_for_their_memory() {
        let admission = admission(256 << 20);
        let sort = MemoryNeed {
            buffers_rows: true,
            result_bytes: 1 << 20,
            scan_bytes: 0,
            reads_source: false,
        };
        let first = [
            admission.admit(sort).await.unwrap(),
            admission.admit(sort).await.unwrap(),
            admission.admit(sort).await.unwrap(),
        ];
        assert_eq!(admission.pool.reserved(), 3 << 20);
        assert!(admission.admit(sort).now_or_never().is_none());
        let refused = admission.admit(sort).await.unwrap_err();
        assert_eq!(refused.sqlstate, "53200");
        // A statement that buffers nothing is not held up.
        let scan = MemoryNeed { buffers_rows: false, ..sort };
        admission.admit(scan).now_or_never().unwrap().unwrap();
        let file = MemoryNeed { scan_bytes: 200 << 20, ..scan };
        assert!(admission.admit(file).await.unwrap_err().message.contains("209 MB"));
        drop(first);
        assert_eq!(admission.pool.reserved(), 0);
        admission.admit(sort).await.unwrap();
    }

    #[test]
    fn chunk_sizes_are_bounded() {
        let small = admission(128 << 20);
        assert_eq!(small.chunk_bytes_max(1 << 20, 8), 1 << 20);
        assert_eq!(small.chunk_bytes_max(u64::from(u32::MAX), 8), 1 << 20);
        assert_eq!(admission(16 << 30).chunk_bytes_max(u64::from(u32::MAX), 8), 16 << 20);
        assert_eq!(admission(1 << 20).chunk_bytes_max(1 << 20, 8), 64 << 10);
    }
}
