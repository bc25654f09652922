//! A session, in which one client's statements run.
//!
//! ```text
//!   ExecuteStatement ─▶ GetOperationStatus, until it has finished ─▶ GetResultSetMetadata
//!                    ─▶ FetchResults, until there are no more rows ─▶ CloseOperation
//! ```
//!
//! A call may be answered late: a server holds one back while it computes rows. To cancel it then,
//! another connection says so, which names the operation.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use dray_driver::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, Dialect, ErrorKind, Estimate, ServerError, Sink, Statement,
    Stopped, error, read_only_refusal,
};
use dray_net::{Socket, TICK};

use crate::calls::{Client, Fetched, Handle, Info, Operation, State};
use crate::connect::{TIMEOUT_MAX, connect};
use crate::error::{Error, Result};
use crate::rows::Types;
use crate::uri::Params;

/// The rows that are asked for first: their sizes are not known yet.
const ROWS_FIRST: u32 = 8;
/// How much more rows are asked for than the time before, at most.
const ROWS_GROWTH: u32 = 8;
/// The pauses between two questions about a statement.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LAST: Duration = Duration::from_millis(250);
/// How long a server may take to stop a statement.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Opening a session may take this many times as long as connecting: Spark's first one starts much.
const SESSION_FACTOR: u32 = 6;
/// How long a server may take to say goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(500);

/// A session with a server.
#[derive(Debug)]
pub(crate) struct Session {
    name: String,
    params: Params,
    writable: bool,
    client: Client<Socket>,
    handle: Handle,
    server: String,
    /// The server has forgotten the session.
    is_lost: bool,
}

