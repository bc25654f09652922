//! The databases of MySQL and MariaDB, which are catalogs here. Their tables are in a schema
//! without a name.

use std::collections::HashMap;

use adbc_core::constants::ADBC_STATISTIC_ROW_COUNT_KEY;
use adbc_core::error::{Result, Status};

use super::information_schema::{self, is_match, texts};
use super::statistics::{SchemaStatistics, Statistic, Value};
use super::{Catalog, Constraint, Filter, Schema, Usage};
use crate::cancel::Running;
use crate::connection::no_table;
use crate::error::failed;
use crate::session::{Session, TextRows};

/// The databases of the server's own. They are listed when they are named.
const SYSTEM: &str = "'information_schema', 'mysql', 'performance_schema', 'sys'";

/// Lists what the server has.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn list(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<Catalog>> {
    let named = filter.catalog.map(|name| format!(" OR schema_name = {}", literal(name)));
    let listed = format!("schema_name NOT IN ({SYSTEM}){}", named.unwrap_or_default());
    let sql = format!(
        "SELECT schema_name FROM information_schema.schemata WHERE {listed} \
         ORDER BY BINARY schema_name"
    );
    let databases = session.ask(&sql, running)?;
    // Of the databases that the filter names, so that a large server is not asked about all.
    let names = databases.iter().map(|row| texts::<1>(row)[0]);
    let names: Vec<_> = names.filter(|name| is_match(filter.catalog, name)).collect();
    let among = names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ");
    let (mut tables, mut columns, mut constraints) = (Vec::new(), Vec::new(), HashMap::new());
    if filter.has_tables() && !names.is_empty() {
        let sql = format!(
            "SELECT table_schema, '', table_name, table_type FROM information_schema.tables \
             WHERE table_schema IN ({among}) ORDER BY BINARY table_schema, BINARY table_name"
        );
        tables = session.ask(&sql, running)?;
        if filter.has_columns() {
            let sql = format!(
                "SELECT table_schema, '', table_name, column_name, column_type, is_nullable \
                 FROM information_schema.columns WHERE table_schema IN ({among}) \
                 ORDER BY BINARY table_schema, BINARY table_name, ordinal_position"
            );
            columns = session.ask(&sql, running)?;
            constraints = constraints_of(session.ask(&constraints_sql(&among), running)?);
        }
    }
    let mut found = information_schema::list(&tables, columns, filter);
    let mut of_database = |name: &str| {
        let mut schemas = found
            .iter_mut()
            .find(|catalog| catalog.name == name)
            .and_then(|catalog| catalog.schemas.take())
            .unwrap_or_default();
        // A database without tables has its schema, too.
        if schemas.is_empty() && is_match(filter.db_schema, "") {
            schemas =
                vec![Schema { name: String::new(), tables: filter.has_tables().then(Vec::new) }];
        }
        for table in schemas.iter_mut().filter_map(|schema| schema.tables.as_mut()).flatten() {
            if let Some(listed) = &mut table.constraints {
                let key = (name.to_owned(), table.name.clone());
                listed.extend(constraints.remove(&key).unwrap_or_default());
            }
        }
        schemas
    };
    Ok(names
        .into_iter()
        .map(|name| Catalog {
            name: name.to_owned(),
            schemas: filter.has_schemas().then(|| of_database(name)),
        })
        .collect())
}

/// A row for each column of each key, in the key's order.
fn constraints_sql(databases: &str) -> String {
    format!(
        "SELECT k.table_schema, k.table_name, k.constraint_name, c.constraint_type, \
             k.column_name, k.referenced_table_schema, k.referenced_table_name, \
             k.referenced_column_name \
         FROM information_schema.key_column_usage k \
         JOIN information_schema.table_constraints c \
             ON c.constraint_schema = k.constraint_schema AND c.table_name = k.table_name \
             AND c.constraint_name = k.constraint_name \
             AND (c.constraint_type = 'FOREIGN KEY') = (k.referenced_table_name IS NOT NULL) \
         WHERE k.table_schema IN ({databases}) \
         ORDER BY BINARY k.table_schema, BINARY k.table_name, BINARY k.constraint_name, \
             c.constraint_type, k.ordinal_position"
    )
}

