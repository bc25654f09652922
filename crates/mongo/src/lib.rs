//! MongoDB as a source of a Dray server.
//!
//! A statement is JSON: a `find` or an `aggregate` as MongoDB's own commands have them, with the
//! columns of the result if the user names them. The server does the work; its documents are read
//! as they come, without a tree of values.
//!
//! ```text
//!   {"find": "orders", …} ─▶ statement.rs ─▶ session.rs ─▶ the server
//!                                               │  batches of raw BSON
//!        columns: infer.rs, from the first documents; or declared.rs, from the statement
//!                                               │
//!      RecordBatch ◀─ rows.rs: each field into its column (fit.rs), what does not fit into
//!                              the column `_rest` (extended_json.rs)
//! ```
//!
//! MongoDB's types are mapped by spec/types.md section 7, decision 58 says why.

#![forbid(unsafe_code)]

mod columns;
mod decimal;
mod declared;
mod driver;
mod error;
mod extended_json;
mod fit;
mod infer;
mod literals;
#[cfg(test)]
mod random;
mod rows;
mod session;
mod statement;

pub use self::driver::Mongo;
