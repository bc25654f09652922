//! The catalog: files and folders as SQL tables of an embedded DataFusion.
//!
//! ```text
//! TableSpec ─ sources ─▶ Source ─ tables ─▶ TableProvider ─ load (--in-memory) ─▶ MemTable
//! NAME=PATH              files of one kind  checked schema                64 Ki-row batches
//! NAME=s3://BUCKET/KEY
//! ```
//!
//! How paths become tables:
//!
//! - A file is one table, named after the file without its ending.
//! - `NAME=FOLDER` is one table of all data files below the folder.
//! - `FOLDER` alone serves each data file in it as a table, and each subfolder as one table. The
//!   folder itself is one table if it contains `key=value` folders, or is named like a data file
//!   (`sales.parquet/`).
//! - `key=value` folders add a column for each key ([`partitions`]): a 64-bit integer if all values
//!   are integers, a date if all are dates, else text. Statements that compare it to constants read
//!   only the folders that fit.
//! - Names beginning with `.` or `_` are ignored, and in folders also empty files. Files of other
//!   kinds are left out with a warning.
//! - Links to folders are followed, except for those to a folder above them. Two links to one
//!   folder are two folders.
//!
//! The files of one table are of one kind and have the same columns, matched by name (Parquet,
//! JSON) or by position (CSV, Arrow). With `union_by_name`, columns that only some files have are
//! NULL in the others.
//!
//! **A table consists of the files that it was opened with.** Files added to its folder later are
//! not part of it. If one of its files is removed, replaced or written to, statements that read the
//! file fail ([`served`]), because the table's columns, types and statistics describe the original
//! files. Restart the server to serve the new files.
//!
//! **Text is read twice.** One pass over all rows infers the types of CSV and JSON columns before
//! serving. Types inferred from a sample would lose values: the readers truncate `1.5` to `1` in an
//! integer column, drop the time in a date column, and skip columns that the sample lacks. The same
//! pass finds strings that are not UTF-8. An empty CSV field is NULL. A CSV column without values
//! is text, and one without a name is named by its position (`column_110`).
//!
//! **Timestamps that Parquet files have as INT96 are read twice, too** ([`int96`]): they are
//! nanoseconds if these hold all of a table's, else microseconds.

mod arrow;
mod csv_types;
mod dates;
mod empty_lines;
mod error;
mod fingerprint;
mod float_digits;
mod int96;
mod json_numbers;
mod json_values;
mod listing;
mod load;
mod naming;
mod parquet;
mod parquet_files;
mod parquet_types;
mod partitioned;
mod partitions;
mod pool;
mod row_count;
mod rows;
mod served;
mod sources;
mod spill;
mod store;
mod tables;
mod text;
mod tree;

pub use error::CatalogError;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use load::{plain_batch, plain_schema};
pub use naming::TableSpec;
pub(crate) use parquet_files::ParquetFiles;
pub use partitions::PartitionTypes;
pub(crate) use row_count::RowCountExec;
pub(crate) use rows::RowSource;
pub(crate) use served::FileError;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::TableProvider;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::TrackConsumersPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use dray_sort::{SpillSpace, memory_bytes_default};
use futures::future::BoxFuture;

use self::listing::TableInfo;
use self::pool::SharingPool;
use self::row_count::CHECK_ROW_COUNTS;
use self::spill::SpillFolder;
use self::store::ServedFiles;
use self::tables::{Opened, Opener};
use crate::sort::SORT_EXTERNALLY;
use crate::tpch;

/// Rows in each batch of a table in memory, except for the last one of each part.
pub const MEMORY_BATCH_ROWS: usize = 65_536;

/// Decompressed bytes that a batch may have, however little memory there is.
const BATCH_BYTES_MIN: u64 = 64 << 20;

/// Memory consumers that an error about exhausted memory lists.
const CONSUMERS_LISTED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// The tables to serve, and the resources that the engine may use.
#[derive(Debug, Clone, Default)]
pub struct CatalogOptions {
    /// The tables to serve.
    pub tables: Vec<TableSpec>,
    /// Generate the eight TPC-H tables at this scale factor. They are always held in memory.
    pub tpch_scale: Option<f64>,
    /// Load every table into memory before serving.
    pub in_memory: bool,
    /// Whether CSV files lack a header line. Their columns are then `column_1`, `column_2`, ….
    pub csv_no_header: bool,
    /// Whether the files of one table may have different columns, matched by name. A column is NULL
    /// in files that lack it.
    pub union_by_name: bool,
    /// Types of the columns of `key=value` folders. The others are inferred.
    pub partition_types: PartitionTypes,
    /// Memory for sorts, joins and aggregates before they spill to disk, in addition to tables in
    /// memory. None is half of the memory available when the catalog is opened.
    pub memory_bytes: Option<usize>,
    /// An existing folder to spill to; None is the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Maximum bytes that all sorts together may spill, and also that all other operators together
    /// may spill. None is unlimited.
    pub spill_bytes_max: Option<u64>,
    /// Threads for each query, for loading tables and for the generator (at least 1).
    pub threads: usize,
}

/// Opens the tables as a session that all connections can share.
///
/// # Errors
///
/// If a table can't be found, named or read, or its kind is unknown. Each error is one sentence
/// that also says what to do.
pub fn open(options: &CatalogOptions) -> BoxFuture<'_, Result<SessionContext, CatalogError>> {
    // Boxed, so that programs that await it do not compile its code once more.
    Box::pin(open_tables(options))
}

