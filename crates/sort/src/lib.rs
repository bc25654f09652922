//! External sort and distinct: rows in the order of their keys, in as much memory as they may take
//! and on disk beyond that. `spec/sort-key.md` is the law for keys, `spec/page.md` for the pages
//! that rows lie in.
//!
//! ```text
//!   Batch ──Writer──▶ rows + keys ──sort──▶ piece ─┬─merge─▶ Sorted: Batch, Batch, …
//!                                                  │           ▲
//!                                 memory is short: └─merge─▶ run on disk
//! ```
//!
//! The files are the nouns: a [`KeyEncoder`] makes keys (`key.rs`), which are compared in words and
//! by codes (`code.rs`). Rows lie in blocks (`block.rs`): a table's as they came, others as objects
//! in pages, whose memory is used again (`page_cache.rs`). A piece (`piece.rs`) has entries
//! (`entry.rs`), whose order is made in `order.rs`, by the bytes that differ (`varying.rs`). A
//! merge (`merge.rs`) is a loser tree (`tree.rs`) over cursors (`cursor.rs`) in pieces and runs
//! (`run.rs`). The sorter (`sorter.rs`) says when pieces become a run (`spill.rs`) on disk
//! (`disk.rs`, `policy.rs`), and which rows can't be among the first ones, if no more are wanted
//! (`cutoff.rs`). The last merge makes batches (`part.rs`) of objects, or of rows that are gathered
//! (`gather.rs`): of all or, divided by `path.rs`, in several threads (`merge.rs`).
//!
//! ```
//! use dray_format::{Batch, Column, Field, Schema, Type, Values};
//! use dray_sort::{FixedBudget, Options, SortColumn, Sorter};
//!
//! let field = Field { name: "n".into(), data_type: Type::Int32, nullable: false, metadata: vec![] };
//! let schema = Schema { fields: vec![field] };
//! let column = |numbers: [i32; 3]| {
//!     let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into();
//!     Column { rows: 3, validity: None, values: Values::Fixed { width: 4, bytes } }
//! };
//!
//! let by = vec![SortColumn { column: 0, descending: true, nulls_first: false }];
//! let sorter = Sorter::new(schema, Options::new(by, FixedBudget::new(16 << 20)))?;
//! sorter.writer().append(0, &Batch { rows: 3, columns: vec![column([7, -1, 2])] })?;
//! let batches = sorter.finish(1)?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(batches[0].columns, [column([7, 2, -1])]);
//! # Ok::<(), dray_sort::Error>(())
//! ```

#![forbid(unsafe_code)]

mod byte_size;
mod cancel;
mod context;
mod error;
mod key;
mod memory;
mod merge;
mod options;
mod order_by;
mod run;
mod sorted;
mod sorter;
mod state;
mod writer;

pub use byte_size::ByteSize;
pub use cancel::Cancel;
pub use error::{Error, Result};
pub use key::{KeyEncoder, KeyPurpose, Keys, SortColumn};
pub use memory::{FixedBudget, MemoryBudget, memory_bytes_default};
pub use options::{Distinct, Options, SpillCompression, SpillSpace};
pub use order_by::OrderBy;
pub use sorted::Sorted;
pub use sorter::{Progress, Sorter};
pub use writer::Writer;
