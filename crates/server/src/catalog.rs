//! The catalog: what the user names on the command line, as SQL tables of an embedded DataFusion.
//!
//! ```text
//! TableSpec --sources--> Source --tables--> TableProvider --load (--in-memory)--> MemTable
//!  NAME=PATH              files of one kind    schema known and checked            64 Ki-row batches
//! ```
//!
//! What a path becomes:
//!
//! - A file is one table, named after the file without its ending.
//! - `NAME=FOLDER` is one table of all data files below the folder.
//! - `FOLDER` alone serves each data file in it as a table, and each subfolder as one table. It is one
//!   table itself where it holds `key=value` folders, or is named like a data file (`sales.parquet/`).
//! - `key=value` folders add a column for each key: a 64-bit integer where all values are, else text.
//! - Names beginning with `.` or `_` and, in folders, empty files and files of other kinds are passed over.
//!
//! The files of one table are of one kind. Their columns are matched by name (Parquet, JSON), or must be
//! the same in the same order (CSV, Arrow). Adding files needs a restart.
//!
//! **Text is read twice.** The types of CSV and JSON columns come from all rows, in one pass before
//! serving: the readers cut `1.5` to `1` where a sample had promised integers, drop the time where it had
//! promised dates, and lose what it had not shown at all. The same pass finds strings that are not UTF-8. An empty
//! CSV field is NULL; a CSV column with no values is text, one without a name is named by its place (`column_110`).

mod csv_types;
mod error;
mod load;
mod naming;
mod sources;
mod tables;

pub use error::CatalogError;
pub(crate) use load::{plain_batch, plain_schema};
pub use naming::TableSpec;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::TableProvider;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use dray_sort::memory_bytes_default;

use crate::sort::SortExternally;
use crate::tpch;

/// Rows in each batch of a table held in memory, but for its last ones.
pub const MEMORY_BATCH_ROWS: usize = 65_536;

/// Consumers of memory that an error about exhausted memory names.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// What to serve, and what the engine may use for it.
#[derive(Debug, Clone)]
pub struct CatalogOptions {
    /// The tables to serve.
    pub tables: Vec<TableSpec>,
    /// Generate the eight TPC-H tables at this scale factor. They are held in memory, `in_memory` or not.
    pub tpch_scale: Option<f64>,
    /// Load every table into memory before serving.
    pub in_memory: bool,
    /// The memory that queries may use for sorts, joins and aggregates before they spill to disk. It does not
    /// count tables held in memory. `None` is half of the memory available when the catalog is opened.
    pub memory_bytes: Option<usize>,
    /// An existing folder for what queries spill; `None` is the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Threads a query, the loading and the generator may use (at least 1).
    pub threads: usize,
}

/// Opens the tables as a session that every connection's own session can be made from.
///
/// # Errors
///
/// A table that can't be found, told, named or read; each error is one sentence that says what to do.
pub async fn open(options: &CatalogOptions) -> Result<SessionContext, CatalogError> {
    let threads = options.threads.max(1);
    let memory_bytes = options.memory_bytes.unwrap_or_else(memory_bytes_default);
    let ctx = SessionContext::new_with_state(
        SessionStateBuilder::new()
            .with_config(session_config(threads))
            .with_runtime_env(runtime(options, memory_bytes)?)
            .with_default_features()
            .with_physical_optimizer_rule(Arc::new(SortExternally))
            .build(),
    );

    let mut sources = Vec::new();
    let mut origins: HashMap<String, String> = HashMap::new();
    if options.tpch_scale.is_some() {
        origins.extend(tpch::TABLES.map(|table| (table.to_owned(), "the TPC-H generator".to_owned())));
    }
    for spec in &options.tables {
        for source in sources::find(spec)? {
            let origin = source.path.display().to_string();
            if let Some(first) = origins.insert(source.name.clone(), origin.clone()) {
                return Err(CatalogError::NameTaken { name: source.name, first, second: origin });
            }
            sources.push(source);
        }
    }

    for source in sources {
        let mut table = tables::open(&ctx, &source, threads).await?;
        if options.in_memory {
            table = load::load(&ctx, table, threads)
                .await
                .map_err(|error| CatalogError::unreadable(&source.path, error))?;
        }
        register(&ctx, &source.name, table)?;
    }
    if let Some(scale) = options.tpch_scale {
        for (name, table) in tpch::generate(scale, threads).await? {
            register(&ctx, name, Arc::new(table))?;
        }
    }
    Ok(ctx)
}

/// What SQL may do here: queries, `EXPLAIN`, `SHOW` and `DESCRIBE`, but nothing that writes, changes a table or
/// a setting, or makes a file of the server readable. Pass it to [`SessionContext::sql_with_options`].
pub fn query_options() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

fn register(ctx: &SessionContext, name: &str, table: Arc<dyn TableProvider>) -> Result<(), CatalogError> {
    // A bare reference: the name is taken as it is, never split at a dot or folded to lower case again.
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
    // Utf8 offsets and bytes travel as they are; views would have to be compacted first.
    settings.execution.parquet.schema_force_view_types = false;
    // Extension types, as uuid and json, are metadata of a column.
    settings.execution.parquet.skip_metadata = false;
    settings.sql_parser.map_string_types_to_utf8view = false;
    config
}

fn runtime(options: &CatalogOptions, memory_bytes: usize) -> Result<Arc<RuntimeEnv>, CatalogError> {
    let spill = match &options.spill_dir {
        None => DiskManagerMode::OsTmpDirectory,
        Some(path) if path.is_dir() => DiskManagerMode::Directories(vec![path.clone()]),
        Some(path) => return Err(CatalogError::SpillDir { path: path.clone() }),
    };
    // Fair: one query that spills leaves the others their share.
    let pool = TrackConsumersPool::new(FairSpillPool::new(memory_bytes), CONSUMERS_NAMED);
    Ok(RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
        .build_arc()?)
}
