//! Preparing and starting statements: their columns, their types, and in which format each column
//! comes.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::Arc;

use dray_format::Schema;
use dray_pgtypes::{Column, Format, Kind, Options as TypeOptions, PgType, builtin};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::cache::CachedStatement;
use super::messages::server_error;
use super::parameter::{Parameter, bind};
use super::rows::{BindReport, Rows};
use super::{Options, STEP_MISSING, Session, State, invalid};
use crate::catalog;
use crate::error::{CancelCheck, Error, ErrorKind, Result};

/// Asks for the digits of `money` after the point.
pub(super) const MONEY_SCALE: &str =
    "SELECT pg_catalog.scale('1'::pg_catalog.money::pg_catalog.numeric)";
/// `money`.
const MONEY_OID: u32 = 790;
/// Gives floats in text all their digits for the rest of the transaction.
const FULL_FLOAT_DIGITS: &str = "SELECT pg_catalog.set_config('extra_float_digits', '3', true)";
/// From this many columns on, glibc's malloc in the server would return a row's memory to the
/// system after each row and ask for it again: a send function takes 1 KiB for a value. Freeing one
/// large block teaches it to keep such memory (mallopt(3)).
const WIDE: usize = 64;
const KEEP_MEMORY: &str = "SELECT pg_catalog.octet_length(pg_catalog.repeat('x', 2097152))";

/// Columns as a server describes them; None for a statement that returns no rows.
pub(super) type Described = Option<Vec<DescribedColumn>>;

/// A column as a server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DescribedColumn {
    name: String,
    oid: u32,
    /// What the column declares, such as a precision (`atttypmod`).
    typmod: i32,
}

/// What a statement's rows become.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) columns: Arc<[Column]>,
    pub(super) schema: Arc<Schema>,
    /// Rows may have no columns.
    pub(super) returns_rows: bool,
}

impl Columns {
    fn new(columns: Vec<Column>, described: &Described) -> Self {
        let schema =
            Schema { fields: columns.iter().map(|column| column.field().clone()).collect() };
        Self {
            columns: columns.into(),
            schema: Arc::new(schema),
            returns_rows: described.is_some(),
        }
    }
}

impl<S: Read + Write> Session<S> {
    /// Starts a statement and returns the columns of its rows; [`Self::next_batch`] reads them. A
    /// statement without rows has no columns.
    ///
    /// # Errors
    /// When the statement does not parse, or the connection breaks.
    pub fn start(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_readable(statement)?;
        (self.statement, self.sent_before) = (statement.to_owned(), 0);
        let oids: Vec<u32> = parameters.iter().map(|parameter| parameter.oid).collect();
        let started = match self.cache.take(statement, &oids, &options.types) {
            Some(cached) => self.start_cached(cached, parameters, check)?,
            None => None,
        };
        let (columns, bind) = match started {
            Some(started) => started,
            None => {
                let columns = self.start_new(statement, oids, parameters, options, check)?;
                (columns, BindReport::Pending)
            }
        };
        let schema = columns.schema.clone();
        let builder = options.builder(schema.clone())?;
        self.state = State::Rows(Box::new(Rows::new(columns, builder, options.clone(), bind)));
        Ok(schema)
    }

    /// Prepares a statement that is not cached, and runs it with the formats of its columns.
    fn start_new(
        &mut self,
        statement: &str,
        oids: Vec<u32>,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Columns> {
        self.invalidate_cache(statement);
        let prepared = self.prepare(statement, parameters, options, check);
        let begun = prepared.and_then(|(described, columns)| {
            if columns.len() >= WIDE && !std::mem::replace(&mut self.keeps_memory, true) {
                self.ask_within(KEEP_MEMORY, check)?;
            }
            self.execute("", &columns, parameters, check)?;
            Ok((described, columns))
        });
        let (described, columns) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.give_up(error, check),
        };
        // Only types that an oid determines are cached. Others, and money, may change.
        let is_settled = |oid: u32| builtin(oid, -1).is_some_and(|pg_type| !holds_money(&pg_type));
        let is_ready = self.full_float_digits || !has_text(&columns);
        if is_ready
            && self.is_preserved_by(statement)
            && described.iter().flatten().all(|column| is_settled(column.oid))
        {
            let columns = Columns::new(columns, &described);
            self.cache.push(CachedStatement {
                statement: statement.to_owned(),
                oids,
                types: options.types.clone(),
                described,
                columns: columns.clone(),
                prepared: None,
            });
            return Ok(columns);
        }
        Ok(Columns::new(columns, &described))
    }

    /// Ends a statement that has failed before its last message was written: the server ignores
    /// everything up to the next sync.
    pub(super) fn give_up<T>(&mut self, error: Error, check: CancelCheck<'_>) -> Result<T> {
        self.messages.out().clear();
        frontend::sync(self.messages.out());
        self.messages.send(check)?;
        self.wait_ready(Err(error), check)
    }

