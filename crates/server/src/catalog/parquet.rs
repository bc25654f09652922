//! Parquet files as tables.
//!
//! Before a file is served, its footer is checked, since the engine trusts it: the places of its
//! columns, its numbers of rows and of values, and that its columns can have the types of its Arrow
//! schema ([`parquet_types`]). What a footer says of the order and the bounds of rows is no fact in
//! all cases, and is not used then ([`ParquetFiles`]).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::stats::Precision;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::parquet::Int96Coercer;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::Type as PhysicalType;
use datafusion::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use datafusion::physical_plan::ExecutionPlan;

use super::parquet_files::{ParquetFiles, has_bounds};
use super::served::{OversizedColumn, ServedFile};
use super::tables::{Columns, Inferred};
use super::{int96, parquet_types, store};

/// Rows of the engine's batches.
const BATCH_ROWS: u64 = 8192;
/// A file ends with the length of its footer (4 bytes) and "PAR1".
const TAIL_BYTES: u64 = 8;

/// The format of a table's files.
#[derive(Debug)]
pub(super) struct ParquetFormat {
    options: TableParquetOptions,
}

/// The format of a table's files, with timestamps of INT96 in nanoseconds or in microseconds.
pub(super) fn format(state: &SessionState, has_micros: bool) -> ParquetFormat {
    let mut options = state.default_table_options().parquet;
    options.global.coerce_int96 = has_micros.then(|| "us".to_owned());
    ParquetFormat { options }
}

/// The engine's format of Parquet files, but for the footers, which are those of [`ParquetFiles`].
/// Nothing is known of the order of a file's rows.
#[async_trait]
impl FileFormat for ParquetFormat {
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
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let files = ParquetFiles::new(Arc::clone(store), state.runtime_env());
        let mut schemas = Vec::with_capacity(objects.len());
        for object in objects {
            let footer = files.footer(object).await?;
            let file = footer.file_metadata();
            let columns = file.schema_descr();
            let schema = parquet_to_arrow_schema(columns, file.key_value_metadata())?;
            let in_micros = match self.options.global.coerce_int96 {
                Some(_) => Int96Coercer::new(columns, &schema, &TimeUnit::Microsecond).coerce(),
                None => None,
            };
            schemas.push(in_micros.unwrap_or(schema));
        }
        Ok(Arc::new(Schema::try_merge(schemas)?))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let files = ParquetFiles::new(Arc::clone(store), state.runtime_env());
        let footer = files.footer(object).await?;
        let mut known = DFParquetMetadata::statistics_from_parquet_metadata(&footer, &schema)?;
        for (field, column) in schema.fields().iter().zip(&mut known.column_statistics) {
            if !has_bounds(&footer, field.name()) {
                (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
            }
            // Some writers estimate it.
            column.distinct_count = column.distinct_count.to_inexact();
        }
        Ok(known)
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let runtime = state.runtime_env();
        let files = ParquetFiles::new(runtime.object_store(&scan.object_store_url)?, runtime);
        let source = scan.file_source().downcast_ref::<ParquetSource>().cloned();
        let source =
            source.ok_or_else(|| DataFusionError::Internal("a scan of other files".to_owned()))?;
        let source = source.with_parquet_file_reader_factory(Arc::new(files));
        let scan = FileScanConfigBuilder::from(scan).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        let source = ParquetSource::new(schema);
        Arc::new(source.with_table_parquet_options(self.options.clone()))
    }
}

/// Reads the columns and the number of rows of a file.
pub(super) async fn infer(
    state: &SessionState,
    file: &ServedFile,
    batch_bytes_max: u64,
) -> Result<Inferred> {
    let location =
        Path::parse(&file.name).map_err(|cause| DataFusionError::External(Box::new(cause)))?;
    let store = state.runtime_env().object_store(store::file_url(&file.name)?)?;
    let object = store.head(&location).await?;
    check_tail(store.as_ref(), &object).await?;
    let files = ParquetFiles::new(Arc::clone(&store), state.runtime_env());
    let metadata = files.footer(&object).await?;
    let rows = check(&metadata, file.bytes()).map_err(DataFusionError::Execution)?;
    let objects = [object];
    let session = state as &dyn Session;
    let schema = format(state, false).infer_schema(session, &store, &objects).await?;
    parquet_types::check(&metadata, &schema).map_err(DataFusionError::Execution)?;
    let oversized =
        metadata.row_groups().iter().flat_map(|group| oversized(group, &schema, batch_bytes_max));
    file.set_oversized(oversized.collect());
    let int96 = match int96::has_any(&metadata) {
        true => {
            let in_micros = format(state, true).infer_schema(session, &store, &objects).await?;
            Some(int96::look_at(store.as_ref(), &location, &metadata, &schema, in_micros).await?)
        }
        false => None,
    };
    Ok(Inferred { columns: Columns::Typed(schema), rows: Some(rows), int96 })
}