/// Constraints by the names of their database and table.
fn constraints_of(rows: TextRows) -> HashMap<(String, String), Vec<Constraint>> {
    let mut constraints: HashMap<_, Vec<Constraint>> = HashMap::new();
    for row in &rows {
        let [database, table, name, kind, column, in_database, in_table, in_column] = texts(row);
        let of_table = constraints.entry((database.to_owned(), table.to_owned())).or_default();
        let is_next = |last: &Constraint| last.name != name || last.constraint_type != kind;
        if of_table.last().is_none_or(is_next) {
            of_table.push(Constraint {
                name: name.to_owned(),
                constraint_type: kind.to_owned(),
                columns: Vec::new(),
                usage: (kind == "FOREIGN KEY").then(Vec::new),
            });
        }
        let Some(constraint) = of_table.last_mut() else { continue };
        constraint.columns.push(column.to_owned());
        if let Some(usage) = &mut constraint.usage {
            usage.push(Usage {
                catalog: Some(in_database.to_owned()),
                schema: Some(String::new()),
                table: in_table.to_owned(),
                column: in_column.to_owned(),
            });
        }
    }
    constraints
}

/// The numbers of rows that the storage engines estimate.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn statistics(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<SchemaStatistics>> {
    if !is_match(filter.db_schema, "") {
        return Ok(Vec::new());
    }
    let sql = "SELECT table_schema, table_name, table_rows FROM information_schema.tables \
               WHERE table_schema = database() AND table_rows IS NOT NULL ORDER BY 1, 2";
    let mut schemas: Vec<SchemaStatistics> = Vec::new();
    for row in session.ask(sql, running)? {
        let [database, table, rows] = texts(&row);
        if !is_match(filter.catalog, database) || !is_match(filter.table_name, table) {
            continue;
        }
        if schemas.is_empty() {
            let (catalog, schema) = (database.to_owned(), String::new());
            schemas.push(SchemaStatistics { catalog, schema, statistics: Vec::new() });
        }
        let rows = rows.parse().map_err(|_| {
            failed(Status::InvalidData, format!("{rows:?} is no number of rows of {table:?}"))
        })?;
        if let Some(schema) = schemas.last_mut() {
            schema.statistics.push(Statistic {
                table: table.to_owned(),
                column: None,
                key: ADBC_STATISTIC_ROW_COUNT_KEY,
                value: Value::Estimate(rows),
            });
        }
    }
    Ok(schemas)
}

/// The name of a table for a statement, if there is one.
///
/// # Errors
/// NotFound, and when the server can't be asked.
pub(super) fn find(
    session: &Session,
    database: Option<&str>,
    table: &str,
    running: &Running,
) -> Result<String> {
    let place = database.map_or_else(|| "database()".to_owned(), literal);
    let sql = format!(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = {place} AND table_name = {}",
        literal(table)
    );
    let name = match database {
        Some(database) => format!("{}.{}", identifier(database), identifier(table)),
        None => identifier(table),
    };
    match session.ask(&sql, running)?.is_empty() {
        true => Err(no_table(&name)),
        false => Ok(name),
    }
}

/// A string as hexadecimal digits, in which no mode of the server reads an escape.
pub(crate) fn literal(text: &str) -> String {
    match text.is_empty() {
        true => "''".to_owned(),
        false => {
            let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            format!("_utf8mb4 0x{digits}")
        }
    }
}

/// A name in backticks.
pub(crate) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(literal("a'"), "_utf8mb4 0x6127");
        assert_eq!(literal(""), "''");
    }

    #[test]
    fn keys_of_several_columns() {
        let row = |values: [&str; 8]| values.map(|value| Some(value.to_owned())).to_vec();
        let mut found = constraints_of(vec![
            row(["d", "t", "PRIMARY", "PRIMARY KEY", "a", "", "", ""]),
            row(["d", "t", "PRIMARY", "PRIMARY KEY", "b", "", "", ""]),
            row(["d", "t", "f", "FOREIGN KEY", "a", "d", "u", "x"]),
        ]);
        let found = found.remove(&("d".to_owned(), "t".to_owned())).unwrap();
        assert_eq!(found[0].columns, ["a", "b"]);
        assert_eq!(found[1].usage.as_ref().unwrap()[0].column, "x");
    }
}
