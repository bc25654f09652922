//! PostgreSQL: with its extension the frames of Dray's own protocol, else rows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::{Limits, Schema};
use dray_pgtypes::Options as TypeOptions;
use dray_postgres::{
    Canceller, ConnectParams, CopyBytes, CopyStart, Options, Patience, Session, Socket, Split,
    Wait, is_query,
};
use dray_wire::{
    Checksums, ClientSession, CompressionChoice, Estimate, Known, ServerEvent, Started,
};

use super::parallel::{Parallel, Work};
use super::parameters::{parameters, surplus};
use super::parts::{self, Held};
use super::{Deadline, Link, Received, Route, RouteKind, Wanted, receive_frame};
use crate::connection::{ConnectOptions, ExtensionChoice, Partitions, QueryOptions, Wish};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// Asked once a connection: dates in text are ISO 8601, and what the server is and has. A pooler
/// knows that clients have dates of their own, but would show the digits of floats to others: they
/// are set in the login's own process only.
fn greeting(process_id: Option<i32>) -> String {
    format!(
        "SELECT pg_catalog.set_config('datestyle', 'ISO', false), \
         pg_catalog.current_setting('standard_conforming_strings'), \
         (SELECT extversion FROM pg_catalog.pg_extension \
             WHERE extname OPERATOR(pg_catalog.=) 'dray'::pg_catalog.name), pg_catalog.pg_backend_pid(), \
         CASE WHEN pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) '{}'::pg_catalog.int4 \
             THEN pg_catalog.set_config('extra_float_digits', '3', false) END",
        process_id.unwrap_or_default()
    )
}

/// How long a request to stop a statement has before it is sent again.
const CANCEL_AGAIN: Duration = Duration::from_millis(200);

/// Through a pooler a worker may take so many times as long to begin as this connection did, and at
/// least so long: it may wait for what the coordinator holds, the last of the pooler's own
/// connections.
const POOLED_LOGINS: u32 = 2;
const POOLED_LOGIN_LEAST: Duration = Duration::from_millis(500);

/// How long a table counts as not worth more connections, and of how many statements that is
/// remembered.
const NOT_WORTH_LASTS: Duration = Duration::from_secs(60);
const NOT_WORTH_MAX: usize = 64;
/// So many names are remembered that may be functions.
const ATTRIBUTES_MAX: usize = 4096;

/// Up to so many rows come sooner as rows: a COPY of the extension takes the server 20 to 40 us
/// more to begin and to end. And of how many statements with so few rows that is remembered.
const FEW_ROWS: u64 = 32;
const FEW_ROWS_STATEMENTS_MAX: usize = 256;

/// A connection to a PostgreSQL server.
#[derive(Debug)]
pub(crate) struct PostgresLink {
    session: Session<Socket>,
    canceller: Canceller,
    server: String,
    place: String,
    /// The version of the server's extension; if there is none, why.
    extension: Option<String>,
    no_extension: String,
    route: Route,
    running: Running,
    /// The beginning of a result in parts, not yet told.
    parallel_started: Option<Box<Started>>,
    /// What the coordinator holds for the workers.
    held: Option<Held>,
    /// How long workers may take to begin, if less than all of connecting may.
    join_max: Option<Duration>,
    /// Workers could not connect.
    parts_fail: bool,
    /// Statements whose tables were looked at, and not worth more connections, and when.
    not_worth: HashMap<String, Instant>,
    /// Statements whose last result had few rows.
    few_rows: HashSet<String>,
    /// The last statement that ran over one connection, and the rows that it has sent as such.
    statement: String,
    rows: u64,
    /// Nothing was run that could have changed the session: other sessions are like it.
    pristine: bool,
    /// If none of these is a function: what came after a dot in statements so far.
    attributes: BTreeSet<String>,
    /// How more connections are made.
    uri: String,
    connect: ConnectOptions,
}

#[derive(Debug)]
enum Running {
    Nothing,
    /// The beginning of a result is known, and not yet told.
    Begun(Box<Started>),
    Rows,
    /// The rows are told, and were only planned.
    Planned,
    Frames(Box<ClientSession>),
    Parts(Box<Parallel>),
}

impl PostgresLink {
    /// Whether a uri or connection string is PostgreSQL's.
    pub(crate) fn is_for(uri: &str) -> bool {
        uri.starts_with("postgresql://")
            || uri.starts_with("postgres://")
            || !uri.contains("://") && uri.contains('=')
    }

