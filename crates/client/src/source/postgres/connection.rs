//! A connection to a PostgreSQL server: logging in, cancelling, and what the server offers.

use std::time::{Duration, Instant};

use dray_net::Wait;
use dray_postgres::{
    CancelCheck as SocketCheck, Canceller, ConnectParams, Error as PostgresError, Session, Socket,
};
use dray_wire::Secret;

use super::super::StopDeadline;
use super::super::cancel::{self, Cancellable};
use crate::error::{Error, Result};
use crate::options::ConnectOptions;
use crate::watch::CancelCheck;

/// Behind a pooler, another connection may take this many times as long as this one took, and at
/// least the time below: it may wait for the pooler's last connection, which this one holds.
const POOLED_LOGINS: u32 = 2;
const POOLED_LOGIN_MIN: Duration = Duration::from_millis(500);

/// A connection to a PostgreSQL server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: Session<Socket>,
    pub(super) extension: Extension,
    /// The server's name and version.
    pub(super) server: String,
    /// The server's address, without secrets.
    pub(super) place: String,
    /// Who is logged in.
    pub(super) user: String,
    /// How more connections are made.
    pub(super) endpoint: Endpoint,
    canceller: Canceller,
}

/// What another connection to the same server needs.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// It may have a password.
    pub(super) uri: Secret,
    options: ConnectOptions,
    /// Behind a pooler, how long another connection may take, if that is less than
    /// [`ConnectOptions::timeout`].
    pub(super) pooled_timeout: Option<Duration>,
}

impl Endpoint {
    /// Connects and logs in, as [`Connection::connect`] does.
    ///
    /// # Errors
    /// Those of [`Connection::connect`].
    pub(super) fn connect(&self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<Connection> {
        Connection::connect(self.uri.reveal(), &self.options, keep_waiting)
    }
}

/// The server's extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Extension {
    /// Installed in the database, in this version.
    Installed(String),
    Missing,
    /// Installed, and its library can't be loaded for this reason.
    NotLoadable(String),
}

impl Connection {
    /// Connects and logs in, while `keep_waiting` returns true.
    ///
    /// # Errors
    /// When the uri is malformed, nobody answers there, or the server refuses.
    pub(super) fn connect(
        uri: &str,
        options: &ConnectOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        if options.token.is_some() || options.ca.is_some() {
            return Err(Error::usage("PostgreSQL takes no token and no ca").with_hint(
                "password and sslrootcert can be in the uri: \
                 postgresql://user:password@host/?sslrootcert=FILE",
            ));
        }
        let began = Instant::now();
        let mut params = ConnectParams::parse(uri)?;
        params.set_read_timeout(options.read_timeout);
        let login = dray_postgres::connect(&params, options.timeout, keep_waiting)?;
        let version = login.parameters.get("server_version").cloned().unwrap_or_default();
        let mut session = Session::new(login.socket, major_version(&version), &login.parameters);
        let mut wait = Wait::new(login.deadline, keep_waiting);
        let answer = session.ask(&greeting(login.process_id), &mut || login_check(&mut wait))?;
        let mut answer = answer.into_iter().flatten().skip(1);
        session.set_escapes(answer.next().flatten().as_deref() == Some("off"));
        let extension = answer.next().flatten().map_or(Extension::Missing, Extension::Installed);
        let process_id = answer.next().flatten().and_then(|id| id.parse().ok());
        if answer.next().flatten().is_some() {
            session.set_full_float_digits();
        }
        // A pooler may run each statement in another process. It shows itself by a process number
        // that differs from the login's.
        let process_id = process_id.filter(|id| Some(*id) == login.process_id);
        if let Some(process_id) = process_id {
            session.set_process(process_id);
        }
        let pooled_timeout =
            process_id.is_none().then(|| (began.elapsed() * POOLED_LOGINS).max(POOLED_LOGIN_MIN));
        Ok(Self {
            session,
            extension,
            server: format!("PostgreSQL {version}"),
            place: login.place,
            user: login.user,
            endpoint: Endpoint { uri: uri.into(), options: options.clone(), pooled_timeout },
            canceller: login.canceller,
        })
    }

    /// Whether a statement can be started.
    pub(super) fn is_usable(&self) -> bool {
        self.session.is_usable()
    }

    /// [`cancel::run`] for this connection.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn run<T>(
        &mut self,
        cancel: CancelCheck<'_>,
        work: impl FnOnce(&mut Self, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        cancel::run(self, cancel, work)
    }

    /// Runs `work`, which waits for the server, while the connection is being set up: within the
    /// connect timeout, and while `keep_waiting` returns true.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn run_setup<T>(
        &mut self,
        keep_waiting: &mut dyn FnMut() -> bool,
        work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut wait = Wait::new(Instant::now() + self.endpoint.options.timeout, keep_waiting);
        work(&mut self.session, &mut || login_check(&mut wait))
    }

    /// Ends the source's own transaction, which has only read, with `COMMIT` or `ROLLBACK`.
    ///
    /// # Errors
    /// When that fails; the connection is then given up.
    pub(super) fn end_transaction(&mut self, how: &str, cancel: CancelCheck<'_>) -> Result<()> {
        let deadline = StopDeadline::default();
        let mut check = || deadline.check(cancel()).map_err(|error| wait_ended(error.message()));
        let ended = self.session.ask(how, &mut check);
        ended.map(drop).map_err(|error| {
            self.session.break_off();
            error.into()
        })
    }
}

impl Cancellable for Connection {
    type Error = PostgresError;
    type Canceller = Canceller;

    fn canceller(&self) -> &Canceller {
        &self.canceller
    }

    fn cancel(canceller: &Canceller, wait: &mut Wait<'_>) -> Result<(), PostgresError> {
        canceller.cancel(wait)
    }

    fn drain(&mut self, check: SocketCheck<'_>) -> Result<(), PostgresError> {
        self.session.drain(check)
    }

    fn is_running(&self) -> bool {
        self.session.is_running()
    }

    fn break_off(&mut self) {
        self.session.break_off();
    }

    fn wait_ended(why: &str) -> PostgresError {
        wait_ended(why)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// The first statement of a connection. It sets dates in text to ISO 8601 and asks for the rules of
/// strings, the extension's version and the server process.
///
/// Poolers track DateStyle for each client, but not extra_float_digits: it is set only if this is
/// the process of the login.
fn greeting(process_id: Option<i32>) -> String {
    format!(
        "SELECT pg_catalog.set_config('datestyle', 'ISO', false), \
         pg_catalog.current_setting('standard_conforming_strings'), \
         (SELECT extversion FROM pg_catalog.pg_extension \
             WHERE extname OPERATOR(pg_catalog.=) 'dray'::pg_catalog.name), \
         pg_catalog.pg_backend_pid(), \
         CASE WHEN pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) '{}'::pg_catalog.int4 \
             THEN pg_catalog.set_config('extra_float_digits', '3', false) END",
        process_id.unwrap_or_default()
    )
}

fn login_check(wait: &mut Wait<'_>) -> dray_postgres::Result<()> {
    wait.check().map_err(|cause| wait_ended(&format!("the server does not answer: {cause}")))
}

/// The error that ends a wait.
fn wait_ended(why: &str) -> PostgresError {
    PostgresError::wait_ended(why)
}

/// The first number of a version like `15.14 (Debian 15.14-0+deb12u1)` or `18beta1`.
fn major_version(version: &str) -> u32 {
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or_default()
}
