//! Arithmetic that fails on overflow, where the engine's own wraps.
//!
//! ```text
//!   a + b, with types ─▶ a rule after the engine's analysis ─▶ Checked(a, b): a checked kernel
//! ```
//!
//! As functions, checked operators behave the same everywhere: the optimizer folds constants with
//! them, and a failure there becomes a failure at execution. The optimizer's rules for `+`, `-` and
//! `*`, which ignore overflow, don't apply to functions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{kernels::numeric, max, min};
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, Field, FieldRef, Int64Type, Schema,
};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{self, Column, Literal};

use crate::dialect::rounded;

/// Replaces operators that may wrap by [`Checked`]. Runs after the rule that coerces types.
#[derive(Debug)]
pub(crate) struct CheckedOperators;

impl AnalyzerRule for CheckedOperators {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let of_plan = |plan: LogicalPlan| {
            let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let mut written = expr.transform_up(|expr| checked(expr, &schema))?;
                if written.transformed {
                    written.data = name.restore(written.data);
                }
                Ok(written)
            })
        };
        plan.transform_up_with_subqueries(of_plan).data()
    }

    fn name(&self) -> &str {
        "checked_operators"
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (kind, arguments) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if may_wrap(op, &left, &right, schema)? =>
        {
            (Kind::Binary(op), vec![*left, *right])
        }
        Expr::Negative(inner) if inner.get_type(schema)?.is_signed_integer() => {
            (Kind::Negative, vec![*inner])
        }
        Expr::Cast(Cast { expr, field }) => {
            let before = rounded::before_time(&expr, &expr.get_type(schema)?, field.data_type());
            let is_changed = before.is_some();
            let expr = before.map_or(expr, Box::new);
            return Ok(Transformed::new_transformed(Expr::Cast(Cast { expr, field }), is_changed));
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let before = rounded::before_time(&expr, &expr.get_type(schema)?, field.data_type());
            let is_changed = before.is_some();
            let expr = before.map_or(expr, Box::new);
            return Ok(Transformed::new_transformed(
                Expr::TryCast(TryCast { expr, field }),
                is_changed,
            ));
        }
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(ScalarUDF::new_from_impl(Checked::new(kind)).call(arguments)))
}

/// Whether the engine's operator may give a wrong value. The types are coerced.
fn may_wrap(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<bool> {
    let of_decimals = match op {
        Operator::Plus | Operator::Minus | Operator::Multiply => false,
        Operator::Divide | Operator::Modulo => true,
        Operator::BitwiseShiftLeft | Operator::BitwiseShiftRight => false,
        _ => return Ok(false),
    };
    // The right side first: in a long sum it is a leaf, and the left side has the same type.
    let right = right.get_type(schema)?;
    if !right.is_decimal() && (of_decimals || !right.is_integer()) {
        return Ok(false);
    }
    if op == Operator::Multiply && !left.get_type(schema)?.is_numeric() {
        return Ok(false);
    }
    // Decimals below the maximum precision are widened to fit all results.
    Ok(!right.is_decimal()
        || has_max_precision(
            &BinaryTypeCoercer::new(&left.get_type(schema)?, &op, &right).get_result_type()?,
        ))
}

/// Which operator a [`Checked`] evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Binary(Operator),
    Negative,
}

/// An operator that fails if its result doesn't fit its type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    kind: Kind,
    name: String,
    signature: Signature,
}

impl Checked {
    fn new(kind: Kind) -> Self {
        let (name, arguments) = match kind {
            Kind::Binary(op) => (op.to_string(), 2),
            Kind::Negative => ("-".to_owned(), 1),
        };
        Self { kind, name, signature: Signature::any(arguments, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        &self.name
    }

    /// The operator's name, by which other parts of the plan may refer to the column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => {
                Ok(format!("{} {} {}", left.schema_name(), self.name, right.schema_name()))
            }
            [only] => Ok(format!("(- {})", only.schema_name())),
            _ => internal_err!("{} has {} arguments", self.name, args.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.kind, arguments) {
            (Kind::Binary(op), [left, right]) => {
                BinaryTypeCoercer::new(left, &op, right).get_result_type()
            }
            (Kind::Negative, [only]) => Ok(only.clone()),
            _ => internal_err!("{} has {} arguments", self.name, arguments.len()),
        }
    }

    /// The operator's field, which the plan already has: nullable if an argument is.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(&self.name, self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        match (self.kind, &args.args[..]) {
            (Kind::Binary(op), [left, right]) => {
                if matches!(op, Operator::BitwiseShiftLeft | Operator::BitwiseShiftRight) {
                    check_shift(left, right)?;
                }
                let result = operate(op, left, right, rows).map_err(|cause| match cause {
                    DataFusionError::ArrowError(cause, _) => {
                        out_of_range(*cause, args.return_field.data_type())
                    }
                    other => other,
                })?;
                check_precision(&result)?;
                Ok(result)
            }
            (Kind::Negative, [ColumnarValue::Array(array)]) => {
                Ok(ColumnarValue::Array(negative(array)?))
            }
            (Kind::Negative, [ColumnarValue::Scalar(value)]) => Ok(ColumnarValue::Scalar(
                ScalarValue::try_from_array(&negative(&value.to_array()?)?, 0)?,
            )),
            _ => internal_err!("{} has {} arguments", self.name, args.args.len()),
        }
    }
}

