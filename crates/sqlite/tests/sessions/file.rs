//! A SQLite file, and what sessions of a source say of it.

use std::path::PathBuf;
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use dray_driver::{Driver, Estimate, STACK_BYTES, ServerError, Session, Sink, Statement, Stopped};
use dray_sqlite::Sqlite;
use tempfile::TempDir;

/// A file with what `sql` makes.
pub struct File {
    folder: TempDir,
}

impl File {
    pub fn new(sql: &str) -> Self {
        let file = Self { folder: tempfile::tempdir().unwrap() };
        file.elsewhere().execute_batch(sql).unwrap();
        file
    }

    /// A connection of another program.
    pub fn elsewhere(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    /// Does something with a session, in a thread as the server's are.
    pub fn with_session<T: Send>(
        &self,
        writable: bool,
        work: impl FnOnce(&mut dyn Session) -> T + Send,
    ) -> T {
        let uri = format!("sqlite:{}", self.path().display());
        let source = Sqlite::new("notes", &uri, writable).unwrap();
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let run = move || work(&mut *source.open(&mut || true).unwrap());
            thread.spawn_scoped(scope, run).unwrap().join().unwrap()
        })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("notes.db")
    }
}

/// A statement without parameters.
pub fn statement(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), ..Statement::default() }
}

/// A result.
#[derive(Debug, Default)]
pub struct Answer {
    pub schema: Option<SchemaRef>,
    pub batches: Vec<RecordBatch>,
}

impl Answer {
    /// The names of the columns.
    pub fn names(&self) -> Vec<&str> {
        self.schema.iter().flat_map(|schema| schema.fields()).map(|f| f.name().as_str()).collect()
    }

    /// The rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl Sink for Answer {
    fn begin(&mut self, schema: SchemaRef, _estimate: Estimate) -> Result<(), Stopped> {
        assert_eq!(self.schema.replace(schema), None);
        Ok(())
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped> {
        assert_eq!(self.schema.as_ref(), Some(batch.schema_ref()));
        self.batches.push(batch);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn watch(&self) -> Box<dyn Fn() -> bool + Send> {
        Box::new(|| false)
    }
}

/// Runs a statement.
pub fn run(session: &mut dyn Session, statement: &Statement) -> Result<Answer, ServerError> {
    let mut answer = Answer::default();
    session.run(statement, &mut answer)?;
    Ok(answer)
}

/// Runs a statement in a session of its own, and returns the error's SQLSTATE and words.
pub fn refusal(file: &File, sql: &str) -> (String, String) {
    let error = file.with_session(false, |session| run(session, &statement(sql)).unwrap_err());
    (error.sqlstate, error.message)
}