    pub(crate) fn connect(
        uri: &str,
        options: &ConnectOptions,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        if options.token.is_some() || options.ca.is_some() {
            return Err(Error::usage("PostgreSQL takes no token and no ca").hint(
                "password and sslrootcert can be in the uri: postgresql://user:password@host/?sslrootcert=FILE",
            ));
        }
        let began = Instant::now();
        let mut params = ConnectParams::parse(uri)?;
        params.set_read_timeout(options.read_timeout);
        let logged_in = dray_postgres::connect(&params, options.timeout, wanted)?;
        let version = logged_in.parameters.get("server_version").cloned().unwrap_or_default();
        let mut session =
            Session::new(logged_in.socket, major_version(&version), &logged_in.parameters);
        let mut wait = Wait::new(logged_in.deadline, wanted);
        let mut patience = || {
            wait.check().map_err(|cause| gave_up(&format!("the server does not answer: {cause}")))
        };
        let greeting = session.ask(&greeting(logged_in.process_id), &mut patience)?;
        let mut greeting = greeting.into_iter().flatten().skip(1);
        session.set_escapes(greeting.next().flatten().as_deref() == Some("off"));
        let extension = greeting.next().flatten();
        let process_id = greeting.next().flatten().and_then(|id| id.parse().ok());
        if greeting.next().flatten().is_some() {
            session.set_whole_floats();
        }
        // A pooler, which could give each statement to another process, shows itself by another
        // number.
        let process_id = process_id.filter(|id| Some(*id) == logged_in.process_id);
        if let Some(process_id) = process_id {
            session.set_process(process_id);
        }
        Ok(Self {
            session,
            canceller: logged_in.canceller,
            server: format!("PostgreSQL {version}"),
            place: logged_in.place,
            extension,
            no_extension: "the database has no extension dray".to_owned(),
            route: Route::default(),
            running: Running::Nothing,
            parallel_started: None,
            held: None,
            join_max: process_id
                .is_none()
                .then(|| (began.elapsed() * POOLED_LOGINS).max(POOLED_LOGIN_LEAST)),
            parts_fail: false,
            not_worth: HashMap::new(),
            few_rows: HashSet::new(),
            statement: String::new(),
            rows: 0,
            pristine: true,
            attributes: BTreeSet::new(),
            uri: uri.to_owned(),
            connect: options.clone(),
        })
    }

    /// Begins a transaction that sees what the coordinator's does, for parts of its table.
    pub(super) fn join(
        &mut self,
        held: &Held,
        split: &Split,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let mut wait = Wait::new(Instant::now() + self.connect.timeout, wanted);
        let mut patience = || {
            wait.check().map_err(|cause| gave_up(&format!("the server does not answer: {cause}")))
        };
        parts::join(&mut self.session, held, split, &mut patience)
    }

    /// Leaves a part what is left of the time that its statement may take.
    pub(super) fn limit(
        &mut self,
        deadline: Instant,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let mut wait = Wait::new(Instant::now() + self.connect.timeout, wanted);
        let mut patience = || {
            wait.check().map_err(|cause| gave_up(&format!("the server does not answer: {cause}")))
        };
        parts::limit(&mut self.session, deadline, &mut patience)
    }

    /// Why the extension can't be used for a statement, or nothing.
    fn hindrance(&self, sql: &str, options: &QueryOptions) -> Option<String> {
        if self.extension.is_none() {
            return Some(self.no_extension.clone());
        }
        if options.postgres.extension == ExtensionChoice::Never {
            return Some("the extension was not wanted".to_owned());
        }
        if !is_query(sql) {
            return Some("COPY does not run statements of this kind".to_owned());
        }
        if options.postgres.extension == ExtensionChoice::Auto && self.few_rows.contains(sql) {
            return Some(
                "its last result had few rows, which come sooner without the extension".to_owned(),
            );
        }
        None
    }

    /// Remembers whether the statement that has ended had few rows.
    fn note_rows(&mut self, rows: u64) {
        if rows > FEW_ROWS || self.extension.is_none() {
            self.few_rows.remove(&self.statement);
        } else if !self.few_rows.contains(&self.statement) {
            if self.few_rows.len() >= FEW_ROWS_STATEMENTS_MAX {
                self.few_rows.clear();
            }
            self.few_rows.insert(self.statement.clone());
        }
    }

    fn extension_route(&self) -> Route {
        let reason =
            format!("the extension dray {}", self.extension.as_deref().unwrap_or_default());
        Route { kind: RouteKind::Extension, reason }
    }

