//! Files of pages: `spec/page-file.md`. Objects lie on the disk as they lie in memory, and are read
//! from a mapped file in place: in order, by their number, or by a key.
//!
//! ```text
//! Batch ──PageFileWriter──▶ file ──PageFile::open──▶ page ──▶ Object
//!                                     │ find(key) ─▶ ordinals ──▶ Object
//!                            damaged ─┴─ Salvage::open ─▶ the whole pages before the damage
//!
//! PageFile ──PageFileEditor──▶ objects are changed in memory ──▶ a new file
//! ```
//!
//! Opening a file checks everything but the pages, which takes the time of a few reads. A page is
//! checked when it is first asked for.
//!
//! ```
//! use bytes::Bytes;
//! use dray_format::{Batch, Column, Field, Schema, Type, Values};
//! use dray_pagefile::{KeyValue, PageFile, PageFileOptions, PageFileWriter};
//!
//! let (name, data_type) = ("n".into(), Type::Int32);
//! let field = Field { name, data_type, nullable: false, metadata: vec![] };
//! let schema = Schema { fields: vec![field] };
//! let bytes = [7i32, -1, 2].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into();
//! let column = Column { rows: 3, validity: None, values: Values::Fixed { width: 4, bytes } };
//!
//! let options = PageFileOptions { key: vec![vec!["n".into()]], ..PageFileOptions::default() };
//! let mut file = Vec::new();
//! let mut writer = PageFileWriter::new(&mut file, schema, &options)?;
//! writer.write(&Batch { rows: 3, columns: vec![column] })?;
//! writer.finish()?;
//!
//! let file = PageFile::from_bytes(Bytes::from(file))?;
//! assert_eq!(file.len(), 3);
//! assert_eq!(file.object(1)?.field(0).unwrap().i32(), Some(-1));
//! assert_eq!(file.find(&[KeyValue::from(2i128)])?, [2]);
//! # Ok::<(), dray_pagefile::Error>(())
//! ```

mod editor;
mod error;
mod footer;
mod header;
mod index;
mod key;
mod reader;
mod salvage;
mod writer;

pub use editor::PageFileEditor;
pub use error::{Error, ErrorKind, Result};
pub use header::schema_digest;
pub use key::{KeyPath, KeyValue};
pub use reader::PageFile;
pub use salvage::Salvage;
pub use writer::{PageFileOptions, PageFileWriter, Written};
