//! Columns: `spec/chunk.md` sections 3 and 5.

use bytes::Bytes;

use super::gather::{
    BitWriter, Missing, concat_bits, fixed_bytes, gather_fixed, gather_lists, gather_strings,
    masked_child, name, narrow_width, same_entries, struct_child,
};
use crate::column::{Column, Values};
use crate::compress::Compression;
use crate::encode::{self, Bases, ColumnHistory};
use crate::error::{Error, Result, refuse};
use crate::expand::ones;
use crate::layout::fixed_list_total;
use crate::sink::Sinks;
use crate::types::{Field, Storage, Type};

/// Writes the columns of one chunk, in the order of the schema.
pub(super) struct ColumnWriter {
    pub(super) sinks: Sinks,
    bases: Bases,
}

impl ColumnWriter {
    pub(super) fn new(sinks: Sinks) -> Self {
        Self { sinks, bases: Bases::default() }
    }

    /// Writes the column of field `number` of the schema. It may be coded relative to those before
    /// it.
    pub(super) fn field(
        &mut self,
        number: usize,
        field: &Field,
        slices: Vec<Column>,
        n: usize,
        history: &mut ColumnHistory,
    ) -> Result<()> {
        let data_type = &field.data_type;
        if let Some(width) = data_type
            .width()
            .filter(|_| self.sinks.chunk.compression.encodes() && Bases::take(data_type))
            && narrow_width(&slices).is_none()
            && slices.iter().all(|slice| slice.missing() == 0)
        {
            self.sinks.chunk.descriptors.push(0);
            self.sinks.chunk.count(n, width);
            let values = gather_fixed(&slices, width, Missing::Zeroed)?;
            let (sinks, bases) = (&mut self.sinks, &self.bases);
            encode::fixed(sinks, history, data_type, width, values.clone(), bases)?;
            self.bases.push(number, width, values);
            return Ok(());
        }
        self.column(field, slices, n, history)
    }

    fn column(
        &mut self,
        field: &Field,
        slices: Vec<Column>,
        n: usize,
        history: &mut ColumnHistory,
    ) -> Result<()> {
        slices.iter().try_for_each(|slice| check_not_null(field, slice, 0))?;
        self.masked_column(field, slices, n, history)
    }

    /// Writes a column whose missing values have been checked. Within a struct or a fixed-size
    /// list, values under the parent's missing ones are missing too, or zero if the field is not
    /// nullable.
    fn masked_column(
        &mut self,
        field: &Field,
        slices: Vec<Column>,
        n: usize,
        history: &mut ColumnHistory,
    ) -> Result<()> {
        let storage = field.data_type.storage();
        if storage == Storage::Null {
            self.sinks.chunk.descriptors.push(3);
            return Ok(());
        }
        let missing: usize = slices.iter().map(Column::missing).sum();
        if missing == 0 || !field.nullable {
            self.sinks.chunk.descriptors.push(0);
            return self.values(&field.data_type, slices, n, Missing::Zeroed, history);
        }
        self.sinks.chunk.count(n.div_ceil(8), 1);
        if missing == n {
            self.sinks.chunk.descriptors.push(3);
            self.sinks.chunk.add_decoded(zero_bytes(&field.data_type, n)?);
            return Ok(());
        }
        let flat = matches!(storage, Storage::Boolean | Storage::Fixed(_) | Storage::Bytes { .. });
        let packed = match self.sinks.chunk.compression {
            Compression::None => false,
            Compression::Compact => flat && missing > n / 2,
            _ => flat,
        };
        let missing_values = if packed { Missing::LeftOut } else { Missing::Zeroed };
        self.sinks.chunk.descriptors.push(if packed { 2 } else { 1 });
        self.sinks.chunk.put_u32(missing)?;
        self.sinks
            .chunk
            .buffer(vec![Bytes::from(concat_bits(&slices, |slice| slice.validity.clone()))])?;
        self.values(&field.data_type, slices, n, missing_values, history)
    }

