//! From a chunk's bytes to columns: `spec/chunk.md` sections 3 to 5 and `spec/encodings.md`.
//!
//! Plain buffers are shared with the chunk. Everything else is decoded into new buffers, on the
//! heap or from a [`BufferSource`]; their bytes are charged to the size that the chunk declared,
//! which bounds scratch buffers too. Nothing in a chunk is trusted before it is checked.

mod checks;
mod columns;
mod decimals;
mod fixed;
mod huffman;
mod profile;
mod reader;
mod relative;
mod string_entries;
mod strings;
mod symbols;
mod tables;
mod zeros;

use std::time::Instant;

use bytes::Bytes;

pub use self::profile::{ColumnProfile, Profile};
use self::reader::{Destination, Reader};
pub use self::tables::Tables;
use crate::column::Batch;
use crate::error::{Error, Result, refuse};
use crate::header::{HEADER_BYTES, Header, Limits};
use crate::output::BufferSource;
use crate::types::Schema;

/// Reads a whole chunk, checksum included. It lies in one buffer and uses no tables.
///
/// # Errors
/// When the chunk breaks a rule of the specification or is over a limit.
pub fn read(chunk: &Bytes, schema: &Schema, limits: &Limits) -> Result<(Header, Batch)> {
    read_with(chunk, schema, limits, &Tables::default())
}

/// Reads a whole chunk, checksum included, that may use `tables`.
///
/// # Errors
/// When the chunk breaks a rule of the specification or is over a limit.
pub fn read_with(
    chunk: &Bytes,
    schema: &Schema,
    limits: &Limits,
    tables: &Tables,
) -> Result<(Header, Batch)> {
    let Some((raw, rest)) = chunk.split_first_chunk::<HEADER_BYTES>() else {
        refuse!(Size, "a chunk of {} bytes is shorter than its header", chunk.len())
    };
    let header = Header::decode(raw, limits)?;
    if header.chunk_bytes() != chunk.len() as u64 {
        refuse!(
            Size,
            "the chunk has {} bytes, its header says {}",
            chunk.len(),
            header.chunk_bytes()
        );
    }
    // The check of the size above keeps both parts within the chunk.
    let (descriptors, _) = rest.split_at(rest.len() - header.body_bytes as usize);
    let body = chunk.slice(chunk.len() - header.body_bytes as usize..);
    header.verify(&[descriptors, &body])?;
    let batch = decode(&header, schema, descriptors, &body, tables, None, None)?;
    Ok((header, batch))
}

/// Decodes a chunk whose header has been checked against the limits.
///
/// `descriptors` includes their padding; `tables` are those that the chunk was made with. Buffers
/// of columns come from `source`, or from the heap without one. `profile` collects how the columns
/// were coded.
///
/// # Errors
/// When the chunk breaks a rule of the specification.
pub fn decode(
    header: &Header,
    schema: &Schema,
    descriptors: &[u8],
    body: &Bytes,
    tables: &Tables,
    source: Option<&mut dyn BufferSource>,
    mut profile: Option<&mut Profile>,
) -> Result<Batch> {
    let mut reader = Reader::new(header, descriptors, body, tables)?;
    tables.check(header)?;
    reader.source = source;
    reader.encodings = profile.as_ref().map(|_| Vec::new());
    let rows = header.rows as usize;
    if schema.fields.is_empty() {
        reader.weightless(rows)?;
    }
    let mut columns = Vec::with_capacity(schema.fields.len());
    for (i, field) in schema.fields.iter().enumerate() {
        let before = (reader.at, reader.budget);
        let started = profile.as_ref().map(|_| Instant::now());
        columns.push(reader.field(field, rows, &columns).map_err(|error| {
            Error::new(
                error.kind(),
                format!("chunk {}, column {:?}: {error}", header.sequence, field.name),
            )
        })?);
        if let Some(profile) = &mut profile {
            profile.columns.resize_with(schema.fields.len(), ColumnProfile::default);
            let column = &mut profile.columns[i];
            column.body_bytes += (reader.at - before.0) as u64;
            column.decoded_bytes += before.1 - reader.budget;
            let elapsed = started.map_or(0, |started| started.elapsed().as_nanos());
            column.decode_ns += u64::try_from(elapsed).unwrap_or(u64::MAX);
            for name in reader.encodings.iter_mut().flat_map(|names| names.drain(..)) {
                if !column.encodings.contains(&name) {
                    column.encodings.push(name);
                }
            }
        }
    }
    reader.check_used_up(header.sequence)?;
    debug_assert!(columns.iter().all(|column| column.rows == rows));
    Ok(Batch { rows, columns })
}