impl Session {
    /// Opens a session. Its timestamps are in UTC.
    ///
    /// # Errors
    /// A clause without a password.
    pub(crate) fn open(
        name: &str,
        params: &Params,
        writable: bool,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, String> {
        let mut client = connect(params, keep_waiting)?;
        let deadline = Instant::now() + session_timeout(params.connect_timeout);
        let mut check = || match (keep_waiting(), Instant::now() < deadline) {
            (false, _) => Err(Error::Stopped),
            (true, false) => Err(Error::Lost("the server did not open a session in time".into())),
            (true, true) => Ok(()),
        };
        let Params { user, password, database, .. } = params;
        let handle = client
            .open_session(user, password, database.as_deref(), &mut check)
            .map_err(Error::cause)?;
        let mut info = |info| client.info(&handle, info, &mut check).map_err(Error::cause);
        let (product, version) = (info(Info::DbmsName)?, info(Info::DbmsVersion)?);
        let server = format!("{product} {version}").trim().to_owned();
        let (name, params) = (name.to_owned(), params.clone());
        let mut session = Self { name, params, writable, client, handle, server, is_lost: false };
        session.set_zone(&product, &mut check).map_err(Error::cause)?;
        Ok(session)
    }

    /// Has timestamps come in UTC that have no zone by themselves.
    fn set_zone(&mut self, product: &str, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let product = product.to_ascii_lowercase();
        let (sql, is_needed) = match () {
            () if product.contains("spark") => ("SET spark.sql.session.timeZone=UTC", true),
            // It is unknown before Hive 3, which has no such timestamps.
            () if product.contains("hive") => ("SET hive.local.time.zone=UTC", false),
            () => return Ok(()),
        };
        match self.finish(sql, check) {
            Err(Error::Server { .. }) if !is_needed => Ok(()),
            ended => ended,
        }
    }

    /// Runs a statement whose rows do not matter.
    fn finish(&mut self, sql: &str, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let operation = self.client.execute(&self.handle, sql, check)?;
        let state = await_end(&mut self.client, &operation, check)?;
        self.client.close(&operation, check)?;
        match state {
            State::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    fn execute(&mut self, sql: &str, sink: &mut dyn Sink) -> Result<()> {
        let stopped = sink.watch();
        let mut not_begun = || if stopped() { Err(Error::Stopped) } else { Ok(()) };
        let operation = self.client.execute(&self.handle, sql, &mut not_begun)?;
        let mut stopping = Stopping { params: &self.params, operation: &operation, stopped };
        let mut since = None;
        let mut check = || stopping.check(&mut since);
        let ended = pass_on(&mut self.client, &operation, &self.params, sink, &mut check);
        if self.client.is_usable() {
            // A result that is whole stays so, whatever becomes of its operation.
            let closed = stop(&mut self.client, &operation, ended.is_err());
            self.is_lost |= matches!(closed, Err(Error::Lost(_)));
        }
        ended
    }
}

/// How long the server may take to open a session, by the time to connect.
fn session_timeout(connect_timeout: Duration) -> Duration {
    connect_timeout.saturating_mul(SESSION_FACTOR).min(TIMEOUT_MAX)
}

/// Passes on the columns and the rows of a statement.
fn pass_on(
    client: &mut Client<Socket>,
    operation: &Operation,
    params: &Params,
    sink: &mut dyn Sink,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    if let State::Failed(error) = await_end(client, operation, check)? {
        return Err(error);
    }
    if !operation.has_rows {
        sink.begin(Arc::new(Schema::empty()), Estimate::default()).map_err(stopped)?;
        return Ok(());
    }
    let columns = client.columns(operation, check)?;
    let fields: Vec<_> = columns.iter().map(|column| column.field.clone()).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    // No estimate: an EXPLAIN costs planning the statement again, and each server writes its own.
    sink.begin(schema.clone(), Estimate::default()).map_err(stopped)?;
    let mut types = Types { schema: &schema, columns: &columns, rows_before: 0 };
    let (mut rows_max, mut pause) = (ROWS_FIRST.min(params.rows_max), PAUSE_FIRST);
    loop {
        let Fetched { rows, has_more } = client.fetch(operation, rows_max.into(), &types, check)?;
        let Some(rows) = rows.filter(|rows| rows.num_rows() > 0) else {
            if !has_more {
                return Ok(());
            }
            wait(&mut pause, check)?;
            continue;
        };
        pause = PAUSE_FIRST;
        types.rows_before = types.rows_before.saturating_add(rows.num_rows() as u64);
        let within = rows_within(&rows);
        rows_max = u32::try_from(within)
            .unwrap_or(u32::MAX)
            .min(rows_max.saturating_mul(ROWS_GROWTH))
            .min(params.rows_max);
        for start in (0..rows.num_rows()).step_by(within) {
            let length = within.min(rows.num_rows() - start);
            sink.batch(rows.slice(start, length)).map_err(stopped)?;
        }
    }
}

/// How many rows like these a batch may have.
fn rows_within(rows: &RecordBatch) -> usize {
    let bytes = rows.get_array_memory_size().max(1) as u64;
    let within = (rows.num_rows() as u64).saturating_mul(BATCH_BYTES_MAX) / bytes;
    usize::try_from(within).unwrap_or(usize::MAX).clamp(1, BATCH_ROWS_MAX)
}

fn stopped(_: Stopped) -> Error {
    Error::Stopped
}

/// Waits until an operation has ended.
fn await_end(
    client: &mut Client<Socket>,
    operation: &Operation,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<State> {
    let mut pause = PAUSE_FIRST;
    loop {
        match client.state(operation, check)? {
            State::Running => wait(&mut pause, check)?,
            ended => return Ok(ended),
        }
    }
}

/// Pauses, each time longer than before.
fn wait(pause: &mut Duration, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let until = Instant::now() + *pause;
    *pause = (*pause * 2).min(PAUSE_LAST);
    loop {
        check()?;
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return Ok(()),
            left => sleep(left.min(TICK)),
        }
    }
}

/// Lets the server stop an operation, if it did not end by itself, and forget it.
fn stop(client: &mut Client<Socket>, operation: &Operation, is_running: bool) -> Result<()> {
    let deadline = Instant::now() + STOP_TIMEOUT;
    let mut check = || within(deadline);
    if is_running {
        match client.cancel(operation, &mut check) {
            // It had ended by itself.
            Ok(()) | Err(Error::Server { .. }) => {}
            failed => return failed,
        }
    }
    client.close(operation, &mut check)
}

fn within(deadline: Instant) -> Result<()> {
    match Instant::now() < deadline {
        true => Ok(()),
        false => Err(Error::Lost("the server did not stop a statement in time".to_owned())),
    }
}

/// What looks around while an answer is waited for.
struct Stopping<'a> {
    params: &'a Params,
    operation: &'a Operation,
    stopped: Box<dyn Fn() -> bool + Send>,
}

impl Stopping<'_> {
    /// Cancels the operation by another connection once nobody waits for it, and lets the answer
    /// come, so that the session stays usable. `since` is when that was.
    fn check(&mut self, since: &mut Option<Instant>) -> Result<()> {
        match since {
            Some(since) => within(*since + STOP_TIMEOUT),
            None if !(self.stopped)() => Ok(()),
            None => {
                let deadline = *since.insert(Instant::now()) + STOP_TIMEOUT;
                let mut keep_waiting = || Instant::now() < deadline;
                // If it can't be cancelled, the connection is given up, which ends the session.
                connect(self.params, &mut keep_waiting)
                    .map_err(Error::Lost)?
                    .cancel(self.operation, &mut || within(deadline))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.client.is_usable() {
            let deadline = Instant::now() + GOODBYE_TIMEOUT;
            // The server ends the session as well when the connection closes.
            let _ = self.client.close_session(&self.handle, &mut || within(deadline));
        }
    }
}

impl dray_driver::Session for Session {
    fn server(&self) -> &str {
        &self.server
    }

    fn is_usable(&self) -> bool {
        self.client.is_usable() && !self.is_lost
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        let dialect = Dialect::Hive;
        if !self.writable && !dialect.reads(&statement.sql) {
            return Err(read_only_refusal(&self.name, dialect.reading_words()));
        }
        let refused = match () {
            () if statement.parameters.is_some() => {
                "HiveServer2's protocol has no parameters: write the values into the statement"
            }
            () if statement.plan_only => {
                "HiveServer2's protocol can't tell a statement's columns without running it"
            }
            () => "",
        };
        if !refused.is_empty() {
            return Err(error(ErrorKind::Query, "0A000", refused, ""));
        }
        let ended = self.execute(&statement.sql, sink);
        self.is_lost |= matches!(ended, Err(Error::Lost(_)));
        match ended {
            // Nobody waits for an error.
            Err(_) if sink.is_stopped() => Ok(()),
            Err(Error::Stopped) => Ok(()),
            ended => ended.map_err(|error| error.of_source(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_more_time_than_a_connection() {
        for (connect, session) in [(1, 6), (10, 60), (120, 720)] {
            let found = session_timeout(Duration::from_secs(connect));
            assert_eq!(found, Duration::from_secs(session));
        }
        assert_eq!(session_timeout(Duration::MAX), TIMEOUT_MAX);
    }
}
