//! A connection: its options, transactions, and what the server has.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants;
use adbc_core::error::{Error, Result, Status};
use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::schemas::{GET_STATISTIC_NAMES_SCHEMA, GET_TABLE_TYPES_SCHEMA};
use adbc_core::{CancelHandle, Connection, Optionable};
use arrow::array::{RecordBatch, RecordBatchIterator, StringArray};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatchReader;
use dray_client::{Isolation, QueryOptions, SourceKind, Transaction};

use crate::error::{
    bad_data, failed, guarded, invalid_argument, invalid_state, not_implemented, of_client,
};
use crate::info;
use crate::objects::{self, Filter, TABLE_TYPES};
use crate::options::{QuerySettings, boolean, boolean_text, not_found, number, text, unknown};
use crate::partitions;
use crate::session::Session;
use crate::statement::DrayStatement;
use crate::table::{hand_over_result, hand_over_schema};

type Reader = Box<dyn RecordBatchReader + Send + 'static>;

/// A connection to a server.
pub struct DrayConnection {
    session: Arc<Session>,
    settings: QuerySettings,
}

/// The isolation levels that PostgreSQL has. Its repeatable read is snapshot isolation.
const ISOLATIONS: [(&str, Option<Isolation>); 6] = [
    (constants::ADBC_OPTION_ISOLATION_LEVEL_DEFAULT, None),
    (constants::ADBC_OPTION_ISOLATION_LEVEL_READ_UNCOMMITTED, Some(Isolation::ReadUncommitted)),
    (constants::ADBC_OPTION_ISOLATION_LEVEL_READ_COMMITTED, Some(Isolation::ReadCommitted)),
    (constants::ADBC_OPTION_ISOLATION_LEVEL_REPEATABLE_READ, Some(Isolation::RepeatableRead)),
    (constants::ADBC_OPTION_ISOLATION_LEVEL_SNAPSHOT, Some(Isolation::RepeatableRead)),
    (constants::ADBC_OPTION_ISOLATION_LEVEL_SERIALIZABLE, Some(Isolation::Serializable)),
];

impl DrayConnection {
    pub(crate) fn new(connection: dray_client::Connection, settings: QuerySettings) -> Self {
        Self { session: Arc::new(Session::new(connection)), settings }
    }

    fn set_isolation(&self, name: &str) -> Result<()> {
        match ISOLATIONS.iter().find(|(known, _)| *known == name) {
            Some((_, isolation)) => self.session.set_isolation(*isolation),
            None if name == constants::ADBC_OPTION_ISOLATION_LEVEL_LINEARIZABLE => {
                Err(not_implemented("this server has no linearizable transactions"))
            }
            None => Err(invalid_argument(format!("{name:?} is not an isolation level of ADBC"))),
        }
    }

    /// Makes unqualified names mean those of this schema.
    fn set_current_schema(&self, name: &str) -> Result<()> {
        match self.session.kind {
            SourceKind::Postgres => {}
            SourceKind::Dray | SourceKind::Other => {
                return Err(not_implemented("a Dray server has one schema for its tables"));
            }
            SourceKind::Mysql => {
                return Err(not_implemented(
                    "MySQL has no schemas within a database (USE chooses a database)",
                ));
            }
        }
        // `SET` takes names that do not exist.
        let sql = format!(
            "SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident(nspname), false) \
             FROM pg_catalog.pg_namespace WHERE nspname = {}",
            objects::literal(name)
        );
        let running = self.session.begin();
        // A statement of the user's: other connections would not know of it.
        let mut results = self.session.set_by_query(&sql, &running)?;
        let found = results.read_all().map_err(|error| of_client(&error))?;
        match found.iter().any(|batch| batch.num_rows() > 0) {
            true => Ok(()),
            false => Err(failed(Status::NotFound, format!("there is no schema {name}"))),
        }
    }

    fn current(&self, key: &OptionConnection) -> Result<String> {
        self.session.check_direct()?;
        let what = if *key == OptionConnection::CurrentCatalog { "database" } else { "schema" };
        if self.session.kind == SourceKind::Dray {
            let (catalog, schema) = objects::DRAY_PLACE;
            return Ok(if what == "database" { catalog } else { schema }.to_owned());
        }
        let sql = match (self.session.kind, what) {
            (SourceKind::Mysql, "schema") => return Ok(String::new()),
            (SourceKind::Mysql, _) => "SELECT database()".to_owned(),
            _ => format!("SELECT pg_catalog.current_{what}()"),
        };
        let found = self.session.ask(&sql, &self.session.begin())?;
        found.into_iter().flatten().flatten().next().ok_or_else(|| not_found(key.as_ref()))
    }
}

impl Connection for DrayConnection {
    type StatementType = DrayStatement;

