//! What generated accessors read objects with: `dray accessors FILE --language rust` writes code
//! that calls this with positions that it has compiled in.
//!
//! Nothing here fails or panics. Positions that are not those of the object's schema give other
//! values or empty ones.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use crate::edit::ItemMut;
use crate::layout::{INLINE_BYTES_MAX, bitmap_bytes};
use crate::word::{bit_at, load, u32_at};

/// The first bytes of an object, its record.
#[inline(always)]
pub fn record<const BYTES: usize>(extent: &[u8]) -> &[u8; BYTES] {
    extent.first_chunk().unwrap_or(const { &[0; BYTES] })
}

/// The object of an item that is changed, and the bytes from the start of the item's record on.
#[inline]
pub fn of_item<'a>(item: &'a ItemMut<'_>) -> (&'a [u8], &'a [u8]) {
    item.extent_and_record()
}

/// `N` bytes of a record.
#[inline(always)]
pub fn word<const N: usize, const BYTES: usize>(record: &[u8; BYTES], at: usize) -> [u8; N] {
    load(record, at)
}

/// `N` bytes of a record, where they lie.
#[inline(always)]
pub fn bytes_at<const N: usize, const BYTES: usize>(record: &[u8; BYTES], at: usize) -> &[u8; N] {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    bytes.unwrap_or(const { &[0; N] })
}

/// Whether a validity bit is set.
#[inline(always)]
pub fn is_set<const BYTES: usize>(record: &[u8; BYTES], at: usize, mask: u8) -> bool {
    record.get(at).is_some_and(|byte| byte & mask != 0)
}

/// A string or binary value.
#[inline(always)]
pub fn bytes<'a, const BYTES: usize>(
    extent: &'a [u8],
    record: &'a [u8; BYTES],
    at: usize,
) -> &'a [u8] {
    let place: &[u8; 16] = bytes_at(record, at);
    let length = u32_at(place, 0) as usize;
    if length <= INLINE_BYTES_MAX {
        return place.get(4..4 + length).unwrap_or_default();
    }
    let from = u32_at(place, 12) as usize;
    extent.get(from..from + length).unwrap_or_default()
}

/// A string. It is checked for UTF-8 again, because this crate has no unsafe code.
#[inline]
pub fn text<'a, const BYTES: usize>(
    extent: &'a [u8],
    record: &'a [u8; BYTES],
    at: usize,
) -> &'a str {
    str::from_utf8(bytes(extent, record, at)).unwrap_or_default()
}

/// A value that lies in records of `STRIDE` bytes: an item of a list.
pub trait Element<'a, const STRIDE: usize>: Copy {
    /// The value in this record of the object.
    fn of(extent: &'a [u8], record: &'a [u8; STRIDE]) -> Self;
}

/// A list of values that are never missing.
pub struct List<'a, T, const STRIDE: usize> {
    extent: &'a [u8],
    records: &'a [[u8; STRIDE]],
    of: PhantomData<T>,
}

/// A list of values that may be missing.
pub struct NullableList<'a, T, const STRIDE: usize> {
    list: List<'a, T, STRIDE>,
    bitmap: &'a [u8],
}

/// A list of items that take no bytes, with or without a bitmap.
#[derive(Clone, Copy)]
pub struct Marks<'a, const NULLABLE: bool> {
    bitmap: &'a [u8],
    count: usize,
}

/// The list whose place is at `at` in a record.
#[inline(always)]
pub fn list<'a, T, const STRIDE: usize, const BYTES: usize>(
    extent: &'a [u8],
    record: &'a [u8; BYTES],
    at: usize,
) -> List<'a, T, STRIDE> {
    let (from, count) = place(record, at);
    records(extent, from, count)
}

/// The list whose place is at `at` in a record, and whose items have a bitmap.
#[inline(always)]
pub fn nullable_list<'a, T, const STRIDE: usize, const BYTES: usize>(
    extent: &'a [u8],
    record: &'a [u8; BYTES],
    at: usize,
) -> NullableList<'a, T, STRIDE> {
    let (from, count) = place(record, at);
    let bitmap = extent.get(from..).unwrap_or_default();
    NullableList { list: records(extent, from + bitmap_bytes(count), count), bitmap }
}

/// The list whose place is at `at` in a record, and whose items take no bytes.
#[inline]
pub fn marks<'a, const NULLABLE: bool, const BYTES: usize>(
    extent: &'a [u8],
    record: &'a [u8; BYTES],
    at: usize,
) -> Marks<'a, NULLABLE> {
    let (from, count) = place(record, at);
    Marks { bitmap: extent.get(from..).unwrap_or_default(), count }
}

