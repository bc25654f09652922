// Written by `dray accessors` for one schema. Write it anew rather than change it.

#[allow(unused_imports)]
use ::dray_page::generated as g;

/// The schema, as Dray encodes it.
#[allow(dead_code)]
pub const SCHEMA: &[u8] = &[
    45, 0, 0, 0, 2, 0, 0, 0, 105, 56, 0, 2, 0, 0, 3, 0,
    0, 0, 105, 49, 54, 1, 3, 0, 0, 3, 0, 0, 0, 105, 51, 50,
    0, 4, 0, 0, 3, 0, 0, 0, 105, 54, 52, 0, 5, 0, 0, 2,
    0, 0, 0, 117, 56, 1, 6, 0, 0, 3, 0, 0, 0, 117, 49, 54,
    0, 7, 0, 0, 3, 0, 0, 0, 117, 51, 50, 0, 8, 0, 0, 3,
    0, 0, 0, 117, 54, 52, 1, 9, 0, 0, 3, 0, 0, 0, 102, 49,
    54, 0, 10, 0, 0, 3, 0, 0, 0, 102, 51, 50, 0, 11, 0, 0,
    3, 0, 0, 0, 102, 54, 52, 1, 12, 0, 0, 4, 0, 0, 0, 98,
    111, 111, 108, 0, 1, 0, 0, 4, 0, 0, 0, 100, 97, 116, 101, 0,
    18, 0, 0, 4, 0, 0, 0, 116, 105, 109, 101, 1, 19, 0, 0, 0,
    5, 0, 0, 0, 115, 116, 97, 109, 112, 0, 21, 2, 0, 0, 0, 0,
    0, 0, 6, 0, 0, 0, 109, 111, 110, 116, 104, 115, 0, 23, 0, 0,
    4, 0, 0, 0, 100, 97, 121, 115, 1, 24, 0, 0, 8, 0, 0, 0,
    105, 110, 116, 101, 114, 118, 97, 108, 0, 25, 0, 0, 3, 0, 0, 0,
    100, 51, 50, 0, 13, 9, 2, 0, 0, 3, 0, 0, 0, 100, 54, 52,
    1, 14, 18, 2, 0, 0, 4, 0, 0, 0, 100, 49, 50, 56, 0, 15,
    38, 2, 0, 0, 4, 0, 0, 0, 100, 50, 53, 54, 0, 16, 76, 2,
    0, 0, 4, 0, 0, 0, 116, 101, 120, 116, 1, 26, 0, 0, 10, 0,
    0, 0, 116, 101, 120, 116, 95, 98, 121, 116, 101, 115, 0, 27, 0, 0,
    4, 0, 0, 0, 104, 97, 115, 104, 0, 28, 5, 0, 0, 0, 0, 0,
    7, 0, 0, 0, 110, 111, 116, 104, 105, 110, 103, 1, 0, 0, 0, 5,
    0, 0, 0, 111, 117, 116, 101, 114, 1, 31, 2, 0, 0, 0, 5, 0,
    0, 0, 105, 110, 110, 101, 114, 1, 31, 4, 0, 0, 0, 1, 0, 0,
    0, 120, 0, 3, 0, 0, 4, 0, 0, 0, 116, 121, 112, 101, 1, 26,
    0, 0, 5, 0, 0, 0, 115, 105, 122, 101, 100, 0, 30, 2, 0, 0,
    0, 4, 0, 0, 0, 105, 116, 101, 109, 0, 2, 0, 0, 0, 0, 4,
    0, 0, 0, 116, 97, 103, 115, 0, 29, 4, 0, 0, 0, 105, 116, 101,
    109, 1, 26, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 115, 101, 108,
    102, 0, 1, 0, 0, 0, 0, 7, 0, 0, 0, 103, 114, 195, 182, 195,
    159, 101, 0, 4, 0, 0, 5, 0, 0, 0, 103, 114, 95, 95, 101, 0,
    4, 0, 0, 7, 0, 0, 0, 110, 117, 109, 98, 101, 114, 115, 0, 29,
    4, 0, 0, 0, 105, 116, 101, 109, 0, 5, 0, 0, 0, 0, 4, 0,
    0, 0, 103, 97, 112, 115, 1, 29, 4, 0, 0, 0, 105, 116, 101, 109,
    1, 7, 0, 0, 0, 0, 5, 0, 0, 0, 119, 111, 114, 100, 115, 0,
    29, 4, 0, 0, 0, 105, 116, 101, 109, 0, 26, 0, 0, 0, 0, 5,
    0, 0, 0, 98, 108, 111, 98, 115, 0, 29, 4, 0, 0, 0, 105, 116,
    101, 109, 0, 27, 0, 0, 0, 0, 5, 0, 0, 0, 102, 108, 97, 103,
    115, 0, 29, 4, 0, 0, 0, 105, 116, 101, 109, 1, 1, 0, 0, 0,
    0, 6, 0, 0, 0, 104, 97, 115, 104, 101, 115, 0, 29, 4, 0, 0,
    0, 105, 116, 101, 109, 0, 28, 3, 0, 0, 0, 0, 0, 0, 0, 6,
    0, 0, 0, 112, 111, 105, 110, 116, 115, 0, 29, 4, 0, 0, 0, 105,
    116, 101, 109, 1, 31, 2, 0, 0, 0, 1, 0, 0, 0, 120, 0, 12,
    0, 0, 4, 0, 0, 0, 110, 111, 116, 101, 1, 26, 0, 0, 0, 0,
    0, 0, 5, 0, 0, 0, 115, 105, 122, 101, 100, 1, 30, 3, 0, 0,
    0, 4, 0, 0, 0, 105, 116, 101, 109, 1, 31, 2, 0, 0, 0, 1,
    0, 0, 0, 120, 0, 12, 0, 0, 4, 0, 0, 0, 110, 111, 116, 101,
    1, 26, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 109, 97, 116, 114,
    105, 120, 0, 29, 3, 0, 0, 0, 114, 111, 119, 1, 29, 4, 0, 0,
    0, 105, 116, 101, 109, 0, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0,
    0, 109, 97, 112, 1, 32, 0, 3, 0, 0, 0, 107, 101, 121, 0, 26,
    0, 0, 5, 0, 0, 0, 118, 97, 108, 117, 101, 1, 5, 0, 0, 0,
    0, 3, 0, 0, 0, 108, 111, 119, 0, 33, 2, 0, 26, 0, 0, 5,
    0, 0, 0, 110, 117, 108, 108, 115, 0, 29, 4, 0, 0, 0, 105, 116,
    101, 109, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 109, 97, 114, 107,
    115, 0, 29, 4, 0, 0, 0, 105, 116, 101, 109, 1, 31, 0, 0, 0,
    0, 0, 0, 0, 0, 7, 0, 0, 0, 101, 109, 112, 116, 105, 101, 115,
    0, 29, 4, 0, 0, 0, 105, 116, 101, 109, 0, 31, 0, 0, 0, 0,
    0, 0, 0, 0, 4, 0, 0, 0, 115, 97, 109, 101, 0, 2, 0, 0,
    4, 0, 0, 0, 115, 97, 109, 101, 0, 2, 0, 0,
];

/// The SHA-256 of the schema, by which a file is known.
#[allow(dead_code)]
pub const SCHEMA_DIGEST: [u8; 32] = [
    40, 12, 0, 159, 193, 223, 44, 173, 124, 202, 252, 145, 119, 177, 130, 250,
    80, 227, 25, 182, 171, 133, 26, 120, 45, 210, 3, 242, 165, 207, 58, 93,
];