fn negative(array: &ArrayRef) -> Result<ArrayRef> {
    numeric::neg(array).map_err(|cause| out_of_range(cause, array.data_type()))
}

/// Evaluates an operator with the engine's checked kernels.
pub(super) fn operate(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    let mut side = |value: &ColumnarValue| -> Arc<dyn PhysicalExpr> {
        match value {
            ColumnarValue::Scalar(value) => Arc::new(Literal::new(value.clone())),
            ColumnarValue::Array(array) => {
                fields.push(Field::new("side", array.data_type().clone(), true));
                arrays.push(array.clone());
                Arc::new(Column::new("side", arrays.len() - 1))
            }
        }
    };
    let (left, right) = (side(left), side(right));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
    expressions::BinaryExpr::new(left, op, right).with_fail_on_overflow(true).evaluate(&batch)
}

/// The largest 128-bit decimal.
const DECIMAL_128_MAX: i128 = 10i128.pow(DECIMAL128_MAX_PRECISION as u32) - 1;

/// A type's name in SQL.
pub(super) fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::UInt8 => "tinyint unsigned",
        DataType::UInt16 => "smallint unsigned",
        DataType::UInt32 => "integer unsigned",
        DataType::UInt64 => "bigint unsigned",
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => return format!("decimal({digits}, {scale})"),
        DataType::Duration(_) => "an interval",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// The error of a result that doesn't fit.
fn out_of_range(cause: ArrowError, data_type: &DataType) -> DataFusionError {
    match cause {
        ArrowError::ArithmeticOverflow(text) => {
            let what = text.strip_prefix("Overflow happened on: ").unwrap_or(&text);
            DataFusionError::Execution(format!(
                "{what} is out of range of {}",
                type_name(data_type)
            ))
        }
        other => other.into(),
    }
}

/// Whether a type is a decimal of its width's maximum precision.
fn has_max_precision(data_type: &DataType) -> bool {
    match *data_type {
        DataType::Decimal32(digits, _) => digits == DECIMAL32_MAX_PRECISION,
        DataType::Decimal64(digits, _) => digits == DECIMAL64_MAX_PRECISION,
        DataType::Decimal128(digits, _) => digits == DECIMAL128_MAX_PRECISION,
        DataType::Decimal256(digits, _) => digits == DECIMAL256_MAX_PRECISION,
        _ => false,
    }
}

/// Checks that decimals of the maximum precision don't exceed it.
fn check_precision(result: &ColumnarValue) -> Result<()> {
    if !has_max_precision(&result.data_type()) {
        return Ok(());
    }
    let array = match result {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    if let Some(values) = array.as_primitive_opt::<Decimal128Type>() {
        // A quick check of all values, including those under NULL. If it fails, check precisely.
        let most = DECIMAL_128_MAX.unsigned_abs();
        if !values
            .values()
            .iter()
            .fold(false, |exceeds, value| exceeds | (value.unsigned_abs() > most))
        {
            return Ok(());
        }
    }
    let fits = match *array.data_type() {
        DataType::Decimal32(digits, _) => {
            array.as_primitive::<Decimal32Type>().validate_decimal_precision(digits)
        }
        DataType::Decimal64(digits, _) => {
            array.as_primitive::<Decimal64Type>().validate_decimal_precision(digits)
        }
        DataType::Decimal128(digits, _) => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(digits)
        }
        DataType::Decimal256(digits, _) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(digits)
        }
        _ => Ok(()),
    };
    fits.map_err(|_| {
        DataFusionError::Execution(format!(
            "a result is out of range of {}",
            type_name(array.data_type())
        ))
    })
}

/// Fails on shifts by negative counts, or by at least the width, which processors reduce to other
/// counts.
fn check_shift(left: &ColumnarValue, right: &ColumnarValue) -> Result<()> {
    let Some(bits) = left.data_type().primitive_width().map(|bytes| 8 * bytes as i64) else {
        return internal_err!("{} has no bits to shift", left.data_type());
    };
    let counts = match right {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    // A count beyond 63 bits becomes NULL.
    let counts = arrow::compute::cast(&counts, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    match (min(counts), max(counts)) {
        (Some(least), _) if least < 0 => exec_err!("a shift by {least} bits is out of range"),
        (_, Some(most)) if most >= bits => exec_err!("a shift by {most} bits is out of range"),
        _ => Ok(()),
    }
}
