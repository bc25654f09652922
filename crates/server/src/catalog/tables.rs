//! Tables over files: infers the columns of each file, merges them, and creates a DataFusion
//! listing table whose schema fits all rows.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::datasource::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};

use super::arrow::{self, IpcFormat};
use super::int96::Int96Columns;
use super::partitioned::PartitionedTable;
use super::rows::{RowFormat, RowKind};
use super::served::ServedFile;
use super::sources::{Kind, Source};
use super::store::{self, ServedFiles};
use super::text::Budget;
use super::{CatalogError, CatalogOptions, csv_types, parquet, rows};

/// What opening a table needs.
pub(super) struct Opener<'a> {
    pub(super) context: &'a SessionContext,
    pub(super) files: Arc<ServedFiles>,
    pub(super) options: &'a CatalogOptions,
    /// Maximum decompressed size of a batch.
    pub(super) batch_bytes_max: u64,
}

/// An opened table.
pub(super) struct Opened {
    pub(super) table: Arc<dyn TableProvider>,
    /// The number of rows; None if the files would have to be read to count them.
    pub(super) rows: Option<u64>,
}

impl Opener<'_> {
    /// Opens the table of `source`. Several files are inspected in parallel.
    pub(super) async fn open(&self, source: &Source) -> Result<Opened, CatalogError> {
        for file in &source.files {
            match self.files.add(file) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(CatalogError::unreadable(
                        &file.path,
                        "another file has the same name as text",
                    ));
                }
                Err(error) => return Err(CatalogError::unreadable(&file.path, error)),
            }
        }
        let format = self.format(source).await;
        let format = format.map_err(|error| CatalogError::unreadable(&source.path, error))?;
        let infer = |file: &Arc<ServedFile>| self.infer(Arc::clone(file), format.clone());
        let mut files: Vec<FileColumns> = futures::stream::iter(source.files.iter().map(infer))
            .buffered(self.options.threads.max(1))
            .try_collect()
            .await?;
        let has_micros = choose_unit(&mut files)?;
        let rows = files.iter().map(|file| file.rows).sum();
        let schema = merge(source.kind, files, self.options.union_by_name)?;
        check_names(source, &schema)?;

        let format = format.file_format(self, has_micros);
        if !source.partitions.columns.is_empty() {
            let files = Arc::clone(&self.files);
            let (served, partitions) = (&source.files, &source.partitions);
            let table = PartitionedTable::new(format, files, schema, served, partitions);
            return Ok(Opened { table: Arc::new(table), rows });
        }
        // The store has only the table's files, so all endings match.
        let options = ListingOptions::new(format).with_file_extension("");
        let unreadable = |error: DataFusionError| CatalogError::unreadable(&source.path, error);
        let url = store::table_url(&source.name).map_err(unreadable)?;
        let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
        let cache = self.context.runtime_env().cache_manager.get_file_statistic_cache();
        Ok(Opened { table: Arc::new(ListingTable::try_new(config)?.with_cache(cache)), rows })
    }

    async fn format(&self, source: &Source) -> EngineResult<Format> {
        let kind = match source.kind {
            Kind::Parquet => return Ok(Format::Parquet),
            Kind::Csv { delimiter, compression } => {
                RowKind::Csv { delimiter, has_header: !self.options.csv_no_header, compression }
            }
            Kind::Json { compression } => {
                let first = source.files.first().cloned();
                let is_array = tokio::task::spawn_blocking(move || {
                    first.map(|file| is_json_array(&file, compression)).transpose()
                });
                let is_array = is_array
                    .await
                    .map_err(|cause| DataFusionError::ExecutionJoin(Box::new(cause)))??;
                RowKind::Json { is_array: is_array.unwrap_or(false), compression }
            }
            Kind::Arrow(format) => RowKind::Arrow(format),
        };
        Ok(Format::Rows(RowFormat {
            kind,
            files: Arc::clone(&self.files),
            batch_bytes_max: self.batch_bytes_max,
        }))
    }

    /// Infers the columns of a file in a task of its own, since text is read to its end.
    async fn infer(
        &self,
        file: Arc<ServedFile>,
        format: Format,
    ) -> Result<FileColumns, CatalogError> {
        let path = file.path.clone();
        if file.bytes() == 0 {
            return Err(CatalogError::EmptyFile { path });
        }
        let budget = Budget::new(self.batch_bytes_max);
        let state = self.context.state();
        let inferred = match format {
            Format::Parquet => {
                let bytes_max = self.batch_bytes_max;
                tokio::spawn(async move { parquet::infer(&state, &file, bytes_max).await }).await
            }
            Format::Rows(format) => {
                tokio::task::spawn_blocking(move || infer_rows(&file, format.kind, budget)).await
            }
        };
        let Inferred { columns, rows, int96 } = match inferred {
            Ok(Ok(inferred)) => inferred,
            Ok(Err(error)) => return Err(CatalogError::unreadable(&path, error)),
            Err(error) => return Err(CatalogError::unreadable(&path, error)),
        };
        match columns.is_empty() {
            true => Err(CatalogError::EmptyFile { path }),
            false => Ok(FileColumns { path, columns, rows, int96 }),
        }
    }
}

