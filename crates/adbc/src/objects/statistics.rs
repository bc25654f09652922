//! What a server knows about its tables, as `GetStatistics` nests it. Nothing is scanned.

use std::sync::Arc;

use adbc_core::constants::{
    ADBC_STATISTIC_AVERAGE_BYTE_WIDTH_KEY, ADBC_STATISTIC_DISTINCT_COUNT_KEY,
    ADBC_STATISTIC_NULL_COUNT_KEY, ADBC_STATISTIC_ROW_COUNT_KEY,
};
use adbc_core::error::Result;
use adbc_core::schemas::{
    GET_STATISTICS_SCHEMA, STATISTIC_VALUE_SCHEMA, STATISTICS_DB_SCHEMA_SCHEMA, STATISTICS_SCHEMA,
};
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray,
    UnionArray, new_empty_array,
};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use dray_client::SourceKind;

use super::encode::{list, record, texts};
use super::{Filter, dray, mysql, postgres};
use crate::cancel::Running;
use crate::error::bad_data;
use crate::session::Session;

/// The statistics of a schema, sorted by table.
#[derive(Debug, PartialEq)]
pub(super) struct SchemaStatistics {
    pub(super) catalog: String,
    pub(super) schema: String,
    pub(super) statistics: Vec<Statistic>,
}

/// One number about a table, or about one of its columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statistic {
    pub(super) table: String,
    pub(super) column: Option<String>,
    pub(super) key: i16,
    pub(super) value: Value,
}

/// ADBC has integers for what is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Exact(i64),
    Estimate(f64),
}

/// A table's row in PostgreSQL's catalog with the statistics of a column, if it has any.
#[derive(Debug, Default)]
pub(super) struct Analyzed {
    pub(super) table: String,
    /// None before the first ANALYZE or VACUUM.
    pub(super) rows: Option<f64>,
    pub(super) column: Option<String>,
    pub(super) null_fraction: Option<f64>,
    pub(super) average_width: Option<f64>,
    /// A number of values, or a fraction of the rows with a minus sign.
    pub(super) distinct: Option<f64>,
}

impl SchemaStatistics {
    /// Adds the number of a table's rows, and what is known about a column.
    pub(super) fn add(&mut self, of: Analyzed) {
        let is_new = self.statistics.last().is_none_or(|last| last.table != of.table);
        let mut add = |column: Option<&String>, key: i16, estimate: Option<f64>| {
            if let Some(estimate) = estimate.filter(|estimate| estimate.is_finite()) {
                self.statistics.push(Statistic {
                    table: of.table.clone(),
                    column: column.cloned(),
                    key,
                    value: Value::Estimate(estimate),
                });
            }
        };
        if is_new {
            add(None, ADBC_STATISTIC_ROW_COUNT_KEY, of.rows);
        }
        let Some(column) = &of.column else { return };
        let share = |fraction: f64| of.rows.map(|rows| (fraction * rows).round());
        let distinct = match of.distinct {
            Some(fraction) if fraction < 0.0 => share(-fraction),
            // PostgreSQL writes 0 for "unknown".
            count => count.filter(|count| *count > 0.0),
        };
        add(Some(column), ADBC_STATISTIC_AVERAGE_BYTE_WIDTH_KEY, of.average_width);
        add(Some(column), ADBC_STATISTIC_NULL_COUNT_KEY, of.null_fraction.and_then(share));
        add(Some(column), ADBC_STATISTIC_DISTINCT_COUNT_KEY, distinct);
    }
}

/// What a server knows about the tables of a filter.
///
/// # Errors
/// When the server can't be asked.
pub(crate) fn statistics(session: &Session, filter: &Filter<'_>) -> Result<RecordBatch> {
    session.check_direct()?;
    let running: Running = session.begin();
    let schemas = match session.kind {
        SourceKind::Postgres => postgres::statistics(session, filter, &running)?,
        SourceKind::Mysql => mysql::statistics(session, filter, &running)?,
        SourceKind::Dray | SourceKind::Other => dray::statistics(session, filter, &running)?,
    };
    encode(&schemas).map_err(|error| bad_data(&error))
}

/// Schemas of one catalog as a batch.
fn encode(schemas: &[SchemaStatistics]) -> std::result::Result<RecordBatch, ArrowError> {
    let catalog = schemas.first().map(|schema| &schema.catalog);
    let names = texts(catalog.iter().map(|name| Some(*name)));
    let schemas =
        list(&STATISTICS_DB_SCHEMA_SCHEMA, catalog.iter().map(|_| Some(schemas)), |schemas| {
            let statistics = list(
                &STATISTICS_SCHEMA,
                schemas.iter().map(|schema| Some(&*schema.statistics)),
                encode_statistics,
            )?;
            record(&STATISTICS_DB_SCHEMA_SCHEMA, schemas.len(), |field| match field {
                "db_schema_name" => Some(texts(schemas.iter().map(|of| Some(&of.schema)))),
                _ => Some(statistics.clone()),
            })
        })?;
    RecordBatch::try_new(GET_STATISTICS_SCHEMA.clone(), vec![names, schemas])
}

