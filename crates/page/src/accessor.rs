//! Accessors look a field up once, and then read it from any number of objects.
//!
//! A [`Value`](crate::Value) consults the layout at each access. An accessor has done so already:
//! reading a field takes a comparison and a load.
//!
//! ```
//! use dray_format::{Batch, Checksum, Column, Field, Schema, Type, Values};
//! use dray_page::{Layout, PAGE_BYTES, PageBuilder};
//!
//! let field = |name: &str, data_type| {
//!     Field { name: name.into(), data_type, nullable: false, metadata: vec![] }
//! };
//! let prices = Type::List(Box::new(field("item", Type::Int64)));
//! let layout = Layout::new(Schema { fields: vec![field("prices", prices)] })?;
//! # let words = |values: &[u32]| {
//! #     values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>().into()
//! # };
//! # let numbers = Values::Fixed { width: 8, bytes: words(&[5, 0, 7, 0, 9, 0]) };
//! # let numbers = Column { rows: 3, validity: None, values: numbers };
//! # let values = Values::List { offsets: words(&[0, 1, 3]), child: Box::new(numbers) };
//! # let batch = Batch { rows: 2, columns: vec![Column { rows: 2, validity: None, values }] };
//! # let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::Crc32c)?;
//! # builder.append(&batch)?;
//! # let pages = builder.finish();
//!
//! let prices = layout.list_accessor(&["prices"])?;
//! let price = layout.accessor::<i64>(&["prices", "[]"])?;
//! let total = |object| {
//!     prices.get(object).into_iter().flatten().filter_map(|item| price.get(item)).sum::<i64>()
//! };
//! assert_eq!(pages[0].objects().map(total).collect::<Vec<_>>(), [5, 16]);
//!
//! let refused = layout.accessor::<i32>(&["prices", "[]"]).unwrap_err();
//! let expected = "field \"prices.[]\" is of type Int64, which is not read as i32";
//! assert_eq!(refused.to_string(), expected);
//! # Ok::<(), dray_page::Error>(())
//! ```

use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Range;

use dray_format::Type;

use crate::error::{Result, refuse};
use crate::layout::{INLINE_BYTES_MAX, Kind, LIST_BYTES, Layout, STRING_BYTES, bitmap_bytes};
use crate::object::Object;
use crate::path::Found;
use crate::word::{bit_at, u32_at};

impl Layout {
    /// An accessor of the field with this path: the names of the structs around it, then its own.
    /// The items of a list are named `[]`, those of a map are its key and its value by their names,
    /// and a dictionary has the type of its values.
    ///
    /// # Errors
    /// When there is no such field or more than one, or when its type is not read as a `T`.
    pub fn accessor<T: Access + ?Sized>(&self, path: &[&str]) -> Result<Accessor<T>> {
        let found = self.find(path)?;
        if !T::fits(found.data_type) {
            refuse!(
                Unsupported,
                "{}, which is not read as {}",
                found.described(path),
                type_name::<T>()
            );
        }
        Ok(Accessor { position: found.position(), of: PhantomData })
    }

    /// An accessor of the list, fixed-size list or map with this path.
    ///
    /// # Errors
    /// When there is no such field or more than one, or when it has no items.
    pub fn list_accessor(&self, path: &[&str]) -> Result<ListAccessor> {
        let found = self.find(path)?;
        let (Kind::List(items) | Kind::FixedList { items, .. }) = &found.place.kind else {
            refuse!(Unsupported, "{}, which has no items", found.described(path));
        };
        let layout = ItemLayout {
            record_id: found.items_id(),
            stride: items.record.stride as u32,
            nullable: items.nullable,
        };
        Ok(ListAccessor { position: found.position(), layout })
    }
}

/// Reads one field as a `T` (see [`Access`]).
#[derive(Debug)]
pub struct Accessor<T: ?Sized> {
    position: FieldPosition,
    of: PhantomData<T>,
}

impl<T: ?Sized> Clone for Accessor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Accessor<T> {}

