//! A session: statements one after the other, and their results as columns.
//!
//! ```text
//!   stock server       parse, describe ──▶ types ──▶ bind, execute ──▶ rows ──▶ BatchBuilder
//!   with the extension COPY (…) TO STDOUT (FORMAT dray) ──▶ frames of spec/protocol.md, which the caller reads
//! ```
//!
//! A row in binary is the same bytes in a `DataRow` as in `COPY … (FORMAT binary)`, and takes the
//! server no longer to make; but it comes with its types, in the same transaction, takes
//! parameters, and is there for every statement that has rows. And a column may come as text where
//! that takes the server less.

mod copy;
mod known;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dray_format::{BatchBuilder, BuiltBatch, Profile, Schema};
use dray_pgtypes::{Column, Format, Kind, Options as TypeOptions, PgType, builtin};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

pub use self::copy::CopyStart;
use self::known::Known;
use crate::catalog::{self, Catalog};
use crate::error::{Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::parameter::{Parameter, bind};
use crate::rows::{CopyBytes, Rows};
use crate::split::{Split, attributes, leaves_session_alone};
use crate::sql;
use crate::tag::miscount;
use crate::wire::{Patience, Wire, server_error};

/// `money`.
const MONEY_OID: u32 = 790;
/// The name of the prepared statement for the session's own questions, which must not replace the
/// user's.
const OWN_STATEMENT: &str = "dray_types";
/// For the rest of the transaction, floats in text have all their digits.
const WHOLE_FLOATS: &str = "SELECT pg_catalog.set_config('extra_float_digits', '3', true)";
/// Rows of so many columns take a server memory that glibc's malloc would give back after each of
/// them, and ask for again: a send function takes 1 KiB for a value. From one large block that is
/// freed it learns to keep such memory (mallopt(3)).
const WIDE: usize = 64;
const KEEP_MEMORY: &str = "SELECT pg_catalog.octet_length(pg_catalog.repeat('x', 2097152))";
/// Rows that a stock server's answers are cut into.
const BATCH_ROWS: usize = 65_536;
/// Tags of what the server says when it has parsed or bound or closed a statement.
const PARSED: u8 = b'1';
pub(crate) const BOUND: u8 = b'2';
const CLOSED: u8 = b'3';
/// Where one of these is not: a message was lost, so that what follows may be the result of the
/// statement before.
pub(crate) const STEP_MISSING: &str = "a statement was not parsed or bound";

/// How a statement's result is to come.
#[derive(Debug, Clone)]
pub struct Options {
    /// What columns become of types that Arrow does not have.
    pub types: TypeOptions,
    /// A batch ends with this many rows.
    pub batch_rows: usize,
    /// A batch ends when its values have this many bytes.
    pub batch_bytes: usize,
    /// The largest row to accept.
    pub row_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            types: TypeOptions::default(),
            batch_rows: BATCH_ROWS,
            batch_bytes: 64 << 20,
            row_bytes_max: 256 << 20,
        }
    }
}

impl Options {
    /// A builder of rows, each of which may become so much larger than it was sent: an array of
    /// NULL composites does.
    pub(crate) fn builder(&self, schema: Arc<Schema>) -> Result<BatchBuilder> {
        const GROWTH_MAX: usize = 4;
        let mut builder = BatchBuilder::new(schema).map_err(value_error)?;
        // A batch is weighed with every 64th row, and with each large one.
        builder.set_bytes_max(
            self.row_bytes_max.saturating_mul(GROWTH_MAX),
            self.batch_bytes.saturating_mul(2),
        );
        Ok(builder)
    }
}

/// What runs.
#[derive(Debug)]
enum State {
    Idle,
    /// A statement whose rows are read here.
    Rows(Box<Rows>),
    /// A COPY whose data the caller reads: what is left of the message that it is in.
    Copy {
        left: usize,
    },
    /// A statement whose result nobody wants: it is to be cancelled and drained.
    Unwanted,
}

/// Columns as a server describes them: name, type, and what it declares; none where no rows are
/// returned.
type Described = Option<Vec<(String, u32, i32)>>;

