//! The rows of files, one file after the other: `dray load`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;

use crate::catalog::{self, CatalogError, CatalogOptions, TableSpec};
use crate::engine::execution_error;

/// Why files can't be read.
#[derive(Debug)]
pub enum ReadError {
    /// A file is missing, is none that can be read, or has other columns than the first.
    Usage(String),
    /// Reading failed.
    Failed(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Failed(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<CatalogError> for ReadError {
    fn from(error: CatalogError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<DataFusionError> for ReadError {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(execution_error(error).message)
    }
}

/// The rows of files in their order.
pub struct FileRows {
    schema: SchemaRef,
    /// The scan of each file or folder, and its number of partitions.
    scans: Vec<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)>,
    scan: usize,
    partition: usize,
    batches: Option<SendableRecordBatchStream>,
}

impl FileRows {
    /// Opens Parquet, Arrow, CSV and NDJSON files, or folders of files of one kind. All must have
    /// the same columns.
    ///
    /// # Errors
    /// When one can't be read, or has other columns.
    pub async fn open(inputs: &[PathBuf], csv_no_header: bool) -> Result<Self, ReadError> {
        let name = |number: usize| format!("input_{number}");
        let table = |(number, path): (usize, &PathBuf)| TableSpec {
            name: Some(name(number)),
            path: path.clone(),
        };
        let options = CatalogOptions {
            tables: inputs.iter().enumerate().map(table).collect(),
            tpch_scale: None,
            // One partition reads the files of a folder one after the other.
            threads: 1,
            csv_no_header,
            ..CatalogOptions::default()
        };
        let context = catalog::open(&options).await?;
        let mut scans = Vec::with_capacity(inputs.len());
        let mut first: Option<SchemaRef> = None;
        for (number, path) in inputs.iter().enumerate() {
            let frame = context.table(name(number)).await?;
            let task = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await?;
            let schema = plan.schema();
            match (&first, inputs.first()) {
                (Some(first), Some(other)) => {
                    check_columns((other, first), (path, &schema), "load")
                        .map_err(ReadError::Usage)?
                }
                _ => first = Some(schema),
            }
            scans.push((plan, task));
        }
        let Some(schema) = first else {
            return Err(ReadError::Usage("name a file or folder to load".to_owned()));
        };
        Ok(Self { schema, scans, scan: 0, partition: 0, batches: None })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch; None at the end.
    ///
    /// # Errors
    /// When reading fails.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        loop {
            if let Some(batches) = &mut self.batches {
                if let Some(batch) = batches.next().await.transpose()? {
                    return Ok(Some(batch));
                }
                self.batches = None;
            }
            let Some((plan, task)) = self.scans.get(self.scan) else { return Ok(None) };
            if self.partition >= plan.properties().output_partitioning().partition_count() {
                (self.scan, self.partition) = (self.scan + 1, 0);
                continue;
            }
            self.batches = Some(plan.execute(self.partition, task.clone())?);
            self.partition += 1;
        }
    }
}

/// Fails if two inputs of a command have other columns. `verb` is what it does with them.
pub(crate) fn check_columns(
    (first, of_first): (&Path, &Schema),
    (second, of_second): (&Path, &Schema),
    verb: &str,
) -> Result<(), String> {
    let names = |schema: &Schema| {
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    let (first, second) = (first.display(), second.display());
    if names(of_first) != names(of_second) {
        return Err(format!("{second} has other columns than {first}; {verb} them separately"));
    }
    let mut pairs = of_first.fields().iter().zip(of_second.fields());
    match pairs.find(|(a, b)| a.data_type() != b.data_type()) {
        None => Ok(()),
        Some((a, b)) => Err(format!(
            "column '{}' is {} in {first} and {} in {second}; put CSV or JSON files into one \
             folder, where types fit all of them, or {verb} the files separately",
            a.name(),
            a.data_type(),
            b.data_type()
        )),
    }
}
