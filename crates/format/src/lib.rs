//! The chunk: rows of a result as bytes, column by column. `spec/chunk.md`, `spec/encodings.md`,
//! `spec/state.md` and `spec/types.md` are the specification; this crate writes and reads what they
//! say.
//!
//! ```text
//! source ──▶ Batch of Columns ──write──▶ Chunk (parts for the socket)
//!                                          │ bytes
//! Arrow  ◀── Batch of Columns ◀──decode─── Header, descriptors, body
//! ```
//!
//! A [`Column`] is shared buffers in Arrow's layout. Without encodings its buffers *are* the
//! chunk's, and neither side copies them. This crate does no I/O, starts no threads, and depends on
//! Arrow only for the conversions in [`arrow`], behind the feature `arrow`.
//!
//! The modules in layers; each uses those below, and reader and writer do not know each other:
//!
//! ```text
//! arrow                      conversions from and to Arrow
//! write    read     build    columns to chunks, chunks to columns, rows to columns
//! encode                     chooses encodings, and remembers earlier chunks
//! sink                       the bytes of a chunk or state frame
//! compress bitpack  expand   decimals, huffman, symbols, numbers, utf8
//! column   types    header   word
//! layout   output   cursor   vector, chain, clock, error, calendar, magnitude
//! ```
//!
//! ```
//! use dray_format::{
//!     Batch, Checksum, ChunkKind, Column, Compression, Field, Limits, Schema, Type, Values, read,
//!     write,
//! };
//!
//! let (name, data_type) = ("n".into(), Type::Int32);
//! let field = Field { name, data_type, nullable: false, metadata: vec![] };
//! let schema = Schema { fields: vec![field] };
//! let bytes = [7i32, -1, 2].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into();
//! let column = Column { rows: 3, validity: None, values: Values::Fixed { width: 4, bytes } };
//! let batch = Batch { rows: 3, columns: vec![column.clone()] };
//!
//! let (compression, checksum) = (Compression::Light, Checksum::Crc32c);
//! let chunk = write(&schema, &[batch], compression, checksum, ChunkKind::Regular)?;
//! let chunk = chunk.to_bytes(0);
//! let (header, batch) = read(&chunk, &schema, &Limits::default())?;
//! assert_eq!((header.rows, &batch.columns[0]), (3, &column));
//! # Ok::<(), dray_format::Error>(())
//! ```

#![deny(unsafe_code)]

#[cfg(feature = "arrow")]
pub mod arrow;
mod bitpack;
mod build;
pub mod calendar;
mod chain;
mod clock;
mod column;
mod compress;
mod cursor;
mod decimals;
mod encode;
mod error;
mod expand;
mod header;
mod huffman;
mod layout;
mod magnitude;
mod numbers;
mod output;
mod read;
mod sink;
mod symbols;
mod types;
mod utf8;
mod vector;
mod word;
mod write;

pub use build::{BatchBuilder, BuiltBatch, ColumnBuilder};
pub use chain::Chain;
pub use clock::Clock;
pub use column::{Batch, Bitmap, Column, Values};
pub use compress::Compression;
pub use cursor::{Cursor, put_bytes};
pub use error::{Error, ErrorKind, Result};
pub use header::{Checksum, ChunkKind, HEADER_BYTES, Header, Limits, StateHeader, crc32c};
pub use layout::{COUNT_MAX, WEIGHTLESS_MAX};
pub use magnitude::Magnitude;
pub use output::{BufferSlice, BufferSource};
pub use read::{ColumnProfile, Profile, Tables, decode, read, read_with};
pub use sink::DictionaryBudget;
pub use types::{DEPTH_MAX, FIELDS_MAX, Field, SCHEMA_BYTES_MAX, Schema, Type, Unit};
pub use word::copy_short;
pub use write::{Chunk, ColumnStats, Encoder, StateFrame, chunk_bytes_bound, write};
