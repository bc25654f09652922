//! Column names that the engine would use twice.
//!
//! The engine names a computed column by its text without casts: `min(a)` and
//! `min(CAST(a AS text))` are both named `min(a)`, and `SELECT a, a` has two columns `a`. Such a
//! statement is planned again with distinct names.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, SelectItem, SetExpr, Statement as SqlStatement, Value,
    VisitMut, VisitorMut,
};

/// Separates a column's name from the number that makes it unique during planning.
const MARK: char = '\u{1}';
/// The name of the function [`NamedAs`].
const NAMED_AS: &str = "dray_as_written";

/// The name without the number that [`disambiguate`] added.
pub(crate) fn original(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

/// Makes the names of the result's columns unique, until [`original`] restores them, and makes the
/// engine include casts in names. Returns false if the statement names no column.
pub(super) fn disambiguate(statement: &mut Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    let SqlStatement::Query(query) = statement.as_mut() else { return false };
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    let mut named = false;
    for (number, item) in select.projection.iter_mut().enumerate() {
        let (name, expr) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (alias.value.clone(), expr.clone()),
            SelectItem::UnnamedExpr(expr) => (name_of(expr), expr.clone()),
            _ => continue,
        };
        named = true;
        *item = SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("{name}{MARK}{number}")),
        };
    }
    let _ = VisitMut::visit(query, &mut WrapCasts);
    named
}

fn name_of(expr: &SqlExpr) -> String {
    match expr {
        SqlExpr::Identifier(name) => folded(name),
        SqlExpr::CompoundIdentifier(names) => names.last().map(folded).unwrap_or_default(),
        other => other.to_string(),
    }
}

fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Wraps casts in [`NamedAs`], so that equal text gives equal names.
struct WrapCasts;

impl VisitorMut for WrapCasts {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        if matches!(expr, SqlExpr::Cast { .. }) {
            let text = SqlExpr::Value(Value::SingleQuotedString(expr.to_string()).into());
            let args = [expr.clone(), text]
                .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
                .to_vec();
            let args =
                FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
            *expr = SqlExpr::Function(Function {
                name: ObjectName::from(vec![Ident::new(NAMED_AS)]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(args),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }
}

/// A function that returns its first argument. The second, a string, is part of the column's name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NamedAs(Signature);

impl Default for NamedAs {
    fn default() -> Self {
        Self(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for NamedAs {
    fn name(&self) -> &str {
        NAMED_AS
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [first, _] => Ok(first.clone()),
            _ => internal_err!("{NAMED_AS} has two arguments"),
        }
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.into_iter().next() {
            Some(first) => Ok(ExprSimplifyResult::Simplified(first)),
            None => internal_err!("{NAMED_AS} has two arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(first) => Ok(first),
            None => internal_err!("{NAMED_AS} has two arguments"),
        }
    }
}