/// Refuses a footer that is longer than its file, which the reader does not notice.
async fn check_tail(store: &dyn ObjectStore, object: &ObjectMeta) -> Result<()> {
    let Some(start) = object.size.checked_sub(TAIL_BYTES) else {
        let what = format!("it has {} bytes, too few for a Parquet file", object.size);
        return Err(DataFusionError::Execution(what));
    };
    let tail = store.get_range(&object.location, start..object.size).await?;
    let Some(footer_bytes) = tail.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else {
        return Err(DataFusionError::Execution("its end can't be read".to_owned()));
    };
    match u64::from(footer_bytes) <= start {
        true => Ok(()),
        false => Err(DataFusionError::Execution(format!(
            "its footer would have {footer_bytes} bytes, and the file has {}: it is cut off, or no \
             Parquet file",
            object.size
        ))),
    }
}

/// The columns of a row group whose average batch is too large: a few kilobytes can decompress to
/// gigabytes.
fn oversized(
    group: &RowGroupMetaData,
    schema: &Schema,
    batch_bytes_max: u64,
) -> Vec<OversizedColumn> {
    let rows = u64::try_from(group.num_rows()).unwrap_or(0);
    let oversized = group.columns().iter().filter_map(|column| {
        let unpacked_bytes = u64::try_from(column.uncompressed_size()).ok()?;
        let batch_bytes =
            u128::from(unpacked_bytes) * u128::from(rows.min(BATCH_ROWS)) / u128::from(rows.max(1));
        let root = column.column_path().parts().first()?;
        // Columns with 32-bit offsets are limited to 2 GiB.
        let has_small_offsets =
            schema.field_with_name(root).is_ok_and(|field| !has_large_offsets(field.data_type()));
        let is_text = column.column_type() == PhysicalType::BYTE_ARRAY;
        let max = if is_text && has_small_offsets {
            batch_bytes_max.min(i32::MAX as u64)
        } else {
            batch_bytes_max
        };
        let (start, bytes) = column.byte_range();
        let range = start..start.checked_add(bytes)?;
        let column = column.column_path().string();
        let is_oversized = batch_bytes > u128::from(max);
        is_oversized.then_some(OversizedColumn { range, column, rows, unpacked_bytes })
    });
    oversized.collect()
}

fn has_large_offsets(data_type: &DataType) -> bool {
    match data_type {
        DataType::LargeUtf8 | DataType::LargeBinary | DataType::Utf8View | DataType::BinaryView => {
            true
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_large_offsets(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_large_offsets(item.data_type()),
        DataType::Dictionary(_, values) => has_large_offsets(values),
        _ => false,
    }
}

/// The number of rows, if the footer and the row groups agree.
fn check(metadata: &ParquetMetaData, file_bytes: u64) -> Result<u64, String> {
    let mut rows = 0u64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let group = check_group(group, file_bytes)
            .map_err(|what| format!("its row group {number} {what}"))?;
        rows = rows
            .checked_add(group)
            .ok_or("its row groups have more rows than 64 bits can count")?;
    }
    let declared = metadata.file_metadata().num_rows();
    match u64::try_from(declared) == Ok(rows) {
        true => Ok(rows),
        false => Err(format!(
            "its footer declares {declared} rows, and its row groups have {rows}; rewrite the file"
        )),
    }
}

fn check_group(group: &RowGroupMetaData, file_bytes: u64) -> Result<u64, String> {
    let rows =
        u64::try_from(group.num_rows()).map_err(|_| format!("has {} rows", group.num_rows()))?;
    for column in group.columns() {
        let name = || column.column_path().string();
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let is_within = column.compressed_size() >= 0
            && end.and_then(|end| u64::try_from(end).ok()) <= Some(file_bytes);
        if start < 0 || end.is_none() || !is_within {
            let bytes = column.compressed_size();
            return Err(format!(
                "has column '{}' at {start}, of {bytes} bytes, beyond the file's {file_bytes}",
                name()
            ));
        }
        // A column without repetition has a value or a NULL for each row.
        let values = column.num_values();
        if column.column_descr().max_rep_level() == 0 && u64::try_from(values) != Ok(rows) {
            return Err(format!(
                "has {rows} rows, and its column '{}' has {values} values; rewrite the file",
                name()
            ));
        }
    }
    Ok(rows)
}
