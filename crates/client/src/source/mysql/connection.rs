//! A connection to a MySQL or MariaDB server.

use std::time::Instant;

use dray_mysql::{
    CancelCheck as SocketCheck, Canceller, ConnectParams, Connection as Socket,
    Error as MysqlError, Session,
};
use dray_net::Wait;
use dray_wire::Secret;

use super::super::cancel::{self, Cancellable};
use crate::error::{Error, Result};
use crate::options::ConnectOptions;
use crate::watch::CancelCheck;

/// A session, and what cancels its statements.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: Session<Socket>,
    /// The server's name and version.
    pub(super) server: String,
    /// The server's address, without secrets.
    pub(super) place: String,
    /// How more connections are made.
    pub(super) endpoint: Endpoint,
    canceller: Canceller,
    /// A `KILL QUERY` was sent that may have found no statement.
    expects_stop: bool,
}

/// What another connection to the same server needs.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// It may have a password.
    uri: Secret,
    options: ConnectOptions,
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
            return Err(Error::usage("MySQL takes no token and no ca").with_hint(
                "password and ssl-ca can be in the uri: mysql://user:password@host/?ssl-ca=FILE",
            ));
        }
        let mut params = ConnectParams::parse(uri)?;
        params.set_read_timeout(options.read_timeout);
        let login = dray_mysql::connect(&params, options.timeout, keep_waiting)?;
        let server = login.session.server().name();
        Ok(Self {
            session: login.session,
            server,
            place: login.place,
            endpoint: Endpoint { uri: uri.into(), options: options.clone() },
            canceller: login.canceller,
            expects_stop: false,
        })
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
        work: impl FnOnce(&mut Self, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut wait = Wait::new(Instant::now() + self.endpoint.options.timeout, keep_waiting);
        let mut check = || {
            wait.check().map_err(|cause| {
                MysqlError::wait_ended(&format!("the server does not answer: {cause}"))
            })
        };
        work(self, &mut check)
    }
}

impl Connection {
    /// Lets the server end a session that was given up, and with it its locks and its place among
    /// the user's connections.
    pub(super) fn shut_down(&self) {
        self.session.stream().socket().shut_down();
    }
}

impl Cancellable for Connection {
    type Error = MysqlError;
    type Canceller = Canceller;

    fn canceller(&self) -> &Canceller {
        &self.canceller
    }

    fn cancel(canceller: &Canceller, wait: &mut Wait<'_>) -> Result<(), MysqlError> {
        canceller.cancel(wait)
    }

    fn drain(&mut self, check: SocketCheck<'_>) -> Result<(), MysqlError> {
        self.session.drain(check)
    }

    fn expect_stop(&mut self) {
        self.expects_stop = true;
    }

    /// MariaDB keeps a `KILL QUERY` for the next statement if none runs.
    fn absorb_stop(&mut self, check: SocketCheck<'_>) -> Result<(), MysqlError> {
        if self.expects_stop && self.session.is_usable() {
            self.session.settle(check)?;
            self.expects_stop = false;
        }
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.session.is_running()
    }

    fn break_off(&mut self) {
        self.session.break_off();
        self.shut_down();
    }

    fn wait_ended(why: &str) -> MysqlError {
        MysqlError::wait_ended(why)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.session.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_do_not_show_their_password() {
        let endpoint =
            Endpoint { uri: "mysql://u:s3cret@h/d".into(), options: ConnectOptions::default() };
        assert!(!format!("{endpoint:?}").contains("s3cret"), "{endpoint:?}");
    }
}
