//! Why rows can't be written.

use std::fmt;

use arrow::array::Array;
use arrow::datatypes::Field;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The most characters of a value in an error.
const SHOWN_MAX: usize = 100;

/// Why a value does not fit its column, as the end of a sentence.
pub type Reason = &'static str;

/// Why rows can't be written.
#[derive(Debug)]
pub enum Error {
    /// The types of a column and of its data don't match.
    Type {
        /// The column.
        column: String,
        /// What does not match.
        what: String,
        /// What the user can do.
        hint: String,
    },
    /// A value does not fit its column.
    Value {
        /// The column.
        column: String,
        /// Counted from 1, over all batches.
        row: u64,
        /// The value, shortened.
        value: String,
        /// The column's type as it was declared.
        declared: String,
        /// Why it does not fit.
        reason: Reason,
    },
    /// The data breaks Arrow's rules, or differs from its own schema.
    Data(String),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The error of the value in a row of an array, which follows `before` rows of the data.
    #[cold]
    pub fn of_value(
        field: &Field,
        (array, row, before): (&dyn Array, usize, u64),
        declared: &str,
        reason: Reason,
    ) -> Self {
        let options = FormatOptions::new().with_null("NULL");
        let value = ArrayFormatter::try_new(array, &options)
            .map_or_else(|error| error.to_string(), |shown| shown.value(row).to_string());
        let mut characters = value.chars();
        let mut shown: String = characters.by_ref().take(SHOWN_MAX).collect();
        if characters.next().is_some() {
            shown.push('…');
        }
        Self::Value {
            column: field.name().clone(),
            row: before + row as u64 + 1,
            value: if array.data_type().is_string() { format!("{shown:?}") } else { shown },
            declared: declared.to_owned(),
            reason,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { column, what, .. } => write!(f, "column {column:?}: {what}"),
            Self::Value { column, row, value, declared, reason } => write!(
                f,
                "column {column:?}, row {row}: {value} can't be written as {declared}: {reason}"
            ),
            Self::Data(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// Why data of one type can't become values of another.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) what: String,
    pub(crate) hint: String,
}
