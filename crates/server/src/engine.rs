//! The query engine's part of a statement: SQL to a plan, a plan to streams of batches.

mod divide;
mod parts;
mod plan_cache;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::metadata::{FieldMetadata, ScalarAndMetadata};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, ParamValues, ScalarValue, Statistics};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use dray_format::arrow::{
    Decoder, StringLayout, batch_from_arrow, schema_from_arrow, without_order,
};
use dray_format::{Batch, ErrorKind as FormatErrorKind, Schema, Type};
use dray_wire::{ErrorKind, Estimate, Known, Query, ServerError};

pub(crate) use self::parts::{Division, Portion, plan_part, plan_parts};
use self::plan_cache::PlanCache;
use crate::arrow_batch_size::batch_bytes_max;
use crate::catalog::{MEMORY_BATCH_ROWS, query_options};
use crate::planning::{self, Planning};
use crate::{dialect, error_text, functions};

/// A plan is small if its scans read at most this many rows.
const SMALL_INPUT_ROWS: usize = 1000;

/// The result of a small plan is assumed to have at most this size.
const SMALL_RESULT_BYTES: u64 = 1 << 20;

/// Record batches of Arrow files up to this size need no admission.
const SMALL_BATCH_BYTES: u64 = 4 << 20;

/// Operators that buffer their input.
const BUFFERING_OPERATORS: [&str; 12] = [
    "AggregateExec",
    "BoundedWindowAggExec",
    "CrossJoinExec",
    "ExternalSortExec",
    "HashJoinExec",
    "NestedLoopJoinExec",
    "PiecewiseMergeJoinExec",
    "RecursiveQueryExec",
    "SortExec",
    "SortMergeJoinExec",
    "SymmetricHashJoinExec",
    "WindowAggExec",
];

/// The session that all statements share: tables, functions and rules.
pub(crate) struct Engine {
    context: SessionContext,
    /// Statements can't change settings, so they share the task context.
    task: Arc<TaskContext>,
    /// The task context of plans that only pass on tables in memory: with the tables' batch size,
    /// each batch is passed on whole, not as eight slices. Other plans don't use it, since a sort
    /// would hold several such batches for each run that it merges.
    large_batches: Arc<TaskContext>,
    /// The task context of parts of plans: no partition takes the work of another.
    of_parts: Arc<TaskContext>,
    plans: PlanCache,
}

impl Engine {
    pub(crate) fn new(context: &SessionContext) -> Self {
        let context = dialect::install(context);
        functions::install_limits(&context);
        // Last, so that it covers all rules.
        let state = planning::with_checked_rules(context.state());
        let context = SessionContext::new_with_state(state.clone());
        let task = |config| Arc::new(TaskContext::from(&state).with_session_config(config));
        let large_batches = task(state.config().clone().with_batch_size(MEMORY_BATCH_ROWS));
        let of_parts = task(parts::without_sharing(state.config().clone()));
        let plans = PlanCache::default();
        Self { task: context.task_ctx(), large_batches, of_parts, plans, context }
    }

    /// The memory of all statements.
    pub(crate) fn memory_pool(&self) -> Arc<dyn MemoryPool> {
        self.context.runtime_env().memory_pool.clone()
    }

    /// The names of the served tables, sorted.
    fn table_names(&self) -> Vec<String> {
        let catalogs =
            self.context.catalog_names().into_iter().filter_map(|name| self.context.catalog(&name));
        let schemas = catalogs.filter_map(|catalog| catalog.schema("public"));
        let mut names: Vec<String> = schemas.flat_map(|schema| schema.table_names()).collect();
        names.sort_unstable();
        names
    }

    /// The plan of a statement that came before, if running it takes microseconds. The plan is for
    /// one run.
    pub(crate) fn trivial_plan(&self, query: &Query) -> Result<Option<Plan>, ServerError> {
        self.plans.get_trivial(query)
    }

    fn task_for(&self, plan: &dyn ExecutionPlan) -> Arc<TaskContext> {
        if passes_on_memory(plan) { self.large_batches.clone() } else { self.task.clone() }
    }
}

