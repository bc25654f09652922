//! Names of columns, where the engine gives two of them the same one.
//!
//! It names what a statement computes by its text, without casts: `min(a)` and
//! `min(CAST(a AS text))` are two columns `min(a)`, and so are those of `SELECT a, a`. Such a
//! statement is planned again with names that differ.

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

/// Stands between a column's name and a number that makes it unlike others, while the engine plans.
const MARK: char = '\u{1}';
/// No name that a statement is likely to have.
const WRITTEN: &str = "dray_as_written";

/// The name without what [`told_apart`] has put behind it.
pub(crate) fn as_asked(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

/// Gives each column of the result that the statement itself names another name, which [`as_asked`]
/// takes back, and each cast one that the engine sees. False where there is no such column.
pub(super) fn told_apart(statement: &mut Statement) -> bool {
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
    let _ = VisitMut::visit(query, &mut Casts);
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

/// Puts [`Written`] around casts: the same text, the same name.
struct Casts;

impl VisitorMut for Casts {
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
                name: ObjectName::from(vec![Ident::new(WRITTEN)]),
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

/// A function that gives its first argument, and has the second one, a text, in its name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Written(Signature);

impl Default for Written {
    fn default() -> Self {
        Self(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Written {
    fn name(&self) -> &str {
        WRITTEN
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [first, _] => Ok(first.clone()),
            _ => internal_err!("{WRITTEN} has two arguments"),
        }
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.into_iter().next() {
            Some(first) => Ok(ExprSimplifyResult::Simplified(first)),
            None => internal_err!("{WRITTEN} has two arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(first) => Ok(first),
            None => internal_err!("{WRITTEN} has two arguments"),
        }
    }
}