/// An object.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Everything<'a> {
    extent: &'a [u8],
    record: &'a [u8; 363],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> Everything<'a> {
    /// An object of a verified page.
    ///
    /// # Errors
    /// When it is of another schema.
    pub fn of(object: ::dray_page::Object<'a>) -> ::dray_page::Result<Self> {
        object.layout().check_schema(SCHEMA)?;
        Ok(Self::in_extent(object.bytes()))
    }

    #[inline(always)]
    fn in_extent(extent: &'a [u8]) -> Self {
        Self { extent, record: g::record(extent) }
    }

    /// The field "i8".
    #[inline(always)]
    pub fn i8(&self) -> i8 {
        i8::from_le_bytes(g::word(self.record, 352))
    }

    /// The field "i16".
    #[inline(always)]
    pub fn i16(&self) -> Option<i16> {
        let is_present = g::is_set(self.record, 4, 1);
        is_present.then(|| i16::from_le_bytes(g::word(self.record, 344)))
    }

    /// The field "i32".
    #[inline(always)]
    pub fn i32(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 312))
    }

    /// The field "i64".
    #[inline(always)]
    pub fn i64(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 8))
    }

    /// The field "u8".
    #[inline(always)]
    pub fn u8(&self) -> Option<u8> {
        let is_present = g::is_set(self.record, 4, 2);
        is_present.then(|| u8::from_le_bytes(g::word(self.record, 353)))
    }

    /// The field "u16".
    #[inline(always)]
    pub fn u16(&self) -> u16 {
        u16::from_le_bytes(g::word(self.record, 346))
    }

    /// The field "u32".
    #[inline(always)]
    pub fn u32(&self) -> u32 {
        u32::from_le_bytes(g::word(self.record, 316))
    }

    /// The field "u64".
    #[inline(always)]
    pub fn u64(&self) -> Option<u64> {
        let is_present = g::is_set(self.record, 4, 4);
        is_present.then(|| u64::from_le_bytes(g::word(self.record, 16)))
    }

    /// The field "f16".
    #[inline(always)]
    pub fn f16(&self) -> &'a [u8; 2] {
        g::bytes_at(self.record, 348)
    }

    /// The field "f32".
    #[inline(always)]
    pub fn f32(&self) -> f32 {
        f32::from_le_bytes(g::word(self.record, 320))
    }

    /// The field "f64".
    #[inline(always)]
    pub fn f64(&self) -> Option<f64> {
        let is_present = g::is_set(self.record, 4, 8);
        is_present.then(|| f64::from_le_bytes(g::word(self.record, 24)))
    }

    /// The field "bool".
    #[inline(always)]
    pub fn bool(&self) -> bool {
        g::word(self.record, 354) == [1]
    }

    /// The field "date".
    #[inline(always)]
    pub fn date(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 32))
    }

    /// The field "time".
    #[inline(always)]
    pub fn time(&self) -> Option<i32> {
        let is_present = g::is_set(self.record, 4, 16);
        is_present.then(|| i32::from_le_bytes(g::word(self.record, 324)))
    }

    /// The field "stamp".
    #[inline(always)]
    pub fn stamp(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 40))
    }

    /// The field "months".
    #[inline(always)]
    pub fn months(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 328))
    }

    /// The field "days".
    #[inline(always)]
    pub fn days(&self) -> Option<&'a [u8; 8]> {
        let is_present = g::is_set(self.record, 4, 32);
        is_present.then(|| g::bytes_at(self.record, 48))
    }

    /// The field "interval".
    #[inline(always)]
    pub fn interval(&self) -> &'a [u8; 16] {
        g::bytes_at(self.record, 56)
    }

    /// The field "d32".
    #[inline(always)]
    pub fn d32(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 332))
    }

    /// The field "d64".
    #[inline(always)]
    pub fn d64(&self) -> Option<i64> {
        let is_present = g::is_set(self.record, 4, 64);
        is_present.then(|| i64::from_le_bytes(g::word(self.record, 72)))
    }

    /// The field "d128".
    #[inline(always)]
    pub fn d128(&self) -> i128 {
        i128::from_le_bytes(g::word(self.record, 80))
    }

    /// The field "d256".
    #[inline(always)]
    pub fn d256(&self) -> &'a [u8; 32] {
        g::bytes_at(self.record, 96)
    }

    /// The field "text".
    #[inline(always)]
    pub fn text(&self) -> Option<&'a str> {
        let is_present = g::is_set(self.record, 4, 128);
        is_present.then(|| g::text(self.extent, self.record, 128))
    }

    /// The field "text".
    #[inline(always)]
    pub fn text_bytes_2(&self) -> Option<&'a [u8]> {
        let is_present = g::is_set(self.record, 4, 128);
        is_present.then(|| g::bytes(self.extent, self.record, 128))
    }

    /// The field "text_bytes", without a check for UTF-8.
    #[inline(always)]
    pub fn text_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 144)
    }

    /// The field "hash".
    #[inline(always)]
    pub fn hash(&self) -> &'a [u8; 5] {
        g::bytes_at(self.record, 355)
    }

    /// The field "outer".
    #[inline(always)]
    pub fn outer(&self) -> Option<Outer<'a>> {
        let is_present = g::is_set(self.record, 5, 1);
        is_present.then(|| Outer { extent: self.extent, record: self.record })
    }

    /// The field "größe".
    #[inline(always)]
    pub fn gr__e(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 336))
    }

    /// The field "gr__e".
    #[inline(always)]
    pub fn gr__e_2(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 340))
    }

    /// The field "numbers".
    #[inline(always)]
    pub fn numbers(&self) -> g::List<'a, i64, 8> {
        g::list(self.extent, self.record, 192)
    }

    /// The field "gaps".
    #[inline(always)]
    pub fn gaps(&self) -> Option<g::NullableList<'a, u16, 2>> {
        let is_present = g::is_set(self.record, 5, 8);
        is_present.then(|| g::nullable_list(self.extent, self.record, 200))
    }

    /// The field "words".
    #[inline(always)]
    pub fn words(&self) -> g::List<'a, &'a str, 16> {
        g::list(self.extent, self.record, 208)
    }

    /// The field "blobs".
    #[inline(always)]
    pub fn blobs(&self) -> g::List<'a, &'a [u8], 16> {
        g::list(self.extent, self.record, 216)
    }

    /// The field "flags".
    #[inline(always)]
    pub fn flags(&self) -> g::NullableList<'a, bool, 1> {
        g::nullable_list(self.extent, self.record, 224)
    }

    /// The field "hashes".
    #[inline(always)]
    pub fn hashes(&self) -> g::List<'a, &'a [u8; 3], 3> {
        g::list(self.extent, self.record, 232)
    }

    /// The field "points".
    #[inline(always)]
    pub fn points(&self) -> g::NullableList<'a, PointsItem<'a>, 32> {
        g::nullable_list(self.extent, self.record, 240)
    }

    /// The field "sized".
    #[inline(always)]
    pub fn sized(&self) -> Option<g::NullableList<'a, SizedItem<'a>, 32>> {
        let is_present = g::is_set(self.record, 5, 16);
        is_present.then(|| g::nullable_list(self.extent, self.record, 248))
    }

    /// The field "matrix".
    #[inline(always)]
    pub fn matrix(&self) -> g::NullableList<'a, g::List<'a, i32, 4>, 8> {
        g::nullable_list(self.extent, self.record, 256)
    }

    /// The field "map".
    #[inline(always)]
    pub fn map(&self) -> Option<g::List<'a, MapItem<'a>, 32>> {
        let is_present = g::is_set(self.record, 5, 32);
        is_present.then(|| g::list(self.extent, self.record, 264))
    }

    /// The field "low".
    #[inline(always)]
    pub fn low(&self) -> &'a str {
        g::text(self.extent, self.record, 272)
    }

    /// The field "low", without a check for UTF-8.
    #[inline(always)]
    pub fn low_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 272)
    }

    /// The field "nulls".
    #[inline(always)]
    pub fn nulls(&self) -> g::Marks<'a, false> {
        g::marks(self.extent, self.record, 288)
    }

    /// The field "marks".
    #[inline(always)]
    pub fn marks(&self) -> g::Marks<'a, true> {
        g::marks(self.extent, self.record, 296)
    }

    /// The field "empties".
    #[inline(always)]
    pub fn empties(&self) -> g::Marks<'a, false> {
        g::marks(self.extent, self.record, 304)
    }

    /// The field "same".
    #[inline(always)]
    pub fn same(&self) -> i8 {
        i8::from_le_bytes(g::word(self.record, 361))
    }

    /// The field "same".
    #[inline(always)]
    pub fn same_2(&self) -> i8 {
        i8::from_le_bytes(g::word(self.record, 362))
    }

}

