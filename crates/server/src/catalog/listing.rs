//! The list of tables, in the log and as the table `dray.tables`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::MemorySchemaProvider;
use datafusion::catalog::SchemaProvider;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use tracing::info;

/// The schema of the server's own tables.
const SCHEMA: &str = "dray";

/// A row of `dray.tables`.
pub(super) struct TableInfo {
    pub(super) name: String,
    pub(super) schema: Arc<Schema>,
    /// None if unknown.
    pub(super) rows: Option<u64>,
    /// The size of its files; None if it has no files.
    pub(super) bytes: Option<u64>,
    pub(super) files: usize,
}

impl TableInfo {
    /// The name and type of each column.
    fn columns(&self) -> String {
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| format!("{} {}", field.name(), field.data_type()));
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// Logs the tables, and registers them as `dray.tables`.
pub(super) fn publish(context: &SessionContext, mut tables: Vec<TableInfo>) -> Result<()> {
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    for TableInfo { name, schema, rows, bytes, files } in &tables {
        info!(columns = schema.fields().len(), rows, files, bytes, "table {name}");
    }
    let all = |of: fn(&TableInfo) -> Option<u64>| {
        Arc::new(UInt64Array::from_iter(tables.iter().map(of))) as ArrayRef
    };
    let texts = |of: fn(&TableInfo) -> String| {
        Arc::new(StringArray::from_iter_values(tables.iter().map(of))) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([
        ("table_name", texts(|table| table.name.clone())),
        ("rows", all(|table| table.rows)),
        ("bytes", all(|table| table.bytes)),
        ("files", all(|table| Some(table.files as u64))),
        ("columns", texts(TableInfo::columns)),
    ])?;
    let schema = MemorySchemaProvider::new();
    schema.register_table(
        "tables".to_owned(),
        Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?),
    )?;
    let catalog = context.catalog(&context.state().config_options().catalog.default_catalog);
    let catalog =
        catalog.ok_or_else(|| DataFusionError::Internal("there is no catalog".to_owned()))?;
    catalog.register_schema(SCHEMA, Arc::new(schema))?;
    Ok(())
}

/// The number of rows of a table in memory.
pub(super) async fn rows_in_memory(table: &MemTable) -> u64 {
    let mut rows = 0;
    for part in &table.batches {
        rows += part.read().await.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
    }
    rows
}
