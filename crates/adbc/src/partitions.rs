//! Partitioned results: a statement as parts that other connections read, in any process.
//!
//! ADBC has no call that ends a plan. A connection to PostgreSQL holds the snapshots of its plans
//! until it closes, or their leases are over.

use std::sync::Arc;

use adbc_core::PartitionedResult;
use adbc_core::error::{Error, Result};
use arrow::array::RecordBatch;
use dray_client::{Connection, Part, Plan, PlanOptions, QueryOptions};

use crate::cancel::Running;
use crate::error::{invalid_argument, of_client};
use crate::parameters::ParameterRows;
use crate::result::ResultReader;
use crate::session::{Session, connection};
use crate::table::hand_over_schema;

/// Divides a statement into parts, with the only row of its parameters.
///
/// # Errors
/// When the statement can't be planned, or has several rows of parameters.
pub(crate) fn plan(
    session: &Session,
    sql: &str,
    rows: Option<ParameterRows>,
    query: QueryOptions,
    options: &PlanOptions,
    running: &Running,
) -> Result<PartitionedResult> {
    let plan = session.plan(sql, &one_row(rows, query)?, options, running)?;
    let partitions = plan.partitions().to_vec();
    let schema = hand_over_schema(plan.schema());
    session.hold(plan);
    Ok(PartitionedResult { partitions, schema, rows_affected: -1 })
}

fn one_row(rows: Option<ParameterRows>, query: QueryOptions) -> Result<QueryOptions> {
    let Some(mut rows) = rows else { return Ok(query) };
    let row: Option<RecordBatch> = rows.next()?;
    match (&row, rows.next()?) {
        (Some(_), None) => Ok(QueryOptions { parameters: row, ..query }),
        (None, _) => Err(several("no row")),
        (Some(_), Some(_)) => Err(several("several rows")),
    }
}

fn several(given: &str) -> Error {
    invalid_argument(format!("{given} of parameters were bound, expected one for a plan of parts"))
}

/// Starts to read a part over the session's connection.
///
/// # Errors
/// When the bytes are no part, or it can't be read over this connection.
pub(crate) fn read(
    session: Arc<Session>,
    descriptor: &[u8],
    options: &QueryOptions,
) -> Result<ResultReader> {
    let part = Part::decode(descriptor).map_err(|error| of_client(&error))?;
    let running = session.begin();
    let lease = session.lease(&running)?;
    let watch = Some(running.cancel().watch());
    let results = Connection::read_partition_with(lease, &part, options, watch);
    let results = results.map_err(|error| of_client(&error))?;
    ResultReader::start(session, running, results, None)
}

impl Session {
    fn plan(
        &self,
        sql: &str,
        query: &QueryOptions,
        options: &PlanOptions,
        running: &Running,
    ) -> Result<Plan> {
        let mut lease = self.lease(running)?;
        let mut verdict = || running.cancel().verdict();
        connection(&mut lease)
            .partitions(sql, query, options, &mut verdict)
            .map_err(|error| of_client(&error))
    }
}
