//! From Arrow arrays to columns.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Result, refuse};
use crate::layout::COUNT_MAX;

/// A batch that shares the buffers of a record batch. Views and run-end encoded arrays are
/// rewritten, and so are offsets of 64 bits and those of lists. Of the items of lists, and of what
/// is rewritten, only the part that the rows need is looked at.
///
/// # Errors
/// When a column's strings have more than 2³¹ bytes (kind limit: fewer rows may fit), or types.md
/// has no counterpart of its type.
pub fn batch_from_arrow(batch: &RecordBatch) -> Result<Batch> {
    let columns = batch.columns().iter().map(column_from_arrow).collect::<Result<_>>()?;
    Ok(Batch { rows: batch.num_rows(), columns })
}

/// A column that shares the buffers of an array, or has new ones as in [`batch_from_arrow`].
///
/// # Errors
/// Those of [`batch_from_arrow`].
pub fn column_from_arrow(array: &ArrayRef) -> Result<Column> {
    let Some(plain) = plain_type(array.data_type()) else {
        return column_from_data(&array.to_data());
    };
    match arrow_cast::cast(array, &plain) {
        Ok(array) => column_from_arrow(&array),
        Err(error) => {
            refuse!(Limit, "{} rows of {} are too large: {error}", array.len(), array.data_type())
        }
    }
}

/// The type that arrays are rewritten to if their own buffers can't be shared.
pub(crate) fn plain_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        DataType::ListView(field) | DataType::LargeListView(field) => {
            Some(DataType::List(field.clone()))
        }
        DataType::RunEndEncoded(_, values) => Some(values.data_type().clone()),
        _ => None,
    }
}

/// An Arrow buffer that owns the memory of a [`Bytes`].
struct Owner(Buffer);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

fn shared(buffer: &Buffer) -> Bytes {
    Bytes::from_owner(Owner(buffer.clone()))
}

fn column_from_data(data: &ArrayData) -> Result<Column> {
    let (rows, from) = (data.len(), data.offset());
    let bytes = |i: usize| shared(&data.buffers()[i]);
    let child = |i: usize, from: usize, rows: usize| {
        // Not of `ArrayData`: a slice of that has the offset of a struct twice.
        let part = make_array(data.child_data()[i].clone()).slice(from, rows);
        column_from_arrow(&part).map(Box::new)
    };
    let values = match data.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Boolean(Bitmap { bytes: bytes(0), offset: from, len: rows }),
        DataType::Utf8 | DataType::Binary if data.buffers()[0].is_empty() => {
            // Arrow allows an array of no values to have no offsets.
            Values::Bytes { offsets: Bytes::from_static(&[0; 4]), data: bytes(1) }
        }
        DataType::Utf8 | DataType::Binary => {
            let offsets = bytes(0).slice(from * 4..(from + rows + 1) * 4);
            Values::Bytes { offsets, data: bytes(1) }
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let (offsets, used) = offsets_from_0::<8>(data, data.buffers()[1].len())?;
            Values::Bytes { offsets, data: bytes(1).slice(used) }
        }
        DataType::List(_) | DataType::Map(..) => {
            let (offsets, used) = offsets_from_0::<4>(data, data.child_data()[0].len())?;
            Values::List { offsets, child: child(0, used.start, used.len())? }
        }
        DataType::LargeList(_) => {
            let (offsets, used) = offsets_from_0::<8>(data, data.child_data()[0].len())?;
            Values::List { offsets, child: child(0, used.start, used.len())? }
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            Values::FixedList { size, child: child(0, from * size, rows * size)? }
        }
        DataType::Struct(_) => {
            let children = (0..data.child_data().len()).map(|i| Ok(*child(i, from, rows)?));
            Values::Struct(children.collect::<Result<_>>()?)
        }
        DataType::Dictionary(index, _) => {
            let width = index.primitive_width().unwrap_or(0);
            Values::Dictionary {
                width,
                indexes: bytes(0).slice(from * width..(from + rows) * width),
                entries: child(0, 0, data.child_data()[0].len())?,
            }
        }
        fixed => {
            let width = match fixed {
                DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
                _ => fixed.primitive_width(),
            };
            let Some(width) = width else { refuse!(Unsupported, "arrays of type {fixed}") };
            Values::Fixed { width, bytes: bytes(0).slice(from * width..(from + rows) * width) }
        }
    };
    let validity = data.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| Bitmap {
        bytes: shared(nulls.buffer()),
        offset: nulls.offset(),
        len: rows,
    });
    Ok(Column { rows, validity, values })
}

/// The offsets of an array in `WIDTH` bytes each, counted from the first one on, and what they span
/// of the `len` bytes or items that the array has.
fn offsets_from_0<const WIDTH: usize>(
    data: &ArrayData,
    len: usize,
) -> Result<(Bytes, Range<usize>)> {
    let buffer = data.buffers()[0].as_slice().as_chunks::<WIDTH>().0;
    let Some(offsets) = buffer.get(data.offset()..=data.offset() + data.len()) else {
        // Arrow allows an array of no values to have no offsets.
        return Ok((Bytes::from_static(&[0; 4]), 0..0));
    };
    let offset = |bytes: &[u8; WIDTH]| {
        bytes.iter().rev().fold(0, |offset, byte| offset << 8 | usize::from(*byte))
    };
    let (first, end) = (offset(&offsets[0]), offset(&offsets[data.len()]));
    if first > end || end > len {
        refuse!(Unsupported, "offsets from {first} to {end} of {len}");
    }
    if end - first > COUNT_MAX {
        refuse!(Limit, "{} rows of {} are too large", data.len(), data.data_type());
    }
    let from_0 = |bytes| (offset(bytes).wrapping_sub(first) as u32).to_le_bytes();
    let offsets = offsets.iter().map(from_0).collect::<Vec<_>>();
    Ok((offsets.into_flattened().into(), first..end))
}
