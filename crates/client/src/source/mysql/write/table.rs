//! The table that is written into: finding and creating it, its columns, and the statements that
//! take rows.

use arrow::datatypes::{Schema, SchemaRef};
use dray_mysql::{BoundType, CancelCheck as SocketCheck, Connection as Socket, FILE_NAME, Session};

use super::super::super::write::{check_columns, check_unchanged, position};
use super::column::Column;
use super::create::{create_type, is_one_type};
use super::encoder::Encoder;
use super::select::{bound_type, needs_conversion};
use crate::error::{Error, ErrorKind, Result};
use crate::write::WriteOptions;

/// The most characters of a name.
const NAME_CHARACTERS: usize = 64;
/// ER_NO_SUCH_TABLE, and ER_BAD_TABLE_ERROR of a DROP.
pub(super) const NO_TABLE: u16 = 1146;
pub(super) const UNKNOWN_TABLE: u16 = 1051;
/// ER_TABLE_EXISTS_ERROR.
const TABLE_EXISTS: u16 = 1050;

/// A name as SQL writes it.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string without backslashes, as SQL writes it.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Checks what the caller gave.
///
/// # Errors
/// Usage.
pub(super) fn check_arguments(table: &str, schema: &Schema, options: &WriteOptions) -> Result<()> {
    let columns = schema.fields().iter().map(|field| ("a column", field.name().as_str()));
    let database = options.schema.as_deref().map(|name| ("the database", name));
    for (what, name) in [("the table", table)].into_iter().chain(database).chain(columns) {
        if name.is_empty() {
            return Err(Error::usage(format!("{what} has an empty name"))
                .with_hint("give it a name of at least one character"));
        }
        // The server drops blanks at the end.
        if name.contains('\0') || name.ends_with(' ') {
            let what = format!("the name {name:?} has a NUL or ends with a blank");
            return Err(Error::usage(what).with_hint("MySQL takes no such names"));
        }
        let characters = name.chars().count();
        if characters > NAME_CHARACTERS {
            let what = format!(
                "the name {name:?} of {what} has {characters} characters, and names have \
                 {NAME_CHARACTERS}"
            );
            return Err(Error::usage(what).with_hint("shorten it"));
        }
    }
    check_columns(schema, options)?;
    if let Some((column, text)) = options.types.iter().find(|(_, text)| !is_one_type(text)) {
        let what = format!("column {column:?}: {text:?} is no type");
        return Err(Error::new(ErrorKind::Query, what)
            .with_hint("give a type as SQL writes it, such as decimal(10,2)")
            .with_sqlstate("42000"));
    }
    Ok(())
}

/// A table's name as SQL writes it, with its database.
///
/// # Errors
/// When the session has no database.
pub(super) fn place(
    session: &mut Session<Socket>,
    options: &WriteOptions,
    check: SocketCheck<'_>,
) -> Result<String> {
    if let Some(database) = &options.schema {
        return Ok(identifier(database));
    }
    let rows = session.ask("SELECT database()", check)?;
    match rows.into_iter().flatten().flatten().next() {
        Some(database) => Ok(identifier(&database)),
        None => Err(Error::new(ErrorKind::Query, "no database is selected")
            .with_hint("name one in the uri or in schema=")
            .with_sqlstate("3D000")),
    }
}

/// What has a name already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Existing {
    pub(super) is_temporary: bool,
    /// None for a view.
    pub(super) engine: Option<String>,
}

impl Existing {
    /// What has this name; None if nothing has.
    ///
    /// # Errors
    /// When the server can't be asked.
    pub(super) fn find(
        session: &mut Session<Socket>,
        name: &str,
        check: SocketCheck<'_>,
    ) -> Result<Option<Self>> {
        let rows = match session.ask(&format!("SHOW CREATE TABLE {name}"), check) {
            Ok(rows) => rows,
            Err(error) if error.code() == Some(NO_TABLE) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let text = rows.into_iter().flatten().flatten().nth(1).unwrap_or_default();
        // A comment has no line breaks here.
        let engine = text.rsplit_once("\n) ENGINE=").map(|(_, rest)| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
        });
        let is_temporary = text.starts_with("CREATE TEMPORARY TABLE");
        Ok(Some(Self { is_temporary, engine: engine.map(str::to_owned) }))
    }

    /// Checks that rows can be appended, and all of them be taken back.
    ///
    /// # Errors
    /// Usage, if not.
    pub(super) fn check_appendable(
        &self,
        session: &mut Session<Socket>,
        name: &str,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let Some(engine) = &self.engine else {
            return Err(Error::usage(format!("{name} is a view"))
                .with_hint("write into the table behind it"));
        };
        let question = format!(
            "SELECT 1 FROM information_schema.engines WHERE engine = {} AND transactions = 'YES'",
            literal(engine)
        );
        match session.ask(&question, check)?.is_empty() {
            false => Ok(()),
            true => Err(Error::usage(format!(
                "{name} has the engine {engine}, which can't take rows back if a later one fails"
            ))
            .with_hint(
                "create a new table, and append that by INSERT … SELECT; or ALTER TABLE … \
                        ENGINE = InnoDB",
            )),
        }
    }
}

/// The error of a table that does not exist.
pub(super) fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Query, format!("table {name} does not exist"))
        .with_hint("mode=\"create_append\" creates it")
        .with_sqlstate("42S02")
}

