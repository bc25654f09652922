//! What makes a statement's rows: a plan of the engine, or a source.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use dray_format::Schema;
use dray_wire::{Estimate, ServerError};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use crate::engine::{self, Plan};
use crate::relay::{Begun, Rows};

/// The bytes of a source's batches in memory at a time: one that is read, one that waits, and one
/// that is being encoded.
const SOURCE_BYTES: u64 = 3 * SOURCE_BATCH_BYTES;
/// The usual size of a source's batch.
const SOURCE_BATCH_BYTES: u64 = 8 << 20;

/// What makes a statement's rows.
#[derive(Clone)]
pub(super) enum Work {
    Engine(Plan),
    Source(SourceWork),
}

/// A statement that a source runs.
#[derive(Clone)]
pub(super) struct SourceWork {
    pub(super) schema: Arc<Schema>,
    pub(super) estimate: Estimate,
    path: Option<Arc<str>>,
    /// The source's name, as the only table.
    pub(super) tables: Arc<[String]>,
    /// How many threads encode.
    pub(super) threads: usize,
    rows_read: Arc<AtomicU64>,
    /// None once it runs.
    rows: Arc<Mutex<Option<Rows>>>,
}

impl SourceWork {
    pub(super) fn new(
        name: &str,
        schema: Arc<Schema>,
        begun: Begun,
        threads: usize,
        rows: Rows,
    ) -> Self {
        // No table that is served has such a name.
        let tables = Arc::new([format!("source/{name}")]);
        let rows_read = rows.counter();
        let rows = Arc::new(Mutex::new(Some(rows)));
        let (estimate, path) = (begun.estimate, begun.path.map(Arc::from));
        Self { schema, estimate, path, tables, threads, rows_read, rows }
    }
}

/// Some of a statement's rows.
pub(super) type Stream = BoxStream<'static, Result<RecordBatch, ServerError>>;

impl Work {
    /// The columns of the result.
    pub(super) fn schema(&self) -> &Arc<Schema> {
        match self {
            Self::Engine(plan) => &plan.schema,
            Self::Source(source) => &source.schema,
        }
    }

    /// The expected size of the result.
    pub(super) fn estimate(&self) -> Estimate {
        match self {
            Self::Engine(plan) => plan.estimate,
            Self::Source(source) => source.estimate,
        }
    }

    /// How a source is read, if that is known.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Engine(_) => None,
            Self::Source(source) => source.path.as_deref(),
        }
    }

    /// The names of the tables that it reads.
    pub(super) fn tables(&self) -> &[String] {
        match self {
            Self::Engine(plan) => &plan.tables,
            Self::Source(source) => &source.tables,
        }
    }

    /// Starts it: one stream for each partition. Dropping the streams stops it.
    pub(super) fn execute(&self) -> Result<Vec<Stream>, ServerError> {
        match self {
            Self::Engine(plan) => {
                let streams = plan.execute()?.into_iter();
                Ok(streams.map(|stream| stream.map_err(engine::execution_error).boxed()).collect())
            }
            Self::Source(source) => {
                let rows = source.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
                debug_assert!(rows.is_some(), "a statement runs once");
                Ok(rows.map(Rows::batches).into_iter().collect())
            }
        }
    }

    /// The number of threads that it may use.
    pub(super) fn threads(&self) -> usize {
        match self {
            Self::Engine(plan) => plan.threads(),
            Self::Source(source) => source.threads,
        }
    }

    /// Whether it reads few rows.
    pub(super) fn is_small(&self) -> bool {
        matches!(self, Self::Engine(plan) if plan.is_small())
    }

    /// Whether it has operators that buffer rows, and is not small.
    pub(super) fn buffers_rows(&self) -> bool {
        matches!(self, Self::Engine(plan) if plan.buffers_rows())
    }

    /// The bytes of record batches in memory at a time; 0 if they are small.
    pub(super) fn scan_bytes(&self) -> u64 {
        match self {
            Self::Engine(plan) => plan.scan_bytes(),
            Self::Source(_) => SOURCE_BYTES,
        }
    }

    /// The bytes of the result in memory at a time, if chunks and queues hold at most
    /// `buffer_bytes`.
    pub(super) fn result_bytes_max(&self, buffer_bytes: u64) -> u64 {
        match self {
            Self::Engine(plan) => plan.result_bytes_max(buffer_bytes),
            Self::Source(_) => buffer_bytes,
        }
    }

    /// Rows that it has read so far.
    pub(super) fn rows_read(&self) -> u64 {
        match self {
            Self::Engine(plan) => plan.rows_read(),
            Self::Source(source) => source.rows_read.load(Ordering::Relaxed),
        }
    }
}
