//! Columns: `spec/chunk.md` section 3.

use bytes::Bytes;

use super::checks::check_offsets;
use super::fixed::Codes;
use super::{Destination, Reader, relative};
use crate::column::{Bitmap, Column, Values};
use crate::error::{Result, refuse};
use crate::expand::{expand_bits, expand_fixed, expand_offsets};
use crate::layout::{check_count, fixed_list_total};
use crate::types::{Field, Storage, Type};

impl Reader<'_, '_> {
    /// The column of a field of the schema. `earlier` are the columns before it.
    pub(super) fn field(&mut self, field: &Field, n: usize, earlier: &[Column]) -> Result<Column> {
        if let Storage::Fixed(width) = field.data_type.storage()
            && let Ok([0, relative::CODE]) = self.descriptors.clone().take(2, "nulls and encoding")
        {
            return self.relative(n, width, earlier);
        }
        self.column(field, n)
    }

    fn column(&mut self, field: &Field, n: usize) -> Result<Column> {
        let nulls = self.descriptors.u8("nulls")?;
        let storage = field.data_type.storage();
        if storage == Storage::Null {
            if nulls != 3 {
                refuse!(Code, "nulls code {nulls} for the type null, expected 3");
            }
            self.weightless(n)?;
            return Ok(Column { rows: n, validity: None, values: Values::Null });
        }
        let packable =
            matches!(storage, Storage::Boolean | Storage::Fixed(_) | Storage::Bytes { .. });
        if nulls > 3 || nulls != 0 && n == 0 || nulls == 2 && !packable {
            refuse!(Code, "nulls code {nulls} for {n} values of type {:?}", field.data_type);
        }
        if nulls == 0 {
            let values = self.values(&field.data_type, n, n)?;
            let column = Column { rows: n, validity: None, values };
            check_dictionary(&field.data_type, &column)?;
            return Ok(column);
        }
        if !field.nullable {
            refuse!(Missing, "values of {:?}, which is not nullable, are missing", field.name);
        }
        let bitmap_bytes = self.charge(n.div_ceil(8), 1)?;
        if nulls == 3 {
            self.note("missing");
            let bytes = self.zeros(bitmap_bytes, Destination::Column).finish()?;
            let validity = Some(Bitmap { bytes, offset: 0, len: n });
            return Ok(Column {
                rows: n,
                validity,
                values: self.zero_values(&field.data_type, n)?,
            });
        }
        let missing = self.descriptors.u32("missing")? as usize;
        if missing == 0 || missing > n {
            refuse!(Missing, "{missing} of {n} values announced as missing");
        }
        let validity = Bitmap { bytes: self.bits(n, Destination::Column)?, offset: 0, len: n };
        if missing != n - validity.ones() {
            refuse!(
                Missing,
                "{missing} missing values announced, the bitmap has {}",
                n - validity.ones()
            );
        }
        let values = if nulls == 1 {
            self.values(&field.data_type, n, n)?
        } else {
            self.packed_values(&field.data_type, &validity, n - missing)?
        };
        let column = Column { rows: n, validity: Some(validity), values };
        check_dictionary(&field.data_type, &column)?;
        Ok(column)
    }

    /// A buffer of n bits. The bits after them are 0.
    fn bits(&mut self, n: usize, to: Destination) -> Result<Bytes> {
        let bits = self.buffer(n.div_ceil(8), to)?;
        if !n.is_multiple_of(8) && bits[n / 8] >> (n % 8) != 0 {
            refuse!(Bitmap, "bits are set past the {n} of a bitmap");
        }
        Ok(bits)
    }

    /// The values of a column without its missing ones, moved to their rows.
    fn packed_values(
        &mut self,
        data_type: &Type,
        validity: &Bitmap,
        present: usize,
    ) -> Result<Values> {
        let n = validity.len;
        self.note("packed nulls");
        Ok(match self.values(data_type, present, n)? {
            Values::Boolean(bits) => Values::Boolean(expand_bits(&bits, validity)),
            Values::Fixed { width, bytes } => {
                let mut output = self.zeros(n * width, Destination::Column);
                expand_fixed(&bytes, width, validity, output.written());
                Values::Fixed { width, bytes: output.finish()? }
            }
            Values::Bytes { offsets, data } => {
                let mut output = self.output((n + 1) * 4, Destination::Column)?;
                output.append(|out| expand_offsets(&offsets, validity, out));
                Values::Bytes { offsets: output.finish()?, data }
            }
            other => other,
        })
    }

