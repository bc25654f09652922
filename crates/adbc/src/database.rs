//! The driver and its databases: options to connect with.

use adbc_core::error::Result;
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{Database, Driver, Optionable};
use dray_client::Connection;

use crate::connection::DrayConnection;
use crate::error::{guarded, of_client};
use crate::options::{DatabaseSettings, not_found, number};

/// The driver.
#[derive(Default)]
pub struct DrayDriver;

/// A server to connect to, and how.
pub struct DrayDatabase(DatabaseSettings);

impl Driver for DrayDriver {
    type DatabaseType = DrayDatabase;

    fn new_database(&mut self) -> Result<DrayDatabase> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<DrayDatabase> {
        let mut database = DrayDatabase(DatabaseSettings::default());
        for (key, value) in opts {
            database.set_option(key, value)?;
        }
        Ok(database)
    }
}

impl Database for DrayDatabase {
    type ConnectionType = DrayConnection;

    fn new_connection(&self) -> Result<DrayConnection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<DrayConnection> {
        guarded(|| {
            let (uri, options) = self.0.target()?;
            let connection =
                Connection::connect(&uri, &options).map_err(|error| of_client(&error))?;
            let mut connection = DrayConnection::new(connection, self.0.query.clone());
            for (key, value) in opts {
                connection.set_option(key, value)?;
            }
            Ok(connection)
        })
    }
}

impl Optionable for DrayDatabase {
    type Option = OptionDatabase;

    fn set_option(&mut self, key: OptionDatabase, value: OptionValue) -> Result<()> {
        self.0.set(key.as_ref(), value)
    }

    fn get_option_string(&self, key: OptionDatabase) -> Result<String> {
        self.0.get(key.as_ref())
    }

    fn get_option_bytes(&self, key: OptionDatabase) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionDatabase) -> Result<i64> {
        number(key.as_ref(), self.0.get(key.as_ref()))
    }

    fn get_option_double(&self, key: OptionDatabase) -> Result<f64> {
        number(key.as_ref(), self.0.get(key.as_ref()))
    }
}
