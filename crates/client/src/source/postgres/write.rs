//! Writing into a table by `COPY … FROM STDIN`, in one transaction.
//!
//! ```text
//!   thread: the data's source ──▶ batches ──▶ dray-pgcopy: blocks ──▶ Session::send_copy
//! ```
//!
//! The server takes longer for a block than encoding the next one, and the socket's buffer keeps it
//! busy meanwhile, so encoding needs no thread of its own.

mod batches;
mod table;

use std::cell::Cell;
use std::time::Instant;

use arrow::array::RecordBatch;
use dray_pgcopy::{Encoder, Format};
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use self::batches::{Arrival, Batches};
use self::table::Table;
use super::connection::Connection;
use super::policy::StatementPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::source::cancelled;
use crate::stats::Progress;
use crate::watch::{Verdict, Watch};
use crate::write::{WriteJob, WriteStats};

/// The savepoint within a transaction of the user's.
const SAVEPOINT: &str = "dray_write";

/// What the watch knows and has decided.
struct Watched<'a> {
    watch: std::cell::RefCell<&'a mut Watch>,
    progress: Cell<Progress>,
    verdict: Cell<Verdict>,
}

impl Watched<'_> {
    fn look(&self) -> Verdict {
        let progress = self.progress.get();
        let verdict = (self.watch.borrow_mut())(&progress).max(self.verdict.get());
        self.verdict.set(verdict);
        verdict
    }

    fn is_cancelled(&self) -> bool {
        self.verdict.get() > Verdict::Continue
    }
}

/// Writes the data, all or nothing.
///
/// # Errors
/// Those of [`crate::Connection::write`].
pub(super) fn write(
    connection: &mut Connection,
    policy: &mut StatementPolicy,
    job: WriteJob<'_>,
    watch: &mut Watch,
) -> Result<WriteStats> {
    let watched =
        Watched { watch: watch.into(), progress: Cell::default(), verdict: Cell::default() };
    let session = &connection.session;
    if session.has_failed_transaction() {
        return Err(Error::new(ErrorKind::Execution, "the transaction has failed")
            .with_hint("roll it back first")
            .with_sqlstate("25P02"));
    }
    let is_nested = session.is_in_transaction();
    let (begin, commit, undo) = match is_nested {
        true => (
            format!("SAVEPOINT {SAVEPOINT}"),
            format!("RELEASE SAVEPOINT {SAVEPOINT}"),
            format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}"),
        ),
        false => ("BEGIN".to_owned(), "COMMIT".to_owned(), "ROLLBACK".to_owned()),
    };
    let mut look = || watched.look();
    let written = connection.run(&mut look, |connection, check| {
        let session = &mut connection.session;
        session.ask(&begin, check)?;
        let stats = write_within(session, policy, job, &watched, check)?;
        // From here on it is too late to cancel.
        session.ask(&commit, check)?;
        Ok(stats)
    });
    let is_cancelled = watched.is_cancelled();
    written.map_err(|error| {
        undo_all(connection, &undo, is_nested);
        match is_cancelled {
            true => cancelled(),
            false => error,
        }
    })
}

/// Rolls back what has failed. If that fails, the connection is given up.
fn undo_all(connection: &mut Connection, undo: &str, is_nested: bool) {
    if connection.session.is_broken() || !connection.session.is_in_transaction() {
        return;
    }
    let undone = |connection: &mut Connection| {
        let mut look = || Verdict::Continue;
        let undone = connection.run(&mut look, |connection, check| {
            Ok(connection.session.ask(undo, check).map(drop)?)
        });
        undone.is_ok() && (is_nested || !connection.session.is_in_transaction())
    };
    // A late request to cancel may have hit the first try.
    if !undone(connection) && !undone(connection) {
        connection.session.break_off();
    }
}

fn write_within(
    session: &mut Session<Socket>,
    policy: &mut StatementPolicy,
    job: WriteJob<'_>,
    watched: &Watched<'_>,
    check: SocketCheck<'_>,
) -> Result<WriteStats> {
    let began = Instant::now();
    let WriteJob { table, schema, batches, options } = job;
    let table = Table::prepare(session, policy, table, &schema, options, check)?;
    let mut encoder = table.encoder(session, schema.clone(), check)?;
    session.start_copy_in(&table.copy_statement(&schema, encoder.format()), check)?;
    let mut stats = WriteStats {
        as_text: encoder.format() == Format::Text,
        prepare: began.elapsed(),
        ..WriteStats::default()
    };
    let mut copy = Copy { session, encoder: &mut encoder, watched, stats: &mut stats };
    if let Err(error) = copy.send_all(batches, check) {
        // An error of the server's has ended the COPY already.
        if copy.session.is_running() {
            session.fail_copy_in("the data's end was not reached", check)?;
        }
        return Err(error);
    }
    let ending = Instant::now();
    let rows = session.end_copy_in(check)?;
    stats.send += ending.elapsed();
    if rows > encoder.rows() {
        session.break_off();
        let sent = encoder.rows();
        return Err(Error::new(
            ErrorKind::Protocol,
            format!("the server has counted {rows} rows, and {sent} were sent"),
        ));
    }
    // A type that changed between the look at it and the COPY would change the meaning of bytes.
    table.check_unchanged(session, check)?;
    stats.rows = rows;
    Ok(stats)
}

/// A COPY that runs.
struct Copy<'a, 'w> {
    session: &'a mut Session<Socket>,
    encoder: &'a mut Encoder,
    watched: &'a Watched<'w>,
    stats: &'a mut WriteStats,
}

impl Copy<'_, '_> {
    fn send_all(
        &mut self,
        batches: Box<dyn Iterator<Item = Result<RecordBatch, arrow::error::ArrowError>> + Send>,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        self.send(self.encoder.header(), check)?;
        let batches = Batches::read(batches)?;
        loop {
            let waiting = Instant::now();
            let arrival = batches.next();
            self.stats.read += waiting.elapsed();
            self.look()?;
            match arrival? {
                Arrival::Batch(batch) => self.send_batch(&batch, check)?,
                Arrival::NotYet => {}
                Arrival::End => break,
            }
        }
        self.send(self.encoder.trailer(), check)
    }

    fn send_batch(&mut self, batch: &RecordBatch, check: SocketCheck<'_>) -> Result<()> {
        let mut block = Vec::new();
        let began = Instant::now();
        let mut sending = self.stats.send;
        let mut blocks = self.encoder.batch(batch)?;
        while blocks.next_block(&mut block)? {
            let began = Instant::now();
            self.session.send_copy(&block, check)?;
            self.stats.send += began.elapsed();
            self.stats.bytes += block.len() as u64;
            let progress = self.watched.progress.get();
            let (rows, bytes) = (blocks.rows(), self.stats.bytes);
            self.watched.progress.set(Progress { rows, bytes, ..progress });
            if self.watched.look() > Verdict::Continue {
                return Err(cancelled());
            }
        }
        sending = self.stats.send - sending;
        self.stats.encode += began.elapsed().saturating_sub(sending);
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], check: SocketCheck<'_>) -> Result<()> {
        self.stats.bytes += bytes.len() as u64;
        Ok(self.session.send_copy(bytes, check)?)
    }

    /// Looks before anything is sent: the COPY can be given up without a request to cancel it.
    fn look(&self) -> Result<()> {
        match self.watched.look() {
            Verdict::Continue => Ok(()),
            _ => Err(cancelled()),
        }
    }
}
