//! Columns under construction, value by value: for sources that have rows, not columns.
//!
//! A builder takes values in the order of its column: a null, a boolean, a value of fixed width, a string. Those of a list go
//! to its [`item`](Builder::item) before [`close_list`](Builder::close_list) (a map is a list of pairs), those of a struct to its
//! [`fields`](Builder::fields) before [`close_struct`](Builder::close_struct). What does not fit the column's type is refused, so that
//! whatever comes out of [`BatchBuilder::finish`] fits its schema. Memory is reserved before it is used, and where there is
//! none left that is an error.
//!
//! ```
//! use dray_format::{BatchBuilder, Field, Schema, Type};
//!
//! let field = |name: &str, data_type| Field { name: name.into(), data_type, nullable: true, metadata: vec![] };
//! let schema = Schema { fields: vec![field("n", Type::Int32), field("s", Type::Utf8)] };
//! let mut builder = BatchBuilder::new(schema)?;
//! builder.columns()[0].push_fixed(7i32.to_le_bytes())?;
//! builder.columns()[1].push_null()?;
//! builder.close_row()?;
//! assert_eq!(builder.finish()?.batch().rows, 1);
//! # Ok::<(), dray_format::Error>(())
//! ```

use std::sync::Arc;

use bytes::Bytes;

use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::types::{COUNT_MAX, Field, Schema, Storage, Type};

/// Rows under construction.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<Schema>,
    rows: usize,
    columns: Vec<Builder>,
}

/// Rows that a [`BatchBuilder`] made: they fit its schema, but for strings, which may not be UTF-8 yet.
#[derive(Debug, Clone)]
pub struct Built {
    schema: Arc<Schema>,
    batch: Batch,
}

impl Built {
    /// Their schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The rows.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The rows, for the writer of a chunk.
    pub fn into_batch(self) -> Batch {
        self.batch
    }
}

impl BatchBuilder {
    /// A builder of rows of this schema.
    ///
    /// # Errors
    /// When a column has a type that is not built value by value: dictionaries and fixed-size lists.
    pub fn new(schema: Schema) -> Result<Self> {
        let columns = schema.fields.iter().map(Builder::new).collect::<Result<_>>()?;
        Ok(Self { schema: Arc::new(schema), rows: 0, columns })
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A builder a column.
    pub fn columns(&mut self) -> &mut [Builder] {
        &mut self.columns
    }

    /// Counts a row, once each column has its value.
    ///
    /// # Errors
    /// When a column has another number of values.
    #[inline]
    pub fn close_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.columns.iter().any(|column| column.rows != self.rows) {
            refuse!(Unsupported, "row {} of a batch has not one value for each column", self.rows);
        }
        Ok(())
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of all values so far.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Builder::bytes).sum()
    }

    /// Takes the rows out. The next ones find as much room as these needed.
    ///
    /// # Errors
    /// When a column has another number of values than the batch has rows, or memory is short.
    pub fn finish(&mut self) -> Result<Built> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns.iter_mut().map(|column| column.finish(rows)).collect::<Result<_>>()?;
        Ok(Built { schema: self.schema.clone(), batch: Batch { rows, columns } })
    }
}

/// A column under construction.
#[derive(Debug)]
pub struct Builder {
    rows: usize,
    nullable: bool,
    /// Which values are there; empty as long as all are.
    validity: Vec<u8>,
    slots: Slots,
}

#[derive(Debug)]
enum Slots {
    Null,
    Boolean(Vec<u8>),
    Fixed { width: usize, bytes: Vec<u8> },
    Bytes { offsets: Vec<u8>, data: Vec<u8> },
    List { offsets: Vec<u8>, item: Box<Builder> },
    Struct(Vec<Builder>),
}

impl Builder {
    fn new(field: &Field) -> Result<Self> {
        let slots = match (field.data_type.storage(), &field.data_type) {
            (Storage::Null, _) => Slots::Null,
            (Storage::Boolean, _) => Slots::Boolean(Vec::new()),
            (Storage::Fixed(width), _) => Slots::Fixed { width, bytes: Vec::new() },
            (Storage::Bytes { .. }, _) => Slots::Bytes { offsets: Vec::new(), data: Vec::new() },
            (Storage::List, Type::List(item)) => Slots::List { offsets: Vec::new(), item: Box::new(Self::new(item)?) },
            (Storage::Map, Type::Map { key, value, .. }) => {
                // A map is a list of pairs.
                let fields = vec![Self::new(key)?, Self::new(value)?];
                let pair = Self { rows: 0, nullable: false, validity: Vec::new(), slots: Slots::Struct(fields) };
                Slots::List { offsets: Vec::new(), item: Box::new(pair) }
            }
            (Storage::Struct, Type::Struct(fields)) => {
                Slots::Struct(fields.iter().map(Self::new).collect::<Result<_>>()?)
            }
            (_, other) => refuse!(Unsupported, "column {:?}: {other:?} is not built value by value", field.name),
        };
        Ok(Self { rows: 0, nullable: field.nullable, validity: Vec::new(), slots })
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

    /// What lies under a missing value, which has its place.
    fn push_zero(&mut self) -> Result<()> {
        if !matches!(self.slots, Slots::Null) {
            self.mark_missing()?;
        }
        match &mut self.slots {
            Slots::Null => {}
            Slots::Boolean(bits) => push_bit(bits, self.rows, false)?,
            Slots::Fixed { width, bytes } => {
                reserve(bytes, *width)?;
                bytes.resize(bytes.len() + *width, 0);
            }
            Slots::Bytes { offsets, data } => push_offset(offsets, data.len())?,
            Slots::List { offsets, item } => push_offset(offsets, item.rows)?,
            Slots::Struct(fields) => fields.iter_mut().try_for_each(Self::push_zero)?,
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
                reserve(bytes, N)?;
                bytes.extend_from_slice(&value);
            }
            _ => return Err(unfit("a value of fixed width")),
        }
        self.count()
    }

