//! The layout of a schema's objects, compiled once (`spec/page.md` section 3).

use std::ops::Range;
use std::sync::Arc;

use dray_format::{Field, Schema, Type, crc32c};

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::object::Object;

/// Records and extents are smaller than this (page.md sections 2 and 3).
pub(crate) const EXTENT_BYTES_END: usize = 1 << 31;
/// The bit of `extent_bytes` that marks a dead extent (page.md section 11).
pub(crate) const DEAD: u32 = 1 << 31;
/// The bytes of an extent before its validity bits (page.md section 3).
pub(crate) const EXTENT_HEADER_BYTES: usize = 4;
/// The bytes of a string's place (page.md section 4).
pub(crate) const STRING_BYTES: usize = 16;
/// The longest string that its place holds (page.md section 4).
pub(crate) const INLINE_BYTES_MAX: usize = 12;
/// The bytes of a list's place (page.md section 5).
pub(crate) const LIST_BYTES: usize = 8;
/// The alignment of extents and of items (page.md sections 3 and 5).
pub(crate) const ALIGNMENT: usize = 8;

/// A schema, and the position of each field in its objects.
#[derive(Debug, Clone)]
pub struct Layout {
    schema: Schema,
    /// The schema's bytes.
    encoded: Vec<u8>,
    /// A checksum of the schema, which tells its objects from those of others.
    pub(crate) id: u32,
    pub(crate) record: Record,
}

/// The fields of an object, or of an item of a list.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub fields: Vec<Place>,
    pub bits_at: usize,
    pub bits: usize,
    pub end: usize,
    pub stride: usize,
    /// The bytes from the validity bits to the fixed part when no value is missing.
    pub present: Vec<u8>,
    pub checks: Checks,
}

/// The place of a field.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Whether it has a validity bit of its own, the first of `bits`.
    pub nullable: bool,
    /// Its validity bit and those of the fields within it.
    pub bits: Range<usize>,
    /// The offset from the start of its record.
    pub at: usize,
    pub kind: Kind,
    /// Whether it or a field within it may have a tail.
    pub has_tails: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Fixed(usize),
    Bytes { utf8: bool },
    List(Arc<Items>),
    FixedList { size: usize, items: Arc<Items> },
    Struct(Vec<Place>),
}

/// The items of a list.
#[derive(Debug, Clone)]
pub(crate) struct Items {
    /// Whether there is a bitmap before the items.
    pub nullable: bool,
    /// A record of a single field.
    pub record: Record,
}

/// The parts of a record that a verifier checks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    /// What must be zero if a validity bit is, for each bit.
    pub absent: Vec<Absent>,
    pub gaps: Vec<Range<usize>>,
    pub booleans: Vec<usize>,
    pub tails: Vec<Tail>,
    /// Whether there are fixed-size lists that have items whenever they are present.
    pub sized: bool,
}

/// What must be zero if a validity bit is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Absent {
    /// The validity bits of the fields within.
    pub bits: Range<usize>,
    /// Offset and width of the places whose nearest validity bit this is.
    pub places: Vec<(usize, usize)>,
}

/// A place that may have a tail. Places are listed in the order of their tails.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub at: usize,
    pub kind: TailKind,
}

#[derive(Debug, Clone)]
pub(crate) enum TailKind {
    Utf8,
    Binary,
    List(Arc<Items>),
    /// Its items are present if `bit`, of the list or of a struct around it, is set.
    FixedList {
        size: usize,
        items: Arc<Items>,
        bit: Option<usize>,
    },
}

