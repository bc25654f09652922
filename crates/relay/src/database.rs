//! Databases that the client reads.

use std::fmt;

use dray_client::{ConnectOptions, Connection, ErrorKind, Secret};
use dray_driver::{Dialect, Driver, ServerError};

use crate::error;
use crate::session::Session;

/// A database that a server passes statements on to.
pub(crate) struct Database {
    name: String,
    uri: Secret,
    options: ConnectOptions,
    dialect: Dialect,
    writable: bool,
}

impl Database {
    /// The database at `uri`. It takes statements that read, in transactions that are read-only,
    /// unless it is `writable`.
    pub(crate) fn new(name: &str, uri: &str, writable: bool, dialect: Dialect) -> Self {
        let options = ConnectOptions {
            client: concat!("dray-relay ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ConnectOptions::default()
        };
        Self { name: name.to_owned(), uri: uri.into(), options, dialect, writable }
    }
}

/// Without the uri, which may have a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, writable, .. } = self;
        f.debug_struct("Database")
            .field("name", name)
            .field("dialect", dialect)
            .field("writable", writable)
            .finish_non_exhaustive()
    }
}

impl Driver for Database {
    fn dialect(&self) -> &'static str {
        match self.dialect {
            Dialect::Postgres => "postgresql",
            Dialect::Mysql => "mysql",
            Dialect::Hive | Dialect::Other => "sql",
        }
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        let connected = Connection::connect_while(self.uri.reveal(), &self.options, keep_waiting);
        let connection = connected.map_err(|error| match error.kind() {
            ErrorKind::Cancelled => error::of_statement(&self.name, &error),
            _ => error::of_connecting(&self.name, &error),
        })?;
        Ok(Box::new(Session::new(&self.name, connection, self.dialect, self.writable)))
    }
}
