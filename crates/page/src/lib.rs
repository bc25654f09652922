//! The page: rows and nested objects as bytes that are copied by one memcpy and read in place.
//! `spec/page.md` is the specification; this crate writes and reads what it says.
//!
//! ```text
//! Batch of Columns, ─PageBuilder─▶ VerifiedPage ──▶ Object, Object, … ──▶ fields, items
//! values one by one                 ▲   │   ▲              │ in any order
//!          bytes ──────verify───────┘   │   └─ PageEditor  ├─ copy ──▶ PageBuilder
//!                                 bytes ▼      in place    └─ ColumnsBuilder ──▶ Batch
//!                               (file, socket)
//! ```
//!
//! Columns are sent ([`dray_format`]); objects are sorted, spilled and looked up. A schema is
//! compiled once into a [`Layout`]. Objects are read from a [`VerifiedPage`] alone: it comes from a
//! [`PageBuilder`], or from bytes that were checked in one pass. Reading does not panic or decode.
//! An [`Accessor`] reads one field of many objects, a [`Value`] a field of any type, and
//! [`generated`] code fields at positions that it has compiled in. A [`Mutator`] writes one field:
//! of objects that are built in place ([`PageBuilder::build`]), or changed ([`PageEditor`]). This
//! crate does no I/O and starts no threads.
//!
//! ```
//! use dray_format::{Batch, Checksum, Column, Field, Schema, Type, Values};
//! use dray_page::{ColumnsBuilder, Layout, PAGE_BYTES, PageBuilder, VerifiedPage};
//!
//! let (name, data_type) = ("n".into(), Type::Int32);
//! let field = Field { name, data_type, nullable: false, metadata: vec![] };
//! let layout = Layout::new(Schema { fields: vec![field] })?;
//! let bytes = [7i32, -1, 2].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into();
//! let column = Column { rows: 3, validity: None, values: Values::Fixed { width: 4, bytes } };
//!
//! let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::Crc32c)?;
//! builder.append(&Batch { rows: 3, columns: vec![column.clone()] })?;
//! let pages = builder.finish();
//!
//! let page = VerifiedPage::verify(&layout, pages[0].bytes().clone())?;
//! let object = page.object(1).unwrap();
//! assert_eq!(object.field(0).unwrap().i32(), Some(-1));
//! let mut columns = ColumnsBuilder::new(layout, 1 << 20);
//! columns.append(page.objects())?;
//! assert_eq!(columns.finish().columns, [column]);
//! # Ok::<(), dray_page::Error>(())
//! ```

#![forbid(unsafe_code)]

mod accessor;
mod build;
mod columns;
mod edit;
mod error;
pub mod generated;
mod layout;
mod mutator;
mod object;
mod packed;
mod page;
mod path;
mod pool;
mod positions;
mod verify;
mod word;

pub use accessor::{Access, Accessor, Item, Items, ListAccessor};
pub use build::{Measured, ObjectBuilder, PageBuilder};
pub use columns::ColumnsBuilder;
pub use edit::{ItemMut, PageEditor};
pub use error::{Error, ErrorKind, Result};
pub use layout::Layout;
pub use mutator::{Change, ListMutator, Mutator};
pub use object::{Fields, List, Object, Value};
pub use packed::PackedPage;
pub use page::{HEADER_BYTES, Header, PAGE_BYTES, PAGE_BYTES_MAX, PAGE_BYTES_MIN, VerifiedPage};
pub use pool::PagePool;
pub use positions::{FieldLayout, ItemLayout, Shape, ValidityBit};