impl ::core::fmt::Debug for Everything<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Everything");
        shown.field("i8", &self.i8());
        shown.field("i16", &self.i16());
        shown.field("i32", &self.i32());
        shown.field("i64", &self.i64());
        shown.field("u8", &self.u8());
        shown.field("u16", &self.u16());
        shown.field("u32", &self.u32());
        shown.field("u64", &self.u64());
        shown.field("f16", &self.f16());
        shown.field("f32", &self.f32());
        shown.field("f64", &self.f64());
        shown.field("bool", &self.bool());
        shown.field("date", &self.date());
        shown.field("time", &self.time());
        shown.field("stamp", &self.stamp());
        shown.field("months", &self.months());
        shown.field("days", &self.days());
        shown.field("interval", &self.interval());
        shown.field("d32", &self.d32());
        shown.field("d64", &self.d64());
        shown.field("d128", &self.d128());
        shown.field("d256", &self.d256());
        shown.field("text", &self.text());
        shown.field("text_bytes", &self.text_bytes());
        shown.field("hash", &self.hash());
        shown.field("outer", &self.outer());
        shown.field("größe", &self.gr__e());
        shown.field("gr__e", &self.gr__e_2());
        shown.field("numbers", &self.numbers());
        shown.field("gaps", &self.gaps());
        shown.field("words", &self.words());
        shown.field("blobs", &self.blobs());
        shown.field("flags", &self.flags());
        shown.field("hashes", &self.hashes());
        shown.field("points", &self.points());
        shown.field("sized", &self.sized());
        shown.field("matrix", &self.matrix());
        shown.field("map", &self.map());
        shown.field("low", &self.low());
        shown.field("nulls", &self.nulls());
        shown.field("marks", &self.marks());
        shown.field("empties", &self.empties());
        shown.field("same", &self.same());
        shown.field("same", &self.same_2());
        shown.finish()
    }
}

/// The struct `outer`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Outer<'a> {
    extent: &'a [u8],
    record: &'a [u8; 363],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> Outer<'a> {
    /// The field "inner".
    #[inline(always)]
    pub fn inner(&self) -> Option<Inner<'a>> {
        let is_present = g::is_set(self.record, 5, 2);
        is_present.then(|| Inner { extent: self.extent, record: self.record })
    }

    /// The field "self".
    #[inline(always)]
    pub fn self_(&self) -> bool {
        g::word(self.record, 360) == [1]
    }

}

impl ::core::fmt::Debug for Outer<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Outer");
        shown.field("inner", &self.inner());
        shown.field("self", &self.self_());
        shown.finish()
    }
}

/// The struct `outer.inner`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Inner<'a> {
    extent: &'a [u8],
    record: &'a [u8; 363],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> Inner<'a> {
    /// The field "x".
    #[inline(always)]
    pub fn x(&self) -> i16 {
        i16::from_le_bytes(g::word(self.record, 350))
    }

    /// The field "type".
    #[inline(always)]
    pub fn r#type(&self) -> Option<&'a str> {
        let is_present = g::is_set(self.record, 5, 4);
        is_present.then(|| g::text(self.extent, self.record, 160))
    }

    /// The field "type", without a check for UTF-8.
    #[inline(always)]
    pub fn type_bytes(&self) -> Option<&'a [u8]> {
        let is_present = g::is_set(self.record, 5, 4);
        is_present.then(|| g::bytes(self.extent, self.record, 160))
    }

    /// The field "sized".
    #[inline(always)]
    pub fn sized(&self) -> g::List<'a, i8, 1> {
        g::list(self.extent, self.record, 176)
    }

    /// The field "tags".
    #[inline(always)]
    pub fn tags(&self) -> g::NullableList<'a, &'a str, 16> {
        g::nullable_list(self.extent, self.record, 184)
    }

}

impl ::core::fmt::Debug for Inner<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Inner");
        shown.field("x", &self.x());
        shown.field("type", &self.r#type());
        shown.field("sized", &self.sized());
        shown.field("tags", &self.tags());
        shown.finish()
    }
}

/// An item, `points.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct PointsItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 32],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> PointsItem<'a> {
    /// The field "x".
    #[inline(always)]
    pub fn x(&self) -> f64 {
        f64::from_le_bytes(g::word(self.record, 8))
    }

    /// The field "note".
    #[inline(always)]
    pub fn note(&self) -> Option<&'a str> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| g::text(self.extent, self.record, 16))
    }

    /// The field "note", without a check for UTF-8.
    #[inline(always)]
    pub fn note_bytes(&self) -> Option<&'a [u8]> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| g::bytes(self.extent, self.record, 16))
    }

}

impl<'a> g::Element<'a, 32> for PointsItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 32]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for PointsItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("PointsItem");
        shown.field("x", &self.x());
        shown.field("note", &self.note());
        shown.finish()
    }
}

/// An item, `sized.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct SizedItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 32],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> SizedItem<'a> {
    /// The field "x".
    #[inline(always)]
    pub fn x(&self) -> f64 {
        f64::from_le_bytes(g::word(self.record, 8))
    }

    /// The field "note".
    #[inline(always)]
    pub fn note(&self) -> Option<&'a str> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| g::text(self.extent, self.record, 16))
    }

    /// The field "note", without a check for UTF-8.
    #[inline(always)]
    pub fn note_bytes(&self) -> Option<&'a [u8]> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| g::bytes(self.extent, self.record, 16))
    }

}

impl<'a> g::Element<'a, 32> for SizedItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 32]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for SizedItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("SizedItem");
        shown.field("x", &self.x());
        shown.field("note", &self.note());
        shown.finish()
    }
}

/// An item, `map.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct MapItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 32],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> MapItem<'a> {
    /// The field "key".
    #[inline(always)]
    pub fn key(&self) -> &'a str {
        g::text(self.extent, self.record, 8)
    }

    /// The field "key", without a check for UTF-8.
    #[inline(always)]
    pub fn key_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 8)
    }

    /// The field "value".
    #[inline(always)]
    pub fn value(&self) -> Option<i64> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| i64::from_le_bytes(g::word(self.record, 24)))
    }

}

