//! The tables of a Dray server, from its `information_schema`.

use adbc_core::constants::ADBC_STATISTIC_ROW_COUNT_KEY;
use adbc_core::error::Result;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use dray_client::QueryOptions;

use super::information_schema::{self, is_match, texts};
use super::statistics::{SchemaStatistics, Statistic, Value};
use super::{Catalog, Filter};
use crate::cancel::Running;
use crate::error::{bad_data, of_client};
use crate::session::{Session, TextRows};

/// The catalog and schema of unqualified names.
pub(crate) const PLACE: (&str, &str) = ("datafusion", "public");

/// Lists what the server has.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn list(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<Catalog>> {
    let tables = query(
        session,
        "SELECT table_catalog, table_schema, table_name, table_type \
         FROM information_schema.tables ORDER BY 1, 2, 3",
        running,
    )?;
    let columns = match filter.has_columns() {
        true => query(
            session,
            "SELECT table_catalog, table_schema, table_name, column_name, data_type, is_nullable \
             FROM information_schema.columns ORDER BY 1, 2, 3, ordinal_position",
            running,
        )?,
        false => Vec::new(),
    };
    Ok(information_schema::list(&tables, columns, filter))
}

/// The numbers of rows that the server knows.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn statistics(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<SchemaStatistics>> {
    let (catalog, schema) = PLACE;
    if !is_match(filter.catalog, catalog) || !is_match(filter.db_schema, schema) {
        return Ok(Vec::new());
    }
    let sql = "SELECT table_name, rows FROM dray.tables WHERE rows IS NOT NULL ORDER BY 1";
    let rows = query(session, sql, running)?;
    let statistics = rows.iter().filter_map(|row| {
        let [table, rows] = texts(row);
        Some(Statistic {
            table: table.to_owned(),
            column: None,
            key: ADBC_STATISTIC_ROW_COUNT_KEY,
            value: Value::Exact(rows.parse().ok()?),
        })
    });
    let statistics = statistics.filter(|of| is_match(filter.table_name, &of.table)).collect();
    Ok(vec![SchemaStatistics { catalog: catalog.into(), schema: schema.into(), statistics }])
}

/// The rows of a statement as text.
fn query(session: &Session, sql: &str, running: &Running) -> Result<TextRows> {
    let mut results = session.query(sql, &QueryOptions::default(), running)?;
    let batches = results.read_all().map_err(|error| of_client(&error))?;
    let mut rows = Vec::new();
    for batch in &batches {
        rows.extend(text_rows(batch)?);
    }
    Ok(rows)
}

fn text_rows(batch: &RecordBatch) -> Result<TextRows> {
    let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
    let columns =
        columns.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| bad_data(&error))?;
    let value = |column: &dyn Array, row: usize| {
        let texts = column.as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let row = |row| columns.iter().map(|column| value(column.as_ref(), row)).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}
