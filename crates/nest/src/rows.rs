//! Rows in the order of some columns, sorted on disk if they must be.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_format::arrow::{
    batch_from_arrow, batch_to_arrow, schema_from_arrow, with_new_dictionaries,
};
use dray_sort::{Cancel, FixedBudget, Options, OrderBy, Sorter};

use crate::error::{Error, Result};

/// Larger batches are split: a run of a sort holds whole batches.
const BATCH_ROWS: usize = 16 << 10;

/// The time between two calls of what watches a sort.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Batches of rows.
pub(crate) type Rows<'a> = Box<dyn RecordBatchReader + Send + 'a>;

/// How rows are sorted.
#[derive(Debug, Clone)]
pub(crate) struct Sorting {
    /// The memory of each sort.
    pub(crate) memory_bytes: usize,
    pub(crate) spill_folder: PathBuf,
    pub(crate) cancel: Cancel,
}

impl Sorting {
    /// Reads all rows, to be sorted by these columns. `level` names them in errors. `go_on` is
    /// called now and then with the number of rows so far.
    pub(crate) fn read(
        &self,
        rows: Rows<'_>,
        by: &[OrderBy],
        level: &str,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Unsorted> {
        let arrow_schema = Arc::new(with_new_dictionaries(&rows.schema()));
        let schema = schema_from_arrow(&arrow_schema)?;
        let names = || arrow_schema.fields().iter().map(|field| field.name().as_str());
        let by = by.iter().map(|by| by.resolve(names()));
        let by = by.collect::<Result<Vec<_>, String>>();
        let by = by.map_err(|what| Error::Spec(format!("{level}: {what}")))?;
        let options = Options {
            spill_folder: Some(self.spill_folder.clone()),
            cancel: self.cancel.clone(),
            ..Options::new(by, FixedBudget::new(self.memory_bytes))
        };
        let sorter = Sorter::new(schema, options)?;
        let mut writer = sorter.writer();
        let (mut sequence, mut checked) = (0, Instant::now());
        for batch in rows {
            let batch = batch.map_err(|cause| Error::statement(level, cause))?;
            if checked.elapsed() >= CHECK_INTERVAL {
                if !go_on(sorter.progress().rows()) {
                    return Err(dray_sort::Error::Cancelled.into());
                }
                checked = Instant::now();
            }
            for from in (0..batch.num_rows()).step_by(BATCH_ROWS) {
                let slice = batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from));
                writer.append(sequence, &batch_from_arrow(&slice)?)?;
                sequence += 1;
            }
        }
        writer.finish()?;
        Ok(Unsorted { sorter, schema: arrow_schema, cancel: self.cancel.clone() })
    }
}

/// Rows that have been read.
pub(crate) struct Unsorted {
    sorter: Sorter,
    schema: SchemaRef,
    cancel: Cancel,
}

impl Unsorted {
    /// The rows in order. They are sorted in a thread, while this one calls `go_on`.
    pub(crate) fn sorted(self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Rows<'static>> {
        let Self { sorter, schema, cancel } = self;
        let progress = sorter.progress();
        let thread_failed = |what: String| dray_sort::Error::Thread(what);
        let (done, finished) = sync_channel(1);
        let finish = move || {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            // Nobody has left: this function receives the result.
            let _ = done.send(sorter.finish(threads));
        };
        std::thread::Builder::new()
            .spawn(finish)
            .map_err(|error| thread_failed(format!("can't start a thread to sort: {error}")))?;
        let rows = awaited(&finished, &cancel, || go_on(progress.rows()))?;
        Ok(Box::new(Sorted { rows, schema }))
    }
}

/// What a thread sends at its end. This one calls `go_on` first and meanwhile, and cancels the
/// thread's work when that says so.
fn awaited<T>(
    finished: &Receiver<dray_sort::Result<T>>,
    cancel: &Cancel,
    mut go_on: impl FnMut() -> bool,
) -> dray_sort::Result<T> {
    let mut stopped = !go_on();
    if stopped {
        cancel.cancel();
    }
    loop {
        match finished.recv_timeout(CHECK_INTERVAL) {
            // The thread may have been at its end.
            Ok(_) if stopped => return Err(dray_sort::Error::Cancelled),
            Ok(rows) => return rows,
            Err(RecvTimeoutError::Timeout) if !stopped && !go_on() => {
                // The sort ends soon.
                stopped = true;
                cancel.cancel();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let what = "a thread that sorted has ended too early";
                return Err(dray_sort::Error::Thread(what.to_owned()));
            }
        }
    }
}

struct Sorted {
    rows: dray_sort::Sorted,
    schema: SchemaRef,
}

impl Iterator for Sorted {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.rows.next()?.map_err(Error::from);
        Some(batch.and_then(|batch| Ok(batch_to_arrow(batch, &self.schema)?)).map_err(Into::into))
    }
}

impl RecordBatchReader for Sorted {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sort_that_ends_while_it_is_stopped_is_cancelled() {
        let (done, finished) = sync_channel(1);
        let cancel = Cancel::default();
        let ended = awaited(&finished, &cancel, || {
            // It ends well before it hears of the cancel.
            done.send(Ok(7)).unwrap();
            false
        });
        assert!(matches!(ended, Err(dray_sort::Error::Cancelled)), "{ended:?}");
    }

    #[test]
    fn a_sort_that_may_go_on_ends_as_it_ends() {
        let (done, finished) = sync_channel(1);
        let ended = awaited(&finished, &Cancel::default(), || done.send(Ok(7)).is_ok());
        assert_eq!(ended.unwrap(), 7);
    }
}
