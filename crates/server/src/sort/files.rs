//! Files, sorted: what `dray sort` does.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use dray_sort::{Distinct, OrderBy, SortColumn};
use dray_wire::ErrorKind;
use futures::StreamExt;

use super::{ExternalSortExec, Terms, footprint};
use crate::arrow_files::batch_bytes_max;
use crate::catalog::{self, CatalogError, CatalogOptions, TableSpec};
use crate::engine::execution_error;

/// What a sort of files is left for sorting, if it has so much at all.
pub const SORT_BYTES_MIN: usize = 16 << 20;

/// What to sort, and how.
#[derive(Debug, Clone)]
pub struct FileSort {
    /// Files, and folders of files of one kind. All have the same columns.
    pub inputs: Vec<PathBuf>,
    /// The columns to sort by, the first of which decides first; all of the files' if there are
    /// none.
    pub by: Vec<OrderBy>,
    /// Which rows are dropped.
    pub distinct: Distinct,
    /// So many rows are wanted.
    pub limit: Option<u64>,
    /// The memory that reading, sorting and handing on may take; sorting gets [`SORT_BYTES_MIN`] of
    /// it, however little is left.
    pub memory_bytes: usize,
    /// How much of it whoever takes the sorted rows needs.
    pub sink_bytes: usize,
    /// An existing folder for what does not fit; `None` is the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Threads that read and sort (at least 1).
    pub threads: usize,
    /// CSV files have no line of names at their beginning.
    pub csv_no_header: bool,
}

/// Why files can't be sorted.
#[derive(Debug)]
pub enum SortError {
    /// The files, or the columns, are not such that this can be done.
    Usage(String),
    /// Reading or sorting failed.
    Failed(String),
}

impl fmt::Display for SortError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Failed(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for SortError {}

impl From<CatalogError> for SortError {
    fn from(error: CatalogError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<DataFusionError> for SortError {
    fn from(error: DataFusionError) -> Self {
        let error = execution_error(error);
        let hint = match error.kind {
            ErrorKind::Resources => "raise --memory, or name a larger --spill folder",
            _ => &error.hint,
        };
        Self::Failed(if hint.is_empty() {
            error.message
        } else {
            format!("{}; {hint}", error.message)
        })
    }
}

/// Sorted rows.
pub struct SortedFiles {
    sort: Arc<ExternalSortExec>,
    batches: SendableRecordBatchStream,
}

impl FileSort {
    /// Starts to sort. Dropping what is returned stops it.
    ///
    /// # Errors
    /// When a file can't be read, files have different columns, or there is no such column to sort
    /// by.
    pub async fn start(&self) -> Result<SortedFiles, SortError> {
        let name = |number: usize| format!("input_{number}");
        let table = |(number, path): (usize, &PathBuf)| TableSpec {
            name: Some(name(number)),
            path: path.clone(),
        };
        let options = CatalogOptions {
            tables: self.inputs.iter().enumerate().map(table).collect(),
            tpch_scale: None,
            in_memory: false,
            memory_bytes: Some(self.memory_bytes),
            spill_dir: self.spill_dir.clone(),
            threads: self.threads,
            csv_no_header: self.csv_no_header,
            ..CatalogOptions::default()
        };
        let context = catalog::open(&options).await?;
        let mut all: Option<DataFrame> = None;
        for (number, path) in self.inputs.iter().enumerate() {
            let frame = context.table(name(number)).await?;
            all = Some(match all {
                None => frame,
                Some(all) if columns(&all) == columns(&frame) => all.union(frame)?,
                Some(_) => {
                    let first = self
                        .inputs
                        .first()
                        .map(|path| path.display().to_string())
                        .unwrap_or_default();
                    let what = format!(
                        "{} has other columns than {first}; sort them apart",
                        path.display()
                    );
                    return Err(SortError::Usage(what));
                }
            });
        }
        let Some(all) = all else {
            return Err(SortError::Usage("name a file or folder to sort".to_owned()));
        };
        let input = all.create_physical_plan().await?;
        let ordering = self.ordering(&input.schema())?;
        let runtime = context.runtime_env();
        let of_partition = footprint::of_partition(&input, &runtime).await?;
        // Files that can't be looked at are not read either, and that says why.
        if let Ok(Some((bytes, path))) = batch_bytes_max(&input)
            && bytes > self.memory_bytes as u64 / 2
        {
            let what = format!(
                "a record batch of {} takes {bytes} bytes, for which there is no room in --memory {}: give {} or more, \
                 or write the file in smaller batches",
                path.display(),
                self.memory_bytes,
                2 * bytes
            );
            return Err(SortError::Usage(what));
        }
        let of_partition = usize::try_from(of_partition).unwrap_or(usize::MAX).max(1);
        let at_once = (self.memory_bytes / 2 / of_partition).clamp(1, self.threads.max(1));
        let beside =
            self.sink_bytes.max(of_partition.saturating_mul(at_once)).min(self.memory_bytes / 2);
        let sort_bytes = (self.memory_bytes - beside).max(SORT_BYTES_MIN.min(self.memory_bytes));
        let terms = Terms { distinct: self.distinct, limit: self.limit, at_once: Some(at_once) };
        let sort = Arc::new(ExternalSortExec::of(ordering, input)?.on(terms));
        let mut config = context.copied_config();
        // Each thread reads its own part of a file, and leaves the others theirs: batches are
        // numbered in the order of the rows.
        config.options_mut().execution.enable_file_stream_work_stealing = false;
        let pool = Arc::new(GreedyMemoryPool::new(sort_bytes));
        let runtime =
            RuntimeEnvBuilder::from_runtime_env(&runtime).with_memory_pool(pool).build_arc()?;
        let reading = SessionContext::new_with_config_rt(config, runtime);
        let batches = sort.execute(0, SessionContext::task_ctx(&reading))?;
        Ok(SortedFiles { sort, batches })
    }

    fn ordering(&self, schema: &SchemaRef) -> Result<LexOrdering, SortError> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let by = self
            .by
            .iter()
            .map(|by| by.resolve(names()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(SortError::Usage)?;
        let all = (0..schema.fields().len()).map(|column| SortColumn {
            column,
            descending: false,
            nulls_first: false,
        });
        let by = if by.is_empty() { all.collect() } else { by };
        let expression = |SortColumn { column, descending, nulls_first }| {
            let options = arrow::compute::SortOptions { descending, nulls_first };
            PhysicalSortExpr::new(
                Arc::new(Column::new(schema.field(column).name(), column)),
                options,
            )
        };
        let ordering = LexOrdering::new(by.into_iter().map(expression));
        ordering.ok_or_else(|| SortError::Usage("the files have no columns".to_owned()))
    }
}

/// Names and types: what files must have in common.
fn columns(frame: &DataFrame) -> Vec<(String, arrow::datatypes::DataType)> {
    let column = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    frame.schema().fields().iter().map(column).collect()
}

impl SortedFiles {
    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.sort.schema()
    }

    /// How many rows have been taken in so far.
    pub fn rows_read(&self) -> u64 {
        self.sort.rows_taken()
    }

    /// How many bytes were written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        let spilled = self.sort.metrics().and_then(|metrics| metrics.spilled_bytes());
        spilled.unwrap_or(0) as u64
    }

    /// The next rows; none after the last ones.
    ///
    /// # Errors
    /// When reading or sorting fails.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SortError> {
        Ok(self.batches.next().await.transpose()?)
    }
}
