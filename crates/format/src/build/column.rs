//! The builder of one column.

use std::sync::Arc;

use super::buffer::{Budget, Buffer, Take};
use super::dictionary::Dictionary;
use crate::column::{Bitmap, Column, Values};
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::COUNT_MAX;
use crate::types::{Field, Storage, Type};

/// Builds one column, value by value.
#[derive(Debug)]
pub struct ColumnBuilder {
    rows: usize,
    nullable: bool,
    /// A bit per value, 1 where it is present; empty while all are.
    validity: Buffer,
    slots: Slots,
}

#[derive(Debug)]
enum Slots {
    Null,
    Boolean(Buffer),
    Fixed { width: usize, bytes: Buffer },
    Bytes { offsets: Buffer, data: Buffer },
    List { offsets: Buffer, item: Box<ColumnBuilder> },
    Struct(Vec<ColumnBuilder>),
    Dictionary(Dictionary),
}

impl ColumnBuilder {
    pub(super) fn new(field: &Field, budget: &Arc<Budget>) -> Result<Self> {
        let buffer = || Buffer::new(budget);
        let slots = match (field.data_type.storage(), &field.data_type) {
            (Storage::Null, _) => Slots::Null,
            (Storage::Boolean, _) => Slots::Boolean(buffer()),
            (Storage::Fixed(width), _) => Slots::Fixed { width, bytes: buffer() },
            (Storage::Bytes { .. }, _) => Slots::Bytes { offsets: buffer(), data: buffer() },
            (Storage::List, Type::List(item)) => {
                Slots::List { offsets: buffer(), item: Box::new(Self::new(item, budget)?) }
            }
            (Storage::Map, Type::Map { key, value, .. }) => {
                // A map is a list of pairs.
                let fields = vec![Self::new(key, budget)?, Self::new(value, budget)?];
                let pair = Self {
                    rows: 0,
                    nullable: false,
                    validity: buffer(),
                    slots: Slots::Struct(fields),
                };
                Slots::List { offsets: buffer(), item: Box::new(pair) }
            }
            (Storage::Struct, Type::Struct(fields)) => Slots::Struct(
                fields.iter().map(|field| Self::new(field, budget)).collect::<Result<_>>()?,
            ),
            (Storage::Dictionary, Type::Dictionary { index, value, .. })
                if (&**index, &**value) == (&Type::Int32, &Type::Utf8) =>
            {
                Slots::Dictionary(Dictionary::new(budget))
            }
            (_, other) => refuse!(
                Unsupported,
                "column {:?}: {other:?} is not built value by value",
                field.name
            ),
        };
        Ok(Self { rows: 0, nullable: field.nullable, validity: buffer(), slots })
    }

    /// How many values there are.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Checks for an interrupt. Call it between the parts of a value that may have very many.
    ///
    /// # Errors
    /// When building was interrupted. The value is then incomplete, and the batch unusable.
    #[inline]
    pub fn check_interrupts(&self) -> Result<()> {
        if self.validity.budget.interrupted.is_some_and(|interrupted| interrupted()) {
            refuse!(Limit, "interrupted");
        }
        Ok(())
    }

    /// Appends a missing value.
    ///
    /// # Errors
    /// When the column is not nullable, or memory is short.
    pub fn push_null(&mut self) -> Result<()> {
        if !self.nullable {
            refuse!(Missing, "a value is NULL in a column that was declared NOT NULL");
        }
        self.push_zero()
    }

