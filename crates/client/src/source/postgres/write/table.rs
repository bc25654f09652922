//! The table that is written into: creating it, and its columns.

use arrow::datatypes::{Schema, SchemaRef};
use dray_pgcopy::{Encoder, Format, Target, create_type, named_type};
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use super::super::super::write::{check_columns, check_unchanged, position};
use super::super::policy::StatementPolicy;
use super::names::{check_names, identifier, literal};
use crate::error::{Error, ErrorKind, Result};
use crate::write::{WriteMode, WriteOptions};

/// SQLSTATE `duplicate_table`.
const DUPLICATE_TABLE: &str = "42P07";

/// A table and its columns.
pub(super) struct Table {
    /// The table's name as SQL writes it.
    name: String,
    columns: Vec<Column>,
    /// The columns in the order of the data's.
    targets: Vec<usize>,
}

/// A column as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    oid: u32,
    typmod: i32,
    declared: String,
}

/// What the encoders of data for a table know of its columns.
pub(super) struct ColumnTypes {
    targets: Vec<Target>,
    money_scale: Option<u8>,
}

impl ColumnTypes {
    /// An encoder of data with this schema.
    ///
    /// # Errors
    /// When types don't match.
    pub(super) fn encoder(&self, schema: SchemaRef) -> Result<Encoder> {
        Ok(Encoder::new(schema, self.targets.clone(), self.money_scale)?)
    }
}

impl Table {
    /// Creates the table as the mode says, and matches its columns with the data's.
    ///
    /// # Errors
    /// When the table can't be created, does not exist, or lacks a column.
    pub(super) fn prepare(
        session: &mut Session<Socket>,
        policy: &mut StatementPolicy,
        table: &str,
        schema: &Schema,
        options: &WriteOptions,
        check: SocketCheck<'_>,
    ) -> Result<Self> {
        check_arguments(session, table, schema, options, check)?;
        let name = match place(session, options, check)? {
            Some(place) => format!("{place}.{}", identifier(table)),
            None => identifier(table),
        };
        if options.mode != WriteMode::Append {
            create(session, policy, &name, schema, options, check)?;
        }
        let columns = columns(session, &name, check)?;
        if columns.is_empty() && !exists(session, &name, check)? {
            let shown =
                options.schema.as_ref().map_or(table.to_owned(), |s| format!("{s}.{table}"));
            return Err(Error::new(ErrorKind::Query, format!("table {shown:?} does not exist"))
                .with_hint("mode=\"create_append\" creates it")
                .with_sqlstate("42P01"));
        }
        Self::of_columns(name, columns, schema)
    }

    /// Creates a table, for example the one that becomes another later, and matches its columns
    /// with the data's. `name` is as SQL writes it.
    ///
    /// # Errors
    /// When the table can't be created.
    pub(super) fn create(
        session: &mut Session<Socket>,
        policy: &mut StatementPolicy,
        name: String,
        schema: &Schema,
        options: &WriteOptions,
        check: SocketCheck<'_>,
    ) -> Result<Self> {
        create(session, policy, &name, schema, options, check)?;
        let columns = columns(session, &name, check)?;
        Self::of_columns(name, columns, schema)
    }

    fn of_columns(name: String, columns: Vec<Column>, schema: &Schema) -> Result<Self> {
        let targets = targets(schema, &columns)?;
        Ok(Self { name, columns, targets })
    }

    /// The table's name as SQL writes it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The types of the columns that take the data.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(super) fn column_types(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<ColumnTypes> {
        let columns: Vec<&Column> = self.targets.iter().map(|i| &self.columns[*i]).collect();
        let types: Vec<_> = columns.iter().map(|column| (column.oid, column.typmod)).collect();
        let types = session.types(&types, check)?;
        let money_scale = session.money_scale(&types, check)?;
        let targets = types.into_iter().zip(&columns);
        let targets = targets
            .map(|(pg_type, column)| Target { pg_type, declared: column.declared.clone() })
            .collect();
        Ok(ColumnTypes { targets, money_scale })
    }

    /// The statement that takes the data.
    pub(super) fn copy_statement(&self, schema: &Schema, format: Format) -> String {
        let names: Vec<_> = schema.fields().iter().map(|field| identifier(field.name())).collect();
        let format = match format {
            Format::Binary => "binary",
            Format::Text => "text",
        };
        format!("COPY {} ({}) FROM STDIN (FORMAT {format})", self.name, names.join(", "))
    }

    /// Checks that the columns are still the same.
    ///
    /// # Errors
    /// When they are not.
    pub(super) fn check_unchanged(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        check_unchanged(&self.columns, &columns(session, &self.name, check)?)
    }
}

/// Checks what the caller gave.
///
/// # Errors
/// Usage.
pub(super) fn check_arguments(
    session: &mut Session<Socket>,
    table: &str,
    schema: &Schema,
    options: &WriteOptions,
    check: SocketCheck<'_>,
) -> Result<()> {
    if options.temporary && options.schema.is_some() {
        return Err(Error::usage("a temporary table has no schema of its own")
            .with_hint("leave schema or temporary out"));
    }
    check_names(session, table, schema, options, check)?;
    check_columns(schema, options)
}

