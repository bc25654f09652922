//! Assembling rows into columns. Datums of common types go to appenders. All other values come as
//! their send or output function makes them, and go to the builders of dray-pgtypes.

use std::sync::Arc;

use dray_chooser::Chooser;
use dray_format::{Batch, BatchBuilder, Schema, Type};
use dray_pgtypes::{Column, Error, Format, NonFinite, PgType};

use crate::appender::{Appended, Appender};
use crate::datum::{DatumKind, Row};
use crate::encode_policy::EncodePolicy;
use crate::failure::Failure;
use crate::interrupts;
use crate::settings::Settings;

/// The first capacity, in rows. It doubles from there.
const CAPACITY_MIN: usize = 256;
/// Appenders ask for a little more memory than they fill.
const SLACK_BYTES: usize = 64 << 10;

/// A column of the result, as the server describes it.
pub(crate) struct ColumnDescription {
    pub(crate) name: String,
    pub(crate) pg_type: PgType,
    pub(crate) not_null: bool,
}

/// What a row needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The row is complete.
    Done,
    /// The row is complete, and chunks must be taken before the next one.
    Full,
    /// The value of this column must be detoasted.
    NeedsDetoasting(usize),
    /// The value of this column must come as its type's send or output function makes it.
    /// [`RowAssembler::format`] says which of the two.
    NeedsSerialized(usize),
}

/// Where the values of a column go.
enum Target {
    /// Datums, read here.
    Datums(Appender),
    /// Values of send and output functions, to the builder with this index.
    Serialized(usize),
}

/// Rows that wait for their chunk to fill, in columns.
pub(crate) struct RowAssembler {
    schema: Arc<Schema>,
    columns: Vec<Column>,
    targets: Vec<Target>,
    /// The builders of all [`Target::Serialized`] columns.
    serialized: BatchBuilder,
    /// Complete rows, and how many rows the appenders have space for.
    rows: usize,
    capacity: usize,
    /// The first capacity of the next chunk, and the largest.
    next_capacity: usize,
    capacity_max: usize,
    /// Rows that were taken out.
    taken_rows: u64,
    /// The most rows of a chunk at present.
    chunk_rows: usize,
    /// The most plain bytes of a chunk, and the most bytes of a row.
    plain_bytes_max: u64,
    row_bytes_max: u64,
    /// The fixed part of a row, with offsets and validity, in bits.
    row_bits: u64,
    /// The variable bytes of all complete rows, of the row under construction, and of the largest
    /// complete row.
    variable_bytes: u64,
    row_bytes: u64,
    largest_row_bytes: u64,
    /// The column at which the row under construction goes on.
    next_column: usize,
}

/// The columns of a result.
pub(crate) struct ResultColumns {
    pub(crate) schema: Arc<Schema>,
    columns: Vec<Column>,
    /// How the datums of each column are read.
    kinds: Vec<DatumKind>,
}

impl ResultColumns {
    pub(crate) fn new(described: &[ColumnDescription], settings: &Settings) -> Self {
        let mut columns = Vec::with_capacity(described.len());
        let mut kinds = Vec::with_capacity(described.len());
        let mut fields = Vec::with_capacity(described.len());
        for ColumnDescription { name, pg_type, not_null } in described {
            let column = Column::new(name, pg_type, &settings.options);
            let mut field = column.field().clone();
            // A value that Arrow does not have may become NULL in any column.
            field.nullable = !not_null || settings.options.nonfinite == NonFinite::Null;
            kinds.push(DatumKind::of(pg_type, &field.data_type, settings.is_utf8));
            columns.push(column);
            fields.push(field);
        }
        Self { schema: Arc::new(Schema { fields }), columns, kinds }
    }
}