    /// The columns of a statement's rows, without running it.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn describe(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_readable(statement)?;
        (self.statement, self.sent_before) = (statement.to_owned(), 0);
        let columns = self.prepare(statement, parameters, options, check);
        frontend::sync(self.messages.out());
        self.messages.send(check)?;
        let (described, columns) = self.wait_ready(columns, check)?;
        Ok(Columns::new(columns, &described).schema)
    }

    /// Parses the statement and finds out its columns.
    fn prepare(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        check: CancelCheck<'_>,
    ) -> Result<(Described, Vec<Column>)> {
        let oids = parameters.iter().map(|parameter| parameter.oid);
        self.cache.close_obsolete(self.messages.out())?;
        frontend::parse("", statement, oids, self.messages.out()).map_err(invalid)?;
        frontend::describe(b'S', "", self.messages.out()).map_err(invalid)?;
        frontend::flush(self.messages.out());
        self.messages.send(check)?;
        let described = self.described(parameters, check)?;
        let mut options = options.types.clone();
        self.learn_types(described.iter().flatten().map(|column| column.oid), &mut options, check)?;
        let column = |DescribedColumn { name, oid, typmod }: &DescribedColumn| {
            Column::new(name, &self.catalog.pg_type(*oid, *typmod), &options).in_quicker_format()
        };
        let columns: Vec<_> = described.iter().flatten().map(column).collect();
        if !self.full_float_digits && has_text(&columns) {
            self.ask_within(FULL_FLOAT_DIGITS, check)?;
        }
        Ok((described, columns))
    }

    /// The server's description of a statement that it has parsed.
    pub(super) fn described(
        &mut self,
        parameters: &[Parameter],
        check: CancelCheck<'_>,
    ) -> Result<Described> {
        let mut is_parsed = false;
        loop {
            match self.messages.message(check)? {
                Message::CloseComplete if !is_parsed => {}
                Message::ParseComplete if !is_parsed => is_parsed = true,
                Message::ErrorResponse(error) => {
                    return Err(server_error(error.fields(), &self.statement, self.sent_before));
                }
                _ if !is_parsed => return Err(self.messages.out_of_order(STEP_MISSING)),
                Message::ParameterDescription(found) => {
                    let expected = found.parameters().count().unwrap_or(0);
                    if expected != parameters.len() {
                        let what = format!(
                            "the statement has {expected} parameters, {} values were given",
                            parameters.len()
                        );
                        // The sync skips the description of the rows, which follows.
                        return Err(Error::new(ErrorKind::Usage, what));
                    }
                }
                Message::NoData => return Ok(None),
                Message::RowDescription(row) => {
                    let fields = row.fields();
                    let described = fields.map(|field| {
                        Ok(DescribedColumn {
                            name: field.name().to_owned(),
                            oid: field.type_oid(),
                            typmod: field.type_modifier(),
                        })
                    });
                    return described.collect().map(Some).map_err(invalid);
                }
                _ => return Err(self.messages.out_of_order("not a description")),
            }
        }
    }

    /// Asks the server about types that are not known yet.
    fn learn_types(
        &mut self,
        oids: impl Iterator<Item = u32> + Clone,
        options: &mut TypeOptions,
        check: CancelCheck<'_>,
    ) -> Result<()> {
        let missing: HashSet<u32> = oids.clone().filter(|oid| self.catalog.misses(*oid)).collect();
        if !missing.is_empty() {
            let rows = self.ask_within(&catalog::query(&missing, self.server_version), check)?;
            let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.try_into().ok()).collect();
            if !rows.is_some_and(|rows| self.catalog.learn(&rows)) {
                return Err(self.messages.out_of_order("not a description of types"));
            }
        }
        if options.money_scale.is_none()
            && oids.clone().any(|oid| holds_money(&self.catalog.pg_type(oid, -1)))
        {
            let rows = self.ask_within(MONEY_SCALE, check)?;
            let scale = rows.into_iter().flatten().flatten().next();
            options.money_scale = scale.and_then(|scale| scale.parse().ok());
        }
        Ok(())
    }

    pub(super) fn execute(
        &mut self,
        prepared: &str,
        columns: &[Column],
        parameters: &[Parameter],
        check: CancelCheck<'_>,
    ) -> Result<()> {
        let formats: Vec<i16> =
            columns.iter().map(|column| i16::from(column.format() == Format::Binary)).collect();
        let out = self.messages.out();
        if let Err(error) = bind(prepared, parameters, &formats, out) {
            // Half of it may be there.
            out.clear();
            return Err(error);
        }
        frontend::execute("", 0, out).map_err(invalid)?;
        frontend::sync(out);
        self.messages.send(check)
    }
}

/// Whether some columns come as text, which may contain floats.
pub(crate) fn has_text(columns: &[Column]) -> bool {
    columns.iter().any(Column::is_output)
}

/// Whether a type is `money` or contains it.
pub(super) fn holds_money(pg_type: &PgType) -> bool {
    match &pg_type.kind {
        Kind::Base => pg_type.oid == MONEY_OID,
        Kind::Enum => false,
        Kind::Domain(of)
        | Kind::Range(of)
        | Kind::Multirange(of)
        | Kind::Array { item: of, .. } => holds_money(of),
        Kind::Composite(attributes) => attributes.iter().any(|(_, of)| holds_money(of)),
    }
}
