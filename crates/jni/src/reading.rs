//! Planning statements and reading their rows, as Spark holds them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_client::{Connection, Part, PlanOptions, Results, SourceKind, Verdict};

use crate::convert::convert_batch;
use crate::errors::Failure;
use crate::handles::{Description, Handle, Planned, State};
use crate::options::Options;
use crate::spark_types::spark_schema;

/// A result that is being read.
#[derive(Debug)]
pub(crate) struct Reading {
    results: Results<Connection>,
    /// The columns as Spark holds them.
    pub(crate) schema: SchemaRef,
}

impl Reading {
    /// The next rows; None at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        match self.results.next_batch()? {
            Some(batch) => convert_batch(&batch, &self.schema).map(Some),
            None => Ok(None),
        }
    }

    /// The receipt of a part that was read to its end.
    pub(crate) fn receipt(&self) -> Option<Vec<u8>> {
        self.results.receipt()
    }
}

/// Plans a statement without running it.
pub(crate) fn describe(
    handle: &Handle,
    uri: &str,
    sql: &str,
    mut options: Options,
) -> Result<(), Failure> {
    let connection = connect(handle, uri, &options)?;
    let dialect = connection.dialect();
    options.query.plan_only = true;
    options.query.estimate = true;
    let mut results =
        Connection::query_with(connection, sql, &options.query, Some(handle.watch()))?;
    let schema = Arc::new(spark_schema(&results.schema())?);
    // Nothing comes, but the statement ends as it should.
    while results.next_batch()?.is_some() {}
    let estimate = results.progress().estimate;
    *handle.lock() = State::Description(Description { schema, estimate, dialect });
    Ok(())
}

/// Divides a statement into parts. Returns false if the database's snapshots can't be handed to
/// other processes.
pub(crate) fn plan(
    handle: &Handle,
    uri: &str,
    sql: &str,
    options: &Options,
    plan: &PlanOptions,
) -> Result<bool, Failure> {
    let mut connection = connect(handle, uri, options)?;
    let is_alone =
        connection.kind() == SourceKind::Mysql || connection.dialect() == SourceKind::Other;
    // With an earlier plan, the client says why that can't be.
    if is_alone && plan.snapshot.is_none() {
        return Ok(false);
    }
    let mut cancel = || handle.verdict();
    let plan = connection.partitions(sql, &options.query, plan, &mut cancel)?;
    let schema = Arc::new(spark_schema(&plan.schema())?);
    *handle.lock() = State::Plan(Planned { schema, plan });
    Ok(true)
}

/// Starts to read a part of a plan.
pub(crate) fn open_part(
    handle: &Handle,
    descriptor: &[u8],
    uri: &str,
    options: &Options,
) -> Result<(), Failure> {
    let part = Part::decode(descriptor)?;
    let connection = connect(handle, &part.connect_uri(Some(uri)), options)?;
    let watch = Some(handle.watch());
    begin(handle, Connection::read_partition_with(connection, &part, &options.query, watch)?)
}

/// Starts to read a statement as a whole.
pub(crate) fn open_query(
    handle: &Handle,
    uri: &str,
    sql: &str,
    options: &Options,
) -> Result<(), Failure> {
    let connection = connect(handle, uri, options)?;
    begin(handle, Connection::query_with(connection, sql, &options.query, Some(handle.watch()))?)
}

fn begin(handle: &Handle, results: Results<Connection>) -> Result<(), Failure> {
    let schema = Arc::new(spark_schema(&results.schema())?);
    *handle.lock() = State::Reading(Box::new(Reading { results, schema }));
    Ok(())
}

pub(crate) fn connect(
    handle: &Handle,
    uri: &str,
    options: &Options,
) -> Result<Connection, Failure> {
    let mut keep_waiting = || handle.verdict() == Verdict::Continue;
    Ok(Connection::connect_while(uri, &options.connect, &mut keep_waiting)?)
}
