//! MySQL's and MariaDB's types as columns: the column of each type, and how its values get there.
//! `spec/types.md` section 5 specifies both.
//!
//! ```text
//!   ColumnDefinition ──Column::new──────▶ Field, and whether the text protocol loses digits
//!   row of COM_QUERY ──push_text_row────▶ BatchBuilder
//!   row of a prepared statement
//!                    ──push_binary_row──▶ BatchBuilder
//! ```
//!
//! Rows are what a server sends after the definitions of a result's columns, without the headers of
//! its packets. There is no I/O here, and no input is trusted.
//!
//! ```
//! use dray_format::{BatchBuilder, Schema};
//! use dray_mysqltypes::{Column, ColumnDefinition, Options, push_text_row};
//!
//! // SELECT 1 AS n
//! let payload = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x02\0\0\0\x03\x81\0\0\0\0";
//! let definition = ColumnDefinition::parse(payload, false)?;
//! let columns = [Column::new(&definition, &Options::default())?];
//! let fields = columns.iter().map(|column| column.field().clone()).collect();
//! let mut builder = BatchBuilder::new(Schema { fields })?;
//! push_text_row(&columns, &mut builder, b"\x011")?;
//! assert_eq!(builder.finish()?.batch().rows, 1);
//! # Ok::<(), dray_mysqltypes::Error>(())
//! ```

#![forbid(unsafe_code)]

mod binary;
mod column;
mod definition;
mod error;
mod number;
mod reader;
mod row;
mod temporal;
mod text;

pub use column::{Column, Options, TYPE_KEY, ZeroDates};
pub use definition::ColumnDefinition;
pub use error::{Error, ErrorKind, Result, not_utf8};
pub use reader::Reader;
pub use row::{push_binary_row, push_text_row};