/// What a statement's rows become.
#[derive(Debug, Clone)]
struct Columns {
    columns: Arc<[Column]>,
    schema: Arc<Schema>,
    /// Rows may be without columns.
    returns_rows: bool,
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

/// A session with a server, once the user is logged in.
#[derive(Debug)]
pub struct Session<S> {
    wire: Wire<S>,
    catalog: Catalog,
    /// The last one last.
    known: Vec<Known>,
    /// What the names of prepared statements begin with, where every statement runs in the same
    /// server process.
    names: Option<String>,
    /// How many names were given so far.
    names_given: u64,
    /// Prepared statements that are not wanted any more.
    unwanted: Vec<String>,
    /// Every statement runs in the same server process, in which the extension is loaded already.
    loaded: bool,
    /// The server's process was asked to keep the memory of wide rows.
    keeps_memory: bool,
    server_version: u32,
    /// Floats have all their digits in text, until the user wants it otherwise.
    whole_floats: bool,
    state: State,
    /// The text of the running statement, for the positions of errors.
    statement: String,
    /// Characters that were sent before it.
    before: usize,
    tag: String,
    /// Bytes of rows, of all statements.
    bytes: u64,
    /// How the columns of the last statement came, if it has ended.
    profile: Profile,
    /// What the server said at the end of the last statement: idle, in a transaction, or in a
    /// failed one.
    status: u8,
}

impl<S: Read + Write> Session<S> {
    /// A session over a socket on which the server has just said that it is ready, and what it
    /// `reported` about itself before. `server_version` is the server's major version.
    pub fn new(stream: S, server_version: u32, reported: &BTreeMap<String, String>) -> Self {
        let mut wire = Wire::new(stream);
        reported.iter().for_each(|(name, value)| wire.settings().report(name, value));
        Self {
            wire,
            catalog: Catalog::default(),
            known: Vec::new(),
            names: None,
            names_given: 0,
            unwanted: Vec::new(),
            loaded: false,
            keeps_memory: false,
            server_version,
            whole_floats: false,
            state: State::Idle,
            statement: String::new(),
            before: 0,
            tag: String::new(),
            bytes: 0,
            profile: Profile::default(),
            status: b'I',
        }
    }

    /// Whether another statement can be run.
    pub fn is_usable(&self) -> bool {
        !self.wire.is_broken() && matches!(self.state, State::Idle)
    }

    /// Whether a statement runs.
    pub fn is_running(&self) -> bool {
        !self.wire.is_broken() && !matches!(self.state, State::Idle)
    }

    /// Says whether backslashes escape in plain strings, whatever was reported of it: a pooler need
    /// not pass it on.
    pub fn set_escapes(&mut self, escapes: bool) {
        self.wire.settings().report_escapes(escapes);
    }

    /// Says that `extra_float_digits` was set for the whole session. If not, it is for each
    /// transaction that needs it.
    pub fn set_whole_floats(&mut self) {
        self.whole_floats = true;
    }

    /// Says that every statement runs in the server process with this number: what is run again and
    /// again may be prepared there.
    pub fn set_process(&mut self, process_id: i32) {
        // Should a pooler be there all the same, nobody else's statements have such names.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.names = Some(format!("dray_{process_id}_{:x}", now.as_nanos()));
    }

    /// Whether backslashes escape in plain strings, as `standard_conforming_strings` says.
    fn escapes(&self) -> bool {
        self.wire.escapes().unwrap_or_default()
    }

    /// Whether the connection broke.
    pub fn is_broken(&self) -> bool {
        self.wire.is_broken()
    }

    /// Whether a transaction that the user began is open.
    pub fn is_in_transaction(&self) -> bool {
        self.status != b'I'
    }