impl<T: Access + ?Sized> Accessor<T> {
    /// The field's value in an object, or in an item of the list around it; none if it is missing,
    /// or if the object has another schema or the item is of another list. A checksum of 32 bits
    /// tells these apart: it guards against mistakes, not against forgery.
    #[inline]
    pub fn get<'a>(&self, of: impl Into<Item<'a>>) -> Option<T::Value<'a>> {
        let item = of.into();
        T::read(item, self.position.find(item)?)
    }
}

/// Reads the items of one list.
#[derive(Debug, Clone, Copy)]
pub struct ListAccessor {
    position: FieldPosition,
    layout: ItemLayout,
}

impl ListAccessor {
    /// The list's items in an object, or in an item of the list around it; none when
    /// [`Accessor::get`] gives none.
    #[inline]
    pub fn get<'a>(&self, of: impl Into<Item<'a>>) -> Option<Items<'a>> {
        let item = of.into();
        let place: [u8; LIST_BYTES] = item.load(self.position.find(item)?)?;
        let (bitmap_at, count) = (u32_at(&place, 0) as usize, u32_at(&place, 4) as usize);
        let bitmap_bytes = if self.layout.nullable { bitmap_bytes(count) } else { 0 };
        let records_at = bitmap_at + bitmap_bytes;
        let records = item.extent.get(records_at..)?;
        Some(Items { extent: item.extent, bitmap_at, records, left: 0..count, layout: self.layout })
    }
}

/// A record with fields: an object, or an item of a list.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// The whole object; empty if the item is missing.
    extent: &'a [u8],
    record: &'a [u8],
    record_id: u32,
}

impl<'a> Item<'a> {
    /// The record at `at` in an object. It may be longer than it needs to be.
    #[inline(always)]
    pub(crate) fn new(extent: &'a [u8], at: usize, record_id: u32) -> Self {
        Self { extent, record: extent.get(at..).unwrap_or_default(), record_id }
    }

    /// Whether it is a missing item. All of its fields are missing too.
    #[inline]
    pub fn is_missing(&self) -> bool {
        self.extent.is_empty()
    }

    /// `N` bytes of its record. Thanks to offsets of 32 bits this takes one comparison.
    #[inline(always)]
    fn load<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let at = at as usize;
        self.record.get(at..at + N)?.first_chunk().copied()
    }
}

impl<'a> From<Object<'a>> for Item<'a> {
    #[inline]
    fn from(object: Object<'a>) -> Self {
        Self { extent: object.bytes(), record: object.bytes(), record_id: object.layout().id }
    }
}

/// The items of a list, in order; [`nth`](Iterator::nth) goes straight to one.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    extent: &'a [u8],
    bitmap_at: usize,
    records: &'a [u8],
    left: Range<usize>,
    layout: ItemLayout,
}

impl<'a> Items<'a> {
    #[inline(always)]
    fn item(&self, i: usize) -> Item<'a> {
        let ItemLayout { record_id, stride, nullable } = self.layout;
        if nullable && !bit_at(self.extent, self.bitmap_at, i) {
            return Item { extent: &[], record: &[], record_id };
        }
        let from = i * stride as usize;
        let record = self.records.get(from..from + stride as usize).unwrap_or_default();
        Item { extent: self.extent, record, record_id }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        self.left.next().map(|i| self.item(i))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<Item<'a>> {
        self.left.nth(n).map(|i| self.item(i))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Items<'_> {}

/// The position of a field in a record, and of the bit that tells whether it is present.
#[derive(Debug, Clone, Copy)]
struct FieldPosition {
    /// The id of its records, or the complement of the id if the field may be missing. So a field
    /// that is never missing takes a single comparison.
    record_id: u32,
    at: u32,
    /// The byte with the validity bit: the field's own or, if it has none, that of the nearest
    /// struct around it. A missing struct is all zeros, validity bits included.
    bit_at: u32,
    bit: u8,
}

impl FieldPosition {
    /// The position of the field in this record, if it is present.
    #[inline(always)]
    fn find(&self, item: Item<'_>) -> Option<u32> {
        let there =
            || item.record.get(self.bit_at as usize).is_some_and(|byte| byte & self.bit != 0);
        let found =
            self.record_id == item.record_id || self.record_id == !item.record_id && there();
        found.then_some(self.at)
    }
}

/// The records of a list's items.
#[derive(Debug, Clone, Copy)]
struct ItemLayout {
    record_id: u32,
    stride: u32,
    /// Whether there is a bitmap before them.
    nullable: bool,
}

/// A Rust type that fields are read as: numbers from types that are stored as such, `bool`, `[u8]`
/// from strings and binary values, `str` from strings, `[u8; N]` from any type of that width, and
/// `()` from any type but null, to test whether a value is present.
///
/// A `str` is checked for UTF-8 again, because this crate has no unsafe code. Reading `[u8]` spares
/// that.
pub trait Access {
    /// The value that is read.
    type Value<'a>;

