//! PostgreSQL's catalog. Its statements qualify every name and operator: in a session whose search
//! path has another schema before `pg_catalog`, an unqualified one may be somebody else's.

use std::collections::HashMap;

use adbc_core::error::Result;

use super::statistics::{Analyzed, SchemaStatistics};
use super::{Catalog, Column, Constraint, Filter, Schema, Table, Usage};
use crate::cancel::Running;
use crate::connection::no_table;
use crate::session::{Session, TextRows};

/// The types of tables, and the `relkind` of each.
pub(crate) const TABLE_TYPES: [(&str, char); 5] = [
    ("table", 'r'),
    ("view", 'v'),
    ("materialized_view", 'm'),
    ("foreign_table", 'f'),
    ("partitioned_table", 'p'),
];

/// The first major version whose columns can be identities, and generated.
const IDENTITY_VERSION: u32 = 10;
const GENERATED_VERSION: u32 = 12;

/// Fails if there is no table of this quoted name, or if the catalog is another database. The
/// lookup itself does not fail, which would abort the user's transaction.
///
/// # Errors
/// NotFound, and when the server can't be asked.
pub(super) fn check_table(
    session: &Session,
    catalog: Option<&str>,
    name: &str,
    running: &Running,
) -> Result<()> {
    let is_here = match catalog.filter(|catalog| !catalog.is_empty()) {
        Some(catalog) => format!(
            "pg_catalog.current_database() OPERATOR(pg_catalog.=) {}::pg_catalog.name",
            literal(catalog)
        ),
        None => "true".to_owned(),
    };
    let sql = format!("SELECT {is_here} AND pg_catalog.to_regclass({}) IS NOT NULL", literal(name));
    let found = session.ask(&sql, running)?;
    match found.first().and_then(|row| row.first()) {
        Some(Some(found)) if found == "t" => Ok(()),
        _ => Err(no_table(name)),
    }
}

/// Lists what the database has, and the names of the others.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn list(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<Catalog>> {
    let databases = format!(
        "SELECT d.datname, d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() \
         FROM pg_catalog.pg_database d \
         WHERE d.datallowconn AND NOT d.datistemplate{} \
         ORDER BY d.datname",
        like("d.datname", filter.catalog)
    );
    let databases = session.ask(&databases, running)?;
    let mut catalogs = Vec::new();
    for row in databases {
        let mut row = Row(row.into_iter());
        let (name, is_current) = (row.text(), row.boolean());
        let schemas = match (filter.has_schemas(), is_current) {
            (false, _) => None,
            // Only the connection's own database can be read.
            (true, false) => Some(Vec::new()),
            (true, true) => Some(schemas(session, filter, running, &name)?),
        };
        catalogs.push(Catalog { name, schemas });
    }
    Ok(catalogs)
}

fn schemas(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
    catalog: &str,
) -> Result<Vec<Schema>> {
    let sql = format!(
        "SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE {} ORDER BY n.nspname",
        schema_condition(filter)
    );
    let mut schemas: Vec<Schema> = texts(session.ask(&sql, running)?)
        .map(|mut row| Schema { name: row.text(), tables: filter.has_tables().then(Vec::new) })
        .collect();
    if !filter.has_tables() {
        return Ok(schemas);
    }
    let mut details = match filter.has_columns() {
        true => Some(Details::ask(session, filter, running, catalog)?),
        false => None,
    };
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind{} ORDER BY n.nspname, c.relname",
        tables_from(filter, "")
    );
    for mut row in texts(session.ask(&sql, running)?) {
        let (oid, schema, name, kind) = (row.text(), row.text(), row.text(), row.text());
        let (columns, constraints) = match &mut details {
            Some(details) => (
                Some(details.columns.remove(&oid).unwrap_or_default()),
                Some(details.constraints.remove(&oid).unwrap_or_default()),
            ),
            None => (None, None),
        };
        let known = TABLE_TYPES.iter().find(|(_, relkind)| kind.starts_with(*relkind));
        let table_type = known.map_or("", |(name, _)| name).to_owned();
        let table = Table { name, table_type, columns, constraints };
        let schema = schemas.iter_mut().find(|listed| listed.name == schema);
        if let Some(tables) = schema.and_then(|schema| schema.tables.as_mut()) {
            tables.push(table);
        }
    }
    Ok(schemas)
}

