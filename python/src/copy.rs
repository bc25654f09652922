//! A COPY that a driver receives on its own connection: its data in, a table out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_client::{
    CopyDecoder, Description, Limits, NonFinite, NumericAs, RowOptions, StringLayout, TypeOptions,
};
use pyo3::prelude::*;

use crate::capsule::Table;
use crate::connection::string_layout;
use crate::error::{exception, usage};

/// A statement without what follows its last token, if it can be put between parentheses.
#[pyfunction]
pub fn enclosable(sql: &str, escapes: bool) -> Option<String> {
    dray_client::enclosable(sql, escapes).map(str::to_owned)
}

/// Whether a statement is one that COPY takes.
#[pyfunction]
pub fn is_query(sql: &str) -> bool {
    dray_client::is_query(sql)
}

/// Why the extension's library that gave this answer can't be used, if so.
#[pyfunction]
pub fn other_library(answer: &str) -> Option<String> {
    dray_client::other_library(answer)
}

/// The compiled part of reading from a driver's connection.
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

    /// Whether a statement can be described by running it for no rows.
    #[staticmethod]
    fn is_describable(sql: &str, escapes: bool) -> bool {
        Description::is_possible(sql, escapes)
    }

    /// Takes the columns of a statement, and says what to ask the server about them.
    fn describe(&self, columns: Vec<(String, u32, i32)>, server_version: u32) -> Option<String> {
        let description = Description::new(columns, server_version);
        let question = description.question();
        self.lock().description = Some(description);
        question
    }

    /// Takes the server's answer.
    fn learn(&self, py: Python<'_>, rows: Vec<Vec<Option<String>>>) -> PyResult<()> {
        let mut state = self.lock();
        let description = state.description.as_mut().ok_or_else(|| out_of_order(py))?;
        description.learn(rows).map_err(|error| exception(py, &error.into()))
    }

    /// The COPY of a statement's rows, and whether some of its columns are text in which there may
    /// be floats.
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

    /// The COPY of a statement through the extension.
    fn frames(&self, sql: &str) -> String {
        self.lock().feed = Some(CopyDecoder::of_frames(self.limits, self.strings));
        let Limits { chunk_bytes_max, decoded_bytes_max, row_bytes_max } = self.limits;
        let TypeOptions { numeric, nonfinite, .. } = &self.types;
        format!(
            "COPY ({sql}\n) TO STDOUT (FORMAT dray, chunk_bytes_max {chunk_bytes_max}, decoded_bytes_max \
             {decoded_bytes_max}, row_bytes_max {row_bytes_max}, numeric '{numeric}', nonfinite '{nonfinite}')"
        )
    }

    /// Takes data; a driver calls it as it would a file's.
    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        // A row takes less time than giving Python's lock away and getting it back.
        let fed = self.lock().feed.as_mut().ok_or_else(|| out_of_order(py))?.push(data);
        fed.map_err(|error| exception(py, &error))?;
        Ok(data.len())
    }

    /// The table, after all data, which the server says to be of so many rows.
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
    usage(py, "the copy is used out of order", None)
}
