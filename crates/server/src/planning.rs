//! Limits of planning. A statement of a few hundred bytes can take the engine's parser or one of
//! its rules longer than anybody lives, and more memory than there is, and the engine can't be
//! asked to stop. So what it is given is bounded, it is asked between any two steps whether there
//! is still somebody who waits, and it is given up after a time.
//!
//! ```text
//!   text ──▶ words ──▶ tree ──▶ logical plan ──▶ optimized ──▶ physical plan
//!    │ bytes   │ count   │ depth    │ nodes, depth   │ nodes
//!    │         │ [`parse`]: the parser may take so many steps, each rule may leave so many expressions: [`Watched`]
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

/// A plan has no more operators than this, those of a query that is used twice counted twice.
const OPERATORS_MAX: usize = 10_000;
/// Nor are more of them on top of each other, which the planner, the optimizer and the operators'
/// own functions follow down by calls.
const DEPTH_MAX: usize = 1_000;
/// And no operator has more expressions, each with its parts.
const EXPRESSIONS_MAX: usize = 500_000;

/// A statement that is being planned.
#[derive(Debug)]
pub(crate) struct Planning {
    stopped: AtomicBool,
    /// Wakes what waits meanwhile.
    stop: Notify,
    /// Whether there is a plan; the rest of its begin is not planning.
    ended: AtomicBool,
    /// Why it can't be planned, whatever the engine makes of the error on its way.
    refusal: OnceLock<ServerError>,
}

thread_local! {
    /// What is being planned on this thread: the engine's rules are not told by it.
    static CURRENT: RefCell<Option<Arc<Planning>>> = const { RefCell::new(None) };
}

/// Stops a planning when nobody waits for it any more.
pub(crate) struct StopOnDrop(pub(crate) Arc<Planning>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.stop.notify_one();
    }
}

/// Ends what [`Planning::begin`] began.
pub(crate) struct OnThisThread;

impl Drop for OnThisThread {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

impl Planning {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            stopped: AtomicBool::new(false),
            stop: Notify::new(),
            ended: AtomicBool::new(false),
            refusal: OnceLock::new(),
        })
    }

    /// From here on rules that run on this thread ask this planning.
    pub(crate) fn begin(self: &Arc<Self>) -> OnThisThread {
        CURRENT.set(Some(self.clone()));
        OnThisThread
    }

    /// Why it was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<ServerError> {
        self.refusal.get().cloned()
    }

    fn refuse(&self, refusal: ServerError) -> DataFusionError {
        let message = refusal.message.clone();
        // The first reason is the one that counts.
        let _ = self.refusal.set(refusal);
        DataFusionError::Plan(message)
    }

    fn too_complex(&self, what: String) -> DataFusionError {
        let hint =
            "split the statement, or keep what parts of it have in common in a file that is served";
        self.refuse(error(ErrorKind::Limit, "54001", what, hint))
    }

    /// Fails when nobody waits any more.
    pub(crate) fn check(&self) -> Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(self.refuse(stopped())),
            false => Ok(()),
        }
    }

    /// Waits until nobody waits any more.
    pub(crate) async fn stopped(&self) -> ServerError {
        self.stop.notified().await;
        stopped()
    }

    /// There is a plan.
    pub(crate) fn ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Waits until the planning has taken too long.
    pub(crate) async fn late(&self, limit: Duration) {
        tokio::time::sleep(limit).await;
        if self.ended.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    /// Fails when a plan is larger than may be optimized.
    pub(crate) fn check_plan(&self, plan: &LogicalPlan) -> Result<()> {
        let mut size = Size { planning: self, operators: 0, depth: 0 };
        size.add(plan)
    }

    /// Fails when an operator has too many expressions.
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
        Err(self.too_complex(format!("{what} {EXPRESSIONS_MAX} expressions, each with its parts")))
    }
}

fn stopped() -> ServerError {
    error(ErrorKind::Cancelled, "57014", "the statement was stopped", "")
}

/// What a plan has so far.
struct Size<'a> {
    planning: &'a Planning,
    operators: usize,
    depth: usize,
}

impl Size<'_> {
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
        self.depth -= 1;
        added
    }
}

/// The session with rules that can be stopped.
pub(crate) fn watched(state: SessionState) -> SessionState {
    let analyzer = state
        .analyzer()
        .rules
        .iter()
        .map(|rule| Arc::new(WatchedAnalyzer(rule.clone())) as _)
        .collect();
    let optimizer =
        state.optimizers().iter().map(|rule| Arc::new(Watched(rule.clone())) as _).collect();
    let analyzer = Analyzer { rules: analyzer, ..state.analyzer().clone() };
    let mut builder = SessionStateBuilder::new_from_existing(state).with_optimizer_rules(optimizer);
    *builder.analyzer() = Some(analyzer);
    builder.build()
}

/// Asks the planning of this thread; there is none where the engine plans for somebody else.
fn ask(check: impl FnOnce(&Planning) -> Result<()>) -> Result<()> {
    CURRENT.with_borrow(|planning| planning.as_deref().map_or(Ok(()), check))
}

/// A rule that is given no more than it can manage, and nothing once the statement was stopped.
#[derive(Debug)]
struct Watched(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Watched {
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
        ask(|planning| planning.check().and_then(|()| planning.check_operator(&plan)))?;
        self.0.rewrite(plan, config)
    }
}

/// The same for the rules before.
#[derive(Debug)]
struct WatchedAnalyzer(Arc<dyn AnalyzerRule + Send + Sync>);

impl AnalyzerRule for WatchedAnalyzer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        ask(Planning::check)?;
        self.0.analyze(plan, config)
    }
}
