//! Adapts the engine's SQL to that of PostgreSQL and DuckDB.
//!
//! - `TIMESTAMP` has microseconds, which cover the years 1 to 9999. `TIMESTAMP(9)` has nanoseconds,
//!   which cover 1678 to 2261.
//! - `LIKE … ESCAPE` accepts any character, not only the backslash.
//! - Columns of a result may have the same name ([`names`]).
//! - `sign()` is the engine's `signum()`.
//! - Operators have PostgreSQL's precedence ([`operators`]).
//! - `SIMILAR TO` matches the whole text, with `%` and `_` ([`similar`]).
//! - The sum of a date and an interval with hours is a timestamp.
//! - Casts to integers and times round, and don't truncate ([`rounded`]).
//! - The tables of a union may have dictionaries with narrow keys ([`wide_columns`]).

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, plan_err};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Like, LogicalPlan, Operator, Projection, TryCast, Union,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, TimezoneInfo};

use crate::functions::checked::CheckedOperators;
use crate::wide_keys::wide_columns;

mod decimals;
pub(crate) mod names;
pub(crate) mod operators;
pub(crate) mod rounded;
mod similar;

/// Maximum size of a fixed-size array type.
const ARRAY_SIZE_MAX: u64 = 1 << 16;
/// The engine's errors about two columns with the same name.
const DUPLICATE_NAMES: [&str; 2] = ["unique expression names", "duplicate unqualified field name"];

/// SQL types that differ from the engine's.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        match sql_type {
            SqlType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
            | SqlType::Datetime(None) => {
                Ok(Some(nullable(DataType::Timestamp(TimeUnit::Microsecond, None))))
            }
            SqlType::Timestamp(None, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
                Ok(Some(nullable(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))))
            }
            SqlType::Array(ArrayElemTypeDef::SquareBracket(_, Some(size)))
                if *size > ARRAY_SIZE_MAX =>
            {
                plan_err!(
                    "an array's fixed size of {size} is out of range: the maximum is \
                     {ARRAY_SIZE_MAX}"
                )
            }
            _ => Ok(None),
        }
    }
}

fn nullable(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// A session with the same tables and functions, and this dialect.
pub(crate) fn install(context: &SessionContext) -> SessionContext {
    let state = context.state();
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(Rewrites)];
    rules.extend(state.analyzer().rules.iter().cloned());
    rules.push(Arc::new(CheckedOperators));
    let state = SessionStateBuilder::new_from_existing(state)
        .with_type_planner(Arc::new(Types))
        .with_analyzer_rules(rules);
    let installed = SessionContext::new_with_state(state.build());
    let functions = installed.state().scalar_functions().clone();
    for (name, alias) in [("signum", "sign"), ("ceil", "ceiling")] {
        if let Some(function) = functions.get(name).filter(|_| !functions.contains_key(alias)) {
            installed.register_udf(function.as_ref().clone().with_aliases([alias]));
        }
    }
    installed.register_udf(names::NamedAs::default().into());
    installed
}

/// Plans a statement. Columns with the same name carry a mark until [`names::original`] removes it.
pub(crate) async fn logical_plan(
    state: &SessionState,
    mut statement: Statement,
) -> Result<LogicalPlan> {
    match state.statement_to_plan(statement.clone()).await {
        Err(cause) if has_duplicate_names(&cause) && names::disambiguate(&mut statement) => {
            // An error about the original statement is clearer.
            state.statement_to_plan(statement).await.map_err(|_| cause)
        }
        planned => planned,
    }
}

fn has_duplicate_names(cause: &DataFusionError) -> bool {
    let text = cause.to_string();
    DUPLICATE_NAMES.iter().any(|phrase| text.contains(phrase))
}

/// Rewrites expressions that the engine evaluates differently, or not at all.
#[derive(Debug)]
pub(crate) struct Rewrites;

impl AnalyzerRule for Rewrites {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // The later rows of a recursive query must have the types that its first ones had.
        let mut is_recursive = false;
        plan.apply_with_subqueries(|plan| {
            is_recursive |= matches!(plan, LogicalPlan::RecursiveQuery(_));
            Ok(TreeNodeRecursion::Continue)
        })?;
        let of_plan = |plan: LogicalPlan| {
            let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let mut written = expr.transform_up(|expr| rewrite(expr, &schema))?;
                if written.transformed {
                    written.data = name.restore(written.data);
                }
                Ok(written)
            })?
            // Types may have changed from dates to timestamps.
            .map_data(LogicalPlan::recompute_schema)?
            .map_data(|plan| match plan {
                LogicalPlan::Union(union) if !is_recursive => with_wide_inputs(union),
                plan => Ok(plan),
            })
        };
        plan.transform_up_with_subqueries(of_plan).data()
    }

    fn name(&self) -> &str {
        "dialect"
    }
}

