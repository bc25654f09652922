//! Tables 8 and 9: layouts of a column of strings.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::Result;
use crate::codec::{AnyCodec, Codec, Compressed, Input, put_varint};
use crate::column::{ColumnBuilder, ValueBuffer, text};
use crate::compressors::Compressor;
use crate::dray::{self, Dray};
use crate::integers::{Packing, pack, unpack};
use crate::row_major::ColumnMajor;

/// The paper's two columns of lineitem, and the declared widths it compares.
pub const COLUMNS: [(&str, &[usize]); 2] =
    [("l_returnflag", &[1]), ("l_comment", &[44, 100, 1000, 10000])];

/// How a column represents the lengths of its strings.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// A varint before each string.
    VarintPrefix,
    /// Four bytes before each string.
    LengthPrefix,
    /// None: each string is padded with zeros to this width.
    Width(usize),
    /// All lengths, bit-packed, before the strings.
    PackedLengths,
    /// Distinct zero-terminated strings, then the index of each value, bit-packed.
    Dictionary,
}

/// A codec for one column of strings without missing values.
struct Strings {
    schema: SchemaRef,
    layout: Layout,
}

impl Codec for Strings {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let strings = rows.column(0).as_string();
        let count = rows.num_rows();
        let mut out = Vec::with_capacity(4 + count * self.row_bytes(strings));
        out.extend_from_slice(&u32::try_from(count)?.to_le_bytes());
        let values = (0..count).map(|row| text(strings, row));
        match self.layout {
            Layout::VarintPrefix => values.for_each(|value| {
                put_varint(&mut out, value.len() as u64);
                out.extend_from_slice(value);
            }),
            Layout::LengthPrefix => values.for_each(|value| {
                out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                out.extend_from_slice(value);
            }),
            Layout::Width(width) => {
                let offsets = &strings.value_offsets()[..=count];
                if width == 1 && offsets.windows(2).all(|pair| pair[1] - pair[0] == 1) {
                    out.extend_from_slice(
                        &strings.value_data()[offsets[0] as usize..offsets[count] as usize],
                    );
                    return Ok(vec![out.into()]);
                }
                for value in values {
                    let end = out.len() + width;
                    if value.len() > width {
                        return Err(format!(
                            "a string of {} bytes in VARCHAR({width})",
                            value.len()
                        )
                        .into());
                    }
                    out.extend_from_slice(value);
                    out.resize(end, 0);
                }
            }
            Layout::PackedLengths => {
                let offsets = &strings.value_offsets()[..=count];
                let lengths: Vec<_> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
                pack(&lengths, Packing::Bits, &mut out);
                out.extend_from_slice(
                    &strings.value_data()[offsets[0] as usize..offsets[count] as usize],
                );
            }
            Layout::Dictionary => {
                let mut entries = HashMap::new();
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                let mut numbers = Vec::with_capacity(count);
                for value in values {
                    let next = entries.len() as i32;
                    numbers.push(*entries.entry(value).or_insert_with(|| {
                        out.extend_from_slice(value);
                        out.push(0);
                        next
                    }));
                }
                out[at..at + 4].copy_from_slice(&(entries.len() as u32).to_le_bytes());
                pack(&numbers, Packing::Bits, &mut out);
            }
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut input = Input(&message);
        let rows = input.u32()?;
        let mut column = ColumnBuilder::new(self.schema.field(0), rows)?;
        match self.layout {
            Layout::VarintPrefix => {
                for _ in 0..rows {
                    let length = usize::try_from(input.varint()?)?;
                    column.push_text(input.take(length)?);
                }
            }
            Layout::LengthPrefix => {
                for _ in 0..rows {
                    let length = input.u32()?;
                    column.push_text(input.take(length)?);
                }
            }
            Layout::Width(1) if memchr::memchr(0, input.0).is_none() => {
                column.values =
                    ValueBuffer::Text((0..=rows as i32).collect(), input.take(rows)?.to_vec());
            }
            Layout::Width(width) => {
                for _ in 0..rows {
                    let value = input.take(width)?;
                    column.push_text(&value[..memchr::memchr(0, value).unwrap_or(width)]);
                }
            }
            Layout::PackedLengths => {
                for length in unpack(&mut input, rows, Packing::Bits)? {
                    column.push_text(input.take(usize::try_from(length)?)?);
                }
            }
            Layout::Dictionary => {
                let count = input.u32()?;
                let entries = (0..count).map(|_| input.terminated()).collect::<Result<Vec<_>>>()?;
                for number in unpack(&mut input, rows, Packing::Bits)? {
                    column.push_text(entries.get(number as usize).ok_or("no such entry")?);
                }
            }
        }
        Ok(RecordBatch::try_new(self.schema.clone(), vec![column.finish()?])?)
    }
}

impl Strings {
    /// An estimate of the bytes of a row, so that the message is allocated once.
    fn row_bytes(&self, strings: &StringArray) -> usize {
        match self.layout {
            Layout::Width(width) => width,
            _ => 5 + (strings.value_data().len() / strings.len().max(1)),
        }
    }
}

/// The name and codec of a layout, and the bytes of a row if its width is fixed.
pub type StringCase = (String, AnyCodec, Option<usize>);

/// Every layout of a column, plain and under Snappy, and Dray's.
///
/// # Errors
/// If Dray does not support the schema.
pub fn cases(schema: &SchemaRef, widths: &[usize]) -> Result<Vec<StringCase>> {
    let mut layouts: Vec<(String, Option<Layout>)> = vec![
        ("Null-Terminated".into(), None),
        ("Varint Prefix".into(), Some(Layout::VarintPrefix)),
        ("4-byte Prefix".into(), Some(Layout::LengthPrefix)),
    ];
    layouts.extend(
        widths.iter().map(|width| (format!("VARCHAR({width})"), Some(Layout::Width(*width)))),
    );
    layouts.push(("Packed lengths".into(), Some(Layout::PackedLengths)));
    layouts.push(("Dictionary".into(), Some(Layout::Dictionary)));
    let mut cases = Vec::new();
    for (name, layout) in layouts {
        let codec = || -> AnyCodec {
            match layout {
                None => Box::new(ColumnMajor::new(schema)),
                Some(layout) => Box::new(Strings { schema: schema.clone(), layout }),
            }
        };
        let row_bytes = match layout {
            Some(Layout::Width(width)) => Some(width),
            _ => None,
        };
        let compressed = Compressed { inner: codec(), compressor: Compressor::Snappy };
        cases.push((name.clone(), codec(), row_bytes));
        cases.push((format!("{name} +C"), Box::new(compressed), row_bytes));
    }
    let offsets = || Dray::new(schema, dray::COMPRESSIONS[0].1);
    cases.push(("Arrow offsets".into(), Box::new(offsets()?), None));
    let compressed = Compressed { inner: Box::new(offsets()?), compressor: Compressor::Snappy };
    cases.push(("Arrow offsets +C".into(), Box::new(compressed), None));
    cases.push(("Dray light".into(), Box::new(Dray::new(schema, dray::COMPRESSIONS[1].1)?), None));
    Ok(cases)
}
