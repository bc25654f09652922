//! The eight tables of TPC-H, generated into memory.
//!
//! Each table has one part per thread. A part is a contiguous range of the rows, in batches of
//! [`MEMORY_BATCH_ROWS`] rows with plain strings. At scale factor 1 the process has 1.9 GB
//! resident, including the text from which the generator draws comments.

use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result as EngineResult};
use tokio::task::JoinSet;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use crate::catalog::{CatalogError, MEMORY_BATCH_ROWS, plain_batch, plain_schema};

/// The largest scale factor. Its tables take more than a terabyte of memory.
pub const SCALE_MAX: f64 = 1000.0;

/// The names of the tables, largest first, so that generation ends with short tasks.
pub const TABLES: [&str; 8] =
    ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"];

/// Generates all tables at scale factor `scale`, on `threads` threads.
///
/// # Errors
///
/// If the scale factor is not above 0 and at most [`SCALE_MAX`].
pub async fn generate(
    scale: f64,
    threads: usize,
) -> Result<Vec<(&'static str, MemTable)>, CatalogError> {
    if !(scale > 0.0 && scale <= SCALE_MAX) {
        return Err(CatalogError::TpchScale { found: scale });
    }
    let parts = i32::try_from(threads).unwrap_or(i32::MAX);
    let mut tables = Vec::new();
    for table in TABLES {
        // The generator repeats the smallest tables in each part, so they are one part.
        let parts = if matches!(table, "nation" | "region") { 1 } else { parts };
        let mut tasks = JoinSet::new();
        for part in 1..=parts {
            tasks.spawn_blocking(move || (part, generate_part(table, scale, part, parts)));
        }
        let mut batches = tasks.join_all().await;
        batches.sort_by_key(|(part, _)| *part);
        let batches =
            batches.into_iter().map(|(_, batches)| batches).collect::<EngineResult<Vec<_>>>()?;
        let schema = batches.iter().flatten().next().map(RecordBatch::schema).ok_or_else(|| {
            DataFusionError::Internal(format!("the TPC-H generator gave no rows for {table}"))
        })?;
        tables.push((table, MemTable::try_new(schema, batches)?));
    }
    Ok(tables)
}

fn generate_part(table: &str, scale: f64, part: i32, parts: i32) -> EngineResult<Vec<RecordBatch>> {
    macro_rules! reader {
        ($arrow:ident, $rows:ident) => {
            collect($arrow::new($rows::new(scale, part, parts)).with_batch_size(MEMORY_BATCH_ROWS))
        };
    }
    match table {
        "lineitem" => reader!(LineItemArrow, LineItemGenerator),
        "orders" => reader!(OrderArrow, OrderGenerator),
        "partsupp" => reader!(PartSuppArrow, PartSuppGenerator),
        "part" => reader!(PartArrow, PartGenerator),
        "customer" => reader!(CustomerArrow, CustomerGenerator),
        "supplier" => reader!(SupplierArrow, SupplierGenerator),
        "nation" => reader!(NationArrow, NationGenerator),
        "region" => reader!(RegionArrow, RegionGenerator),
        other => Err(DataFusionError::Internal(format!("TPC-H has no table {other}"))),
    }
}

fn collect(reader: impl RecordBatchReader) -> EngineResult<Vec<RecordBatch>> {
    let schema = plain_schema(&reader.schema());
    reader.map(|batch| plain_batch(&schema, batch?)).collect()
}
