//! PostgreSQL: with its extension the frames of Dray's own protocol, else binary rows.

use std::time::Instant;

use dray_format::Limits;
use dray_pgtypes::Options as TypeOptions;
use dray_postgres::{Canceller, ConnectParams, CopyStart, Options, Patience, Session, Socket, is_query};
use dray_wire::{Checksums, ClientSession, CompressionChoice, Estimate, Known, ServerEvent, Started};

use super::parallel::{Parallel, Work};
use super::parameters::parameters;
use super::parts::{self, BEGIN};
use super::{Deadline, Link, Received, Route, RouteKind, Wanted, receive_frame};
use crate::connection::{ConnectOptions, ExtensionChoice, Partitions, QueryOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// Asked once a connection: dates in text are ISO 8601, and what the server is and has.
const GREETING: &str = "SELECT pg_catalog.set_config('datestyle', 'ISO', false), \
     pg_catalog.current_setting('standard_conforming_strings'), \
     (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'dray'), pg_catalog.pg_backend_pid()";

/// A connection to a PostgreSQL server.
#[derive(Debug)]
pub(crate) struct PostgresLink {
    session: Session<Socket>,
    canceller: Canceller,
    server: String,
    place: String,
    /// The version of the server's extension.
    extension: Option<String>,
    route: Route,
    running: Running,
    /// The beginning of a result in parts, not yet told.
    parallel_started: Option<Box<Started>>,
    /// Nothing was run that could have changed the session: other sessions are like it.
    pristine: bool,
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
        uri.starts_with("postgresql://") || uri.starts_with("postgres://") || !uri.contains("://") && uri.contains('=')
    }

    pub(crate) fn connect(uri: &str, options: &ConnectOptions) -> Result<Self> {
        if options.token.is_some() || options.ca.is_some() {
            return Err(Error::usage("PostgreSQL takes no token and no ca").hint(
                "password and sslrootcert can be in the uri: postgresql://user:password@host/?sslrootcert=FILE",
            ));
        }
        let logged_in = dray_postgres::connect(&ConnectParams::parse(uri)?, options.timeout)?;
        let version = logged_in.parameters.get("server_version").cloned().unwrap_or_default();
        let mut session = Session::new(logged_in.socket, major_version(&version));
        let deadline = Instant::now() + options.timeout;
        let mut patience = || match Instant::now() < deadline {
            true => Ok(()),
            false => Err(dray_postgres::Error::gave_up("the server does not answer")),
        };
        let mut greeting = session.ask(GREETING, &mut patience)?.into_iter().flatten().skip(1);
        session.set_escapes(greeting.next().flatten().as_deref() == Some("off"));
        let extension = greeting.next().flatten();
        let process_id = greeting.next().flatten().and_then(|id| id.parse().ok());
        if process_id.is_some() && process_id == logged_in.process_id {
            session.set_direct();
        }
        Ok(Self {
            session,
            canceller: logged_in.canceller,
            server: format!("PostgreSQL {version}"),
            place: logged_in.place,
            extension,
            route: Route::default(),
            running: Running::Nothing,
            parallel_started: None,
            pristine: true,
            uri: uri.to_owned(),
            connect: options.clone(),
        })
    }

    /// Begins a transaction that sees what another one sees, and locks the table as that one has. It does not wait for the lock:
    /// who stands before it in the queue waits for the other transaction, which waits for this one.
    pub(super) fn import_snapshot(&mut self, snapshot: &str, table: &str) -> Result<()> {
        let deadline = Instant::now() + self.connect.timeout;
        let mut patience = || match Instant::now() < deadline {
            true => Ok(()),
            false => Err(dray_postgres::Error::gave_up("the server does not answer")),
        };
        // The name comes from the server, and has no quotes in it.
        let snapshot = snapshot.replace('\'', "");
        let import =
            format!("{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'; LOCK TABLE {table} IN ACCESS SHARE MODE NOWAIT");
        self.session.ask(&import, &mut patience)?;
        Ok(())
    }

    /// Why the extension can't be used for a statement, or nothing.
    fn hindrance(&self, sql: &str, options: &QueryOptions) -> Option<String> {
        if self.extension.is_none() {
            return Some("the database has no extension dray".to_owned());
        }
        if options.postgres.extension == ExtensionChoice::Never {
            return Some("the extension was not wanted".to_owned());
        }
        if options.parameters.as_ref().is_some_and(|row| row.num_columns() > 0) {
            return Some("the statement has parameters".to_owned());
        }
        (!is_query(sql)).then(|| "COPY does not run statements of this kind".to_owned())
    }

    /// Starts the statement through the extension; or says why not.
    fn start_extension(&mut self, sql: &str, options: &QueryOptions, patience: Patience<'_>) -> Result<Option<String>> {
        if let Some(hindrance) = self.hindrance(sql, options) {
            return Ok(Some(hindrance));
        }
        let started = self.session.start_copy(sql, &copy_options(options), patience)?;
        Ok(match started {
            CopyStart::Started => {
                self.running = Running::Frames(Box::new(ClientSession::of_copy(options.limits)));
                None
            }
            CopyStart::NotEnclosable => Some("the statement can't be put into a COPY".to_owned()),
            CopyStart::NotLoaded(error) => Some(format!("the extension can't be loaded: {error}")),
        })
    }

    fn start(&mut self, sql: &str, options: &QueryOptions, patience: Patience<'_>) -> Result<()> {
        if options.plan_only {
            return self.plan(sql, options, patience);
        }
        let alone = match self.start_parts(sql, options, patience)? {
            None => return Ok(()),
            Some(reason) => reason,
        };
        self.pristine &= self.session.is_left_alone_by(sql);
        self.start_alone(sql, options, patience)?;
        if options.postgres.partitions != Partitions::Exactly(1) {
            self.route.reason += &format!("; one connection: {alone}");
        }
        Ok(())
    }

    fn start_alone(&mut self, sql: &str, options: &QueryOptions, patience: Patience<'_>) -> Result<()> {
        let Some(hindrance) = self.start_extension(sql, options, patience)? else {
            let reason = format!("the extension dray {}", self.extension.as_deref().unwrap_or_default());
            self.route = Route { kind: RouteKind::Extension, reason };
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

    /// Starts the statement in parts; or says why not.
    fn start_parts(&mut self, sql: &str, options: &QueryOptions, patience: Patience<'_>) -> Result<Option<String>> {
        let wanted = match options.postgres.partitions {
            Partitions::Exactly(1) => return Ok(Some("so it was asked for".to_owned())),
            Partitions::Exactly(count) => Some(usize::from(count)),
            Partitions::Auto => None,
        };
        if self.session.is_in_transaction() || !self.pristine {
            return Ok(Some("other sessions may not see what this one sees".to_owned()));
        }
        if options.parameters.as_ref().is_some_and(|row| row.num_columns() > 0) {
            return Ok(Some("the statement has parameters".to_owned()));
        }
        let split = match self.session.split(sql) {
            Ok(split) => split,
            Err(reason) => return Ok(Some(reason.to_owned())),
        };
        let table = match parts::look(&mut self.session, &split, wanted, patience)? {
            Ok(table) => table,
            Err(reason) => return Ok(Some(reason)),
        };
        let snapshot = match parts::hold(&mut self.session, &split, patience)? {
            Ok(snapshot) => snapshot,
            Err(reason) => {
                self.end_transaction("ROLLBACK");
                return Ok(Some(reason));
            }
        };
        let use_extension = self.hindrance(sql, options).is_none();
        let mut part_options = options.clone();
        part_options.postgres.partitions = Partitions::Exactly(1);
        let work = Work {
            uri: self.uri.clone(),
            connect: self.connect.clone(),
            snapshot,
            table: split.table.clone(),
            parts: table.parts(&split),
            options: part_options,
            workers: table.workers,
            ordered: options.postgres.ordered,
        };
        let mut unwanted = None;
        let started = Parallel::start(work, &mut || match patience() {
            Ok(()) => true,
            Err(error) => {
                unwanted = Some(error);
                false
            }
        });
        if let Some(error) = unwanted {
            self.end_transaction("ROLLBACK");
            return Err(error.into());
        }
        match started {
            Ok((parallel, started)) => {
                let (kind, what) = match use_extension {
                    true => (RouteKind::Extension, "the extension dray"),
                    false => (RouteKind::Rows, "the database has no extension dray, or it was not wanted"),
                };
                let mut reason = format!("{what}; {} connections, one snapshot", table.workers);
                for failure in parallel.failures() {
                    reason += &format!("; one of them failed: {failure}");
                }
                self.route = Route { kind, reason };
                self.parallel_started = Some(Box::new(started));
                self.running = Running::Parts(Box::new(parallel));
                Ok(None)
            }
            Err(error) => {
                self.end_transaction("ROLLBACK");
                Ok(Some(format!("another connection can't be had or can't see the same: {error}")))
            }
        }
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
                self.running = if self.session.is_running() { Running::Rows } else { Running::Planned };
                Ok(Received::Event(ServerEvent::Started(*started)))
            }
            Running::Rows => {
                let (bytes, waited) = (self.session.bytes(), self.session.waited());
                match self.session.next_batch(patience)? {
                    Some(built) => {
                        self.running = Running::Rows;
                        let bytes = self.session.bytes() - bytes;
                        Ok(Received::Built { built: Box::new(built), bytes, waited: self.session.waited() - waited })
                    }
                    None => Ok(Received::End),
                }
            }
            Running::Frames(mut frames) => {
                let session = &mut self.session;
                let mut read = |room: &mut [u8]| Ok(session.read_copy(room, patience)?);
                let received = receive_frame(&mut frames, arena, &mut read)?;
                match received {
                    Received::Event(ServerEvent::Finished(_)) => self.session.finish_copy(patience)?,
                    _ => self.running = Running::Frames(frames),
                }
                Ok(received)
            }
            Running::Parts(mut parallel) => {
                if let Some(started) = self.parallel_started.take() {
                    self.running = Running::Parts(parallel);
                    return Ok(Received::Event(ServerEvent::Started(*started)));
                }
                let mut unwanted = None;
                let received = parallel.receive(&mut || match patience() {
                    Ok(()) => true,
                    Err(error) => {
                        unwanted = Some(error);
                        false
                    }
                });
                // Workers end first: they share the transaction's snapshot.
                let ended = !matches!(received, Ok(Received::Batch { .. }));
                match ended {
                    false => self.running = Running::Parts(parallel),
                    true => {
                        drop(parallel);
                        self.end_transaction("COMMIT");
                    }
                }
                received
            }
            Running::Planned | Running::Nothing => Ok(Received::End),
        }
    }

    /// Ends the coordinator's transaction, which has only read.
    fn end_transaction(&mut self, how: &str) {
        let deadline = Deadline::default();
        let mut patience = || deadline.check().map_err(|error| dray_postgres::Error::gave_up(error.message()));
        if self.session.ask(how, &mut patience).is_err() {
            self.session.break_off();
        }
    }

    /// Does what waits for the server; asks the server to stop as soon as the statement is not wanted any more, and lets go
    /// if it doesn't. What still comes of a statement that has failed is passed over.
    fn patiently<T>(
        &mut self,
        wanted: Wanted<'_>,
        work: impl FnOnce(&mut Self, Patience<'_>) -> Result<T>,
    ) -> Result<T> {
        let canceller = self.canceller.clone();
        let mut cancelled: Option<Deadline> = None;
        let mut patience = || match &cancelled {
            Some(deadline) => deadline.check().map_err(|error| dray_postgres::Error::gave_up(error.message())),
            None if wanted() => Ok(()),
            None => {
                cancelled = Some(Deadline::default());
                canceller.cancel()
            }
        };
        let done = work(self, &mut patience);
        match &done {
            Err(_) if self.session.is_running() => self.stop(&mut Arena::default()),
            // Where the answer to one of the link's own questions was not waited for, nobody knows what comes next.
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
        self.session.is_running() || matches!(self.running, Running::Parts(_)) && self.session.is_usable()
    }

    fn break_off(&mut self) {
        self.session.break_off();
    }

    fn route(&self) -> Route {
        self.route.clone()
    }

    fn send_query(&mut self, sql: &str, options: &QueryOptions, wanted: Wanted<'_>) -> Result<()> {
        self.running = Running::Nothing;
        self.patiently(wanted, |link, patience| link.start(sql, options, patience))
    }

    fn receive(&mut self, arena: &mut Arena, wanted: Wanted<'_>) -> Result<Received> {
        self.patiently(wanted, |link, patience| link.receive_next(arena, patience))
    }

    fn stop(&mut self, _arena: &mut Arena) {
        let parts = matches!(self.running, Running::Parts(_));
        self.running = Running::Nothing;
        if parts {
            return self.end_transaction("ROLLBACK");
        }
        let deadline = Deadline::default();
        let mut patience = || deadline.check().map_err(|error| dray_postgres::Error::gave_up(error.message()));
        let stopped = self.canceller.cancel().and_then(|()| self.session.drain(&mut patience));
        if stopped.is_err() {
            self.session.break_off();
        }
    }
}

impl Drop for PostgresLink {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// The first number of a version like `15.14 (Debian 15.14-0+deb12u1)` or `18beta1`.
fn major_version(version: &str) -> u32 {
    version.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse().ok()).unwrap_or_default()
}

fn started(schema: dray_format::Schema, estimate: Estimate) -> Started {
    Started { statement: 1, schema, estimate, compression: CompressionChoice::None, checksums: false, plan_ns: 0 }
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

/// The options of the extension's COPY.
fn copy_options(options: &QueryOptions) -> String {
    let Limits { chunk_bytes_max, decoded_bytes_max, row_bytes_max } = options.limits;
    let checksums = match options.checksums {
        Checksums::Auto => "auto",
        Checksums::On => "on",
        Checksums::Off => "off",
    };
    format!(
        "FORMAT dray, chunk_bytes_max {chunk_bytes_max}, decoded_bytes_max {decoded_bytes_max}, row_bytes_max \
         {row_bytes_max}, chunk_rows {}, compression '{}', checksums '{checksums}', numeric '{}', nonfinite '{}'",
        options.batch_rows, options.compression, options.postgres.numeric, options.postgres.nonfinite
    )
}
