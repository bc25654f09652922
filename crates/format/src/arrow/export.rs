//! From columns to Arrow arrays.

#![allow(
    unsafe_code,
    reason = "arrays are built from columns that were checked when they were read"
)]

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{DataType, SchemaRef};

use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Error, ErrorKind, Result, refuse};

/// A record batch of this Arrow schema from columns of any origin. Everything that Arrow relies on
/// is checked.
///
/// # Errors
/// When the columns do not fit the schema, or strings are too long for its types.
pub fn batch_to_arrow(batch: Batch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.columns.len() != schema.fields().len() {
        refuse!(
            Unsupported,
            "{} columns for a schema of {}",
            batch.columns.len(),
            schema.fields().len()
        );
    }
    let columns = batch.columns.into_iter().zip(schema.fields());
    let array = |(column, field): (Column, &arrow_schema::FieldRef)| {
        cast(array(column, &plain(field.data_type()), Checks::Needed)?, field.data_type())
    };
    record_batch(schema, batch.rows, columns.map(array).collect::<Result<_>>()?)
}

pub(super) fn record_batch(
    schema: &SchemaRef,
    rows: usize,
    arrays: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("the batch does not fit its schema: {error}"))
    })
}

/// Whether the columns were checked for everything that arrays rely on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Checks {
    Done,
    Needed,
}

pub(super) fn array(column: Column, data_type: &DataType, checks: Checks) -> Result<ArrayRef> {
    let plain = match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return Ok(make_array(data(column, data_type, checks)?)),
    };
    cast(make_array(data(column, &plain, checks)?), data_type)
}

/// The type with each kind of list as `List`, and without run ends. String types stay.
fn plain(data_type: &DataType) -> DataType {
    let item = |field: &arrow_schema::FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())))
    };
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::List(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Map(entries, sorted) => DataType::Map(item(entries), *sorted),
        DataType::Dictionary(index, value) => {
            DataType::Dictionary(index.clone(), Box::new(plain(value)))
        }
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other.clone(),
    }
}

/// The same values as an Arrow type that is the same type to Dray.
fn cast(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    arrow_cast::cast(&array, data_type).map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{} as {data_type}: {error}", array.data_type()))
    })
}

fn bits_to_arrow(bits: Bitmap) -> Result<BooleanBuffer> {
    let Bitmap { bytes, offset, len } = bits;
    if offset.checked_add(len).is_none_or(|end| end.div_ceil(8) > bytes.len()) {
        refuse!(Length, "{} bytes of a bitmap for {len} values from {offset} on", bytes.len());
    }
    Ok(BooleanBuffer::new(Buffer::from(bytes), offset, len))
}

fn data(column: Column, data_type: &DataType, checks: Checks) -> Result<ArrayData> {
    let Column { rows, validity, values } = column;
    let validity = validity.filter(|_| *data_type != DataType::Null);
    let nulls = validity.map(|bits| bits_to_arrow(bits).map(NullBuffer::new)).transpose()?;
    let builder = ArrayDataBuilder::new(data_type.clone()).len(rows).nulls(nulls);
    let builder = match (values, data_type) {
        (Values::Null, DataType::Null) => builder,
        (Values::Boolean(bits), DataType::Boolean) => {
            let bits = bits_to_arrow(bits)?;
            builder.add_buffer(if bits.offset() == 0 { bits.into_inner() } else { bits.sliced() })
        }
        (Values::Bytes { offsets, data }, DataType::Utf8 | DataType::Binary) => {
            builder.add_buffer(Buffer::from(offsets)).add_buffer(Buffer::from(data))
        }
        (Values::List { offsets, child }, DataType::List(item)) => builder
            .add_buffer(Buffer::from(offsets))
            .add_child_data(array(*child, item.data_type(), checks)?.to_data()),
        (Values::List { offsets, child }, DataType::Map(entries, _)) => builder
            .add_buffer(Buffer::from(offsets))
            .add_child_data(array(*child, entries.data_type(), checks)?.to_data()),
        (Values::FixedList { child, .. }, DataType::FixedSizeList(item, _)) => {
            builder.add_child_data(array(*child, item.data_type(), checks)?.to_data())
        }
        (Values::Struct(children), DataType::Struct(fields)) => {
            let children = children.into_iter().zip(fields);
            let children = children
                .map(|(child, field)| Ok(array(child, field.data_type(), checks)?.to_data()));
            builder.child_data(children.collect::<Result<_>>()?)
        }
        (Values::Dictionary { indexes, entries, .. }, DataType::Dictionary(_, value)) => {
            // If all values are missing there are no entries, but Arrow requires even the index
            // under a missing value to be in range.
            let entries = if entries.rows == 0 {
                missing_entry(value)?
            } else {
                array(*entries, value, checks)?
            };
            builder.add_buffer(Buffer::from(indexes)).add_child_data(entries.to_data())
        }
        (Values::Fixed { bytes, .. }, _) => builder.add_buffer(Buffer::from(bytes)),
        (_, data_type) => refuse!(Unsupported, "a column does not have its type {data_type}"),
    };
    // Small buffers are aligned to 8 bytes in a chunk, and some types need 16. Such buffers are
    // copied.
    let builder = builder.align_buffers(true);
    if let Checks::Needed = checks {
        let refused = |error| {
            Error::new(ErrorKind::Unsupported, format!("not a column of {data_type}: {error}"))
        };
        return builder.build().map_err(refused);
    }
    // SAFETY: `Checks::Done` is passed by `Decoder::batch` alone, for columns from one of two
    // sources. `decode` has checked every length, offset, index, bitmap and string against the
    // schema that `data_type` was made from. Or a `BatchBuilder` of that schema, which refuses
    // values that do not fit, has made the column, and `Decoder::built` has checked its strings.
    // The chunk's layout of each type is Arrow's, and `align_buffers` gives each buffer its type's
    // alignment.
    Ok(unsafe { builder.build_unchecked() })
}

/// An array of one missing value. Its size is that of its type, however little was sent.
fn missing_entry(data_type: &DataType) -> Result<ArrayRef> {
    const BYTES_MAX: usize = 1 << 20;
    match value_bytes(data_type) {
        0..=BYTES_MAX => Ok(new_null_array(data_type, 1)),
        bytes => {
            refuse!(
                Limit,
                "a dictionary without entries whose entries would have {bytes} bytes each, \
                 over {BYTES_MAX}"
            )
        }
    }
}

/// About the bytes of a missing value.
fn value_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
        DataType::FixedSizeList(item, size) => {
            // A mask takes an eighth of a byte, and values of type null nothing.
            value_bytes(item.data_type()).max(1).saturating_mul(usize::try_from(*size).unwrap_or(0))
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| value_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        DataType::Dictionary(_, value) => value_bytes(value),
        other => other.primitive_width().unwrap_or(8),
    }
}