    /// Writes the values of a column of n rows.
    fn values(
        &mut self,
        data_type: &Type,
        slices: Vec<Column>,
        n: usize,
        missing_values: Missing,
        history: &mut ColumnHistory,
    ) -> Result<()> {
        match data_type.storage() {
            Storage::Null => Ok(()),
            Storage::Boolean => {
                self.sinks.chunk.count(n.div_ceil(8), 1);
                self.booleans(&slices, missing_values)
            }
            Storage::Fixed(width) => {
                self.sinks.chunk.count(n, width);
                if let Some(narrow) = narrow_width(&slices) {
                    let values = gather_fixed(&slices, narrow, missing_values)?;
                    return encode::narrow(&mut self.sinks, history, data_type, narrow, values);
                }
                if self.sinks.chunk.compression.encodes() {
                    let values = gather_fixed(&slices, width, missing_values)?;
                    let (sinks, bases) = (&mut self.sinks, Bases::default());
                    return encode::fixed(sinks, history, data_type, width, values, &bases);
                }
                self.sinks.chunk.descriptors.push(0);
                let missing =
                    slices.iter().any(|slice| slice.validity.is_some() && slice.missing() > 0);
                let parts = match missing {
                    true => vec![gather_fixed(&slices, width, missing_values)?],
                    false => slices
                        .iter()
                        .map(|slice| fixed_bytes(slice, width))
                        .collect::<Result<_>>()?,
                };
                self.sinks.chunk.buffer(parts)
            }
            Storage::Bytes { utf8 } => {
                self.sinks.chunk.count(n + 1, 4);
                let strings = gather_strings(&slices, missing_values)?;
                self.sinks.chunk.add_decoded(strings.data_bytes() as u64);
                if self.sinks.chunk.compression.encodes() {
                    return encode::strings(&mut self.sinks, history, strings, utf8);
                }
                self.sinks.chunk.descriptors.push(0);
                self.sinks.chunk.buffer(vec![strings.offsets])?;
                self.sinks.chunk.buffer(strings.data)
            }
            Storage::List | Storage::Map => {
                self.sinks.chunk.count(n + 1, 4);
                let (offsets, children, total) = gather_lists(&slices)?;
                if self.sinks.chunk.compression.encodes() {
                    encode::list_lengths(&mut self.sinks.chunk, &offsets)?;
                } else {
                    self.sinks.chunk.descriptors.push(0);
                    self.sinks.chunk.buffer(vec![Bytes::from(offsets)])?;
                }
                match data_type {
                    Type::List(item) => self.column(item, children, total, history.child(0)),
                    Type::Map { key, value, .. } => {
                        self.column(key, struct_child(&children, 0)?, total, history.child(0))?;
                        self.column(value, struct_child(&children, 1)?, total, history.child(1))
                    }
                    other => refuse!(Unsupported, "{other:?} is not a list"),
                }
            }
            Storage::FixedList(size) => {
                let Type::FixedList { item, .. } = data_type else {
                    refuse!(Unsupported, "not a fixed-size list")
                };
                let total = fixed_list_total(n, size)?;
                let children = slices.iter().map(|slice| match &slice.values {
                    Values::FixedList { child, .. } => masked_child(item, child, slice, size),
                    other => refuse!(Unsupported, "{} instead of a fixed-size list", name(other)),
                });
                let children = children.collect::<Result<_>>()?;
                self.masked_column(item, children, total, history.child(0))
            }
            Storage::Struct => {
                let Type::Struct(fields) = data_type else { refuse!(Unsupported, "not a struct") };
                for (i, field) in fields.iter().enumerate() {
                    let children = struct_child(&slices, i)?;
                    let masked = children
                        .iter()
                        .zip(&slices)
                        .map(|(child, parent)| masked_child(field, child, parent, 1));
                    let masked = masked.collect::<Result<_>>()?;
                    self.masked_column(field, masked, n, history.child(i))?;
                }
                Ok(())
            }
            Storage::Dictionary => self.dictionary(data_type, &slices, n, history),
        }
    }

    fn booleans(&mut self, slices: &[Column], missing_values: Missing) -> Result<()> {
        let mut out = BitWriter::default();
        for slice in slices {
            let Values::Boolean(bits) = &slice.values else {
                refuse!(Unsupported, "{} instead of booleans", name(&slice.values))
            };
            match &slice.validity {
                Some(validity) if missing_values == Missing::LeftOut => {
                    ones(validity).for_each(|i| out.push(u64::from(bits.bit(i)), 1))
                }
                Some(validity) => bits
                    .words()
                    .zip(validity.words())
                    .for_each(|((a, n), (b, _))| out.push(a & b, n)),
                None => bits.words().for_each(|(word, n)| out.push(word, n)),
            }
        }
        let (bytes, n) = out.finish();
        if self.sinks.chunk.compression.encodes() && n > 0 {
            let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            if set == 0 || set as usize == n {
                self.sinks.chunk.descriptors.extend_from_slice(&[1, u8::from(set > 0)]);
                return Ok(());
            }
        }
        self.sinks.chunk.descriptors.push(0);
        self.sinks.chunk.buffer(vec![Bytes::from(bytes)])
    }

