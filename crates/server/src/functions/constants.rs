//! Constants that become columns, and strings concatenated by `||`: a value of a megabyte, repeated
//! for 65,536 rows, takes 64 GB.
//!
//! The engine doesn't account for values that it repeats for each row. An optimizer rule wraps
//! large constants that become columns in [`Kind::Column`], and replaces `||` by [`Kind::Concat`].
//! Both reserve memory for their results.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, internal_err};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::expressions::{self, Column as ColumnExpr};

use super::checked::operate;
use super::measure::sizes;
use super::{UNRESERVED_BYTES_MAX, counted, is_planning, reserve};

/// Constants up to this size are repeated without a reservation.
const SMALL_BYTES_MAX: usize = 1 << 10;
/// Functions that pass on an argument unchanged.
const PASS_THROUGH: &[&str] = &[
    "coalesce",
    "nvl",
    "nvl2",
    "nullif",
    "greatest",
    "least",
    "struct",
    "named_struct",
    "map",
    "make_map",
];

/// The optimizer's rule.
#[derive(Debug)]
pub(super) struct LargeConstants {
    column: Arc<ScalarUDF>,
    concat: Arc<ScalarUDF>,
}

impl LargeConstants {
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        let column = Reserving { kind: Kind::Column, signature, pool: Pool(pool.clone()) };
        let signature = Signature::any(2, Volatility::Immutable);
        let concat = Reserving { kind: Kind::Concat, signature, pool: Pool(pool.clone()) };
        Self { column: Arc::new(column.into()), concat: Arc::new(concat.into()) }
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let concatenated = expr.transform_up(|expr| match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
                if is_text(&left, &right, schema) =>
            {
                Ok(Transformed::yes(self.concat.call(vec![*left, *right])))
            }
            other => Ok(Transformed::no(other)),
        })?;
        concatenated.transform_data(|expr| {
            expr.transform_down(|expr| match &expr {
                Expr::Literal(value, _) if is_large(value) => Ok(Transformed::new(
                    self.column.call(vec![expr]),
                    true,
                    TreeNodeRecursion::Jump,
                )),
                Expr::ScalarFunction(call) if !PASS_THROUGH.contains(&call.name()) => {
                    let is_done = call.name() == Kind::Column.name();
                    let is_constant = !is_done
                        && !expr.any_column_refs()
                        && expr.get_type(schema).is_ok_and(|data_type| is_variable(&data_type));
                    let expr = if is_constant { self.column.call(vec![expr]) } else { expr };
                    Ok(Transformed::new(expr, is_constant, TreeNodeRecursion::Jump))
                }
                // These compare or cast constants, and don't repeat them.
                Expr::BinaryExpr(_)
                | Expr::Like(_)
                | Expr::InList(_)
                | Expr::Between(_)
                | Expr::Cast(_)
                | Expr::TryCast(_) => Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump)),
                _ => Ok(Transformed::no(expr)),
            })
        })
    }
}

fn is_text(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let text = |expr: &Expr| {
        matches!(
            expr.get_type(schema),
            Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        )
    };
    text(left) && text(right)
}

fn is_large(value: &ScalarValue) -> bool {
    is_variable(&value.data_type()) && value.size() > SMALL_BYTES_MAX
}

fn is_variable(data_type: &DataType) -> bool {
    !data_type.is_primitive() && !matches!(data_type, DataType::Boolean | DataType::Null)
}

impl OptimizerRule for LargeConstants {
    fn name(&self) -> &str {
        "large_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Filter(_) => {}
            _ => return Ok(Transformed::no(plan)),
        }
        let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let mut counted = self.rewrite(expr, &schema)?;
            if counted.transformed {
                counted.data = name.restore(counted.data);
            }
            Ok(counted)
        })
    }
}

/// Which function a [`Reserving`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The same value for each row.
    Column,
    /// Two concatenated strings.
    Concat,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Concat => "||",
        }
    }
}

/// The engine's pool. All pools compare equal, as the traits of functions require.
#[derive(Debug)]
struct Pool(Arc<dyn MemoryPool>);

impl PartialEq for Pool {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pool {}

impl std::hash::Hash for Pool {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// A function that reserves memory for its result.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Reserving {
    kind: Kind,
    signature: Signature,
    pool: Pool,
}

impl ScalarUDFImpl for Reserving {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.kind, arguments) {
            (Kind::Column, [only]) => Ok(only.clone()),
            (Kind::Concat, [left, right]) => expressions::binary(
                Arc::new(ColumnExpr::new("l", 0)),
                Operator::StringConcat,
                Arc::new(ColumnExpr::new("r", 1)),
                &two(left, right),
            )?
            .data_type(&two(left, right)),
            _ => internal_err!("{} has other arguments", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let metadata = match (self.kind, args.arg_fields) {
            (Kind::Column, [only]) => only.metadata().clone(),
            _ => HashMap::new(),
        };
        Ok(Arc::new(
            Field::new(self.name(), self.return_type(&types)?, nullable).with_metadata(metadata),
        ))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        match (self.kind, &args.args[..]) {
            (Kind::Column, [ColumnarValue::Scalar(value)]) => {
                if is_planning() {
                    return exec_err!("constants are not repeated during planning");
                }
                let reservation =
                    reserve(&self.pool.0, "a constant", value.size() as f64 * rows as f64)?;
                let array = value.to_array_of_size(rows)?;
                Ok(ColumnarValue::Array(counted::counted(array, reservation)?))
            }
            (Kind::Column, [array]) => Ok(array.clone()),
            (Kind::Concat, [left, right]) => {
                let is_constant =
                    matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
                let count = if is_constant { 1 } else { rows };
                let bytes = sizes(left, count).sum(count) + sizes(right, count).sum(count);
                if bytes <= UNRESERVED_BYTES_MAX {
                    return concat(left, right, rows);
                }
                if is_planning() {
                    return exec_err!("strings are not concatenated during planning");
                }
                let reservation = reserve(&self.pool.0, "||", bytes)?;
                match concat(left, right, rows)? {
                    ColumnarValue::Array(array) => {
                        Ok(ColumnarValue::Array(counted::counted(array, reservation)?))
                    }
                    scalar => Ok(scalar),
                }
            }
            _ => internal_err!("{} has other arguments", self.name()),
        }
    }
}

fn two(left: &DataType, right: &DataType) -> Schema {
    Schema::new(vec![Field::new("l", left.clone(), true), Field::new("r", right.clone(), true)])
}

/// Evaluates `left || right`.
fn concat(left: &ColumnarValue, right: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    operate(Operator::StringConcat, left, right, rows)
}
