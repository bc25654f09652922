//! The sources of a Dray server: statements for `dray://host/NAME` are passed on to a database.
//!
//! It knows no protocol. PostgreSQL, MySQL and MariaDB are read by the client (`crates/client/`),
//! and other databases by programs beside the server (`crates/bridge/`). The server sends the rows
//! on.

#![forbid(unsafe_code)]

mod database;
mod error;
mod jdbc;
mod programs;
mod session;

use std::sync::Arc;

use dray_bridge::{Bridge, Command};
use dray_driver::{Dialect, Driver};

use self::database::Database;
pub use self::jdbc::JdbcOptions;
use self::programs::program;

/// The database at `uri`, under the name that clients use. Unless it is `writable`, it takes only
/// statements that read.
///
/// # Errors
/// A sentence without the uri, which may have a password, if no such source is known, or what it
/// needs is missing.
pub fn source(
    name: &str,
    uri: &str,
    writable: bool,
    jdbc: &JdbcOptions,
) -> Result<Arc<dyn Driver>, String> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("postgresql" | "postgres") => {
            Ok(Arc::new(Database::new(name, uri, writable, Dialect::Postgres)))
        }
        Some("mysql" | "mariadb") => {
            Ok(Arc::new(Database::new(name, uri, writable, Dialect::Mysql)))
        }
        Some("odbc") => {
            let command = Command {
                program: program("dray-odbc"),
                arguments: Vec::new(),
                install: "install the package dray-odbc beside the Dray server".to_owned(),
            };
            Ok(Arc::new(Bridge::new(name, command, uri, writable)))
        }
        Some("jdbc") => Ok(Arc::new(Bridge::new(name, jdbc::command(jdbc)?, uri, writable))),
        Some("adbc") => {
            let command = Command {
                program: program("dray-adbc"),
                arguments: Vec::new(),
                install: "install the program dray-adbc beside the Dray server".to_owned(),
            };
            Ok(Arc::new(Bridge::new(name, command, uri, writable)))
        }
        _ => Err(format!(
            "the source {name} has not the uri of a database: expected \
             postgresql://USER@HOST/DATABASE, mysql://…, mariadb://…, odbc:DSN=…, jdbc:… or \
             adbc:DRIVER?uri=…"
        )),
    }
}
