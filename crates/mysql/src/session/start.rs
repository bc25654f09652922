//! Preparing and starting statements.

use std::io::{Read, Write};
use std::sync::Arc;

use dray_format::Schema;
use dray_mysqltypes::{Column, ColumnDefinition};
use mysql_common::constants::Command;

use super::cache::Prepared;
use super::next::{Event, Next};
use super::parameter::{Parameter, execute};
use super::rows::{Format, Rows, type_error};
use super::settings::is_timestamp;
use super::{Options, Session, effect};
use crate::error::{CancelCheck, Error, Result};
use crate::sql;

/// Errors of statements that a server runs but does not prepare: ER_UNSUPPORTED_PS;
/// ER_MAX_PREPARED_STMT_COUNT_REACHED; ER_UNKNOWN_COM_ERROR, of proxies.
const UNPREPARED: [u16; 3] = [1295, 1461, 1047];
/// Errors of prepared statements that must be prepared again: ER_UNKNOWN_STMT_HANDLER and
/// ER_NEED_REPREPARE.
const STALE: [u16; 2] = [1243, 1615];
/// The largest definition of a column: names have at most 64 characters, or 256 of an alias.
const DEFINITION_BYTES_MAX: usize = 64 << 10;

impl<S: Read + Write> Session<S> {
    /// Starts a statement and returns the columns of its rows; [`Self::next_batch`] reads them. A
    /// statement without rows has no columns, and has ended when this returns.
    ///
    /// # Errors
    /// When the statement fails, a column can't be read, or the connection breaks. If the statement
    /// still runs then ([`Self::is_running`]), it must be cancelled and drained.
    pub fn start(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_idle()?;
        self.learn_settings(Some(statement), check)?;
        self.settings.check_sendable(statement)?;
        self.settings.check_parameters(parameters)?;
        (self.rows, self.rows_changed) = (None, None);
        let is_stale = self.expect_changes(statement);
        let started = match parameters.is_empty() && effect::is_diagnostic(statement) {
            true => self.start_text(statement, options, check),
            false => self.start_prepared(statement, parameters, options, check),
        };
        if is_stale {
            self.settings.doubt();
        }
        started
    }

    /// Starts a statement as a prepared one, if the server can prepare it.
    fn start_prepared(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        if let Some(prepared) = self.cache.take(statement) {
            let was_stale = self.settings.is_stale();
            match self.run(statement, prepared, parameters, options, check) {
                // It has not run, and changed nothing.
                Err(error) if is_one_of(&error, &STALE) && !was_stale => self.settings.trust(),
                Err(error) if is_one_of(&error, &STALE) => {}
                started => return started,
            }
        }
        match self.prepare(statement, check)? {
            Some((prepared, _)) => self.run(statement, prepared, parameters, options, check),
            None if parameters.is_empty() => self.start_text(statement, options, check),
            None => Err(Error::usage("the server does not prepare this statement")
                .with_hint("write its values into it, instead of ?")),
        }
    }

    /// Starts a statement without preparing it.
    fn start_text(
        &mut self,
        statement: &str,
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        self.command(Command::COM_QUERY, statement.as_bytes(), Next::Result, check)?;
        self.begin(statement, Format::Text, options, check)
    }

    /// The columns of a statement's rows, without running it. Those of its result may have other
    /// types, once its parameters have values.
    ///
    /// # Errors
    /// Those of [`Self::start`], and when the server does not prepare the statement.
    pub fn describe(
        &mut self,
        statement: &str,
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_idle()?;
        self.learn_settings(None, check)?;
        self.settings.check_sendable(statement)?;
        let Some((prepared, definitions)) = self.prepare(statement, check)? else {
            return Err(Error::usage("the server does not describe this statement")
                .with_hint("it can only be run"));
        };
        if let Some(known) = self.cache.take(statement) {
            self.cache.forget(known.id);
        }
        self.keep(statement, prepared, self.cache.age());
        self.settings.check_readable(statement, &definitions)?;
        Ok(schema_of(&columns_of(&definitions, options)?))
    }

    /// Prepares a statement, and returns the definitions of its columns; None if the server can't.
    pub(super) fn prepare(
        &mut self,
        statement: &str,
        check: CancelCheck<'_>,
    ) -> Result<Option<(Prepared, Vec<ColumnDefinition>)>> {
        self.command(Command::COM_STMT_PREPARE, statement.as_bytes(), Next::Prepared, check)?;
        let prepared = match self.event(check)? {
            Event::Prepared(prepared) => prepared,
            Event::Failed(error) if is_one_of(&error, &UNPREPARED) => return Ok(None),
            Event::Failed(error) => return Err(error),
            _ => return Err(self.packets.out_of_order("not a prepared statement")),
        };
        match self.description(prepared, check) {
            Ok(definitions) => Ok(Some((prepared, definitions))),
            Err(error) => {
                self.cache.forget(prepared.id);
                Err(error)
            }
        }
    }

    /// Reads the description of a prepared statement: its parameters, then its columns.
    fn description(
        &mut self,
        prepared: Prepared,
        check: CancelCheck<'_>,
    ) -> Result<Vec<ColumnDefinition>> {
        let mut passed = match prepared.parameters {
            0 => 0,
            parameters => u32::from(parameters) + u32::from(!self.server.deprecates_eof()),
        };
        let mut definitions = Vec::new();
        while self.next != Next::Nothing {
            let is_definition = passed == 0 && definitions.len() < usize::from(prepared.columns);
            passed = passed.saturating_sub(1);
            self.definition(is_definition, &mut definitions, check)?;
        }
        Ok(definitions)
    }

