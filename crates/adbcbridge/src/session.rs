//! A connection of an ADBC driver.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::constants::{ADBC_INFO_VENDOR_NAME, ADBC_INFO_VENDOR_VERSION};
use adbc_core::error::{Error, Status};
use adbc_core::options::{AdbcVersion, InfoCode, OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{
    CancelHandle, Connection, Database as _, Driver, LOAD_FLAG_DEFAULT, Optionable, Statement as _,
};
use adbc_driver_manager::{ManagedConnection, ManagedDriver, ManagedStatement};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatchReader, UnionArray};
use dray_bridge::program::{Database, Output, Statement, cut};
use dray_bridge::{Failure, FailureKind};

use crate::batch::{plain_batch, plain_schema};
use crate::error::{of_opening, of_statement};
use crate::source::Source;

/// A connection, in which one client's statements run.
pub(crate) struct Session {
    source: Source,
    connection: ManagedConnection,
    server: String,
    /// Whether each statement has a transaction that is rolled back.
    has_transactions: bool,
    running: Arc<Mutex<Option<Box<dyn CancelHandle>>>>,
}

impl Session {
    /// Loads the driver and connects, as read-only as the driver can unless it is `writable`.
    pub(crate) fn open(source: Source, writable: bool) -> Result<Self, Failure> {
        let failed = |error: &Error| of_opening(&source, error);
        let driver = &source.driver;
        let entrypoint = source.entrypoint.as_deref().map(str::as_bytes);
        let load = |version| {
            ManagedDriver::load_from_name(driver, entrypoint, version, LOAD_FLAG_DEFAULT, None)
        };
        let mut driver = load(AdbcVersion::V110)
            .or_else(|error| match error.status {
                Status::NotImplemented => load(AdbcVersion::V100),
                _ => Err(error),
            })
            .map_err(|error| {
                let missing = format!("can't load the ADBC driver {driver}: {}", error.message);
                Failure::new(FailureKind::Connection, "08001", source.hide(&missing))
            })?;
        let options = source.options.iter().map(|(name, value)| {
            (OptionDatabase::from(name.as_str()), OptionValue::String(value.clone()))
        });
        let database = driver.new_database_with_opts(options).map_err(|error| failed(&error))?;
        let mut connection = database.new_connection().map_err(|error| failed(&error))?;
        let has_transactions = !writable && protect(&mut connection).map_err(|e| failed(&e))?;
        let server = server(&connection);
        Ok(Self { source, connection, server, has_transactions, running: Arc::default() })
    }

    fn start(&mut self, statement: &Statement) -> Result<ManagedStatement, Error> {
        let mut started = self.connection.new_statement()?;
        started.set_sql_query(&statement.query.sql)?;
        if let Some(parameters) = &statement.parameters {
            started.prepare()?;
            started.bind(parameters.clone())?;
        }
        self.set_running(Some(started.get_cancel_handle()));
        Ok(started)
    }

    fn set_running(&self, handle: Option<Box<dyn CancelHandle>>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    /// Passes on the columns and the rows of a statement.
    fn pass_on(&mut self, statement: &Statement, output: &mut Output) -> Result<(), Failure> {
        let source = self.source.clone();
        let failed = |error: Error| of_statement(&source, &error);
        let mut started = self.start(statement).map_err(failed)?;
        if statement.query.plan_only {
            started.prepare().map_err(failed)?;
            let schema = started.execute_schema().map_err(|error| match error.status {
                Status::NotImplemented => no_plan(),
                _ => failed(error),
            })?;
            let schema = plain_schema(&schema)?;
            return output.begin(&schema, None);
        }
        let mut batches = started.execute().map_err(failed)?;
        self.send(&mut *batches, statement, output)
    }

    fn send(
        &self,
        batches: &mut (dyn RecordBatchReader + Send),
        statement: &Statement,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let schema = plain_schema(&batches.schema())?;
        output.begin(&schema, None)?;
        for batch in batches {
            // The driver manager passes no status and no SQLSTATE of a stream on.
            let batch = batch.map_err(|cause| {
                let error = Error::with_message_and_status(cause.to_string(), Status::Unknown);
                of_statement(&self.source, &error)
            })?;
            let batch = plain_batch(&batch, &schema)?;
            cut(&batch, &statement.query, &mut |part| output.batch(part))?;
        }
        Ok(())
    }
}

impl Database for Session {
    fn server(&self) -> String {
        self.server.clone()
    }

    fn dialect(&self) -> &str {
        "sql"
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let running = self.running.clone();
        Arc::new(move || {
            if let Some(handle) = &*running.lock().unwrap_or_else(PoisonError::into_inner) {
                // The server ends the session of a driver that can't.
                let _ = handle.try_cancel();
            }
        })
    }

    fn run(&mut self, statement: &Statement, output: &mut Output) -> Result<(), Failure> {
        let ran = self.pass_on(statement, output);
        self.set_running(None);
        if self.has_transactions
            && let Err(error) = self.connection.rollback()
        {
            // A session whose transaction stays open must not go on.
            let failure = of_statement(&self.source, &error);
            return Err(Failure { usable: false, ..ran.err().unwrap_or(failure) });
        }
        ran
    }
}

fn no_plan() -> Failure {
    let what = "the driver does not tell a statement's columns without running it";
    let hint = "run it with a limit of 0 rows".to_owned();
    Failure { hint, ..Failure::new(FailureKind::Query, "0A000", what) }
}

/// Makes a connection read-only. Returns whether its statements run in transactions.
fn protect(connection: &mut ManagedConnection) -> Result<bool, Error> {
    let read_only = connection.set_option(OptionConnection::ReadOnly, "true".into());
    match connection.set_option(OptionConnection::AutoCommit, "false".into()) {
        Ok(()) => Ok(true),
        Err(_) if read_only.is_ok() => Ok(false),
        Err(error) => {
            let what = format!(
                "the driver has neither read-only connections nor transactions, so only a writable \
                 source can use it (--source-writable): {}",
                error.message
            );
            Err(Error::with_message_and_status(what, Status::NotImplemented))
        }
    }
}

/// The database's name and version, as far as the driver tells.
fn server(connection: &ManagedConnection) -> String {
    let codes = [InfoCode::VendorName, InfoCode::VendorVersion].into_iter().collect();
    let Ok(infos) = connection.get_info(Some(codes)) else { return "ADBC".to_owned() };
    let (mut name, mut version) = (None, None);
    for info in infos.flatten() {
        let (Some(codes), Some(values)) = (
            info.columns().first().and_then(|codes| codes.as_primitive_opt::<UInt32Type>()),
            info.columns().get(1).and_then(|values| values.as_any().downcast_ref::<UnionArray>()),
        ) else {
            continue;
        };
        for row in 0..info.num_rows() {
            let value = values.value(row);
            let text =
                value.as_string_opt::<i32>().filter(|text| text.iter().flatten().count() == 1);
            let text = text.map(|text| text.value(0).to_owned());
            match codes.value(row) {
                ADBC_INFO_VENDOR_NAME => name = text,
                ADBC_INFO_VENDOR_VERSION => version = text,
                _ => {}
            }
        }
    }
    [name, version].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
