//! A database that an ODBC driver reaches.

use std::sync::Arc;

use dray_bridge::program::{Database, Output, Statement as Query};
use dray_bridge::{Failure, FailureKind, Open};
use odbc_sys::{CDataType, InfoType};

use crate::column::{Asked, Column};
use crate::connection_string::ConnectionString;
use crate::fetch::{Extensions, Rows, schema};
use crate::odbc::{Buffer, Cancel, Cell, Connection, Diagnostic, Statement};
use crate::parameters::parameters;

/// `feature_not_supported`.
const UNSUPPORTED: &str = "0A000";

/// Opens databases by their ODBC drivers.
pub(crate) struct Opener;

impl dray_bridge::program::Opener for Opener {
    fn open(&self, open: &Open) -> Result<Box<dyn Database>, Failure> {
        let string = ConnectionString::of_uri(&open.uri);
        let redacted = |failure: Failure| redact(&string, failure);
        let opened = Connection::open(string.reveal(), !open.writable);
        let connection = opened.map_err(|cause| redacted(not_connected(cause)))?;
        let product = connection.info_text(InfoType::DbmsName);
        if product == "SQLite" {
            return Err(sqlite_refused());
        }
        let has_transactions = connection.info_number(InfoType::TransactionCapable) != Some(0);
        let rolls_back = !open.writable && has_transactions;
        if rolls_back {
            connection.begin_transactions().map_err(|cause| redacted(cause.into()))?;
        }
        let extensions = connection.info_number(InfoType::GetDataExtensions).unwrap_or(0);
        let cancel = Arc::default();
        let asked = Asked {
            texts: text_type(&connection, &cancel),
            dates_as_text: matches!(product.as_str(), "MariaDB" | "MySQL"),
        };
        if rolls_back {
            connection.rollback().map_err(|cause| redacted(cause.into()))?;
        }
        Ok(Box::new(Source {
            connection,
            string,
            rolls_back,
            extensions: Extensions(extensions),
            asked,
            cancel,
        }))
    }
}

/// A connection, and how it is used.
struct Source {
    connection: Connection,
    string: ConnectionString,
    /// Whether statements run in transactions that are rolled back.
    rolls_back: bool,
    extensions: Extensions,
    asked: Asked,
    cancel: Arc<Cancel>,
}

impl Database for Source {
    fn server(&self) -> String {
        let [name, version] =
            [InfoType::DbmsName, InfoType::DbmsVer].map(|info| self.connection.info_text(info));
        format!("{name} {version}").trim().to_owned()
    }

    fn dialect(&self) -> &str {
        match self.connection.info_text(InfoType::DbmsName).as_str() {
            "PostgreSQL" => "postgresql",
            "MySQL" | "MariaDB" => "mysql",
            _ => "sql",
        }
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let cancel = self.cancel.clone();
        Arc::new(move || cancel.cancel())
    }

    fn run(&mut self, query: &Query, output: &mut Output<'_>) -> Result<(), Failure> {
        let ran = self.pass_on(query, output);
        let ended = match self.rolls_back {
            true => self.connection.rollback().map_err(|cause| lost(cause.into())),
            false => Ok(()),
        };
        ran.and(ended).map_err(|failure| {
            let is_lost = failure.kind == FailureKind::Connection || self.connection.is_dead();
            redact(&self.string, if is_lost { lost(failure) } else { failure })
        })
    }
}

impl Source {
    fn pass_on(&self, query: &Query, output: &mut Output<'_>) -> Result<(), Failure> {
        let sql = &query.query.sql;
        let mut statement = Statement::new(&self.connection, &self.cancel)?;
        if query.query.plan_only {
            statement.prepare(sql)?;
            return output.begin(&schema(&self.columns(&mut statement)?), None);
        }
        match &query.parameters {
            Some(values) => {
                statement.prepare(sql)?;
                statement.bind_parameters(parameters(values)?)?;
                statement.execute()?;
            }
            None => statement.execute_direct(sql)?,
        }
        let columns = self.columns(&mut statement)?;
        output.begin(&schema(&columns), None)?;
        if !columns.is_empty() {
            Rows::new(&mut statement, &columns, &query.query, self.extensions)?.pass_on(output)?;
        }
        if statement.has_more_results()? {
            let what = "the statement has several results: run its parts one by one";
            return Err(Failure::new(FailureKind::Query, UNSUPPORTED, what));
        }
        Ok(())
    }

    fn columns(&self, statement: &mut Statement<'_>) -> Result<Vec<Column>, Failure> {
        let described = statement.describe()?;
        Ok(described.iter().map(|column| Column::of(column, self.asked)).collect())
    }
}

/// How texts are fetched: as UTF-8 if the driver gives this one so, and else as UTF-16, for which
/// some drivers take several times as long. What a driver gives as UTF-8 may depend on the locale.
fn text_type(connection: &Connection, cancel: &Arc<Cancel>) -> CDataType {
    const TEXT: &str = "é語🐎";
    let fetched = || {
        let mut statement = Statement::new(connection, cancel)?;
        statement.execute_direct(&format!("SELECT '{TEXT}'"))?;
        statement.set_rows(1)?;
        statement.bind(vec![Buffer::new(CDataType::Char, 64, 1)], |_| true)?;
        statement.fetch()?;
        let cell = statement.buffers().first().map(|buffer| buffer.cell(0));
        Ok::<_, Diagnostic>(cell == Some(Ok(Cell::Bytes(TEXT.as_bytes()))))
    };
    match fetched() {
        Ok(true) => CDataType::Char,
        _ => CDataType::WChar,
    }
}

/// The driver can't connect, or there is no driver.
fn not_connected(mut cause: Diagnostic) -> Failure {
    if cause.is_about_drivers() {
        cause.message += "; on the server, odbcinst -q -d lists the drivers that are installed, \
                          and odbcinst -q -s the data sources";
    }
    Failure { kind: FailureKind::Connection, ..Failure::from(cause) }
}

/// SQLite's driver cuts integers to the width of their declared type, gives 15 digits of floats,
/// and makes NULL or 0 of other values, all without a warning.
fn sqlite_refused() -> Failure {
    let what = "the ODBC driver of SQLite changes values without saying so; the source \
                sqlite:PATH reads SQLite's files itself";
    Failure { usable: false, ..Failure::new(FailureKind::Connection, UNSUPPORTED, what) }
}

/// A failure after which the connection can't be used.
fn lost(failure: Failure) -> Failure {
    Failure { kind: FailureKind::Connection, usable: false, ..failure }
}

/// A failure without passwords.
fn redact(string: &ConnectionString, failure: Failure) -> Failure {
    let message = string.redact(&failure.message);
    Failure { message, ..failure }
}
