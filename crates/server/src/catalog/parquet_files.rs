//! Parquet files as the engine may read them: without what their footers say that may be wrong, as
//! the engine believes all of it.
//!
//! Left out, before anything of a file is planned or read:
//!
//! - `sorting_columns`, which the library takes from the first row group for the whole file.
//! - Bounds (least and greatest values) of floating-point columns. Writers leave NaN out, and write
//!   0.0 for -0.0; to the engine, NaN is greater than all numbers, and -0.0 less than 0.0.
//! - Bounds in another order than the engine's: those of types without a defined order, and the
//!   deprecated fields `min` and `max`, whose writers compared bytes and unsigned integers as if
//!   they were signed.
//! - All statistics of a column chunk whose number of NULLs is missing or impossible. The library
//!   takes a missing one for zero.
//!
//! Columns without bounds have no column index and no Bloom filter, either: `x = 0.0` is true of
//! -0.0, which has other bytes.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::HashMap;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::{
    DefaultParquetFileReaderFactory, ObjectStoreFetch,
};
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{
    CachedFileMetadataEntry, FileMetadata, FileMetadataCache,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{ColumnOrder, LogicalType, SortOrder, Type as Stored};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use datafusion::parquet::file::statistics::Statistics;
use datafusion::parquet::schema::types::ColumnDescriptor;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::future::BoxFuture;

/// Reads files and their footers. Footers are kept in the session's cache.
#[derive(Debug, Clone)]
pub(crate) struct ParquetFiles {
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
}

/// A footer in the cache. A type of its own: the library's has all statistics.
struct Footer(Arc<ParquetMetaData>);

impl FileMetadata for Footer {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        self.0.memory_size()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

impl ParquetFiles {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, runtime: &RuntimeEnv) -> Self {
        Self { store, cache: runtime.cache_manager.get_file_metadata_cache() }
    }

    /// The footer and the page index of a file, without what is not to be relied on.
    pub(crate) async fn footer(&self, object: &ObjectMeta) -> Result<Arc<ParquetMetaData>> {
        if let Some(entry) = self.cache.get(&object.location)
            && entry.is_valid_for(object)
            && let Some(Footer(known)) = entry.file_metadata.as_any().downcast_ref::<Footer>()
        {
            return Ok(Arc::clone(known));
        }
        let footer = DFParquetMetadata::new(self.store.as_ref(), object)
            .with_page_index_policy(Some(PageIndexPolicy::Skip))
            .fetch_metadata()
            .await?;
        let footer = reliable(Arc::unwrap_or_clone(footer))?;
        let mut reader = ParquetMetaDataReader::new_with_metadata(footer)
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.load_page_index(ObjectStoreFetch::new(self.store.as_ref(), object)).await?;
        let footer = Arc::new(reader.finish()?);
        let entry = Arc::new(Footer(Arc::clone(&footer)));
        self.cache.put(&object.location, CachedFileMetadataEntry::new(object.clone(), entry));
        Ok(footer)
    }
}

/// The footer without what is not to be relied on.
fn reliable(footer: ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    let orders = footer.file_metadata().column_orders().cloned();
    let mut builder = footer.into_builder();
    for group in builder.take_row_groups() {
        let mut group = group.into_builder().set_sorting_columns(None);
        for (leaf, chunk) in group.take_columns().into_iter().enumerate() {
            let order = orders.as_ref().and_then(|orders| orders.get(leaf));
            group = group.add_column_metadata(reliable_chunk(chunk, order)?);
        }
        builder = builder.add_row_group(group.build()?);
    }
    Ok(builder.build())
}

fn reliable_chunk(
    chunk: ColumnChunkMetaData,
    order: Option<&ColumnOrder>,
) -> ParquetResult<ColumnChunkMetaData> {
    let order = engine_order(chunk.column_descr(), order);
    let statistics = chunk.statistics().filter(|known| counts_nulls(&chunk, known)).map(|known| {
        let is_signed_integer = matches!(chunk.column_type(), Stored::INT32 | Stored::INT64)
            && order == SortOrder::SIGNED;
        let has_order = match known.is_min_max_deprecated() {
            true => is_signed_integer,
            false => order != SortOrder::UNDEFINED,
        };
        if has_order { known.clone() } else { without_bounds(known) }
    });
    let mut builder = chunk.into_builder().clear_statistics();
    if let Some(statistics) = statistics {
        builder = builder.set_statistics(statistics);
    }
    if order == SortOrder::UNDEFINED {
        builder = builder.set_column_index_offset(None).set_column_index_length(None);
        builder = builder.set_bloom_filter_offset(None).set_bloom_filter_length(None);
    }
    builder.build()
}

/// The order of a column's bounds, if it is the engine's order of the values. UNDEFINED means that
/// no bounds are to be relied on. Files that name no order mean that of the type.
fn engine_order(column: &ColumnDescriptor, order: Option<&ColumnOrder>) -> SortOrder {
    let (stored, logical) = (column.physical_type(), column.logical_type_ref());
    let is_float = matches!(stored, Stored::FLOAT | Stored::DOUBLE)
        || matches!(logical, Some(LogicalType::Float16));
    match order {
        None | Some(ColumnOrder::TYPE_DEFINED_ORDER(_)) if !is_float => {
            ColumnOrder::sort_order_for_type(logical, column.converted_type(), stored)
        }
        _ => SortOrder::UNDEFINED,
    }
}

/// Whether a column chunk's number of NULLs is known and possible.
fn counts_nulls(chunk: &ColumnChunkMetaData, statistics: &Statistics) -> bool {
    let nulls_max = match chunk.column_descr().max_def_level() {
        0 => 0,
        _ => u64::try_from(chunk.num_values()).unwrap_or(0),
    };
    match statistics.null_count_opt() {
        Some(nulls) => nulls <= nulls_max,
        None => nulls_max == 0,
    }
}

fn without_bounds(statistics: &Statistics) -> Statistics {
    let (distinct, nulls) = (statistics.distinct_count_opt(), statistics.null_count_opt());
    match statistics {
        Statistics::Boolean(_) => Statistics::boolean(None, None, distinct, nulls, false),
        Statistics::Int32(_) => Statistics::int32(None, None, distinct, nulls, false),
        Statistics::Int64(_) => Statistics::int64(None, None, distinct, nulls, false),
        Statistics::Int96(_) => Statistics::int96(None, None, distinct, nulls, false),
        Statistics::Float(_) => Statistics::float(None, None, distinct, nulls, false),
        Statistics::Double(_) => Statistics::double(None, None, distinct, nulls, false),
        Statistics::ByteArray(_) => Statistics::byte_array(None, None, distinct, nulls, false),
        Statistics::FixedLenByteArray(_) => {
            Statistics::fixed_len_byte_array(None, None, distinct, nulls, false)
        }
    }
}

/// Whether the bounds of all values of a column are known. The library takes those of the row
/// groups that have them for those of the file.
pub(super) fn has_bounds(footer: &ParquetMetaData, column: &str) -> bool {
    let columns = footer.file_metadata().schema_descr().columns();
    let Some(leaf) = columns.iter().position(|leaf| leaf.path().parts() == [column]) else {
        return false;
    };
    let mut chunks = footer.row_groups().iter().filter_map(|group| group.columns().get(leaf));
    chunks.all(|chunk| match chunk.statistics() {
        Some(known) if known.min_bytes_opt().is_some() && known.max_bytes_opt().is_some() => true,
        Some(known) => known.null_count_opt() == u64::try_from(chunk.num_values()).ok(),
        None => chunk.num_values() == 0,
    })
}

impl ParquetFileReaderFactory for ParquetFiles {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let object = file.object_meta.clone();
        let files = DefaultParquetFileReaderFactory::new(Arc::clone(&self.store));
        let file = files.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(ParquetFile { files: self.clone(), object, file }))
    }
}

/// A file that is being read.
struct ParquetFile {
    files: ParquetFiles,
    object: ObjectMeta,
    file: Box<dyn AsyncFileReader + Send>,
}

impl AsyncFileReader for ParquetFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.file.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.file.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        Box::pin(async move {
            let footer = self.files.footer(&self.object).await;
            footer.map_err(|cause| ParquetError::External(Box::new(cause)))
        })
    }
}
