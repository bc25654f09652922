//! Rows of several inputs, whose dictionaries sorts, joins and others merge.
//!
//! An Arrow file has one dictionary for a column, so its keys may have 8 bits. Several files can
//! have more values together than such keys tell apart.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable};
use dray_format::arrow::with_new_dictionaries;

/// The columns of a plan with this schema, with dictionary keys of at least 32 bits. None if they
/// have them already.
pub(crate) fn wide_columns(schema: &DFSchema) -> Result<Option<Vec<Expr>>> {
    let wide = with_new_dictionaries(schema.as_arrow());
    let pairs = || schema.iter().zip(wide.fields());
    if pairs().all(|((_, field), wide)| field.data_type() == wide.data_type()) {
        return Ok(None);
    }
    let columns = pairs().map(|((table, field), wide)| {
        let column = Expr::from((table, field));
        match field.data_type() == wide.data_type() {
            true => Ok(column),
            false => Ok(column
                .cast_to(wide.data_type(), schema)?
                .alias_qualified(table.cloned(), field.name())),
        }
    });
    columns.collect::<Result<Vec<_>>>().map(Some)
}