    /// Starts the statement through the extension; or says why not.
    fn start_extension(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        patience: Patience<'_>,
    ) -> Result<Option<String>> {
        if let Some(hindrance) = self.hindrance(sql, options) {
            return Ok(Some(hindrance));
        }
        let parameters = parameters(options.parameters.as_ref())?;
        let started =
            self.session.start_copy(sql, &parameters, &copy_options(options), patience)?;
        Ok(match started {
            CopyStart::Started => {
                self.running = Running::Frames(Box::new(ClientSession::of_copy(options.limits)));
                None
            }
            CopyStart::NotEnclosable => Some("the statement can't be put into a COPY".to_owned()),
            CopyStart::Refused(error) => Some(format!("the extension does not run it: {error}")),
            CopyStart::NotLoadable(error) => {
                self.extension = None;
                self.no_extension = format!("the extension dray can't be loaded: {error}");
                Some(self.no_extension.clone())
            }
        })
    }

    fn start(&mut self, sql: &str, options: &QueryOptions, wanted: Wanted<'_>) -> Result<()> {
        if options.plan_only {
            return self.patiently(wanted, |link, patience| link.plan(sql, options, patience));
        }
        let alone = match self
            .patiently(wanted, |link, patience| link.prepare_parts(sql, options, patience))?
        {
            Ok(work) => match self.start_parts(work, wanted)? {
                None => return Ok(()),
                Some(reason) => reason,
            },
            Err(reason) => reason,
        };
        if self.statement != sql {
            self.pristine &=
                self.session.is_left_alone_by(sql) && self.attributes.len() <= ATTRIBUTES_MAX;
            if self.pristine {
                self.attributes.extend(self.session.attributes_of(sql));
            }
            sql.clone_into(&mut self.statement);
        }
        self.patiently(wanted, |link, patience| link.start_alone(sql, options, patience))?;
        if options.postgres.partitions != Partitions::Exactly(1) {
            self.route.reason += &format!("; one connection: {alone}");
        }
        Ok(())
    }

    fn start_alone(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        patience: Patience<'_>,
    ) -> Result<()> {
        let Some(hindrance) = self.start_extension(sql, options, patience)? else {
            self.route = self.extension_route();
            return Ok(());
        };
        if options.postgres.extension == ExtensionChoice::Always {
            return Err(Error::usage(format!("the extension can't be used: {hindrance}")));
        }
        self.route = Route { kind: RouteKind::Rows, reason: hindrance };
        let parameters = parameters(options.parameters.as_ref())?;
        let schema = self.session.start(sql, &parameters, &row_options(options), patience)?;
        self.running = Running::Begun(Box::new(started(schema, Estimate::default())));
        Ok(())
    }

    /// Makes parts of the statement and holds what they are read under; or says why not.
    fn prepare_parts(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        patience: Patience<'_>,
    ) -> Result<Result<Work, String>> {
        let began = Instant::now();
        let no = |reason: &str| Ok(Err(reason.to_owned()));
        let wanted = match options.postgres.partitions {
            Partitions::Exactly(1) => return no("so it was asked for"),
            Partitions::Exactly(count) => Some(usize::from(count)),
            Partitions::Auto if self.parts_fail => {
                return no("more connections could not be had before");
            }
            // A small statement that is run over and over is not to be looked at each time.
            Partitions::Auto
                if self
                    .not_worth
                    .get(sql)
                    .is_some_and(|since| since.elapsed() < NOT_WORTH_LASTS) =>
            {
                return no("its table was not worth more when it was looked at last");
            }
            Partitions::Auto => None,
        };
        if self.session.is_in_transaction() || !self.pristine {
            return no("other sessions may not see what this one sees");
        }
        if options.parameters.as_ref().is_some_and(|row| row.num_columns() > 0) {
            return no("the statement has parameters");
        }
        let mut split = match self.session.split(sql) {
            Ok(split) => split,
            Err(reason) => return no(reason),
        };
        let hindrance = self.hindrance(sql, options);
        if hindrance.is_some() && options.postgres.extension == ExtensionChoice::Always {
            return no("the extension can't be used");
        }
        let (wishes, attributes) = ((wanted, options.postgres.ordered), &self.attributes);
        let table = match parts::look(&mut self.session, &mut split, attributes, wishes, patience)?
        {
            Ok(table) => table,
            Err(reason) => {
                if self.not_worth.len() >= NOT_WORTH_MAX {
                    self.not_worth.clear();
                }
                self.not_worth.insert(sql.to_owned(), Instant::now());
                return Ok(Err(reason));
            }
        };
        let held = match parts::hold(&mut self.session, &split, sql, patience) {
            Ok(Ok(held)) => held,
            refused => {
                let ended = self.end_transaction("ROLLBACK", &mut || {
                    patience().map_or(Wish::Leave, |()| Wish::Continue)
                });
                let reason = refused?.err().unwrap_or_default();
                return ended.map(|()| Err(reason));
            }
        };
        let mut part_options = options.clone();
        part_options.postgres.partitions = Partitions::Exactly(1);
        if hindrance.is_some() {
            part_options.postgres.extension = ExtensionChoice::Never;
        }
        self.route = match hindrance {
            Some(reason) => Route { kind: RouteKind::Rows, reason },
            None => self.extension_route(),
        };
        Ok(Ok(Work {
            uri: self.uri.clone(),
            connect: self.connect.clone(),
            join_max: self.join_max,
            parts: table.parts(&split),
            split,
            held,
            options: part_options,
            deadline: table.timeout.map(|timeout| began + timeout),
            workers: table.workers,
            ordered: options.postgres.ordered,
        }))
    }

