//! A session, in which one client's statements run.

use std::future::Future;

use dray_driver::{ErrorKind, Estimate, Known, ServerError, Sink, Statement, error, failed};
use futures_util::StreamExt;
use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc, serialize_to_bson};
use mongodb::error::{Error, ErrorKind as Cause};
use mongodb::raw_batch_cursor::{RawBatch, RawBatchCursor};

use crate::columns::Column;
use crate::driver::Background;
use crate::error::{End, not_taken, of_statement};
use crate::infer::Inference;
use crate::rows::Rows;
use crate::statement::Query;

/// The most bytes of documents that are looked at for the columns.
const SAMPLE_BYTES_MAX: usize = 16 << 20;
/// The first batch of a statement whose columns are declared, in documents.
const FIRST_BATCH: usize = 1000;
/// The most documents of the batches after it. MongoDB ends them at 16 MiB.
const BATCH_DOCUMENTS_MAX: u32 = 16_384;
/// `feature_not_supported`.
const UNSUPPORTED: &str = "0A000";
/// `undefined_table`.
const NO_COLLECTION: &str = "42P01";

/// A session of a database.
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) database: Database,
    pub(crate) background: Background,
    pub(crate) writable: bool,
    pub(crate) is_lost: bool,
}

impl dray_driver::Session for Session {
    fn server(&self) -> &str {
        &self.server
    }

    fn is_usable(&self) -> bool {
        !self.is_lost
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        if statement.parameters.as_ref().is_some_and(|values| values.num_columns() > 0) {
            return Err(not_taken(
                "a statement for MongoDB has no parameters; put the values into its JSON",
            ));
        }
        let query = Query::parse(&statement.sql, &self.name, self.writable)?;
        match self.pass_on(&query, statement, sink) {
            // Nobody waits for what the sink would say.
            Ok(()) | Err(End::Stopped) => Ok(()),
            Err(End::Failed(error)) => Err(error),
            Err(End::Source(error)) => {
                let (error, is_lost) = of_statement(&self.name, &error);
                self.is_lost |= is_lost;
                Err(error)
            }
        }
    }
}