/// The error of a table that exists.
pub(super) fn already_there(name: &str) -> Error {
    Error::new(ErrorKind::Query, format!("table {name} already exists"))
        .with_hint("the mode append adds rows to it, and replace drops it first")
        .with_sqlstate("42S01")
}

/// The error of a statement that gives a table its name.
pub(super) fn naming_failed(error: dray_mysql::Error, name: &str) -> Error {
    match error.code() {
        Some(TABLE_EXISTS) => already_there(name),
        _ => error.into(),
    }
}

/// The statement that creates a table for data of this schema.
///
/// # Errors
/// When there is no type for a column.
pub(super) fn create_statement(
    session: &Session<Socket>,
    name: &str,
    schema: &Schema,
    options: &WriteOptions,
) -> Result<String> {
    let columns = schema.fields().iter().map(|field| {
        let given = options.types.iter().find(|(name, _)| name == field.name());
        let mysql_type = match given {
            Some((_, given)) => given.clone(),
            None => create_type(field, session.server())?,
        };
        Ok(format!("{} {mysql_type}", identifier(field.name())))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?.join(", ");
    let temporary = if options.temporary { "TEMPORARY " } else { "" };
    Ok(format!("CREATE {temporary}TABLE {name} ({columns}) DEFAULT CHARACTER SET utf8mb4"))
}

/// A table and its columns.
pub(super) struct Table {
    /// Its name as SQL writes it.
    name: String,
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The columns in the order of the data's.
    targets: Vec<usize>,
}

impl Table {
    /// Matches the table's columns with the data's.
    ///
    /// # Errors
    /// When the table lacks a column, or needs a value that the data lacks.
    pub(super) fn of(
        session: &mut Session<Socket>,
        name: String,
        schema: SchemaRef,
        check: SocketCheck<'_>,
    ) -> Result<Self> {
        let columns = columns(session, &name, check)?;
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let targets = schema.fields().iter().map(|field| position(&names, field.name()));
        let targets = targets.collect::<Result<Vec<_>>>()?;
        let target = |i: &usize| &columns[*i];
        if let Some(column) = targets.iter().map(target).find(|column| column.generated) {
            let what = format!("column {:?} is generated: it takes no values", column.name);
            return Err(Error::new(ErrorKind::Query, what)
                .with_hint("leave it out of the data")
                .with_sqlstate("HY000"));
        }
        let lacking = columns.iter().enumerate();
        let mut lacking = lacking.filter(|(i, column)| !column.has_default && !targets.contains(i));
        if let Some((_, column)) = lacking.next() {
            let what = format!("column {:?} has no default, and the data lacks it", column.name);
            return Err(Error::new(ErrorKind::Query, what)
                .with_hint("add it to the data, or give it a default")
                .with_sqlstate("HY000"));
        }
        Ok(Self { name, schema, columns, targets })
    }

    fn matched(&self) -> impl Iterator<Item = (&arrow::datatypes::FieldRef, &Column)> {
        let columns = self.targets.iter().map(|i| &self.columns[*i]);
        self.schema.fields().iter().zip(columns)
    }

    /// An encoder of the data.
    ///
    /// # Errors
    /// When types don't match.
    pub(super) fn encoder(&self) -> Result<Encoder<'_>> {
        let columns = self.matched().map(|(_, column)| column).collect();
        Ok(Encoder::new(self.schema.clone(), columns)?)
    }

    /// The statement that takes rows as a file.
    pub(super) fn load_statement(&self) -> String {
        let (mut fields, mut sets) = (Vec::new(), Vec::new());
        for (i, (field, column)) in self.matched().enumerate() {
            let name = identifier(field.name());
            match needs_conversion(field, column) {
                true => {
                    fields.push(format!("@dray_{i}"));
                    sets.push(format!("{name} = CONVERT(@dray_{i} USING utf8mb4)"));
                }
                false => fields.push(name),
            }
        }
        let sets = if sets.is_empty() { "" } else { &*format!(" SET {}", sets.join(", ")) };
        // Numbers mean the same in every sql_mode.
        format!(
            "LOAD DATA LOCAL INFILE '{FILE_NAME}' INTO TABLE {} CHARACTER SET binary \
             FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5c LINES TERMINATED BY 0x0a ({}){sets}",
            self.name,
            fields.join(", ")
        )
    }

    /// The statement that takes this many rows as parameters.
    pub(super) fn insert_statement(&self, rows: usize) -> String {
        let names: Vec<_> = self.matched().map(|(field, _)| identifier(field.name())).collect();
        let row = format!("({})", vec!["?"; names.len()].join(","));
        let rows = vec![row; rows].join(",");
        format!("INSERT INTO {} ({}) VALUES {rows}", self.name, names.join(", "))
    }

    /// The types of the parameters of a row.
    pub(super) fn bound_types(&self) -> Vec<BoundType> {
        self.matched().map(|(field, column)| bound_type(field, column)).collect()
    }

    /// Checks that the columns are still the same. Until the transaction ends they stay so.
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

fn columns(
    session: &mut Session<Socket>,
    name: &str,
    check: SocketCheck<'_>,
) -> Result<Vec<Column>> {
    let rows = session.ask(&format!("SHOW FULL COLUMNS FROM {name}"), check)?;
    rows.into_iter()
        .map(Column::parse)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::new(ErrorKind::Protocol, "the table's columns can't be understood"))
}
