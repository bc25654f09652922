//! Table 6: columns of 32-bit integers, bit-packed or with a patched frame of reference (PFOR).
//!
//! Blocks have 128 values, as in the library that the paper used. The least integer stands for a
//! missing value, as in the paper.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use bitpacking::{BitPacker, BitPacker4x};
use bytes::Bytes;

use crate::Result;
use crate::codec::{AnyCodec, Codec, Compressed, Input};
use crate::column::{ColumnView, MISSING_I32, ValueBuffer, Values, array, fill_missing, validity};
use crate::compressors::Compressor;
use crate::dray::{self, Dray};
use crate::row_major::ColumnMajor;

const BLOCK: usize = BitPacker4x::BLOCK_LEN;
/// Bytes of an exception: one for its position in the block, and four for its value.
const EXCEPTION_BYTES: usize = 5;

/// The packing of a block of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As many bits per value as the largest one needs. A negative value needs 32.
    Bits,
    /// Offsets from the least value. Values that need too many bits follow as exceptions.
    Pfor,
}

/// A codec for integer columns, stored one after another.
pub struct IntegerColumns {
    schema: SchemaRef,
    packing: Packing,
}

impl Codec for IntegerColumns {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let mut out = Vec::with_capacity(rows.num_rows() * rows.num_columns() * 4);
        out.extend_from_slice(&u32::try_from(rows.num_rows())?.to_le_bytes());
        for column in ColumnView::of(rows)? {
            let Values::Int32(values) = column.values else {
                return Err("expected columns of 32-bit integers".into());
            };
            match column.nulls {
                None => pack(values, self.packing, &mut out),
                Some(nulls) => {
                    pack(&fill_missing(values, nulls, MISSING_I32), self.packing, &mut out)
                }
            }
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut input = Input(&message);
        let rows = input.u32()?;
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let values = unpack(&mut input, rows, self.packing)?;
            let nulls = if field.is_nullable() { validity(&values, MISSING_I32) } else { None };
            arrays.push(array(ValueBuffer::Int32(values), nulls, field.data_type())?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

/// Appends values in blocks. Values after the last full block are not packed.
pub fn pack(values: &[i32], packing: Packing, out: &mut Vec<u8>) {
    let packer = BitPacker4x::new();
    let (blocks, tail) = values.as_chunks::<BLOCK>();
    for block in blocks {
        match packing {
            Packing::Bits => {
                let block = block.map(|value| value as u32);
                let bits = packer.num_bits(&block);
                out.push(bits);
                put_bits(&packer, &block, bits, out);
            }
            Packing::Pfor => pack_pfor(&packer, block, out),
        }
    }
    out.extend(tail.iter().flat_map(|value| value.to_le_bytes()));
}

fn put_bits(packer: &BitPacker4x, block: &[u32; BLOCK], bits: u8, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + BitPacker4x::compressed_block_size(bits), 0);
    packer.compress(block, &mut out[at..], bits);
}

/// Appends a block: bits, number of exceptions, reference, packed offsets, positions of exceptions,
/// values of exceptions.
fn pack_pfor(packer: &BitPacker4x, block: &[i32; BLOCK], out: &mut Vec<u8>) {
    // As the reference, the reserved value would make every offset wide. It is an exception.
    let reference = block.iter().copied().filter(|value| *value != MISSING_I32).min().unwrap_or(0);
    let mut offsets = block.map(|value| value.wrapping_sub(reference) as u32);
    let mut wider = [0usize; 34];
    offsets.iter().for_each(|offset| wider[(32 - offset.leading_zeros()) as usize] += 1);
    // The number of offsets that need more than `bits` bits.
    let mut exceptions = 0;
    let mut best = (usize::MAX, 32u8);
    for bits in (0..=32u8).rev() {
        let bytes = BitPacker4x::compressed_block_size(bits) + exceptions * EXCEPTION_BYTES;
        best = best.min((bytes, bits));
        exceptions += wider[usize::from(bits)];
    }
    let bits = best.1;
    let mut positions = Vec::new();
    for (i, offset) in offsets.iter_mut().enumerate() {
        if u64::from(*offset) >> bits != 0 {
            positions.push(i as u8);
            *offset = 0;
        }
    }
    out.extend([bits, positions.len() as u8]);
    out.extend(reference.to_le_bytes());
    put_bits(packer, &offsets, bits, out);
    out.extend_from_slice(&positions);
    out.extend(positions.iter().flat_map(|i| block[usize::from(*i)].to_le_bytes()));
}

/// Unpacks `rows` values that [`pack`] wrote.
///
/// # Errors
/// If the input is too short, or a block is malformed.
pub fn unpack(input: &mut Input<'_>, rows: usize, packing: Packing) -> Result<Vec<i32>> {
    let packer = BitPacker4x::new();
    let mut values = Vec::with_capacity(rows);
    let mut unpacked = [0; BLOCK];
    for _ in 0..rows / BLOCK {
        let [bits] = input.array()?;
        let (exceptions, reference) = match packing {
            Packing::Bits => (0, 0),
            Packing::Pfor => {
                let [exceptions] = input.array()?;
                (usize::from(exceptions), i32::from_le_bytes(input.array()?))
            }
        };
        if bits > 32 {
            return Err(format!("expected at most 32 bits per value, found {bits}").into());
        }
        packer.decompress(
            input.take(BitPacker4x::compressed_block_size(bits))?,
            &mut unpacked,
            bits,
        );
        let start = values.len();
        values.extend(unpacked.iter().map(|offset| reference.wrapping_add(*offset as i32)));
        let positions = input.take(exceptions)?;
        for position in positions {
            let value = i32::from_le_bytes(input.array()?);
            *values
                .get_mut(start + usize::from(*position))
                .ok_or("an exception lies outside its block")? = value;
        }
    }
    for _ in 0..rows % BLOCK {
        values.push(i32::from_le_bytes(input.array()?));
    }
    Ok(values)
}

/// The columns of the experiment: 32-bit integers, and lineitem's decimals as such.
///
/// # Errors
/// If a decimal does not fit 32 bits.
pub fn project(rows: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
        // The paper counts lineitem's decimals as integer columns, but not those of ontime.
        let counted = match field.data_type() {
            DataType::Int32 => Some(array.clone()),
            DataType::Decimal128(..) if field.name().starts_with("l_") => Some(unscaled(array)?),
            _ => None,
        };
        if let Some(array) = counted {
            fields.push(arrow_schema::Field::new(
                field.name(),
                DataType::Int32,
                field.is_nullable(),
            ));
            arrays.push(array);
        }
    }
    Ok(RecordBatch::try_new(arrow_schema::Schema::new(fields).into(), arrays)?)
}

fn unscaled(array: &arrow_array::ArrayRef) -> Result<arrow_array::ArrayRef> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, Int32Type};
    let narrow = array.as_primitive::<Decimal128Type>().try_unary::<_, Int32Type, _>(|value| {
        i32::try_from(value).map_err(|error| arrow_schema::ArrowError::CastError(error.to_string()))
    })?;
    Ok(std::sync::Arc::new(narrow))
}