impl<'a> g::Element<'a, 32> for MapItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 32]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for MapItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("MapItem");
        shown.field("key", &self.key());
        shown.field("value", &self.value());
        shown.finish()
    }
}

/// An item, `marks.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct MarksItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 0],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> MarksItem<'a> {
}

impl ::core::fmt::Debug for MarksItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("MarksItem");
        shown.finish()
    }
}

/// An item, `empties.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct EmptiesItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 0],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> EmptiesItem<'a> {
}

impl ::core::fmt::Debug for EmptiesItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("EmptiesItem");
        shown.finish()
    }
}

/// The objects of a page.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct EverythingPage<'a> {
    page: &'a ::dray_page::VerifiedPage,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> EverythingPage<'a> {
    /// The objects of a page that was verified.
    ///
    /// # Errors
    /// When they are of another schema.
    pub fn of(page: &'a ::dray_page::VerifiedPage) -> ::dray_page::Result<Self> {
        page.layout().check_schema(SCHEMA)?;
        Ok(Self { page })
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.page.len()
    }

    /// Object `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Everything<'a>> {
        self.page.object(i).map(|object| Everything::in_extent(object.bytes()))
    }

    /// All objects, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Everything<'a>> + Clone + use<'a> {
        self.page.objects().map(|object| Everything::in_extent(object.bytes()))
    }
}


/// A file of objects.
#[allow(dead_code)]
#[derive(Debug)]
pub struct EverythingFile {
    file: ::dray_pagefile::PageFile,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl EverythingFile {
    /// Maps a file.
    ///
    /// # Errors
    /// When it can't be read, or has another schema than this code was made for.
    pub fn open(path: impl AsRef<::std::path::Path>) -> ::dray_pagefile::Result<Self> {
        let file = ::dray_pagefile::PageFile::open_for(path, &SCHEMA_DIGEST)?;
        Ok(Self { file })
    }

    /// The file itself.
    pub fn file(&self) -> &::dray_pagefile::PageFile {
        &self.file
    }

    /// The number of objects.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// The object with this number.
    ///
    /// # Errors
    /// When there is none, or its page is damaged.
    #[inline]
    pub fn get(&self, ordinal: u64) -> ::dray_pagefile::Result<Everything<'_>> {
        Ok(Everything::in_extent(self.file.object(ordinal)?.bytes()))
    }

    /// All pages, in order. Each is checked when it comes for the first time.
    pub fn pages(
        &self,
    ) -> impl ExactSizeIterator<Item = ::dray_pagefile::Result<EverythingPage<'_>>> {
        self.file.pages().map(|page| page.map(|page| EverythingPage { page }))
    }

    /// All objects, in order. A page that is damaged is an error in place of its objects.
    pub fn iter(&self) -> impl Iterator<Item = ::dray_pagefile::Result<Everything<'_>>> {
        self.pages().flat_map(|page| {
            let (page, error) = match page {
                Ok(page) => (Some(page), None),
                Err(error) => (None, Some(Err(error))),
            };
            page.into_iter().flat_map(|page| page.iter().map(Ok)).chain(error)
        })
    }


    /// The objects with this key, in the order of their numbers.
    ///
    /// # Errors
    /// When the file has no index of this key, or a page is damaged.
    pub fn find(
        &self,
        text: &str,
        i64: i64,
        bool: bool,
        x: i16,
    ) -> ::dray_pagefile::Result<Vec<Everything<'_>>> {
        const KEY: &[&[&str]] = &[
            &["text"],
            &["i64"],
            &["bool"],
            &["outer", "inner", "x"],
        ];
        let values = [
            ::dray_pagefile::KeyValue::Bytes(text.as_bytes().to_vec()),
            ::dray_pagefile::KeyValue::Integer(i64.into()),
            ::dray_pagefile::KeyValue::Bool(bool),
            ::dray_pagefile::KeyValue::Integer(x.into()),
        ];
        let found = self.file.find_by(KEY, &values)?;
        found.into_iter().map(|ordinal| self.get(ordinal)).collect()
    }

}

