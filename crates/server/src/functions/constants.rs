//! Constants that become columns, and texts that are joined by `||`: a value of a megabyte beside
//! each of 65,536 rows is 64 GB.
//!
//! What the engine repeats for each row, it does not count. A rule for its optimizer puts
//! [`Column`] around large constants where they become columns, and [`Join`] in the place of `||`:
//! both reserve what they make.

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
use super::{FREE_BYTES, counted, is_planning, reserved};

/// Constants up to this size are repeated without being counted.
const SMALL_BYTES: usize = 1 << 10;
/// Functions that hand on an argument as it is.
const HANDING_ON: &[&str] = &[
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
    join: Arc<ScalarUDF>,
}

impl LargeConstants {
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        let column = Counted { kind: Kind::Column, signature, pool: Pool(pool.clone()) };
        let signature = Signature::any(2, Volatility::Immutable);
        let join = Counted { kind: Kind::Join, signature, pool: Pool(pool.clone()) };
        Self { column: Arc::new(column.into()), join: Arc::new(join.into()) }
    }

    fn counted(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let joined = expr.transform_up(|expr| match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
                if is_text(&left, &right, schema) =>
            {
                Ok(Transformed::yes(self.join.call(vec![*left, *right])))
            }
            other => Ok(Transformed::no(other)),
        })?;
        joined.transform_data(|expr| {
            expr.transform_down(|expr| match &expr {
                Expr::Literal(value, _) if is_large(value) => Ok(Transformed::new(
                    self.column.call(vec![expr]),
                    true,
                    TreeNodeRecursion::Jump,
                )),
                Expr::ScalarFunction(call) if !HANDING_ON.contains(&call.name()) => {
                    let is_done = call.name() == Kind::Column.name();
                    let is_constant = !is_done
                        && !expr.any_column_refs()
                        && expr.get_type(schema).is_ok_and(|data_type| is_variable(&data_type));
                    let expr = if is_constant { self.column.call(vec![expr]) } else { expr };
                    Ok(Transformed::new(expr, is_constant, TreeNodeRecursion::Jump))
                }
                // Compared, not repeated.
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
    is_variable(&value.data_type()) && value.size() > SMALL_BYTES
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
            let mut counted = self.counted(expr, &schema)?;
            if counted.transformed {
                counted.data = name.restore(counted.data);
            }
            Ok(counted)
        })
    }
}

/// Which of the two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The same value for each row.
    Column,
    /// Two texts, one behind the other.
    Join,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Join => "||",
        }
    }
}

/// The engine's pool; any is as good as another.
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

/// A function that reserves memory for what it makes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    kind: Kind,
    signature: Signature,
    pool: Pool,
}

impl ScalarUDFImpl for Counted {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.kind, arguments) {
            (Kind::Column, [only]) => Ok(only.clone()),
            (Kind::Join, [left, right]) => expressions::binary(
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
                    return exec_err!("constants are not repeated while planning");
                }
                let reservation =
                    reserved(&self.pool.0, "a constant", value.size() as f64 * rows as f64)?;
                let array = value.to_array_of_size(rows)?;
                Ok(ColumnarValue::Array(counted::counted(array, reservation)?))
            }
            (Kind::Column, [array]) => Ok(array.clone()),
            (Kind::Join, [left, right]) => {
                let is_constant =
                    matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
                let count = if is_constant { 1 } else { rows };
                let bytes = sizes(left, count).sum(count) + sizes(right, count).sum(count);
                if bytes <= FREE_BYTES {
                    return join(left, right, rows);
                }
                if is_planning() {
                    return exec_err!("texts are not joined while planning");
                }
                let reservation = reserved(&self.pool.0, "||", bytes)?;
                match join(left, right, rows)? {
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

/// What the engine makes of `left || right`.
fn join(left: &ColumnarValue, right: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    operate(Operator::StringConcat, left, right, rows)
}
