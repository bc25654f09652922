//! Columns under construction, value by value: for sources that have rows, not columns.
//!
//! A builder takes values in the order of its column: a null, a boolean, a value of fixed width, a
//! string. Those of a list go to its [`item`](Builder::item) before
//! [`close_list`](Builder::close_list) (a map is a list of pairs), those of a struct to its
//! [`fields`](Builder::fields) before [`close_struct`](Builder::close_struct). What does not fit
//! the column's type is refused, so that whatever comes out of [`BatchBuilder::finish`] fits its
//! schema. Memory is reserved before it is used, and where there is none left that is an error. A
//! row that grows over [`BatchBuilder::set_bytes_max`] is refused while it grows.
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
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::COUNT_MAX;
use crate::types::{Field, Schema, Storage, Type};

/// The first room of a buffer: growing from nothing to a few values takes longer than they do.
const FIRST_BYTES: usize = 256;
/// From this size on a buffer grows by a quarter, not to twice its size.
const LARGE_BYTES: usize = 4 << 20;
/// A buffer of the next batch is made no larger than this before there are values for it.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Rows under construction.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<Schema>,
    rows: usize,
    columns: Vec<Builder>,
    budget: Arc<Budget>,
}

/// What all columns of a batch share. One thread builds a batch; the atomics let it move to another
/// one.
#[derive(Debug)]
struct Budget {
    /// The bytes of all buffers when they last grew: never more than there are, and most of them.
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
    row_bytes_max: AtomicUsize,
    interrupted: Option<fn() -> bool>,
}

impl Budget {
    fn new(interrupted: Option<fn() -> bool>) -> Arc<Self> {
        let [bytes_max, row_bytes_max] = [usize::MAX; 2].map(AtomicUsize::new);
        Arc::new(Self { bytes: AtomicUsize::new(0), bytes_max, row_bytes_max, interrupted })
    }

    /// Counts `bytes` more.
    fn take(&self, bytes: usize) -> Result<()> {
        let wanted = self.bytes.load(Relaxed).saturating_add(bytes);
        if wanted > self.bytes_max.load(Relaxed) {
            let row_bytes_max = self.row_bytes_max.load(Relaxed);
            refuse!(
                Limit,
                "a row needs over {row_bytes_max} bytes, which is the limit; raise row_bytes_max"
            );
        }
        self.bytes.store(wanted, Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.store(self.bytes.load(Relaxed).saturating_sub(bytes), Relaxed);
    }
}

/// Bytes that are counted as they grow.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many of them the budget knows of.
    counted: usize,
    budget: Arc<Budget>,
}

impl Buffer {
    fn new(budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), counted: 0, budget: budget.clone() }
    }

    #[inline]
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Makes room for `bytes` more bytes.
    #[inline]
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.bytes.capacity() - self.bytes.len() >= bytes { Ok(()) } else { self.grow(bytes) }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let wanted = self.len().saturating_add(bytes);
        if wanted > COUNT_MAX {
            refuse!(Limit, "one column of a batch has over {COUNT_MAX} bytes");
        }
        self.budget.take(wanted.saturating_sub(self.counted))?;
        self.counted = self.counted.max(wanted);
        match wanted > LARGE_BYTES {
            false if self.bytes.capacity() == 0 => self.bytes.try_reserve(bytes.max(FIRST_BYTES)),
            false => self.bytes.try_reserve(bytes),
            true => self.bytes.try_reserve_exact(bytes.max(self.len() / 4)),
        }
        .map_err(|_| no_memory(wanted))
    }

    /// Takes the bytes out.
    fn taken(&mut self, take: Take<'_>) -> Result<Bytes> {
        self.budget.give_back(std::mem::take(&mut self.counted));
        take(&mut self.bytes)
    }
}

/// How bytes leave their buffer, which is empty then and has room for as many.
type Take<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<Bytes>;

/// The buffer itself becomes the bytes.
fn take_buffer(bytes: &mut Vec<u8>) -> Result<Bytes> {
    let mut next = Vec::new();
    let kept = bytes.len().min(KEPT_BYTES_MAX);
    next.try_reserve_exact(kept).map_err(|_| no_memory(kept))?;
    Ok(Bytes::from(std::mem::replace(bytes, next)))
}

#[cold]
fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("no memory for {bytes} bytes"))
}

/// Rows that a [`BatchBuilder`] made: they fit its schema, but for strings, which may not be UTF-8
/// yet.
#[derive(Debug, Clone)]
pub struct Built {
    schema: Arc<Schema>,
    batch: Batch,
}

impl Built {
    /// Their schema.
    pub fn schema(&self) -> &Arc<Schema> {
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
    /// When a column has a type that is not built value by value: dictionaries and fixed-size
    /// lists.
    pub fn new(schema: impl Into<Arc<Schema>>) -> Result<Self> {
        Self::with_interrupts(schema, None)
    }

    /// The same, with what [`Builder::check_interrupts`] asks.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_interrupts(
        schema: impl Into<Arc<Schema>>,
        interrupted: Option<fn() -> bool>,
    ) -> Result<Self> {
        let schema = schema.into();
        let budget = Budget::new(interrupted);
        let columns = schema
            .fields
            .iter()
            .map(|field| Builder::new(field, &budget))
            .collect::<Result<_>>()?;
        Ok(Self { schema, rows: 0, columns, budget })
    }

