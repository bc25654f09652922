//! Decimals in byte arrays of 4 or 8 bytes, which the library reads as integers.
//!
//! Pages have such byte arrays as they have integers of as many bytes, except for the order of a
//! value's bytes. The library copies byte arrays one by one, and integers all at once:
//!
//! ```text
//!   page: 00 00 01 02 │ 00 00 00 07 ──library──▶ 0x0201_0000, 0x0700_0000 ──▶ 258, 7
//! ```
//!
//! So it gets metadata that calls the columns integers, and [`SwapBytesExec`] swaps the bytes of
//! their values.

use std::fmt;
use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type};
use arrow::error::ArrowError;
use bytes::Bytes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{Encoding, Type as Stored};
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use futures::future::{BoxFuture, ready};

use crate::catalog::ParquetFiles;

/// Whether a column has byte arrays of this many bytes, in pages that integers could have.
pub(super) fn can_be_integers(metadata: &ParquetMetaData, leaf: usize, bytes: usize) -> bool {
    let column = metadata.file_metadata().schema_descr().column(leaf);
    column.physical_type() == Stored::FIXED_LEN_BYTE_ARRAY
        && usize::try_from(column.type_length()) == Ok(bytes)
        && metadata.row_groups().iter().all(|group| has_such_pages(group.column(leaf)))
}

#[expect(deprecated, reason = "some writers list an encoding of levels that has since gone")]
fn has_such_pages(chunk: &ColumnChunkMetaData) -> bool {
    chunk.file_path().is_none()
        && chunk.encodings().all(|encoding| {
            matches!(
                encoding,
                Encoding::PLAIN
                    | Encoding::PLAIN_DICTIONARY
                    | Encoding::RLE_DICTIONARY
                    | Encoding::BYTE_STREAM_SPLIT
                    // Definition levels.
                    | Encoding::RLE
                    | Encoding::BIT_PACKED
            )
        })
}

/// The metadata of the same file, with integers in place of byte arrays in these columns. It is
/// enough to read all rows, and has no statistics.
pub(super) fn with_integers(
    metadata: &ParquetMetaData,
    leaves: &[usize],
) -> ParquetResult<ParquetMetaData> {
    let file = metadata.file_metadata();
    let before = file.schema_descr();
    let mut fields = before.root_schema().get_fields().to_vec();
    for leaf in leaves {
        if let Some(field) = fields.get_mut(before.get_column_root_idx(*leaf)) {
            *field = Arc::new(integer(before.column(*leaf).self_type())?);
        }
    }
    let root = Type::group_type_builder(before.name()).with_fields(fields).build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let groups = metadata.row_groups().iter().map(|group| with_schema(group, &schema));
    let groups = groups.collect::<ParquetResult<_>>()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        schema,
        None,
    );
    Ok(ParquetMetaData::new(file, groups))
}

/// The type of integers in place of decimals in byte arrays.
fn integer(decimal: &Type) -> ParquetResult<Type> {
    let info = decimal.get_basic_info();
    let stored = match decimal {
        Type::PrimitiveType { type_length: ..=4, .. } => Stored::INT32,
        _ => Stored::INT64,
    };
    Type::primitive_type_builder(decimal.name(), stored)
        .with_repetition(info.repetition())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_precision(decimal.get_precision())
        .with_scale(decimal.get_scale())
        .with_id(info.has_id().then(|| info.id()))
        .build()
}

fn with_schema(
    group: &RowGroupMetaData,
    schema: &SchemaDescPtr,
) -> ParquetResult<RowGroupMetaData> {
    let chunk = |(leaf, chunk): (usize, &ColumnChunkMetaData)| {
        ColumnChunkMetaData::builder(schema.column(leaf))
            .set_encodings_mask(*chunk.encodings_mask())
            .set_num_values(chunk.num_values())
            .set_compression_codec(chunk.compression_codec())
            .set_total_compressed_size(chunk.compressed_size())
            .set_total_uncompressed_size(chunk.uncompressed_size())
            .set_data_page_offset(chunk.data_page_offset())
            .set_index_page_offset(chunk.index_page_offset())
            .set_dictionary_page_offset(chunk.dictionary_page_offset())
            .build()
    };
    let chunks = group.columns().iter().enumerate().map(chunk).collect::<ParquetResult<_>>()?;
    RowGroupMetaData::builder(schema.clone())
        .set_num_rows(group.num_rows())
        .set_total_byte_size(group.total_byte_size())
        .set_column_metadata(chunks)
        .build()
}

/// Opens files whose metadata is already known.
#[derive(Debug)]
pub(super) struct KnownMetadata {
    pub files: ParquetFiles,
    pub metadata: Vec<(Path, Arc<ParquetMetaData>)>,
}

impl ParquetFileReaderFactory for KnownMetadata {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = &file.object_meta.location;
        let known = self.metadata.iter().find(|(path, _)| path == location);
        let Some((_, metadata)) = known.cloned() else {
            return Err(DataFusionError::Internal(format!("{location} has no metadata")));
        };
        let file = self.files.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(KnownFile { file, metadata }))
    }
}

/// A file whose metadata is already known.
struct KnownFile {
    file: Box<dyn AsyncFileReader + Send>,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for KnownFile {
    fn get_bytes(&mut self, range: std::ops::Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.file.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.file.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        Box::pin(ready(Ok(self.metadata.clone())))
    }
}

/// Swaps the bytes of the values of some columns.
#[derive(Debug)]
pub(super) struct SwapBytesExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Arc<[usize]>,
}

impl SwapBytesExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, columns: Arc<[usize]>) -> Self {
        Self { input, columns }
    }
}

/// The batch with the bytes of values in these columns swapped.
fn swap_columns(batch: RecordBatch, swapped: &[usize]) -> Result<RecordBatch, ArrowError> {
    let (schema, mut columns, _) = batch.into_parts();
    for number in swapped {
        let Some(column) = columns.get_mut(*number) else { continue };
        let array = std::mem::replace(column, Arc::new(arrow::array::NullArray::new(0)));
        *column = match array.data_type() {
            DataType::Decimal32(..) => swap::<Decimal32Type>(array, i32::swap_bytes),
            _ => swap::<Decimal64Type>(array, i64::swap_bytes),
        };
    }
    RecordBatch::try_new(schema, columns)
}

/// The array with other values, in the same memory if nobody else has it.
fn swap<T: ArrowPrimitiveType>(array: ArrayRef, change: fn(T::Native) -> T::Native) -> ArrayRef {
    let data_type = array.data_type().clone();
    let own: PrimitiveArray<T> = array.as_primitive::<T>().clone();
    drop(array);
    let changed = own.unary_mut(change).unwrap_or_else(|shared| shared.unary(change));
    Arc::new(changed.with_data_type(data_type))
}

impl ExecutionPlan for SwapBytesExec {
    fn name(&self) -> &'static str {
        "SwapBytesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => {
                Ok(Arc::new(Self::new(input, self.columns.clone())))
            }
            _ => Err(DataFusionError::Internal("SwapBytesExec has one input".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context)?;
        let columns = self.columns.clone();
        let swapped = batches.map(move |batch| Ok(swap_columns(batch?, &columns)?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), swapped)))
    }
}

impl DisplayAs for SwapBytesExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SwapBytesExec: columns={:?}", self.columns)
    }
}
