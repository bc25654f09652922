//! `ORDER BY` with Dray's sort: an optimizer rule, and the operator that it puts into plans.
//! [`FileSort`] puts the same operator on top of files.
//!
//! ```text
//!   SortPreservingMergeExec
//!     SortExec, for each partition    ──▶     ExternalSortExec, all partitions into one
//!       input                                   input
//! ```
//!
//! The engine's sort stays if it has a limit (its TopK keeps only the rows to return), if it sorts
//! each partition without a merge, and if a column has a type that Dray doesn't support.

mod decimals;
mod files;
mod footprint;
mod memory;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use dray_format::arrow::{RetainedMemory, batch_to_arrow, schema_from_arrow};

use dray_sort::{Cancel, Options, SortColumn, Sorted, Sorter, SpillSpace, Writer};
pub use dray_sort::{Distinct, OrderBy};

use futures::StreamExt;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinError;

pub use self::decimals::widen_array;
pub use self::files::{FileSort, SortError, SortedFiles};
use self::memory::PoolMemory;
use crate::engine::batches;
use crate::plan_rule::PlanRule;

/// The sequence numbers that each partition has, so that numbers rise in the order of the
/// partitions.
const PARTITION_BATCHES_MAX: u64 = 1 << 24;
/// Batches of the result that wait for the consumer.
const OUTPUT_BATCHES_MAX: usize = 2;

/// Replaces full sorts by [`ExternalSortExec`].
pub(crate) const SORT_EXTERNALLY: PlanRule =
    PlanRule { name: "sort_externally", replace: replace_sort };

/// The replacement of an operator that ends a full sort.
fn replace_sort(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        if merge.fetch().is_some() {
            return Ok(None);
        }
        let Some(sorted) = replace_input(merge.input(), SortScope::Partitions)? else {
            return Ok(None);
        };
        let is_sorted =
            sorted.equivalence_properties().ordering_satisfy(merge.expr().iter().cloned())?;
        return Ok(is_sorted.then_some(sorted));
    }
    replace_input(plan, SortScope::All)
}

/// Which sorts may be replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SortScope {
    /// Only a sort of all rows together.
    All,
    /// Also a sort of each partition by itself, because a merge follows. Projections may stand
    /// between the sort and the merge.
    Partitions,
}

/// The plan with its sort replaced by [`ExternalSortExec`].
fn replace_input(
    plan: &Arc<dyn ExecutionPlan>,
    scope: SortScope,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if scope == SortScope::Partitions && plan.downcast_ref::<ProjectionExec>().is_some() {
        let Some(sorted) =
            plan.children().first().map_or(Ok(None), |input| replace_input(input, scope))?
        else {
            return Ok(None);
        };
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return plan.clone().replace_children(vec![sorted], options).map(Some);
    }
    let Some(sort) = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else {
        return Ok(None);
    };
    let is_full = scope == SortScope::Partitions
        || !sort.preserve_partitioning()
        || sort.input().output_partitioning().partition_count() == 1;
    // If a type is not supported, the engine's sort remains.
    let sorted =
        is_full.then(|| ExternalSortExec::try_new(sort.expr().clone(), sort.input().clone()));
    Ok(sorted.and_then(Result::ok).map(|sort| Arc::new(sort) as _))
}

/// Sorts the rows of all partitions, in memory and on disk.
#[derive(Debug, Clone)]
struct ExternalSortExec {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
    /// The input's columns, followed by those computed from `computed`.
    sorted: dray_format::Schema,
    by: Vec<SortColumn>,
    /// The sort expressions that are not columns.
    computed: Vec<Arc<dyn PhysicalExpr>>,
    request: SortRequest,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    rows_read: Arc<AtomicU64>,
}

/// What a sort does besides ordering rows.
#[derive(Debug, Clone, Copy, Default)]
struct SortRequest {
    distinct: Distinct,
    /// Maximum rows to return; None is unlimited.
    limit: Option<u64>,
    /// Partitions to read at a time; None is all, since the partitions of a query may depend on
    /// each other's progress.
    partitions_at_a_time: Option<usize>,
}

