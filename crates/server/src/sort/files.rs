//! Sorts files: `dray sort`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use dray_format::arrow::without_order;
use dray_sort::{Distinct, OrderBy, SortColumn};
use dray_wire::ErrorKind;
use futures::StreamExt;
use futures::future::BoxFuture;

use super::{ExternalSortExec, SortRequest, decimals, footprint};
use crate::arrow_batch_size::batch_bytes_max;
use crate::catalog::{self, CatalogError, CatalogOptions, TableSpec};
use crate::engine::execution_error;
use crate::files::check_columns;
use crate::wide_keys::wide_columns;

/// The least memory for the sort itself, if the total is not less.
pub const SORT_BYTES_MIN: usize = 16 << 20;

/// What to sort, and how.
#[derive(Debug, Clone)]
pub struct FileSort {
    /// Files, or folders of files of one kind. All must have the same columns.
    pub inputs: Vec<PathBuf>,
    /// The columns to sort by, most significant first. If empty, all columns.
    pub by: Vec<OrderBy>,
    /// Which rows count as duplicates and are dropped.
    pub distinct: Distinct,
    /// Maximum rows to return; None is unlimited.
    pub limit: Option<u64>,
    /// Memory for reading, sorting and the consumer of the rows. Sorting gets at least
    /// [`SORT_BYTES_MIN`] of it.
    pub memory_bytes: usize,
    /// The part of `memory_bytes` that the consumer of the rows needs.
    pub sink_bytes: usize,
    /// An existing folder to spill to; None is the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Threads that read and sort (at least 1).
    pub threads: usize,
    /// Whether CSV files lack a header line.
    pub csv_no_header: bool,
    /// Whether batches may have decimals in 4 or 8 bytes where the schema has them in 16. They are
    /// sorted so in any case; [`widen_array`](super::widen_array) makes them 16.
    pub narrow_decimals: bool,
}

/// Why files can't be sorted.
#[derive(Debug)]
pub enum SortError {
    /// The request can't be fulfilled with these files and columns.
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

/// A running sort, whose result is read batch by batch.
pub struct SortedFiles {
    sort: Arc<ExternalSortExec>,
    schema: SchemaRef,
    narrow_decimals: bool,
    batches: SendableRecordBatchStream,
}

impl FileSort {
    /// Starts the sort. Dropping the returned value cancels it.
    ///
    /// # Errors
    /// If a file can't be read, the files have different columns, or a column to sort by doesn't
    /// exist.
    pub fn start(&self) -> BoxFuture<'_, Result<SortedFiles, SortError>> {
        Box::pin(self.open())
    }

    async fn open(&self) -> Result<SortedFiles, SortError> {
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
            let mut frame = context.table(name(number)).await?;
            if self.inputs.len() > 1
                && let Some(columns) = wide_columns(frame.schema())?
            {
                frame = frame.select(columns)?;
            }
            all = Some(match (all, self.inputs.first()) {
                (Some(all), Some(first)) => {
                    let (columns, others) = (all.schema().as_arrow(), frame.schema().as_arrow());
                    check_columns((first, columns), (path, others), "sort")
                        .map_err(SortError::Usage)?;
                    all.union(frame)?
                }
                _ => frame,
            });
        }
        let Some(all) = all else {
            return Err(SortError::Usage("name a file or folder to sort".to_owned()));
        };
        let mut input = all.create_physical_plan().await?;
        // A sort makes new dictionaries.
        let schema = Arc::new(without_order(&input.schema()));
        let ordering = self.ordering(&schema)?;
        let runtime = context.runtime_env();
        if let Some(narrow) = decimals::narrow(&input, &runtime).await? {
            input = narrow;
        }
        let partition_bytes = footprint::partition_bytes(&input, &runtime).await?;
        if let Some((bytes, path)) = batch_bytes_max(&input)
            && bytes > self.memory_bytes as u64 / 2
        {
            let what = format!(
                "a record batch of {} takes {bytes} bytes, too many for --memory {}: use {} or \
                 more, or write the file in smaller batches",
                path.display(),
                self.memory_bytes,
                2 * bytes
            );
            return Err(SortError::Usage(what));
        }
        let partition_bytes = usize::try_from(partition_bytes).unwrap_or(usize::MAX).max(1);
        let partitions = (self.memory_bytes / 2 / partition_bytes).clamp(1, self.threads.max(1));
        // Reading and the consumer follow each other, so they share a part of the memory.
        let other_bytes = self
            .sink_bytes
            .max(partition_bytes.saturating_mul(partitions))
            .min(self.memory_bytes / 2);
        let sort_bytes =
            (self.memory_bytes - other_bytes).max(SORT_BYTES_MIN.min(self.memory_bytes));
        let request = SortRequest {
            distinct: self.distinct,
            limit: self.limit,
            partitions_at_a_time: Some(partitions),
        };
        let sort = Arc::new(ExternalSortExec::try_new(ordering, input)?.with_request(request));
        let mut config = context.copied_config();
        // Without work stealing each partition reads its own range of a file, so that the sequence
        // numbers of batches follow the order of the rows.
        config.options_mut().execution.enable_file_stream_work_stealing = false;
        let pool = Arc::new(GreedyMemoryPool::new(sort_bytes));
        let runtime =
            RuntimeEnvBuilder::from_runtime_env(&runtime).with_memory_pool(pool).build_arc()?;
        let reading = SessionContext::new_with_config_rt(config, runtime);
        let batches = sort.execute(0, SessionContext::task_ctx(&reading))?;
        Ok(SortedFiles { sort, schema, narrow_decimals: self.narrow_decimals, batches })
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

impl SortedFiles {
    /// The columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Rows read so far.
    pub fn rows_read(&self) -> u64 {
        self.sort.rows_read()
    }

    /// Bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        let spilled = self.sort.metrics().and_then(|metrics| metrics.spilled_bytes());
        spilled.unwrap_or(0) as u64
    }

    /// The next batch; None at the end.
    ///
    /// # Errors
    /// If reading or sorting fails.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SortError> {
        Ok(match self.batches.next().await.transpose()? {
            Some(batch) if !self.narrow_decimals => {
                Some(decimals::widen(&batch, &self.schema).map_err(DataFusionError::from)?)
            }
            batch => batch,
        })
    }
}
