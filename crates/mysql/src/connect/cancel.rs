//! Cancelling what a session is doing.

use std::fmt;

use dray_net::{Address, Wait, check_process};

use super::attempt::{log_in, too_late};
use super::params::ConnectParams;
use crate::error::{Error, ErrorKind, Result};

/// Has a server cancel what a session is doing, over another connection.
#[derive(Clone)]
pub struct Canceller {
    params: ConnectParams,
    address: Address,
    /// The number of the session's connection.
    connection_id: u32,
    /// The process that logged in: a forked child must not cancel what its parent is doing.
    process: u32,
}

/// Without the password.
impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("place", &self.params.place()).finish_non_exhaustive()
    }
}

impl Canceller {
    pub(super) fn new(params: &ConnectParams, address: &Address, connection_id: u32) -> Self {
        // The database may be gone by then, and does not matter.
        let params = ConnectParams { database: None, ..params.clone() };
        Self { params, address: address.clone(), connection_id, process: std::process::id() }
    }

    /// Logs in once more, and has the server end the session's statement. The server does not say
    /// whether there was one. If there was, it fails with an error that
    /// [`is_interrupted`](Error::is_interrupted).
    ///
    /// # Errors
    /// When the server can't be reached before the wait ends, or does not let the user in again.
    pub fn cancel(&self, wait: &mut Wait<'_>) -> Result<()> {
        let failed = || {
            Error::new(ErrorKind::Connection, format!("can't cancel at {}", self.params.place()))
        };
        check_process(self.process).map_err(|cause| failed().with_cause(cause))?;
        let mut session = log_in(&self.params, &self.address, wait)
            .map_err(|error| error.after("can't cancel"))?;
        let kill = format!("KILL QUERY {}", self.connection_id);
        session
            .ask(&kill, &mut || wait.check().map_err(too_late))
            .map_err(|error| error.after("can't cancel"))?;
        session.close();
        Ok(())
    }
}
