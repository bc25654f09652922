//! Databases that the client reads.

use std::fmt;
use std::sync::Arc;

use dray_client::{ConnectOptions, Connection, ErrorKind, Secret};
use dray_driver::{Dialect, Driver, ServerError};

use crate::error;
use crate::session::Session;

/// A database that a server passes statements on to.
#[derive(Debug)]
pub(crate) struct Database(Arc<Settings>);

/// How a database is reached and used.
pub(crate) struct Settings {
    pub(crate) name: String,
    uri: Secret,
    options: ConnectOptions,
    pub(crate) dialect: Dialect,
    pub(crate) writable: bool,
    /// The most connections that read a table, if whoever runs the server has allowed several.
    pub(crate) partitions: Option<usize>,
}

impl Database {
    /// The database at `uri`. It takes statements that read, in transactions that are read-only,
    /// unless it is `writable`.
    pub(crate) fn new(
        name: &str,
        uri: &str,
        writable: bool,
        partitions: Option<u8>,
        dialect: Dialect,
    ) -> Self {
        let options = ConnectOptions {
            client: concat!("dray-relay ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ConnectOptions::default()
        };
        let name = name.to_owned();
        let (uri, partitions) = (uri.into(), partitions.map(usize::from));
        Self(Arc::new(Settings { name, uri, options, dialect, writable, partitions }))
    }
}

impl Settings {
    /// Connects to where `place` says, by the uri.
    pub(crate) fn connect(
        &self,
        place: impl FnOnce(&str) -> String,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Connection, ServerError> {
        let uri = place(self.uri.reveal());
        let connected = Connection::connect_while(&uri, &self.options, keep_waiting);
        connected.map_err(|error| match error.kind() {
            ErrorKind::Cancelled => error::of_statement(&self.name, &error),
            _ => error::of_connecting(&self.name, &error),
        })
    }
}

/// Without the uri, which may have a password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, writable, .. } = self;
        f.debug_struct("Settings")
            .field("name", name)
            .field("dialect", dialect)
            .field("writable", writable)
            .finish_non_exhaustive()
    }
}

impl Driver for Database {
    fn dialect(&self) -> &'static str {
        match self.0.dialect {
            Dialect::Postgres => "postgresql",
            Dialect::Mysql => "mysql",
            Dialect::Hive | Dialect::Other => "sql",
        }
    }

    fn has_unfit_values(&self) -> bool {
        true
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        let connection = self.0.connect(str::to_owned, keep_waiting)?;
        Ok(Box::new(Session::new(self.0.clone(), connection)))
    }
}
