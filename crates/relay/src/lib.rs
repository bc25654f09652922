//! Databases as sources of a Dray server: statements for `dray://host/NAME` are passed on to
//! PostgreSQL, MySQL or MariaDB, by the client that reads from them.
//!
//! ```text
//!   server: a session's thread ─▶ Session::run ─▶ client: the database's own protocol
//!             ResultSink ◀─────── batches ◀────────┘
//! ```
//!
//! It knows no protocol: `crates/client/` has them, and `crates/server/` sends the rows on.

#![forbid(unsafe_code)]

mod error;
mod read_only;
mod session;

use std::fmt;
use std::sync::Arc;

use dray_client::{ConnectOptions, Connection, ErrorKind, Secret};
use dray_server::{Source, SourceSession};
use dray_wire::ServerError;

pub use self::read_only::Dialect;
use self::session::Session;

/// A database that a server passes statements on to.
pub struct Database {
    name: String,
    uri: Secret,
    options: ConnectOptions,
    dialect: Dialect,
    writable: bool,
}

impl Database {
    /// The database at `uri`, under the name that clients use. It takes statements that read, in
    /// transactions that are read-only, unless it is `writable`.
    ///
    /// # Errors
    /// A sentence without the uri, which may have a password, if no such source is known.
    pub fn new(name: &str, uri: &str, writable: bool) -> Result<Arc<Self>, String> {
        let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
        let dialect = match scheme {
            Some("postgresql" | "postgres") => Dialect::Postgres,
            Some("mysql" | "mariadb") => Dialect::Mysql,
            _ => {
                return Err(format!(
                    "the source {name} has not the uri of a database: expected \
                     postgresql://USER@HOST/DATABASE, mysql://… or mariadb://…"
                ));
            }
        };
        let options = ConnectOptions {
            client: concat!("dray-relay ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ConnectOptions::default()
        };
        Ok(Arc::new(Self { name: name.to_owned(), uri: uri.into(), options, dialect, writable }))
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

impl Source for Database {
    fn dialect(&self) -> &'static str {
        match self.dialect {
            Dialect::Postgres => "postgresql",
            Dialect::Mysql => "mysql",
        }
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn SourceSession>, ServerError> {
        let connected = Connection::connect_while(self.uri.reveal(), &self.options, keep_waiting);
        let connection = connected.map_err(|error| match error.kind() {
            ErrorKind::Cancelled => error::of_statement(&self.name, &error),
            _ => error::of_connecting(&self.name, &error),
        })?;
        Ok(Box::new(Session::new(&self.name, connection, self.dialect, self.writable)))
    }
}
