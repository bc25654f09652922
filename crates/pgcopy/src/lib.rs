//! Arrow columns as the rows of `COPY … FROM STDIN` (`spec/types.md` section 4).
//!
//! ```text
//!   Arrow type ──create_type──▶ type for CREATE TABLE
//!   Arrow type + PostgreSQL's type of the column ──▶ Values
//!   batch ──▶ blocks of some rows: measure every column, then fill column by column
//! ```
//!
//! PostgreSQL's format has one row after the other. A block is small enough to stay in the
//! processor's cache, so its columns are written one after the other, each to the places that the
//! sizes of the columns before leave it. Types that have no binary form here make the whole COPY
//! one in text. There is no I/O here.

#![forbid(unsafe_code)]

mod bytes;
mod create;
mod encoder;
mod error;
mod fixed;
pub mod json;
mod nested;
mod number;
mod select;
mod temporal;
mod text;
mod values;

pub use create::{create_type, named_type};
pub use encoder::{Blocks, Encoder, Format, Target};
pub use error::{Error, Reason, Result};
pub use select::{is_json, is_uuid};
