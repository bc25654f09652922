//! PostgreSQL's types as columns: the column of each type, and how its values get there.
//! `spec/types.md` section 3 specifies both.
//!
//! ```text
//!   PgType ──Column::new──▶ Field, and the format to ask for: binary or text
//!   value  ──Column::push──▶ ColumnBuilder
//! ```
//!
//! Values are what PostgreSQL's send functions (binary) or output functions (text) write. A source
//! asks for each column in the [`Format`] of its [`Column`]. The client parses what a server sent,
//! the server's extension what it made itself; both get the same columns. There is no I/O here, and
//! no input is trusted.

#![forbid(unsafe_code)]

mod array_text;
mod binary;
mod builtin;
mod column;
mod error;
pub mod numeric;
pub mod times;

pub use builtin::builtin;
pub use column::{Column, Format, NonFinite, NumericAs, Options, TYPE_KEY};
pub use error::{Error, Result, not_utf8};

/// A type of a server's catalog, with the types in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgType {
    /// Its oid.
    pub oid: u32,
    /// The type modifier of its column (`atttypmod`); -1 for none.
    pub typmod: i32,
    /// Its name; qualified unless it is in `pg_catalog`.
    pub name: String,
    /// The extension that it belongs to; empty for none.
    pub extension: String,
    /// Its structure.
    pub kind: Kind,
}

/// The structure of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A base type: known by its oid, or not at all.
    Base,
    /// One of several labels.
    Enum,
    /// Another type, restricted.
    Domain(Box<PgType>),
    /// Arrays of another type.
    Array {
        /// The type of its items.
        item: Box<PgType>,
        /// The delimiter between two items in text.
        delimiter: u8,
    },
    /// Named attributes.
    Composite(Vec<(String, PgType)>),
    /// Ranges of another type.
    Range(Box<PgType>),
    /// Sets of ranges of another type.
    Multirange(Box<PgType>),
}
