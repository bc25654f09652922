//! Writing: batches that Java hands over one by one, as the rows of one write.
//!
//! ```text
//!   Java's thread: push ──▶ channel ──▶ Incoming ──▶ Connection::write, in a thread of its own
//! ```
//!
//! Only [`Writing::end`] lets the rows stay. Whatever else happens to a [`Writing`], the server
//! undoes them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use arrow::array::{ArrayData, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_client::{Error, WriteMode, WriteOptions, WriteStats, panic_text};

use crate::errors::Failure;
use crate::handles::{Handle, State};
use crate::options::Options;
use crate::reading::connect;

/// Batches that wait for the writer.
const BATCHES_WAITING: usize = 1;

/// Rows on their way into a table.
#[derive(Debug)]
pub(crate) struct Writing {
    /// None once the rows have ended.
    batches: Option<SyncSender<Option<RecordBatch>>>,
    /// None once it was waited for.
    writer: Option<JoinHandle<Result<WriteStats, Error>>>,
    /// Ends when nothing holds a batch any more.
    released: Receiver<()>,
    schema: SchemaRef,
}

impl Writing {
    /// The columns, as the struct that each batch is.
    pub(crate) fn data_type(&self) -> DataType {
        DataType::Struct(self.schema.fields().clone())
    }

    /// Hands rows to the writer. Waits while it has enough.
    ///
    /// # Errors
    /// When a string is no text, or writing has failed.
    pub(crate) fn push(&mut self, rows: ArrayData) -> Result<(), Failure> {
        for (field, column) in self.schema.fields().iter().zip(rows.child_data()) {
            // Strings of Spark can be any bytes.
            column.validate_full().map_err(|cause| {
                let name = field.name();
                Failure::not_text(format!("column {name:?} has a value that is not valid: {cause}"))
            })?;
        }
        let rows = StructArray::from(rows);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?;
        let Some(batches) = &self.batches else {
            return Err(Failure::usage("the rows have ended"));
        };
        match batches.send(Some(batch)) {
            Ok(()) => Ok(()),
            // The writer has ended before the rows have.
            Err(_) => Err(self.wait().err().unwrap_or_else(|| Failure::usage("nobody writes"))),
        }
    }

    /// Ends the rows and commits them. Returns their number as the server has counted them.
    ///
    /// # Errors
    /// When writing fails.
    pub(crate) fn end(&mut self) -> Result<u64, Failure> {
        if let Some(batches) = self.batches.take() {
            // A writer that has ended has an error.
            let _ = batches.send(None);
        }
        Ok(self.wait()?.rows)
    }

    fn wait(&mut self) -> Result<WriteStats, Failure> {
        self.batches = None;
        let Some(writer) = self.writer.take() else {
            return Err(Failure::usage("writing has ended"));
        };
        match writer.join() {
            Ok(written) => Ok(written?),
            Err(panic) => Err(Failure::internal(panic_text(&*panic))),
        }
    }
}

/// Waits until no memory of Java's is used any longer. The handle is cancelled by then, so nobody
/// waits for the server.
impl Drop for Writing {
    fn drop(&mut self) {
        // Why writing has failed interests nobody.
        let _ = self.wait();
        let _ = self.released.recv();
    }
}

/// Starts to write rows with these columns into a table.
pub(crate) fn begin(
    handle: &Handle,
    uri: &str,
    options: &Options,
    (namespace, table): (String, String),
    mode: WriteMode,
    schema: Schema,
) -> Result<(), Failure> {
    let mut connection = connect(handle, uri, options)?;
    let (batches, receiver) = sync_channel(BATCHES_WAITING);
    let (held, released) = sync_channel(0);
    let schema = Arc::new(schema);
    let rows = Incoming { schema: Arc::clone(&schema), batches: receiver, _held: held };
    let options = WriteOptions { mode, schema: Some(namespace), ..WriteOptions::default() };
    let watch = handle.watch();
    let write = move || connection.write(&table, rows, &options, Some(watch));
    let writer = Builder::new().name("dray-spark-write".to_owned()).spawn(write);
    let writer = writer.map_err(|cause| Failure::usage(format!("no thread to write: {cause}")))?;
    let writing = Writing { batches: Some(batches), writer: Some(writer), released, schema };
    *handle.lock() = State::Writing(Box::new(writing));
    Ok(())
}

/// The rows as a source of batches.
struct Incoming {
    schema: SchemaRef,
    /// None is the end. Without one the rows are not whole.
    batches: Receiver<Option<RecordBatch>>,
    /// Dropped with the source, when it has handed on or dropped all batches.
    _held: SyncSender<()>,
}

impl Iterator for Incoming {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batches.recv() {
            Ok(batch) => batch.map(Ok),
            Err(_) => Some(Err(ArrowError::ExternalError("the task was given up".into()))),
        }
    }
}

impl RecordBatchReader for Incoming {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
