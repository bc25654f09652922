//! Checks that full scans of Parquet files return as many rows as their footers declare. If a page
//! has fewer values than its header says, a column ends early, and the engine takes that for the
//! end of the rows.
//!
//! The partitions of a divided scan are checked one by one, since each may be read alone.
//!
//! Scans with a filter or a limit return fewer rows, and are not checked.

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

/// Puts [`RowCountExec`] on top of full scans of Parquet files.
pub(super) const CHECK_ROW_COUNTS: PlanRule =
    PlanRule { name: "check_row_counts", replace: with_row_count };

fn with_row_count(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(full_scan_rows(plan).map(|rows| Arc::new(RowCountExec::new(Arc::clone(plan), rows)) as _))
}

/// The number of rows that a full scan of Parquet files must return; None for other operators.
fn full_scan_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
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

/// Passes on its input, and fails at the end if the number of rows is wrong.
#[derive(Debug)]
pub(crate) struct RowCountExec {
    input: Arc<dyn ExecutionPlan>,
    rows: Rows,
    run: Arc<Mutex<Run>>,
}

/// The expected number of rows.
#[derive(Debug, Clone)]
enum Rows {
    /// Of all partitions together: they may share their work.
    All(u64),
    /// Of each partition.
    Each(Arc<[u64]>),
}

/// One execution of all partitions.
#[derive(Debug, Default)]
struct Run {
    rows: u64,
    started: usize,
    ended: usize,
}

impl RowCountExec {
    fn new(input: Arc<dyn ExecutionPlan>, rows: u64) -> Self {
        Self { input, rows: Rows::All(rows), run: Arc::default() }
    }

    /// Checks each partition of a divided scan.
    pub(crate) fn of_partitions(input: Arc<dyn ExecutionPlan>, rows: Vec<u64>) -> Self {
        debug_assert_eq!(input.output_partitioning().partition_count(), rows.len());
        Self { input, rows: Rows::Each(rows.into()), run: Arc::default() }
    }

    fn partitions(&self) -> usize {
        self.input.output_partitioning().partition_count()
    }
}

fn with_run<T>(run: &Mutex<Run>, change: impl FnOnce(&mut Run) -> T) -> T {
    change(&mut run.lock().unwrap_or_else(PoisonError::into_inner))
}

impl ExecutionPlan for RowCountExec {
    fn name(&self) -> &'static str {
        "RowCountExec"
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
            Some(input) if children.is_empty() => {
                Ok(Arc::new(Self { input, rows: self.rows.clone(), run: Arc::default() }))
            }
            _ => Err(DataFusionError::Internal("RowCountExec has one input".to_owned())),
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
        let (expected, partitions, run) = match &self.rows {
            Rows::All(rows) => (*rows, self.partitions(), Arc::clone(&self.run)),
            Rows::Each(rows) => {
                let rows = rows.get(partition).copied().unwrap_or_default();
                (rows, 1, Arc::default())
            }
        };
        with_run(&run, |run| run.started += 1);
        let (counting, ending) = (Arc::clone(&run), run);
        let counted = batches.inspect(move |batch| {
            if let Ok(batch) = batch {
                with_run(&counting, |run| run.rows += batch.num_rows() as u64);
            }
        });
        // With work stealing, only all partitions together have a known number of rows.
        let end = stream::once(async move {
            with_run(&ending, |run| {
                run.ended += 1;
                // If the plan runs twice at the same time, the count is not checked.
                let is_over = run.ended == partitions && run.started == partitions;
                (is_over && run.rows != expected).then(|| wrong_count(run.rows, expected))
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
            return Err(DataFusionError::Internal("RowCountExec has one input".to_owned()));
        };
        Ok(Arc::clone(input))
    }
}

fn wrong_count(rows: u64, expected: u64) -> DataFusionError {
    exec_datafusion_err!(
        "the footers of these Parquet files declare {expected} rows, and their pages have {rows}; \
         rewrite the files"
    )
}

impl DisplayAs for RowCountExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rows {
            Rows::All(rows) => write!(f, "RowCountExec: rows={rows}"),
            Rows::Each(rows) => write!(f, "RowCountExec: rows={rows:?}"),
        }
    }
}
