//! Plans of short statements, for when the same statement comes again: planning takes longer than
//! running `SELECT 1`.
//!
//! A statement is its text and the values of its parameters. Its plan is kept if
//! - every plan of it would be the same: tables and settings never change while the server runs,
//!   and no function of the statement depends on more than its arguments, as `now()` does;
//! - it can run many times, also at the same time: its operators keep nothing from a run;
//! - it reads its tables when it runs. `SELECT count(*)` over files is answered while it is
//!   planned, which is when the files are checked.
//!
//! A trivial plan takes microseconds, less than a switch to another thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use dray_wire::{Query, ServerError};

use super::{Plan, execution_error, scans_memory};

/// The most plans in the cache.
const PLANS_MAX: usize = 256;
/// Longer statements, with their parameters, are not kept. This also bounds their plans.
const STATEMENT_BYTES_MAX: usize = 2 << 10;
/// Plans of more columns are not kept.
const COLUMNS_MAX: usize = 64;
/// A trivial plan has at most this many expressions, counted with their subexpressions, and scans
/// tables of at most this many bytes.
const TRIVIAL_EXPRESSIONS_MAX: usize = 64;
const TRIVIAL_SCAN_BYTES_MAX: usize = 64 << 10;

/// The operators that keep nothing from a run but metrics. Resetting a plan removes those.
const STATELESS_OPERATORS: [&str; 10] = [
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "EmptyExec",
    "FilterExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "PlaceholderRowExec",
    "ProjectionExec",
    "UnionExec",
];

/// Operators of simple expressions.
const SIMPLE_OPERATORS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::And,
    Operator::Or,
];

/// The plans of statements that came before.
#[derive(Default)]
pub(super) struct PlanCache(Mutex<Plans>);

#[derive(Default)]
struct Plans {
    plans: HashMap<Statement, CachedPlan>,
    /// Counts the uses of plans.
    uses: u64,
}

struct CachedPlan {
    /// It is run by the statement that it was made for. Others get copies.
    plan: Plan,
    is_trivial: bool,
    /// The value of [`Plans::uses`] when it was last used.
    last_use: u64,
}

/// What a plan depends on.
#[derive(PartialEq, Eq, Hash)]
struct Statement {
    sql: String,
    parameters: Vec<u8>,
}

impl Statement {
    /// `None` if the query is too long.
    fn of(query: &Query) -> Option<Self> {
        (query.sql.len() + query.parameters.len() <= STATEMENT_BYTES_MAX)
            .then(|| Self { sql: query.sql.clone(), parameters: query.parameters.clone() })
    }
}

impl PlanCache {
    /// The plan of this statement, if it is kept, ready to be run once.
    ///
    /// # Errors
    /// If the engine can't reset the plan.
    pub(super) fn get(&self, query: &Query) -> Result<Option<Plan>, ServerError> {
        self.get_if(query, |_| true)
    }

    /// The same, if the plan is trivial.
    pub(super) fn get_trivial(&self, query: &Query) -> Result<Option<Plan>, ServerError> {
        self.get_if(query, |cached| cached.is_trivial)
    }

    fn get_if(
        &self,
        query: &Query,
        is_wanted: impl Fn(&CachedPlan) -> bool,
    ) -> Result<Option<Plan>, ServerError> {
        let Some(statement) = Statement::of(query) else { return Ok(None) };
        let Some(plan) = self.lock().get_if(&statement, is_wanted) else { return Ok(None) };
        let reset = reset_plan_states(plan.plan.clone()).map_err(execution_error)?;
        Ok(Some(Plan { plan: reset, ..plan }))
    }

