//! The table that `dray load` and `dray copy` write into.

use std::time::Duration;

use arrow::record_batch::RecordBatchReader;
use clap::{Args, ValueEnum};
use dray_client::{
    ConnectOptions, Connection, Estimate, Progress, WriteMode, WriteOptions, WriteStats,
};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::number;
use crate::progress::Meter;
use crate::statement::failed;

/// The description of writing in `--help`.
pub(crate) const HELP: &str = "\
All rows are written, or none if anything fails: in one transaction, or with several connections \
and for a new table of MySQL into a table dray_unfinished_… that gets its name at the end. Columns \
are matched by name; columns of the table that the data lacks get their defaults. Each value is \
written exactly, or it is an error that names the column, the row and the value. A new table has \
the type that holds all values of each column; nested values become json, or jsonb unless they are \
lists of simple ones.";

/// A table, and what becomes of it.
#[derive(Debug, Args)]
pub(crate) struct Destination {
    /// The table to write into, by its exact name
    #[arg(short, long, value_name = "NAME")]
    table: String,
    /// The table's schema, in MySQL its database [default: the first one of the search path; to
    /// append, that of the first table of this name; in MySQL the uri's]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// What becomes of the table
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,
    /// The type of a column of a new table: price=numeric(10,2)
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = column_type)]
    types: Vec<(String, String)>,
    /// Connections that write, up to 64. With several, the rows of a new or replaced table are in
    /// no particular order
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
}

/// What becomes of the table.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// It must not exist
    Create,
    /// It must exist
    Append,
    /// It is dropped if it exists
    Replace,
    /// It is created if it does not exist
    CreateAppend,
}

fn column_type(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, name)) if !name.is_empty() => Ok((column.to_owned(), name.to_owned())),
        _ => Err("expected COLUMN=TYPE".to_owned()),
    }
}

impl Destination {
    /// Connects to the database to write into.
    pub(crate) fn connect(uri: &str, options: &ConnectOptions) -> Result<Connection, Failure> {
        Connection::connect(uri, options).map_err(Failure::Client)
    }

    /// Writes all rows.
    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        data: impl RecordBatchReader + Send + 'static,
        estimate: Estimate,
        interrupt: &Interrupt,
        meter: &Meter,
    ) -> Result<WriteStats, Failure> {
        let options = WriteOptions {
            mode: match self.mode {
                Mode::Create => WriteMode::Create,
                Mode::Append => WriteMode::Append,
                Mode::Replace => WriteMode::Replace,
                Mode::CreateAppend => WriteMode::CreateAppend,
            },
            schema: self.schema.clone(),
            temporary: false,
            types: self.types.clone(),
            connections: self.connections,
        };
        let mut watch = meter.watch(interrupt.clone());
        let watch = move |progress: &Progress| watch(&Progress { estimate, ..*progress });
        connection
            .write(&self.table, data, &options, Some(Box::new(watch)))
            .map_err(|error| failed(error, interrupt))
    }

    /// What was written, in one line.
    pub(crate) fn summary(&self, stats: &WriteStats) -> String {
        let rate = |amount| number::rate(amount, stats.total.max(Duration::from_millis(1)));
        format!(
            "{}: {}, {} sent in {}, {} rows/s, {}/s",
            self.table,
            number::rows(stats.rows),
            number::bytes(stats.bytes),
            number::duration(stats.total),
            number::short(rate(stats.rows)),
            number::bytes(rate(stats.bytes)),
        )
    }
}