/// The paper's six formats, and Dray's.
///
/// # Errors
/// If Dray does not support the schema.
pub fn cases(schema: &SchemaRef) -> Result<Vec<(String, AnyCodec)>> {
    let mut cases: Vec<(String, AnyCodec)> = Vec::new();
    for with_snappy in [false, true] {
        for packing in [None, Some(Packing::Bits), Some(Packing::Pfor)] {
            let inner: AnyCodec = match packing {
                None => Box::new(ColumnMajor::new(schema)),
                Some(packing) => Box::new(IntegerColumns { schema: schema.clone(), packing }),
            };
            let name = match (packing, with_snappy) {
                (None, false) => "None",
                (None, true) => "Snappy",
                (Some(Packing::Bits), false) => "Binpack",
                (Some(Packing::Bits), true) => "Binpack+Sy",
                (Some(Packing::Pfor), false) => "PFOR",
                (Some(Packing::Pfor), true) => "PFOR+Sy",
            };
            let codec = if with_snappy {
                Box::new(Compressed { inner, compressor: Compressor::Snappy })
            } else {
                inner
            };
            cases.push((name.to_owned(), codec));
        }
    }
    for (name, compression) in [dray::COMPRESSIONS[1], dray::COMPRESSIONS[3]] {
        cases.push((format!("Dray {name}"), Box::new(Dray::new(schema, compression)?)));
    }
    Ok(cases)
}