/// What ANALYZE and VACUUM have left in the catalog, as far as the user may read the columns. Of a
/// table without that, the widths of columns of fixed width.
///
/// # Errors
/// When the server can't be asked.
pub(super) fn statistics(
    session: &Session,
    filter: &Filter<'_>,
    running: &Running,
) -> Result<Vec<SchemaStatistics>> {
    // An inheritance tree has a second set of statistics, which a partitioned table has alone.
    // Before version 14, a table that was never analyzed has no pages and no rows.
    let from = " LEFT JOIN pg_catalog.pg_stats s \
             ON s.schemaname OPERATOR(pg_catalog.=) n.nspname \
             AND s.tablename OPERATOR(pg_catalog.=) c.relname \
             AND s.inherited OPERATOR(pg_catalog.=) \
                 (c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) 'p') \
         LEFT JOIN pg_catalog.pg_attribute a \
             ON s.attname IS NULL AND a.attrelid OPERATOR(pg_catalog.=) c.oid \
             AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped \
             AND a.attlen OPERATOR(pg_catalog.>) 0::pg_catalog.int2 \
             AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')";
    let sql = format!(
        "SELECT pg_catalog.current_database(), n.nspname, c.relname, \
             CASE WHEN c.reltuples OPERATOR(pg_catalog.>) 0::pg_catalog.float4 \
                 OR c.reltuples OPERATOR(pg_catalog.=) 0::pg_catalog.float4 \
                 AND c.relpages OPERATOR(pg_catalog.>) 0 \
             THEN c.reltuples::pg_catalog.float8 END, \
             coalesce(s.attname, a.attname), s.null_frac, coalesce(s.avg_width, a.attlen), \
             s.n_distinct{}{} \
         ORDER BY n.nspname, c.relname, coalesce(s.attname, a.attname)",
        tables_from(filter, from),
        like("pg_catalog.current_database()", filter.catalog)
    );
    let mut schemas: Vec<SchemaStatistics> = Vec::new();
    for mut row in texts(session.ask(&sql, running)?) {
        let (catalog, schema) = (row.text(), row.text());
        if schemas.last().is_none_or(|last| last.schema != schema) {
            schemas.push(SchemaStatistics { catalog, schema, statistics: Vec::new() });
        }
        let table = Analyzed {
            table: row.text(),
            rows: row.number(),
            column: row.next(),
            null_fraction: row.number(),
            average_width: row.number(),
            distinct: row.number(),
        };
        if let Some(schema) = schemas.last_mut() {
            schema.add(table);
        }
    }
    Ok(schemas)
}

/// The columns and constraints of tables, by the oid of the table.
struct Details {
    columns: HashMap<String, Vec<Column>>,
    constraints: HashMap<String, Vec<Constraint>>,
}

impl Details {
    fn ask(
        session: &Session,
        filter: &Filter<'_>,
        running: &Running,
        catalog: &str,
    ) -> Result<Self> {
        let version = major_version(&session.server);
        let columns = session.ask(&columns_sql(filter, version), running)?;
        let constraints = session.ask(&constraints_sql(filter), running)?;
        Ok(Self { columns: columns_of(columns), constraints: constraints_of(constraints, catalog) })
    }
}

fn columns_sql(filter: &Filter<'_>, version: u32) -> String {
    let identity = match version >= IDENTITY_VERSION {
        true => "a.attidentity::pg_catalog.text OPERATOR(pg_catalog.<>) ''",
        false => "false",
    };
    let generated = match version >= GENERATED_VERSION {
        true => "a.attgenerated::pg_catalog.text OPERATOR(pg_catalog.<>) ''",
        false => "false",
    };
    let from = format!(
        " JOIN pg_catalog.pg_attribute a \
             ON a.attrelid OPERATOR(pg_catalog.=) c.oid \
             AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 \
             AND NOT a.attisdropped{} \
         LEFT JOIN pg_catalog.pg_attrdef d \
             ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid \
             AND d.adnum OPERATOR(pg_catalog.=) a.attnum",
        like("a.attname", filter.column_name)
    );
    format!(
        "SELECT c.oid, a.attname, a.attnum, pg_catalog.col_description(c.oid, a.attnum), \
             pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, \
             pg_catalog.pg_get_expr(d.adbin, d.adrelid), {identity}, {generated}{} \
         ORDER BY c.oid, a.attnum",
        tables_from(filter, &from)
    )
}

