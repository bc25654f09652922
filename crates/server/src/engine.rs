//! The engine's side of a statement: SQL to a plan, a plan to streams of batches.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::metadata::{FieldMetadata, ScalarAndMetadata};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, ParamValues, ScalarValue, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::parser::ParserError;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, ErrorKind as FormatErrorKind, Schema};
use dray_wire::{ErrorKind, Estimate, Known, Query, ServerError};

use crate::catalog::{MEMORY_BATCH_ROWS, query_options};

/// A plan whose scans read no more rows than this is small.
const SMALL_INPUT_ROWS: usize = 1000;

/// The tables and functions that all statements share.
pub(crate) struct Engine {
    context: SessionContext,
    /// Statements can't change settings, so they share their task contexts too.
    task: Arc<TaskContext>,
    /// For plans that only hand on what is in memory: in whole batches, where at the engine's own size each would come as
    /// eight slices. A sort would hold a few such batches of each run that it merges.
    whole_batches: Arc<TaskContext>,
}

impl Engine {
    pub(crate) fn new(context: SessionContext) -> Self {
        let state = context.state();
        let whole = state.config().clone().with_batch_size(MEMORY_BATCH_ROWS);
        let whole_batches = Arc::new(TaskContext::from(&state).with_session_config(whole));
        Self { task: context.task_ctx(), whole_batches, context }
    }

    fn task_for(&self, plan: &dyn ExecutionPlan) -> Arc<TaskContext> {
        if hands_on_memory(plan) { self.whole_batches.clone() } else { self.task.clone() }
    }
}

/// Whether a plan's batches are those of tables in memory, or made of them without copying rows.
fn hands_on_memory(plan: &dyn ExecutionPlan) -> bool {
    match plan.name() {
        "DataSourceExec" => plan
            .downcast_ref::<DataSourceExec>()
            .is_some_and(|scan| scan.data_source().downcast_ref::<MemorySourceConfig>().is_some()),
        "CoalescePartitionsExec"
        | "CooperativeExec"
        | "GlobalLimitExec"
        | "LocalLimitExec"
        | "ProjectionExec"
        | "UnionExec" => plan.children().into_iter().all(|child| hands_on_memory(child.as_ref())),
        _ => false,
    }
}

/// A planned statement.
pub(crate) struct Plan {
    /// Its columns, as they travel.
    pub(crate) schema: Arc<Schema>,
    /// What the planner expects.
    pub(crate) estimate: Estimate,
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
}

/// Plans a statement. Nothing runs yet.
pub(crate) async fn plan(engine: &Engine, query: &Query) -> Result<Plan, ServerError> {
    // A state of its own, in which `now()` is this statement's.
    let state = engine.context.state();
    let mut logical = state.create_logical_plan(&query.sql).await.map_err(query_error)?;
    query_options().verify_plan(&logical).map_err(query_error)?;
    match parameters(query)? {
        Some(values) => logical = logical.with_param_values(values).map_err(query_error)?,
        None => {
            let names = logical.get_parameter_names().map_err(query_error)?;
            if !names.is_empty() {
                let message = format!("the statement has {} parameters, and no values were given", names.len());
                return Err(error(ErrorKind::Query, "07001", message, "give a value for each of $1, $2, …"));
            }
        }
    }
    let plan = state.create_physical_plan(&logical).await.map_err(query_error)?;
    let schema = schema_from_arrow(&plan.schema())
        .map_err(|cause| error(ErrorKind::Query, "0A000", cause.to_string(), "cast the column in the query"))?;
    let estimate = match StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()) {
        Ok(statistics) => estimate(&statistics),
        Err(_) => Estimate::default(),
    };
    Ok(Plan { schema: Arc::new(schema), estimate, task: engine.task_for(plan.as_ref()), plan })
}

impl Plan {
    /// Starts the statement: one stream for each partition of its plan. Dropping them stops it.
    pub(crate) fn execute(&self) -> Result<Vec<SendableRecordBatchStream>, ServerError> {
        execute_stream_partitioned(self.plan.clone(), self.task.clone()).map_err(execution_error)
    }

    /// How many threads the plan may use.
    pub(crate) fn threads(&self) -> usize {
        self.task.session_config().target_partitions()
    }