/// The mutators of all fields, which are looked up once.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct EverythingFields {
    layout: ::std::sync::Arc<::dray_page::Layout>,
    f0_i8: ::dray_page::Mutator<i8>,
    f0_i16: ::dray_page::Mutator<i16>,
    f0_i32: ::dray_page::Mutator<i32>,
    f0_i64: ::dray_page::Mutator<i64>,
    f0_u8: ::dray_page::Mutator<u8>,
    f0_u16: ::dray_page::Mutator<u16>,
    f0_u32: ::dray_page::Mutator<u32>,
    f0_u64: ::dray_page::Mutator<u64>,
    f0_f16: ::dray_page::Mutator<[u8; 2]>,
    f0_f32: ::dray_page::Mutator<f32>,
    f0_f64: ::dray_page::Mutator<f64>,
    f0_bool: ::dray_page::Mutator<bool>,
    f0_date: ::dray_page::Mutator<i64>,
    f0_time: ::dray_page::Mutator<i32>,
    f0_stamp: ::dray_page::Mutator<i64>,
    f0_months: ::dray_page::Mutator<i32>,
    f0_days: ::dray_page::Mutator<[u8; 8]>,
    f0_interval: ::dray_page::Mutator<[u8; 16]>,
    f0_d32: ::dray_page::Mutator<i32>,
    f0_d64: ::dray_page::Mutator<i64>,
    f0_d128: ::dray_page::Mutator<i128>,
    f0_d256: ::dray_page::Mutator<[u8; 32]>,
    f0_text: ::dray_page::Mutator<str>,
    f0_text_bytes: ::dray_page::Mutator<[u8]>,
    f0_hash: ::dray_page::Mutator<[u8; 5]>,
    f0_outer: ::dray_page::Mutator<()>,
    f0_gr__e: ::dray_page::Mutator<i32>,
    f0_gr__e_2: ::dray_page::Mutator<i32>,
    f0_numbers: ::dray_page::ListMutator,
    f0_numbers_item: ::dray_page::Mutator<i64>,
    f0_gaps: ::dray_page::ListMutator,
    f0_gaps_item: ::dray_page::Mutator<u16>,
    f0_words: ::dray_page::ListMutator,
    f0_words_item: ::dray_page::Mutator<str>,
    f0_blobs: ::dray_page::ListMutator,
    f0_blobs_item: ::dray_page::Mutator<[u8]>,
    f0_flags: ::dray_page::ListMutator,
    f0_flags_item: ::dray_page::Mutator<bool>,
    f0_hashes: ::dray_page::ListMutator,
    f0_hashes_item: ::dray_page::Mutator<[u8; 3]>,
    f0_points: ::dray_page::ListMutator,
    f0_sized: ::dray_page::ListMutator,
    f0_matrix: ::dray_page::ListMutator,
    f0_map: ::dray_page::ListMutator,
    f0_low: ::dray_page::Mutator<str>,
    f0_nulls: ::dray_page::ListMutator,
    f0_marks: ::dray_page::ListMutator,
    f0_empties: ::dray_page::ListMutator,
    f1_inner: ::dray_page::Mutator<()>,
    f1_self: ::dray_page::Mutator<bool>,
    f2_x: ::dray_page::Mutator<i16>,
    f2_type: ::dray_page::Mutator<str>,
    f2_sized: ::dray_page::ListMutator,
    f2_sized_item: ::dray_page::Mutator<i8>,
    f2_tags: ::dray_page::ListMutator,
    f2_tags_item: ::dray_page::Mutator<str>,
    f3: ::dray_page::Mutator<()>,
    f3_x: ::dray_page::Mutator<f64>,
    f3_note: ::dray_page::Mutator<str>,
    f4: ::dray_page::Mutator<()>,
    f4_x: ::dray_page::Mutator<f64>,
    f4_note: ::dray_page::Mutator<str>,
    f5_key: ::dray_page::Mutator<str>,
    f5_value: ::dray_page::Mutator<i64>,
    f6: ::dray_page::Mutator<()>,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl EverythingFields {
    fn new() -> ::dray_page::Result<Self> {
        let layout = ::dray_page::Layout::decode(SCHEMA)?;
        Ok(Self {
            f0_i8: layout.mutator(&["i8"])?,
            f0_i16: layout.mutator(&["i16"])?,
            f0_i32: layout.mutator(&["i32"])?,
            f0_i64: layout.mutator(&["i64"])?,
            f0_u8: layout.mutator(&["u8"])?,
            f0_u16: layout.mutator(&["u16"])?,
            f0_u32: layout.mutator(&["u32"])?,
            f0_u64: layout.mutator(&["u64"])?,
            f0_f16: layout.mutator(&["f16"])?,
            f0_f32: layout.mutator(&["f32"])?,
            f0_f64: layout.mutator(&["f64"])?,
            f0_bool: layout.mutator(&["bool"])?,
            f0_date: layout.mutator(&["date"])?,
            f0_time: layout.mutator(&["time"])?,
            f0_stamp: layout.mutator(&["stamp"])?,
            f0_months: layout.mutator(&["months"])?,
            f0_days: layout.mutator(&["days"])?,
            f0_interval: layout.mutator(&["interval"])?,
            f0_d32: layout.mutator(&["d32"])?,
            f0_d64: layout.mutator(&["d64"])?,
            f0_d128: layout.mutator(&["d128"])?,
            f0_d256: layout.mutator(&["d256"])?,
            f0_text: layout.mutator(&["text"])?,
            f0_text_bytes: layout.mutator(&["text_bytes"])?,
            f0_hash: layout.mutator(&["hash"])?,
            f0_outer: layout.mutator(&["outer"])?,
            f0_gr__e: layout.mutator(&["größe"])?,
            f0_gr__e_2: layout.mutator(&["gr__e"])?,
            f0_numbers: layout.list_mutator(&["numbers"])?,
            f0_numbers_item: layout.mutator(&["numbers", "[]"])?,
            f0_gaps: layout.list_mutator(&["gaps"])?,
            f0_gaps_item: layout.mutator(&["gaps", "[]"])?,
            f0_words: layout.list_mutator(&["words"])?,
            f0_words_item: layout.mutator(&["words", "[]"])?,
            f0_blobs: layout.list_mutator(&["blobs"])?,
            f0_blobs_item: layout.mutator(&["blobs", "[]"])?,
            f0_flags: layout.list_mutator(&["flags"])?,
            f0_flags_item: layout.mutator(&["flags", "[]"])?,
            f0_hashes: layout.list_mutator(&["hashes"])?,
            f0_hashes_item: layout.mutator(&["hashes", "[]"])?,
            f0_points: layout.list_mutator(&["points"])?,
            f0_sized: layout.list_mutator(&["sized"])?,
            f0_matrix: layout.list_mutator(&["matrix"])?,
            f0_map: layout.list_mutator(&["map"])?,
            f0_low: layout.mutator(&["low"])?,
            f0_nulls: layout.list_mutator(&["nulls"])?,
            f0_marks: layout.list_mutator(&["marks"])?,
            f0_empties: layout.list_mutator(&["empties"])?,
            f1_inner: layout.mutator(&["outer", "inner"])?,
            f1_self: layout.mutator(&["outer", "self"])?,
            f2_x: layout.mutator(&["outer", "inner", "x"])?,
            f2_type: layout.mutator(&["outer", "inner", "type"])?,
            f2_sized: layout.list_mutator(&["outer", "inner", "sized"])?,
            f2_sized_item: layout.mutator(&["outer", "inner", "sized", "[]"])?,
            f2_tags: layout.list_mutator(&["outer", "inner", "tags"])?,
            f2_tags_item: layout.mutator(&["outer", "inner", "tags", "[]"])?,
            f3: layout.mutator(&["points", "[]"])?,
            f3_x: layout.mutator(&["points", "[]", "x"])?,
            f3_note: layout.mutator(&["points", "[]", "note"])?,
            f4: layout.mutator(&["sized", "[]"])?,
            f4_x: layout.mutator(&["sized", "[]", "x"])?,
            f4_note: layout.mutator(&["sized", "[]", "note"])?,
            f5_key: layout.mutator(&["map", "key"])?,
            f5_value: layout.mutator(&["map", "value"])?,
            f6: layout.mutator(&["marks", "[]"])?,
            layout,
        })
    }

    /// All mutators.
    ///
    /// # Errors
    /// Never, unless this code was changed.
    pub fn get() -> ::dray_page::Result<&'static Self> {
        static FIELDS: ::std::sync::OnceLock<EverythingFields> = ::std::sync::OnceLock::new();
        match FIELDS.get() {
            Some(fields) => Ok(fields),
            None => {
                let fields = Self::new()?;
                Ok(FIELDS.get_or_init(|| fields))
            }
        }
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &::std::sync::Arc<::dray_page::Layout> {
        &self.layout
    }
}

