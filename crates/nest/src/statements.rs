//! Nesting what a server has: all statements over one connection and under one snapshot.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_client::{
    Connection, Isolation, Progress, QueryOptions, Results, SourceKind, Transaction, Verdict, Watch,
};

use crate::error::{Error, Result};
use crate::{NestOptions, Nested, Source, Spec, nest};

/// A server passes statements on, and no transactions.
const RELAYED: &str = "the levels need one snapshot, and the server can't ask its database for one \
                       (connect to the database itself, or export each level and serve the files)";

/// What a transaction with a snapshot for each statement can't do.
const SEVERAL_SNAPSHOTS: &str = "the levels need one snapshot, and each statement of this \
                                 transaction has its own (begin it with the isolation level \
                                 REPEATABLE READ or SERIALIZABLE, or nest outside of it)";

/// Nests rows of a server, as [`nest`] does. The tables of a Dray server don't change. A database
/// gets one read-only transaction with one snapshot, unless the connection is in a transaction of
/// its own, whose isolation must then be repeatable read or serializable. `watch` makes what
/// watches each statement, and the sort of its rows, given the name of that.
///
/// # Errors
/// Those of [`nest`], and when the transaction can't begin or end. A database behind a Dray server
/// can't give several levels one snapshot, and neither can a transaction of another isolation.
pub fn nest_from(
    connection: &mut Connection,
    spec: &Spec,
    options: &NestOptions,
    watch: &mut dyn FnMut(&str) -> Option<Watch>,
) -> Result<Nested> {
    if connection.dialect() != connection.kind() && spec.root.levels() > 1 {
        return Err(Error::Source(RELAYED));
    }
    if connection.is_in_transaction() && spec.root.levels() > 1 && !has_one_snapshot(connection)? {
        return Err(Error::Source(SEVERAL_SNAPSHOTS));
    }
    let begins = connection.kind() != SourceKind::Dray && !connection.is_in_transaction();
    let step = |connection: &mut Connection, step| {
        let done = connection.transaction(step, &mut || Verdict::Continue);
        done.map_err(|error| Error::statement("the snapshot", external(error)))
    };
    if begins {
        let snapshot =
            Transaction::Begin { isolation: Some(Isolation::RepeatableRead), read_only: true };
        step(connection, snapshot)?;
    }
    let nested = nest(spec, &mut Statements { connection, watch, sorted: None }, options);
    if begins && connection.is_usable() {
        let ended = step(connection, Transaction::Rollback);
        // A failure to nest is the cause of what comes after it.
        return nested.and_then(|nested| ended.map(|()| nested));
    }
    nested
}

/// Whether all statements of the open transaction share a snapshot. MySQL and MariaDB tell the
/// isolation of the session, which SET TRANSACTION does not change.
fn has_one_snapshot(connection: &mut Connection) -> Result<bool> {
    let sql = match connection.kind() {
        SourceKind::Dray | SourceKind::Other => return Ok(true),
        SourceKind::Postgres => "SHOW transaction_isolation",
        SourceKind::Mysql => {
            "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')"
        }
    };
    let rows = connection.ask(sql, &mut || Verdict::Continue);
    let rows = rows.map_err(|error| Error::statement("the snapshot", external(error)))?;
    let is_one = |row: &Vec<Option<String>>| {
        let level = row.last().cloned().flatten().unwrap_or_default();
        ["repeatable read", "serializable"].contains(&&*level.replace('-', " ").to_lowercase())
    };
    Ok(!rows.is_empty() && rows.iter().all(is_one))
}

struct Statements<'a> {
    connection: &'a mut Connection,
    watch: &'a mut dyn FnMut(&str) -> Option<Watch>,
    /// The level whose rows are being sorted, and what watches that.
    sorted: Option<(String, Option<Watch>)>,
}

impl Source for Statements<'_> {
    fn run(
        &mut self,
        level: &str,
        sql: &str,
    ) -> Result<Box<dyn RecordBatchReader + Send + '_>, ArrowError> {
        let watch = (self.watch)(level);
        let options = QueryOptions::default();
        let results = Connection::query_with(&mut *self.connection, sql, &options, watch);
        Ok(Box::new(Rows(results.map_err(external)?)))
    }

    fn go_on(&mut self, level: &str, rows: u64) -> bool {
        let (name, watch) = match self.sorted.take() {
            Some(sorted) if sorted.0 == level => sorted,
            _ => (level.to_owned(), (self.watch)(&format!("sorting {level}"))),
        };
        let sorted = self.sorted.insert((name, watch));
        let progress = Progress { rows, ..Progress::default() };
        sorted.1.as_mut().is_none_or(|watch| watch(&progress) == Verdict::Continue)
    }
}

struct Rows<'a>(Results<&'a mut Connection>);

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_batch().transpose()?.map_err(external))
    }
}

impl RecordBatchReader for Rows<'_> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

fn external(error: dray_client::Error) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}