/// The union with dictionary keys of at least 32 bits.
fn with_wide_inputs(mut union: Union) -> Result<LogicalPlan> {
    let mut is_changed = false;
    for input in &mut union.inputs {
        if let Some(columns) = wide_columns(input.schema())? {
            *input =
                Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input.clone())?));
            is_changed = true;
        }
    }
    if is_changed {
        // Their common types are found later, as for all unions.
        union = Union::try_new_with_loose_types(union.inputs)?;
    }
    Ok(LogicalPlan::Union(union))
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Like(like) if like.escape_char.is_some() => with_backslash(like),
        Expr::SimilarTo(like) if like.escape_char.is_none() => {
            Ok(Transformed::yes(similar::as_regular_expression(like)))
        }
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::Plus | Operator::Minus) => {
            with_time_of_day(binary, schema)
        }
        Expr::Cast(Cast { expr, field }) => {
            let from = expr.get_type(schema)?;
            let before = match field.data_type() {
                // Numbers are seconds, as in the engine's casts to nanoseconds.
                DataType::Timestamp(TimeUnit::Microsecond, zone) if from == DataType::Int64 => {
                    let seconds = DataType::Timestamp(TimeUnit::Second, zone.clone());
                    Some(Expr::Cast(Cast::new(expr.clone(), seconds)))
                }
                to => rounded::before_cast(&expr, &from, to),
            };
            let is_changed = before.is_some();
            let expr = before.map_or(expr, Box::new);
            Ok(Transformed::new_transformed(Expr::Cast(Cast { expr, field }), is_changed))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let before = rounded::before_cast(&expr, &expr.get_type(schema)?, field.data_type());
            let is_changed = before.is_some();
            let expr = before.map_or(expr, Box::new);
            Ok(Transformed::new_transformed(Expr::TryCast(TryCast { expr, field }), is_changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Casts a date to a timestamp if an interval with hours is added, since the engine would ignore
/// the hours.
fn with_time_of_day(
    BinaryExpr { mut left, op, mut right }: BinaryExpr,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    // The right side first: in a long sum it is a leaf.
    let mut is_changed = false;
    match right.get_type(schema)? {
        DataType::Interval(_)
            if !is_of_days(&right) && left.get_type(schema)? == DataType::Date32 =>
        {
            left = Box::new(Expr::Cast(Cast::new(
                left,
                DataType::Timestamp(TimeUnit::Microsecond, None),
            )));
            is_changed = true;
        }
        DataType::Date32
            if op == Operator::Plus
                && !is_of_days(&left)
                && matches!(left.get_type(schema)?, DataType::Interval(_)) =>
        {
            right = Box::new(Expr::Cast(Cast::new(
                right,
                DataType::Timestamp(TimeUnit::Microsecond, None),
            )));
            is_changed = true;
        }
        _ => {}
    }
    Ok(Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), is_changed))
}

/// Whether an interval is known to consist of whole days.
fn is_of_days(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(value), _) => {
            value.is_none_or(|value| value.nanoseconds == 0)
        }
        Expr::Literal(ScalarValue::IntervalDayTime(value), _) => {
            value.is_none_or(|value| value.milliseconds == 0)
        }
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => true,
        _ => false,
    }
}

/// Rewrites a pattern with another escape character to the backslash.
fn with_backslash(like: Like) -> Result<Transformed<Expr>> {
    let (Some(escape), Expr::Literal(pattern, metadata)) =
        (like.escape_char, like.pattern.as_ref())
    else {
        return Ok(Transformed::no(Expr::Like(like)));
    };
    let Some(Some(text)) = pattern.try_as_str() else {
        return Ok(Transformed::no(Expr::Like(like)));
    };
    if escape == '\\' {
        return Ok(Transformed::no(Expr::Like(like)));
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            letter if letter == escape => match letters.next() {
                Some(escaped) => {
                    out.push('\\');
                    escaped
                }
                None => return plan_err!("a LIKE pattern must not end with its escape character"),
            },
            '\\' => {
                out.push('\\');
                '\\'
            }
            letter => letter,
        };
        out.push(letter);
    }
    let pattern = Expr::Literal(ScalarValue::Utf8(Some(out)), metadata.clone());
    Ok(Transformed::yes(Expr::Like(Like { pattern: Box::new(pattern), escape_char: None, ..like })))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{Expr, Like, col, lit};

    use super::with_backslash;

    #[test]
    fn patterns_get_backslashes() {
        for (pattern, expected) in
            [("a!%b%", r"a\%b%"), ("!!_", r"\!_"), (r"c:\!_", r"c:\\\_"), ("!a", r"\a"), ("", "")]
        {
            let like =
                Like::new(false, Box::new(col("a")), Box::new(lit(pattern)), Some('!'), false);
            let Expr::Like(Like { pattern, escape_char: None, .. }) =
                with_backslash(like).unwrap().data
            else {
                unreachable!()
            };
            assert_eq!(*pattern, Expr::Literal(ScalarValue::Utf8(Some(expected.into())), None));
        }
        let ends = Like::new(false, Box::new(col("a")), Box::new(lit("a!")), Some('!'), false);
        assert!(with_backslash(ends).is_err());
    }
}