    /// Appends a string or binary value.
    ///
    /// # Errors
    /// When the column is of another type, its strings are over 2 GiB, or memory is short.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) -> Result<()> {
        let Slots::Bytes { offsets, data } = &mut self.slots else { return Err(unfit("a string")) };
        push_offset(offsets, data.len())?;
        reserve(data, value.len())?;
        data.extend_from_slice(value);
        self.count()
    }

    /// Lets `write` append the bytes of a string or binary value.
    ///
    /// # Errors
    /// As [`Self::push_bytes`].
    pub fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let Slots::Bytes { offsets, data } = &mut self.slots else { return Err(unfit("a string")) };
        push_offset(offsets, data.len())?;
        write(data)?;
        self.count()
    }

    /// The builder of a list's items.
    ///
    /// # Errors
    /// When the column is not one of lists.
    pub fn item(&mut self) -> Result<&mut Self> {
        match &mut self.slots {
            Slots::List { offsets, item } => {
                // The first item of a list marks where the list begins.
                if offsets.len() == self.rows * 4 {
                    push_offset(offsets, item.rows)?;
                }
                Ok(item)
            }
            _ => Err(unfit("a list")),
        }
    }

    /// Ends a list: the items since the last one are its own.
    ///
    /// # Errors
    /// When the column is not one of lists, or memory is short.
    pub fn close_list(&mut self) -> Result<()> {
        self.item()?;
        self.count()
    }

    /// The builders of a struct's fields.
    ///
    /// # Errors
    /// When the column is not one of structs.
    pub fn fields(&mut self) -> Result<&mut [Self]> {
        match &mut self.slots {
            Slots::Struct(fields) => Ok(fields),
            _ => Err(unfit("a struct")),
        }
    }

    /// Ends a struct, once each of its fields has its value.
    ///
    /// # Errors
    /// When the column is not one of structs, a field has another number of values, or memory is short.
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
            }
    }

    #[inline]
    fn count(&mut self) -> Result<()> {
        if !self.validity.is_empty() {
            push_bit(&mut self.validity, self.rows, true)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn mark_missing(&mut self) -> Result<()> {
        if self.validity.is_empty() {
            reserve(&mut self.validity, self.rows / 8 + 1)?;
            self.validity.resize(self.rows / 8, u8::MAX);
            if !self.rows.is_multiple_of(8) {
                self.validity.push((1 << (self.rows % 8)) - 1);
            }
        }
        push_bit(&mut self.validity, self.rows, false)
    }

    fn finish(&mut self, rows: usize) -> Result<Column> {
        if self.rows != rows {
            refuse!(Unsupported, "a column has {} values, expected {rows}", self.rows);
        }
        let validity = match self.validity.is_empty() {
            true => None,
            false => Some(Bitmap { bytes: taken(&mut self.validity)?, offset: 0, len: rows }),
        };
        let values = match &mut self.slots {
            Slots::Null => Values::Null,
            Slots::Boolean(bits) => Values::Boolean(Bitmap { bytes: taken(bits)?, offset: 0, len: rows }),
            Slots::Fixed { width, bytes } => Values::Fixed { width: *width, bytes: taken(bytes)? },
            Slots::Bytes { offsets, data } => {
                push_offset(offsets, data.len())?;
                Values::Bytes { offsets: taken(offsets)?, data: taken(data)? }
            }
            Slots::List { offsets, item } => {
                let items = item.rows;
                push_offset(offsets, items)?;
                Values::List { offsets: taken(offsets)?, child: Box::new(item.finish(items)?) }
            }
            Slots::Struct(fields) => {
                Values::Struct(fields.iter_mut().map(|field| field.finish(rows)).collect::<Result<_>>()?)
            }
        };
        self.rows = 0;
        Ok(Column { rows, validity, values })
    }
}

/// Makes room for `bytes` more bytes.
#[inline]
fn reserve(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    if buffer.capacity() - buffer.len() >= bytes { Ok(()) } else { grow(buffer, bytes) }
}

#[cold]
fn grow(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let wanted = buffer.len().saturating_add(bytes);
    if wanted > COUNT_MAX {
        refuse!(Limit, "one column of a batch has over {COUNT_MAX} bytes");
    }
    buffer.try_reserve(bytes).map_err(|_| Error::new(ErrorKind::Limit, format!("no memory for {wanted} bytes")))
}

/// Takes the bytes out, and leaves room for as many.
fn taken(buffer: &mut Vec<u8>) -> Result<Bytes> {
    let mut next = Vec::new();
    grow(&mut next, buffer.len())?;
    Ok(Bytes::from(std::mem::replace(buffer, next)))
}

#[inline]
fn push_offset(offsets: &mut Vec<u8>, offset: usize) -> Result<()> {
    let Some(offset) = u32::try_from(offset).ok().filter(|offset| *offset as usize <= COUNT_MAX) else {
        refuse!(Limit, "one column of a batch has over {COUNT_MAX} bytes or items")
    };
    reserve(offsets, 4)?;
    offsets.extend_from_slice(&offset.to_le_bytes());
    Ok(())
}

/// Appends bit `i` to the i bits that are there.
#[inline]
fn push_bit(bits: &mut Vec<u8>, i: usize, value: bool) -> Result<()> {
    if i.is_multiple_of(8) {
        reserve(bits, 1)?;
        bits.push(0);
    }
    if let Some(last) = bits.last_mut() {
        *last |= u8::from(value) << (i % 8);
    }
    Ok(())
}

#[cold]
fn unfit(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} does not fit the column's type"))
}
