//! Decimals of Parquet files in as many bytes as the files have for them.
//!
//! The engine reads each decimal as an integer of 128 bits, though most files have 32 or 64 of
//! them. Fewer bytes take less memory, and less time to read, to sort and to write.

mod integers;

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Field, FieldRef, Schema, SchemaRef,
};
use arrow::error::ArrowError;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::Type as Stored;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::union::UnionExec;

use self::integers::{KnownMetadata, SwapBytesExec, can_be_integers, with_integers};
use crate::catalog::{ParquetFiles, RowCountExec};

/// The most digits of decimals in 4 and in 8 bytes.
const DIGITS_32: u8 = 9;
const DIGITS_64: u8 = 18;

type Plan = Arc<dyn ExecutionPlan>;

/// The plan with decimals in as few bytes as all of its files have for them. None if there are no
/// such decimals, or if the plan does more than reading Parquet files.
pub(super) async fn narrow(plan: &Plan, runtime: &RuntimeEnv) -> Result<Option<Plan>> {
    let Some(scans) = scans(plan) else { return Ok(None) };
    let mut files: Vec<File> = Vec::new();
    for (config, _) in &scans {
        files.extend(files_of(config, runtime).await?);
    }
    let schema = plan.schema();
    let narrowed = fields(&schema, |field| narrow_field(field, &files));
    if narrowed == schema {
        return Ok(None);
    }
    let swapped = read_as_integers(&mut files, &schema, &narrowed);
    let narrow = narrow_plan(plan, &narrowed, &files, runtime)?;
    let narrow = narrow.filter(|plan| plan.schema().fields() == narrowed.fields());
    Ok(match narrow {
        Some(plan) if !swapped.is_empty() => {
            Some(Arc::new(SwapBytesExec::new(plan, swapped.into())))
        }
        narrow => narrow,
    })
}

/// Makes the files read decimals in byte arrays as integers, where all of them can. Returns these
/// columns, whose bytes are to be swapped.
fn read_as_integers(files: &mut [File], schema: &Schema, narrowed: &Schema) -> Vec<usize> {
    let columns = schema.fields().iter().zip(narrowed.fields()).enumerate();
    let can_be = |file: &File, before: &Field, after: &Field| {
        let leaf = file.leaf(before.name(), before.data_type())?;
        let bytes = after.data_type().primitive_width()?;
        can_be_integers(&file.metadata, leaf, bytes).then_some(leaf)
    };
    let (mut swapped, mut leaves) = (Vec::new(), vec![Vec::new(); files.len()]);
    for (number, (before, after)) in columns {
        if before == after {
            continue;
        }
        let found: Option<Vec<usize>> =
            files.iter().map(|file| can_be(file, before, after)).collect();
        if let Some(found) = found {
            swapped.push(number);
            leaves.iter_mut().zip(found).for_each(|(leaves, leaf)| leaves.push(leaf));
        }
    }
    let of_file = |(file, leaves): (&File, &Vec<usize>)| with_integers(&file.metadata, leaves);
    match files.iter().zip(&leaves).map(of_file).collect::<Result<Vec<_>, _>>() {
        Ok(all) => {
            files.iter_mut().zip(all).for_each(|(file, own)| file.metadata = Arc::new(own));
            swapped
        }
        // The library can't describe a file so, and reads it as it is.
        Err(_) => Vec::new(),
    }
}

/// The scans of Parquet files that make up a plan; None if it does anything else.
fn scans(plan: &Plan) -> Option<Vec<(&FileScanConfig, &ParquetSource)>> {
    if plan.downcast_ref::<UnionExec>().is_some() || plan.downcast_ref::<RowCountExec>().is_some() {
        let scans: Option<Vec<_>> = plan.children().into_iter().map(scans).collect();
        return scans.map(|scans| scans.into_iter().flatten().collect());
    }
    scan(plan).map(|scan| vec![scan])
}

/// The scan of whole Parquet files, with all columns in their order.
fn scan(plan: &Plan) -> Option<(&FileScanConfig, &ParquetSource)> {
    let (config, source) =
        plan.downcast_ref::<DataSourceExec>()?.downcast_to_file_source::<ParquetSource>()?;
    let is_whole = source.filter().is_none()
        && config.limit.is_none()
        && plan.schema().fields() == source.table_schema().table_schema().fields();
    is_whole.then_some((config, source))
}

