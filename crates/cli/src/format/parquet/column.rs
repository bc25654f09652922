//! A column of a row group.

use std::io::Write;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::{Compression, Type};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::super::WriteError;
use super::number::is_number;
use super::numbers::NumberChunk;
use super::pages::EncodedChunk;

pub(super) enum Column {
    Int32(Box<NumberChunk<i32>>),
    Int64(Box<NumberChunk<i64>>),
    /// The library's encoder for each leaf of the type.
    Other { field: FieldRef, leaves: Vec<ArrowColumnWriter> },
}

impl Column {
    /// A column of up to `rows_max` rows, whose first leaf is `leaf`.
    pub(super) fn new(
        field: &FieldRef,
        leaf: ColumnDescPtr,
        codec: Compression,
        rows_max: usize,
    ) -> Self {
        let stored = leaf.physical_type();
        let numbers = match stored {
            _ if !is_number(field.data_type(), stored) => None,
            Type::INT32 => NumberChunk::new(leaf, codec, rows_max).map(Box::new).map(Self::Int32),
            _ => NumberChunk::new(leaf, codec, rows_max).map(Box::new).map(Self::Int64),
        };
        numbers.unwrap_or_else(|| Self::Other { field: field.clone(), leaves: Vec::new() })
    }

    pub(super) fn write(&mut self, array: &ArrayRef) -> Result<(), WriteError> {
        match self {
            Self::Int32(chunk) => chunk.write(array),
            Self::Int64(chunk) => chunk.write(array),
            Self::Other { field, leaves } => {
                let arrays = compute_leaves(field, array)?;
                leaves.iter_mut().zip(&arrays).try_for_each(|(leaf, array)| Ok(leaf.write(array)?))
            }
        }
    }

    /// The estimated size so far.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Int32(chunk) => chunk.bytes(),
            Self::Int64(chunk) => chunk.bytes(),
            Self::Other { leaves, .. } => {
                leaves.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
            }
        }
    }

    pub(super) fn finish(self) -> Result<Chunks, WriteError> {
        Ok(match self {
            Self::Int32(chunk) => Chunks::Encoded(chunk.finish()?),
            Self::Int64(chunk) => Chunks::Encoded(chunk.finish()?),
            Self::Other { leaves, .. } => {
                let close = |leaf: ArrowColumnWriter| Ok::<_, WriteError>(leaf.close()?);
                Chunks::Other(leaves.into_iter().map(close).collect::<Result<_, _>>()?)
            }
        })
    }
}

/// The complete chunks of a column.
pub(super) enum Chunks {
    Encoded(EncodedChunk),
    Other(Vec<ArrowColumnChunk>),
}

impl Chunks {
    pub(super) fn append_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), WriteError> {
        match self {
            Self::Encoded(EncodedChunk { bytes, close }) => group.append_column(&bytes, close)?,
            Self::Other(chunks) => {
                chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(group))?;
            }
        }
        Ok(())
    }
}
