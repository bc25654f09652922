//! A statement: its text, its options and the parameters bound to it.

use std::sync::Arc;

use adbc_core::error::Result;
use adbc_core::options::{OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Optionable, PartitionedResult, Statement};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatchReader;
use dray_client::{ParameterTyping, QueryOptions};

use crate::cancel::{Cancel, Running};
use crate::error::{guarded, invalid_state, not_implemented};
use crate::ingest::IngestSettings;
use crate::options::{QuerySettings, boolean, not_found, number, text, unknown};
use crate::parameters::{self, ParameterRows};
use crate::partitions;
use crate::result::{NextRuns, ResultHandle, ResultReader};
use crate::session::Session;
use crate::table::{hand_over_result, hand_over_schema};

/// Binds parameters by their names, for statements with such.
const BIND_BY_NAME: &str = "adbc.statement.bind_by_name";

/// A statement of a connection.
pub struct DrayStatement {
    session: Arc<Session>,
    settings: QuerySettings,
    sql: Option<String>,
    ingest: IngestSettings,
    /// For the SQL or the ingest that is set. Without either, for what comes.
    bound: Option<ParameterRows>,
    cancel: Cancel,
    /// The result of the last execution.
    result: ResultHandle,
}

impl DrayStatement {
    pub(crate) fn new(session: Arc<Session>, settings: QuerySettings) -> Self {
        Self {
            session,
            settings,
            sql: None,
            ingest: IngestSettings::default(),
            bound: None,
            cancel: Cancel::default(),
            result: ResultHandle::default(),
        }
    }

    fn sql(&self) -> Result<&str> {
        self.sql.as_deref().ok_or_else(|| invalid_state("the statement has no SQL to run"))
    }

    /// Ends the result of the execution before.
    fn invalidate(&mut self) {
        // Another thread that reads it stops at its next look.
        self.cancel.request();
        std::mem::take(&mut self.result).invalidate();
    }

    /// Runs the statement, once for each bound row.
    fn run(&mut self) -> Result<ResultReader> {
        self.invalidate();
        let sql = self.sql()?.to_owned();
        let running = self.cancel.begin();
        let options = self.settings.options();
        let Some(mut rows) = self.bound.take() else {
            let results = self.session.query(&sql, &options, &running)?;
            return ResultReader::start(self.session.clone(), running, results, None);
        };
        let parameter_typing = rows.typing();
        let options = QueryOptions { parameter_typing, ..options };
        let Some(row) = rows.next()? else {
            let schema = self.describe(&sql, None, parameter_typing, &running)?;
            return Ok(ResultReader::empty(schema));
        };
        let first = QueryOptions { parameters: Some(row), ..options.clone() };
        let results = self.session.query(&sql, &first, &running)?;
        let next_runs = Some(NextRuns { sql, options, rows });
        ResultReader::start(self.session.clone(), running, results, next_runs)
    }

    /// Writes the bound data, and returns the number of rows.
    fn write(&mut self) -> Result<u64> {
        self.invalidate();
        let data = self.bound.take().ok_or_else(|| {
            invalid_state("nothing is bound that could be written into the table")
        })?;
        let running = self.cancel.begin();
        self.ingest.run(&self.session, data.into_reader(), &running)
    }

    /// The columns of the statement's result, by a row of parameters or as if all were NULL.
    fn describe(
        &self,
        sql: &str,
        row: Option<RecordBatch>,
        parameter_typing: ParameterTyping,
        running: &Running,
    ) -> Result<SchemaRef> {
        let row = match row {
            None => parameters::nulls(self.session.parameters_in(sql, running)?)?,
            row => row,
        };
        let settings = self.settings.options();
        let options =
            QueryOptions { parameters: row, parameter_typing, plan_only: true, ..settings };
        Ok(self.session.query(sql, &options, running)?.schema())
    }
}

impl Statement for DrayStatement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        self.bound = Some(ParameterRows::of_batch(batch, self.session.kind));
        Ok(())
    }

    fn bind_stream(&mut self, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        self.bound = Some(ParameterRows::new(reader, self.session.kind));
        Ok(())
    }

    fn execute(&mut self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        guarded(|| {
            if self.ingest.is_set() {
                self.write()?;
                return Ok(hand_over_result(ResultReader::empty(Arc::new(Schema::empty()))));
            }
            let result = self.run()?;
            self.result = result.handle();
            Ok(hand_over_result(result))
        })
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        guarded(|| {
            if self.ingest.is_set() {
                return Ok(i64::try_from(self.write()?).ok());
            }
            let result = self.run()?;
            while result.next_batch()?.is_some() {}
            Ok(result.rows_changed().and_then(|rows| i64::try_from(rows).ok()))
        })
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        guarded(|| {
            self.invalidate();
            let (row, typing) = match &mut self.bound {
                Some(rows) => (rows.peek()?, rows.typing()),
                None => (None, ParameterTyping::Values),
            };
            let running = self.cancel.begin();
            Ok(hand_over_schema(self.describe(self.sql()?, row, typing, &running)?))
        })
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        guarded(|| {
            self.invalidate();
            let sql = self.sql()?.to_owned();
            let running = self.cancel.begin();
            let (query, plan) = (self.settings.options(), self.settings.plan());
            partitions::plan(&self.session, &sql, self.bound.take(), query, plan, &running)
        })
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        guarded(|| {
            let running = self.session.begin();
            Ok(parameters::schema(self.session.parameters_in(self.sql()?, &running)?))
        })
    }

    /// The client prepares a statement by itself once it comes again, so nothing is sent here.
    fn prepare(&mut self) -> Result<()> {
        self.sql().map(drop)
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        if self.sql.is_some() || self.ingest.is_set() {
            self.bound = None;
        }
        self.sql = Some(query.as_ref().to_owned());
        self.ingest.clear_table();
        Ok(())
    }

    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        Err(not_implemented("Substrait plans are not implemented; give the statement as SQL"))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(self.cancel.clone())
    }
}

impl Optionable for DrayStatement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: OptionStatement, value: OptionValue) -> Result<()> {
        let key = key.as_ref();
        let value = text(key, value)?;
        if key == OptionStatement::Incremental.as_ref() || key == BIND_BY_NAME {
            return match boolean(key, &value)? {
                false => Ok(()),
                true if key == BIND_BY_NAME => {
                    // Python's manager has bound them before, and may not bind for the next run.
                    self.bound = None;
                    Err(not_implemented(
                        "parameters have no names: they are $1, $2, … or ? in the order of the \
                         columns",
                    ))
                }
                true => Err(not_implemented("all parts of a plan are known at once")),
            };
        }
        match self.ingest.set(key, &value)? || self.settings.set(key, &value)? {
            true => Ok(()),
            false => Err(unknown(key)),
        }
    }

    fn get_option_string(&self, key: OptionStatement) -> Result<String> {
        let key = key.as_ref();
        if key == OptionStatement::Incremental.as_ref() || key == BIND_BY_NAME {
            return Ok("false".to_owned());
        }
        let found = self.ingest.get(key).or_else(|| self.settings.get(key));
        found.ok_or_else(|| not_found(key))
    }

    fn get_option_bytes(&self, key: OptionStatement) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionStatement) -> Result<i64> {
        number(key.as_ref(), self.get_option_string(key.clone()))
    }

    fn get_option_double(&self, key: OptionStatement) -> Result<f64> {
        number(key.as_ref(), self.get_option_string(key.clone()))
    }
}