impl Session {
    /// Passes on the columns and the rows of a statement.
    fn pass_on(
        &self,
        query: &Query,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> Result<(), End> {
        let rows = |columns| Rows::new(columns, query.has_rest, &statement.limits);
        if let (Some(columns), true) = (&query.columns, statement.plan_only) {
            let schema = rows(columns.clone())?.schema();
            let estimate = self.estimate(query, statement, &sink.watch())?;
            sink.begin(schema, estimate)?;
            return Ok(());
        }
        if let (Some(stage), true) = (query.writing_stage, statement.plan_only) {
            let what = format!("a pipeline with {stage} can't be planned without running it");
            let hint = "a \"schema\" names the columns";
            return Err(error(ErrorKind::Query, UNSUPPORTED, what, hint).into());
        }
        let mut batches = Batches::open(self, query, sink.watch())?;
        let (columns, sampled) = match &query.columns {
            Some(columns) => (columns.clone(), batches.first()?),
            None => batches.sample(query)?,
        };
        let mut rows = rows(columns)?;
        let estimate = self.estimate(query, statement, &batches.stopped)?;
        sink.begin(rows.schema(), estimate)?;
        if statement.plan_only {
            return Ok(());
        }
        for batch in sampled {
            pass_on_batch(&batch, &mut rows, sink)?;
        }
        while let Some(batch) = batches.next()? {
            pass_on_batch(&batch, &mut rows, sink)?;
        }
        match rows.finish()? {
            Some(batch) => Ok(sink.batch(batch)?),
            None => Ok(()),
        }
    }

    /// How many rows to expect, if somebody wants to know and MongoDB knows without reading them.
    fn estimate(
        &self,
        query: &Query,
        statement: &Statement,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Estimate, End> {
        let Some(command) = query.count().filter(|_| statement.estimate) else {
            return Ok(Estimate::default());
        };
        let mut counting = self.database.run_command(command);
        if let Some(criteria) = self.database.selection_criteria() {
            counting = counting.selection_criteria(criteria.clone());
        }
        let rows = match self.wait(stopped, async { counting.await })? {
            Ok(answer) => match answer.get("n") {
                Some(Bson::Int32(rows)) => u64::try_from(*rows).ok(),
                Some(Bson::Int64(rows)) => u64::try_from(*rows).ok(),
                _ => None,
            },
            // It would take too long, or the user may not.
            Err(error) if matches!(*error.kind, Cause::Command(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let rows = rows.map_or(Known::Unknown, Known::Estimate);
        Ok(Estimate { rows, ..Estimate::default() })
    }

    /// Waits for an answer; not when nobody else does.
    fn wait<T>(
        &self,
        stopped: &dyn Fn() -> bool,
        answer: impl Future<Output = T>,
    ) -> Result<T, End> {
        self.background.wait(&mut || !stopped(), answer).ok_or(End::Stopped)
    }

    /// Refuses a collection that does not exist: MongoDB would take it for an empty one.
    fn check_collection(&self, name: &str, stopped: &dyn Fn() -> bool) -> Result<(), End> {
        let names = self.database.list_collection_names().filter(doc! { "name": name });
        match self.wait(stopped, async { names.await })? {
            Ok(names) if !names.iter().any(|found| found == name) => {
                let database = self.database.name();
                let what = format!("the database {database} has no collection {name:?}");
                Err(failed(NO_COLLECTION, what).into())
            }
            Ok(_) => Ok(()),
            // The user may not list them.
            Err(error) if matches!(*error.kind, Cause::Command(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Batches of documents, as they come.
struct Batches<'a> {
    session: &'a Session,
    cursor: RawBatchCursor,
    collection: Option<&'a str>,
    stopped: Box<dyn Fn() -> bool + Send>,
}

impl<'a> Batches<'a> {
    fn open(
        session: &'a Session,
        query: &'a Query,
        stopped: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Self, End> {
        let size = if query.columns.is_some() { FIRST_BATCH } else { query.sample };
        let command = with_read_concern(query.with_batch_size(size), &session.database)?;
        let mut opening =
            session.database.run_cursor_command(command).batch_size(BATCH_DOCUMENTS_MAX);
        if let Some(criteria) = session.database.selection_criteria() {
            opening = opening.selection_criteria(criteria.clone());
        }
        let cursor = session.wait(&stopped, opening.batch())??;
        Ok(Self { session, cursor, collection: query.collection.as_deref(), stopped })
    }

    /// The next batch, which may be empty.
    fn next(&mut self) -> Result<Option<RawBatch>, End> {
        let next = self.session.wait(&self.stopped, self.cursor.next())?;
        Ok(next.transpose()?)
    }

    /// The first batch.
    fn first(&mut self) -> Result<Vec<RawBatch>, End> {
        let batch = self.next()?;
        let is_empty = match &batch {
            Some(batch) => batch.doc_slices()?.is_empty(),
            None => true,
        };
        match self.collection {
            Some(collection) if is_empty => {
                self.session.check_collection(collection, &self.stopped)?;
            }
            _ => {}
        }
        Ok(batch.into_iter().collect())
    }

    /// The columns of the first documents, and the batches in which they came.
    fn sample(&mut self, query: &Query) -> Result<(Vec<Column>, Vec<RawBatch>), End> {
        let mut inference = Inference::new(query.has_rest);
        let (mut count, mut bytes) = (0, 0);
        let mut batches = self.first()?;
        let mut looked_at = 0;
        loop {
            for batch in batches.get(looked_at..).unwrap_or_default() {
                for document in documents(batch)? {
                    let document = document?;
                    if count >= query.sample || bytes >= SAMPLE_BYTES_MAX {
                        break;
                    }
                    count += 1;
                    bytes += document.as_bytes().len();
                    inference.observe(document).map_err(|malformed| {
                        let what = format!("document {count} can't be read: {}", malformed.0);
                        failed("", what)
                    })?;
                }
            }
            looked_at = batches.len();
            if count >= query.sample || bytes >= SAMPLE_BYTES_MAX {
                break;
            }
            match self.next()? {
                Some(batch) => batches.push(batch),
                None => break,
            }
        }
        Ok((inference.columns(), batches))
    }
}

/// The documents of a batch.
fn documents(batch: &RawBatch) -> Result<impl Iterator<Item = Result<&RawDocument, End>>, Error> {
    let items = batch.doc_slices()?.into_iter();
    Ok(items.map(|item| {
        let item = item.map_err(Error::from)?;
        let what = "a batch of documents has something else";
        item.as_document().ok_or_else(|| failed("", what).into())
    }))
}

fn pass_on_batch(batch: &RawBatch, rows: &mut Rows, sink: &mut dyn Sink) -> Result<(), End> {
    for document in documents(batch)? {
        let document = document?;
        if rows.is_full(document.as_bytes().len())
            && let Some(batch) = rows.finish()?
        {
            sink.batch(batch)?;
        }
        rows.push(document)?;
    }
    Ok(())
}

/// The driver does not add what the uri says of this to commands that it does not know.
fn with_read_concern(mut command: Document, database: &Database) -> Result<Document, Error> {
    if let Some(concern) = database.read_concern()
        && !command.contains_key("listCollections")
    {
        command.insert("readConcern", serialize_to_bson(concern)?);
    }
    Ok(command)
}