/// Whether a plan's batches are those of tables in memory, or share their buffers.
fn passes_on_memory(plan: &dyn ExecutionPlan) -> bool {
    match plan.name() {
        "DataSourceExec" => scans_memory(plan),
        "CoalescePartitionsExec"
        | "CooperativeExec"
        | "GlobalLimitExec"
        | "LocalLimitExec"
        | "ProjectionExec"
        | "UnionExec" => plan.children().into_iter().all(|child| passes_on_memory(child.as_ref())),
        _ => false,
    }
}

/// Whether an operator is the scan of a table in memory.
fn scans_memory(operator: &dyn ExecutionPlan) -> bool {
    operator
        .downcast_ref::<DataSourceExec>()
        .is_some_and(|scan| scan.data_source().downcast_ref::<MemorySourceConfig>().is_some())
}

/// A planned statement.
#[derive(Clone)]
pub(crate) struct Plan {
    /// The columns of the result.
    pub(crate) schema: Arc<Schema>,
    /// The expected size of the result.
    pub(crate) estimate: Estimate,
    /// The names of the tables that it reads, sorted.
    pub(crate) tables: Arc<[String]>,
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    is_small: bool,
    /// The partitions to run; None for all.
    partitions: Option<Range<usize>>,
}

/// Plans a statement without running it. The plan is for one run.
pub(crate) async fn plan(
    engine: &Engine,
    query: &Query,
    planning: &Arc<Planning>,
) -> Result<Plan, ServerError> {
    if let Some(plan) = engine.plans.get(query)? {
        return Ok(plan);
    }
    let _entered = planning.enter();
    let planned = functions::while_planning(create_plan(engine, query, planning)).await;
    planned.map_err(|error| planning.refusal().unwrap_or(error))
}

async fn create_plan(
    engine: &Engine,
    query: &Query,
    planning: &Arc<Planning>,
) -> Result<Plan, ServerError> {
    let Analyzed { state, logical, is_immutable } = analyze(engine, query, planning).await?;
    let plan = physical_plan(engine, &state, &logical, planning).await?;
    let task = engine.task_for(plan.as_ref());
    let plan = describe(engine, &logical, plan, task)?;
    if is_immutable {
        engine.plans.insert(query, &plan);
    }
    Ok(plan)
}

/// A statement whose names are resolved, with the values of its parameters.
struct Analyzed {
    state: SessionState,
    logical: LogicalPlan,
    /// Whether its functions depend on their arguments alone.
    is_immutable: bool,
}

async fn analyze(
    engine: &Engine,
    query: &Query,
    planning: &Arc<Planning>,
) -> Result<Analyzed, ServerError> {
    let query_error = |cause| error_text::planning_error(&cause, || engine.table_names());
    // A new state for each statement, since it holds the time of `now()`.
    let state = engine.context.state();
    let statement = planning::parse(&state, &query.sql, planning).await.map_err(query_error)?;
    let mut logical = dialect::logical_plan(&state, statement).await.map_err(query_error)?;
    planning.check_plan(&logical).map_err(query_error)?;
    query_options().verify_plan(&logical).map_err(query_error)?;
    let values = parameters(query)?;
    let names = logical.get_parameter_names().map_err(query_error)?;
    check_value_count(&names, values.as_ref().map_or(0, Vec::len))?;
    if let Some(values) = values {
        logical = logical.with_param_values(ParamValues::List(values)).map_err(query_error)?;
    }
    let is_immutable = plan_cache::is_immutable(&logical).map_err(query_error)?;
    Ok(Analyzed { state, logical, is_immutable })
}

async fn physical_plan(
    engine: &Engine,
    state: &SessionState,
    logical: &LogicalPlan,
    planning: &Arc<Planning>,
) -> Result<Arc<dyn ExecutionPlan>, ServerError> {
    let query_error = |cause| error_text::planning_error(&cause, || engine.table_names());
    let optimized = state.optimize(logical).map_err(query_error)?;
    planning.check_plan(&optimized).map_err(query_error)?;
    let plan =
        state.query_planner().create_physical_plan(&optimized, state).await.map_err(query_error)?;
    planning.check().map_err(query_error)?;
    Ok(plan)
}