    /// The `n` values that the chunk has for a column of `rows` rows. With fewer values than rows,
    /// the missing ones are left out.
    fn values(&mut self, data_type: &Type, n: usize, rows: usize) -> Result<Values> {
        let to = if n == rows { Destination::Column } else { Destination::Scratch };
        match data_type.storage() {
            Storage::Null => Ok(Values::Null),
            Storage::Boolean => {
                self.charge(rows.div_ceil(8), 1)?;
                self.booleans(n, to)
            }
            Storage::Fixed(width) => {
                self.charge(rows, width)?;
                Ok(Values::Fixed { width, bytes: self.fixed(n, width, Codes::VALUES, to)? })
            }
            Storage::Bytes { utf8 } => {
                self.charge(rows + 1, 4)?;
                self.strings(n, utf8, to)
            }
            Storage::List | Storage::Map => {
                self.charge(rows + 1, 4)?;
                let (offsets, total) = match self.descriptors.u8("list encoding")? {
                    0 => {
                        let offsets = self.buffer((n + 1) * 4, Destination::Column)?;
                        let total = check_offsets(&offsets)?;
                        (offsets, total)
                    }
                    2 => self.offsets_of_lengths(n, Destination::Column)?,
                    code => refuse!(Code, "unknown list encoding {code}"),
                };
                let child = match data_type {
                    Type::Map { key, value, .. } => {
                        let children = vec![self.column(key, total)?, self.column(value, total)?];
                        Column { rows: total, validity: None, values: Values::Struct(children) }
                    }
                    Type::List(item) => self.column(item, total)?,
                    other => refuse!(Schema, "{other:?} is not a list"),
                };
                Ok(Values::List { offsets, child: Box::new(child) })
            }
            Storage::FixedList(size) => {
                let Type::FixedList { item, .. } = data_type else {
                    refuse!(Schema, "not a fixed-size list")
                };
                let total = fixed_list_total(n, size)?;
                if size == 0 {
                    self.weightless(n)?;
                }
                Ok(Values::FixedList { size, child: Box::new(self.column(item, total)?) })
            }
            Storage::Struct => {
                let Type::Struct(fields) = data_type else { refuse!(Schema, "not a struct") };
                if fields.is_empty() {
                    self.weightless(n)?;
                }
                Ok(Values::Struct(
                    fields.iter().map(|field| self.column(field, n)).collect::<Result<_>>()?,
                ))
            }
            Storage::Dictionary => self.dictionary_type(data_type, n, rows),
        }
    }

    fn booleans(&mut self, n: usize, to: Destination) -> Result<Values> {
        let bytes = match self.descriptors.u8("boolean encoding")? {
            0 => self.bits(n, to)?,
            1 => {
                self.note("constant");
                let value = self.descriptors.u8("boolean constant")?;
                if value > 1 || n == 0 {
                    refuse!(Constant, "boolean constant {value} for {n} values");
                }
                let mut output = self.zeros(n.div_ceil(8), to);
                if value == 1 {
                    let bits = output.written();
                    bits.fill(0xFF);
                    if !n.is_multiple_of(8) {
                        bits[n / 8] = (1 << (n % 8)) - 1;
                    }
                }
                output.finish()?
            }
            code => refuse!(Code, "unknown boolean encoding {code}"),
        };
        Ok(Values::Boolean(Bitmap { bytes, offset: 0, len: n }))
    }

    fn dictionary_type(&mut self, data_type: &Type, n: usize, rows: usize) -> Result<Values> {
        let Type::Dictionary { index, value, .. } = data_type else {
            refuse!(Schema, "not a dictionary")
        };
        let Some(width) = index.width() else {
            refuse!(Schema, "a dictionary's index has no width")
        };
        let count = self.descriptors.u32("count")? as usize;
        check_count(count)?;
        let entries = self.column(&value.entries_field(), count)?;
        self.charge(rows, width)?;
        let indexes = self.fixed(n, width, Codes::PARTS, Destination::Column)?;
        Ok(Values::Dictionary { width, indexes, entries: Box::new(entries) })
    }
}

/// Checks the indexes of a column of a dictionary type. Those under missing values are arbitrary.
fn check_dictionary(data_type: &Type, column: &Column) -> Result<()> {
    let (Type::Dictionary { index, .. }, Values::Dictionary { width, indexes, entries }) =
        (data_type, &column.values)
    else {
        return Ok(());
    };
    // Read as unsigned, a negative index has its highest bit set, and is out of range too.
    let signed = matches!(**index, Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64);
    let end = (entries.rows as u64).min(if signed { 1 << (width * 8 - 1) } else { u64::MAX });
    for (i, raw) in indexes.chunks_exact(*width).take(column.rows).enumerate() {
        let mut wide = [0; 8];
        wide[..*width].copy_from_slice(raw);
        let index = u64::from_le_bytes(wide);
        if index >= end && column.is_valid(i) {
            refuse!(Index, "index {index} into a dictionary of {} entries", entries.rows);
        }
    }
    Ok(())
}
