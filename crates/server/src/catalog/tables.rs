//! Tables over files: learns the columns of every file, checks that they go together, and hands DataFusion a
//! listing table with a schema that holds for all rows.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::datasource::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};

use super::sources::{Kind, Source};
use super::{CatalogError, csv_types};

/// The table over the files of `source`, whose schemas are learnt `threads` at a time.
pub(super) async fn open(
    ctx: &SessionContext,
    source: &Source,
    threads: usize,
) -> Result<Arc<dyn TableProvider>, CatalogError> {
    let state = ctx.state();
    let format = file_format(&state, source).map_err(|error| CatalogError::unreadable(&source.path, error))?;
    let options = ListingOptions::new(format)
        .with_file_extension(&source.ending)
        .with_table_partition_cols(source.partition_columns.clone());

    let schemas: Vec<FileSchema> = futures::stream::iter(source.files.clone())
        .map(|path| learn(state.clone(), options.clone(), source.kind, path))
        .buffered(threads)
        .try_collect()
        .await?;
    let schema = merge(source.kind, schemas)?;
    check_names(source, &schema)?;

    // With key=value folders DataFusion reads the keys off the paths below the folder it lists; without, the
    // files are named one by one, so that the table stays what was checked here.
    let urls = if source.partition_columns.is_empty() {
        source.files.iter().map(|path| url(path, false)).collect::<Result<_, _>>()?
    } else {
        vec![url(&source.path, true)?]
    };
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema);
    let cache = ctx.runtime_env().cache_manager.get_file_statistic_cache();
    Ok(Arc::new(ListingTable::try_new(config)?.with_cache(cache)))
}

fn file_format(state: &SessionState, source: &Source) -> EngineResult<Arc<dyn FileFormat>> {
    Ok(match source.kind {
        Kind::Parquet => Arc::new(ParquetFormat::default().with_options(state.default_table_options().parquet)),
        // Newlines in quotes are data. Cutting a file at any newline, to read it in parallel, would split them.
        Kind::Csv { delimiter, compression } => Arc::new(
            CsvFormat::default()
                .with_has_header(true)
                .with_delimiter(delimiter)
                .with_newlines_in_values(true)
                .with_file_compression_type(compression),
        ),
        Kind::Json { compression } => Arc::new(
            JsonFormat::default()
                .with_schema_infer_max_rec(usize::MAX)
                .with_newline_delimited(!is_json_array(&source.files[0], compression)?)
                .with_file_compression_type(compression),
        ),
        Kind::ArrowFile | Kind::ArrowStream => Arc::new(ArrowFormat),
    })
}

/// Whether a JSON file is one array of rows rather than a row a line.
fn is_json_array(path: &Path, compression: FileCompressionType) -> EngineResult<bool> {
    for byte in BufReader::new(compression.convert_read(File::open(path)?)?).bytes() {
        let byte = byte?;
        if !byte.is_ascii_whitespace() {
            return Ok(byte == b'[');
        }
    }
    Ok(false)
}

/// The columns of one file.
struct FileSchema {
    path: PathBuf,
    schema: SchemaRef,
}

/// Learns the columns of a file, in a task of its own: text is read to its end.
async fn learn(
    state: SessionState,
    options: ListingOptions,
    kind: Kind,
    path: PathBuf,
) -> Result<FileSchema, CatalogError> {
    let url = url(&path, false)?;
    let file = path.clone();
    let task = match kind {
        Kind::Csv { delimiter, compression } => {
            tokio::task::spawn_blocking(move || csv_types::learn(&file, delimiter, compression))
        }
        Kind::ArrowFile => {
            tokio::task::spawn_blocking(move || Ok(FileReader::try_new(File::open(file)?, None)?.schema()))
        }
        Kind::ArrowStream => tokio::task::spawn_blocking(move || {
            Ok(StreamReader::try_new(BufReader::new(File::open(file)?), None)?.schema())
        }),
        Kind::Parquet | Kind::Json { .. } => tokio::spawn(async move { options.infer_schema(&state, &url).await }),
    };
    let schema = match task.await {
        Ok(Ok(schema)) => schema,
        Ok(Err(error)) => return Err(CatalogError::unreadable(&path, error)),
        Err(error) => return Err(CatalogError::unreadable(&path, error)),
    };
    if schema.fields().is_empty() {
        return Err(CatalogError::EmptyFile { path });
    }
    Ok(FileSchema { path, schema })
}