    /// Runs a prepared statement, and keeps it for the next time.
    fn run(
        &mut self,
        statement: &str,
        prepared: Prepared,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        if usize::from(prepared.parameters) != parameters.len() {
            self.keep(statement, prepared, self.cache.age());
            return Err(Error::usage(format!(
                "the statement has {} parameters, {} values were given",
                prepared.parameters,
                parameters.len()
            )));
        }
        let argument = execute(prepared, parameters);
        let age = self.cache.age();
        self.command(Command::COM_STMT_EXECUTE, &argument, Next::Result, check)?;
        let begun = self.begin(statement, Format::Binary, options, check);
        match &begun {
            Err(error) if is_one_of(error, &STALE) => self.cache.forget(prepared.id),
            _ => self.keep(statement, prepared, age),
        }
        begun
    }

    /// Keeps a statement for the next time that was prepared at this age of the cache, if it is of
    /// a kind that means the same again, and has not changed the session. A procedure may fail with
    /// one of [`STALE`] after it has changed rows, and must not run again.
    pub(super) fn keep(&mut self, statement: &str, prepared: Prepared, age: u64) {
        match effect::is_kept(statement) && age == self.cache.age() {
            true => self.cache.push(statement, prepared),
            false => self.cache.forget(prepared.id),
        }
    }

    /// Forgets what a statement that is about to run may change. Returns whether the settings are
    /// unknown afterwards.
    pub(super) fn expect_changes(&mut self, statement: &str) -> bool {
        let may_change = effect::may_change_session(statement);
        if may_change {
            self.cache.forget_all();
        }
        may_change && (!self.settings.is_tracked() || effect::may_change_reports(statement))
    }

    /// Reads the beginning of a statement's result. A procedure may change rows before it returns
    /// some.
    fn begin(
        &mut self,
        statement: &str,
        format: Format,
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        let columns = loop {
            match self.event(check)? {
                Event::Columns(columns) => break columns,
                Event::Failed(error) => return Err(self.failed(error)),
                Event::Done(done) => {
                    self.rows_changed = sql::is_change(statement).then_some(done.rows_changed);
                    self.note(done);
                    if self.next == Next::Nothing {
                        return Ok(Arc::new(Schema { fields: Vec::new() }));
                    }
                }
                Event::File { .. } => return Err(self.refuse_file(check)?),
                _ => return Err(self.packets.out_of_order("not a result")),
            }
        };
        let definitions = self.definitions(columns, check)?;
        self.settings.check_readable(statement, &definitions)?;
        let timestamp = definitions.iter().find(|column| is_timestamp(column));
        let zone = timestamp.map(|column| (column.name.clone(), self.settings.zone_changes()));
        let columns = columns_of(&definitions, options)?;
        if format == Format::Text
            && let Some(column) = columns.iter().find(|column| column.needs_binary())
        {
            let what = format!(
                "column {:?} is a FLOAT, which the server rounds when it can't prepare the \
                 statement",
                column.field().name
            );
            return Err(Error::usage(what).with_hint("CAST(… AS DOUBLE) keeps its digits"));
        }
        let schema = schema_of(&columns);
        let builder = options.builder(schema.clone())?;
        self.rows = Some(Box::new(Rows::new(columns, format, zone, builder, options.clone())));
        Ok(schema)
    }

    /// Reads the definitions of a result's columns.
    fn definitions(
        &mut self,
        columns: u32,
        check: CancelCheck<'_>,
    ) -> Result<Vec<ColumnDefinition>> {
        let mut definitions = Vec::with_capacity(columns as usize);
        while self.next != Next::Rows {
            let is_definition = self.next != Next::DefinedEnd;
            self.definition(is_definition, &mut definitions, check)?;
        }
        Ok(definitions)
    }

    /// Reads a packet among definitions.
    fn definition(
        &mut self,
        is_definition: bool,
        definitions: &mut Vec<ColumnDefinition>,
        check: CancelCheck<'_>,
    ) -> Result<()> {
        let extended = self.server.extends_metadata();
        let payload = self.packets.next(DEFINITION_BYTES_MAX, check)?;
        let mut event = self.next.advance(payload, &self.server);
        if let (Ok(Event::Definition), true) = (&event, is_definition) {
            match ColumnDefinition::parse(payload, extended) {
                Ok(definition) => definitions.push(definition),
                Err(error) => event = Err(type_error(error)),
            }
        }
        match self.checked(event)? {
            Event::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks a server for the settings, if it may have changed them without a report. The question
    /// would replace what the statement before has left, so it waits if this one reads that.
    fn learn_settings(&mut self, statement: Option<&str>, check: CancelCheck<'_>) -> Result<()> {
        if !self.settings.is_stale() || statement.is_some_and(effect::reads_what_is_left) {
            return Ok(());
        }
        let values = self.ask(&self.settings.question(), check)?;
        self.settings.learn(values.into_iter().flatten());
        Ok(())
    }
}

fn is_one_of(error: &Error, codes: &[u16]) -> bool {
    error.code().is_some_and(|code| codes.contains(&code))
}

fn columns_of(definitions: &[ColumnDefinition], options: &Options) -> Result<Vec<Column>> {
    let columns = definitions.iter().map(|definition| Column::new(definition, &options.types));
    columns.collect::<Result<_, _>>().map_err(type_error)
}

fn schema_of(columns: &[Column]) -> Arc<Schema> {
    Arc::new(Schema { fields: columns.iter().map(|column| column.field().clone()).collect() })
}