impl RowAssembler {
    pub(crate) fn new(
        result: ResultColumns,
        settings: &Settings,
        policy: &EncodePolicy,
    ) -> Result<Self, Failure> {
        let ResultColumns { schema, columns, kinds } = result;
        let row_bytes_max = usize::try_from(settings.limits.row_bytes_max).unwrap_or(usize::MAX);
        let waiting_bytes_max = usize::try_from(policy.plain_bytes_max)
            .unwrap_or(usize::MAX)
            .saturating_add(SLACK_BYTES);
        let mut serialized = Vec::new();
        let mut targets = Vec::with_capacity(kinds.len());
        for (kind, field) in kinds.into_iter().zip(&schema.fields) {
            targets.push(match kind {
                DatumKind::Serialized => {
                    serialized.push(field.clone());
                    Target::Serialized(serialized.len() - 1)
                }
                kind => Target::Datums(Appender::new(kind, row_bytes_max, waiting_bytes_max)),
            });
        }
        let serialized = Schema { fields: serialized };
        let mut serialized = BatchBuilder::with_interrupts(serialized, Some(interrupts::pending))?;
        serialized.set_bytes_max(row_bytes_max, waiting_bytes_max);
        let row_bits: u64 = schema.fields.iter().map(|field| fixed_bits(&field.data_type)).sum();
        // The fixed parts of this many rows fill a chunk.
        let rows_that_fill =
            usize::try_from(policy.plain_bytes_max * 8 / row_bits.max(1) + 2).unwrap_or(usize::MAX);
        let chunk_rows = policy.chooser.as_ref().map_or(usize::MAX, Chooser::chunk_rows);
        Ok(Self {
            schema,
            columns,
            targets,
            serialized,
            rows: 0,
            capacity: 0,
            next_capacity: CAPACITY_MIN,
            capacity_max: settings.chunk_rows.min(rows_that_fill),
            taken_rows: 0,
            chunk_rows: chunk_rows.min(settings.chunk_rows),
            plain_bytes_max: policy.plain_bytes_max,
            row_bytes_max: settings.limits.row_bytes_max,
            row_bits,
            variable_bytes: 0,
            row_bytes: 0,
            largest_row_bytes: 0,
            next_column: 0,
        })
    }

    /// Which function makes the values of a column that must be serialized.
    pub(crate) fn format(&self, column: usize) -> Format {
        self.columns[column].format()
    }

    /// Whether there are no complete rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The most rows of a chunk at present.
    pub(crate) fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    /// Changes the most rows of a chunk.
    pub(crate) fn set_chunk_rows(&mut self, rows: usize) {
        self.chunk_rows = rows;
    }

