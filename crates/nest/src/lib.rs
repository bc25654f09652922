//! Whole objects from the rows of several tables: customers with their orders, orders with their
//! items. A [`Spec`] has a flat statement for each level. [`nest`] runs one after the other, sorts
//! the rows of each on disk if it must, and merges parents with their children.
//!
//! ```text
//!  items ──sort by order──┐
//!                         ├─merge─▶ orders with items ──sort by customer──┐
//!  orders ─sort by order──┘                                               ├─merge─▶ objects
//!  customers ─────────────sort by customer────────────────────────────────┘
//! ```
//!
//! The server only reads tables: it neither joins, sorts nor makes JSON. Memory is bounded by the
//! budget and by the largest single object.

#![forbid(unsafe_code)]

mod error;
mod keys;
mod merge;
mod rows;
mod spec;
mod statements;

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_sort::{Cancel, OrderBy, memory_bytes_default};

pub use crate::error::{Error, Result};
use crate::merge::Merge;
use crate::rows::{Rows, Sorting};
pub use crate::spec::{Level, Orphans, Relation, Spec};
pub use crate::statements::nest_from;

/// The resources of nesting.
#[derive(Debug, Clone)]
pub struct NestOptions {
    /// Bytes that all sorts share before they spill to disk.
    pub memory_bytes: usize,
    /// The folder of spill files; None is the system's folder for temporary files.
    pub spill_folder: Option<PathBuf>,
    /// Ends nesting early.
    pub cancel: Cancel,
}

impl Default for NestOptions {
    fn default() -> Self {
        Self { memory_bytes: memory_bytes_default(), spill_folder: None, cancel: Cancel::default() }
    }
}

/// Runs the statements of a specification.
pub trait Source {
    /// The rows of the statement of a level. They are read to their end before the next statement
    /// runs.
    ///
    /// # Errors
    /// When the statement fails.
    fn run(
        &mut self,
        level: &str,
        sql: &str,
    ) -> Result<Box<dyn RecordBatchReader + Send + '_>, ArrowError>;

    /// Whether to go on. This is called some twenty times a second while the rows of a level are
    /// merged and sorted, with their number so far.
    fn go_on(&mut self, level: &str, rows: u64) -> bool {
        let _ = (level, rows);
        true
    }
}

/// Nested rows, in the order of the outermost level's key.
pub struct Nested(Box<dyn RecordBatchReader + Send>);

impl Iterator for Nested {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl RecordBatchReader for Nested {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// Runs all statements of a specification and returns the nested rows. When this returns, the
/// source is no longer needed.
///
/// # Errors
/// When a statement fails, a column of the specification is not in its result, a key has a type
/// that can't be one, or memory or disk runs out. Duplicate keys and orphans are errors, here or
/// of the returned reader.
pub fn nest(spec: &Spec, source: &mut dyn Source, options: &NestOptions) -> Result<Nested> {
    // Each statement's rows are sorted at most once for each relation, and some of these sorts are
    // read at the same time.
    let sorting = Sorting {
        memory_bytes: options.memory_bytes / (2 * spec.root.levels()),
        spill_folder: options.spill_folder.clone().unwrap_or_else(std::env::temp_dir),
        cancel: options.cancel.clone(),
    };
    let mut nesting = Nesting { source, sorting };
    Ok(Nested(nesting.rows(&spec.root, "the outermost level", &spec.root.order)?))
}

struct Nesting<'a> {
    source: &'a mut dyn Source,
    sorting: Sorting,
}

impl Nesting<'_> {
    /// The rows of a level with all that is nested in them, in the order of `by`.
    fn rows(&mut self, level: &Level, name: &str, by: &[OrderBy]) -> Result<Rows<'static>> {
        let order_for = |child: usize| match level.children.get(child) {
            Some(relation) => parent_order(relation),
            None => by.to_vec(),
        };
        let own = self.source.run(name, &level.sql);
        let own = own.map_err(|cause| Error::statement(name, cause))?;
        let mut order = order_for(0);
        // The source watches its statement itself.
        let own = self.sorting.read(own, &order, name, &mut |_| true)?;
        let mut rows = own.sorted(&mut |rows| self.source.go_on(name, rows))?;
        for (i, relation) in level.children.iter().enumerate() {
            let children = self.rows(&relation.level, &relation.name, &child_order(relation))?;
            rows = Box::new(Merge::new(rows, children, relation)?);
            let next = order_for(i + 1);
            if next != order {
                let go_on = &mut |rows| self.source.go_on(name, rows);
                rows = self.sorting.read(rows, &next, name, go_on)?.sorted(go_on)?;
                order = next;
            }
        }
        Ok(rows)
    }
}

/// The order in which parents are merged with their children.
fn parent_order(relation: &Relation) -> Vec<OrderBy> {
    let columns = relation.on.iter().map(|(_, parent)| parent);
    columns.map(|column| OrderBy::named(column.clone(), false, false)).collect()
}

/// The order in which children are merged with their parents, and within a list.
fn child_order(relation: &Relation) -> Vec<OrderBy> {
    let columns = relation.on.iter().map(|(column, _)| column);
    let keys = columns.map(|column| OrderBy::named(column.clone(), false, false));
    keys.chain(relation.level.order.iter().cloned()).collect()
}
