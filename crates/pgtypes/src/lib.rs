//! PostgreSQL's types as columns: which column each type becomes, and how its values get there.
//! `spec/types.md` section 3 is the law.
//!
//! ```text
//!   PgType ──Column::new──▶ Field, and how to ask for it: binary or text
//!   value  ──Column::push──▶ ColumnBuilder
//! ```
//!
//! Values come as PostgreSQL's send functions make them (binary) or as its output functions do
//! (text); a source asks for each column in the [`Format`] that its [`Column`] names. The client
//! parses what a server sent, the server's extension what it made itself: both get the same
//! columns. No I/O happens here, and nothing that is read is trusted.

#![forbid(unsafe_code)]

mod array_text;
mod binary;
mod builtin;
mod column;
mod error;
pub mod numeric;

pub use builtin::builtin;
pub use column::{Column, Format, NonFinite, NumericAs, Options, TYPE_KEY};
pub use error::{Error, Result, not_utf8};

/// A type of a server's catalog, with what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgType {
    /// Its number in `pg_type`.
    pub oid: u32,
    /// What its column declares (`atttypmod`), -1 for nothing.
    pub typmod: i32,
    /// Its name, with a schema if it is not in `pg_catalog`.
    pub name: String,
    /// The extension that it belongs to, or nothing.
    pub extension: String,
    /// What it is made of.
    pub kind: Kind,
}

/// What a type is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Known by its number, or not at all.
    Base,
    /// One of some labels.
    Enum,
    /// Another type, restricted.
    Domain(Box<PgType>),
    /// Arrays of another type.
    Array {
        /// What is in it.
        item: Box<PgType>,
        /// What stands between two items in text.
        delimiter: u8,
    },
    /// Named attributes.
    Composite(Vec<(String, PgType)>),
    /// Ranges of another type.
    Range(Box<PgType>),
    /// Sets of ranges of another type.
    Multirange(Box<PgType>),
}