    /// Appends a missing value with zeros under it, whether or not the column is nullable.
    fn push_zero(&mut self) -> Result<()> {
        if !matches!(self.slots, Slots::Null) {
            self.mark_missing()?;
        }
        match &mut self.slots {
            Slots::Null => {}
            Slots::Boolean(bits) => push_bit(bits, self.rows, false)?,
            Slots::Fixed { width, bytes } => {
                bytes.reserve(*width)?;
                bytes.bytes.resize(bytes.len() + *width, 0);
            }
            Slots::Bytes { offsets, data } => push_offset(offsets, data.len())?,
            Slots::List { offsets, item } => push_offset(offsets, item.rows)?,
            Slots::Struct(fields) => fields.iter_mut().try_for_each(Self::push_zero)?,
            Slots::Dictionary(dictionary) => dictionary.push_zero()?,
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends a boolean.
    ///
    /// # Errors
    /// When the column is of another type, or memory is short.
    #[inline]
    pub fn push_boolean(&mut self, value: bool) -> Result<()> {
        let Slots::Boolean(bits) = &mut self.slots else { return Err(unfit("a boolean")) };
        push_bit(bits, self.rows, value)?;
        self.count()
    }

    /// Appends a value of fixed width, little-endian.
    ///
    /// # Errors
    /// When the column is of another type or width, or memory is short.
    #[inline]
    pub fn push_fixed<const N: usize>(&mut self, value: [u8; N]) -> Result<()> {
        match &mut self.slots {
            Slots::Fixed { width, bytes } if *width == N => {
                bytes.reserve(N)?;
                bytes.bytes.extend_from_slice(&value);
            }
            _ => return Err(unfit("a value of fixed width")),
        }
        self.count()
    }

    /// Appends a string or binary value. A dictionary keeps equal strings once.
    ///
    /// # Errors
    /// When the column is of another type, its strings are over 2 GiB, or memory is short.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) -> Result<()> {
        let Slots::Bytes { offsets, data } = &mut self.slots else { return self.push_entry(value) };
        push_offset(offsets, data.len())?;
        data.reserve(value.len())?;
        data.bytes.extend_from_slice(value);
        self.count()
    }

    fn push_entry(&mut self, value: &[u8]) -> Result<()> {
        let Slots::Dictionary(entries) = &mut self.slots else { return Err(unfit("a string")) };
        entries.push(value)?;
        self.count()
    }

    /// Lets `write` append the bytes of a string or binary value, at most `bytes_max`. Not for
    /// dictionaries.
    ///
    /// # Errors
    /// Those of [`Self::push_bytes`], and when more bytes were written.
    pub fn push_written(
        &mut self,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let Slots::Bytes { offsets, data } = &mut self.slots else { return Err(unfit("a string")) };
        push_offset(offsets, data.len())?;
        data.reserve(bytes_max)?;
        let before = data.len();
        write(&mut data.bytes);
        let written = data.len() - before.min(data.len());
        if written > bytes_max {
            refuse!(
                Unsupported,
                "{written} bytes of a string were written, expected at most {bytes_max}"
            );
        }
        self.count()
    }

    /// The builder of a list's items.
    ///
    /// # Errors
    /// When the column does not have lists.
    pub fn item(&mut self) -> Result<&mut Self> {
        match &mut self.slots {
            Slots::List { offsets, item } => {
                // The first call for a list writes where it begins.
                if offsets.len() == self.rows * 4 {
                    push_offset(offsets, item.rows)?;
                }
                Ok(item)
            }
            _ => Err(unfit("a list")),
        }
    }

    /// Ends a list of the items since the list before it.
    ///
    /// # Errors
    /// When the column does not have lists, or memory is short.
    pub fn close_list(&mut self) -> Result<()> {
        self.item()?;
        self.count()
    }

    /// The builders of a struct's fields.
    ///
    /// # Errors
    /// When the column does not have structs.
    pub fn fields(&mut self) -> Result<&mut [Self]> {
        match &mut self.slots {
            Slots::Struct(fields) => Ok(fields),
            _ => Err(unfit("a struct")),
        }
    }

    /// Ends a struct. Each of its fields must have received its value.
    ///
    /// # Errors
    /// When the column does not have structs, a field has a different number of values, or memory
    /// is short.
    pub fn close_struct(&mut self) -> Result<()> {
        let rows = self.rows + 1;
        if self.fields()?.iter().any(|field| field.rows != rows) {
            refuse!(Unsupported, "a struct has not one value for each field");
        }
        self.count()
    }

    /// The bytes of all values so far.
    pub fn bytes(&self) -> usize {
        self.validity.len()
            + match &self.slots {
                Slots::Null => 0,
                Slots::Boolean(bytes) | Slots::Fixed { bytes, .. } => bytes.len(),
                Slots::Bytes { offsets, data } => offsets.len() + data.len(),
                Slots::List { offsets, item } => offsets.len() + item.bytes(),
                Slots::Struct(fields) => fields.iter().map(Self::bytes).sum(),
                Slots::Dictionary(dictionary) => dictionary.bytes(),
            }
    }

    #[inline]
    fn count(&mut self) -> Result<()> {
        if self.validity.len() > 0 {
            push_bit(&mut self.validity, self.rows, true)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn mark_missing(&mut self) -> Result<()> {
        if self.validity.len() == 0 {
            self.validity.reserve(self.rows / 8 + 1)?;
            self.validity.bytes.resize(self.rows / 8, u8::MAX);
            if !self.rows.is_multiple_of(8) {
                self.validity.bytes.push((1 << (self.rows % 8)) - 1);
            }
        }
        push_bit(&mut self.validity, self.rows, false)
    }

    pub(super) fn finish(&mut self, rows: usize, take: Take<'_>) -> Result<Column> {
        if self.rows != rows {
            refuse!(Unsupported, "a column has {} values, expected {rows}", self.rows);
        }
        let validity = match self.validity.len() {
            0 => None,
            _ => Some(Bitmap { bytes: self.validity.taken(take)?, offset: 0, len: rows }),
        };
        let values = match &mut self.slots {
            Slots::Null => Values::Null,
            Slots::Boolean(bits) => {
                Values::Boolean(Bitmap { bytes: bits.taken(take)?, offset: 0, len: rows })
            }
            Slots::Fixed { width, bytes } => {
                Values::Fixed { width: *width, bytes: bytes.taken(take)? }
            }
            Slots::Bytes { offsets, data } => {
                push_offset(offsets, data.len())?;
                Values::Bytes { offsets: offsets.taken(take)?, data: data.taken(take)? }
            }
            Slots::List { offsets, item } => {
                let items = item.rows;
                push_offset(offsets, items)?;
                Values::List {
                    offsets: offsets.taken(take)?,
                    child: Box::new(item.finish(items, take)?),
                }
            }
            Slots::Struct(fields) => Values::Struct(
                fields.iter_mut().map(|field| field.finish(rows, take)).collect::<Result<_>>()?,
            ),
            Slots::Dictionary(dictionary) => dictionary.finish(take)?,
        };
        self.rows = 0;
        Ok(Column { rows, validity, values })
    }
}

#[inline]
fn push_offset(offsets: &mut Buffer, offset: usize) -> Result<()> {
    let Some(offset) = u32::try_from(offset).ok().filter(|offset| *offset as usize <= COUNT_MAX)
    else {
        refuse!(Limit, "one column of a batch has over {COUNT_MAX} bytes or items")
    };
    offsets.reserve(4)?;
    offsets.bytes.extend_from_slice(&offset.to_le_bytes());
    Ok(())
}

/// Appends bit `i`, after the i bits before it.
#[inline]
fn push_bit(bits: &mut Buffer, i: usize, value: bool) -> Result<()> {
    debug_assert_eq!(bits.len(), i.div_ceil(8));
    if i.is_multiple_of(8) {
        bits.reserve(1)?;
        bits.bytes.push(0);
    }
    if let Some(last) = bits.bytes.last_mut() {
        *last |= u8::from(value) << (i % 8);
    }
    Ok(())
}

#[cold]
fn unfit(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} does not fit the column's type"))
}