    /// Whether values of this type are read as `Self`.
    fn fits(data_type: &Type) -> bool;

    /// The value whose place is at `at` in the record.
    fn read(item: Item<'_>, at: u32) -> Option<Self::Value<'_>>;
}

macro_rules! numbers {
    ($($number:ident: $types:pat,)*) => {$(
        impl Access for $number {
            type Value<'a> = Self;

            fn fits(data_type: &Type) -> bool {
                use Type::*;
                matches!(data_type, $types)
            }

            #[inline(always)]
            fn read(item: Item<'_>, at: u32) -> Option<Self> {
                item.load(at).map(Self::from_le_bytes)
            }
        }
    )*};
}

numbers! {
    i8: Int8,
    i16: Int16,
    i32: Int32 | Date32 | Time32(_) | IntervalMonths | Decimal32 { .. },
    i64: Int64 | Date64 | Time64(_) | Timestamp { .. } | Duration(_) | Decimal64 { .. },
    i128: Decimal128 { .. },
    u8: UInt8,
    u16: UInt16,
    u32: UInt32,
    u64: UInt64,
    f32: Float32,
    f64: Float64,
}

impl<const N: usize> Access for [u8; N] {
    type Value<'a> = Self;

    fn fits(data_type: &Type) -> bool {
        data_type.width() == Some(N)
    }

    #[inline(always)]
    fn read(item: Item<'_>, at: u32) -> Option<Self> {
        item.load(at)
    }
}

impl Access for bool {
    type Value<'a> = Self;

    fn fits(data_type: &Type) -> bool {
        *data_type == Type::Boolean
    }

    #[inline(always)]
    fn read(item: Item<'_>, at: u32) -> Option<Self> {
        item.load(at).map(|byte| byte == [1])
    }
}

impl Access for [u8] {
    type Value<'a> = &'a [u8];

    fn fits(data_type: &Type) -> bool {
        matches!(data_type, Type::Utf8 | Type::Binary)
    }

    #[inline(always)]
    fn read(item: Item<'_>, at: u32) -> Option<&[u8]> {
        let at = at as usize;
        let place = item.record.get(at..at + STRING_BYTES)?;
        let length = u32_at(place, 0) as usize;
        if length <= INLINE_BYTES_MAX {
            return place.get(4..4 + length);
        }
        let from = u32_at(place, 12) as usize;
        item.extent.get(from..from + length)
    }
}

impl Access for str {
    type Value<'a> = &'a str;

    fn fits(data_type: &Type) -> bool {
        *data_type == Type::Utf8
    }

    #[inline]
    fn read(item: Item<'_>, at: u32) -> Option<&str> {
        str::from_utf8(<[u8]>::read(item, at)?).ok()
    }
}

impl Access for () {
    type Value<'a> = ();

    fn fits(data_type: &Type) -> bool {
        *data_type != Type::Null
    }

    #[inline(always)]
    fn read(item: Item<'_>, _: u32) -> Option<()> {
        (!item.is_missing()).then_some(())
    }
}

impl Found<'_> {
    fn position(&self) -> FieldPosition {
        // Records have fewer than 2^31 bytes.
        let at = self.place.at as u32;
        match self.bits.last() {
            None => FieldPosition { record_id: self.record_id, at, bit_at: 0, bit: 0 },
            Some(bit) => {
                let bit_at = (self.record.bits_at + bit / 8) as u32;
                FieldPosition { record_id: !self.record_id, at, bit_at, bit: 1 << (bit % 8) }
            }
        }
    }
}
