//! External sort and distinct: sorts rows within a memory budget, and on disk beyond it.
//! `spec/sort-key.md` specifies keys, and `spec/page.md` the pages in which rows are stored.
//!
//! ```text
//!   Batch ──Writer──▶ rows + keys ─┬─(all in memory)─sample sort──▶ Sorted: Batch, Batch, …
//!                                  │                                 ▲
//!                                  └─sort──▶ in-memory run ─┬─merge──┤
//!                                                           │        │
//!                                          memory is short: └─merge─▶ run on disk
//! ```
//!
//! The modules, each of which depends on those before it:
//!
//! - `key`: a [`KeyEncoder`] turns columns into keys, which are compared in words and by
//!   offset-value codes. An entry has a word of a row's key and the row's location.
//! - `memory`: the [`MemoryBudget`], the cache of free pages, and blocks, in which rows lie with
//!   their keys. The payload of a block is a batch as it came, or a page of objects.
//! - `context`: the settings and resources that all stages share.
//! - `run`: a builder of in-memory runs, which sorts entries, and runs in spill files, compressed
//!   if that is faster. A cutoff key excludes rows beyond the limit.
//! - `merge`: a loser tree over cursors merges runs into longer ones on disk, or into batches of
//!   the result. Merge Path divides a merge among threads.
//! - `sample_sort`: sorts rows that are all in memory together, without a merge.
//! - `output`: makes the batches of the result, on demand or ahead of the reader.
//! - `state`, `writer`, `sorter`, `sorted`: [`Writer`]s take rows. When memory is short, the thread
//!   that notices it spills them. [`Sorter::finish`] merges.
//!
//! ```
//! use dray_format::{Batch, Column, Field, Schema, Type, Values};
//! use dray_sort::{FixedBudget, Options, SortColumn, Sorter};
//!
//! let (name, metadata) = ("n".into(), vec![]);
//! let field = Field { name, data_type: Type::Int32, nullable: false, metadata };
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
mod output;
mod run;
mod sample_sort;
mod sorted;
mod sorter;
mod state;
mod threads;
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
