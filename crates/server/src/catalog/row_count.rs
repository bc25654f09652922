//! Counts the rows of scans that must hand out all that the footers of their Parquet files speak
//! of: a page with fewer values than its footer says ends a column early, and the engine takes that
//! for the end of the rows.
//!
//! Scans with a filter or a limit pass over rows rightly, and are not counted.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_datafusion_err};
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::future::ready;
use futures::{StreamExt, stream};

use crate::plan_rule::PlanRule;

/// Puts [`WholeScanExec`] on top of scans that hand out all rows of Parquet files.
pub(super) const COUNT_WHOLE_SCANS: PlanRule =
    PlanRule { name: "count_whole_scans", replace: counted };

fn counted(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(rows_of_all(plan).map(|rows| Arc::new(WholeScanExec::new(Arc::clone(plan), rows)) as _))
}

/// How many rows a scan must have, if it is one of all rows of Parquet files.
fn rows_of_all(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let (scan, source) =
        plan.downcast_ref::<DataSourceExec>()?.downcast_to_file_source::<ParquetSource>()?;
    if source.filter().is_some() || scan.limit.is_some() {
        return None;
    }
    let statistics =
        StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    let rows = statistics.num_rows;
    rows.get_value().filter(|_| rows.is_exact() == Some(true)).map(|rows| *rows as u64)
}

/// Hands on its input, and fails at the end if rows were missing, or too many.
#[derive(Debug)]
struct WholeScanExec {
    input: Arc<dyn ExecutionPlan>,
    rows: u64,
    run: Arc<Mutex<Run>>,
}

/// One run of all partitions.
#[derive(Debug, Default)]
struct Run {
    rows: u64,
    started: usize,
    ended: usize,
}

impl WholeScanExec {
    fn new(input: Arc<dyn ExecutionPlan>, rows: u64) -> Self {
        Self { input, rows, run: Arc::default() }
    }

    fn partitions(&self) -> usize {
        self.input.output_partitioning().partition_count()
    }
}

fn change<T>(run: &Mutex<Run>, change: impl FnOnce(&mut Run) -> T) -> T {
    change(&mut run.lock().unwrap_or_else(PoisonError::into_inner))
}

impl ExecutionPlan for WholeScanExec {
    fn name(&self) -> &'static str {
        "WholeScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(Self::new(input, self.rows))),
            _ => Err(DataFusionError::Internal("a scan's count has one input".to_owned())),
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
        let batches = self.input.execute(partition, context)?;
        let (expected, partitions) = (self.rows, self.partitions());
        change(&self.run, |run| run.started += 1);
        let (counting, ending) = (Arc::clone(&self.run), Arc::clone(&self.run));
        let counted = batches.inspect(move |batch| {
            if let Ok(batch) = batch {
                change(&counting, |run| run.rows += batch.num_rows() as u64);
            }
        });
        // Partitions take files from each other, so only all of them together have all rows.
        let end = stream::once(async move {
            change(&ending, |run| {
                run.ended += 1;
                // A plan that runs twice at the same time is not counted.
                let is_over = run.ended == partitions && run.started == partitions;
                (is_over && run.rows != expected).then(|| missing(run.rows, expected))
            })
        });
        let checked = counted.chain(end.filter_map(|error| ready(error.map(Err))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), checked)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let [input] = inputs else {
            return Err(DataFusionError::Internal("a scan's count has one input".to_owned()));
        };
        Ok(Arc::clone(input))
    }
}

fn missing(rows: u64, expected: u64) -> DataFusionError {
    exec_datafusion_err!(
        "the footers of these Parquet files say that they have {expected} rows, and their pages have {rows}; write the \
         files anew"
    )
}

impl DisplayAs for WholeScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WholeScanExec: rows={}", self.rows)
    }
}