/// The plan over scans whose columns have the types of `schema`. None if the library doesn't read a
/// file so.
fn narrow_plan(
    plan: &Plan,
    schema: &Schema,
    files: &[File],
    runtime: &RuntimeEnv,
) -> Result<Option<Plan>> {
    if let Some((config, source)) = scan(plan) {
        let readers = KnownMetadata {
            files: ParquetFiles::new(runtime.object_store(&config.object_store_url)?, runtime),
            metadata: files.iter().map(File::known).collect(),
        };
        return Ok(narrow_scan(config, source, schema, files, readers));
    }
    let mut children = Vec::new();
    for child in plan.children() {
        match narrow_plan(child, schema, files, runtime)? {
            Some(child) => children.push(child),
            None => return Ok(None),
        }
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.clone().replace_children(children, options).map(Some)
}

/// A file, and the columns that the library finds in it.
struct File {
    object: ObjectMeta,
    metadata: Arc<ParquetMetaData>,
    schema: Schema,
}

async fn files_of(config: &FileScanConfig, runtime: &RuntimeEnv) -> Result<Vec<File>> {
    let footers = ParquetFiles::new(runtime.object_store(&config.object_store_url)?, runtime);
    let parts = config.file_groups.iter().flat_map(FileGroup::files);
    let mut objects: Vec<_> = parts.map(|part| &part.object_meta).collect();
    objects.sort_unstable_by_key(|object| &object.location);
    objects.dedup_by_key(|object| &object.location);
    let mut files = Vec::with_capacity(objects.len());
    for object in objects {
        let metadata = footers.footer(object).await?;
        let file = metadata.file_metadata();
        let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
        files.push(File { object: object.clone(), metadata, schema });
    }
    Ok(files)
}

impl File {
    fn known(&self) -> (Path, Arc<ParquetMetaData>) {
        (self.object.location.clone(), self.metadata.clone())
    }

    /// The column of this name as it is stored, if its values have this type.
    fn stored(&self, name: &str, data_type: &DataType) -> Option<ColumnDescPtr> {
        let leaf = self.leaf(name, data_type)?;
        Some(self.metadata.file_metadata().schema_descr().column(leaf))
    }

    fn leaf(&self, name: &str, data_type: &DataType) -> Option<usize> {
        let number = self.schema.index_of(name).ok()?;
        if self.schema.field(number).data_type() != data_type {
            return None;
        }
        let columns = self.metadata.file_metadata().schema_descr();
        let mut leaves = 0..columns.num_columns();
        leaves.find(|leaf| columns.get_column_root_idx(*leaf) == number)
    }
}

/// The fields with other types.
fn fields(schema: &Schema, change: impl Fn(&Field) -> Option<DataType>) -> SchemaRef {
    let field = |field: &FieldRef| match change(field) {
        Some(data_type) => Arc::new(field.as_ref().clone().with_data_type(data_type)),
        None => field.clone(),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The type in fewer bytes that holds all values of a column; None if there is none.
fn narrow_field(field: &Field, files: &[File]) -> Option<DataType> {
    let DataType::Decimal128(precision, scale) = *field.data_type() else { return None };
    let bytes = |file: &File| stored_bytes(&*file.stored(field.name(), field.data_type())?);
    let bytes: Option<Vec<usize>> = files.iter().map(bytes).collect();
    match (precision, bytes?.into_iter().max()?) {
        (..=DIGITS_32, ..=4) => Some(DataType::Decimal32(precision, scale)),
        (..=DIGITS_64, ..=8) => Some(DataType::Decimal64(precision, scale)),
        _ => None,
    }
}

/// The bytes of each stored value; None if they vary.
fn stored_bytes(column: &ColumnDescriptor) -> Option<usize> {
    match column.physical_type() {
        Stored::INT32 => Some(4),
        Stored::INT64 => Some(8),
        Stored::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).ok(),
        _ => None,
    }
}

/// A scan of the same files whose columns have the types of `schema`. None if the library doesn't
/// read them so.
fn narrow_scan(
    config: &FileScanConfig,
    source: &ParquetSource,
    schema: &Schema,
    files: &[File],
    readers: KnownMetadata,
) -> Option<Plan> {
    let type_of =
        |field: &Field| Some(schema.field_with_name(field.name()).ok()?.data_type().clone());
    let part = |part: &PartitionedFile| {
        let file = files.iter().find(|file| file.object.location == part.object_meta.location)?;
        let is_narrow = |field: &Field| {
            type_of(field).filter(|data_type| is_narrower(data_type, field.data_type()))
        };
        let file_schema = fields(&file.schema, is_narrow);
        let options = ArrowReaderOptions::new().with_schema(file_schema.clone());
        ArrowReaderMetadata::try_new(file.metadata.clone(), options).ok()?;
        // Its statistics have the types of before.
        let part = PartitionedFile { statistics: None, ..part.clone() };
        Some(part.with_arrow_schema(file_schema))
    };
    let group =
        |group: &FileGroup| Some(FileGroup::new(group.iter().map(part).collect::<Option<_>>()?));
    let groups = config.file_groups.iter().map(group).collect::<Option<Vec<_>>>()?;
    let before = source.table_schema();
    let table = TableSchema::builder(fields(before.file_schema(), type_of))
        .with_table_partition_cols(before.table_partition_cols().clone())
        .build();
    let statistics = Statistics::new_unknown(table.table_schema());
    let narrow = ParquetSource::new(table)
        .with_table_parquet_options(source.table_parquet_options().clone())
        .with_parquet_file_reader_factory(Arc::new(readers));
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(narrow))
        .with_file_groups(groups)
        .with_statistics(statistics)
        .build();
    Some(DataSourceExec::from_data_source(config))
}

/// Whether both are decimals of the same digits, and the first is the one in fewer bytes.
fn is_narrower(narrow: &DataType, wide: &DataType) -> bool {
    let DataType::Decimal128(wide_precision, wide_scale) = wide else { return false };
    matches!(
        narrow,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale)
            if precision == wide_precision && scale == wide_scale
    )
}

/// The batch with its decimals in 16 bytes where `schema` has them so.
pub(super) fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |(array, field): (&ArrayRef, &FieldRef)| widen_array(array, field.data_type());
    let columns = batch.columns().iter().zip(schema.fields()).map(column);
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}

/// The values as `data_type`, if they are decimals of the same digits in fewer bytes. Not a cast,
/// which would check the digits and make NULLs of others.
pub fn widen_array(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let DataType::Decimal128(precision, scale) = *data_type else { return Ok(array.clone()) };
    let wide = match array.data_type() {
        DataType::Decimal32(..) => {
            array.as_primitive::<Decimal32Type>().unary::<_, Decimal128Type>(i128::from)
        }
        DataType::Decimal64(..) => {
            array.as_primitive::<Decimal64Type>().unary::<_, Decimal128Type>(i128::from)
        }
        _ => return Ok(array.clone()),
    };
    Ok(Arc::new(wide.with_precision_and_scale(precision, scale)?))
}