/// The schema of the table, as SQL writes it; None for the first table of its name in the search
/// path.
///
/// # Errors
/// When a table is to be created, and there is no schema for it.
pub(super) fn place(
    session: &mut Session<Socket>,
    options: &WriteOptions,
    check: SocketCheck<'_>,
) -> Result<Option<String>> {
    match (&options.schema, options.temporary) {
        (Some(schema), _) => Ok(Some(identifier(schema))),
        (None, true) => Ok(Some("pg_temp".to_owned())),
        (None, false) if options.mode == WriteMode::Append => Ok(None),
        (None, false) => {
            let rows = session.ask("SELECT pg_catalog.current_schema()", check)?;
            match rows.into_iter().flatten().flatten().next() {
                Some(schema) => Ok(Some(identifier(&schema))),
                None => {
                    let what = "no schema of the session's search_path exists";
                    Err(Error::new(ErrorKind::Query, what).with_hint("name one in schema="))
                }
            }
        }
    }
}

fn create(
    session: &mut Session<Socket>,
    policy: &mut StatementPolicy,
    name: &str,
    schema: &Schema,
    options: &WriteOptions,
    check: SocketCheck<'_>,
) -> Result<()> {
    let columns = schema.fields().iter().map(|field| {
        let given = options.types.iter().find(|(name, _)| name == field.name());
        let pg_type = match (given, named_type(field)) {
            (Some((_, given)), _) => known_type(session, field.name(), given, check)?,
            (None, Some(named)) => known_type(session, field.name(), &named, check)?,
            (None, None) => create_type(field)?,
        };
        // On a line of its own, whatever a comment in the type's name does.
        Ok(format!("\n    {} {pg_type}\n", identifier(field.name())))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?.join(",");
    let temporary = if options.temporary { "TEMPORARY " } else { "" };
    let unless = if options.mode == WriteMode::CreateAppend { "IF NOT EXISTS " } else { "" };
    if options.mode == WriteMode::Replace {
        session.change(&format!("DROP TABLE IF EXISTS {name}"), check)?;
    }
    let statement = format!("CREATE {temporary}TABLE {unless}{name} ({columns})");
    if options.temporary {
        // Other connections don't see it.
        policy.note_statement(session, &statement);
    }
    session.change(&statement, check).map_err(already_there)
}

/// The error of a statement, with what to do if the table exists.
pub(super) fn already_there(error: dray_postgres::Error) -> Error {
    let is_there = error.sqlstate() == Some(DUPLICATE_TABLE);
    let error = Error::from(error);
    match is_there {
        true => error.with_hint("the mode append adds rows to it, and replace drops it first"),
        false => error,
    }
}

/// A type's name that the server knows. What it does not read as a type's name could be any SQL.
fn known_type(
    session: &mut Session<Socket>,
    column: &str,
    name: &str,
    check: SocketCheck<'_>,
) -> Result<String> {
    let is_known = format!("SELECT pg_catalog.to_regtype({})", literal(name));
    let unknown = || {
        Error::new(ErrorKind::Query, format!("column {column:?}: the server has no type {name:?}"))
            .with_hint("create it first, or name another one in types=")
            .with_sqlstate("42704")
    };
    match session.ask(&is_known, check) {
        Ok(rows) if rows.iter().flatten().any(Option::is_some) => Ok(name.to_owned()),
        Ok(_) => Err(unknown()),
        // The name does not parse.
        Err(error) if error.sqlstate() == Some("42601") => Err(unknown().with_sqlstate("42601")),
        Err(error) => Err(error.into()),
    }
}

/// The columns of a table, none if it does not exist.
fn columns(
    session: &mut Session<Socket>,
    name: &str,
    check: SocketCheck<'_>,
) -> Result<Vec<Column>> {
    let rows = session.ask(
        &format!(
            "SELECT a.attname, a.atttypid, a.atttypmod, \
                 pg_catalog.format_type(a.atttypid, a.atttypmod) \
             FROM pg_catalog.pg_attribute a \
             WHERE a.attrelid OPERATOR(pg_catalog.=) \
                     pg_catalog.to_regclass({})::pg_catalog.oid \
                 AND a.attnum OPERATOR(pg_catalog.>) '0'::pg_catalog.int2 AND NOT a.attisdropped \
             ORDER BY a.attnum",
            literal(name)
        ),
        check,
    )?;
    let column = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some(Column {
            name: row.next()??,
            oid: row.next()??.parse().ok()?,
            typmod: row.next()??.parse().ok()?,
            declared: row.next()??,
        })
    };
    rows.into_iter()
        .map(column)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::new(ErrorKind::Protocol, "the server's catalog can't be understood"))
}

fn exists(session: &mut Session<Socket>, name: &str, check: SocketCheck<'_>) -> Result<bool> {
    let rows = session.ask(&format!("SELECT pg_catalog.to_regclass({})", literal(name)), check)?;
    Ok(rows.into_iter().flatten().flatten().next().is_some())
}

/// For each column of the data the table's column of the same name.
fn targets(schema: &Schema, columns: &[Column]) -> Result<Vec<usize>> {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    schema.fields().iter().map(|field| position(&names, field.name())).collect()
}