fn encode_statistics(statistics: &[&Statistic]) -> std::result::Result<ArrayRef, ArrowError> {
    let values = encode_values(statistics)?;
    record(&STATISTICS_SCHEMA, statistics.len(), |field| {
        Some(match field {
            "table_name" => texts(statistics.iter().map(|of| Some(&of.table))),
            "column_name" => {
                Arc::new(statistics.iter().map(|of| of.column.as_ref()).collect::<StringArray>())
            }
            "statistic_key" => {
                Arc::new(statistics.iter().map(|of| Some(of.key)).collect::<Int16Array>())
            }
            "statistic_value" => values.clone(),
            "statistic_is_approximate" => Arc::new(
                statistics
                    .iter()
                    .map(|of| Some(matches!(of.value, Value::Estimate(_))))
                    .collect::<BooleanArray>(),
            ),
            _ => return None,
        })
    })
}

/// A dense union: each value in the array of its type.
fn encode_values(statistics: &[&Statistic]) -> std::result::Result<ArrayRef, ArrowError> {
    let DataType::Union(fields, _) = &*STATISTIC_VALUE_SCHEMA else {
        return Err(ArrowError::SchemaError("a statistic is no union".to_owned()));
    };
    let (mut exact, mut estimates) = (Vec::new(), Vec::new());
    let (mut types, mut offsets) = (Vec::new(), Vec::new());
    let offset = |len: usize| {
        i32::try_from(len).map_err(|_| ArrowError::ComputeError("too many statistics".to_owned()))
    };
    for statistic in statistics {
        match statistic.value {
            Value::Exact(value) => {
                offsets.push(offset(exact.len())?);
                types.push(type_id(fields, &DataType::Int64)?);
                exact.push(value);
            }
            Value::Estimate(value) => {
                offsets.push(offset(estimates.len())?);
                types.push(type_id(fields, &DataType::Float64)?);
                estimates.push(value);
            }
        }
    }
    let (exact, estimates) = (Int64Array::from(exact), Float64Array::from(estimates));
    let children = fields.iter().map(|(_, field)| match field.data_type() {
        DataType::Int64 => Arc::new(exact.clone()) as ArrayRef,
        DataType::Float64 => Arc::new(estimates.clone()),
        other => new_empty_array(other),
    });
    let children = children.collect();
    Ok(Arc::new(UnionArray::try_new(fields.clone(), types.into(), Some(offsets.into()), children)?))
}

fn type_id(
    fields: &arrow::datatypes::UnionFields,
    of: &DataType,
) -> std::result::Result<i8, ArrowError> {
    let found = fields.iter().find(|(_, field)| field.data_type() == of).map(|(id, _)| id);
    found.ok_or_else(|| ArrowError::SchemaError(format!("statistics have no {of}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::util::pretty::pretty_format_batches;

    fn public() -> SchemaStatistics {
        SchemaStatistics { catalog: "db".into(), schema: "public".into(), statistics: Vec::new() }
    }

    fn column(table: &str, name: &str, distinct: f64) -> Analyzed {
        Analyzed {
            table: table.to_owned(),
            rows: Some(1000.0),
            column: Some(name.to_owned()),
            null_fraction: Some(0.25),
            average_width: Some(8.0),
            distinct: Some(distinct),
        }
    }

    #[test]
    fn fractions_become_rows() {
        let mut schema = public();
        schema.add(column("t", "a", -0.5));
        schema.add(column("t", "b", 7.0));
        schema.add(column("t", "c", 0.0));
        schema.add(Analyzed { table: "u".to_owned(), ..Analyzed::default() });
        let found: Vec<_> = schema
            .statistics
            .iter()
            .map(|of| (of.column.as_deref().unwrap_or("-"), of.key, of.value))
            .collect();
        let estimate = Value::Estimate;
        assert_eq!(
            found,
            [
                ("-", 6, estimate(1000.0)),
                ("a", 0, estimate(8.0)),
                ("a", 5, estimate(250.0)),
                ("a", 1, estimate(500.0)),
                ("b", 0, estimate(8.0)),
                ("b", 5, estimate(250.0)),
                ("b", 1, estimate(7.0)),
                ("c", 0, estimate(8.0)),
                ("c", 5, estimate(250.0)),
            ]
        );
    }

    #[test]
    fn exact_numbers_are_integers() {
        let mut schema = public();
        schema.add(column("t", "a", 2.0));
        let statistic = Statistic {
            table: "u".to_owned(),
            column: None,
            key: ADBC_STATISTIC_ROW_COUNT_KEY,
            value: Value::Exact(12),
        };
        schema.statistics.push(statistic);
        let batch = encode(&[schema]).unwrap();
        assert_eq!((batch.schema(), batch.num_rows()), (GET_STATISTICS_SCHEMA.clone(), 1));
        let text = pretty_format_batches(&[batch]).unwrap().to_string();
        for part in ["{float64=250.0}", "{int64=12}", "statistic_is_approximate: false"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(encode(&[]).unwrap().num_rows(), 0);
    }
}
