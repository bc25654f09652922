//! What a server has: catalogs, schemas, tables, columns and constraints, as `GetObjects` nests
//! them, and what it knows about them (`statistics.rs`).
//!
//! ```text
//!   PostgreSQL ── objects/postgres.rs ──┐
//!   MySQL ─────── objects/mysql.rs ─────┼─▶ Catalog > Schema > Table ── objects/encode.rs ─▶ batch
//!   Dray ──────── objects/dray.rs ──────┘
//! ```

mod dray;
mod encode;
mod information_schema;
pub(crate) mod mysql;
mod postgres;
mod statistics;

use adbc_core::error::Result;
use adbc_core::options::ObjectDepth;
use dray_client::SourceKind;

pub(crate) use self::dray::PLACE as DRAY_PLACE;
pub(crate) use self::encode::encode;
pub(crate) use self::postgres::{TABLE_TYPES, literal};
pub(crate) use self::statistics::statistics;
use crate::cancel::Running;
use crate::connection::no_table;
use crate::error::not_implemented;
use crate::session::Session;

/// What to list. The names are patterns of `LIKE`; None is any.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    pub(crate) depth: ObjectDepth,
    pub(crate) catalog: Option<&'a str>,
    pub(crate) db_schema: Option<&'a str>,
    pub(crate) table_name: Option<&'a str>,
    /// The types of tables, as they are.
    pub(crate) table_type: Option<Vec<&'a str>>,
    pub(crate) column_name: Option<&'a str>,
}

impl Filter<'_> {
    fn has_schemas(&self) -> bool {
        self.depth != ObjectDepth::Catalogs
    }

    fn has_tables(&self) -> bool {
        self.has_schemas() && self.depth != ObjectDepth::Schemas
    }

    fn has_columns(&self) -> bool {
        self.has_tables() && self.depth != ObjectDepth::Tables
    }
}

/// A database. What was not asked for is None, here and below.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Catalog {
    name: String,
    schemas: Option<Vec<Schema>>,
}

#[derive(Debug, Default, PartialEq)]
struct Schema {
    name: String,
    tables: Option<Vec<Table>>,
}

#[derive(Debug, Default, PartialEq)]
struct Table {
    name: String,
    table_type: String,
    columns: Option<Vec<Column>>,
    constraints: Option<Vec<Constraint>>,
}

#[derive(Debug, Default, PartialEq)]
struct Column {
    name: String,
    position: i32,
    remarks: Option<String>,
    type_name: Option<String>,
    nullable: bool,
    default: Option<String>,
    autoincrement: Option<bool>,
    generated: Option<bool>,
}

#[derive(Debug, Default, PartialEq)]
struct Constraint {
    name: String,
    /// `CHECK`, `FOREIGN KEY`, `PRIMARY KEY` or `UNIQUE`.
    constraint_type: String,
    columns: Vec<String>,
    /// The columns that a foreign key refers to.
    usage: Option<Vec<Usage>>,
}

#[derive(Debug, Default, PartialEq)]
struct Usage {
    catalog: Option<String>,
    schema: Option<String>,
    table: String,
    column: String,
}

/// Lists what a server has.
///
/// # Errors
/// When the server can't be asked.
pub(crate) fn list(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<Catalog>> {
    if !session.has_catalog {
        return Err(not_implemented(
            "the tables of this source can't be listed: ask it by a statement of its own",
        ));
    }
    match session.kind {
        SourceKind::Postgres => postgres::list(session, filter, running),
        SourceKind::Mysql => mysql::list(session, filter, running),
        SourceKind::Dray | SourceKind::Other => dray::list(session, filter, running),
    }
}

/// A table's name for a statement.
///
/// # Errors
/// NotFound if there is no such table, and when the server can't be asked.
pub(crate) fn find(
    session: &Session,
    catalog: Option<&str>,
    db_schema: Option<&str>,
    table: &str,
    running: &Running,
) -> Result<String> {
    session.check_direct()?;
    // An empty name of a catalog or schema is that of none.
    let given = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(identifier);
    let schema = given(db_schema);
    let name = match &schema {
        Some(schema) => format!("{schema}.{}", identifier(table)),
        None => identifier(table),
    };
    match session.kind {
        SourceKind::Mysql if schema.is_some() => Err(no_table(&name)),
        SourceKind::Mysql => {
            mysql::find(session, catalog.filter(|name| !name.is_empty()), table, running)
        }
        SourceKind::Postgres => {
            postgres::check_table(session, catalog, &name, running)?;
            Ok(name)
        }
        SourceKind::Dray | SourceKind::Other => Ok(match (given(catalog), schema) {
            (Some(catalog), Some(_)) => format!("{catalog}.{name}"),
            (Some(catalog), None) => {
                format!("{catalog}.{}.{name}", identifier(DRAY_PLACE.1))
            }
            _ => name,
        }),
    }
}

/// A name in double quotes.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    }
}
