//! Reads CSV, JSON and Arrow files for the engine, whose own reader is used for Parquet only.
//!
//! ```text
//!        ┌─▶ decompress ─▶ BudgetReader ─▶ EmptyLines ─▶ CSV ─┐
//!   file ├─▶ decompress, rows ─▶ BudgetReader ─────▶ JSON ────┼─▶ batches ─▶ projection
//!        └─▶ messages ──────────────────────────▶ Arrow ──────┘
//! ```

use std::fmt;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::json;
use datafusion::arrow::json::reader::{ValueIter, infer_json_schema_from_iterator};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};

use super::arrow::{self, IpcFormat, ReadOptions};
use super::csv_types;
use super::empty_lines::EmptyLines;
use super::json_numbers::NumberChecker;
use super::json_values::JsonValues;
use super::served::{CheckedFile, FileError};
use super::store::ServedFiles;
use super::text::{ArrayRows, Budget, BudgetReader, LineRange};

/// Bytes of a file that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Rows of a batch, unless the engine asks for another number.
const BATCH_ROWS: usize = 8192;
/// Batches that are read ahead of an object in a store.
const BATCHES_AHEAD: usize = 2;

/// The format of a table's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    Csv { delimiter: u8, has_header: bool, compression: FileCompressionType },
    Json { is_array: bool, compression: FileCompressionType },
    Arrow(IpcFormat),
}

impl RowKind {
    /// Whether partitions can read ranges of one file in parallel.
    fn supports_ranges(self) -> bool {
        match self {
            // In CSV, a line end may be within quotes.
            Self::Csv { .. } | Self::Arrow(IpcFormat::Stream) => false,
            Self::Json { is_array, compression } => !is_array && !compression.is_compressed(),
            Self::Arrow(IpcFormat::File) => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Csv { .. } => "csv",
            Self::Json { .. } => "json",
            Self::Arrow(_) => "arrow",
        }
    }
}

/// Metadata of JSON columns with integers that a float can't represent.
pub(super) const LARGE_INTEGERS: &str = "large integers";

/// Infers the columns of a JSON file from all of its rows, and counts the rows. A column is NULL in
/// rows that lack it, and text if some rows have text, and others numbers or booleans. Fails on
/// numbers that would lose digits, and on arrays or objects beside other values.
pub(super) fn infer_json(
    file: CheckedFile,
    is_array: bool,
    compression: FileCompressionType,
    budget: &Budget,
) -> Result<(Schema, u64)> {
    let mut count = 0;
    let mut values = JsonValues::default();
    let mut refused = None;
    let text = Box::new(NumberChecker::new(compression.convert_read(file)?));
    let rows = json_rows(text, is_array, budget.clone());
    let rows = ValueIter::new(BufReader::with_capacity(BUFFER_BYTES, rows), None);
    let rows = rows.map_while(|row| {
        budget.renew();
        count += 1;
        refused = row.as_ref().ok().and_then(|row| values.add(count, row).err());
        refused.is_none().then_some(row)
    });
    let inferred = infer_json_schema_from_iterator(rows);
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    let schema = inferred?;
    values.check(&schema)?;
    let fields = schema.fields().iter().map(|field| match values.has_large(field.name()) {
        true => field
            .as_ref()
            .clone()
            .with_metadata([(LARGE_INTEGERS.to_owned(), String::new())].into()),
        false => field.as_ref().clone(),
    });
    Ok((Schema::new(fields.collect::<Vec<_>>()), count))
}

/// Infers the types of CSV columns from all rows.
pub(super) fn infer_csv(
    file: &dyn Fn() -> Result<CheckedFile>,
    delimiter: u8,
    has_header: bool,
    compression: FileCompressionType,
    budget: &Budget,
) -> Result<csv_types::CsvColumns> {
    let open = || Ok(BudgetReader::new(compression.convert_read(file()?)?, budget.clone()));
    csv_types::infer(&open, delimiter, has_header, &|| budget.renew())
}

fn json_rows(
    rows: Box<dyn Read + Send>,
    is_array: bool,
    budget: Budget,
) -> BudgetReader<Box<dyn Read + Send>> {
    let rows = if is_array { Box::new(ArrayRows::new(rows)) } else { rows };
    BudgetReader::new(rows, budget)
}

/// The format of a table's files, for the engine.
#[derive(Debug, Clone)]
pub(super) struct RowFormat {
    pub(super) kind: RowKind,
    pub(super) files: Arc<ServedFiles>,
    /// Maximum decompressed size of a batch.
    pub(super) batch_bytes_max: u64,
}

#[async_trait]
impl FileFormat for RowFormat {
    fn get_ext(&self) -> String {
        String::new()
    }

