//! Cancelling what a session is doing.

use std::fmt;

use dray_net::{Address, Wait, check_process};

use super::attempt::{log_in, too_late};
use super::params::ConnectParams;
use crate::connection::Connection;
use crate::error::{CancelCheck, Error, ErrorKind, Result};
use crate::session::Session;

/// Has a server cancel what a session is doing, over another connection.
#[derive(Clone)]
pub struct Canceller {
    params: ConnectParams,
    address: Address,
    /// The number of the session's connection.
    connection_id: u32,
    /// What tells the session's server from others; None if it does not say.
    server: Option<Identity>,
    /// The process that logged in: a forked child must not cancel what its parent is doing.
    process: u32,
}

type Identity = Vec<Option<String>>;

/// Without the password.
impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("place", &self.params.place()).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Asks a session's server for what tells it from others: an address may lead to several.
    ///
    /// # Errors
    /// When the connection breaks, or the check ends the wait.
    pub(super) fn new(
        params: &ConnectParams,
        address: &Address,
        session: &mut Session<Connection>,
        check: CancelCheck<'_>,
    ) -> Result<Self> {
        // The database may be gone by then, and does not matter.
        let params = ConnectParams { database: None, ..params.clone() };
        Ok(Self {
            params,
            address: address.clone(),
            connection_id: session.server().connection_id,
            server: identity(session, check)?,
            process: std::process::id(),
        })
    }

    /// Logs in once more, and has the server end the session's statement. The server does not say
    /// whether there was one. If there was, it fails with an error that
    /// [`is_interrupted`](Error::is_interrupted).
    ///
    /// # Errors
    /// When the server can't be reached before the wait ends, or does not let the user in again, or
    /// another server answers, where somebody else may have the session's number.
    pub fn cancel(&self, wait: &mut Wait<'_>) -> Result<()> {
        let failed = || {
            Error::new(ErrorKind::Connection, format!("can't cancel at {}", self.params.place()))
        };
        check_process(self.process).map_err(|cause| failed().with_cause(cause))?;
        let mut session = log_in(&self.params, &self.address, wait)
            .map_err(|error| error.after("can't cancel"))?;
        let mut check = || wait.check().map_err(too_late);
        let mut kill = || {
            if self.server.is_some() && identity(&mut session, &mut check)? != self.server {
                return Err(Error::new(ErrorKind::Connection, "another server answered"));
            }
            session.ask(&format!("KILL QUERY {}", self.connection_id), &mut check)
        };
        kill().map_err(|error| error.after("can't cancel"))?;
        session.close();
        Ok(())
    }
}

/// What tells a server from others; None if it does not know these variables.
fn identity(session: &mut Session<Connection>, check: CancelCheck<'_>) -> Result<Option<Identity>> {
    let number = if session.server().is_mariadb() { "@@server_id" } else { "@@server_uuid" };
    match session.ask(&format!("SELECT @@hostname, @@port, {number}"), check) {
        Ok(rows) => Ok(rows.into_iter().next()),
        Err(error) if error.kind() == ErrorKind::Server => Ok(None),
        Err(error) => Err(error),
    }
}