#[inline(always)]
fn place<const BYTES: usize>(record: &[u8; BYTES], at: usize) -> (usize, usize) {
    let place: [u8; 8] = word(record, at);
    (u32_at(&place, 0) as usize, u32_at(&place, 4) as usize)
}

#[inline(always)]
fn records<T, const STRIDE: usize>(
    extent: &[u8],
    from: usize,
    count: usize,
) -> List<'_, T, STRIDE> {
    let bytes = extent.get(from..).and_then(|rest| rest.get(..count * STRIDE)).unwrap_or_default();
    List { extent, records: bytes.as_chunks().0, of: PhantomData }
}

impl<'a, T: Element<'a, STRIDE>, const STRIDE: usize> List<'a, T, STRIDE> {
    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Item `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        self.records.get(i).map(|record| T::of(self.extent, record))
    }

    /// All items, in order.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = T>
    + DoubleEndedIterator
    + FusedIterator
    + Clone
    + use<'a, T, STRIDE> {
        let extent = self.extent;
        self.records.iter().map(move |record| T::of(extent, record))
    }

    /// The bytes of the items, one behind the other. Those of numbers are little-endian.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.records.as_flattened()
    }
}

impl<'a, T: Element<'a, STRIDE>, const STRIDE: usize> NullableList<'a, T, STRIDE> {
    /// The number of items, missing ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Item `i`, if there is one; the inner option is none if it is missing.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Option<T>> {
        self.list.get(i).map(|item| bit_at(self.bitmap, 0, i).then_some(item))
    }

    /// All items, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<T>> + Clone + use<'a, T, STRIDE> {
        let bitmap = self.bitmap;
        self.list.iter().enumerate().map(move |(i, item)| bit_at(bitmap, 0, i).then_some(item))
    }
}

impl<const NULLABLE: bool> Marks<'_, NULLABLE> {
    /// The number of items, missing ones included.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether item `i` is there, and has a bit in the bitmap if there is one.
    pub fn is_present(&self, i: usize) -> bool {
        i < self.count && (!NULLABLE || bit_at(self.bitmap, 0, i))
    }
}

macro_rules! copies {
    ($($list:ident)*) => {$(
        impl<T, const STRIDE: usize> Clone for $list<'_, T, STRIDE> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T, const STRIDE: usize> Copy for $list<'_, T, STRIDE> {}
    )*};
}

copies! { List NullableList }

impl<'a, T: Element<'a, STRIDE> + fmt::Debug, const STRIDE: usize> fmt::Debug
    for List<'a, T, STRIDE>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Element<'a, STRIDE> + fmt::Debug, const STRIDE: usize> fmt::Debug
    for NullableList<'a, T, STRIDE>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<const NULLABLE: bool> fmt::Debug for Marks<'_, NULLABLE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = (0..self.count).map(|i| self.is_present(i));
        if NULLABLE { f.debug_list().entries(present).finish() } else { self.count.fmt(f) }
    }
}

macro_rules! numbers {
    ($($number:ident $width:literal,)*) => {$(
        impl Element<'_, $width> for $number {
            #[inline(always)]
            fn of(_: &[u8], record: &[u8; $width]) -> Self {
                Self::from_le_bytes(*record)
            }
        }
    )*};
}

numbers! {
    i8 1, u8 1, i16 2, u16 2, i32 4, u32 4, i64 8, u64 8, i128 16, f32 4, f64 8,
}

impl Element<'_, 1> for bool {
    #[inline(always)]
    fn of(_: &[u8], record: &[u8; 1]) -> Self {
        *record == [1]
    }
}

impl<'a, const N: usize> Element<'a, N> for &'a [u8; N] {
    #[inline(always)]
    fn of(_: &'a [u8], record: &'a [u8; N]) -> Self {
        record
    }
}

impl<'a> Element<'a, 16> for &'a [u8] {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 16]) -> Self {
        bytes(extent, record, 0)
    }
}

impl<'a> Element<'a, 16> for &'a str {
    #[inline]
    fn of(extent: &'a [u8], record: &'a [u8; 16]) -> Self {
        text(extent, record, 0)
    }
}

impl<'a, T: Copy, const STRIDE: usize> Element<'a, 8> for List<'a, T, STRIDE> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 8]) -> Self {
        list(extent, record, 0)
    }
}

impl<'a, T: Copy, const STRIDE: usize> Element<'a, 8> for NullableList<'a, T, STRIDE> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 8]) -> Self {
        nullable_list(extent, record, 0)
    }
}

impl<'a, const NULLABLE: bool> Element<'a, 8> for Marks<'a, NULLABLE> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 8]) -> Self {
        marks(extent, record, 0)
    }
}
