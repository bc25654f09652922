//! A statement, with what is bound to it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_buffer::MutableBuffer;
use odbc_sys::{
    CDataType, Desc, FreeStmtOption, HStmt, HandleType, Lock, NO_TOTAL, NULL_DATA, Nullability,
    Operation, ParamType, SQLBindCol, SQLBindParameter, SQLCancel, SQLColAttributeW,
    SQLDescribeColW, SQLExecDirectW, SQLExecute, SQLFetch, SQLFreeHandle, SQLFreeStmt, SQLGetData,
    SQLGetStmtAttr, SQLMoreResults, SQLNumResultCols, SQLPrepareW, SQLSetPos, SQLSetStmtAttr,
    SqlDataType, SqlReturn, StatementAttribute,
};

use super::{Buffer, Connection, Diagnostic, Outcome, check, narrow, stmt};

/// `SQL_ROW_ERROR`.
const ROW_ERROR: u16 = 5;
/// `SQL_ROW_NOROW`.
const ROW_NONE: u16 = 3;
/// The room for a column's name, in units of UTF-16. Drivers take three times as much, as a number of
/// 16 bits.
const NAME_LENGTH: usize = 1024;
const NAME_LENGTH_MAX: usize = 10_000;
/// The first piece of a long value, and the largest one if its length is not known.
const PIECE_BYTES: usize = 16 << 10;
const PIECE_BYTES_MAX: usize = 1 << 20;

/// A statement of a connection.
pub(crate) struct Statement<'c> {
    handle: HStmt,
    _connection: &'c Connection,
    cancel: Arc<Cancel>,
    // The driver has pointers into all of these: they are dropped after the handle.
    parameters: Vec<Parameter>,
    buffers: Vec<Buffer>,
    rows_fetched: MutableBuffer,
    row_statuses: MutableBuffer,
}

/// A column of a result, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) sql_type: SqlDataType,
    pub(crate) size: usize,
    pub(crate) digits: i16,
    pub(crate) is_unsigned: bool,
}

/// The value of a parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) c_type: CDataType,
    pub(crate) sql_type: SqlDataType,
    pub(crate) size: usize,
    pub(crate) digits: i16,
    /// None: NULL.
    pub(crate) value: Option<MutableBuffer>,
}