/// Builds an object.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct EverythingBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> EverythingBuilder<'_, 'r> {
    /// Appends an object to a page. `build` writes its fields: strings and lists in the
    /// order of the schema, numbers in any order. What it does not write is missing if it
    /// may be, and otherwise 0 or empty.
    ///
    /// # Errors
    /// Those of `build`, and when there is no memory. Nothing is appended then.
    pub fn build(
        pages: &mut ::dray_page::PageBuilder,
        build: impl FnOnce(&mut EverythingBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = EverythingFields::get()?;
        pages.build(|object| build(&mut EverythingBuilder { object, fields }))
    }

    /// Appends an object to a page file, as `build` does to a page.
    ///
    /// # Errors
    /// Those of `build`, and when the file can't be written.
    pub fn write<W: ::std::io::Write>(
        file: &mut ::dray_pagefile::PageFileWriter<W>,
        build: impl FnOnce(&mut EverythingBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_pagefile::Result<()> {
        let fields = EverythingFields::get()?;
        file.build(|object| build(&mut EverythingBuilder { object, fields }))
    }

    /// Sets the field "i8".
    #[inline]
    pub fn set_i8(&mut self, value: i8) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_i8, value)
    }

    /// Sets the field "i16".
    #[inline]
    pub fn set_i16(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_i16, value)
    }

    /// Sets the field "i32".
    #[inline]
    pub fn set_i32(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_i32, value)
    }

    /// Sets the field "i64".
    #[inline]
    pub fn set_i64(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_i64, value)
    }

    /// Sets the field "u8".
    #[inline]
    pub fn set_u8(&mut self, value: u8) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_u8, value)
    }

    /// Sets the field "u16".
    #[inline]
    pub fn set_u16(&mut self, value: u16) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_u16, value)
    }

    /// Sets the field "u32".
    #[inline]
    pub fn set_u32(&mut self, value: u32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_u32, value)
    }

    /// Sets the field "u64".
    #[inline]
    pub fn set_u64(&mut self, value: u64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_u64, value)
    }

    /// Sets the field "f16".
    #[inline]
    pub fn set_f16(&mut self, value: [u8; 2]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_f16, value)
    }

    /// Sets the field "f32".
    #[inline]
    pub fn set_f32(&mut self, value: f32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_f32, value)
    }

    /// Sets the field "f64".
    #[inline]
    pub fn set_f64(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_f64, value)
    }

    /// Sets the field "bool".
    #[inline]
    pub fn set_bool(&mut self, value: bool) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_bool, value)
    }

    /// Sets the field "date".
    #[inline]
    pub fn set_date(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_date, value)
    }

    /// Sets the field "time".
    #[inline]
    pub fn set_time(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_time, value)
    }

    /// Sets the field "stamp".
    #[inline]
    pub fn set_stamp(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_stamp, value)
    }

    /// Sets the field "months".
    #[inline]
    pub fn set_months(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_months, value)
    }

    /// Sets the field "days".
    #[inline]
    pub fn set_days(&mut self, value: [u8; 8]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_days, value)
    }

    /// Sets the field "interval".
    #[inline]
    pub fn set_interval(&mut self, value: [u8; 16]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_interval, value)
    }

    /// Sets the field "d32".
    #[inline]
    pub fn set_d32(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_d32, value)
    }

    /// Sets the field "d64".
    #[inline]
    pub fn set_d64(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_d64, value)
    }

    /// Sets the field "d128".
    #[inline]
    pub fn set_d128(&mut self, value: i128) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_d128, value)
    }

    /// Sets the field "d256".
    #[inline]
    pub fn set_d256(&mut self, value: [u8; 32]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_d256, value)
    }

    /// Sets the field "text".
    #[inline]
    pub fn set_text(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_text, value)
    }

    /// Sets the field "text_bytes".
    #[inline]
    pub fn set_text_bytes(&mut self, value: &[u8]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_text_bytes, value)
    }

    /// Sets the field "hash".
    #[inline]
    pub fn set_hash(&mut self, value: [u8; 5]) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_hash, value)
    }

    /// Builds the field "outer".
    #[inline]
    pub fn outer(&mut self) -> OuterBuilder<'_, 'r> {
        OuterBuilder { object: self.object, fields: self.fields }
    }

    /// The field "outer" is not missing.
    #[inline]
    pub fn set_outer(&mut self) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_outer, ())
    }

    /// Sets the field "größe".
    #[inline]
    pub fn set_gr__e(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_gr__e, value)
    }

    /// Sets the field "gr__e".
    #[inline]
    pub fn set_gr__e_2(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_gr__e_2, value)
    }

    /// Writes the list "numbers".
    #[inline]
    pub fn set_numbers(
        &mut self,
        values: impl IntoIterator<Item = i64, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.values(&fields.f0_numbers, &fields.f0_numbers_item, values)
    }

    /// Writes the list "gaps".
    #[inline]
    pub fn set_gaps(
        &mut self,
        values: impl IntoIterator<Item = Option<u16>, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.optional_values(&fields.f0_gaps, &fields.f0_gaps_item, values)
    }

    /// Writes the list "words".
    #[inline]
    pub fn set_words<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v str, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.values(&fields.f0_words, &fields.f0_words_item, values)
    }

    /// Writes the list "blobs".
    #[inline]
    pub fn set_blobs<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v [u8], IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.values(&fields.f0_blobs, &fields.f0_blobs_item, values)
    }

    /// Writes the list "flags".
    #[inline]
    pub fn set_flags(
        &mut self,
        values: impl IntoIterator<Item = Option<bool>, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.optional_values(&fields.f0_flags, &fields.f0_flags_item, values)
    }

    /// Writes the list "hashes".
    #[inline]
    pub fn set_hashes(
        &mut self,
        values: impl IntoIterator<Item = [u8; 3], IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.values(&fields.f0_hashes, &fields.f0_hashes_item, values)
    }

    /// Writes the list "points" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn points(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut PointsItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_points, count, |object, i| {
            each(&mut PointsItemBuilder { object, fields }, i)
        })
    }

    /// Writes the list "sized" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn sized(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut SizedItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_sized, count, |object, i| {
            each(&mut SizedItemBuilder { object, fields }, i)
        })
    }

    /// Writes the list "matrix" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn matrix(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut ::dray_page::ObjectBuilder<'_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_matrix, count, |object, i| {
            each(object, i)
        })
    }

    /// Writes the list "map" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn map(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut MapItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_map, count, |object, i| {
            each(&mut MapItemBuilder { object, fields }, i)
        })
    }

    /// Sets the field "low".
    #[inline]
    pub fn set_low(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_low, value)
    }

    /// Writes the list "nulls" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn nulls(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut ::dray_page::ObjectBuilder<'_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_nulls, count, |object, i| {
            each(object, i)
        })
    }

    /// Writes the list "marks" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn marks(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut MarksItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_marks, count, |object, i| {
            each(&mut MarksItemBuilder { object, fields }, i)
        })
    }

    /// Writes the list "empties" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn empties(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut EmptiesItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_empties, count, |object, i| {
            each(&mut EmptiesItemBuilder { object, fields }, i)
        })
    }

}

