//! What is nested in what: a file in TOML.
//!
//! ```
//! let spec: dray_nest::Spec = r#"
//!     sql = "SELECT c_custkey, c_name FROM customer"
//!
//!     [many.orders]
//!     sql = "SELECT o_orderkey, o_custkey, o_orderdate FROM orders"
//!     on = { o_custkey = "c_custkey" }
//!     order = ["o_orderdate:desc"]
//!
//!     [many.orders.many.items]
//!     sql = "SELECT l_orderkey, l_partkey, l_quantity FROM lineitem"
//!     on = { l_orderkey = "o_orderkey" }
//!
//!     [many.orders.many.items.one.part]
//!     sql = "SELECT p_partkey, p_name FROM part"
//!     on = { p_partkey = "l_partkey" }
//! "#
//! .parse()?;
//! assert_eq!(spec.root.children[0].level.children[0].name, "items");
//! # Ok::<(), dray_nest::Error>(())
//! ```

use std::collections::BTreeMap;
use std::str::FromStr;

use dray_sort::OrderBy;
use serde::Deserialize;

use crate::error::{Error, Result};

/// The deepest nesting of levels.
const DEPTH_MAX: usize = 16;

/// What is nested in what.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The outermost level.
    pub root: Level,
}

/// The rows of one statement, and what is nested in them.
#[derive(Debug, Clone)]
pub struct Level {
    /// The statement. Its columns become fields.
    pub sql: String,
    /// The columns by which the outermost rows, or the items of a list, are ordered.
    pub order: Vec<OrderBy>,
    /// What is nested in the rows.
    pub children: Vec<Relation>,
}

/// Rows that are nested in others.
#[derive(Debug, Clone)]
pub struct Relation {
    /// The field that they become.
    pub name: String,
    /// Whether a parent has a list of them, or at most one.
    pub is_list: bool,
    /// Their columns, each with the column of the parent that has the same value.
    pub on: Vec<(String, String)>,
    /// What becomes of rows of a list without a parent.
    pub orphans: Orphans,
    /// The rows.
    pub level: Level,
}

/// What becomes of rows of a list without a parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Orphans {
    /// They are an error.
    #[default]
    Error,
    /// They are left out.
    Drop,
}

impl Level {
    /// The number of statements.
    pub(crate) fn levels(&self) -> usize {
        1 + self.children.iter().map(|child| child.level.levels()).sum::<usize>()
    }
}

/// A level as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    sql: String,
    #[serde(default)]
    on: BTreeMap<String, String>,
    #[serde(default)]
    order: Vec<String>,
    orphans: Option<Orphans>,
    #[serde(default)]
    many: BTreeMap<String, Table>,
    #[serde(default)]
    one: BTreeMap<String, Table>,
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let table: Table = toml::from_str(text).map_err(|error| Error::Spec(error.to_string()))?;
        if !table.on.is_empty() || table.orphans.is_some() {
            let what = "the outermost level has no parent, so it has neither `on` nor `orphans`";
            return Err(Error::Spec(what.to_owned()));
        }
        Ok(Self { root: level(table, 1)? })
    }
}

fn level(table: Table, depth: usize) -> Result<Level> {
    if depth > DEPTH_MAX {
        return Err(Error::Spec(format!("more than {DEPTH_MAX} levels")));
    }
    let order = table.order.iter().map(|text| text.parse::<OrderBy>().map_err(Error::Spec));
    let order = order.collect::<Result<_>>()?;
    let lists = table.many.into_iter().map(|(name, table)| (name, true, table));
    let singles = table.one.into_iter().map(|(name, table)| (name, false, table));
    // Single ones first: they sort the rows while these are still small.
    let children = singles.chain(lists).map(|(name, is_list, table)| {
        let (on, orphans) = (table.on.clone(), table.orphans);
        let refused = |what: &str| Err(Error::Spec(format!("{name}: {what}")));
        if on.is_empty() {
            return refused("`on` must say which of its columns equals which of its parent's");
        }
        if !is_list && (orphans.is_some() || !table.order.is_empty()) {
            return refused("`order` and `orphans` are for lists");
        }
        Ok(Relation {
            is_list,
            on: on.into_iter().collect(),
            orphans: orphans.unwrap_or_default(),
            level: level(table, depth + 1)?,
            name,
        })
    });
    Ok(Level { sql: table.sql, order, children: children.collect::<Result<_>>()? })
}