fn columns_of(rows: TextRows) -> HashMap<String, Vec<Column>> {
    let mut columns: HashMap<String, Vec<Column>> = HashMap::new();
    for mut row in texts(rows) {
        columns.entry(row.text()).or_default().push(Column {
            name: row.text(),
            position: row.text().parse().unwrap_or_default(),
            remarks: row.next(),
            type_name: row.next(),
            nullable: !row.boolean(),
            default: row.next(),
            autoincrement: Some(row.boolean()),
            generated: Some(row.boolean()),
        });
    }
    columns
}

/// A row for each column of each constraint, in the constraint's order.
fn constraints_sql(filter: &Filter<'_>) -> String {
    let from = " JOIN pg_catalog.pg_constraint k \
             ON k.conrelid OPERATOR(pg_catalog.=) c.oid \
             AND k.contype::pg_catalog.text OPERATOR(pg_catalog.~) '^[cfpu]$' \
         LEFT JOIN LATERAL pg_catalog.generate_subscripts(k.conkey, 1) AS s(i) ON true \
         LEFT JOIN pg_catalog.pg_attribute a \
             ON a.attrelid OPERATOR(pg_catalog.=) k.conrelid \
             AND a.attnum OPERATOR(pg_catalog.=) k.conkey[s.i] \
         LEFT JOIN pg_catalog.pg_class f ON f.oid OPERATOR(pg_catalog.=) k.confrelid \
         LEFT JOIN pg_catalog.pg_namespace m ON m.oid OPERATOR(pg_catalog.=) f.relnamespace \
         LEFT JOIN pg_catalog.pg_attribute b \
             ON b.attrelid OPERATOR(pg_catalog.=) k.confrelid \
             AND b.attnum OPERATOR(pg_catalog.=) k.confkey[s.i]";
    format!(
        "SELECT c.oid, k.oid, k.conname, k.contype, a.attname, m.nspname, f.relname, b.attname{} \
         ORDER BY c.oid, k.conname, k.oid, s.i",
        tables_from(filter, from)
    )
}

fn constraints_of(rows: TextRows, catalog: &str) -> HashMap<String, Vec<Constraint>> {
    let mut constraints: HashMap<String, Vec<Constraint>> = HashMap::new();
    let mut last = String::new();
    for mut row in texts(rows) {
        let of_table = constraints.entry(row.text()).or_default();
        let (oid, name, kind, column) = (row.text(), row.text(), row.text(), row.next());
        let (schema, table, referenced) = (row.next(), row.next(), row.next());
        if oid != last {
            last = oid;
            let constraint_type = match kind.as_str() {
                "c" => "CHECK",
                "f" => "FOREIGN KEY",
                "p" => "PRIMARY KEY",
                _ => "UNIQUE",
            };
            of_table.push(Constraint {
                name,
                constraint_type: constraint_type.to_owned(),
                columns: Vec::new(),
                usage: (kind == "f").then(Vec::new),
            });
        }
        let Some(constraint) = of_table.last_mut() else { continue };
        constraint.columns.extend(column);
        if let (Some(usage), Some(table), Some(column)) = (&mut constraint.usage, table, referenced)
        {
            usage.push(Usage { catalog: Some(catalog.to_owned()), schema, table, column });
        }
    }
    constraints
}

