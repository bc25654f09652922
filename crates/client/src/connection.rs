//! Connections to a server.

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::options::ConnectOptions;
use crate::source::{self, Source};

/// A connection to a server. It runs one statement at a time.
#[derive(Debug)]
pub struct Connection {
    source: Box<dyn Source>,
    /// The process that connected.
    process: u32,
    connect_time: Duration,
}

impl Connection {
    /// Connects to the server at `uri`: a Dray server, PostgreSQL, MySQL or MariaDB.
    ///
    /// # Errors
    /// When the uri is malformed, nobody answers there, or the server refuses.
    pub fn connect(uri: &str, options: &ConnectOptions) -> Result<Self> {
        Self::connect_while(uri, options, &mut || true)
    }

    /// Like [`Connection::connect`], but gives up when `keep_waiting` returns false. It is called
    /// at least every 50 ms or so.
    ///
    /// # Errors
    /// Those of [`Connection::connect`], and Cancelled.
    pub fn connect_while(
        uri: &str,
        options: &ConnectOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let started = Instant::now();
        if options.timeout.is_zero()
            || options.read_timeout.is_some_and(|timeout| timeout.is_zero())
        {
            return Err(Error::usage("a timeout of 0, expected more")
                .with_hint("no read_timeout waits as long as it takes"));
        }
        let mut cancelled = false;
        let mut keep_waiting = || {
            cancelled = cancelled || !keep_waiting();
            !cancelled
        };
        let source = source::connect(uri, options, &mut keep_waiting);
        let source = source.map_err(|error| match cancelled {
            true => Error::new(ErrorKind::Cancelled, "connecting was cancelled"),
            false => error,
        })?;
        Ok(Self { source, process: std::process::id(), connect_time: started.elapsed() })
    }

    /// A connection to this source.
    pub(crate) fn over(source: Box<dyn Source>) -> Self {
        Self { source, process: std::process::id(), connect_time: Duration::ZERO }
    }

    /// The server's name and version.
    pub fn server(&self) -> &str {
        self.source.server()
    }

    /// The server's address, without secrets.
    pub fn place(&self) -> &str {
        self.source.place()
    }

    /// How long connecting took.
    pub fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// Whether another query can be sent.
    pub fn is_usable(&self) -> bool {
        self.is_own() && self.source.is_usable()
    }

    /// Whether this process connected. A forked child shares its parent's socket: each would read
    /// answers to the other.
    pub(crate) fn is_own(&self) -> bool {
        std::process::id() == self.process
    }

    /// # Errors
    /// Usage, in a forked child.
    pub(crate) fn check_own(&self) -> Result<()> {
        match self.is_own() {
            true => Ok(()),
            false => {
                let what = format!(
                    "the connection belongs to process {}, of which this one is a fork",
                    self.process
                );
                Err(Error::usage(what).with_hint("connect again in the child"))
            }
        }
    }

    pub(crate) fn source_ref(&self) -> &dyn Source {
        &*self.source
    }

    pub(crate) fn source(&mut self) -> &mut dyn Source {
        &mut *self.source
    }
}
