//! Joins small batches in the memory of a table.
//!
//! A PostgreSQL server on the same host sends small chunks, so that they stay in the processor's
//! cache. A table of such small batches would be slow to work with. Arrow's own `concat` fills
//! fresh pages of the system, which takes longer than copying; so columns of the common types are
//! copied to the [`Arena`], and `concat` joins the others.

#![allow(unsafe_code, reason = "arrays are made of buffers that were copied from arrays")]

use arrow::array::{
    Array, ArrayData, ArrayRef, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::buffer::Buffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

use crate::memory::{Arena, NoMemory};

/// The rows of all batches, at least one, as one batch. All have this schema.
///
/// # Errors
/// When strings exceed 32-bit offsets, or the system has no memory.
pub(crate) fn join(
    schema: &SchemaRef,
    batches: &[&RecordBatch],
    arena: &mut Arena,
) -> Result<RecordBatch, ArrowError> {
    let columns = (0..schema.fields().len()).map(|i| {
        let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(i)).collect();
        column(&parts, arena)
    });
    // Without columns, nothing else has the number of rows.
    let rows = batches.iter().map(|batch| batch.num_rows()).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}

fn column(parts: &[&ArrayRef], arena: &mut Arena) -> Result<ArrayRef, ArrowError> {
    let data: Vec<ArrayData> = parts.iter().map(|part| part.to_data()).collect();
    let data_type = parts[0].data_type();
    let buffers = match (data_type, data_type.primitive_width()) {
        (_, Some(width)) => vec![fixed(&data, width, arena)?],
        (DataType::FixedSizeBinary(width), _) => {
            vec![fixed(&data, usize::try_from(*width).unwrap_or(0), arena)?]
        }
        (DataType::Utf8 | DataType::Binary, _) => strings(&data, arena)?,
        _ => return concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>()),
    };
    let rows = data.iter().map(ArrayData::len).sum();
    let joined = ArrayData::builder(data_type.clone()).len(rows).buffers(buffers);
    // A small body lies on the heap and may be unaligned.
    let joined = joined.null_bit_buffer(validity(&data, rows)).align_buffers(true);
    debug_assert!(data.iter().all(|part| part.data_type() == data_type));
    // SAFETY: the parts are arrays of this type, so their values are valid. `fixed` copies the
    // value of each row, in order. `validity` has one bit for each row. `strings` writes rows + 1
    // offsets that begin with 0, grow as the parts' own do, and end with the length of the data, in
    // which each string lies whole, as it does in its part.
    Ok(make_array(unsafe { joined.build_unchecked() }))
}

/// Values of `width` bytes.
fn fixed(parts: &[ArrayData], width: usize, arena: &mut Arena) -> Result<Buffer, ArrowError> {
    let values = |part: &ArrayData| part.offset() * width..(part.offset() + part.len()) * width;
    let slices = parts.iter().map(|part| &part.buffers()[0][values(part)]);
    copied(slices, arena)
}

/// Offsets and strings.
fn strings(parts: &[ArrayData], arena: &mut Arena) -> Result<Vec<Buffer>, ArrowError> {
    let ends = |part: &ArrayData| {
        let offsets = part.buffer::<i32>(0);
        (offsets[0], offsets[part.len()])
    };
    let mut offsets = Vec::with_capacity(parts.iter().map(ArrayData::len).sum::<usize>() + 1);
    let mut end = 0i32;
    offsets.push(0);
    for part in parts {
        let (first, last) = ends(part);
        let shift = end.wrapping_sub(first);
        end = end
            .checked_add(last - first)
            .ok_or(ArrowError::OffsetOverflowError(i32::MAX as usize))?;
        offsets.extend(
            part.buffer::<i32>(0)[1..=part.len()].iter().map(|offset| offset.wrapping_add(shift)),
        );
    }
    let data = parts.iter().map(|part| {
        let (first, last) = ends(part);
        // Offsets of a valid array are never negative.
        &part.buffers()[1][first as usize..last as usize]
    });
    let data = copied(data, arena)?;
    Ok(vec![copied([Buffer::from_vec(offsets).as_slice()].into_iter(), arena)?, data])
}

/// The validity bits; None if no value is NULL.
fn validity(parts: &[ArrayData], rows: usize) -> Option<Buffer> {
    if parts.iter().all(|part| part.null_count() == 0) {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(rows);
    for part in parts {
        match part.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(part.len(), true),
        }
    }
    Some(bits.finish().into_inner())
}

fn copied<'a>(
    slices: impl Iterator<Item = &'a [u8]> + Clone,
    arena: &mut Arena,
) -> Result<Buffer, ArrowError> {
    let bytes = slices.clone().map(<[u8]>::len).sum();
    let body = arena.receive(bytes, |mut rest| {
        for slice in slices {
            let (to, after) = rest.split_at_mut(slice.len());
            to.copy_from_slice(slice);
            rest = after;
        }
        debug_assert!(rest.is_empty(), "all bytes are copied");
        Ok::<_, NoMemory>(())
    });
    body.map(Buffer::from).map_err(|error| ArrowError::from_external_error(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Int32Array, ListArray,
    };
    use arrow::array::{NullArray, StringArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int32Type;

    fn batch(from: i32, rows: i32) -> RecordBatch {
        let each = || from..from + rows;
        let texts = |i: i32| (i % 3 > 0).then(|| "xyz".repeat(i as usize % 40));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("whole", Arc::new(each().collect::<Int32Array>())),
            ("sparse", Arc::new(each().map(|i| (i % 5 == 0).then_some(i)).collect::<Int32Array>())),
            ("late", Arc::new(each().map(|i| (i < 50_000).then_some(i)).collect::<Int32Array>())),
            (
                "wide",
                Arc::new(each().map(|i| Some(i128::from(i) << 70)).collect::<Decimal128Array>()),
            ),
            ("text", Arc::new(each().map(texts).collect::<StringArray>())),
            ("bytes", Arc::new(each().map(|i| Some(i.to_le_bytes())).collect::<BinaryArray>())),
            ("flag", Arc::new(each().map(|i| Some(i % 2 == 0)).collect::<BooleanArray>())),
            (
                "key",
                Arc::new(
                    FixedSizeBinaryArray::try_from_iter(each().map(i32::to_le_bytes)).unwrap(),
                ),
            ),
            ("none", Arc::new(NullArray::new(rows as usize))),
            (
                "list",
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
                    each().map(|i| Some([Some(i), None])),
                )),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    #[test]
    fn joined_as_arrow_does() {
        // One is a slice of its arrays, one is empty.
        let batches = [
            batch(0, 40_000),
            batch(40_000, 30_000).slice(10_001, 7_777),
            batch(9, 1).slice(1, 0),
            batch(80_000, 3),
        ];
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        let schema = batches[0].schema();
        for block_bytes in [0, 4 << 20] {
            let mut arena = Arena::default();
            arena.set_block_bytes(block_bytes);
            let joined = join(&schema, &batches, &mut arena).unwrap();
            joined.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            assert_eq!(joined, concat_batches(&schema, batches.iter().copied()).unwrap());
        }
    }

    #[test]
    fn rows_without_columns() {
        let batches = [batch(0, 3).project(&[]).unwrap(), batch(3, 4).project(&[]).unwrap()];
        let schema = batches[0].schema();
        let joined = join(&schema, &[&batches[0], &batches[1]], &mut Arena::default()).unwrap();
        assert_eq!((joined.num_rows(), joined.num_columns()), (7, 0));
    }
}