/// What is known of a plan's result and costs.
fn describe(
    engine: &Engine,
    logical: &LogicalPlan,
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<Plan, ServerError> {
    let query_error = |cause| error_text::planning_error(&cause, || engine.table_names());
    // A sort makes new dictionaries.
    let (physical, is_sorted) = (plan.schema(), sorts(&plan));
    let schema = if is_sorted { without_order(&physical).into() } else { physical };
    let mut schema = schema_from_arrow(&schema).map_err(|cause| {
        error(ErrorKind::Query, "0A000", cause.to_string(), "cast the column in the query")
    })?;
    // The physical plan's schema loses whether a dictionary is ordered.
    for (field, known) in schema.fields.iter_mut().zip(logical.schema().fields()) {
        if let Type::Dictionary { ordered, .. } = &mut field.data_type {
            *ordered = known.dict_is_ordered() == Some(true) && !is_sorted;
        }
    }
    for field in &mut schema.fields {
        field.name.truncate(dialect::names::original(&field.name).len());
    }
    let estimate = match StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()) {
        Ok(statistics) => estimate(&statistics),
        Err(_) => Estimate::default(),
    };
    let is_small = is_small(&plan);
    let (schema, tables) = (Arc::new(schema), tables(logical).map_err(query_error)?);
    Ok(Plan { schema, estimate, tables, plan, task, is_small, partitions: None })
}

/// The names of the tables that a plan reads, sorted.
fn tables(plan: &LogicalPlan) -> datafusion::common::Result<Arc<[String]>> {
    let mut tables = BTreeSet::new();
    plan.apply_with_subqueries(|operator| {
        if let LogicalPlan::TableScan(scan) = operator {
            tables.insert(scan.table_name.to_string());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables.into_iter().collect())
}

/// Whether rows of a plan are sorted.
fn sorts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    ["ExternalSortExec", "SortExec"].contains(&plan.name())
        || plan.children().into_iter().any(sorts)
}

/// Whether a plan reads so few rows that a switch to another thread would take longer.
fn is_small(plan: &Arc<dyn ExecutionPlan>) -> bool {
    fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
        match plan.children()[..] {
            [] => {
                let statistics =
                    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
                statistics
                    .num_rows
                    .get_value()
                    .copied()
                    .filter(|_| statistics.num_rows.is_exact() == Some(true))
            }
            ref children => {
                children.iter().try_fold(0, |sum: usize, child| sum.checked_add(rows(child)?))
            }
        }
    }
    rows(plan).is_some_and(|rows| rows <= SMALL_INPUT_ROWS)
}

impl Plan {
    /// Starts the plan: one stream for each partition. Dropping the streams stops it.
    pub(crate) fn execute(&self) -> Result<Vec<SendableRecordBatchStream>, ServerError> {
        let streams = match self.partitions.clone() {
            None => execute_stream_partitioned(self.plan.clone(), self.task.clone()),
            Some(some) => some.map(|one| self.plan.execute(one, self.task.clone())).collect(),
        };
        streams.map_err(execution_error)
    }

    /// The number of threads that the plan may use.
    pub(crate) fn threads(&self) -> usize {
        self.task.session_config().target_partitions()
    }

    /// Whether the plan reads few rows.
    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Whether the plan has operators that buffer rows, and is not small.
    pub(crate) fn buffers_rows(&self) -> bool {
        fn buffers(plan: &Arc<dyn ExecutionPlan>) -> bool {
            BUFFERING_OPERATORS.contains(&plan.name()) || plan.children().into_iter().any(buffers)
        }
        buffers(&self.plan) && !self.is_small()
    }

    /// The bytes of Arrow record batches in memory at a time; 0 if they are small.
    pub(crate) fn scan_bytes(&self) -> u64 {
        let (bytes, _) = batch_bytes_max(&self.plan).unwrap_or_default();
        if bytes <= SMALL_BATCH_BYTES { 0 } else { bytes }
    }

    /// The bytes of the result in memory at a time, if chunks and queues hold at most
    /// `buffer_bytes`.
    pub(crate) fn result_bytes_max(&self, buffer_bytes: u64) -> u64 {
        match self.estimate.bytes {
            Known::Exact(bytes) => buffer_bytes.min(bytes),
            _ if self.is_small() => buffer_bytes.min(SMALL_RESULT_BYTES),
            _ => buffer_bytes,
        }
    }