    /// Appends a row, or goes on with the row under construction after the value that it needed.
    ///
    /// # Safety
    /// - `row` has a value or NULL for each column of the result, in order. A value has the type
    ///   that was described for its column.
    /// - The memory that the values point to is valid, and does not change, until this returns.
    /// - After [`Step::NeedsDetoasting`], `row` is the same row with that value detoasted. After
    ///   [`Step::NeedsSerialized`], it is the same row, and [`Self::push_serialized`] has appended
    ///   that value.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, mut row: impl Row) -> Result<Step, Failure> {
        if self.rows == self.capacity {
            self.reserve()?;
        }
        let at = self.rows;
        let row_bytes_max = self.row_bytes_max;
        let mut row_bytes = self.row_bytes;
        let mut stopped = None;
        for (column, target) in self.targets.iter_mut().enumerate().skip(self.next_column) {
            let is_null = row.is_null(column);
            match target {
                // SAFETY: `reserve` has made space for row `at`, and all rows before it are
                // complete, so each of them has a value in this column.
                Target::Datums(appender) if is_null => unsafe { appender.push_null(at)? },
                // SAFETY: the same. `row` is at this column, whose value is not NULL and has the
                // described type, from which the appender's kind was made.
                Target::Datums(appender) => match unsafe { appender.push(at, &mut row) }? {
                    Appended::Value { variable_bytes } => {
                        row_bytes += variable_bytes as u64;
                        if row_bytes > row_bytes_max {
                            return Err(Failure::row_too_large(row_bytes_max));
                        }
                    }
                    Appended::NeedsDetoasting => stopped = Some(Step::NeedsDetoasting(column)),
                    Appended::NeedsSerialized => stopped = Some(Step::NeedsSerialized(column)),
                },
                Target::Serialized(builder) if is_null => {
                    self.serialized.columns()[*builder].push_null()?;
                }
                Target::Serialized(_) => stopped = Some(Step::NeedsSerialized(column)),
            }
            if stopped.is_some() {
                self.next_column = column;
                break;
            }
        }
        self.row_bytes = row_bytes;
        match stopped {
            Some(step) => Ok(step),
            None => self.close_row(),
        }
    }

    #[cold]
    fn reserve(&mut self) -> Result<(), Failure> {
        let rows = self.next_capacity.max(self.capacity * 2).min(self.capacity_max);
        let rows = rows.max(self.rows + 1);
        for target in &mut self.targets {
            if let Target::Datums(appender) = target {
                // SAFETY: a row is only complete once each column has its value.
                unsafe { appender.reserve(self.rows, rows)? };
            }
        }
        self.capacity = rows;
        Ok(())
    }

    /// Appends the value of the column at which the row has stopped, as its type's function made
    /// it.
    pub(crate) fn push_serialized(&mut self, value: &[u8]) -> Result<(), Failure> {
        let column = self.next_column;
        match self.targets.get_mut(column) {
            Some(Target::Serialized(builder)) => {
                let builder = &mut self.serialized.columns()[*builder];
                let before = builder.bytes();
                let pushed = self.columns[column].push(builder, Some(value));
                let bytes = builder.bytes() - before;
                pushed.map_err(|error| self.describe(column, error))?;
                self.row_bytes += bytes as u64;
                if self.row_bytes > self.row_bytes_max {
                    return Err(Failure::row_too_large(self.row_bytes_max));
                }
            }
            Some(Target::Datums(appender)) => {
                // A value that the column's type does not have. It is an error, or becomes NULL.
                let field = self.schema.fields[column].clone();
                let mut alone = BatchBuilder::new(Schema { fields: vec![field] })?;
                let pushed = self.columns[column].push(&mut alone.columns()[0], Some(value));
                debug_assert!(self.rows < self.capacity);
                // SAFETY: the row has stopped at this column, so there is space for it, and all
                // rows before it are complete.
                unsafe { appender.push_null(self.rows)? };
                pushed.map_err(|error| self.describe(column, error))?;
                alone.close_row()?;
                if alone.finish()?.batch().columns[0].missing() != 1 {
                    let name = &self.schema.fields[column].name;
                    return Err(Failure::Internal(format!(
                        "column {name:?}: an ordinary value was not read"
                    )));
                }
            }
            None => {
                return Err(Failure::Internal("a value was sent without a column".to_owned()));
            }
        }
        self.next_column += 1;
        Ok(())
    }

    /// The failure for a value of the row under construction.
    fn describe(&self, column: usize, error: Error) -> Failure {
        if interrupts::pending() {
            return Failure::Interrupted;
        }
        let name = &self.schema.fields[column].name;
        let row = self.taken_rows + self.rows as u64 + 1;
        let text = format!("column {name:?}, row {row}: {error}");
        match error {
            Error::Unrepresentable(_) => Failure::Value(text),
            Error::Malformed(_) => Failure::Internal(text),
            Error::Format(error) => error.into(),
        }
    }

    #[inline]
    fn close_row(&mut self) -> Result<Step, Failure> {
        if !self.serialized.columns().is_empty() {
            self.serialized.close_row()?;
        }
        self.next_column = 0;
        self.rows += 1;
        let row_bytes = std::mem::take(&mut self.row_bytes);
        self.variable_bytes += row_bytes;
        self.largest_row_bytes = self.largest_row_bytes.max(row_bytes);
        Ok(if self.is_full() { Step::Full } else { Step::Done })
    }

    /// Whether the complete rows fill a chunk.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let rows = self.rows as u64;
        let bytes = self.variable_bytes + self.largest_row_bytes + (rows + 1) * self.row_bits / 8;
        bytes > self.plain_bytes_max || self.rows >= self.chunk_rows
    }

    /// Takes the complete rows out. No row may be under construction.
    pub(crate) fn take_rows(&mut self) -> Result<Batch, Failure> {
        debug_assert!(self.next_column == 0 && self.rows <= self.capacity);
        let rows = std::mem::take(&mut self.rows);
        self.taken_rows += rows as u64;
        self.capacity = 0;
        // The next chunk will have about as many.
        self.next_capacity = rows + rows / 16 + 1;
        self.variable_bytes = 0;
        self.largest_row_bytes = 0;
        let serialized = match self.serialized.columns().is_empty() {
            true => Vec::new(),
            false => self.serialized.finish()?.into_batch().columns,
        };
        let mut serialized = serialized.into_iter();
        let mut columns = Vec::with_capacity(self.targets.len());
        for target in &mut self.targets {
            columns.push(match target {
                // SAFETY: each complete row has a value in each column.
                Target::Datums(appender) => unsafe { appender.finish(rows)? },
                Target::Serialized(_) => {
                    let missing = || Failure::Internal("a column has no values".to_owned());
                    serialized.next().ok_or_else(missing)?
                }
            });
        }
        debug_assert!(columns.iter().all(|column| column.rows == rows));
        Ok(Batch { rows, columns })
    }
}

/// The fixed part of a value, with its offset and validity, in bits.
fn fixed_bits(data_type: &Type) -> u64 {
    1 + match data_type {
        Type::Null => 0,
        Type::Boolean => 1,
        Type::Struct(fields) => fields.iter().map(|field| fixed_bits(&field.data_type)).sum(),
        Type::Utf8 | Type::Binary | Type::List(_) | Type::Map { .. } => 32,
        other => other.width().unwrap_or(0) as u64 * 8,
    }
}
