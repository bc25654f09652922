//! Connections for asynchronous programs. Each running statement has a blocking thread of the tokio
//! runtime, since decoding is processor work that does not belong on the threads that poll.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ConnectOptions, QueryOptions};
use crate::results::Results;
use crate::stats::{Progress, Stats};
use crate::watch::Verdict;

/// Batches that wait for the program.
const BATCHES_WAITING: usize = 1;

/// A connection to a server, for programs that run on tokio. It runs one statement at a time.
///
/// ```no_run
/// # async fn example() -> Result<(), dray_client::Error> {
/// use dray_client::{AsyncConnection, ConnectOptions, QueryOptions};
///
/// let options = ConnectOptions::default();
/// let mut connection = AsyncConnection::connect("dray://localhost", options).await?;
/// let mut results = connection.query("SELECT * FROM lineitem", QueryOptions::default()).await?;
/// while let Some(batch) = results.next_batch().await? {
///     println!("{} rows", batch.num_rows());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncConnection {
    /// Receives the connection from the statement that has it.
    connection: oneshot::Receiver<Box<Connection>>,
}

impl AsyncConnection {
    /// Connects to the server at `uri`.
    ///
    /// # Errors
    /// Those of [`Connection::connect`].
    pub async fn connect(uri: &str, options: ConnectOptions) -> Result<Self> {
        let uri = uri.to_owned();
        let connection = blocking(move || Connection::connect(&uri, &options)).await??;
        let (give_back, back) = oneshot::channel();
        // The receiver can't be gone: it is right here.
        let _ = give_back.send(Box::new(connection));
        Ok(Self { connection: back })
    }

    /// Runs a statement. An earlier result that was dropped is cancelled first.
    ///
    /// # Errors
    /// Those of [`Connection::query`].
    pub async fn query(&mut self, sql: &str, options: QueryOptions) -> Result<AsyncResults> {
        let broken = || Error::usage("the connection is gone; connect again");
        let connection = (&mut self.connection).await.map_err(|_| broken())?;
        let (give_back, back) = oneshot::channel();
        self.connection = back;
        let (batches, waiting) = mpsc::channel(BATCHES_WAITING);
        let (begin, begun) = oneshot::channel();
        let sql = sql.to_owned();
        spawn_blocking(move || run(connection, &sql, &options, begin, batches, give_back));
        let schema = begun.await.map_err(|_| broken())??;
        Ok(AsyncResults { schema, batches: waiting, stats: Stats::default(), ended: false })
    }
}

enum Message {
    Batch(RecordBatch),
    End(Box<Stats>),
}

/// The result of a statement. Dropping it cancels the statement.
#[derive(Debug)]
pub struct AsyncResults {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<Message>>,
    stats: Stats,
    ended: bool,
}

impl AsyncResults {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Where time and bytes went; complete after the last batch.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The next batch; None at the end.
    ///
    /// # Errors
    /// Those of [`Results::next_batch`].
    pub async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        self.batches.poll_recv(context).map(|message| match message.transpose()? {
            Some(Message::Batch(batch)) => Ok(Some(batch)),
            Some(Message::End(stats)) => {
                self.stats = *stats;
                self.ended = true;
                // Later calls see the end, too.
                self.batches.close();
                Ok(None)
            }
            None if self.ended => Ok(None),
            None => {
                Err(Error::new(ErrorKind::Connection, "the result has ended already with an error"))
            }
        })
    }
}

impl Stream for AsyncResults {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context).map(Result::transpose)
    }
}

/// Runs a statement to its end, or until nobody reads its batches.
fn run(
    connection: Box<Connection>,
    sql: &str,
    options: &QueryOptions,
    begin: oneshot::Sender<Result<SchemaRef>>,
    batches: mpsc::Sender<Result<Message>>,
    give_back: oneshot::Sender<Box<Connection>>,
) {
    let reader = batches.clone();
    let watch = Box::new(
        move |_: &Progress| if reader.is_closed() { Verdict::Cancel } else { Verdict::Continue },
    );
    let mut guard = ConnectionGuard { connection: Some(connection), give_back: Some(give_back) };
    let results = match guard.connection.as_deref_mut() {
        Some(connection) => Connection::query_with(connection, sql, options, Some(watch)),
        None => return,
    };
    let mut results: Results<&mut Connection> = match results {
        Ok(results) => results,
        Err(error) => {
            // The other end may be gone, here and below.
            let _ = begin.send(Err(error));
            return;
        }
    };
    if begin.send(Ok(results.schema())).is_err() {
        return;
    }
    loop {
        let (message, last) = match results.next_batch() {
            Ok(Some(batch)) => (Ok(Message::Batch(batch)), false),
            Ok(None) => (Ok(Message::End(Box::new(results.stats().clone()))), true),
            Err(error) => (Err(error), true),
        };
        if batches.blocking_send(message).is_err() || last {
            return;
        }
    }
}

/// Returns the connection, however the statement ends.
struct ConnectionGuard {
    connection: Option<Box<Connection>>,
    give_back: Option<oneshot::Sender<Box<Connection>>>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if let (Some(connection), Some(give_back)) = (self.connection.take(), self.give_back.take())
        {
            let _ = give_back.send(connection);
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.map_err(|cause| {
        Error::new(ErrorKind::Internal, "a client thread failed").with_cause(cause)
    })
}