    /// Starts the workers; or says why it can't be.
    fn start_parts(&mut self, work: Work, wanted: Wanted<'_>) -> Result<Option<String>> {
        let (workers, held) = (work.workers, work.held.clone());
        match Parallel::start(work, wanted) {
            Ok((mut parallel, started)) => {
                self.route.reason += &format!("; {workers} connections, one snapshot");
                self.tell_failures(&mut parallel);
                self.held = Some(held);
                self.parallel_started = Some(Box::new(started));
                self.running = Running::Parts(Box::new(parallel));
                Ok(None)
            }
            Err(error) => {
                self.end_transaction("ROLLBACK", wanted)?;
                if error.kind() == ErrorKind::Cancelled {
                    return Err(error);
                }
                self.parts_fail |= error.kind() == ErrorKind::Connection;
                Ok(Some(format!("another connection can't be had or can't see the same: {error}")))
            }
        }
    }

    /// Names connections that failed and did not matter, each reason once.
    fn tell_failures(&mut self, parallel: &mut Parallel) {
        for failure in parallel.failures() {
            let told = format!("; one of them failed: {failure}");
            if !self.route.reason.contains(&told) {
                self.route.reason += &told;
            }
        }
    }

    /// What workers have sent. Their transactions end before the coordinator's, whose loss would
    /// mean that nothing kept the table as it was.
    fn receive_part(
        &mut self,
        mut parallel: Box<Parallel>,
        wanted: Wanted<'_>,
    ) -> Result<Received> {
        if let Some(started) = self.parallel_started.take() {
            self.running = Running::Parts(parallel);
            return Ok(Received::Event(ServerEvent::Started(*started)));
        }
        let received = parallel.receive(wanted);
        match &received {
            Ok(Received::Batch { .. }) => self.running = Running::Parts(parallel),
            Ok(_) => {
                self.tell_failures(&mut parallel);
                parallel.stop(wanted);
                let held = self.held.take();
                let checked = self.patiently(wanted, |link, patience| {
                    held.map_or(Ok(()), |held| parts::check(&mut link.session, &held, patience))
                });
                let ended = self
                    .end_transaction(if checked.is_ok() { "COMMIT" } else { "ROLLBACK" }, wanted);
                checked.and(ended)?;
            }
            Err(_) => {
                parallel.stop(wanted);
                // The error is what counts.
                let _ = self.end_transaction("ROLLBACK", wanted);
            }
        }
        received
    }

    /// Finds out the columns and what the planner expects, and runs nothing.
    fn plan(&mut self, sql: &str, options: &QueryOptions, patience: Patience<'_>) -> Result<()> {
        let parameters = parameters(options.parameters.as_ref())?;
        let schema = self.session.describe(sql, &parameters, &row_options(options), patience)?;
        let estimate = match parameters.is_empty() && is_query(sql) {
            true => self.session.estimate(sql, patience)?,
            false => None,
        };
        let estimate = estimate.map_or_else(Estimate::default, |(rows, row_bytes)| Estimate {
            rows: Known::Estimate(rows),
            bytes: Known::Estimate(rows.saturating_mul(row_bytes)),
        });
        let hindrance = self.hindrance(sql, options);
        let kind = if hindrance.is_some() { RouteKind::Rows } else { RouteKind::Extension };
        self.route = Route { kind, reason: hindrance.unwrap_or_default() };
        self.running = Running::Begun(Box::new(started(schema, estimate)));
        Ok(())
    }

