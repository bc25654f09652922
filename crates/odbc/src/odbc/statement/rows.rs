//! The rows of a statement's result, in blocks or one by one.

use arrow_buffer::MutableBuffer;
use odbc_sys::{
    CDataType, FreeStmtOption, Lock, NO_TOTAL, NULL_DATA, Operation, SQLBindCol, SQLFetch,
    SQLFreeStmt, SQLGetData, SQLGetStmtAttr, SQLSetPos, SQLSetStmtAttr, SqlReturn,
    StatementAttribute,
};

use super::Statement;
use crate::odbc::{Buffer, Diagnostic, Outcome, check, stmt};

/// `SQL_ROW_ERROR`.
const ROW_ERROR: u16 = 5;
/// `SQL_ROW_NOROW`.
const ROW_NONE: u16 = 3;
/// The first piece of a long value, and the largest one if its length is not known.
const PIECE_BYTES: usize = 16 << 10;
const PIECE_BYTES_MAX: usize = 1 << 20;

impl Statement<'_> {
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
            // SAFETY: the handle is valid. What is pointed to has room for one count and for as
            // many statuses as rows, lives as long as the statement, and does not move.
            let returned = unsafe { SQLSetStmtAttr(self.handle, attribute, pointer, 0) };
            self.check(returned, "SQLSetStmtAttr")?;
        }
        Ok(set)
    }

    /// Gives the columns their buffers, of which those that `is_bound` names are filled by a fetch,
    /// and the others by [`Self::fill`] or [`Self::long_value`]. Each has room for as many rows as
    /// [`Self::set_rows`] returned.
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
            // SAFETY: the handle is valid. The buffer has room for as many values of this width,
            // and as many lengths, as the driver fetches rows. It lives as long as the statement,
            // and does not move or grow.
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
}

/// A length that no value can have.
fn wrong_length(length: isize) -> Diagnostic {
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

fn length_of(bytes: usize) -> Result<isize, Diagnostic> {
    isize::try_from(bytes).map_err(|_| Diagnostic::driver("a buffer is too large"))
}

/// Columns count from 1, and are at most 32,767.
fn number_of(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX).saturating_add(1)
}
