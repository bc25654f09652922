//! The sources of a Dray server: statements for `dray://host/NAME` are passed on to a database.
//!
//! It knows no protocol. PostgreSQL, MySQL and MariaDB are read by the client (`crates/client/`),
//! MongoDB, Hive and SQLite by crates of their own, and other databases by programs beside the
//! server (`crates/bridge/`). The server sends the rows on.

#![forbid(unsafe_code)]

mod database;
mod error;
mod jdbc;
mod parts;
mod programs;
mod session;

use std::sync::Arc;

use dray_bridge::Bridge;
use dray_driver::{Dialect, Driver};
use dray_hive::Hive;
use dray_mongo::Mongo;
use dray_sqlite::Sqlite;

use self::database::Database;
pub use self::jdbc::JdbcOptions;

/// The database at `uri`, under the name that clients use. Unless it is `writable`, it takes only
/// statements that read. With `partitions`, at most so many connections read a table, of MySQL,
/// too, where they hold back other sessions for a moment.
///
/// # Errors
/// A sentence without the uri, which may have a password, if no such source is known, or what it
/// needs is missing.
pub fn source(
    name: &str,
    uri: &str,
    writable: bool,
    partitions: Option<u8>,
    jdbc: &JdbcOptions,
) -> Result<Arc<dyn Driver>, String> {
    let database = |dialect| Arc::new(Database::new(name, uri, writable, partitions, dialect));
    let bridge = |command| Arc::new(Bridge::new(name, command, uri, writable));
    Ok(match uri.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgresql" | "postgres") => database(Dialect::Postgres),
        Some("mysql" | "mariadb") => database(Dialect::Mysql),
        Some(_) if partitions.is_some() => {
            return Err(format!(
                "the source {name} is neither PostgreSQL, MySQL nor MariaDB, so there is no \
                 --source-partitions for it"
            ));
        }
        Some("mongodb" | "mongodb+srv") => Arc::new(Mongo::new(name, uri, writable)?),
        Some("hive" | "spark" | "impala") => Arc::new(Hive::new(name, uri, writable)?),
        Some("sqlite") => Arc::new(Sqlite::new(name, uri, writable)?),
        Some("odbc") => bridge(programs::command("dray-odbc")),
        Some("adbc") => bridge(programs::command("dray-adbc")),
        Some("jdbc") => bridge(jdbc::command(jdbc)?),
        _ => {
            return Err(format!(
                "the source {name} has not the uri of a database: expected \
                 postgresql://USER@HOST/DATABASE, mysql://…, mariadb://…, mongodb://…, hive://…, \
                 spark://…, impala://…, sqlite:PATH, odbc:DSN=…, jdbc:… or adbc:DRIVER?uri=…"
            ));
        }
    })
}