    fn receive_next(&mut self, arena: &mut Arena, patience: Patience<'_>) -> Result<Received> {
        match std::mem::replace(&mut self.running, Running::Nothing) {
            Running::Begun(started) => {
                self.running =
                    if self.session.is_running() { Running::Rows } else { Running::Planned };
                Ok(Received::Event(ServerEvent::Started(*started)))
            }
            Running::Rows => {
                let (bytes, waited) = (self.session.bytes(), self.session.waited());
                let is_for_table = arena.block_bytes() > 0;
                let mut copy = |bytes: &[u8]| arena.copy(bytes).ok();
                let copy: Option<CopyBytes<'_>> = if is_for_table { Some(&mut copy) } else { None };
                match self.session.next_batch(copy, patience)? {
                    Some(built) => {
                        self.running = Running::Rows;
                        self.rows += built.batch().rows as u64;
                        let bytes = self.session.bytes() - bytes;
                        Ok(Received::Built {
                            built: Box::new(built),
                            bytes,
                            waited: self.session.waited() - waited,
                        })
                    }
                    None => {
                        self.note_rows(self.rows);
                        Ok(Received::Done { finished: None, profile: self.session.take_profile() })
                    }
                }
            }
            Running::Frames(mut frames) => {
                let session = &mut self.session;
                let mut read = |room: &mut [u8]| Ok(session.read_copy(room, patience)?);
                let received = receive_frame(&mut frames, arena, &mut read)?;
                match received {
                    Received::Event(ServerEvent::Finished(finished)) => {
                        self.session.finish_copy(finished.rows, patience)?;
                        self.note_rows(finished.rows);
                    }
                    _ => self.running = Running::Frames(frames),
                }
                Ok(received)
            }
            Running::Parts(_) | Running::Planned | Running::Nothing => Ok(Received::End),
        }
    }

    /// Ends the coordinator's transaction, which has only read.
    fn end_transaction(&mut self, how: &str, wanted: Wanted<'_>) -> Result<()> {
        let deadline = Deadline::default();
        let mut patience = || deadline.check(wanted()).map_err(|error| gave_up(error.message()));
        let ended = self.session.ask(how, &mut patience);
        ended.map(drop).map_err(|error| {
            self.session.break_off();
            error.into()
        })
    }

