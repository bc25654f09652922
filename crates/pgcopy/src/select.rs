//! Which Arrow types become values of which types of PostgreSQL (`spec/types.md` section 4).

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::*;
use dray_pgtypes::numeric::Declared;
use dray_pgtypes::{Kind, PgType, TYPE_KEY};

use crate::bytes::{ByteArray, Bytes, Parsed, TextOnly, bits, name, one_byte, uuid, versioned};
use crate::error::Mismatch;
use crate::fixed::{Booleans, Nothing};
use crate::json::{JSONB, Json, no_json};
use crate::nested::{Arrays, Composites, Hstores, Lists, Multiranges, Ranges};
use crate::number::{decimals, floats, integers, wide_decimals};
use crate::temporal;
use crate::values::Values;

const EXTENSION_KEY: &str = "ARROW:extension:name";
const JSON: u32 = 114;
const NUMERIC: u32 = 1700;
const INTERVAL: u32 = 1186;
const TIMETZ: u32 = 1266;
const UUID: u32 = 2950;
const BYTEA: u32 = 17;
/// `VARHDRSZ`, which is added to a declared length.
const TYPMOD_OFFSET: i32 = 4;

type Selected = Result<Box<dyn Values>, Mismatch>;

/// Whether a field's strings are JSON.
pub fn is_json(field: &Field) -> bool {
    field.metadata().get(EXTENSION_KEY).is_some_and(|name| name == "arrow.json")
}

/// Whether a field's 16 bytes are a UUID.
pub fn is_uuid(field: &Field) -> bool {
    field.metadata().get(EXTENSION_KEY).is_some_and(|name| name == "arrow.uuid")
}

/// What a column of data needs to be written as a type.
pub(crate) struct Request<'a> {
    pub(crate) field: &'a Field,
    pub(crate) array: &'a ArrayRef,
    pub(crate) pg_type: &'a PgType,
    /// Digits of `money` after the point.
    pub(crate) money_scale: Option<u8>,
}