async fn open_tables(options: &CatalogOptions) -> Result<SessionContext, CatalogError> {
    let threads = options.threads.max(1);
    let memory_bytes = options.memory_bytes.unwrap_or_else(memory_bytes_default);
    let (runtime, folder) = runtime(options, memory_bytes)?;
    let space = SpillSpace::new(options.spill_bytes_max.unwrap_or(u64::MAX));
    let mut config = session_config(threads).with_extension(space);
    if let Some(folder) = folder {
        // Kept for as long as there are sessions.
        config = config.with_extension(Arc::new(folder));
    }
    let ctx = SessionContext::new_with_state(
        SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_physical_optimizer_rule(Arc::new(SORT_EXTERNALLY))
            .with_physical_optimizer_rule(Arc::new(CHECK_ROW_COUNTS))
            .build(),
    );

    let mut sources = Vec::new();
    let mut origins: HashMap<String, String> = HashMap::new();
    if options.tpch_scale.is_some() {
        origins
            .extend(tpch::TABLES.map(|table| (table.to_owned(), "the TPC-H generator".to_owned())));
    }
    for spec in &options.tables {
        for source in sources::find(spec, &options.partition_types).await? {
            let origin = source.path.display().to_string();
            if let Some(first) = origins.insert(source.name.clone(), origin.clone()) {
                return Err(CatalogError::NameTaken { name: source.name, first, second: origin });
            }
            sources.push(source);
        }
    }

    ctx.state_ref()
        .write()
        .config_mut()
        .set_extension(Arc::new(Fingerprint::new(options, &sources)));
    let files = Arc::new(ServedFiles::default());
    ctx.register_object_store(store::table_url("")?.as_ref(), Arc::clone(&files) as _);
    let batch_bytes_max = u64::try_from(memory_bytes).unwrap_or(u64::MAX).max(BATCH_BYTES_MIN);
    let opener = Opener { context: &ctx, files, options, batch_bytes_max };
    let mut infos = Vec::new();
    for source in sources {
        let Opened { mut table, mut rows } = opener.open(&source).await?;
        if options.in_memory {
            let loaded = load::load(&ctx, table, threads).await;
            let loaded = loaded.map_err(|error| CatalogError::unreadable(&source.path, error))?;
            rows = Some(listing::rows_in_memory(&loaded).await);
            table = Arc::new(loaded);
        }
        let bytes = source.files.iter().map(|file| file.bytes()).sum();
        let (schema, files) = (table.schema(), source.files.len());
        infos.push(TableInfo {
            name: source.name.clone(),
            schema,
            rows,
            bytes: Some(bytes),
            files,
        });
        register(&ctx, &source.name, table)?;
    }
    if let Some(scale) = options.tpch_scale {
        for (name, table) in tpch::generate(scale, threads).await? {
            let (schema, rows) = (table.schema(), Some(listing::rows_in_memory(&table).await));
            infos.push(TableInfo { name: name.to_owned(), schema, rows, bytes: None, files: 0 });
            register(&ctx, name, Arc::new(table))?;
        }
    }
    listing::publish(&ctx, infos)?;
    Ok(ctx)
}

/// The statements that clients may run: queries, `EXPLAIN`, `SHOW` and `DESCRIBE`. Statements that
/// write, change a table or a setting, or open other files of the server are refused. Pass this to
/// [`SessionContext::sql_with_options`].
pub fn query_options() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

fn register(
    ctx: &SessionContext,
    name: &str,
    table: Arc<dyn TableProvider>,
) -> Result<(), CatalogError> {
    // A bare reference is not split at dots or folded to lower case.
    ctx.register_table(datafusion::common::TableReference::bare(name), table)?;
    Ok(())
}

fn session_config(threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_collect_statistics(true);
    let settings = config.options_mut();
    settings.execution.time_zone = Some("UTC".to_owned());
    // Offsets and bytes of Utf8 are sent as they are; views would have to be compacted first.
    settings.execution.parquet.schema_force_view_types = false;
    // Keep extension types such as uuid and json, which are metadata of a column.
    settings.execution.parquet.skip_metadata = false;
    settings.sql_parser.map_string_types_to_utf8view = false;
    // Include files in subfolders.
    settings.execution.listing_table_ignore_subdirectory = false;
    config
}

/// The engine's runtime, and its spill folder, which is removed when it is dropped.
fn runtime(
    options: &CatalogOptions,
    memory_bytes: usize,
) -> Result<(Arc<RuntimeEnv>, Option<SpillFolder>), CatalogError> {
    let parent = options.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = match (SpillFolder::create(&parent), &options.spill_dir) {
        (Ok(folder), _) => Some(folder),
        (Err(cause), Some(path)) => {
            return Err(CatalogError::SpillDir { path: path.clone(), kind: cause.kind() });
        }
        // The default folder is unusable. Statements fail only when they spill.
        (Err(_), None) => None,
    };
    let spill = match &folder {
        Some(folder) => DiskManagerMode::Directories(vec![folder.path().to_path_buf()]),
        None => DiskManagerMode::OsTmpDirectory,
    };
    let disk = DiskManagerBuilder::default().with_mode(spill);
    let disk = disk.with_max_temp_directory_size(options.spill_bytes_max.unwrap_or(u64::MAX));
    let pool = TrackConsumersPool::new(SharingPool::new(memory_bytes), CONSUMERS_LISTED);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        // Listing a table's files checks whether they have changed.
        .with_object_list_cache_limit(0)
        .with_disk_manager_builder(disk)
        .build_arc()?;
    Ok((runtime, folder))
}
