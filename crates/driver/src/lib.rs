//! What a database must give to be a source of a Dray server.
//!
//! ```text
//!   server: a session's thread ── Statement ─▶ Session::run ─▶ the database
//!                    Sink ◀── batches of Arrow ──┘
//! ```
//!
//! A crate for a database implements [`Driver`] and [`Session`]; the server implements [`Sink`].
//! All of it blocks: the server gives each session a thread, with a stack of [`STACK_BYTES`].

#![forbid(unsafe_code)]

mod error;
mod read_only;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use dray_format::Limits;
pub use dray_wire::{ErrorKind, Estimate, Known, ServerError, Unfit};

pub use self::error::{cannot_connect, error, failed, lost_connection, read_only_refusal};
pub use self::read_only::{Dialect, check_reads};

/// The most rows that a driver puts into a batch: those of a chunk.
pub const BATCH_ROWS_MAX: usize = 65_536;

/// The most bytes of a batch of several rows, about.
pub const BATCH_BYTES_MAX: u64 = 8 << 20;

/// The stack of the thread that a session runs on, in bytes. Libraries of databases recurse as deep
/// as a statement is nested. The kernel provides the memory when it is first used.
pub const STACK_BYTES: usize = 64 << 20;

/// A database that statements are passed on to. Errors must not show passwords: clients and the log
/// get them.
pub trait Driver: Debug + Send + Sync {
    /// Whose SQL it takes, such as `postgresql` (protocol.md section 14).
    fn dialect(&self) -> &'static str;

    /// Whether the database has values that a column's type can't hold, and does with them what a
    /// [statement](Statement::unfit) says.
    fn has_unfit_values(&self) -> bool {
        false
    }

    /// Opens a session, and gives up when `keep_waiting` returns false.
    ///
    /// # Errors
    /// If the database can't be reached, or refuses.
    fn open(&self, keep_waiting: &mut dyn FnMut() -> bool)
    -> Result<Box<dyn Session>, ServerError>;
}

/// A session of a database, which runs one statement at a time.
pub trait Session {
    /// The database's name and version.
    fn server(&self) -> &str;

    /// Whether it can run another statement.
    fn is_usable(&self) -> bool;

    /// Divides a statement into parts, which are then read while this session does something else.
    /// None if the database has no snapshot for several connections.
    ///
    /// # Errors
    /// If the statement is not a query, does not plan, or `keep_waiting` returns false.
    fn plan(
        &mut self,
        statement: &Statement,
        division: &Division,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<dyn Parts>>, ServerError> {
        let _ = (statement, division, keep_waiting);
        Ok(None)
    }

    /// Runs a statement: first announces the columns to `sink`, then passes on all rows, unless the
    /// statement is only planned. Cancels it at the database as soon as the sink
    /// [is stopped](Sink::is_stopped), and then returns Ok: nobody waits for an error.
    ///
    /// # Errors
    /// If the statement fails. What the sink got so far is then no result.
    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError>;
}

/// A statement for a source.
#[derive(Debug, Default)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// The values of its parameters, a batch of one row.
    pub parameters: Option<RecordBatch>,
    /// What the client accepts.
    pub limits: Limits,
    /// Whether to plan it without running it.
    pub plan_only: bool,
    /// Whether an estimate is worth a question to the database, since somebody watches.
    pub estimate: bool,
    /// What becomes of values that a column's type can't hold, at databases that
    /// [have such values](Driver::has_unfit_values).
    pub unfit: Unfit,
}

/// How to divide a statement into parts.
#[derive(Debug, Clone)]
pub struct Division {
    /// The most parts; None leaves the number to the size of the table.
    pub parts_max: Option<u32>,
    /// How long the snapshot is to be held.
    pub lease: Duration,
    /// The most connections that may be held with it: at least one.
    pub connections_max: usize,
    /// An earlier plan of the same driver, whose snapshot this one is to have, too.
    pub earlier: Option<Arc<dyn Parts>>,
}

/// A statement as parts under one snapshot, which is held until this is dropped.
pub trait Parts: Debug + Send + Sync {
    /// The columns of each part.
    fn schema(&self) -> SchemaRef;

    /// What is expected of each part, of which there is at least one.
    fn estimates(&self) -> &[Estimate];

    /// Why there is only one part.
    fn reason(&self) -> Option<&str>;

    /// How many connections to the database are held.
    fn connections(&self) -> usize;

    /// Whether a part is read over a connection of its own, which is opened for it. Otherwise it is
    /// read over one of those that are held, as soon as no other part is.
    fn opens_connections(&self) -> bool;

    /// What names the snapshot to a session of the same driver, which plans under it; None if no
    /// other plan can have it.
    fn snapshot(&self) -> Option<&[u8]> {
        None
    }

    /// Passes the rows of a part on to `sink`, as [`Session::run`] does. `statement` is the one
    /// that was divided, with the limits of whoever reads.
    ///
    /// # Errors
    /// If the snapshot or a connection is lost.
    fn run(
        &self,
        index: usize,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> Result<(), ServerError>;
}

/// Where a session puts a statement's result.
pub trait Sink {
    /// Tells people how the rows will be read, before [`Self::begin`]: half a sentence.
    fn tell_path(&mut self, path: &str) {
        let _ = path;
    }

    /// Announces the columns, once.
    ///
    /// # Errors
    /// If nobody waits any longer.
    fn begin(&mut self, schema: SchemaRef, estimate: Estimate) -> Result<(), Stopped>;

    /// Passes rows on. Blocks while the client is slower than the database.
    ///
    /// # Errors
    /// If nobody waits any longer, or the columns are not those that were announced: then the
    /// statement has failed.
    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped>;

    /// Reserves up to so many connections to the source for this statement, besides its session's,
    /// or gives some of them back. All are free again when the statement has ended. Returns how
    /// many it has: fewer if others may need them, and none from a sink without any.
    fn reserve(&mut self, connections: usize) -> usize {
        let _ = connections;
        0
    }

    /// Whether nobody waits any longer.
    fn is_stopped(&self) -> bool;

    /// Tells in other threads and callbacks whether nobody waits any longer.
    fn watch(&self) -> Box<dyn Fn() -> bool + Send>;
}

/// Nobody waits for the result any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;