    /// Writes values of a dictionary type. If slices have different entries, these are
    /// concatenated.
    fn dictionary(
        &mut self,
        data_type: &Type,
        slices: &[Column],
        n: usize,
        history: &mut ColumnHistory,
    ) -> Result<()> {
        let Type::Dictionary { index, value, .. } = data_type else {
            refuse!(Unsupported, "not a dictionary")
        };
        let mut dictionaries: Vec<&Column> = Vec::new();
        let mut starts = Vec::new();
        let mut count = 0usize;
        for slice in slices {
            let Values::Dictionary { entries, .. } = &slice.values else {
                refuse!(Unsupported, "{} instead of a dictionary", name(&slice.values))
            };
            if dictionaries.last().is_none_or(|last| !same_entries(last, entries)) {
                starts.push(count);
                count += entries.rows;
                dictionaries.push(entries);
            } else if let Some(start) = starts.last().copied() {
                starts.push(start);
            }
        }
        self.sinks.chunk.put_u32(count)?;
        self.column(
            &value.entries_field(),
            dictionaries.into_iter().cloned().collect(),
            count,
            history.child(0),
        )?;
        let width = index.width().unwrap_or(0);
        self.sinks.chunk.count(n, width);
        let mut indexes = Vec::with_capacity(n * width);
        for (slice, start) in slices.iter().zip(starts) {
            let gathered = gather_fixed(std::slice::from_ref(slice), width, Missing::Zeroed)?;
            if start == 0 {
                indexes.extend_from_slice(&gathered);
                continue;
            }
            for (i, raw) in gathered.chunks_exact(width).enumerate() {
                let mut wide = [0; 8];
                wide[..width].copy_from_slice(raw);
                let moved =
                    if slice.is_valid(i) { u64::from_le_bytes(wide) + start as u64 } else { 0 };
                let signed =
                    !matches!(**index, Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64);
                if moved >> (8 * width - usize::from(signed)).min(63) != 0 {
                    refuse!(
                        Unsupported,
                        "the dictionaries of one column have {count} entries, \
                         more than its index can count"
                    );
                }
                indexes.extend_from_slice(&moved.to_le_bytes()[..width]);
            }
        }
        if self.sinks.chunk.compression.encodes() {
            return encode::integers(&mut self.sinks.chunk, Bytes::from(indexes), width);
        }
        self.sinks.chunk.descriptors.push(0);
        self.sinks.chunk.buffer(vec![Bytes::from(indexes)])
    }
}

/// Checks that a column that is not nullable has no missing values, apart from `hidden` ones that
/// are missing because of a parent.
pub(super) fn check_not_null(field: &Field, column: &Column, hidden: usize) -> Result<()> {
    if !field.nullable && field.data_type != Type::Null && column.missing() > hidden {
        let missing = column.missing() - hidden;
        refuse!(
            Missing,
            "column {:?} is declared NOT NULL, and {missing} of its values are NULL",
            field.name
        );
    }
    Ok(())
}

/// The bytes that n missing values of a type decode to, without their own bitmap (chunk.md section
/// 5).
fn zero_bytes(data_type: &Type, n: usize) -> Result<u64> {
    let n64 = n as u64;
    Ok(match data_type {
        Type::Null => 0,
        Type::Boolean => n64.div_ceil(8),
        Type::Utf8 | Type::Binary => (n64 + 1) * 4,
        Type::List(item) => (n64 + 1) * 4 + zero_bytes(&item.data_type, 0)?,
        Type::Map { key, value, .. } => {
            (n64 + 1) * 4 + zero_bytes(&key.data_type, 0)? + zero_bytes(&value.data_type, 0)?
        }
        Type::FixedList { size, item } => {
            zero_bytes(&item.data_type, fixed_list_total(n, *size as usize)?)?
        }
        Type::Struct(fields) => fields
            .iter()
            .try_fold(0, |sum, field| Ok::<_, Error>(sum + zero_bytes(&field.data_type, n)?))?,
        Type::Dictionary { index, value, .. } => {
            n64 * index.width().unwrap_or(0) as u64 + zero_bytes(value, 0)?
        }
        fixed => n64 * fixed.width().unwrap_or(0) as u64,
    })
}
