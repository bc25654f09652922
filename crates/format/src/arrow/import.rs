//! From Arrow arrays to columns.

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Result, refuse};

/// A batch that shares the buffers of a record batch. Views, 64-bit offsets and run-end encoded
/// arrays are rewritten.
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
        DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        DataType::LargeBinary | DataType::BinaryView => Some(DataType::Binary),
        DataType::LargeList(field) | DataType::ListView(field) | DataType::LargeListView(field) => {
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
    let child =
        |i: usize| column_from_arrow(&make_array(data.child_data()[i].clone())).map(Box::new);
    let offsets = || match data.buffers()[0].is_empty() {
        // Arrow allows an array of no values to have no offsets.
        true => Bytes::from_static(&[0; 4]),
        false => bytes(0).slice(from * 4..(from + rows + 1) * 4),
    };
    let values = match data.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Boolean(Bitmap { bytes: bytes(0), offset: from, len: rows }),
        DataType::Utf8 | DataType::Binary => Values::Bytes { offsets: offsets(), data: bytes(1) },
        DataType::List(_) | DataType::Map(..) => {
            Values::List { offsets: offsets(), child: child(0)? }
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            Values::FixedList { size, child: Box::new(child(0)?.slice(from * size, rows * size)) }
        }
        DataType::Struct(_) => {
            let children = (0..data.child_data().len()).map(|i| Ok(child(i)?.slice(from, rows)));
            Values::Struct(children.collect::<Result<_>>()?)
        }
        DataType::Dictionary(index, _) => {
            let width = index.primitive_width().unwrap_or(0);
            Values::Dictionary {
                width,
                indexes: bytes(0).slice(from * width..(from + rows) * width),
                entries: child(0)?,
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