impl Request<'_> {
    fn mismatch(&self, hint: &str) -> Mismatch {
        let what =
            format!("Arrow's {} can't be written as {}", self.field.data_type(), self.pg_type.name);
        Mismatch { what, hint: hint.to_owned() }
    }

    fn nested(&self, field: &Field, array: &ArrayRef, pg_type: &PgType) -> Selected {
        Request { field, array, pg_type, money_scale: self.money_scale }.select()
    }

    /// The values, or why the types don't match.
    pub(crate) fn select(&self) -> Selected {
        use DataType::*;
        if let Kind::Domain(base) = &self.pg_type.kind {
            return Request { pg_type: base, ..*self }.select();
        }
        match self.array.data_type() {
            Null => Ok(Box::new(Nothing)),
            Dictionary(_, values) => self.decoded(values),
            RunEndEncoded(_, values) => self.decoded(values.data_type()),
            List(_)
            | LargeList(_)
            | ListView(_)
            | LargeListView(_)
            | FixedSizeList(_, _)
            | Struct(_)
            | Map(_, _) => self.select_nested(),
            Utf8 => self.select_text(self.array.as_string::<i32>().clone()),
            LargeUtf8 => self.select_text(self.array.as_string::<i64>().clone()),
            Utf8View => self.select_text(self.array.as_string_view().clone()),
            Binary => self.select_bytes(self.array.as_binary::<i32>().clone()),
            LargeBinary => self.select_bytes(self.array.as_binary::<i64>().clone()),
            BinaryView => self.select_bytes(self.array.as_binary_view().clone()),
            FixedSizeBinary(16) if self.pg_type.oid == UUID => {
                let array = self.array.as_fixed_size_binary().clone();
                Ok(Box::new(Bytes { array, oid: UUID, characters_max: None }))
            }
            FixedSizeBinary(_) => self.select_bytes(self.array.as_fixed_size_binary().clone()),
            _ => self.select_fixed(),
        }
    }

    /// The same data without its encoding.
    fn decoded(&self, values: &DataType) -> Selected {
        let undecodable = |why: &str| Mismatch {
            what: format!("Arrow's {} can't be decoded: {why}", self.array.data_type()),
            hint: String::new(),
        };
        let decoded = cast(self.array, values).map_err(|error| undecodable(&error.to_string()))?;
        if decoded.len() != self.array.len() {
            return Err(undecodable("values are lost"));
        }
        Request { array: &decoded, ..*self }.select()
    }

    fn select_fixed(&self) -> Selected {
        use DataType::*;
        let array = self.array;
        let PgType { oid, typmod, .. } = *self.pg_type;
        let declared = Declared::from_typmod(typmod);
        let hint = "cast it first, or give the column another type";
        macro_rules! primitive {
            ($function:ident, $type:ty $(, $argument:expr)*) => {
                $function(array.as_primitive::<$type>().clone() $(, $argument)*)
            };
        }
        macro_rules! decimal {
            ($type:ty, $precision:expr, $scale:expr) => {
                primitive!(decimals, $type, *$precision, *$scale, oid, declared, self.money_scale)
            };
        }
        let selected = match array.data_type() {
            Boolean if oid == 16 => Some(Box::new(Booleans(array.as_boolean().clone())) as _),
            Int8 => primitive!(integers, Int8Type, oid, declared),
            Int16 => primitive!(integers, Int16Type, oid, declared),
            Int32 => primitive!(integers, Int32Type, oid, declared),
            Int64 => primitive!(integers, Int64Type, oid, declared),
            UInt8 => primitive!(integers, UInt8Type, oid, declared),
            UInt16 => primitive!(integers, UInt16Type, oid, declared),
            UInt32 => primitive!(integers, UInt32Type, oid, declared),
            UInt64 => primitive!(integers, UInt64Type, oid, declared),
            Float16 => return self.decoded(&Float32),
            Float32 => primitive!(floats, Float32Type, oid),
            Float64 => primitive!(floats, Float64Type, oid),
            Decimal32(precision, scale) => decimal!(Decimal32Type, precision, scale),
            Decimal64(precision, scale) => decimal!(Decimal64Type, precision, scale),
            Decimal128(precision, scale) => decimal!(Decimal128Type, precision, scale),
            Decimal256(_, scale) => {
                primitive!(wide_decimals, Decimal256Type, *scale, oid, declared)
            }
            _ => return self.select_temporal(),
        };
        selected.ok_or_else(|| self.mismatch(hint))
    }

    fn select_temporal(&self) -> Selected {
        use DataType::*;
        use TimeUnit::*;
        use temporal::*;
        let PgType { oid, typmod, .. } = *self.pg_type;
        macro_rules! primitive {
            ($type:ty) => {
                self.array.as_primitive::<$type>().clone()
            };
        }
        let step =
            || interval_step(typmod).ok_or_else(|| self.mismatch("it holds some fields only"));
        Ok(match (self.array.data_type(), oid) {
            (Date32, 1082) => days(primitive!(Date32Type)),
            (Date64, 1082) => midnights(primitive!(Date64Type)),
            (Timestamp(unit, zone), 1114 | 1184) => {
                if zone.is_some() != (oid == 1184) {
                    return Err(self.mismatch(
                        "give the timestamps a zone for a column with time zone, and none for \
                         one without",
                    ));
                }
                match unit {
                    Second => timestamps(primitive!(TimestampSecondType), *unit, oid, typmod),
                    Millisecond => {
                        timestamps(primitive!(TimestampMillisecondType), *unit, oid, typmod)
                    }
                    Microsecond => {
                        timestamps(primitive!(TimestampMicrosecondType), *unit, oid, typmod)
                    }
                    Nanosecond => {
                        timestamps(primitive!(TimestampNanosecondType), *unit, oid, typmod)
                    }
                }
            }
            (Time32(Second), 1083) => times(primitive!(Time32SecondType), Second, typmod),
            (Time32(_), 1083) => times(primitive!(Time32MillisecondType), Millisecond, typmod),
            (Time64(Nanosecond), 1083) => {
                times(primitive!(Time64NanosecondType), Nanosecond, typmod)
            }
            (Time64(_), 1083) => times(primitive!(Time64MicrosecondType), Microsecond, typmod),
            (Duration(unit), INTERVAL) => match unit {
                Second => durations(primitive!(DurationSecondType), *unit, step()?),
                Millisecond => durations(primitive!(DurationMillisecondType), *unit, step()?),
                Microsecond => durations(primitive!(DurationMicrosecondType), *unit, step()?),
                Nanosecond => durations(primitive!(DurationNanosecondType), *unit, step()?),
            },
            (Interval(IntervalUnit::YearMonth), INTERVAL) => {
                months(primitive!(IntervalYearMonthType), step()?)
            }
            (Interval(IntervalUnit::DayTime), INTERVAL) => {
                days_and_times(primitive!(IntervalDayTimeType), step()?)
            }
            (Interval(IntervalUnit::MonthDayNano), INTERVAL) => {
                intervals(primitive!(IntervalMonthDayNanoType), step()?)
            }
            _ => return Err(self.mismatch("cast it first, or give the column another type")),
        })
    }

    fn select_bytes<A: ByteArray + 'static>(&self, array: A) -> Selected {
        match self.pg_type.oid {
            BYTEA => Ok(Box::new(Bytes { array, oid: BYTEA, characters_max: None })),
            _ => Err(self.mismatch("bytes are written as bytea, and 16 of them as uuid")),
        }
    }

    fn select_text<A: ByteArray + 'static>(&self, array: A) -> Selected {
        let PgType { oid, typmod, ref kind, ref extension, .. } = *self.pg_type;
        let named = self.field.metadata().get(TYPE_KEY);
        let is_its_text = named.is_some_and(|named| *named == self.pg_type.name);
        let declared = Declared::from_typmod(typmod);
        let characters_max =
            || usize::try_from(typmod).ok()?.checked_sub(TYPMOD_OFFSET.unsigned_abs() as usize);
        let plain = |array, characters_max| Box::new(Bytes { array, oid, characters_max });
        Ok(match (kind, oid) {
            (Kind::Enum, _) => plain(array, None),
            // text, json, refcursor
            (Kind::Base, 25 | JSON | 1790) => plain(array, None),
            (Kind::Base, 19) => Box::new(Parsed { array, oid, parse: name }),
            // In binary it is read in the encoding that the document declares, and not in UTF-8.
            (Kind::Base, 142) => Box::new(TextOnly(array)),
            (Kind::Base, 1042 | 1043) => plain(array, characters_max()),
            (Kind::Base, _) if extension == "citext" => plain(array, None),
            (Kind::Base, JSONB | 4072) => Box::new(Parsed { array, oid, parse: versioned }),
            (Kind::Base, 18) => Box::new(Parsed { array, oid, parse: one_byte }),
            (Kind::Base, UUID) => Box::new(Parsed { array, oid, parse: uuid }),
            (Kind::Base, 1560 | 1562) => Box::new(Parsed { array, oid, parse: bits }),
            (Kind::Base, TIMETZ) => {
                let step = temporal::step(typmod);
                let parse =
                    move |text: &[u8], out: &mut Vec<u8>| temporal::zoned_time(text, step, out);
                Box::new(Parsed { array, oid, parse })
            }
            (Kind::Base, NUMERIC) => {
                let parse = move |text: &[u8], out: &mut Vec<u8>| {
                    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
                    dray_pgtypes::numeric::send_text(text, declared, out)
                };
                Box::new(Parsed { array, oid, parse })
            }
            _ if is_its_text => Box::new(TextOnly(array)),
            // Types that Arrow has, and whose text has more than one meaning.
            (Kind::Base, 16 | 17 | 20 | 21 | 23 | 26 | 28 | 29 | 700 | 701 | 790)
            | (Kind::Base, 1082 | 1083 | 1114 | 1184 | INTERVAL | 5069) => {
                return Err(self.mismatch("convert the strings to the column's type first"));
            }
            (Kind::Base, _) => Box::new(TextOnly(array)),
            _ => return Err(self.mismatch("give nested data, or a column of text or jsonb")),
        })
    }

    fn select_nested(&self) -> Selected {
        use DataType::*;
        let oid = self.pg_type.oid;
        if matches!(oid, JSON | JSONB) {
            if let Some(why) = no_json(self.array.data_type()) {
                return Err(self.mismatch(why));
            }
            let (array, field) = (self.array.clone(), self.field.clone());
            return Ok(Box::new(Json { array, field, oid }));
        }
        match (&self.pg_type.kind, self.array.data_type()) {
            (Kind::Array { item, delimiter }, _) => {
                let Some((lists, field, items)) = self.lists() else {
                    return Err(self.mismatch("an array takes lists"));
                };
                if matches!(base(item).kind, Kind::Array { .. }) && !is_domain(item) {
                    return Err(self.mismatch("arrays of arrays are not written"));
                }
                let items = self.nested(&field, &items, item)?;
                let (item_oid, delimiter) = (item.oid, *delimiter);
                Ok(Box::new(Arrays { lists, items, item_oid, delimiter }))
            }
            (Kind::Composite(attributes), Struct(_)) => self.composites(attributes),
            (Kind::Range(of), Struct(_)) => Ok(Box::new(self.ranges(self.array.as_struct(), of)?)),
            (Kind::Multirange(of), _) => {
                let Some((lists, _, items)) = self.lists() else {
                    return Err(self.mismatch("a multirange takes lists of ranges"));
                };
                let Some(structs) = items.as_struct_opt() else {
                    return Err(self.mismatch("a multirange takes lists of ranges"));
                };
                // A multirange names its range type, or the type of its bounds.
                let bound = if let Kind::Range(bound) = &of.kind { bound } else { of };
                let ranges = self.ranges(structs, bound)?;
                Ok(Box::new(Multiranges { lists, ranges }))
            }
            (Kind::Base, Map(_, _)) if self.pg_type.extension == "hstore" => {
                let map = self.array.as_map();
                let text = PgType {
                    oid: 25,
                    typmod: -1,
                    name: "text".to_owned(),
                    extension: String::new(),
                    kind: Kind::Base,
                };
                let fields = map.entries().fields();
                let (key, value) = (&fields[0], &fields[1]);
                let (_, values) = spans(map.offsets(), map.values());
                let (spans, keys) = spans(map.offsets(), map.keys());
                let keys = self.nested(key, &keys, &text)?;
                let values = self.nested(value, &values, &text)?;
                let lists = Lists { nulls: map.nulls().cloned(), spans };
                Ok(Box::new(Hstores { lists, keys, values }))
            }
            _ => {
                Err(self.mismatch("nested data is written as arrays, composites, ranges or jsonb"))
            }
        }
    }

    /// The lists of an array, with the field and array of their items.
    fn lists(&self) -> Option<(Lists, FieldRef, ArrayRef)> {
        use DataType::*;
        let nulls = self.array.nulls().cloned();
        let (spans, field, items): (Spans, _, ArrayRef) = match self.array.data_type() {
            List(field) => {
                let list = self.array.as_list::<i32>();
                let (spans, items) = spans(list.offsets(), list.values());
                (spans, field, items)
            }
            LargeList(field) => {
                let list = self.array.as_list::<i64>();
                let (spans, items) = spans(list.offsets(), list.values());
                (spans, field, items)
            }
            ListView(field) => {
                let list = self.array.as_list_view::<i32>();
                let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
                let spans = move |row: usize| {
                    offsets[row] as usize..offsets[row] as usize + sizes[row] as usize
                };
                (Box::new(spans), field, list.values().clone())
            }
            LargeListView(field) => {
                let list = self.array.as_list_view::<i64>();
                let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
                let spans = move |row: usize| {
                    offsets[row] as usize..offsets[row] as usize + sizes[row] as usize
                };
                (Box::new(spans), field, list.values().clone())
            }
            FixedSizeList(field, size) => {
                let size = *size as usize;
                let spans = move |row: usize| row * size..(row + 1) * size;
                (Box::new(spans), field, self.array.as_fixed_size_list().values().clone())
            }
            _ => return None,
        };
        Some((Lists { nulls, spans }, field.clone(), items))
    }

    fn composites(&self, attributes: &[(String, PgType)]) -> Selected {
        let structs = self.array.as_struct();
        let fields = structs.fields();
        if fields.len() != attributes.len() {
            let what = format!("a {} of {} attributes", self.pg_type.name, attributes.len());
            return Err(self.mismatch(&format!("give structs of the same names as {what}")));
        }
        let selected = attributes.iter().map(|(name, pg_type)| {
            let Some((field, array)) =
                fields.iter().zip(structs.columns()).find(|(field, _)| field.name() == name)
            else {
                return Err(self.mismatch(&format!("the structs have no field {name:?}")));
            };
            Ok((pg_type.oid, self.nested(field, array, pg_type)?))
        });
        let attributes = selected.collect::<Result<_, _>>()?;
        Ok(Box::new(Composites { nulls: structs.nulls().cloned(), attributes }))
    }

    fn ranges(&self, structs: &StructArray, bound: &PgType) -> Result<Ranges, Mismatch> {
        let hint = "a range is a struct of lower, upper, lower_inclusive, upper_inclusive, empty";
        let column = |name: &str| {
            let (index, field) = structs.fields().find(name).ok_or_else(|| self.mismatch(hint))?;
            Ok((field, structs.column(index)))
        };
        let flags = |name: &str| {
            let (_, flags) = column(name)?;
            flags.as_boolean_opt().cloned().ok_or_else(|| self.mismatch(hint))
        };
        let bounds = |name: &str| {
            let (field, array) = column(name)?;
            self.nested(field, array, bound)
        };
        Ok(Ranges {
            nulls: structs.nulls().cloned(),
            lower: bounds("lower")?,
            upper: bounds("upper")?,
            lower_inclusive: flags("lower_inclusive")?,
            upper_inclusive: flags("upper_inclusive")?,
            empty: flags("empty")?,
        })
    }
}

/// Which items each list has.
type Spans = Box<dyn Fn(usize) -> std::ops::Range<usize> + Send>;

/// The spans of lists with these offsets, and the items that they have: those of all lists of a
/// slice may be many more. Arrow's arrays have checked that no offset is below zero.
fn spans<T: OffsetSizeTrait>(offsets: &OffsetBuffer<T>, items: &ArrayRef) -> (Spans, ArrayRef) {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let offsets = offsets.clone();
    let spans =
        move |row: usize| offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first;
    (Box::new(spans), items.slice(first, last - first))
}

fn is_domain(pg_type: &PgType) -> bool {
    matches!(pg_type.kind, Kind::Domain(_))
}

/// A domain's base type, or the type itself.
fn base(pg_type: &PgType) -> &PgType {
    match &pg_type.kind {
        Kind::Domain(of) => base(of),
        _ => pg_type,
    }
}