/// The tables that a filter lists, joined with more.
fn tables_from(filter: &Filter<'_>, more: &str) -> String {
    let kinds: String = TABLE_TYPES
        .iter()
        .filter(|(name, _)| filter.table_type.as_ref().is_none_or(|types| types.contains(name)))
        .map(|(_, kind)| *kind)
        .collect();
    format!(
        " FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace{more} \
         WHERE pg_catalog.strpos('{kinds}', c.relkind::pg_catalog.text) \
             OPERATOR(pg_catalog.>) 0 AND {}{}",
        schema_condition(filter),
        like("c.relname", filter.table_name)
    )
}

/// Lists the schemas of users, and the session's temporary one. The system's are listed when the
/// filter names one, without wildcards.
fn schema_condition(filter: &Filter<'_>) -> String {
    let named = filter.db_schema.map_or_else(String::new, |name| {
        format!(
            " OR n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) {}::pg_catalog.text",
            literal(name)
        )
    });
    format!(
        "(n.nspname::pg_catalog.text \
             OPERATOR(pg_catalog.!~) '^(pg_.*|information_schema)$' \
         OR n.oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema(){named}){}",
        like("n.nspname", filter.db_schema)
    )
}

/// A condition that a name matches a pattern, for the end of others.
fn like(column: &str, pattern: Option<&str>) -> String {
    pattern.map_or_else(String::new, |pattern| {
        format!(
            " AND {column}::pg_catalog.text OPERATOR(pg_catalog.~~) {}::pg_catalog.text",
            literal(pattern)
        )
    })
}

/// A string literal that means the same whatever `standard_conforming_strings` is.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// The first number of `PostgreSQL 15.14 (Debian …)`.
fn major_version(server: &str) -> u32 {
    let digits = server.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// The values of a row, from the first on.
struct Row(std::vec::IntoIter<Option<String>>);

impl Row {
    fn next(&mut self) -> Option<String> {
        self.0.next().flatten()
    }

    fn text(&mut self) -> String {
        self.next().unwrap_or_default()
    }

    fn number(&mut self) -> Option<f64> {
        self.next().and_then(|text| text.parse().ok())
    }

    fn boolean(&mut self) -> bool {
        self.next().is_some_and(|text| text == "t")
    }
}

fn texts(rows: TextRows) -> impl Iterator<Item = Row> {
    rows.into_iter().map(|row| Row(row.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> TextRows {
        let value = |text: &&str| (*text != "-").then(|| (*text).to_owned());
        rows.iter().map(|row| row.iter().map(value).collect()).collect()
    }

    #[test]
    fn literals_mean_themselves() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(like("a", None), "");
    }

    #[test]
    fn versions() {
        assert_eq!(major_version("PostgreSQL 15.14 (Debian 15.14-0+deb12u1)"), 15);
        assert_eq!(major_version("PostgreSQL 18beta1"), 18);
        assert_eq!(major_version("PostgreSQL"), 0);
    }

    #[test]
    fn rows_of_columns_are_one_constraint() {
        let found = constraints_of(
            rows(&[
                &["7", "1", "k", "f", "a", "s", "u", "x"],
                &["7", "1", "k", "f", "b", "s", "u", "y"],
                &["7", "2", "p", "p", "a", "-", "-", "-"],
                &["8", "3", "c", "c", "-", "-", "-", "-"],
            ]),
            "db",
        );
        let [key, primary] = &found["7"][..] else { panic!("{found:?}") };
        assert_eq!(
            (key.constraint_type.as_str(), key.columns.join(",")),
            ("FOREIGN KEY", "a,b".into())
        );
        let usage = key.usage.as_ref().unwrap();
        assert_eq!((usage[1].column.as_str(), usage[1].catalog.as_deref()), ("y", Some("db")));
        assert_eq!((primary.constraint_type.as_str(), &primary.usage), ("PRIMARY KEY", &None));
        assert!(found["8"][0].columns.is_empty());
    }

    #[test]
    fn columns_have_their_facts() {
        let found = columns_of(rows(&[&["7", "a", "1", "-", "integer", "t", "5", "f", "t"]]));
        let column = &found["7"][0];
        assert_eq!((column.name.as_str(), column.position, column.nullable), ("a", 1, false));
        assert_eq!((column.default.as_deref(), column.generated), (Some("5"), Some(true)));
    }
}
