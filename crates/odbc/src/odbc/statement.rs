//! A statement, with what is bound to it.

mod rows;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_buffer::MutableBuffer;
use odbc_sys::{
    CDataType, Desc, HStmt, HandleType, NULL_DATA, Nullability, ParamType, SQLBindParameter,
    SQLCancel, SQLColAttributeW, SQLDescribeColW, SQLExecDirectW, SQLExecute, SQLFreeHandle,
    SQLMoreResults, SQLNumResultCols, SQLPrepareW, SqlDataType, SqlReturn,
};

use super::{Buffer, Connection, Diagnostic, Outcome, check, narrow, stmt};

/// The room for a column's name, in units of UTF-16. Drivers take three times as much, as a number
/// of 16 bits.
const NAME_LENGTH: usize = 1024;
const NAME_LENGTH_MAX: usize = 10_000;
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

// SAFETY: another thread may use a statement's handle for SQLCancel, which is there for that.
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

/// A statement as the driver takes it.
fn units(sql: &str) -> Result<(Vec<u16>, i32), Diagnostic> {
    let text = super::wide(sql);
    match i32::try_from(text.len()) {
        Ok(length) => Ok((text, length - 1)),
        Err(_) => Err(Diagnostic::driver("the statement is too long")),
    }
}