    /// Refuses a row once it has grown over `row_bytes_max`, where those before it in the batch
    /// have at most `waiting_bytes_max` together: how many they really have is not counted. What is
    /// in use of a limit is known when a buffer grows, so a row may come out larger, but not by
    /// more than its buffers have room for.
    pub fn set_bytes_max(&mut self, row_bytes_max: usize, waiting_bytes_max: usize) {
        self.budget.row_bytes_max.store(row_bytes_max, Relaxed);
        self.budget.bytes_max.store(row_bytes_max.saturating_add(waiting_bytes_max), Relaxed);
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
        self.finish_by(&mut take_buffer)
    }

    /// The same, as copies that `copy` makes of each buffer, or none for want of memory. The
    /// buffers stay for the next rows: who keeps all batches spares the system's work for fresh
    /// memory here, and knows a better place for them.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_copied(&mut self, copy: &mut dyn FnMut(&[u8]) -> Option<Bytes>) -> Result<Built> {
        self.finish_by(&mut |bytes| {
            let copied = copy(bytes).ok_or_else(|| no_memory(bytes.len()))?;
            match bytes.capacity() > KEPT_BYTES_MAX {
                true => *bytes = Vec::new(),
                false => bytes.clear(),
            }
            Ok(copied)
        })
    }

    fn finish_by(&mut self, take: Take<'_>) -> Result<Built> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self
            .columns
            .iter_mut()
            .map(|column| column.finish(rows, take))
            .collect::<Result<_>>()?;
        Ok(Built { schema: self.schema.clone(), batch: Batch { rows, columns } })
    }
}

/// A column under construction.
#[derive(Debug)]
pub struct Builder {
    rows: usize,
    nullable: bool,
    /// Which values are there; empty as long as all are.
    validity: Buffer,
    slots: Slots,
}

#[derive(Debug)]
enum Slots {
    Null,
    Boolean(Buffer),
    Fixed { width: usize, bytes: Buffer },
    Bytes { offsets: Buffer, data: Buffer },
    List { offsets: Buffer, item: Box<Builder> },
    Struct(Vec<Builder>),
}

impl Builder {
    fn new(field: &Field, budget: &Arc<Budget>) -> Result<Self> {
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
            (_, other) => refuse!(
                Unsupported,
                "column {:?}: {other:?} is not built value by value",
                field.name
            ),
        };
        Ok(Self { rows: 0, nullable: field.nullable, validity: buffer(), slots })
    }

    /// To be called between the parts of a value that may have very many.
    ///
    /// # Errors
    /// When the value is to be given up half-done: the batch is then of no use any more.
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

    /// What lies under a missing value, which has its place.
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

    /// Appends a string or binary value.
    ///
    /// # Errors
    /// When the column is of another type, its strings are over 2 GiB, or memory is short.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) -> Result<()> {
        let Slots::Bytes { offsets, data } = &mut self.slots else { return Err(unfit("a string")) };
        push_offset(offsets, data.len())?;
        data.reserve(value.len())?;
        data.bytes.extend_from_slice(value);
        self.count()
    }

    /// Lets `write` append the bytes of a string or binary value: at most `bytes_max`, for which
    /// there is room.
    ///
    /// # Errors
    /// As [`Self::push_bytes`], and when more bytes were written.
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
    /// When the column is not one of structs, a field has another number of values, or memory is
    /// short.
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

    fn finish(&mut self, rows: usize, take: Take<'_>) -> Result<Column> {
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

/// Appends bit `i` to the i bits that are there.
#[inline]
fn push_bit(bits: &mut Buffer, i: usize, value: bool) -> Result<()> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    fn batch(data_type: Type) -> BatchBuilder {
        let field = Field { name: "x".to_owned(), data_type, nullable: true, metadata: vec![] };
        BatchBuilder::new(Schema { fields: vec![field] }).unwrap()
    }

    fn wide() -> Type {
        let field = |i: usize| Field {
            name: i.to_string(),
            data_type: Type::FixedBinary(16),
            nullable: true,
            metadata: vec![],
        };
        let item = Type::Struct((0..100).map(field).collect());
        Type::List(Box::new(Field {
            name: "item".to_owned(),
            data_type: item,
            nullable: true,
            metadata: vec![],
        }))
    }

    #[test]
    fn a_row_is_refused_before_it_is_whole() {
        let mut builder = batch(wide());
        builder.set_bytes_max(1 << 20, 1 << 20);
        let column = &mut builder.columns()[0];
        let mut items = 0;
        let error = loop {
            match column.item().unwrap().push_null() {
                Ok(()) => items += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("raise row_bytes_max"), "{error}");
        // What fits is not refused, and no more than twice the limit comes through.
        assert!((1300..2700).contains(&items), "{items}");
    }

    #[test]
    fn each_batch_has_the_whole_limit() {
        let mut builder = batch(Type::Utf8);
        builder.set_bytes_max(1 << 20, 0);
        for _ in 0..10 {
            builder.columns()[0].push_bytes(&vec![b'x'; (1 << 20) - 100]).unwrap();
            builder.close_row().unwrap();
            assert_eq!(builder.finish().unwrap().batch().rows, 1);
        }
        assert_eq!(
            builder.columns()[0].push_bytes(&vec![b'x'; 2 << 20]).unwrap_err().kind(),
            ErrorKind::Limit
        );
    }

    #[test]
    fn what_is_written_has_room() {
        let mut builder = batch(Type::Utf8);
        let column = &mut builder.columns()[0];
        column.push_written(5, |out| out.extend_from_slice(b"abc")).unwrap();
        assert!(column.push_written(2, |out| out.extend_from_slice(b"abc")).is_err());
    }
}