impl Layout {
    /// The layout of a schema's objects.
    ///
    /// # Errors
    /// When the schema breaks a rule of types.md, or its record has 2³¹ bytes or more.
    pub fn new(schema: Schema) -> Result<Arc<Self>> {
        // Encoding checks the limits of a schema.
        let mut bytes = Vec::new();
        schema
            .encode(&mut bytes)
            .map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))?;
        let mut plan = Plan::default();
        let fields = schema.fields.iter().map(|field| plan.field(field)).collect::<Result<_>>()?;
        let record = plan.record(fields, EXTENT_HEADER_BYTES)?;
        Ok(Arc::new(Self { schema, id: crc32c(0, &bytes), encoded: bytes, record }))
    }

    /// The layout of a schema's objects, given the schema's bytes.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn decode(schema: &[u8]) -> Result<Arc<Self>> {
        let schema = Schema::decode(schema)
            .map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))?;
        Self::new(schema)
    }

    /// Checks that the schema has these bytes, for code that was made for them.
    ///
    /// # Errors
    /// When it has others.
    #[inline]
    pub fn check_schema(&self, expected: &[u8]) -> Result<()> {
        if self.encoded != expected {
            refuse!(
                Schema,
                "objects of another schema than this code was generated for; generate it anew with \
                 `dray accessors`"
            );
        }
        Ok(())
    }

    /// Checks that an object has this layout.
    #[inline]
    pub(crate) fn check_object(&self, object: Object<'_>) -> Result<()> {
        let other = object.layout();
        if !std::ptr::eq(other, self) && other.encoded != self.encoded {
            refuse!(Unsupported, "an object of another schema");
        }
        Ok(())
    }

    /// The schema of the objects.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The size of an object without tails: the least size of an object.
    pub fn object_bytes_min(&self) -> usize {
        self.record.end.next_multiple_of(ALIGNMENT)
    }
}

impl Record {
    /// Whether a verifier has anything to check in it.
    pub fn is_checked(&self) -> bool {
        let Checks { gaps, booleans, tails, .. } = &self.checks;
        self.bits > 0 || !gaps.is_empty() || !booleans.is_empty() || !tails.is_empty()
    }

    /// Whether such records take no bytes, however many they are.
    pub fn is_weightless(&self) -> bool {
        self.stride == 0
    }

    pub fn has_tails(&self) -> bool {
        !self.checks.tails.is_empty()
    }

    /// Whether any of its tails are items.
    pub fn has_lists(&self) -> bool {
        self.checks.tails.iter().any(|tail| !matches!(tail.kind, TailKind::Utf8 | TailKind::Binary))
    }
}

impl Items {
    /// The bytes of the bitmap before `count` items.
    pub fn bitmap_bytes(&self, count: usize) -> usize {
        if self.nullable { bitmap_bytes(count) } else { 0 }
    }
}

/// The bytes of the bitmap before `count` items that may be missing.
#[inline]
pub(crate) fn bitmap_bytes(count: usize) -> usize {
    count.div_ceil(8).next_multiple_of(ALIGNMENT)
}

/// A record whose fields are being listed.
#[derive(Default)]
struct Plan {
    bits: usize,
    /// Width and alignment of each place.
    places: Vec<(usize, usize)>,
}

impl Plan {
    fn field(&mut self, field: &Field) -> Result<Place> {
        self.place(&field.data_type, field.nullable)
    }

    /// The place of a field. Until all fields are listed, it has a number instead of an offset.
    fn place(&mut self, data_type: &Type, nullable: bool) -> Result<Place> {
        let nullable = nullable && !is_null(data_type);
        let first_bit = self.bits;
        self.bits += usize::from(nullable);
        let mut at = self.places.len();
        let mut take = |width, alignment| self.places.push((width, alignment));
        let kind = match data_type {
            Type::Null => Kind::Null,
            Type::Boolean => {
                take(1, 1);
                Kind::Boolean
            }
            Type::Utf8 | Type::Binary => {
                take(STRING_BYTES, ALIGNMENT);
                Kind::Bytes { utf8: *data_type == Type::Utf8 }
            }
            Type::FixedBinary(width) => {
                take(*width as usize, 1);
                Kind::Fixed(*width as usize)
            }
            Type::List(item) => {
                take(LIST_BYTES, ALIGNMENT);
                Kind::List(items(item)?)
            }
            Type::FixedList { size, item } => {
                take(LIST_BYTES, ALIGNMENT);
                Kind::FixedList { size: *size as usize, items: items(item)? }
            }
            Type::Map { key, value, .. } => {
                take(LIST_BYTES, ALIGNMENT);
                let mut plan = Self::default();
                let pair = vec![plan.field(key)?, plan.field(value)?];
                let pair = Place {
                    nullable: false,
                    bits: 0..plan.bits,
                    at: 0,
                    has_tails: any(&pair),
                    kind: Kind::Struct(pair),
                };
                Kind::List(Arc::new(Items { nullable: false, record: plan.record(vec![pair], 0)? }))
            }
            Type::Struct(fields) => {
                Kind::Struct(fields.iter().map(|field| self.field(field)).collect::<Result<_>>()?)
            }
            Type::Dictionary { value, .. } => {
                let value = self.place(value, false)?;
                at = value.at;
                value.kind
            }
            other => {
                let Some(width) = other.width() else {
                    refuse!(Unsupported, "objects of type {other:?}")
                };
                take(width, width.min(ALIGNMENT));
                Kind::Fixed(width)
            }
        };
        let has_tails = match &kind {
            Kind::Bytes { .. } | Kind::List(_) | Kind::FixedList { .. } => true,
            Kind::Struct(fields) => any(fields),
            _ => false,
        };
        Ok(Place { nullable, bits: first_bit..self.bits, at, kind, has_tails })
    }

