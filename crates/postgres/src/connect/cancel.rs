//! Cancelling what a session is doing.

use std::io::Read;

use bytes::BytesMut;
use dray_net::{Address, Socket, TcpParams, Wait, check_process, is_timeout};
use postgres_protocol::message::frontend;

use super::tls::Tls;
use crate::error::{Error, ErrorKind, Result};

/// Asks a server to cancel what a session is doing, over another connection.
#[derive(Clone)]
pub struct Canceller {
    pub(super) address: Address,
    pub(super) tcp: TcpParams,
    pub(super) tls: Option<Tls>,
    /// The server's process number and its secret.
    pub(super) key: Option<(i32, i32)>,
    /// The server's address, for messages.
    pub(super) place: String,
    /// The process that logged in: a forked child must not cancel what its parent is doing.
    pub(super) process: u32,
}

/// Without the key, which allows anybody to cancel.
impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Sends the request and waits until the server has received it. The server does not say
    /// whether there was something to cancel. If there was, the session's statement fails with
    /// SQLSTATE 57014.
    ///
    /// # Errors
    /// When the server can't be reached before the wait ends, or gave no key at login.
    pub fn cancel(&self, wait: &mut Wait<'_>) -> Result<()> {
        let failed =
            || Error::new(ErrorKind::Connection, format!("can't cancel at {}", self.place));
        check_process(self.process).map_err(|cause| failed().with_cause(cause))?;
        let (process, secret) =
            self.key.ok_or_else(|| failed().with_hint("the server gave no key for it at login"))?;
        let socket = Socket::open(&self.address, &self.tcp, None, wait)
            .map_err(|cause| failed().with_cause(cause))?;
        let mut socket = match &self.tls {
            Some(tls) => tls.encrypt(socket, wait).map_err(|cause| failed().with_cause(cause))?,
            None => socket,
        };
        if self.tls.is_some() && !socket.is_tls() {
            return Err(failed().with_hint("the server had TLS before, but not now"));
        }
        let mut request = BytesMut::new();
        frontend::cancel_request(process, secret, &mut request);
        socket.send(&request, wait).map_err(|cause| failed().with_cause(cause))?;
        // The server sends nothing. It closes the connection once it has passed the request on.
        loop {
            match socket.read(&mut [0]) {
                Err(error) if is_timeout(&error) => {
                    wait.check().map_err(|cause| failed().with_cause(cause))?
                }
                _ => return Ok(()),
            }
        }
    }
}