    /// Does what waits for the server; asks the server to stop as soon as the statement is not
    /// wanted any more, and lets go if it doesn't. What still comes of a statement that has failed
    /// is passed over.
    fn patiently<T>(
        &mut self,
        wanted: Wanted<'_>,
        work: impl FnOnce(&mut Self, Patience<'_>) -> Result<T>,
    ) -> Result<T> {
        let canceller = self.canceller.clone();
        let mut cancelled: Option<Deadline> = None;
        let mut patience = || match (wanted(), &cancelled) {
            (Wish::Continue, _) => Ok(()),
            (wish, Some(deadline)) => {
                deadline.check(wish).map_err(|error| gave_up(error.message()))
            }
            (_, None) => cancel(&canceller, *cancelled.insert(Deadline::default()), wanted),
        };
        let done = work(self, &mut patience);
        match &done {
            // It has had its time to stop.
            Err(_) if cancelled.is_some_and(|deadline| deadline.check(wanted()).is_err()) => {
                self.session.break_off()
            }
            Err(_) if self.session.is_running() => self.stop(&mut Arena::default(), wanted),
            // Where the answer to one of the link's own questions was not waited for, nobody knows
            // what comes next.
            Err(error) if error.kind() == ErrorKind::Connection => self.session.break_off(),
            _ => {}
        }
        done
    }
}

impl Link for PostgresLink {
    fn server(&self) -> &str {
        &self.server
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn is_usable(&self) -> bool {
        self.session.is_usable() && !matches!(self.running, Running::Parts(_))
    }

    fn is_running(&self) -> bool {
        self.session.is_running()
            || matches!(self.running, Running::Parts(_)) && self.session.is_usable()
    }

    fn break_off(&mut self) {
        self.session.break_off();
    }

    fn route(&self) -> Route {
        self.route.clone()
    }

    fn send_query(&mut self, sql: &str, options: &QueryOptions, wanted: Wanted<'_>) -> Result<()> {
        self.running = Running::Nothing;
        self.rows = 0;
        // The server would take more values than there are parameters.
        let given = options.parameters.as_ref().map_or(0, |row| row.num_columns());
        match self.session.parameters_in(sql) {
            Some(highest) if given > highest => Err(surplus(highest, given)),
            _ => self.start(sql, options, wanted),
        }
    }

    fn receive(&mut self, arena: &mut Arena, wanted: Wanted<'_>) -> Result<Received> {
        match std::mem::replace(&mut self.running, Running::Nothing) {
            Running::Parts(parallel) => {
                parallel.set_block_bytes(arena.block_bytes());
                self.receive_part(parallel, wanted)
            }
            running => {
                self.running = running;
                self.patiently(wanted, |link, patience| link.receive_next(arena, patience))
            }
        }
    }

    fn stop(&mut self, _arena: &mut Arena, wanted: Wanted<'_>) {
        if let Running::Parts(mut parallel) = std::mem::replace(&mut self.running, Running::Nothing)
        {
            parallel.stop(wanted);
            // A connection on which it fails is given up.
            let _ = self.end_transaction("ROLLBACK", wanted);
            return;
        }
        let deadline = Deadline::default();
        let canceller = self.canceller.clone();
        let stopped = cancel(&canceller, deadline, wanted);
        // A server that has not begun with the statement takes no notice of a request to stop it.
        let mut again = Instant::now() + CANCEL_AGAIN;
        let mut patience = || {
            deadline.check(wanted()).map_err(|error| gave_up(error.message()))?;
            if Instant::now() >= again {
                again = Instant::now() + CANCEL_AGAIN;
                cancel(&canceller, deadline, wanted)?;
            }
            Ok(())
        };
        if stopped.and_then(|()| self.session.drain(&mut patience)).is_err() {
            self.session.break_off();
        }
    }
}

impl Drop for PostgresLink {
    fn drop(&mut self) {
        self.session.close();
    }
}

fn gave_up(why: &str) -> dray_postgres::Error {
    dray_postgres::Error::gave_up(why)
}

/// Asks the server to stop what runs, until the deadline or until nobody wants to wait.
fn cancel(
    canceller: &Canceller,
    deadline: Deadline,
    wanted: Wanted<'_>,
) -> dray_postgres::Result<()> {
    canceller.cancel(&mut Wait::new(deadline.0, &mut || wanted() < Wish::Leave))
}

/// The first number of a version like `15.14 (Debian 15.14-0+deb12u1)` or `18beta1`.
fn major_version(version: &str) -> u32 {
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or_default()
}

fn started(schema: Arc<Schema>, estimate: Estimate) -> Started {
    let compression = CompressionChoice::None;
    Started { statement: 1, query: 0, schema, estimate, compression, checksums: false, plan_ns: 0 }
}

fn type_options(options: &QueryOptions) -> TypeOptions {
    let postgres = options.postgres;
    TypeOptions { numeric: postgres.numeric, nonfinite: postgres.nonfinite, money_scale: None }
}

fn row_options(options: &QueryOptions) -> Options {
    let Limits { decoded_bytes_max, row_bytes_max, .. } = options.limits;
    let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
    Options {
        types: type_options(options),
        batch_rows: options.batch_rows.max(1),
        batch_bytes: bytes(decoded_bytes_max),
        row_bytes_max: bytes(row_bytes_max),
    }
}

/// The options of the extension's COPY. What it does anyway (spec/protocol.md section 10) is left
/// unsaid: of a tiny statement the server has little to do but parse it.
fn copy_options(options: &QueryOptions) -> String {
    let Limits { chunk_bytes_max, decoded_bytes_max, row_bytes_max } = options.limits;
    let checksums = match options.checksums {
        Checksums::Auto => "auto",
        Checksums::On => "on",
        Checksums::Off => "off",
    };
    let all = [
        ("chunk_bytes_max", chunk_bytes_max.to_string(), "1048576"),
        ("decoded_bytes_max", decoded_bytes_max.to_string(), "67108864"),
        ("row_bytes_max", row_bytes_max.to_string(), "268435456"),
        ("chunk_rows", options.batch_rows.to_string(), "65536"),
        ("compression", format!("'{}'", options.compression), "'auto'"),
        ("checksums", format!("'{checksums}'"), "'auto'"),
        ("numeric", format!("'{}'", options.postgres.numeric), "'text'"),
        ("nonfinite", format!("'{}'", options.postgres.nonfinite), "'error'"),
    ];
    let said = all.iter().filter(|(_, value, default)| value != default);
    said.fold("FORMAT dray".to_owned(), |text, (name, value, _)| {
        text + &format!(", {name} {value}")
    })
}