/// Changes an object in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct EverythingMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> EverythingMut<'e> {
    /// Object `i` of a page, if there is one.
    ///
    /// # Errors
    /// When the page's objects are of another schema.
    pub fn of(
        editor: &'e mut ::dray_page::PageEditor,
        i: usize,
    ) -> ::dray_page::Result<Option<Self>> {
        editor.layout().check_schema(SCHEMA)?;
        let fields = EverythingFields::get()?;
        Ok(editor.object_mut(i).map(|item| Self { item, fields }))
    }

    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> Everything<'_> {
        let (extent, record) = g::of_item(&self.item);
        Everything { extent, record: g::record::<363>(record) }
    }

    /// Changes the field "i8".
    #[inline]
    pub fn set_i8(&mut self, value: i8) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_i8, value)
    }

    /// Changes the field "i16".
    #[inline]
    pub fn set_i16(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_i16, value)
    }

    /// Makes the field "i16" missing.
    #[inline]
    pub fn clear_i16(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_i16)
    }

    /// Changes the field "i32".
    #[inline]
    pub fn set_i32(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_i32, value)
    }

    /// Changes the field "i64".
    #[inline]
    pub fn set_i64(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_i64, value)
    }

    /// Changes the field "u8".
    #[inline]
    pub fn set_u8(&mut self, value: u8) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_u8, value)
    }

    /// Makes the field "u8" missing.
    #[inline]
    pub fn clear_u8(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_u8)
    }

    /// Changes the field "u16".
    #[inline]
    pub fn set_u16(&mut self, value: u16) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_u16, value)
    }

    /// Changes the field "u32".
    #[inline]
    pub fn set_u32(&mut self, value: u32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_u32, value)
    }

    /// Changes the field "u64".
    #[inline]
    pub fn set_u64(&mut self, value: u64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_u64, value)
    }

    /// Makes the field "u64" missing.
    #[inline]
    pub fn clear_u64(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_u64)
    }

    /// Changes the field "f16".
    #[inline]
    pub fn set_f16(&mut self, value: [u8; 2]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_f16, value)
    }

    /// Changes the field "f32".
    #[inline]
    pub fn set_f32(&mut self, value: f32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_f32, value)
    }

    /// Changes the field "f64".
    #[inline]
    pub fn set_f64(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_f64, value)
    }

    /// Makes the field "f64" missing.
    #[inline]
    pub fn clear_f64(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_f64)
    }

    /// Changes the field "bool".
    #[inline]
    pub fn set_bool(&mut self, value: bool) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_bool, value)
    }

    /// Changes the field "date".
    #[inline]
    pub fn set_date(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_date, value)
    }

    /// Changes the field "time".
    #[inline]
    pub fn set_time(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_time, value)
    }

    /// Makes the field "time" missing.
    #[inline]
    pub fn clear_time(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_time)
    }

    /// Changes the field "stamp".
    #[inline]
    pub fn set_stamp(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_stamp, value)
    }

    /// Changes the field "months".
    #[inline]
    pub fn set_months(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_months, value)
    }

    /// Changes the field "days".
    #[inline]
    pub fn set_days(&mut self, value: [u8; 8]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_days, value)
    }

    /// Makes the field "days" missing.
    #[inline]
    pub fn clear_days(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_days)
    }

    /// Changes the field "interval".
    #[inline]
    pub fn set_interval(&mut self, value: [u8; 16]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_interval, value)
    }

    /// Changes the field "d32".
    #[inline]
    pub fn set_d32(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_d32, value)
    }

    /// Changes the field "d64".
    #[inline]
    pub fn set_d64(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_d64, value)
    }

    /// Makes the field "d64" missing.
    #[inline]
    pub fn clear_d64(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_d64)
    }

    /// Changes the field "d128".
    #[inline]
    pub fn set_d128(&mut self, value: i128) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_d128, value)
    }

    /// Changes the field "d256".
    #[inline]
    pub fn set_d256(&mut self, value: [u8; 32]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_d256, value)
    }

    /// Changes the field "text".
    #[inline]
    pub fn set_text(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_text, value)
    }

    /// Makes the field "text" missing.
    #[inline]
    pub fn clear_text(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_text)
    }

    /// Changes the field "text_bytes".
    #[inline]
    pub fn set_text_bytes(&mut self, value: &[u8]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_text_bytes, value)
    }

    /// Changes the field "hash".
    #[inline]
    pub fn set_hash(&mut self, value: [u8; 5]) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_hash, value)
    }

    /// Changes what is in the field "outer", which becomes present.
    #[inline]
    pub fn outer(&mut self) -> OuterMut<'_> {
        OuterMut { item: self.item.reborrow(), fields: self.fields }
    }

    /// The field "outer" is not missing.
    #[inline]
    pub fn set_outer(&mut self) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_outer, ())
    }

    /// Makes the field "outer" missing.
    #[inline]
    pub fn clear_outer(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f0_outer)
    }

    /// Changes the field "größe".
    #[inline]
    pub fn set_gr__e(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_gr__e, value)
    }

    /// Changes the field "gr__e".
    #[inline]
    pub fn set_gr__e_2(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_gr__e_2, value)
    }

    /// Replaces items of the list "numbers" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_numbers(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_numbers, items, count)
    }

    /// Changes item `i` of the list "numbers".
    #[inline]
    pub fn set_numbers_item(&mut self, i: usize, value: i64) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_numbers, i, &self.fields.f0_numbers_item, value)
    }

    /// Replaces items of the list "gaps" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_gaps(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_gaps, items, count)
    }

    /// Changes item `i` of the list "gaps".
    #[inline]
    pub fn set_gaps_item(&mut self, i: usize, value: u16) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_gaps, i, &self.fields.f0_gaps_item, value)
    }

    /// Makes item `i` of the list "gaps" missing.
    #[inline]
    pub fn clear_gaps_item(&mut self, i: usize) -> ::dray_page::Result<()> {
        self.item.clear_item(&self.fields.f0_gaps, i, &self.fields.f0_gaps_item)
    }

    /// Makes the field "gaps" missing.
    #[inline]
    pub fn clear_gaps(&mut self) -> ::dray_page::Result<()> {
        self.item.clear_list(&self.fields.f0_gaps)
    }

    /// Replaces items of the list "words" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_words(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_words, items, count)
    }

    /// Changes item `i` of the list "words".
    #[inline]
    pub fn set_words_item(&mut self, i: usize, value: &str) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_words, i, &self.fields.f0_words_item, value)
    }

    /// Replaces items of the list "blobs" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_blobs(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_blobs, items, count)
    }

    /// Changes item `i` of the list "blobs".
    #[inline]
    pub fn set_blobs_item(&mut self, i: usize, value: &[u8]) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_blobs, i, &self.fields.f0_blobs_item, value)
    }

    /// Replaces items of the list "flags" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_flags(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_flags, items, count)
    }

    /// Changes item `i` of the list "flags".
    #[inline]
    pub fn set_flags_item(&mut self, i: usize, value: bool) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_flags, i, &self.fields.f0_flags_item, value)
    }

    /// Makes item `i` of the list "flags" missing.
    #[inline]
    pub fn clear_flags_item(&mut self, i: usize) -> ::dray_page::Result<()> {
        self.item.clear_item(&self.fields.f0_flags, i, &self.fields.f0_flags_item)
    }

    /// Replaces items of the list "hashes" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_hashes(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_hashes, items, count)
    }

    /// Changes item `i` of the list "hashes".
    #[inline]
    pub fn set_hashes_item(&mut self, i: usize, value: [u8; 3]) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f0_hashes, i, &self.fields.f0_hashes_item, value)
    }

    /// Replaces items of the list "points" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_points(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_points, items, count)
    }

    /// Item `i` of the list "points", if there is one.
    #[inline]
    pub fn points_item(&mut self, i: usize) -> Option<PointsItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_points, i).map(|item| PointsItemMut { item, fields })
    }

    /// Item `i` of the list "sized", if there is one.
    #[inline]
    pub fn sized_item(&mut self, i: usize) -> Option<SizedItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_sized, i).map(|item| SizedItemMut { item, fields })
    }

    /// Makes the field "sized" missing.
    #[inline]
    pub fn clear_sized(&mut self) -> ::dray_page::Result<()> {
        self.item.clear_list(&self.fields.f0_sized)
    }

    /// Replaces items of the list "matrix" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_matrix(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_matrix, items, count)
    }

    /// Item `i` of the list "matrix", if there is one.
    #[inline]
    pub fn matrix_item(&mut self, i: usize) -> Option<::dray_page::ItemMut<'_>> {
        self.item.item(&self.fields.f0_matrix, i)
    }

    /// Replaces items of the list "map" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_map(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_map, items, count)
    }

    /// Item `i` of the list "map", if there is one.
    #[inline]
    pub fn map_item(&mut self, i: usize) -> Option<MapItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_map, i).map(|item| MapItemMut { item, fields })
    }

    /// Makes the field "map" missing.
    #[inline]
    pub fn clear_map(&mut self) -> ::dray_page::Result<()> {
        self.item.clear_list(&self.fields.f0_map)
    }

    /// Changes the field "low".
    #[inline]
    pub fn set_low(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_low, value)
    }

    /// Replaces items of the list "nulls" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_nulls(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_nulls, items, count)
    }

    /// Item `i` of the list "nulls", if there is one.
    #[inline]
    pub fn nulls_item(&mut self, i: usize) -> Option<::dray_page::ItemMut<'_>> {
        self.item.item(&self.fields.f0_nulls, i)
    }

    /// Replaces items of the list "marks" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_marks(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_marks, items, count)
    }

    /// Item `i` of the list "marks", if there is one.
    #[inline]
    pub fn marks_item(&mut self, i: usize) -> Option<MarksItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_marks, i).map(|item| MarksItemMut { item, fields })
    }

    /// Replaces items of the list "empties" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_empties(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_empties, items, count)
    }

    /// Item `i` of the list "empties", if there is one.
    #[inline]
    pub fn empties_item(&mut self, i: usize) -> Option<EmptiesItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_empties, i).map(|item| EmptiesItemMut { item, fields })
    }

}

