//! Bulk ingest: writing bound data into a table.

use std::ffi::c_char;

use adbc_core::constants::*;
use adbc_core::error::{Error, Result, Status};
use arrow::record_batch::RecordBatchReader;
use dray_client::{SourceKind, WriteMode, WriteOptions};

use crate::cancel::Running;
use crate::error::{invalid_argument, invalid_state, not_implemented};
use crate::objects::{literal, mysql};
use crate::options::{boolean, boolean_text, parsed};
use crate::session::Session;

const MODES: &[(&str, WriteMode)] = &[
    (ADBC_INGEST_OPTION_MODE_CREATE, WriteMode::Create),
    (ADBC_INGEST_OPTION_MODE_APPEND, WriteMode::Append),
    (ADBC_INGEST_OPTION_MODE_REPLACE, WriteMode::Replace),
    (ADBC_INGEST_OPTION_MODE_CREATE_APPEND, WriteMode::CreateAppend),
];

/// The number of connections that write.
const CONNECTIONS: &str = "dray.ingest.partitions";

/// The SQLSTATEs of a table that lacks a column of the data, or has it with another type.
const MISMATCHES: [&[u8; 5]; 2] = [b"42703", b"42804"];

/// Where a statement's bound data is written.
#[derive(Debug, Default)]
pub(crate) struct IngestSettings {
    table: Option<String>,
    catalog: Option<String>,
    options: WriteOptions,
}

impl IngestSettings {
    /// Whether the statement writes, instead of running SQL.
    pub(crate) fn is_set(&self) -> bool {
        self.table.is_some()
    }

    /// The statement runs SQL.
    pub(crate) fn clear_table(&mut self) {
        self.table = None;
    }

