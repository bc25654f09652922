//! Limits of planning.
//!
//! A statement of a few hundred bytes can keep the engine's parser or one of its rules busy for
//! years, or take all memory, and the engine offers no way to stop it. So its inputs are bounded,
//! each step first checks for a cancel, and planning has a timeout.
//!
//! ```text
//!   text ──▶ tokens ──▶ tree ──▶ logical plan ──▶ optimized ──▶ physical plan
//!   bytes    count      depth    operators, depth, expressions
//!   └──── [`parse`] ────────┘    └── [`CheckedRule`], before each rule ──┘
//! ```

mod parse;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{Analyzer, AnalyzerRule, OptimizerConfig, OptimizerRule};
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::Notify;

use crate::engine::error;

pub(crate) use parse::{Bounds, parse};

/// Maximum number of operators of a plan. Those of a query that is used twice count twice.
const OPERATORS_MAX: usize = 10_000;
/// Maximum depth of a plan. The planner, the optimizer and the operators recurse over it.
const DEPTH_MAX: usize = 1_000;
/// Maximum number of expressions of an operator, counted with their subexpressions.
const EXPRESSIONS_MAX: usize = 500_000;

/// A statement that is being planned.
#[derive(Debug)]
pub(crate) struct Planning {
    cancelled: AtomicBool,
    /// Wakes [`Planning::cancelled`].
    cancel: Notify,
    /// Whether planning has ended. The timeout does not cover what follows.
    finished: AtomicBool,
    /// Why the statement was refused. The engine wraps the error that it receives beyond
    /// recognition, so the original is here.
    refusal: OnceLock<ServerError>,
}

thread_local! {
    /// The statement that this thread plans. The engine doesn't pass it to the rules.
    static CURRENT: RefCell<Option<Arc<Planning>>> = const { RefCell::new(None) };
}

/// Cancels planning when its result is no longer needed.
pub(crate) struct CancelOnDrop(pub(crate) Arc<Planning>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
        self.0.cancel.notify_one();
    }
}

/// Resets what [`Planning::enter`] set.
pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

impl Planning {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
            finished: AtomicBool::new(false),
            refusal: OnceLock::new(),
        })
    }

    /// Makes this the planning that rules on this thread check, until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        CURRENT.set(Some(self.clone()));
        Entered
    }

    /// Why the statement was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<ServerError> {
        self.refusal.get().cloned()
    }

    fn refuse(&self, refusal: ServerError) -> DataFusionError {
        let message = refusal.message.clone();
        // The first reason counts.
        let _ = self.refusal.set(refusal);
        DataFusionError::Plan(message)
    }

    fn too_complex(&self, what: String) -> DataFusionError {
        let hint =
            "split the statement, or write what its parts have in common to a file and serve it";
        self.refuse(error(ErrorKind::Limit, "54001", what, hint))
    }

    /// Fails if planning was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(self.refuse(cancelled())),
            false => Ok(()),
        }
    }

    /// Waits until planning is cancelled.
    pub(crate) async fn cancelled(&self) -> ServerError {
        self.cancel.notified().await;
        cancelled()
    }

    /// Ends planning, and with it its timeout.
    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    /// Waits until planning has taken longer than `timeout`.
    pub(crate) async fn timed_out(&self, timeout: Duration) {
        tokio::time::sleep(timeout).await;
        if self.finished.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    /// Fails if a plan is too large to be optimized.
    pub(crate) fn check_plan(&self, plan: &LogicalPlan) -> Result<()> {
        let mut size = PlanSize { planning: self, operators: 0, depth: 0 };
        size.add(plan)
    }

    /// Fails if an operator has too many expressions.
    fn check_operator(&self, plan: &LogicalPlan) -> Result<()> {
        let mut count = 0;
        plan.apply_expressions(|expr| {
            expr.apply(|_| {
                count += 1;
                Ok(if count > EXPRESSIONS_MAX {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })?;
        if count <= EXPRESSIONS_MAX {
            return Ok(());
        }
        let what = "an operator of the statement's plan has more than";
        Err(self.too_complex(format!("{what} {EXPRESSIONS_MAX} expressions and subexpressions")))
    }
}

fn cancelled() -> ServerError {
    error(ErrorKind::Cancelled, "57014", "the statement was stopped", "")
}

/// The size of the visited part of a plan.
struct PlanSize<'a> {
    planning: &'a Planning,
    operators: usize,
    depth: usize,
}

impl PlanSize<'_> {
    fn add(&mut self, plan: &LogicalPlan) -> Result<()> {
        self.planning.check_operator(plan)?;
        (self.operators, self.depth) = (self.operators + 1, self.depth + 1);
        if self.operators > OPERATORS_MAX {
            let what = "the statement's plan has more than";
            let again = "a query that is used twice is planned twice";
            return Err(self
                .planning
                .too_complex(format!("{what} {OPERATORS_MAX} operators: {again}")));
        }
        if self.depth > DEPTH_MAX {
            let what = "the statement's plan is more than";
            return Err(self.planning.too_complex(format!("{what} {DEPTH_MAX} operators deep")));
        }
        let mut added = Ok(());
        let mut add = |below: &LogicalPlan| {
            added = self.add(below);
            Ok(if added.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        };
        if plan.apply_subqueries(&mut add)? != TreeNodeRecursion::Stop {
            for below in plan.inputs() {
                if add(below)? == TreeNodeRecursion::Stop {
                    break;
                }
            }
        }
        debug_assert!(self.depth > 0);
        self.depth -= 1;
        added
    }
}

/// The session with rules that check the limits first.
pub(crate) fn with_checked_rules(state: SessionState) -> SessionState {
    let analyzer = state
        .analyzer()
        .rules
        .iter()
        .map(|rule| Arc::new(CheckedAnalyzerRule(rule.clone())) as _)
        .collect();
    let optimizer =
        state.optimizers().iter().map(|rule| Arc::new(CheckedRule(rule.clone())) as _).collect();
    let analyzer = Analyzer { rules: analyzer, ..state.analyzer().clone() };
    let mut builder = SessionStateBuilder::new_from_existing(state).with_optimizer_rules(optimizer);
    *builder.analyzer() = Some(analyzer);
    builder.build()
}

/// Checks the planning of this thread, if the engine plans for a statement.
fn check_current(check: impl FnOnce(&Planning) -> Result<()>) -> Result<()> {
    CURRENT.with_borrow(|planning| planning.as_deref().map_or(Ok(()), check))
}

/// An optimizer rule that fails on plans that are too large, and after a cancel.
#[derive(Debug)]
struct CheckedRule(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for CheckedRule {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        check_current(|planning| planning.check().and_then(|()| planning.check_operator(&plan)))?;
        self.0.rewrite(plan, config)
    }
}

/// The same for analyzer rules.
#[derive(Debug)]
struct CheckedAnalyzerRule(Arc<dyn AnalyzerRule + Send + Sync>);

impl AnalyzerRule for CheckedAnalyzerRule {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check_current(Planning::check)?;
        self.0.analyze(plan, config)
    }
}