/// How a table's files are read.
#[derive(Clone)]
enum Format {
    Parquet,
    Rows(RowFormat),
}

impl Format {
    fn file_format(self, opener: &Opener<'_>, has_micros: bool) -> Arc<dyn FileFormat> {
        match self {
            Self::Parquet => Arc::new(parquet::format(&opener.context.state(), has_micros)),
            Self::Rows(format) => Arc::new(format),
        }
    }
}

/// What was learnt about a file.
pub(super) struct Inferred {
    pub(super) columns: Columns,
    /// The number of rows, if they were counted.
    pub(super) rows: Option<u64>,
    pub(super) int96: Option<Int96Columns>,
}

fn infer_rows(file: &Arc<ServedFile>, kind: RowKind, budget: Budget) -> EngineResult<Inferred> {
    let open = || file.open().map_err(|error| DataFusionError::External(Box::new(error)));
    let (columns, rows) = match kind {
        RowKind::Csv { delimiter, has_header, compression } => {
            let columns = rows::infer_csv(&open, delimiter, has_header, compression, &budget)?;
            let rows = columns.rows;
            (Columns::Csv(columns), Some(rows))
        }
        RowKind::Json { is_array, compression } => {
            let (schema, rows) = rows::infer_json(open()?, is_array, compression, &budget)?;
            (Columns::Typed(Arc::new(schema)), Some(rows))
        }
        RowKind::Arrow(format) => {
            let (schema, batch_bytes) = arrow::infer(&open()?, format)?;
            file.set_batch_bytes(batch_bytes);
            (Columns::Typed(schema), None)
        }
    };
    Ok(Inferred { columns, rows, int96: None })
}

/// Whether a JSON file is an array of rows, not one row per line.
fn is_json_array(file: &Arc<ServedFile>, compression: FileCompressionType) -> EngineResult<bool> {
    let file = file.open().map_err(|error| DataFusionError::External(Box::new(error)))?;
    for byte in BufReader::new(compression.convert_read(file)?).bytes() {
        let byte = byte?;
        if !byte.is_ascii_whitespace() {
            return Ok(byte == b'[');
        }
    }
    Ok(false)
}

/// The columns of one file.
struct FileColumns {
    path: PathBuf,
    columns: Columns,
    rows: Option<u64>,
    int96: Option<Int96Columns>,
}

/// Whether timestamps of INT96 are read in microseconds: nanoseconds don't hold all of them. Then
/// the files' columns have these types. Fails if neither unit holds all.
fn choose_unit(files: &mut [FileColumns]) -> Result<bool, CatalogError> {
    let lost = files.iter().find_map(|file| file.int96.as_ref()?.lost_in_nanos.clone());
    let Some(far) = lost else { return Ok(false) };
    for file in files {
        let Some(int96) = file.int96.take() else { continue };
        if let Some(fine) = int96.lost_in_micros {
            let what = format!(
                "nanoseconds do not hold all timestamps (INT96) of column '{far}', and \
                 microseconds not those of column '{fine}'; rewrite them as INT64"
            );
            return Err(CatalogError::unreadable(&file.path, what));
        }
        file.columns = Columns::Typed(int96.in_micros);
    }
    Ok(true)
}