    fn new_statement(&mut self) -> Result<DrayStatement> {
        Ok(DrayStatement::new(self.session.clone(), self.settings.clone()))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(SessionCancel(self.session.clone()))
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Reader> {
        guarded(|| one_batch(info::batch(&self.session.server, self.session.kind, codes.as_ref())))
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Reader> {
        guarded(|| {
            let filter = Filter { depth, catalog, db_schema, table_name, table_type, column_name };
            let running = self.session.begin();
            let catalogs = objects::list(&self.session, &filter, &running)?;
            let batch = objects::encode(&catalogs).map_err(|error| bad_data(&error))?;
            let schema = batch.schema();
            // To cancel it is no error before it has been read, though all of it is here.
            let batches = [Ok(batch)].into_iter().inspect(move |_| _ = &running);
            Ok(Box::new(RecordBatchIterator::new(batches, schema)) as Reader)
        })
    }

    fn get_table_schema(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: &str,
    ) -> Result<Schema> {
        guarded(|| {
            let options = QueryOptions { plan_only: true, ..self.settings.options() };
            let running = self.session.begin();
            let table = objects::find(&self.session, catalog, db_schema, table_name, &running)?;
            let results =
                self.session.query(&format!("SELECT * FROM {table}"), &options, &running)?;
            Ok(hand_over_schema(results.schema()))
        })
    }

    fn get_table_types(&self) -> Result<Reader> {
        let names = match self.session.kind {
            SourceKind::Postgres => TABLE_TYPES.iter().map(|(name, _)| *name).collect(),
            SourceKind::Dray | SourceKind::Mysql | SourceKind::Other => vec!["table", "view"],
        };
        let names = Arc::new(StringArray::from(names));
        one_batch(
            RecordBatch::try_new(GET_TABLE_TYPES_SCHEMA.clone(), vec![names])
                .map_err(|error| bad_data(&error)),
        )
    }

    fn get_statistic_names(&self) -> Result<Reader> {
        one_batch(Ok(RecordBatch::new_empty(GET_STATISTIC_NAMES_SCHEMA.clone())))
    }

    fn get_statistics(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        _approximate: bool,
    ) -> Result<Reader> {
        guarded(|| {
            let (table_type, column_name) = (None, None);
            let depth = ObjectDepth::All;
            let filter = Filter { depth, catalog, db_schema, table_name, table_type, column_name };
            one_batch(objects::statistics(&self.session, &filter))
        })
    }

    fn commit(&mut self) -> Result<()> {
        guarded(|| self.session.end(Transaction::Commit))
    }

    fn rollback(&mut self) -> Result<()> {
        guarded(|| self.session.end(Transaction::Rollback))
    }

    fn read_partition(&self, partition: impl AsRef<[u8]>) -> Result<Reader> {
        guarded(|| {
            let options = self.settings.options();
            let result = partitions::read(self.session.clone(), partition.as_ref(), &options)?;
            Ok(hand_over_result(result))
        })
    }
}

impl Optionable for DrayConnection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: OptionConnection, value: OptionValue) -> Result<()> {
        guarded(|| {
            let name = key.as_ref();
            let value = text(name, value)?;
            match key {
                OptionConnection::AutoCommit => self.session.set_autocommit(boolean(name, &value)?),
                OptionConnection::ReadOnly => self.session.set_read_only(boolean(name, &value)?),
                OptionConnection::IsolationLevel => self.set_isolation(&value),
                OptionConnection::CurrentSchema => self.set_current_schema(&value),
                OptionConnection::CurrentCatalog => {
                    Err(not_implemented("a connection stays in its database; connect to another"))
                }
                _ if self.settings.set(name, &value)? => Ok(()),
                _ => Err(unknown(name)),
            }
        })
    }

    fn get_option_string(&self, key: OptionConnection) -> Result<String> {
        guarded(|| {
            let mode = self.session.mode();
            Ok(match &key {
                OptionConnection::AutoCommit => boolean_text(mode.autocommit),
                OptionConnection::ReadOnly => boolean_text(mode.read_only),
                OptionConnection::IsolationLevel => ISOLATIONS
                    .iter()
                    .find(|(_, isolation)| *isolation == mode.isolation)
                    .map_or_else(String::new, |(name, _)| (*name).to_owned()),
                OptionConnection::CurrentCatalog | OptionConnection::CurrentSchema => {
                    self.current(&key)?
                }
                _ => self.settings.get(key.as_ref()).ok_or_else(|| not_found(key.as_ref()))?,
            })
        })
    }

    fn get_option_bytes(&self, key: OptionConnection) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionConnection) -> Result<i64> {
        number(key.as_ref(), self.get_option_string(key.clone()))
    }

    fn get_option_double(&self, key: OptionConnection) -> Result<f64> {
        number(key.as_ref(), self.get_option_string(key.clone()))
    }
}

impl Drop for DrayConnection {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Cancels what runs on a connection.
struct SessionCancel(Arc<Session>);

impl CancelHandle for SessionCancel {
    fn try_cancel(&self) -> Result<()> {
        match self.0.cancel() {
            true => Ok(()),
            false => Err(invalid_state("nothing runs that could be cancelled")),
        }
    }
}

fn one_batch(batch: Result<RecordBatch>) -> Result<Reader> {
    let batch = batch?;
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// The error of a table that does not exist.
pub(crate) fn no_table(name: &str) -> Error {
    failed(Status::NotFound, format!("there is no table {name}"))
}
