//! Reads the data of a COPY that a driver receives on its own connection, and builds a table.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_client::{
    CopyDecoder, Description, Limits, NonFinite, NumericAs, RowOptions, StringLayout, TypeOptions,
};
use pyo3::prelude::*;

use crate::capsule::Table;
use crate::connection::string_layout;
use crate::error::{exception, usage};

/// Strips a statement of everything after its last token. None if the statement can't stand between
/// parentheses. `escapes` says whether backslashes escape in ordinary string literals.
#[pyfunction]
pub fn enclosable(sql: &str, escapes: bool) -> Option<String> {
    dray_client::enclosable(sql, escapes).map(str::to_owned)
}

/// Whether COPY accepts the statement as its query.
#[pyfunction]
pub fn is_query(sql: &str) -> bool {
    dray_client::is_query(sql)
}

/// Why this client can't use the extension's library that gave this answer; None if it can.
#[pyfunction]
pub fn other_library(answer: &str) -> Option<String> {
    dray_client::other_library(answer)
}

/// One COPY on a driver's connection. Call `describe` and, if it returns a question, `learn`, then
/// `rows`; or `frames` alone. Then `write` for all data, and `finish`.
#[pyclass(frozen, module = "dray._dray")]
pub struct Copy {
    state: Mutex<State>,
    types: TypeOptions,
    strings: StringLayout,
    limits: Limits,
}

struct State {
    description: Option<Description>,
    feed: Option<CopyDecoder>,
}

#[pymethods]
impl Copy {
    #[new]
    fn new(
        py: Python<'_>,
        numeric: &str,
        nonfinite: &str,
        money_scale: Option<u8>,
        strings: &str,
        row_bytes_max: Option<u64>,
    ) -> PyResult<Self> {
        let wrong = |message: String| usage(py, &message, None);
        let numeric = numeric.parse::<NumericAs>().map_err(wrong)?;
        let nonfinite = nonfinite.parse::<NonFinite>().map_err(wrong)?;
        let mut limits = Limits::default();
        limits.row_bytes_max =
            row_bytes_max.unwrap_or(limits.row_bytes_max).max(limits.chunk_bytes_max);
        Ok(Self {
            state: Mutex::new(State { description: None, feed: None }),
            types: TypeOptions { numeric, nonfinite, money_scale },
            strings: string_layout(strings).map_err(wrong)?,
            limits,
        })
    }

    /// Whether running the statement with `LIMIT 0` is a safe way to learn its columns.
    #[staticmethod]
    fn is_describable(sql: &str, escapes: bool) -> bool {
        Description::is_possible(sql, escapes)
    }

    /// Takes the name, type OID and type modifier of each column. Returns the query that asks the
    /// server's catalog about unknown types, or None if all are known.
    fn describe(&self, columns: Vec<(String, u32, i32)>, server_version: u32) -> Option<String> {
        let description = Description::new(columns, server_version);
        let question = description.question();
        self.lock().description = Some(description);
        question
    }

    /// Takes the server's answer to the query that `describe` returned.
    fn learn(&self, py: Python<'_>, rows: Vec<Vec<Option<String>>>) -> PyResult<()> {
        let mut state = self.lock();
        let description = state.description.as_mut().ok_or_else(|| out_of_order(py))?;
        description.learn(rows).map_err(|error| exception(py, &error.into()))
    }

    /// The COPY statement that returns rows, and whether any column comes as text that may contain
    /// floats.
    fn rows(&self, py: Python<'_>, sql: &str) -> PyResult<(String, bool)> {
        let mut state = self.lock();
        let description = state.description.take().ok_or_else(|| out_of_order(py))?;
        let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        let options = RowOptions {
            types: self.types.clone(),
            row_bytes_max: bytes(self.limits.row_bytes_max),
            ..RowOptions::default()
        };
        let feed = CopyDecoder::of_rows(&description, options, self.strings)
            .map_err(|error| exception(py, &error))?;
        state.feed = Some(feed);
        Ok((description.copy_statement(sql, &self.types), description.has_text(&self.types)))
    }

    /// The COPY statement that goes through the extension and returns frames.
    fn frames(&self, sql: &str) -> String {
        self.lock().feed = Some(CopyDecoder::of_frames(self.limits, self.strings));
        let Limits { chunk_bytes_max, decoded_bytes_max, row_bytes_max } = self.limits;
        let TypeOptions { numeric, nonfinite, .. } = &self.types;
        format!(
            "COPY ({sql}\n) TO STDOUT (FORMAT dray, chunk_bytes_max {chunk_bytes_max}, \
             decoded_bytes_max {decoded_bytes_max}, row_bytes_max {row_bytes_max}, \
             numeric '{numeric}', nonfinite '{nonfinite}')"
        )
    }

    /// Takes the next bytes of the COPY, any number at a time. Drivers call it like a file's
    /// `write`.
    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        // Parsing a row takes less time than releasing Python's lock and acquiring it again.
        let fed = self.lock().feed.as_mut().ok_or_else(|| out_of_order(py))?.push(data);
        fed.map_err(|error| exception(py, &error))?;
        Ok(data.len())
    }

    /// Returns the table after all data has been written. `counted` is the number of rows that the
    /// server reported, if the driver passes it on; a mismatch is an error.
    fn finish(&self, py: Python<'_>, counted: Option<u64>) -> PyResult<Table> {
        let feed = self.lock().feed.take().ok_or_else(|| out_of_order(py))?;
        let (schema, batches) = feed.finish(counted).map_err(|error| exception(py, &error))?;
        Ok(Table { schema, batches })
    }
}

impl Copy {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn out_of_order(py: Python<'_>) -> PyErr {
    usage(py, "the methods of Copy were called in the wrong order", None)
}