    /// A statement as [`enclosable`](crate::enclosable) gives it, by the session's rules for
    /// strings.
    pub fn enclosable<'a>(&self, statement: &'a str) -> Option<&'a str> {
        sql::enclosable(statement, self.escapes())
    }

    /// Looks whether a statement can be read in parts.
    ///
    /// # Errors
    /// With the reason why not.
    pub fn split(&self, statement: &str) -> Result<Split, &'static str> {
        Split::of(statement, self.escapes())
    }

    /// Whether a statement surely leaves the session as it was.
    pub fn is_left_alone_by(&self, statement: &str) -> bool {
        leaves_session_alone(statement, self.escapes())
    }

    /// The highest of `$1, $2 …` in a statement; none where it is not one.
    pub fn parameters_in(&self, statement: &str) -> Option<usize> {
        sql::parameters_in(statement, self.escapes())
    }

    /// Names in a statement that may be functions, called like a column.
    pub fn attributes_of(&self, statement: &str) -> BTreeSet<String> {
        attributes(statement, self.escapes())
    }

    /// Gives the connection up.
    pub fn break_off(&mut self) {
        self.wire.break_off();
    }

    /// What the server said of the last statement at its end: `SELECT 5`.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The bytes of rows received so far, in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How the columns of the statement came whose rows have just ended.
    pub fn take_profile(&mut self) -> Profile {
        std::mem::take(&mut self.profile)
    }

    /// How long the session has waited for the server, and read from the socket, in all.
    pub fn waited(&self) -> Duration {
        self.wire.waited()
    }

    /// Runs one of the session's own statements, and returns its rows as text.
    ///
    /// # Errors
    /// When it fails, or the connection breaks.
    pub fn ask(
        &mut self,
        statement: &str,
        patience: Patience<'_>,
    ) -> Result<Vec<Vec<Option<String>>>> {
        self.check_sendable(statement)?;
        (self.statement, self.before) = (statement.to_owned(), 0);
        frontend::query(statement, self.wire.out()).map_err(invalid)?;
        self.wire.send(patience)?;
        // There may be several statements in one.
        let mut rows = Vec::new();
        let outcome = loop {
            match self.text_rows(false, patience) {
                Ok(more) => rows.extend(more),
                Err(error) => break Err(error),
            }
            if matches!(self.wire.next_tag(patience)?, b'Z' | b'E') {
                break Ok(rows);
            }
        };
        self.wait_ready(outcome, patience)
    }

    /// Starts a statement, and returns the columns of its rows, which [`Self::next_batch`] reads. A
    /// statement without rows has no columns.
    ///
    /// # Errors
    /// When the statement does not parse, or the connection breaks.
    pub fn start(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        patience: Patience<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_readable(statement)?;
        (self.statement, self.before) = (statement.to_owned(), 0);
        let oids: Vec<u32> = parameters.iter().map(|parameter| parameter.oid).collect();
        let known = self.known.iter().position(|known| {
            known.statement == statement && known.oids == oids && known.types == options.types
        });
        let started = match known.map(|at| self.known.remove(at)) {
            Some(known) => self.start_known(known, parameters, patience)?,
            None => None,
        };
        let (Columns { columns, schema, returns_rows }, is_bound) = match started {
            Some(started) => started,
            None => (self.start_new(statement, oids, parameters, options, patience)?, false),
        };
        let builder = options.builder(schema.clone())?;
        let options = options.clone();
        self.state =
            State::Rows(Box::new(Rows::new(columns, builder, options, returns_rows, is_bound)));
        Ok(schema)
    }

    /// Prepares the statement, and then runs it with what its columns ask for.
    fn start_new(
        &mut self,
        statement: &str,
        oids: Vec<u32>,
        parameters: &[Parameter],
        options: &Options,
        patience: Patience<'_>,
    ) -> Result<Columns> {
        self.mind(statement);
        let prepared = self.prepare(statement, parameters, options, patience);
        let begun = prepared.and_then(|(described, columns)| {
            if columns.len() >= WIDE && !std::mem::replace(&mut self.keeps_memory, true) {
                self.ask_within(KEEP_MEMORY, patience)?;
            }
            self.execute("", &columns, parameters, patience)?;
            Ok((described, columns))
        });
        let (described, columns) = match begun {
            Ok(begun) => begun,
            // The server ignores everything up to the next sync.
            Err(error) => {
                self.wire.out().clear();
                frontend::sync(self.wire.out());
                self.wire.send(patience)?;
                return self.wait_ready(Err(error), patience);
            }
        };
        // Only what a number says all about: other types, and money, may mean something else the
        // next time.
        let is_settled = |oid: u32| builtin(oid, -1).is_some_and(|pg_type| !holds_money(&pg_type));
        let is_ready = self.whole_floats || !has_text(&columns);
        if is_ready
            && self.is_left_alone_by(statement)
            && described.iter().flatten().all(|(_, oid, _)| is_settled(*oid))
        {
            let (statement, types) = (statement.to_owned(), options.types.clone());
            let columns = Columns::new(columns, &described);
            return Ok(self.remember(Known {
                statement,
                oids,
                types,
                described,
                columns,
                prepared: None,
            }));
        }
        Ok(Columns::new(columns, &described))
    }

    /// The columns of a statement's rows, without running it.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn describe(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        patience: Patience<'_>,
    ) -> Result<Arc<Schema>> {
        self.check_readable(statement)?;
        (self.statement, self.before) = (statement.to_owned(), 0);
        let columns = self.prepare(statement, parameters, options, patience);
        frontend::sync(self.wire.out());
        self.wire.send(patience)?;
        let (described, columns) = self.wait_ready(columns, patience)?;
        Ok(Columns::new(columns, &described).schema)
    }

    /// What the planner expects of a query: rows, and bytes of one.
    ///
    /// # Errors
    /// When it does not plan, or the connection breaks.
    pub fn estimate(
        &mut self,
        statement: &str,
        patience: Patience<'_>,
    ) -> Result<Option<(u64, u64)>> {
        let Some(statement) = self.enclosable(statement) else { return Ok(None) };
        let plan = self.ask(&format!("EXPLAIN {statement}"), patience)?;
        let first = plan.into_iter().flatten().flatten().next().unwrap_or_default();
        // Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4)
        let number = |key: &str| {
            let (_, after) = first.rsplit_once(key)?;
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Ok(number("rows=").zip(number("width=")))
    }

    /// Parses the statement and finds out what its columns are.
    fn prepare(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        options: &Options,
        patience: Patience<'_>,
    ) -> Result<(Described, Vec<Column>)> {
        let oids = parameters.iter().map(|parameter| parameter.oid);
        self.close_unwanted()?;
        frontend::parse("", statement, oids, self.wire.out()).map_err(invalid)?;
        frontend::describe(b'S', "", self.wire.out()).map_err(invalid)?;
        frontend::flush(self.wire.out());
        self.wire.send(patience)?;
        let described = self.described(parameters, patience)?;
        let mut options = options.types.clone();
        self.learn_types(
            described.iter().flatten().map(|(_, oid, _)| *oid),
            &mut options,
            patience,
        )?;
        let column = |(name, oid, typmod): &(String, u32, i32)| {
            Column::new(name, &self.catalog.pg_type(*oid, *typmod), &options).in_quicker_format()
        };
        let columns: Vec<_> = described.iter().flatten().map(column).collect();
        if !self.whole_floats && has_text(&columns) {
            self.ask_within(WHOLE_FLOATS, patience)?;
        }
        Ok((described, columns))
    }

    /// What the server says of the columns of a statement that it was given.
    fn described(&mut self, parameters: &[Parameter], patience: Patience<'_>) -> Result<Described> {
        let mut is_parsed = false;
        loop {
            match self.wire.message(patience)? {
                Message::CloseComplete if !is_parsed => {}
                Message::ParseComplete if !is_parsed => is_parsed = true,
                Message::ErrorResponse(error) => {
                    return Err(server_error(error.fields(), &self.statement, self.before));
                }
                _ if !is_parsed => return Err(self.wire.out_of_order(STEP_MISSING)),
                Message::ParameterDescription(found) => {
                    let expected = found.parameters().count().unwrap_or(0);
                    if expected != parameters.len() {
                        let what = format!(
                            "the statement has {expected} parameters, {} values were given",
                            parameters.len()
                        );
                        // The description of the rows follows, and is passed over by the sync.
                        return Err(Error::new(ErrorKind::Usage, what));
                    }
                }
                Message::NoData => return Ok(None),
                Message::RowDescription(row) => {
                    let fields = row.fields();
                    let described = fields.map(|field| {
                        Ok((field.name().to_owned(), field.type_oid(), field.type_modifier()))
                    });
                    return described.collect().map(Some).map_err(invalid);
                }
                _ => return Err(self.wire.out_of_order("not a description")),
            }
        }
    }

    /// Asks for what is not known of these types.
    fn learn_types(
        &mut self,
        oids: impl Iterator<Item = u32> + Clone,
        options: &mut TypeOptions,
        patience: Patience<'_>,
    ) -> Result<()> {
        let missing: HashSet<u32> = oids.clone().filter(|oid| self.catalog.misses(*oid)).collect();
        if !missing.is_empty() {
            let rows = self.ask_within(&catalog::query(&missing, self.server_version), patience)?;
            let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.try_into().ok()).collect();
            if !rows.is_some_and(|rows| self.catalog.learn(&rows)) {
                return Err(self.wire.out_of_order("not a description of types"));
            }
        }
        if options.money_scale.is_none()
            && oids.clone().any(|oid| holds_money(&self.catalog.pg_type(oid, -1)))
        {
            let rows = self.ask_within(
                "SELECT pg_catalog.scale('1'::pg_catalog.money::pg_catalog.numeric)",
                patience,
            )?;
            let scale = rows.into_iter().flatten().flatten().next();
            options.money_scale = scale.and_then(|scale| scale.parse().ok());
        }
        Ok(())
    }

    /// Runs one of the session's own statements while the user's is prepared, in the same
    /// transaction.
    fn ask_within(
        &mut self,
        statement: &str,
        patience: Patience<'_>,
    ) -> Result<Vec<Vec<Option<String>>>> {
        let out = self.wire.out();
        // A statement that an error has left behind would be in the way.
        frontend::close(b'S', OWN_STATEMENT, out).map_err(invalid)?;
        frontend::parse(OWN_STATEMENT, statement, [], out).map_err(invalid)?;
        bind(OWN_STATEMENT, [], &[], out)?;
        frontend::execute("", 0, out).map_err(invalid)?;
        frontend::close(b'S', OWN_STATEMENT, out).map_err(invalid)?;
        frontend::flush(out);
        self.wire.send(patience)?;
        for step in [CLOSED, PARSED, BOUND] {
            self.done(step, patience)?;
        }
        let rows = self.text_rows(true, patience)?;
        self.done(CLOSED, patience)?;
        Ok(rows)
    }

    /// Waits until the server says that it has done a step, each of which must be there: without
    /// it, what follows is another statement's.
    fn done(&mut self, step: u8, patience: Patience<'_>) -> Result<()> {
        let found = self.wire.next_tag(patience)?;
        match self.wire.message(patience)? {
            _ if found == step => Ok(()),
            Message::ErrorResponse(error) => {
                Err(server_error(error.fields(), &self.statement, self.before))
            }
            _ => Err(self.wire.out_of_order(STEP_MISSING)),
        }
    }

    /// The rows of a statement, in text, up to its end. A statement that is not described returns
    /// rows.
    fn text_rows(
        &mut self,
        is_undescribed: bool,
        patience: Patience<'_>,
    ) -> Result<Vec<Vec<Option<String>>>> {
        let mut rows = Vec::new();
        let mut returns_rows = is_undescribed;
        loop {
            match self.wire.message(patience)? {
                Message::DataRow(row) if returns_rows => {
                    let text = |range: std::ops::Range<usize>| {
                        String::from_utf8_lossy(&row.buffer()[range]).into_owned()
                    };
                    rows.push(
                        row.ranges().map(|range| Ok(range.map(text))).collect().map_err(invalid)?,
                    );
                }
                Message::CommandComplete(body) => {
                    let miscount = miscount(body.tag().unwrap_or_default(), rows.len() as u64)
                        .filter(|_| returns_rows);
                    return miscount
                        .map_or(Ok(rows), |miscount| Err(self.wire.out_of_order(&miscount)));
                }
                Message::EmptyQueryResponse => return Ok(rows),
                Message::ErrorResponse(error) => {
                    return Err(server_error(error.fields(), &self.statement, self.before));
                }
                Message::RowDescription(_) => returns_rows = true,
                _ => return Err(self.wire.out_of_order("not a row")),
            }
        }
    }

    fn execute(
        &mut self,
        prepared: &str,
        columns: &[Column],
        parameters: &[Parameter],
        patience: Patience<'_>,
    ) -> Result<()> {
        let formats: Vec<i16> =
            columns.iter().map(|column| i16::from(column.format() == Format::Binary)).collect();
        let out = self.wire.out();
        if let Err(error) = bind(prepared, parameters, &formats, out) {
            // Half of it may be there.
            out.clear();
            return Err(error);
        }
        frontend::execute("", 0, out).map_err(invalid)?;
        frontend::sync(out);
        self.wire.send(patience)
    }

    /// The next rows; none after the last. The statement is then over. With `copy` they are where
    /// it puts them.
    ///
    /// # Errors
    /// When the statement fails, a value has no place in its column, or the connection breaks. A
    /// statement that still runs then ([`Self::is_running`]) is to be cancelled and drained.
    pub fn next_batch(
        &mut self,
        copy: Option<CopyBytes<'_>>,
        patience: Patience<'_>,
    ) -> Result<Option<BuiltBatch>> {
        let State::Rows(rows) = &mut self.state else { return Ok(None) };
        if !rows.fill(&mut self.wire, &mut self.bytes, patience)? {
            return rows.take(copy).map(Some);
        }
        let ended = match self.wire.message(patience)? {
            Message::CommandComplete(body) => {
                self.tag = body.tag().unwrap_or_default().to_owned();
                if let Some(miscount) = rows.miscount(&self.tag) {
                    return Err(self.wire.out_of_order(&miscount));
                }
                Ok(())
            }
            Message::EmptyQueryResponse => Ok(()),
            Message::ErrorResponse(error) => {
                Err(server_error(error.fields(), &self.statement, self.before))
            }
            Message::CopyInResponse(_) => {
                frontend::copy_fail("not supported here", self.wire.out()).map_err(invalid)?;
                frontend::sync(self.wire.out());
                self.wire.send(patience)?;
                Err(copy_refused())
            }
            Message::CopyOutResponse(_) => {
                self.state = State::Unwanted;
                return Err(copy_refused());
            }
            _ => return Err(self.wire.out_of_order("neither a row nor the end")),
        };
        let State::Rows(mut rows) = std::mem::replace(&mut self.state, State::Idle) else {
            return Ok(None);
        };
        self.wait_ready(ended, patience)?;
        if !rows.columns().is_empty() {
            self.check_settings()?;
        }
        let last = rows.take(copy)?;
        self.profile = rows.profile();
        Ok((last.batch().rows > 0).then_some(last))
    }

    /// Passes over what still comes of the running statement, which somebody has cancelled.
    ///
    /// # Errors
    /// When the connection breaks, or patience ends.
    pub fn drain(&mut self, patience: Patience<'_>) -> Result<()> {
        let mut scratch = vec![0; 64 << 10];
        if let State::Copy { mut left } = self.state {
            while left > 0 {
                let count = left.min(scratch.len());
                self.wire.read_exact(&mut scratch[..count], patience)?;
                left -= count;
            }
        }
        self.state = State::Idle;
        // A type may have changed, and so have made this necessary.
        self.catalog.forget();
        self.forget_statements();
        loop {
            // Rows that come and come leave no pause in which reading would ask.
            patience()?;
            let header = self.wire.peek(patience)?;
            if header.is_aside() {
                self.wire.message_or_aside(patience)?;
                continue;
            }
            self.wire.enter();
            let mut left = header.body_bytes;
            while left > 0 {
                let count = left.min(scratch.len());
                self.wire.read_exact(&mut scratch[..count], patience)?;
                left -= count;
            }
            if header.tag == b'Z' {
                self.status = scratch[0];
                return Ok(());
            }
        }
    }

    /// Reads on until the server is ready for the next statement, and returns what the last one
    /// came to. Where it came to an end, nothing is left of it.
    fn wait_ready<T>(&mut self, outcome: Result<T>, patience: Patience<'_>) -> Result<T> {
        if self.wire.is_broken() {
            return outcome;
        }
        let mut outcome = outcome;
        loop {
            let message = match self.wire.message(patience) {
                Ok(message) => message,
                // The server has said why before it closed the connection.
                Err(_) if outcome.is_err() && self.wire.is_broken() => return outcome,
                Err(error) => return Err(error),
            };
            match message {
                Message::ReadyForQuery(body) => {
                    self.status = body.status();
                    return outcome;
                }
                // A deferred constraint, for example, fails only when the statement commits.
                Message::ErrorResponse(error) if outcome.is_ok() => {
                    outcome = Err(server_error(error.fields(), &self.statement, self.before));
                }
                _ if outcome.is_ok() => {
                    return Err(self.wire.out_of_order("more after the statement's end"));
                }
                _ => {}
            }
        }
    }

    /// Whether the settings by which the statement's result was read have been the same all the
    /// while.
    fn check_settings(&mut self) -> Result<()> {
        self.wire.settings().strayed().map_or(Ok(()), Err)
    }

    /// Whether a statement of the user can be run, and its rows be read.
    fn check_readable(&mut self, statement: &str) -> Result<()> {
        self.check_sendable(statement)?;
        // The server reads what is not ASCII by a setting, too.
        if let Some(error) = self.wire.settings().hindrance()
            && !(statement.is_ascii() && sql::sets(statement))
        {
            return Err(error);
        }
        // What set_config() sets for one statement only is in force for its rows, and never
        // reported.
        if sql::mentions(statement, "client_encoding")
            && sql::mentions(statement, "set_config")
            && sql::is_query(statement)
        {
            let what = "a statement that has rows can't set client_encoding, in which they come";
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("SET client_encoding TO 'UTF8' is a statement of its own"));
        }
        self.wire.settings().begin();
        Ok(())
    }

    /// Whether a statement can be run, before any of it is in a message.
    fn check_sendable(&self, statement: &str) -> Result<()> {
        self.check_idle()?;
        match statement.contains('\0') {
            true => Err(Error::new(
                ErrorKind::Usage,
                "the statement has a NUL character, which PostgreSQL does not take",
            )),
            false => Ok(()),
        }
    }

    fn check_idle(&self) -> Result<()> {
        match (self.wire.is_broken(), &self.state) {
            (true, _) => {
                Err(Error::new(ErrorKind::Usage, "the connection is broken; connect again"))
            }
            (false, State::Idle) => Ok(()),
            _ => {
                let what = "a statement is still running on this connection; read its result to the end or cancel it";
                Err(Error::new(ErrorKind::Usage, what))
            }
        }
    }
}

impl<S: Read + Write> Session<S> {
    /// Says goodbye.
    pub fn close(&mut self) {
        if matches!(self.state, State::Idle) {
            self.wire.say_goodbye();
        }
    }
}

/// Whether some columns are text in which there may be floats.
pub(crate) fn has_text(columns: &[Column]) -> bool {
    columns.iter().any(Column::is_output)
}

/// Whether a value of a type is `money`, or has some within.
fn holds_money(pg_type: &PgType) -> bool {
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

/// A statement or value with a NUL in it, or too long.
pub(crate) fn invalid(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Usage, "the statement can't be sent").cause(cause)
}

pub(crate) fn value_error(error: dray_format::Error) -> Error {
    Error::new(ErrorKind::Limit, error.to_string()).with_sqlstate(LIMIT_EXCEEDED)
}

fn copy_refused() -> Error {
    Error::new(ErrorKind::Usage, "COPY has no rows of its own").hint("run the query itself")
}