    /// Sets an option. Returns false if there is none of this name.
    ///
    /// # Errors
    /// InvalidArguments, for a bad value.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        let named = Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            ADBC_INGEST_OPTION_TARGET_TABLE if value.is_empty() => {
                return Err(invalid_argument(format!("{key} is empty, expected a table's name")));
            }
            ADBC_INGEST_OPTION_TARGET_TABLE => self.table = named,
            ADBC_INGEST_OPTION_TARGET_CATALOG => self.catalog = named,
            ADBC_INGEST_OPTION_TARGET_DB_SCHEMA => self.options.schema = named,
            ADBC_INGEST_OPTION_TEMPORARY => self.options.temporary = boolean(key, value)?,
            CONNECTIONS => self.options.connections = parsed(key, value)?,
            ADBC_INGEST_OPTION_MODE => {
                let mode = MODES.iter().find(|(name, _)| *name == value);
                let (_, mode) = mode.ok_or_else(|| {
                    let names: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
                    invalid_argument(format!("{key} is {value:?}, expected {}", names.join(", ")))
                })?;
                self.options.mode = *mode;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The text of an option; None if there is none of this name, or it has no value.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        match key {
            ADBC_INGEST_OPTION_TARGET_TABLE => self.table.clone(),
            ADBC_INGEST_OPTION_TARGET_CATALOG => self.catalog.clone(),
            ADBC_INGEST_OPTION_TARGET_DB_SCHEMA => self.options.schema.clone(),
            ADBC_INGEST_OPTION_TEMPORARY => Some(boolean_text(self.options.temporary)),
            CONNECTIONS => Some(self.options.connections.to_string()),
            ADBC_INGEST_OPTION_MODE => {
                let mode = MODES.iter().find(|(_, mode)| *mode == self.options.mode);
                mode.map(|(name, _)| (*name).to_owned())
            }
            _ => None,
        }
    }

    /// Writes the data, and returns the number of rows.
    ///
    /// # Errors
    /// InvalidState without a table, and for a temporary one in a schema; NotImplemented for a Dray
    /// server, or another database of PostgreSQL; AlreadyExists if the table has other columns than
    /// the data, as ADBC's header wants it; when a value does not fit, or the server refuses.
    pub(crate) fn run(
        &self,
        session: &Session,
        data: Box<dyn RecordBatchReader + Send>,
        running: &Running,
    ) -> Result<u64> {
        let Some(table) = &self.table else {
            return Err(invalid_state("the statement names no table to write into"));
        };
        if self.options.temporary && self.options.schema.is_some() {
            return Err(invalid_state("a temporary table has no schema of its own"));
        }
        let options = match session.kind {
            SourceKind::Postgres => self.postgres_options(session, table, running)?,
            SourceKind::Mysql => self.mysql_options(session, table, running)?,
            SourceKind::Dray | SourceKind::Other => {
                return Err(not_implemented("a Dray server only reads: it takes no bulk ingest"));
            }
        };
        session.write(table, data, &options, running).map_err(|error| {
            let is_mismatch = MISMATCHES.iter().any(|it| it.map(|c| c as c_char) == error.sqlstate);
            match is_mismatch && self.options.mode != WriteMode::Create {
                true => Error { status: Status::AlreadyExists, ..error },
                false => error,
            }
        })
    }

    /// The options of writing into PostgreSQL, whose catalogs are databases.
    fn postgres_options(
        &self,
        session: &Session,
        table: &str,
        running: &Running,
    ) -> Result<WriteOptions> {
        if let Some(catalog) = &self.catalog {
            let rows = session.ask("SELECT pg_catalog.current_database()", running)?;
            let current = rows.into_iter().flatten().flatten().next().unwrap_or_default();
            if *catalog != current {
                return Err(not_implemented(format!(
                    "{ADBC_INGEST_OPTION_TARGET_CATALOG} is {catalog:?}, and the connection's \
                     database is {current:?} (connect to the other database to write into it)"
                )));
            }
        }
        let mut options = self.options.clone();
        if options.mode == WriteMode::Append && options.schema.is_none() && !options.temporary {
            options.schema = permanent_schema(session, table, running)?;
        }
        Ok(options)
    }

    /// The options of writing into MySQL, whose databases are catalogs. One that is named as a
    /// schema is taken too: in MySQL the words mean the same.
    fn mysql_options(
        &self,
        session: &Session,
        table: &str,
        running: &Running,
    ) -> Result<WriteOptions> {
        let mut options = self.options.clone();
        options.schema = match (&self.catalog, &self.options.schema) {
            (Some(catalog), Some(schema)) if catalog != schema => {
                return Err(not_implemented(format!(
                    "{ADBC_INGEST_OPTION_TARGET_CATALOG} is {catalog:?} and \
                     {ADBC_INGEST_OPTION_TARGET_DB_SCHEMA} {schema:?} (a table of MySQL is in a \
                     database alone)"
                )));
            }
            (catalog, schema) => catalog.clone().or_else(|| schema.clone()),
        };
        // Only a table that is created ends a transaction.
        if options.mode == WriteMode::CreateAppend && !options.temporary {
            let database =
                options.schema.as_deref().map_or("database()".to_owned(), mysql::literal);
            let sql = format!(
                "SELECT 1 FROM information_schema.tables WHERE table_schema = {database} \
                     AND table_name = {}",
                mysql::literal(table)
            );
            options.mode = match session.ask(&sql, running)?.is_empty() {
                true => WriteMode::Create,
                false => WriteMode::Append,
            };
        }
        Ok(options)
    }
}

/// The schema of the first table of this name in the search path that is not temporary, or the
/// current schema. By ADBC's options a table is temporary only if they say so, while SQL finds a
/// temporary one first.
fn permanent_schema(session: &Session, table: &str, running: &Running) -> Result<Option<String>> {
    let sql = format!(
        "SELECT coalesce((SELECT n.nspname \
             FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) \
                 WITH ORDINALITY AS s(name, place) \
             JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) s.name \
             JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid \
             WHERE c.relname::pg_catalog.text OPERATOR(pg_catalog.=) {}::pg_catalog.text \
                 AND pg_catalog.strpos('rpvf', c.relkind::pg_catalog.text) \
                     OPERATOR(pg_catalog.>) 0 \
                 AND c.relpersistence::pg_catalog.text OPERATOR(pg_catalog.<>) 't' \
             ORDER BY s.place LIMIT 1), pg_catalog.current_schema())",
        literal(table)
    );
    Ok(session.ask(&sql, running)?.into_iter().flatten().flatten().next())
}