    /// Assigns an offset to each place.
    fn record(self, mut fields: Vec<Place>, bits_at: usize) -> Result<Record> {
        let alignment = self.places.iter().map(|(_, alignment)| *alignment).max().unwrap_or(1);
        let bits_end = bits_at + self.bits.div_ceil(8);
        let fixed_at = bits_end.next_multiple_of(alignment);
        let mut offsets = vec![0; self.places.len()];
        let mut end = fixed_at;
        for class in [8, 4, 2, 1] {
            for (offset, (width, _)) in
                offsets.iter_mut().zip(&self.places).filter(|(_, (_, own))| *own == class)
            {
                *offset = end;
                end += width;
            }
        }
        if end >= EXTENT_BYTES_END {
            refuse!(
                Limit,
                "the record of this schema has {end} bytes, the most are {}",
                EXTENT_BYTES_END - 1
            );
        }
        fields.iter_mut().for_each(|field| set_offsets(field, &offsets));
        let stride = end.next_multiple_of(alignment);
        let mut present = vec![0; fixed_at - bits_at];
        (0..self.bits).for_each(|bit| present[bit / 8] |= 1 << (bit % 8));
        let mut checks = Checks { absent: vec![Absent::default(); self.bits], ..Checks::default() };
        checks.take(&fields, None);
        // The tails of an object follow its record without padding.
        let gaps = [bits_end..fixed_at, end..if bits_at == 0 { stride } else { end }];
        checks.gaps = gaps.into_iter().filter(|gap| !gap.is_empty()).collect();
        Ok(Record { fields, bits_at, bits: self.bits, end, stride, present, checks })
    }
}

impl Checks {
    /// Lists the checks of fields. `around` is the validity bit of the nearest struct around them.
    fn take(&mut self, fields: &[Place], around: Option<usize>) {
        for place in fields {
            let bit = if place.nullable { Some(place.bits.start) } else { around };
            if place.nullable {
                self.absent[place.bits.start].bits = place.bits.start + 1..place.bits.end;
            }
            let at = place.at;
            let mut tail = |kind| self.tails.push(Tail { at, kind });
            let width = match &place.kind {
                Kind::Null => continue,
                Kind::Struct(fields) => {
                    self.take(fields, bit);
                    continue;
                }
                Kind::Boolean => {
                    self.booleans.push(at);
                    1
                }
                Kind::Fixed(width) => *width,
                Kind::Bytes { utf8 } => {
                    tail(if *utf8 { TailKind::Utf8 } else { TailKind::Binary });
                    STRING_BYTES
                }
                Kind::List(items) => {
                    tail(TailKind::List(items.clone()));
                    LIST_BYTES
                }
                Kind::FixedList { size, items } => {
                    tail(TailKind::FixedList { size: *size, items: items.clone(), bit });
                    self.sized |= *size > 0;
                    LIST_BYTES
                }
            };
            if let Some(bit) = bit {
                self.absent[bit].places.push((at, width));
            }
        }
    }
}

/// Whether all values are missing anyway, so that there is no validity bit.
fn is_null(data_type: &Type) -> bool {
    match data_type {
        Type::Dictionary { value, .. } => is_null(value),
        other => *other == Type::Null,
    }
}

fn any(fields: &[Place]) -> bool {
    fields.iter().any(|field| field.has_tails)
}

fn items(item: &Field) -> Result<Arc<Items>> {
    let mut plan = Plan::default();
    // The item's validity bit is in the bitmap before the items.
    let place = plan.place(&item.data_type, false)?;
    let nullable = item.nullable && !is_null(&item.data_type);
    Ok(Arc::new(Items { nullable, record: plan.record(vec![place], 0)? }))
}

fn set_offsets(place: &mut Place, offsets: &[usize]) {
    match &mut place.kind {
        Kind::Null => place.at = 0,
        Kind::Struct(fields) => fields.iter_mut().for_each(|field| set_offsets(field, offsets)),
        _ => place.at = offsets[place.at],
    }
}
