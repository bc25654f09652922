//! A connection to a MySQL or MariaDB server.

use dray_mysql::{
    CancelCheck as SocketCheck, Canceller, ConnectParams, Connection as Socket,
    Error as MysqlError, Session,
};
use dray_net::Wait;

use super::super::cancel::Cancellable;
use crate::error::{Error, Result};
use crate::options::ConnectOptions;

/// A session, and what cancels its statements.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: Session<Socket>,
    /// The server's name and version.
    pub(super) server: String,
    /// The server's address, without secrets.
    pub(super) place: String,
    canceller: Canceller,
    /// How to connect once more.
    uri: String,
    options: ConnectOptions,
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
            canceller: login.canceller,
            uri: uri.to_owned(),
            options: options.clone(),
        })
    }

    /// Another connection to the same server.
    ///
    /// # Errors
    /// Those of [`Self::connect`].
    pub(super) fn again(&self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<Self> {
        Self::connect(&self.uri, &self.options, keep_waiting)
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

    fn is_running(&self) -> bool {
        self.session.is_running()
    }

    fn break_off(&mut self) {
        self.session.break_off();
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