/// Builds the struct `outer`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct OuterBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> OuterBuilder<'_, 'r> {
    /// Builds the field "inner".
    #[inline]
    pub fn inner(&mut self) -> InnerBuilder<'_, 'r> {
        InnerBuilder { object: self.object, fields: self.fields }
    }

    /// The field "inner" is not missing.
    #[inline]
    pub fn set_inner(&mut self) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f1_inner, ())
    }

    /// Sets the field "self".
    #[inline]
    pub fn set_self(&mut self, value: bool) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f1_self, value)
    }

}

/// Changes the struct `outer` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct OuterMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> OuterMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> Outer<'_> {
        let (extent, record) = g::of_item(&self.item);
        Outer { extent, record: g::record::<363>(record) }
    }

    /// Changes what is in the field "inner", which becomes present.
    #[inline]
    pub fn inner(&mut self) -> InnerMut<'_> {
        InnerMut { item: self.item.reborrow(), fields: self.fields }
    }

    /// The field "inner" is not missing.
    #[inline]
    pub fn set_inner(&mut self) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f1_inner, ())
    }

    /// Makes the field "inner" missing.
    #[inline]
    pub fn clear_inner(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f1_inner)
    }

    /// Changes the field "self".
    #[inline]
    pub fn set_self(&mut self, value: bool) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f1_self, value)
    }

}

/// Builds the struct `outer.inner`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct InnerBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> InnerBuilder<'_, 'r> {
    /// Sets the field "x".
    #[inline]
    pub fn set_x(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_x, value)
    }

    /// Sets the field "type".
    #[inline]
    pub fn set_type(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_type, value)
    }

    /// Writes the list "sized".
    #[inline]
    pub fn set_sized(
        &mut self,
        values: impl IntoIterator<Item = i8, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.values(&fields.f2_sized, &fields.f2_sized_item, values)
    }

    /// Writes the list "tags".
    #[inline]
    pub fn set_tags<'v>(
        &mut self,
        values: impl IntoIterator<Item = Option<&'v str>, IntoIter: ExactSizeIterator>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.optional_values(&fields.f2_tags, &fields.f2_tags_item, values)
    }

}

/// Changes the struct `outer.inner` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct InnerMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> InnerMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> Inner<'_> {
        let (extent, record) = g::of_item(&self.item);
        Inner { extent, record: g::record::<363>(record) }
    }

    /// Changes the field "x".
    #[inline]
    pub fn set_x(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_x, value)
    }

    /// Changes the field "type".
    #[inline]
    pub fn set_type(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_type, value)
    }

    /// Makes the field "type" missing.
    #[inline]
    pub fn clear_type(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f2_type)
    }

    /// Changes item `i` of the list "sized".
    #[inline]
    pub fn set_sized_item(&mut self, i: usize, value: i8) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f2_sized, i, &self.fields.f2_sized_item, value)
    }

    /// Replaces items of the list "tags" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_tags(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f2_tags, items, count)
    }

    /// Changes item `i` of the list "tags".
    #[inline]
    pub fn set_tags_item(&mut self, i: usize, value: &str) -> ::dray_page::Result<()> {
        self.item.set_item(&self.fields.f2_tags, i, &self.fields.f2_tags_item, value)
    }

    /// Makes item `i` of the list "tags" missing.
    #[inline]
    pub fn clear_tags_item(&mut self, i: usize) -> ::dray_page::Result<()> {
        self.item.clear_item(&self.fields.f2_tags, i, &self.fields.f2_tags_item)
    }

}

/// Builds an item, `points.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct PointsItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> PointsItemBuilder<'_, 'r> {
    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f3, ())
    }

    /// Sets the field "x".
    #[inline]
    pub fn set_x(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f3_x, value)
    }

    /// Sets the field "note".
    #[inline]
    pub fn set_note(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f3_note, value)
    }

}

/// Changes an item, `points.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct PointsItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> PointsItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> PointsItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        PointsItem { extent, record: g::record::<32>(record) }
    }

    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f3, ())
    }

    /// The item is missing.
    #[inline]
    pub fn clear(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f3)
    }

    /// Changes the field "x".
    #[inline]
    pub fn set_x(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f3_x, value)
    }

    /// Changes the field "note".
    #[inline]
    pub fn set_note(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f3_note, value)
    }

    /// Makes the field "note" missing.
    #[inline]
    pub fn clear_note(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f3_note)
    }

}

/// Builds an item, `sized.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct SizedItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> SizedItemBuilder<'_, 'r> {
    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f4, ())
    }

    /// Sets the field "x".
    #[inline]
    pub fn set_x(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f4_x, value)
    }

    /// Sets the field "note".
    #[inline]
    pub fn set_note(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f4_note, value)
    }

}

/// Changes an item, `sized.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct SizedItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> SizedItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> SizedItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        SizedItem { extent, record: g::record::<32>(record) }
    }

    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f4, ())
    }

    /// The item is missing.
    #[inline]
    pub fn clear(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f4)
    }

    /// Changes the field "x".
    #[inline]
    pub fn set_x(&mut self, value: f64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f4_x, value)
    }

    /// Changes the field "note".
    #[inline]
    pub fn set_note(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f4_note, value)
    }

    /// Makes the field "note" missing.
    #[inline]
    pub fn clear_note(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f4_note)
    }

}

/// Builds an item, `map.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct MapItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> MapItemBuilder<'_, 'r> {
    /// Sets the field "key".
    #[inline]
    pub fn set_key(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f5_key, value)
    }

    /// Sets the field "value".
    #[inline]
    pub fn set_value(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f5_value, value)
    }

}

/// Changes an item, `map.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct MapItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> MapItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> MapItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        MapItem { extent, record: g::record::<32>(record) }
    }

    /// Changes the field "key".
    #[inline]
    pub fn set_key(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f5_key, value)
    }

    /// Changes the field "value".
    #[inline]
    pub fn set_value(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f5_value, value)
    }

    /// Makes the field "value" missing.
    #[inline]
    pub fn clear_value(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f5_value)
    }

}

/// Builds an item, `marks.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct MarksItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> MarksItemBuilder<'_, 'r> {
    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f6, ())
    }

}

/// Changes an item, `marks.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct MarksItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> MarksItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> MarksItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        MarksItem { extent, record: g::record::<0>(record) }
    }

    /// The item is not missing.
    #[inline]
    pub fn set_present(&mut self) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f6, ())
    }

    /// The item is missing.
    #[inline]
    pub fn clear(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f6)
    }

}

/// Builds an item, `empties.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct EmptiesItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> EmptiesItemBuilder<'_, 'r> {
}

/// Changes an item, `empties.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct EmptiesItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static EverythingFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> EmptiesItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> EmptiesItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        EmptiesItem { extent, record: g::record::<0>(record) }
    }

}