    /// Whether the plan reads so few rows that running it takes no time worth another thread.
    pub(crate) fn is_small(&self) -> bool {
        fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
            match plan.children()[..] {
                [] => {
                    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
                    statistics.num_rows.get_value().copied().filter(|_| statistics.num_rows.is_exact() == Some(true))
                }
                ref children => children.iter().map(|child| rows(child)).sum(),
            }
        }
        rows(&self.plan).is_some_and(|rows| rows <= SMALL_INPUT_ROWS)
    }

    /// How many rows the plan has read so far: what its scans say, or, as those of tables in memory count nothing, what the
    /// first operator above them does.
    pub(crate) fn rows_read(&self) -> u64 {
        fn read(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
            let below: Vec<usize> = plan.children().into_iter().filter_map(read).collect();
            match below[..] {
                [] => plan.metrics()?.output_rows(),
                _ => Some(below.iter().sum()),
            }
        }
        read(&self.plan).unwrap_or(0) as u64
    }
}

/// Columns that share the buffers of a record batch. A batch whose strings are too long for one column is halved.
pub(crate) fn columns(arrays: RecordBatch) -> Result<Vec<(RecordBatch, Batch)>, dray_format::Error> {
    match batch_from_arrow(&arrays) {
        Err(error) if error.kind() == FormatErrorKind::Limit && arrays.num_rows() > 1 => {
            let half = arrays.num_rows() / 2;
            let mut first = columns(arrays.slice(0, half))?;
            first.append(&mut columns(arrays.slice(half, arrays.num_rows() - half))?);
            Ok(first)
        }
        other => other.map(|batch| vec![(arrays, batch)]),
    }
}

fn parameters(query: &Query) -> Result<Option<ParamValues>, ServerError> {
    let invalid = |cause: String| error(ErrorKind::Protocol, "08P01", format!("the parameters: {cause}"), "");
    let Some((schema, chunk)) = query.parameters().map_err(|cause| invalid(cause.to_string()))? else {
        return Ok(None);
    };
    let row = Decoder::new(schema, StringLayout::default()).read(&chunk, &Query::PARAMETER_LIMITS);
    let (_, row) = row.map_err(|cause| invalid(cause.to_string()))?;
    let values = row.columns().iter().zip(row.schema_ref().fields()).map(|(column, field)| {
        let value = ScalarValue::try_from_array(column.as_ref() as &dyn Array, 0)?;
        let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(field.as_ref()));
        Ok(ScalarAndMetadata::new(value, metadata))
    });
    Ok(Some(ParamValues::List(values.collect::<Result<_, _>>().map_err(query_error)?)))
}

fn estimate(statistics: &Statistics) -> Estimate {
    let known = |precision: &Precision<usize>| match precision {
        Precision::Exact(value) => Known::Exact(*value as u64),
        Precision::Inexact(value) => Known::Estimate(*value as u64),
        Precision::Absent => Known::Unknown,
    };
    Estimate { rows: known(&statistics.num_rows), bytes: known(&statistics.total_byte_size) }
}

pub(crate) fn error(kind: ErrorKind, sqlstate: &str, message: impl Into<String>, hint: &str) -> ServerError {
    ServerError { statement: 0, kind, sqlstate: sqlstate.into(), message: message.into(), hint: hint.into() }
}

/// The error of a statement that could not be planned.
fn query_error(cause: DataFusionError) -> ServerError {
    let sqlstate = match cause.find_root() {
        DataFusionError::SQL(..) => "42601",
        DataFusionError::SchemaError(..) => "42703",
        DataFusionError::NotImplemented(_) => "0A000",
        _ => "42000",
    };
    datafusion_error(ErrorKind::Query, sqlstate, &cause)
}

/// The error of a statement that failed while it ran.
pub(crate) fn execution_error(cause: DataFusionError) -> ServerError {
    datafusion_error(ErrorKind::Execution, "XX000", &cause)
}

fn datafusion_error(kind: ErrorKind, sqlstate: &str, cause: &DataFusionError) -> ServerError {
    let root = cause.find_root();
    let (kind, sqlstate, hint) = match root {
        DataFusionError::ResourcesExhausted(_) => {
            (ErrorKind::Resources, "53200", "raise the server's --memory, or let it spill to a larger --spill folder")
        }
        DataFusionError::Internal(_) => (ErrorKind::Internal, "XX000", "this is a defect; please report the query"),
        DataFusionError::ExecutionJoin(_) => {
            (ErrorKind::Internal, "XX000", "this is a defect; please report the query")
        }
        DataFusionError::ArrowError(..) => (kind, "22000", ""),
        _ => (kind, sqlstate, ""),
    };
    // The first line is the sentence; what follows are notes for the engine's own developers.
    let text = match root {
        DataFusionError::SQL(cause, _) => match cause.as_ref() {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => format!("syntax error: {text}"),
            ParserError::RecursionLimitExceeded => "the statement is nested too deeply".to_owned(),
        },
        _ => root.strip_backtrace(),
    };
    let message = text.split("\n\n").next().unwrap_or(&text).trim().replace('\n', " ");
    error(kind, sqlstate, message, hint)
}