    fn get_ext_with_compression(&self, _: &FileCompressionType) -> Result<String> {
        Ok(String::new())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        _: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        Err(DataFusionError::Internal("columns are inferred before a table is created".to_owned()))
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        _: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(RowSource {
            format: self.clone(),
            batch_rows: BATCH_ROWS,
            projection: SplitProjection::unprojected(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

/// One scan of a table's files.
#[derive(Clone)]
pub(crate) struct RowSource {
    format: RowFormat,
    batch_rows: usize,
    projection: SplitProjection,
    schema: TableSchema,
    metrics: ExecutionPlanMetricsSet,
}

impl RowSource {
    /// The memory that reading a file of this scan takes at a time, and its path or URL; None if it
    /// is no Arrow file.
    pub(crate) fn batch_bytes(&self, location: &Path) -> Option<(u64, PathBuf)> {
        let file = self.format.files.file(location).ok()?;
        Some((file.batch_bytes()?, file.path.clone()))
    }
}

impl FileSource for RowSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = RowOpener {
            format: self.format.clone(),
            batch_rows: self.batch_rows,
            schema: Arc::clone(self.schema.file_schema()),
            columns: self.projection.file_indices.clone(),
        };
        ProjectionOpener::try_new(
            self.projection.clone(),
            Arc::new(opener),
            self.schema.file_schema(),
        )
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows, ..self.clone() })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        self.format.kind.name()
    }

    fn supports_repartitioning(&self) -> bool {
        self.format.kind.supports_ranges()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Opens the files of one scan.
#[derive(Clone)]
struct RowOpener {
    format: RowFormat,
    batch_rows: usize,
    /// All columns of the files.
    schema: SchemaRef,
    /// The indexes of the columns to read.
    columns: Vec<usize>,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl FileOpener for RowOpener {
    fn open(&self, part: PartitionedFile) -> Result<FileOpenFuture> {
        let file = self.format.files.file(&part.object_meta.location)?;
        let range = part
            .range
            .map(|range| Ok::<_, DataFusionError>(offset(range.start)?..offset(range.end)?))
            .transpose()?;
        let opened = file.open().map_err(|error| DataFusionError::External(Box::new(error)));
        let opener = self.clone();
        Ok(async move {
            let file = opened?;
            if file.is_remote() {
                return Ok(elsewhere(move || opener.batches(file, range)));
            }
            let batches = opener.batches(file, range).map_err(unwrap_file_error)?;
            Ok(stream::iter(batches.map(|batch| batch.map_err(unwrap_file_error))).boxed())
        }
        .boxed())
    }
}

/// Reads on a thread that may wait for a network, a batch or two ahead.
fn elsewhere(
    open: impl FnOnce() -> Result<Batches> + Send + 'static,
) -> BoxStream<'static, Result<RecordBatch>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        let batches = open().map_err(unwrap_file_error)?;
        for batch in batches {
            // Nobody waits for the rest after an error, or if the statement has ended.
            if sender.blocking_send(batch.map_err(unwrap_file_error)?).is_err() {
                break;
            }
        }
        Ok(())
    });
    let rest = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|batch| (Ok(batch), receiver))
    });
    // A panic or an error of the reader is not the end of the file.
    let end = stream::once(async move {
        reading.await.map_err(|cause| DataFusionError::ExecutionJoin(Box::new(cause)))?
    });
    rest.chain(end.filter_map(|ended| ready(ended.err().map(Err)))).boxed()
}

impl RowOpener {
    fn batches(&self, file: CheckedFile, range: Option<Range<u64>>) -> Result<Batches> {
        let budget = Budget::new(self.format.batch_bytes_max);
        match self.format.kind {
            RowKind::Csv { delimiter, has_header, compression } => {
                let text = BudgetReader::new(compression.convert_read(file)?, budget.clone());
                let lines = BufReader::with_capacity(BUFFER_BYTES, text);
                let columns = self.schema.fields().len();
                let lines = EmptyLines::new(lines, columns, delimiter, has_header);
                let reader = csv::ReaderBuilder::new(Arc::clone(&self.schema))
                    .with_header(has_header)
                    .with_delimiter(delimiter)
                    .with_batch_size(self.batch_rows)
                    .with_projection(self.columns.clone())
                    .build_buffered(lines)?;
                Ok(Box::new(reader.map(move |batch| {
                    budget.renew();
                    Ok(batch?)
                })))
            }
            RowKind::Json { is_array, compression } => {
                let text: Box<dyn Read + Send> = match range {
                    None => compression.convert_read(file)?,
                    Some(range) => Box::new(LineRange::new(
                        BufReader::with_capacity(BUFFER_BYTES, file),
                        range,
                    )?),
                };
                let rows = json_rows(text, is_array, budget.clone());
                let reader =
                    json::ReaderBuilder::new(Arc::new(self.schema.project(&self.columns)?))
                        .with_batch_size(self.batch_rows)
                        .with_coerce_primitive(true)
                        .build(BufReader::with_capacity(BUFFER_BYTES, rows))?;
                Ok(Box::new(reader.map(move |batch| {
                    budget.renew();
                    Ok(batch?)
                })))
            }
            RowKind::Arrow(format) => {
                let options = ReadOptions {
                    schema: &self.schema,
                    projection: self.columns.clone(),
                    range,
                    decoded_bytes_max: self.format.batch_bytes_max,
                };
                Ok(Box::new(arrow::read(file, format, options)?))
            }
        }
    }
}

fn offset(at: i64) -> Result<u64> {
    u64::try_from(at)
        .map_err(|_| DataFusionError::Internal(format!("a range of a file begins or ends at {at}")))
}

/// Replaces a reader's error about a changed file by the file error that caused it.
fn unwrap_file_error(error: DataFusionError) -> DataFusionError {
    match FileError::source_of(&error) {
        Some(changed) => DataFusionError::External(Box::new(changed.clone())),
        None => error,
    }
}

impl fmt::Debug for RowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSource").field("format", &self.format).finish_non_exhaustive()
    }
}