    /// Keeps the plan of an immutable statement, if it is short and stateless.
    pub(super) fn insert(&self, query: &Query, plan: &Plan) {
        if let Some(statement) = Statement::of(query)
            && plan.schema.nodes() <= COLUMNS_MAX
            && is_stateless(plan.plan.as_ref())
            && (plan.tables.is_empty() || !is_answered_by_planning(plan.plan.as_ref()))
        {
            let is_trivial = plan.is_small && is_trivial(&plan.plan);
            self.lock().insert(statement, plan.clone(), is_trivial);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Plans> {
        // A panic leaves at worst a plan too few.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plans {
    fn get_if(
        &mut self,
        statement: &Statement,
        is_wanted: impl Fn(&CachedPlan) -> bool,
    ) -> Option<Plan> {
        let cached = self.plans.get_mut(statement).filter(|cached| is_wanted(cached))?;
        self.uses += 1;
        cached.last_use = self.uses;
        Some(cached.plan.clone())
    }

    fn insert(&mut self, statement: Statement, plan: Plan, is_trivial: bool) {
        if self.plans.len() >= PLANS_MAX {
            let mut uses: Vec<u64> = self.plans.values().map(|cached| cached.last_use).collect();
            // Half of them at a time, so that statements which all differ cost little.
            let (_, median, _) = uses.select_nth_unstable(PLANS_MAX / 2);
            let median = *median;
            self.plans.retain(|_, cached| cached.last_use > median);
        }
        self.uses += 1;
        self.plans.insert(statement, CachedPlan { plan, is_trivial, last_use: self.uses });
        debug_assert!(self.plans.len() <= PLANS_MAX);
    }
}

/// Whether a statement always has the same plan: its functions depend on their arguments alone.
pub(super) fn is_immutable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_immutable = true;
    plan.apply_with_subqueries(|operator| {
        operator.apply_expressions(|expr| {
            expr.apply(|expr| {
                is_immutable &= volatility(expr) == Volatility::Immutable;
                Ok(if is_immutable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })
    })?;
    Ok(is_immutable)
}

fn volatility(expr: &Expr) -> Volatility {
    match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility,
        Expr::AggregateFunction(call) => call.func.signature().volatility,
        Expr::WindowFunction(call) => call.fun.signature().volatility,
        Expr::HigherOrderFunction(_) | Expr::ScalarVariable(..) => Volatility::Volatile,
        _ => Volatility::Immutable,
    }
}

/// Whether all operators keep nothing from a run.
fn is_stateless(plan: &dyn ExecutionPlan) -> bool {
    let children = plan.children();
    (STATELESS_OPERATORS.contains(&plan.name()) || scans_memory(plan))
        && children.into_iter().all(|child| is_stateless(child.as_ref()))
}

/// Whether rows come from the plan itself and not from a table.
fn is_answered_by_planning(plan: &dyn ExecutionPlan) -> bool {
    matches!(plan.name(), "EmptyExec" | "PlaceholderRowExec")
        || plan.children().into_iter().any(|child| is_answered_by_planning(child.as_ref()))
}

/// Whether a stateless plan of few rows has so few bytes to read and so few and simple expressions
/// that running it takes microseconds. Calls of functions are not simple.
fn is_trivial(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let (mut expressions, mut is_simple) = (0, true);
    let visited = plan.apply(|operator| {
        operator.apply_expressions(&mut |root| {
            root.apply(|expression| {
                expressions += 1;
                is_simple &= self::is_simple(expression);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        if operator.children().is_empty() {
            let context = StatisticsContext::new();
            let read = context.compute(operator.as_ref(), &StatisticsArgs::new())?.total_byte_size;
            let Precision::Exact(bytes) = read else {
                is_simple = false;
                return Ok(TreeNodeRecursion::Stop);
            };
            is_simple &= bytes <= TRIVIAL_SCAN_BYTES_MAX;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.is_ok() && is_simple && expressions <= TRIVIAL_EXPRESSIONS_MAX
}

fn is_simple(expression: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        return SIMPLE_OPERATORS.contains(binary.op());
    }
    if let Some(literal) = expression.downcast_ref::<Literal>() {
        return literal.value().size() <= STATEMENT_BYTES_MAX;
    }
    expression.is::<Column>() || expression.is::<IsNullExpr>() || expression.is::<IsNotNullExpr>()
}
