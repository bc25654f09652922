//! Columns whose values are all missing: a chunk does not carry their zeros.

use bytes::Bytes;

use super::{Destination, Reader};
use crate::column::{Bitmap, Column, Values};
use crate::error::{Result, refuse};
use crate::layout::fixed_list_total;
use crate::types::Type;

impl Reader<'_, '_> {
    /// The zeros under n missing values.
    pub(super) fn zero_values(&mut self, data_type: &Type, n: usize) -> Result<Values> {
        Ok(match data_type {
            Type::Null => {
                self.weightless(n)?;
                Values::Null
            }
            Type::Boolean => Values::Boolean(Bitmap {
                bytes: self.charged_zeros(n.div_ceil(8), 1)?,
                offset: 0,
                len: n,
            }),
            Type::Utf8 | Type::Binary => {
                Values::Bytes { offsets: self.charged_zeros(n + 1, 4)?, data: Bytes::new() }
            }
            Type::List(item) => Values::List {
                offsets: self.charged_zeros(n + 1, 4)?,
                child: Box::new(self.zeros_of(&item.data_type, 0)?),
            },
            Type::Map { key, value, .. } => {
                let offsets = self.charged_zeros(n + 1, 4)?;
                let children =
                    vec![self.zeros_of(&key.data_type, 0)?, self.zeros_of(&value.data_type, 0)?];
                let child =
                    Box::new(Column { rows: 0, validity: None, values: Values::Struct(children) });
                Values::List { offsets, child }
            }
            Type::FixedList { size, item } => {
                let total = fixed_list_total(n, *size as usize)?;
                if *size == 0 {
                    self.weightless(n)?;
                }
                Values::FixedList {
                    size: *size as usize,
                    child: Box::new(self.zeros_of(&item.data_type, total)?),
                }
            }
            Type::Struct(fields) => {
                if fields.is_empty() {
                    self.weightless(n)?;
                }
                Values::Struct(
                    fields
                        .iter()
                        .map(|field| self.zeros_of(&field.data_type, n))
                        .collect::<Result<_>>()?,
                )
            }
            Type::Dictionary { index, value, .. } => {
                let Some(width) = index.width() else {
                    refuse!(Schema, "a dictionary's index has no width")
                };
                let indexes = self.charged_zeros(n, width)?;
                Values::Dictionary { width, indexes, entries: Box::new(self.zeros_of(value, 0)?) }
            }
            fixed => {
                let Some(width) = fixed.width() else { refuse!(Schema, "{fixed:?} has no width") };
                Values::Fixed { width, bytes: self.charged_zeros(n, width)? }
            }
        })
    }

    fn charged_zeros(&mut self, count: usize, bytes: usize) -> Result<Bytes> {
        let bytes = self.charge(count, bytes)?;
        self.zeros(bytes, Destination::Column).finish()
    }

    fn zeros_of(&mut self, data_type: &Type, n: usize) -> Result<Column> {
        Ok(Column { rows: n, validity: None, values: self.zero_values(data_type, n)? })
    }
}
