//! A column of a row group.

use std::io::Write;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;
use dray_server::sort::widen_array;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::{Compression, Type};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::super::WriteError;
use super::number::is_number;
use super::numbers::{NumberChunk, Scratch};
use super::pages::EncodedChunk;

pub(super) enum Column {
    Int32(Box<NumberChunk<i32>>),
    Int64(Box<NumberChunk<i64>>),
    /// The library's encoder for each leaf of the type.
    Other {
        field: FieldRef,
        leaves: Vec<ArrowColumnWriter>,
    },
}

impl Column {
    /// A column of up to `rows_max` rows, whose first leaf is `leaf`. Finding its distinct values
    /// may take `slot_bytes_max` bytes.
    pub(super) fn new(
        field: &FieldRef,
        leaf: ColumnDescPtr,
        codec: Compression,
        rows_max: usize,
        slot_bytes_max: usize,
    ) -> Self {
        match leaf.physical_type() {
            stored if !is_number(field.data_type(), stored) => Self::other(field),
            Type::INT32 => {
                Self::Int32(Box::new(NumberChunk::new(leaf, codec, rows_max, slot_bytes_max)))
            }
            _ => Self::Int64(Box::new(NumberChunk::new(leaf, codec, rows_max, slot_bytes_max))),
        }
    }

    /// A column that the library encodes.
    pub(super) fn other(field: &FieldRef) -> Self {
        Self::Other { field: field.clone(), leaves: Vec::new() }
    }

    /// Encodes values. Only columns for the library may have no `scratch`.
    pub(super) fn write(
        &mut self,
        array: &ArrayRef,
        scratch: &mut Option<Scratch>,
    ) -> Result<(), WriteError> {
        match (self, scratch) {
            (Self::Int32(chunk), Some(scratch)) => chunk.write(array, scratch),
            (Self::Int64(chunk), Some(scratch)) => chunk.write(array, scratch),
            (Self::Other { field, leaves }, _) => {
                let array = widen_array(array, field.data_type())?;
                let arrays = compute_leaves(field, &array)?;
                leaves.iter_mut().zip(&arrays).try_for_each(|(leaf, array)| Ok(leaf.write(array)?))
            }
            _ => Err(no_compressor()),
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

    /// Ends the chunks of a row group.
    pub(super) fn finish(&mut self, scratch: &mut Option<Scratch>) -> Result<Chunks, WriteError> {
        match (self, scratch) {
            (Self::Int32(chunk), Some(scratch)) => {
                Ok(Chunks::Encoded(Box::new(chunk.finish(scratch)?)))
            }
            (Self::Int64(chunk), Some(scratch)) => {
                Ok(Chunks::Encoded(Box::new(chunk.finish(scratch)?)))
            }
            (Self::Other { leaves, .. }, _) => {
                let close = |leaf: ArrowColumnWriter| Ok::<_, WriteError>(leaf.close()?);
                Ok(Chunks::Other(leaves.drain(..).map(close).collect::<Result<_, _>>()?))
            }
            _ => Err(no_compressor()),
        }
    }
}

fn no_compressor() -> WriteError {
    "a column is encoded without its compressor".into()
}

/// The complete chunks of a column.
pub(super) enum Chunks {
    Encoded(Box<EncodedChunk>),
    Other(Vec<ArrowColumnChunk>),
}

impl Chunks {
    pub(super) fn append_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), WriteError> {
        match self {
            Self::Encoded(chunk) => group.append_column(chunk.as_ref(), chunk.close.clone())?,
            Self::Other(chunks) => {
                chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(group))?;
            }
        }
        Ok(())
    }
}
