//! The threads of all stores. Callers compute on threads that must not wait for a network, and some
//! have no runtime.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::{StoreError, StoreErrorKind};

/// Threads for the I/O of all stores: requests, TLS, the copies of what comes.
const THREADS: usize = 2;

/// The runtime, which starts with the first request.
pub(crate) fn handle() -> Result<&'static Handle, StoreError> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("dray-store").enable_all();
        builder.build().map_err(|cause: io::Error| cause.to_string())
    });
    runtime.as_ref().map(Runtime::handle).map_err(|cause| {
        StoreError::new(StoreErrorKind::Other, format!("can't start a thread: {cause}"))
    })
}

/// Stops a task when it is dropped.
struct Abort<T>(JoinHandle<T>);

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `work` on the stores' threads. Dropping the future stops it.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let mut task = Abort(handle()?.spawn(work));
    (&mut task.0)
        .await
        .map_err(|_| StoreError::new(StoreErrorKind::Other, "reading it was stopped"))?
}

/// Runs `work` on the stores' threads, and blocks this one until it has ended.
pub(crate) fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let (done, result) = sync_channel(1);
    handle()?.spawn(async move {
        // This fails if the caller is gone.
        let _ = done.send(work.await);
    });
    let stopped = |_| StoreError::new(StoreErrorKind::Other, "the request was stopped");
    result.recv().map_err(stopped)?
}
