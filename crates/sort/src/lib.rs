//! Sort keys: rows as bytes that are in the rows' order, whatever their types. `spec/sort-key.md` is the law.
//!
//! ```text
//!   Batch of Columns ──KeyEncoder──▶ Keys: bytes of row 0, bytes of row 1, …      compared by memcmp
//! ```
//!
//! ```
//! use dray_format::{Batch, Column, Field, Schema, Type, Values};
//! use dray_sort::{KeyEncoder, Purpose, SortColumn};
//!
//! let field = Field { name: "n".into(), data_type: Type::Int32, nullable: false, metadata: vec![] };
//! let schema = Schema { fields: vec![field] };
//! let bytes = [7i32, -1, 2].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into();
//! let column = Column { rows: 3, validity: None, values: Values::Fixed { width: 4, bytes } };
//! let batch = Batch { rows: 3, columns: vec![column] };
//!
//! let by = [SortColumn { column: 0, descending: true, nulls_first: false }];
//! let keys = KeyEncoder::new(&schema, &by, Purpose::Order)?.encode(&batch);
//! let mut rows = vec![0, 1, 2];
//! rows.sort_by_key(|row| keys.get(*row));
//! assert_eq!(rows, [0, 2, 1]);
//! # Ok::<(), dray_sort::Error>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod key;

pub use error::{Error, Result};
pub use key::{KeyEncoder, Keys, Purpose, SortColumn};