    /// Rows that the plan has read so far: the output of its scans, or, for scans of tables in
    /// memory, which have no metrics, the output of the operator above.
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

/// Batches that share the buffers of a record batch, each with the part of the record batch that it
/// was made from. There are several if the strings of a column are too long for one.
pub(crate) fn batches(
    arrays: RecordBatch,
) -> Result<Vec<(RecordBatch, Batch)>, dray_format::Error> {
    match batch_from_arrow(&arrays) {
        Err(error) if error.kind() == FormatErrorKind::Limit && arrays.num_rows() > 1 => {
            let half = arrays.num_rows() / 2;
            let mut first = batches(arrays.slice(0, half))?;
            first.append(&mut batches(arrays.slice(half, arrays.num_rows() - half))?);
            Ok(first)
        }
        other => other.map(|batch| vec![(arrays, batch)]),
    }
}

/// Fails if the number of values doesn't match the statement's parameters. Surplus values are
/// refused too, because they are probably a mistake.
fn check_value_count(names: &HashSet<String>, given: usize) -> Result<(), ServerError> {
    let hint = "give one value for each of $1, $2, …";
    let message = match names.iter().filter_map(|name| name.strip_prefix('$')?.parse().ok()).max() {
        _ if given == 0 && !names.is_empty() => {
            format!("the statement has {} parameters, and no values were given", names.len())
        }
        None if given > 0 => {
            format!("{given} values were given, and the statement has no parameter")
        }
        Some(highest) if given > highest => {
            format!(
                "{given} values were given, and the highest parameter of the statement is \
                 ${highest}"
            )
        }
        _ => return Ok(()),
    };
    Err(error(ErrorKind::Query, "07001", message, hint))
}

/// The values of the query's parameters as a batch of one row; None if it has none.
pub(crate) fn parameter_row(query: &Query) -> Result<Option<RecordBatch>, ServerError> {
    let invalid =
        |cause: String| error(ErrorKind::Protocol, "08P01", format!("the parameters: {cause}"), "");
    let Some((schema, chunk)) = query.parameters().map_err(|cause| invalid(cause.to_string()))?
    else {
        return Ok(None);
    };
    let row = Decoder::new(schema, StringLayout::default()).read(&chunk, &Query::PARAMETER_LIMITS);
    Ok(Some(row.map_err(|cause| invalid(cause.to_string()))?.1))
}

/// The values of the query's parameters; None if it has none.
fn parameters(query: &Query) -> Result<Option<Vec<ScalarAndMetadata>>, ServerError> {
    let Some(row) = parameter_row(query)? else { return Ok(None) };
    let values = row.columns().iter().zip(row.schema_ref().fields()).map(|(column, field)| {
        let value = ScalarValue::try_from_array(column.as_ref() as &dyn Array, 0)?;
        let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(field.as_ref()));
        Ok(ScalarAndMetadata::new(value, metadata))
    });
    let values = values.collect::<Result<Vec<_>, DataFusionError>>();
    Ok(Some(values.map_err(|cause| error_text::planning_error(&cause, Vec::new))?))
}

fn estimate(statistics: &Statistics) -> Estimate {
    let known = |precision: &Precision<usize>| match precision {
        Precision::Exact(value) => Known::Exact(*value as u64),
        Precision::Inexact(value) => Known::Estimate(*value as u64),
        Precision::Absent => Known::Unknown,
    };
    Estimate { rows: known(&statistics.num_rows), bytes: known(&statistics.total_byte_size) }
}

pub(crate) fn error(
    kind: ErrorKind,
    sqlstate: &str,
    message: impl Into<String>,
    hint: &str,
) -> ServerError {
    ServerError {
        statement: 0,
        kind,
        sqlstate: sqlstate.into(),
        message: message.into(),
        hint: hint.into(),
    }
}

/// The error of a statement that failed while it ran.
pub(crate) fn execution_error(cause: DataFusionError) -> ServerError {
    error_text::execution_error(&cause)
}