impl ExternalSortExec {
    /// Fails if a column has a type that Dray's sort doesn't support.
    fn try_new(ordering: LexOrdering, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        let (mut by, mut computed) = (Vec::new(), Vec::new());
        for PhysicalSortExpr { expr, options } in &ordering {
            let column = match expr.downcast_ref::<Column>() {
                Some(column) => column.index(),
                None => {
                    let (data_type, nullable) = (expr.data_type(&schema)?, expr.nullable(&schema)?);
                    fields.push(Arc::new(Field::new(
                        format!("by {}", by.len()),
                        data_type,
                        nullable,
                    )));
                    computed.push(expr.clone());
                    fields.len() - 1
                }
            };
            by.push(SortColumn {
                column,
                descending: options.descending,
                nulls_first: options.nulls_first,
            });
        }
        let sorted = schema_from_arrow(&ArrowSchema::new(fields)).map_err(external)?;
        Sorter::check_schema(&sorted).map_err(sort_error)?;
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.reorder(ordering.clone())?;
        let one = Partitioning::UnknownPartitioning(1);
        let properties =
            PlanProperties::new(equivalences, one, EmissionType::Final, input.boundedness());
        Ok(Self {
            input,
            ordering,
            sorted,
            by,
            computed,
            request: SortRequest::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            rows_read: Arc::default(),
        })
    }

    fn with_request(self, request: SortRequest) -> Self {
        Self { request, ..self }
    }

    fn rows_read(&self) -> u64 {
        self.rows_read.load(Ordering::Relaxed)
    }

