//! Writing: Arrow data into a table of a database.

use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::stats::Progress;
use crate::watch::{Verdict, Watch};

/// What becomes of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// It is created; if it exists, that is an error.
    #[default]
    Create,
    /// It exists, and gets more rows.
    Append,
    /// It is created, and replaces one that exists once all rows are there.
    Replace,
    /// It is created if it does not exist, and gets more rows.
    CreateAppend,
}

impl std::str::FromStr for WriteMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "create" => Self::Create,
            "append" => Self::Append,
            "replace" => Self::Replace,
            "create_append" => Self::CreateAppend,
            _ => {
                return Err(format!(
                    "mode {text:?}, expected create, append, replace or create_append"
                ));
            }
        })
    }
}

/// Where data is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// What becomes of the table.
    pub mode: WriteMode,
    /// The table's schema; in MySQL its database, by default the session's. By default a table of
    /// PostgreSQL is created in the session's current schema, and rows are appended to the first
    /// table of this name in its `search_path`.
    pub schema: Option<String>,
    /// The table belongs to the session, and disappears with it.
    pub temporary: bool,
    /// Types of columns of a table that is created, by the columns' names, as SQL writes them.
    pub types: Vec<(String, String)>,
    /// The number of connections that write, from 1 to 64. Several fill a staging table, which gets
    /// its name once all rows are there; rows are in no particular order then. They can create or
    /// replace a table, outside a transaction.
    pub connections: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            mode: WriteMode::default(),
            schema: None,
            temporary: false,
            types: Vec::new(),
            connections: 1,
        }
    }
}

/// What was written, and where the time went: that of reading, encoding and sending summed over all
/// connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteStats {
    /// The rows that the server has counted. A trigger may have left rows out.
    pub rows: u64,
    /// Bytes of the rows as they were sent.
    pub bytes: u64,
    /// Whether the rows were sent as text: to PostgreSQL if a column's type has no binary form
    /// here, to MySQL by LOAD DATA.
    pub as_text: bool,
    /// Creating the table, and finding out its columns.
    pub prepare: Duration,
    /// Waiting for the data's source.
    pub read: Duration,
    /// Turning columns into rows.
    pub encode: Duration,
    /// Waiting until the server takes what is sent.
    pub send: Duration,
    /// Everything, with the commit.
    pub total: Duration,
}

impl WriteStats {
    /// Adds another connection's share.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.as_text |= other.as_text;
        self.read += other.read;
        self.encode += other.encode;
        self.send += other.send;
    }
}

/// Data that is written. It is read by a thread of its own.
pub(crate) struct WriteJob<'a> {
    pub(crate) table: &'a str,
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    pub(crate) options: &'a WriteOptions,
}

impl Connection {
    /// Writes all rows of `data` into a table of PostgreSQL, MySQL or MariaDB: all of them, or none
    /// if anything fails. If a transaction is open, the rows belong to it, and it survives a
    /// failure; in MySQL no table is created then.
    ///
    /// # Errors
    /// When the types of data and table don't match, a value does not fit its column, the source or
    /// the server fails, the watch cancels, or the server is a Dray server.
    pub fn write(
        &mut self,
        table: &str,
        data: impl RecordBatchReader + Send + 'static,
        options: &WriteOptions,
        watch: Option<Watch>,
    ) -> Result<WriteStats> {
        self.check_own()?;
        let began = Instant::now();
        let schema = data.schema();
        let job = WriteJob { table, schema, batches: Box::new(data), options };
        let mut watch = watch.unwrap_or_else(|| Box::new(|_: &Progress| Verdict::Continue));
        // Not before: a source without a connection is no reason to give this connection up.
        let stats = self.source().write(job, &mut watch).map_err(Error::like_its_cause)?;
        Ok(WriteStats { total: began.elapsed(), ..stats })
    }
}