/// Cancels the statement that runs, from another thread.
#[derive(Debug, Default)]
pub(crate) struct Cancel(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running(HStmt);

// SAFETY: a statement's handle may be used by another thread for SQLCancel, which is there for that.
unsafe impl Send for Running {}

impl Cancel {
    /// Cancels the statement that runs, if any. Its function then fails.
    pub(crate) fn cancel(&self) {
        if let Some(Running(handle)) = &*self.running() {
            // SAFETY: the handle is valid: before it is freed, it is taken away under this lock.
            let _ = unsafe { SQLCancel(*handle) };
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'c> Statement<'c> {
    /// A statement, which `cancel` cancels from now on.
    pub(crate) fn new(
        connection: &'c Connection,
        cancel: &Arc<Cancel>,
    ) -> Result<Self, Diagnostic> {
        let handle = connection.allocate_statement()?;
        *cancel.running() = Some(Running(handle));
        Ok(Self {
            handle,
            _connection: connection,
            cancel: cancel.clone(),
            parameters: Vec::new(),
            buffers: Vec::new(),
            rows_fetched: MutableBuffer::from_len_zeroed(size_of::<usize>()),
            row_statuses: MutableBuffer::default(),
        })
    }

    fn check(&self, returned: SqlReturn, function: &str) -> Result<Outcome, Diagnostic> {
        check(returned, stmt(self.handle), function)
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<(), Diagnostic> {
        let (text, length) = units(sql)?;
        // SAFETY: the handle is valid, and the text as long as the driver is told.
        let returned = unsafe { SQLPrepareW(self.handle, text.as_ptr(), length) };
        self.check(returned, "SQLPrepare").map(drop)
    }

    /// Runs a statement.
    pub(crate) fn execute_direct(&mut self, sql: &str) -> Result<(), Diagnostic> {
        let (text, length) = units(sql)?;
        // SAFETY: the handle is valid, the text as long as the driver is told, and what is bound to
        // the statement lives as long as it.
        let returned = unsafe { SQLExecDirectW(self.handle, text.as_ptr(), length) };
        self.check(returned, "SQLExecDirect").map(drop)
    }

    /// Runs the statement that was prepared.
    pub(crate) fn execute(&mut self) -> Result<(), Diagnostic> {
        // SAFETY: the handle is valid, and what is bound to the statement lives as long as it.
        let returned = unsafe { SQLExecute(self.handle) };
        self.check(returned, "SQLExecute").map(drop)
    }

    /// Gives values to the parameters, in their order.
    pub(crate) fn bind_parameters(&mut self, parameters: Vec<Parameter>) -> Result<(), Diagnostic> {
        self.parameters = parameters;
        let mut lengths = MutableBuffer::from_len_zeroed(
            size_of::<isize>().saturating_mul(self.parameters.len()),
        );
        for (length, parameter) in lengths.typed_data_mut::<i64>().iter_mut().zip(&self.parameters)
        {
            *length = match &parameter.value {
                Some(value) => i64::try_from(value.len()).unwrap_or(i64::MAX),
                None => NULL_DATA as i64,
            };
        }
        let mut pointer = lengths.as_mut_ptr().cast::<isize>();
        for (number, parameter) in (1_u16..).zip(&mut self.parameters) {
            let (value, bytes) = match &mut parameter.value {
                Some(value) => (value.as_mut_ptr().cast(), value.len()),
                None => (std::ptr::null_mut(), 0),
            };
            // SAFETY: the handle is valid. The value and its length live as long as the statement,
            // and do not move: see the end of this function.
            let returned = unsafe {
                SQLBindParameter(
                    self.handle,
                    number,
                    ParamType::Input,
                    parameter.c_type,
                    parameter.sql_type,
                    parameter.size,
                    parameter.digits,
                    value,
                    isize::try_from(bytes).unwrap_or(isize::MAX),
                    pointer,
                )
            };
            check(returned, stmt(self.handle), "SQLBindParameter")?;
            pointer = pointer.wrapping_add(1);
        }
        self.parameters.push(Parameter {
            c_type: CDataType::Binary,
            sql_type: SqlDataType::UNKNOWN_TYPE,
            size: 0,
            digits: 0,
            value: Some(lengths),
        });
        Ok(())
    }

    /// The columns of the result; none if there is no result.
    pub(crate) fn describe(&mut self) -> Result<Vec<Described>, Diagnostic> {
        let mut count = 0;
        // SAFETY: the handle is valid, and the number is written to a variable.
        let returned = unsafe { SQLNumResultCols(self.handle, &mut count) };
        self.check(returned, "SQLNumResultCols")?;
        let count = u16::try_from(count)
            .map_err(|_| Diagnostic::driver(format!("the driver announced {count} columns")))?;
        let described = |number| match self.describe_column(number, NAME_LENGTH)? {
            (described, length) if length < NAME_LENGTH => Ok(described),
            (_, length) => {
                let length = length.saturating_add(1).min(NAME_LENGTH_MAX);
                Ok(self.describe_column(number, length)?.0)
            }
        };
        (1..=count).map(described).collect()
    }

    /// A column, and the whole length of its name.
    fn describe_column(
        &self,
        number: u16,
        name_length: usize,
    ) -> Result<(Described, usize), Diagnostic> {
        let mut name = vec![0_u16; 2 * name_length];
        let (mut length, mut sql_type) = (0, SqlDataType::UNKNOWN_TYPE);
        let (mut size, mut digits, mut nullable) = (0, 0, Nullability::UNKNOWN);
        // SAFETY: the handle is valid, the buffer longer than the driver is told, and the rest is
        // written to variables of the types that ODBC says.
        let returned = unsafe {
            SQLDescribeColW(
                self.handle,
                number,
                name.as_mut_ptr(),
                i16::try_from(name_length).unwrap_or(i16::MAX),
                &mut length,
                &mut sql_type,
                &mut size,
                &mut digits,
                &mut nullable,
            )
        };
        self.check(returned, "SQLDescribeCol")?;
        let is_unsigned = self.is_unsigned(number);
        let described =
            Described { name: narrow(&name, length), sql_type, size, digits, is_unsigned };
        Ok((described, usize::try_from(length).unwrap_or(0)))
    }

    fn is_unsigned(&self, number: u16) -> bool {
        let mut value = 0;
        // SAFETY: the handle is valid. This attribute is a number, and no text is asked for.
        let returned = unsafe {
            SQLColAttributeW(
                self.handle,
                number,
                Desc::Unsigned,
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
                &mut value,
            )
        };
        returned == SqlReturn::SUCCESS && value == 1
    }

    /// Asks for several rows at a time. Returns how many the driver will fetch.
    pub(crate) fn set_rows(&mut self, rows: usize) -> Result<usize, Diagnostic> {
        // SAFETY: the handle is valid, and the attribute a number that comes in the pointer.
        let returned = unsafe {
            SQLSetStmtAttr(self.handle, StatementAttribute::RowArraySize, rows as *mut _, 0)
        };
        // A driver may change it, or not know it.
        let mut set: usize = 1;
        if matches!(returned, SqlReturn::SUCCESS | SqlReturn::SUCCESS_WITH_INFO) {
            let value = (&raw mut set).cast();
            // SAFETY: the handle is valid, and the number is written to a variable of its size.
            let returned = unsafe {
                SQLGetStmtAttr(
                    self.handle,
                    StatementAttribute::RowArraySize,
                    value,
                    0,
                    std::ptr::null_mut(),
                )
            };
            self.check(returned, "SQLGetStmtAttr")?;
        }
        if !(1..=rows).contains(&set) {
            let what = format!("the driver fetches {set} rows when asked for {rows}");
            return Err(Diagnostic::driver(what));
        }
        self.row_statuses = MutableBuffer::from_len_zeroed(set.saturating_mul(size_of::<u16>()));
        let fetched = self.rows_fetched.as_mut_ptr().cast();
        let statuses = self.row_statuses.as_mut_ptr().cast();
        for (attribute, pointer) in [
            (StatementAttribute::RowsFetchedPtr, fetched),
            (StatementAttribute::RowStatusPtr, statuses),
        ] {
            // SAFETY: the handle is valid. What is pointed to has room for one count and for as many
            // statuses as rows, lives as long as the statement, and does not move.
            let returned = unsafe { SQLSetStmtAttr(self.handle, attribute, pointer, 0) };
            self.check(returned, "SQLSetStmtAttr")?;
        }
        Ok(set)
    }

    /// Gives the columns their buffers, of which the first `bound` are filled by a fetch, and the
    /// others by [`Self::fill`]. Each has room for as many rows as [`Self::set_rows`] returned.
    pub(crate) fn bind(
        &mut self,
        buffers: Vec<Buffer>,
        is_bound: impl Fn(usize) -> bool,
    ) -> Result<(), Diagnostic> {
        let rows = self.row_statuses.len() / size_of::<u16>();
        // SAFETY: the handle is valid.
        let returned = unsafe { SQLFreeStmt(self.handle, FreeStmtOption::Unbind) };
        self.check(returned, "SQLFreeStmt")?;
        self.buffers = buffers;
        for (index, (number, buffer)) in (1_u16..).zip(&mut self.buffers).enumerate() {
            if !is_bound(index) {
                continue;
            }
            if buffer.rows() < rows {
                return Err(Diagnostic::driver("a buffer is too small"));
            }
            let (c_type, width) = (buffer.c_type, length_of(buffer.width())?);
            let (values, lengths) = buffer.pointers();
            // SAFETY: the handle is valid. The buffer has room for as many values of this width, and
            // as many lengths, as the driver fetches rows. It lives as long as the statement, and
            // does not move or grow.
            let returned =
                unsafe { SQLBindCol(self.handle, number, c_type, values, width, lengths) };
            check(returned, stmt(self.handle), "SQLBindCol")?;
        }
        Ok(())
    }

    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Fetches rows into the buffers. Returns how many; None after the last one.
    pub(crate) fn fetch(&mut self) -> Result<Option<usize>, Diagnostic> {
        self.buffers.iter_mut().for_each(Buffer::forget);
        self.row_statuses.typed_data_mut::<u16>().fill(0);
        self.rows_fetched.typed_data_mut::<u64>().fill(0);
        // SAFETY: the handle is valid, and all that is bound to it lives and has not moved.
        let returned = unsafe { SQLFetch(self.handle) };
        let outcome = self.check(returned, "SQLFetch")?;
        if outcome == Outcome::NoData {
            return Ok(None);
        }
        if let Some(cut) = Some(Outcome::Info)
            .filter(|info| *info == outcome)
            .and_then(|_| Diagnostic::of_cut(stmt(self.handle)))
        {
            return Err(cut);
        }
        let statuses = self.row_statuses.typed_data::<u16>();
        let rows = self.rows_fetched.typed_data::<u64>().first().copied().unwrap_or(0);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let Some(statuses) = statuses.get(..rows).filter(|_| rows > 0) else {
            let what = format!("the driver fetched {rows} rows of {}", statuses.len());
            return Err(Diagnostic::driver(what));
        };
        if statuses.contains(&ROW_ERROR) || statuses.contains(&ROW_NONE) {
            return Err(Diagnostic::first(stmt(self.handle), "SQLFetch"));
        }
        Ok(Some(rows))
    }

    /// Fills the buffer of a column that is not bound by its value in the row that was fetched.
    pub(crate) fn fill(&mut self, index: usize) -> Result<(), Diagnostic> {
        let handle = self.handle;
        let Some(buffer) = self.buffers.get_mut(index) else { return Ok(()) };
        let (c_type, width) = (buffer.c_type, length_of(buffer.width())?);
        let (value, length) = buffer.pointers();
        // SAFETY: the handle is valid, and the buffer has room for a value of this width and a
        // length.
        let returned =
            unsafe { SQLGetData(handle, number_of(index), c_type, value, width, length) };
        check(returned, stmt(handle), "SQLGetData").map(drop)
    }

    /// Makes a row of those that were fetched, from 0, the one whose values are read.
    pub(crate) fn position(&mut self, row: usize) -> Result<(), Diagnostic> {
        let row = u64::try_from(row).unwrap_or(u64::MAX).saturating_add(1);
        // SAFETY: the handle is valid.
        let returned = unsafe { SQLSetPos(self.handle, row, Operation::POSITION, Lock::NO_CHANGE) };
        self.check(returned, "SQLSetPos").map(drop)
    }

    /// The whole value of a column in the present row, piece by piece; None if it is NULL. Its
    /// length instead, as far as it is known, if that is more than `bytes_max`.
    pub(crate) fn long_value(
        &mut self,
        index: usize,
        c_type: CDataType,
        bytes_max: usize,
    ) -> Result<Option<Result<Vec<u8>, usize>>, Diagnostic> {
        let terminator = Buffer::terminator_bytes(c_type);
        let mut value = Vec::new();
        let mut piece = MutableBuffer::from_len_zeroed(PIECE_BYTES);
        loop {
            // Of a text that goes on, the last zero is its end: nothing else is written behind it.
            piece.as_slice_mut().fill(0xFF);
            let mut length = isize::MIN;
            let (pointer, bytes) = (piece.as_mut_ptr().cast(), length_of(piece.len())?);
            // SAFETY: the handle is valid, and the piece as long as the driver is told.
            let returned = unsafe {
                SQLGetData(self.handle, number_of(index), c_type, pointer, bytes, &mut length)
            };
            let outcome = self.check(returned, "SQLGetData")?;
            let room = piece.len().saturating_sub(terminator);
            let remaining = usize::try_from(length).ok();
            match (outcome, remaining) {
                (Outcome::NoData, _) if value.is_empty() => {
                    return Err(Diagnostic::driver("the driver gave no data of a value"));
                }
                (Outcome::NoData, _) => return Ok(Some(Ok(value))),
                (_, None) if length == NULL_DATA && value.is_empty() => return Ok(None),
                (Outcome::Info, None) if length == NO_TOTAL => {}
                (_, None) => return Err(wrong_length(length)),
                (_, Some(last)) if last <= room => {
                    value.extend_from_slice(piece.get(..last).unwrap_or_default());
                    let is_too_long = value.len() > bytes_max;
                    return Ok(Some(if is_too_long { Err(value.len()) } else { Ok(value) }));
                }
                _ => {}
            }
            let whole = value.len().saturating_add(remaining.unwrap_or(room));
            if whole > bytes_max {
                return Ok(Some(Err(whole)));
            }
            let written = written(&piece, terminator);
            if written == 0 {
                return Err(Diagnostic::driver("the driver gave an empty piece of a value"));
            }
            value.extend_from_slice(piece.get(..written).unwrap_or_default());
            let next = match remaining {
                Some(remaining) => remaining.saturating_sub(written).saturating_add(terminator),
                None => piece.len().saturating_mul(4).min(PIECE_BYTES_MAX),
            };
            piece = MutableBuffer::from_len_zeroed(next.max(PIECE_BYTES));
        }
    }

    /// Whether the statement has another result after this one.
    pub(crate) fn has_more_results(&mut self) -> Result<bool, Diagnostic> {
        // SAFETY: the handle is valid.
        let returned = unsafe { SQLMoreResults(self.handle) };
        Ok(self.check(returned, "SQLMoreResults")? != Outcome::NoData)
    }
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        *self.cancel.running() = None;
        // SAFETY: the handle is valid, and nobody uses it afterwards.
        let _ = unsafe { SQLFreeHandle(HandleType::Stmt, self.handle.as_handle()) };
    }
}

/// A length that no value can have.
pub(super) fn wrong_length(length: isize) -> Diagnostic {
    Diagnostic::driver(format!("the driver gave a value the length {length}"))
}

/// How much of a piece is written, if the value goes on behind it.
fn written(piece: &MutableBuffer, terminator: usize) -> usize {
    let end = match terminator {
        2 => piece.typed_data::<u16>().iter().rposition(|unit| *unit == 0).map(|at| at * 2),
        1 => piece.iter().rposition(|byte| *byte == 0),
        _ => None,
    };
    end.unwrap_or(piece.len())
}

/// A statement as the driver takes it.
fn units(sql: &str) -> Result<(Vec<u16>, i32), Diagnostic> {
    let text = super::wide(sql);
    match i32::try_from(text.len()) {
        Ok(length) => Ok((text, length - 1)),
        Err(_) => Err(Diagnostic::driver("the statement is too long")),
    }
}

fn length_of(bytes: usize) -> Result<isize, Diagnostic> {
    isize::try_from(bytes).map_err(|_| Diagnostic::driver("a buffer is too large"))
}

/// Columns count from 1, and are at most 32,767.
fn number_of(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX).saturating_add(1)
}