    /// The columns of a batch and those computed from it. See [`batches`] for why there may be
    /// several batches.
    fn sorted_batches(&self, batch: RecordBatch) -> Result<Vec<(RecordBatch, dray_format::Batch)>> {
        if self.computed.is_empty() {
            return batches(batch).map_err(external);
        }
        let mut fields: Vec<_> = batch.schema_ref().fields().iter().cloned().collect();
        let mut arrays: Vec<ArrayRef> = batch.columns().to_vec();
        for expr in &self.computed {
            let array = expr.evaluate(&batch)?.into_array(batch.num_rows())?;
            fields.push(Arc::new(Field::new("by", array.data_type().clone(), true)));
            arrays.push(array);
        }
        batches(RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays)?).map_err(external)
    }

    /// Reads all rows of a partition.
    async fn read(
        self: Arc<Self>,
        partition: usize,
        mut batches: SendableRecordBatchStream,
        mut writer: Writer,
        retained: Arc<Mutex<RetainedMemory>>,
    ) -> Result<()> {
        let mut sequence = partition as u64 * PARTITION_BATCHES_MAX;
        while let Some(batch) = batches.next().await {
            for (arrays, mut batch) in self.sorted_batches(batch?)? {
                let retained_bytes = lock(&retained).add(&arrays, &mut batch).map_err(external)?;
                writer.append_retaining(sequence, &batch, retained_bytes).map_err(sort_error)?;
                self.rows_read.fetch_add(batch.rows as u64, Ordering::Relaxed);
                sequence += 1;
                debug_assert!(sequence / PARTITION_BATCHES_MAX == partition as u64);
            }
        }
        writer.finish().map_err(sort_error)
    }

    /// Sorts all partitions, and sends the result batch by batch.
    async fn run(
        self: Arc<Self>,
        context: Arc<TaskContext>,
        sorter: Sorter,
        output: Output,
    ) -> Result<()> {
        let mut partitions = JoinSet::new();
        let retained = Arc::new(Mutex::new(RetainedMemory::new(sorter.surplus_bytes_max())));
        for partition in 0..self.input.output_partitioning().partition_count() {
            if self.request.partitions_at_a_time.is_some_and(|max| partitions.len() >= max)
                && let Some(ended) = partitions.join_next().await
            {
                join(ended)?;
            }
            let batches = self.input.execute(partition, context.clone())?;
            partitions.spawn(self.clone().read(
                partition,
                batches,
                sorter.writer(),
                retained.clone(),
            ));
        }
        while let Some(ended) = partitions.join_next().await {
            join(ended)?;
        }
        let schema = self.schema();
        join(SpawnedTask::spawn_blocking(move || output.send(sorter, &schema)).join_unwind().await)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a task that was joined.
fn join<T>(ended: std::result::Result<Result<T>, JoinError>) -> Result<T> {
    ended.map_err(|cause| DataFusionError::ExecutionJoin(Box::new(cause)))?
}

/// Where the result goes, and the metrics to update.
struct Output {
    out: Sender<Result<RecordBatch>>,
    baseline: BaselineMetrics,
    spilled_bytes: Count,
    /// Threads that merge.
    threads: usize,
}

impl Output {
    fn send(self, sorter: Sorter, schema: &SchemaRef) -> Result<()> {
        let time = self.baseline.elapsed_compute().timer();
        let sorted: Sorted = sorter.finish(self.threads).map_err(sort_error)?;
        self.spilled_bytes.add(usize::try_from(sorted.spilled_bytes()).unwrap_or(usize::MAX));
        drop(time);
        for batch in sorted {
            let time = self.baseline.elapsed_compute().timer();
            let mut batch = batch.map_err(sort_error)?;
            batch.columns.truncate(schema.fields().len());
            let batch = batch_to_arrow(batch, schema).map_err(external)?;
            self.baseline.output_rows().add(batch.num_rows());
            drop(time);
            if self.out.blocking_send(Ok(batch)).is_err() {
                // The consumer is gone.
                return Ok(());
            }
        }
        self.baseline.done();
        Ok(())
    }
}

/// Cancels a sort when its consumer is gone.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ExecutionPlan for ExternalSortExec {
    fn name(&self) -> &'static str {
        "ExternalSortExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(
            self.ordering.iter().map(|sort| &sort.expr),
            f,
        )
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(
                Self::try_new(self.ordering.clone(), input)?.with_request(self.request),
            )),
            _ => Err(DataFusionError::Internal("a sort has one input".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let cancel = Cancel::default();
        let runtime = context.runtime_env();
        let memory = PoolMemory::new(&runtime.memory_pool);
        let options = Options {
            spill_folder: spill_folder(&runtime),
            spill_space: context
                .session_config()
                .get_extension()
                .unwrap_or_else(|| SpillSpace::new(u64::MAX)),
            limit: self.request.limit,
            distinct: self.request.distinct,
            cancel: cancel.clone(),
            ..Options::new(self.by.clone(), Arc::new(memory))
        };
        let sorter = Sorter::new(self.sorted.clone(), options).map_err(sort_error)?;
        let mut stream = RecordBatchReceiverStream::builder(self.schema(), OUTPUT_BATCHES_MAX);
        let output = Output {
            out: stream.tx(),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            spilled_bytes: MetricBuilder::new(&self.metrics).spilled_bytes(partition),
            threads: context.session_config().target_partitions(),
        };
        let sort = Arc::new(self.clone());
        stream.spawn(async move {
            let _cancel = CancelOnDrop(cancel);
            sort.run(context, sorter, output).await
        });
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for ExternalSortExec {
    fn fmt_as(&self, kind: DisplayFormatType, out: &mut fmt::Formatter) -> fmt::Result {
        match kind {
            DisplayFormatType::TreeRender => writeln!(out, "{}", self.ordering),
            _ => write!(out, "ExternalSortExec: expr=[{}]", self.ordering),
        }
    }
}

/// The folder to spill to; None if spilling is disabled.
fn spill_folder(runtime: &RuntimeEnv) -> Option<PathBuf> {
    let disk = &runtime.disk_manager;
    // The engine creates its folder in the system's folder when it first spills.
    disk.tmp_files_enabled()
        .then(|| disk.temp_dir_paths().into_iter().next().unwrap_or_else(std::env::temp_dir))
}

fn external(cause: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(cause))
}

fn sort_error(cause: dray_sort::Error) -> DataFusionError {
    use dray_sort::Error;
    match cause {
        Error::Memory { .. } | Error::SpillLimit { .. } | Error::Spill { .. } => {
            DataFusionError::ResourcesExhausted(cause.to_string())
        }
        cause => external(cause),
    }
}