/// One schema that holds for all files.
fn merge(kind: Kind, files: Vec<FileSchema>) -> Result<SchemaRef, CatalogError> {
    let mut files = files.into_iter();
    let Some(first) = files.next() else { return Ok(Arc::new(Schema::empty())) };
    let mut merged: Vec<Field> = first.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    for file in files {
        let differ = |difference| CatalogError::ColumnsDiffer {
            first: first.path.clone(),
            second: file.path.clone(),
            difference,
        };
        match kind {
            Kind::Parquet | Kind::Json { .. } => merge_by_name(&mut merged, &file.schema).map_err(differ)?,
            Kind::Csv { .. } => merge_by_place(&mut merged, &file.schema).map_err(differ)?,
            Kind::ArrowFile | Kind::ArrowStream if file.schema.fields() != first.schema.fields() => {
                return Err(differ("their columns or types differ".to_owned()));
            }
            Kind::ArrowFile | Kind::ArrowStream => {}
        }
    }
    let fields = merged.into_iter().map(|field| {
        let data_type = match (kind, field.data_type()) {
            (Kind::Csv { .. }, DataType::Null) => DataType::Utf8,
            // The Arrow reader hands out what the file holds and casts nothing.
            (Kind::ArrowFile | Kind::ArrowStream, data_type) => data_type.clone(),
            (_, data_type) => plain(data_type),
        };
        field.with_data_type(data_type)
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Columns that only some files have are NULL in the others.
fn merge_by_name(merged: &mut Vec<Field>, schema: &Schema) -> Result<(), String> {
    for field in merged.iter_mut().filter(|field| schema.field_with_name(field.name()).is_err()) {
        *field = field.clone().with_nullable(true);
    }
    for field in schema.fields() {
        match merged.iter_mut().find(|known| known.name() == field.name()) {
            None => merged.push(field.as_ref().clone().with_nullable(true)),
            Some(known) => {
                let data_type = widest(known.data_type(), field.data_type()).ok_or_else(|| {
                    format!("column '{}' is {} and {}", field.name(), known.data_type(), field.data_type())
                })?;
                let nullable = known.is_nullable() || field.is_nullable();
                *known = known.clone().with_data_type(data_type).with_nullable(nullable);
            }
        }
    }
    Ok(())
}

/// CSV columns are told apart by their place alone; where types don't go together, they are text in all files.
fn merge_by_place(merged: &mut [Field], schema: &Schema) -> Result<(), String> {
    if !merged.iter().map(Field::name).eq(schema.fields().iter().map(|field| field.name())) {
        return Err("their header lines differ".to_owned());
    }
    for (known, field) in merged.iter_mut().zip(schema.fields()) {
        let data_type = widest(known.data_type(), field.data_type()).unwrap_or(DataType::Utf8);
        *known = known.clone().with_data_type(data_type);
    }
    Ok(())
}

/// The type that holds the values of both without changing them, as far as readers of text can tell.
fn widest(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Date32, Float64, Int64, Null, Timestamp};
    match (a, b) {
        (a, b) if a == b => Some(a.clone()),
        (Null, other) | (other, Null) => Some(other.clone()),
        (Int64, Float64) | (Float64, Int64) => Some(Float64),
        (Date32, Timestamp(unit, None)) | (Timestamp(unit, None), Date32) => Some(Timestamp(*unit, None)),
        (Timestamp(a, zone), Timestamp(b, other)) if zone == other => Some(Timestamp(*a.max(b), zone.clone())),
        _ => None,
    }
}

/// The type with offsets or plain values instead of views, at any depth.
pub(super) fn plain(data_type: &DataType) -> DataType {
    let field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

fn check_names(source: &Source, schema: &Schema) -> Result<(), CatalogError> {
    let mut seen = HashSet::new();
    let columns = schema.fields().iter().map(|field| field.name());
    for column in columns.chain(source.partition_columns.iter().map(|(key, _)| key)) {
        if !seen.insert(column) {
            return Err(CatalogError::DuplicateColumn { path: source.path.clone(), column: column.clone() });
        }
    }
    Ok(())
}

/// A path as a `file:` URL, percent-encoded, so that no character in it is taken for a pattern.
fn url(path: &Path, is_folder: bool) -> Result<ListingTableUrl, CatalogError> {
    let absolute = path.canonicalize().map_err(|error| CatalogError::unreadable(path, error))?;
    let mut url = String::from("file://");
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'=' => url.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    if is_folder {
        url.push('/');
    }
    ListingTableUrl::parse(url).map_err(|error: DataFusionError| CatalogError::unreadable(path, error))
}