pub(super) enum Columns {
    Typed(SchemaRef),
    /// CSV columns get their types once all files have been read.
    Csv(csv_types::CsvColumns),
}

impl Columns {
    fn is_empty(&self) -> bool {
        match self {
            Self::Typed(schema) => schema.fields().is_empty(),
            Self::Csv(columns) => columns.names.is_empty(),
        }
    }
}

/// Merges the columns of all files into one schema.
fn merge(
    kind: Kind,
    files: Vec<FileColumns>,
    union_by_name: bool,
) -> Result<SchemaRef, CatalogError> {
    let is_one = files.len() == 1;
    let mut files = files.into_iter();
    let Some(first) = files.next() else { return Ok(Arc::new(Schema::empty())) };
    let differ = |second: PathBuf, difference| CatalogError::ColumnsDiffer {
        first: first.path.clone(),
        second,
        difference,
    };
    let merged = match first.columns {
        Columns::Csv(mut merged) => {
            for file in files {
                let Columns::Csv(other) = file.columns else { continue };
                if merged.names != other.names {
                    return Err(differ(file.path, header_difference(&merged.names, &other.names)));
                }
                merged.merge(&other);
            }
            return Ok(Arc::new(merged.schema()));
        }
        Columns::Typed(schema) => {
            let mut merged: Vec<Field> =
                schema.fields().iter().map(|field| field.as_ref().clone()).collect();
            let mut all = vec![(first.path.clone(), Arc::clone(&schema))];
            for file in files {
                let Columns::Typed(other) = file.columns else { continue };
                let is_same = match kind {
                    Kind::Arrow(_) if schema.fields() != other.fields() => {
                        Err("their columns or types differ".to_owned())
                    }
                    Kind::Arrow(_) => Ok(()),
                    _ => merge_by_name(&mut merged, &other, kind, union_by_name),
                };
                is_same.map_err(|difference| differ(file.path.clone(), difference))?;
                all.push((file.path, other));
            }
            if matches!(kind, Kind::Json { .. }) {
                check_large(&merged, &all)?;
            }
            merged
        }
    };
    let fields = merged.into_iter().map(|field| {
        let data_type = match (kind, field.data_type()) {
            // An Arrow file has one dictionary for a column.
            (Kind::Arrow(IpcFormat::File), data_type) if is_one => data_type.clone(),
            // Each file, row group and batch of a stream has its own dictionary. The engine
            // concatenates their rows, and the merged dictionary may exceed narrow keys.
            (Kind::Arrow(_), data_type) => with_wide_keys(data_type),
            (Kind::Parquet, data_type) => with_wide_keys(&plain(data_type)),
            (_, data_type) => plain(data_type),
        };
        let field = field.with_data_type(data_type);
        if matches!(kind, Kind::Json { .. }) { field.with_metadata(HashMap::new()) } else { field }
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Whether a JSON column has integers that a float can't represent.
fn is_large(field: &Field) -> bool {
    field.metadata().contains_key(rows::LARGE_INTEGERS)
}

/// Fails if such a column is of floats, because another file has fractions in it.
fn check_large(merged: &[Field], files: &[(PathBuf, SchemaRef)]) -> Result<(), CatalogError> {
    let is_float = |field: &Field| field.data_type().is_floating();
    for column in merged.iter().filter(|field| is_float(field) && is_large(field)) {
        let with = |is_sought: &dyn Fn(&Field) -> bool| {
            let mut files = files.iter();
            files.find(|(_, schema)| schema.field_with_name(column.name()).is_ok_and(is_sought))
        };
        if let (Some((large, _)), Some((fractions, _))) = (with(&is_large), with(&is_float)) {
            return Err(CatalogError::ColumnsDiffer {
                first: large.clone(),
                second: fractions.clone(),
                difference: format!(
                    "column '{}' has integers beyond 2^53 in one and fractions in the other, which \
                     no number type represents exactly; write them as strings",
                    column.name()
                ),
            });
        }
    }
    Ok(())
}

/// How two CSV headers differ. CSV columns are matched by position.
fn header_difference(first: &[String], second: &[String]) -> String {
    match first.iter().zip(second).position(|(a, b)| a != b) {
        Some(index) => {
            let (a, b) = (&first[index], &second[index]);
            format!("their header lines differ: column {} is '{a}' and '{b}'", index + 1)
        }
        None => format!(
            "their header lines differ: there are {} and {} columns",
            first.len(),
            second.len()
        ),
    }
}

/// The hint about a column that only some files have.
const OR_UNION: &str = ", which --union-by-name would fill with NULL";

/// Merges columns by name. With `union_by_name`, columns that only some files have are nullable;
/// otherwise they are an error.
fn merge_by_name(
    merged: &mut Vec<Field>,
    schema: &Schema,
    kind: Kind,
    union_by_name: bool,
) -> Result<(), String> {
    for field in merged.iter_mut().filter(|field| schema.field_with_name(field.name()).is_err()) {
        if !union_by_name {
            return Err(format!("only the first has a column '{}'{OR_UNION}", field.name()));
        }
        *field = field.clone().with_nullable(true);
    }
    for field in schema.fields() {
        match merged.iter_mut().find(|known| known.name() == field.name()) {
            None if !union_by_name => {
                return Err(format!("only the second has a column '{}'{OR_UNION}", field.name()));
            }
            None => merged.push(field.as_ref().clone().with_nullable(true)),
            Some(known) => {
                if is_large(field) {
                    // Until all files are known: with text in one, numbers are text.
                    *known = known.clone().with_metadata(field.metadata().clone());
                }
                let data_type =
                    widest(known.data_type(), field.data_type(), kind).ok_or_else(|| {
                        format!(
                            "column '{}' is {} and {}",
                            field.name(),
                            known.data_type(),
                            field.data_type()
                        )
                    })?;
                let nullable = known.is_nullable() || field.is_nullable();
                *known = known.clone().with_data_type(data_type).with_nullable(nullable);
            }
        }
    }
    Ok(())
}

/// The type for the values of both. In JSON, single values merge as within one file: integers and
/// floats as floats, others as text.
fn widest(a: &DataType, b: &DataType, kind: Kind) -> Option<DataType> {
    use DataType::{Boolean, Float64, Int64, Null, Utf8};
    let is_json = matches!(kind, Kind::Json { .. });
    match (a, b) {
        (a, b) if a == b => Some(a.clone()),
        (Null, other) | (other, Null) => Some(other.clone()),
        (Int64, Float64) | (Float64, Int64) if is_json => Some(Float64),
        (Boolean | Int64 | Float64 | Utf8, Boolean | Int64 | Float64 | Utf8) if is_json => {
            Some(Utf8)
        }
        _ => None,
    }
}

/// The type with plain strings and lists instead of views, at any depth.
pub(super) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::ListView(item) => plain(&DataType::List(Arc::clone(item))),
        DataType::LargeListView(item) => plain(&DataType::LargeList(Arc::clone(item))),
        other => with_children(other, plain),
    }
}

/// The type with dictionary keys of at least 32 bits, at any depth.
pub(super) fn with_wide_keys(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(index, values) if index.primitive_width() < Some(4) => {
            DataType::Dictionary(Box::new(DataType::Int32), values.clone())
        }
        other => with_children(other, with_wide_keys),
    }
}

/// The type with changed types of its children.
fn with_children(data_type: &DataType, change: fn(&DataType) -> DataType) -> DataType {
    let field = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(change(field.data_type())))
    };
    match data_type {
        DataType::List(item) => DataType::List(field(item)),
        DataType::ListView(item) => DataType::ListView(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::LargeListView(item) => DataType::LargeListView(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

fn check_names(source: &Source, schema: &Schema) -> Result<(), CatalogError> {
    let mut seen = HashSet::new();
    let columns = schema.fields().iter().map(|field| field.name());
    for (key, _) in &source.partitions.columns {
        if schema.field_with_name(key).is_ok() {
            let (path, key) = (source.path.clone(), key.clone());
            return Err(CatalogError::KeyIsColumn { path, key });
        }
    }
    for column in columns.chain(source.partitions.columns.iter().map(|(key, _)| key)) {
        if !seen.insert(column) {
            return Err(CatalogError::DuplicateColumn {
                path: source.path.clone(),
                column: column.clone(),
            });
        }
    }
    Ok(())
}
