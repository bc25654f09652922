//! The sources of a Dray server: statements for `dray://host/NAME` are passed on to a database.
//!
//! It knows no protocol. PostgreSQL, MySQL and MariaDB are read by the client (`crates/client/`),
//! others by drivers of their own. The server sends the rows on.

#![forbid(unsafe_code)]

mod database;
mod error;
mod session;

use std::sync::Arc;

use dray_driver::{Dialect, Driver};
use dray_hive::Hive;
use dray_sqlite::Sqlite;

use self::database::Database;

/// The database at `uri`, under the name that clients use. Unless it is `writable`, it takes only
/// statements that read.
///
/// # Errors
/// A sentence without the uri, which may have a password, if no such source is known.
pub fn source(name: &str, uri: &str, writable: bool) -> Result<Arc<dyn Driver>, String> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("postgresql" | "postgres") => {
            Ok(Arc::new(Database::new(name, uri, writable, Dialect::Postgres)))
        }
        Some("mysql" | "mariadb") => {
            Ok(Arc::new(Database::new(name, uri, writable, Dialect::Mysql)))
        }
        Some("hive" | "spark" | "impala") => Ok(Arc::new(Hive::new(name, uri, writable)?)),
        Some("sqlite") => Ok(Arc::new(Sqlite::new(name, uri, writable)?)),
        _ => Err(format!(
            "the source {name} has not the uri of a database: expected \
             postgresql://USER@HOST/DATABASE, mysql://…, mariadb://…, hive://…, spark://…, \
             impala://… or sqlite:PATH"
        )),
    }
}
