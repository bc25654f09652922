//! Objects, read in place: an access is a load or two at the offset that the layout gives.

use crate::layout::{INLINE_BYTES_MAX, Items, Kind, Layout, Place, Record};
use crate::word::{bit_at, load, u32_at};

/// An object in a verified page.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    layout: &'a Layout,
    extent: &'a [u8],
}

impl<'a> Object<'a> {
    pub(crate) fn new(layout: &'a Layout, extent: &'a [u8]) -> Self {
        Self { layout, extent }
    }

    /// Its bytes. Objects of one schema are equal if and only if their bytes are.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.extent
    }

    /// The layout of the object.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The fields of the object.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        let record = &self.layout.record;
        Fields {
            record_ref: RecordRef { extent: self.extent, at: 0 },
            record,
            places: &record.fields,
        }
    }

    /// Field `i`, if the schema has it.
    #[inline]
    pub fn field(&self, i: usize) -> Option<Value<'a>> {
        self.fields().field(i)
    }
}

/// The position of a record in its object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRef<'a> {
    pub extent: &'a [u8],
    pub at: usize,
}

impl<'a> RecordRef<'a> {
    /// Whether a field is present.
    #[inline(always)]
    pub fn has(&self, record: &Record, place: &Place) -> bool {
        !place.nullable || bit_at(self.extent, self.at + record.bits_at, place.bits.start)
    }

    /// `N` bytes at an offset in the record.
    #[inline(always)]
    pub fn load<const N: usize>(&self, at: usize) -> [u8; N] {
        load(self.extent, self.at + at)
    }

    /// The string whose place is at an offset in the record.
    #[inline(always)]
    pub fn bytes(&self, at: usize) -> &'a [u8] {
        let at = self.at + at;
        let length = u32_at(self.extent, at) as usize;
        let from =
            if length <= INLINE_BYTES_MAX { at + 4 } else { u32_at(self.extent, at + 12) as usize };
        self.extent.get(from..from + length).unwrap_or_default()
    }

    /// The position and the number of the items of a list whose place is at an offset in the
    /// record.
    #[inline(always)]
    pub fn list(&self, at: usize) -> (usize, usize) {
        let at = self.at + at;
        (u32_at(self.extent, at) as usize, u32_at(self.extent, at + 4) as usize)
    }

    /// Item `i` of the `count` items at `from`, and whether it is present.
    #[inline(always)]
    pub fn item(&self, items: &Items, from: usize, count: usize, i: usize) -> (Self, bool) {
        let at = from + items.bitmap_bytes(count) + i * items.record.stride;
        (RecordRef { extent: self.extent, at }, !items.nullable || bit_at(self.extent, from, i))
    }
}

/// The fields of an object or of a struct.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    record_ref: RecordRef<'a>,
    record: &'a Record,
    places: &'a [Place],
}

impl<'a> Fields<'a> {
    /// The number of fields.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Field `i`, if there is one.
    #[inline]
    pub fn field(&self, i: usize) -> Option<Value<'a>> {
        let place = self.places.get(i)?;
        Some(Value {
            record_ref: self.record_ref,
            record: self.record,
            place,
            present: self.record_ref.has(self.record, place),
        })
    }

    /// All fields, in the schema's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'a>> + use<'a> {
        let Self { record_ref, record, .. } = *self;
        self.places.iter().map(move |place| Value {
            record_ref,
            record,
            place,
            present: record_ref.has(record, place),
        })
    }
}

/// The value of a field or of an item. Its accessors return none if the value is missing or has
/// another type or width.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    record_ref: RecordRef<'a>,
    record: &'a Record,
    place: &'a Place,
    present: bool,
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        #[doc = concat!("The value as `", stringify!($name), "`, if it has that width.")]
        #[inline]
        pub fn $name(&self) -> Option<$name> {
            const WIDTH: usize = size_of::<$name>();
            let fits = self.present && matches!(self.place.kind, Kind::Fixed(WIDTH));
            fits.then(|| $name::from_le_bytes(self.record_ref.load(self.place.at)))
        }
    )*};
}

impl<'a> Value<'a> {
    /// Whether the value is missing.
    #[inline]
    pub fn is_missing(&self) -> bool {
        !self.present || matches!(self.place.kind, Kind::Null)
    }

    /// A boolean.
    #[inline]
    pub fn bool(&self) -> Option<bool> {
        let fits = self.present && matches!(self.place.kind, Kind::Boolean);
        fits.then(|| self.record_ref.load::<1>(self.place.at) == [1])
    }

    numbers!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f32, f64);

    /// The bytes of a value of fixed width.
    #[inline]
    pub fn fixed(&self) -> Option<&'a [u8]> {
        let Kind::Fixed(width) = self.place.kind else { return None };
        let from = self.record_ref.at + self.place.at;
        self.record_ref.extent.get(from..from + width).filter(|_| self.present)
    }

    /// The bytes of a string or binary value.
    #[inline]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        let fits = self.present && matches!(self.place.kind, Kind::Bytes { .. });
        fits.then(|| self.record_ref.bytes(self.place.at))
    }

    /// A string. It is checked for UTF-8 again, because this crate has no unsafe code;
    /// [`bytes`](Self::bytes) spares that.
    #[inline]
    pub fn str(&self) -> Option<&'a str> {
        let fits = matches!(self.place.kind, Kind::Bytes { utf8: true });
        str::from_utf8(self.bytes().filter(|_| fits)?).ok()
    }

    /// The items of a list, of a map (structs of key and value) or of a fixed-size list.
    #[inline]
    pub fn list(&self) -> Option<List<'a>> {
        let (Kind::List(items) | Kind::FixedList { items, .. }) = &self.place.kind else {
            return None;
        };
        let (from, count) = self.record_ref.list(self.place.at);
        self.present.then_some(List { extent: self.record_ref.extent, items, from, count })
    }

    /// The fields of a struct.
    #[inline]
    pub fn fields(&self) -> Option<Fields<'a>> {
        let Kind::Struct(places) = &self.place.kind else { return None };
        self.present.then_some(Fields { record_ref: self.record_ref, record: self.record, places })
    }
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    extent: &'a [u8],
    items: &'a Items,
    from: usize,
    count: usize,
}

impl<'a> List<'a> {
    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Item `i`, if there is one.
    #[inline]
    pub fn item(&self, i: usize) -> Option<Value<'a>> {
        let place = self.items.record.fields.first().filter(|_| i < self.count)?;
        let (record_ref, present) =
            RecordRef { extent: self.extent, at: 0 }.item(self.items, self.from, self.count, i);
        Some(Value { record_ref, record: &self.items.record, place, present })
    }

    /// All items, in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let list = *self;
        (0..self.count).filter_map(move |i| list.item(i))
    }
}
