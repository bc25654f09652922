//! One column of a key, or a column within it: `spec/sort-key.md` sections 2 to 5.

use dray_format::{Column, Field, Type, Values};

use super::encoder::{KeyPurpose, SortColumn};

/// Before a value that is there, and before an item.
const PRESENT: u8 = 1;
/// For a missing value before and behind all others.
const MISSING: [u8; 2] = [0, 2];
/// Behind the last item, and behind the last byte of a string.
const END: u8 = 0;
/// Before the two bytes of a string that mean something else.
const ESCAPE: u8 = 1;

/// How the values of a column become bytes.
#[derive(Debug, Clone)]
pub(super) struct ColumnEncoder {
    /// What stands for a missing value; nothing if none may be missing.
    missing: Option<u8>,
    /// Whether the bytes of a value are inverted. Those of a value within it are inverted with it,
    /// not by themselves.
    inverted: bool,
    kind: Kind,
    /// What a value takes that is there, if all take as much.
    value_width: Option<usize>,
}

#[derive(Debug, Clone)]
enum Kind {
    Null,
    Boolean,
    /// Little-endian bytes, which become those of a number.
    Number {
        width: usize,
        number: Number,
    },
    /// Signed integers of these widths, one behind the other.
    Numbers(&'static [usize]),
    Bytes {
        width: usize,
    },
    String,
    List(Box<ColumnEncoder>),
    FixedList {
        size: usize,
        item: Box<ColumnEncoder>,
    },
    Struct(Vec<ColumnEncoder>),
}

/// How the bits of a number become an unsigned integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Unsigned,
    Signed,
    Float,
    /// One zero and one NaN.
    DistinctFloat,
}

impl ColumnEncoder {
    /// Of a column that is sorted by.
    pub(super) fn new(field: &Field, by: &SortColumn, purpose: KeyPurpose) -> Self {
        // What is inverted afterwards comes behind what is not when it is before it now.
        let inner_missing = MISSING[usize::from(by.nulls_first == by.descending)];
        let column = Self::of(field, inner_missing, purpose);
        let missing = column.missing.map(|_| MISSING[usize::from(!by.nulls_first)]);
        Self { missing, inverted: by.descending, ..column }
    }

    fn of(field: &Field, missing: u8, purpose: KeyPurpose) -> Self {
        let (kind, value_width) = kind(&field.data_type, missing, purpose);
        let missing = (field.nullable && !matches!(kind, Kind::Null)).then_some(missing);
        Self { missing, inverted: false, kind, value_width }
    }

    /// What each value takes, if all take as much, missing ones too.
    pub(super) fn width(&self) -> Option<usize> {
        Some(self.value_width? + usize::from(self.missing.is_some()))
    }

    /// Writes the values of a column of one width: that of row i at `at + i * stride`, where there
    /// are zeros.
    pub(super) fn put_column(&self, column: &Column, out: &mut [u8], at: usize, stride: usize) {
        let Some(width) = self.width().filter(|width| *width > 0) else { return };
        // Of no rows there is nothing from there on.
        let places = out
            .get_mut(at..)
            .unwrap_or_default()
            .chunks_mut(stride)
            .map(|place| &mut place[..width]);
        if let (Kind::Number { width, number }, Values::Fixed { bytes, .. }) =
            (&self.kind, &column.values)
        {
            let values = bytes.chunks_exact(*width);
            for (row, (place, value)) in places.zip(values).enumerate() {
                if let Some(value_place) = self.mark(column.is_valid(row), place) {
                    number.put(value, value_place);
                    self.finish(value_place);
                }
            }
            return;
        }
        let mut value = Vec::with_capacity(width);
        for (row, place) in places.enumerate() {
            value.clear();
            self.put(column, row, &mut value);
            place.copy_from_slice(&value);
        }
    }

    /// Writes whether a value is there, and returns the place of those that are.
    fn mark<'a>(&self, is_valid: bool, place: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let Some(missing) = self.missing else { return Some(place) };
        let (marker, value) = place.split_first_mut()?;
        *marker = if is_valid { PRESENT } else { missing };
        is_valid.then_some(value)
    }

    fn finish(&self, value: &mut [u8]) {
        if self.inverted {
            value.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Appends the value of a row.
    pub(super) fn put(&self, column: &Column, row: usize, out: &mut Vec<u8>) {
        let (column, row) = match value(column, row) {
            Some(found) => found,
            None => {
                let zeros = self.value_width.unwrap_or(0);
                out.extend(self.missing);
                out.resize(out.len() + zeros, 0);
                return;
            }
        };
        out.extend(self.missing.map(|_| PRESENT));
        let start = out.len();
        self.put_value(column, row, out);
        self.finish(&mut out[start..]);
    }

    fn put_value(&self, column: &Column, row: usize, out: &mut Vec<u8>) {
        match (&self.kind, &column.values) {
            (Kind::Boolean, Values::Boolean(bits)) => out.push(bits.bit(row).into()),
            (Kind::Number { width, number }, values) => {
                let start = out.len();
                out.resize(start + width, 0);
                match values {
                    Values::Fixed { bytes, .. } => {
                        number.put(&bytes[row * width..][..*width], &mut out[start..])
                    }
                    Values::Narrow { width: narrow, bytes } => {
                        let value = widened(&bytes[row * narrow..][..*narrow]);
                        number.put(&value[..*width], &mut out[start..]);
                    }
                    _ => {}
                }
            }
            (Kind::Numbers(widths), Values::Fixed { width, bytes }) => {
                let mut rest = &bytes[row * width..][..*width];
                for width in *widths {
                    let (value, others) = rest.split_at(*width);
                    let start = out.len();
                    out.resize(start + width, 0);
                    Number::Signed.put(value, &mut out[start..]);
                    rest = others;
                }
            }
            (Kind::Bytes { width }, Values::Fixed { bytes, .. }) => {
                out.extend_from_slice(&bytes[row * width..][..*width]);
            }
            (Kind::String, Values::Bytes { offsets, data }) => {
                put_string(&data[u32_at(offsets, row)..u32_at(offsets, row + 1)], out);
            }
            (Kind::List(item), Values::List { offsets, child }) => {
                for i in u32_at(offsets, row)..u32_at(offsets, row + 1) {
                    out.push(PRESENT);
                    item.put(child, i, out);
                }
                out.push(END);
            }
            (Kind::FixedList { size, item }, Values::FixedList { child, .. }) => {
                (row * size..(row + 1) * size).for_each(|i| item.put(child, i, out));
            }
            (Kind::Struct(fields), Values::Struct(children)) => {
                fields.iter().zip(children).for_each(|(field, child)| field.put(child, row, out));
            }
            // A batch has columns of its schema's types, and values of type null are missing.
            _ => {}
        }
    }
}

/// How values of a type become bytes, and how many where all become as many.
fn kind(data_type: &Type, missing: u8, purpose: KeyPurpose) -> (Kind, Option<usize>) {
    let column = |field: &Field| ColumnEncoder::of(field, missing, purpose);
    let float = match purpose {
        KeyPurpose::Order => Number::Float,
        KeyPurpose::Distinct => Number::DistinctFloat,
    };
    match data_type {
        Type::Null => (Kind::Null, Some(0)),
        Type::Boolean => (Kind::Boolean, Some(1)),
        Type::UInt8 => number(1, Number::Unsigned),
        Type::UInt16 => number(2, Number::Unsigned),
        Type::UInt32 => number(4, Number::Unsigned),
        Type::UInt64 => number(8, Number::Unsigned),
        Type::Float16 => number(2, float),
        Type::Float32 => number(4, float),
        Type::Float64 => number(8, float),
        Type::IntervalDayTime => (Kind::Numbers(&[4, 4]), Some(8)),
        Type::IntervalMonthDayNano => (Kind::Numbers(&[4, 4, 8]), Some(16)),
        Type::FixedBinary(width) => (Kind::Bytes { width: *width as usize }, Some(*width as usize)),
        Type::Utf8 | Type::Binary => (Kind::String, None),
        Type::List(item) => (Kind::List(Box::new(column(item))), None),
        Type::Map { key, value, .. } => {
            let (kind, value_width) = of_struct(vec![column(key), column(value)]);
            let entry = ColumnEncoder { missing: None, inverted: false, kind, value_width };
            (Kind::List(Box::new(entry)), None)
        }
        Type::FixedList { size, item } => {
            let (size, item) = (*size as usize, column(item));
            let width = item.width().map(|width| width * size);
            (Kind::FixedList { size, item: Box::new(item) }, width)
        }
        Type::Struct(fields) => of_struct(fields.iter().map(column).collect()),
        Type::Dictionary { value, .. } => kind(value, missing, purpose),
        signed => number(signed.width().unwrap_or(0), Number::Signed),
    }
}

fn number(width: usize, number: Number) -> (Kind, Option<usize>) {
    (Kind::Number { width, number }, Some(width))
}

fn of_struct(fields: Vec<ColumnEncoder>) -> (Kind, Option<usize>) {
    let width = fields.iter().map(ColumnEncoder::width).sum();
    (Kind::Struct(fields), width)
}

/// Where the value of a row is, behind dictionaries; none if it is missing.
fn value(column: &Column, row: usize) -> Option<(&Column, usize)> {
    if !column.is_valid(row) {
        return None;
    }
    match &column.values {
        Values::Dictionary { width, indexes, entries } => {
            let mut index = [0; 8];
            index[..*width].copy_from_slice(&indexes[row * width..][..*width]);
            value(entries, usize::try_from(u64::from_le_bytes(index)).ok()?)
        }
        _ => Some((column, row)),
    }
}

impl Number {
    /// Writes little-endian bytes as those of an unsigned integer, the most significant first.
    fn put(self, value: &[u8], out: &mut [u8]) {
        out.iter_mut().zip(value.iter().rev()).for_each(|(out, byte)| *out = *byte);
        if self == Self::DistinctFloat {
            make_one(out);
        }
        let [first, rest @ ..] = out else { return };
        match self {
            Self::Unsigned => {}
            Self::Float | Self::DistinctFloat if *first >= 0x80 => {
                *first = !*first;
                rest.iter_mut().for_each(|byte| *byte = !*byte);
            }
            _ => *first ^= 0x80,
        }
    }
}

/// Makes one zero and one NaN of all that there are. The most significant byte of the float is
/// first.
fn make_one(float: &mut [u8]) {
    let width = float.len();
    let mut bytes = [0; 8];
    bytes[8 - width..].copy_from_slice(float);
    let (infinity, nan): (u64, u64) = match width {
        2 => (0x7C00, 0x7E00),
        4 => (0x7F80_0000, 0x7FC0_0000),
        _ => (0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000),
    };
    let bits = u64::from_be_bytes(bytes);
    let one = match bits & !(1 << (8 * width - 1)) {
        0 => 0,
        magnitude if magnitude > infinity => nan,
        _ => bits,
    };
    float.copy_from_slice(&one.to_be_bytes()[8 - width..]);
}

/// Appends a string and its end.
fn put_string(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    // Text has none of the bytes that mean something else.
    while let Some(at) = rest.iter().position(|byte| *byte <= ESCAPE) {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain);
        out.extend_from_slice(&[ESCAPE, escaped[0] + 1]);
        rest = &escaped[1..];
    }
    out.extend_from_slice(rest);
    out.push(END);
}

/// A signed little-endian integer in 16 bytes.
fn widened(value: &[u8]) -> [u8; 16] {
    let sign = if value.last().is_some_and(|last| *last >= 0x80) { 0xFF } else { 0 };
    let mut out = [sign; 16];
    out[..value.len()].copy_from_slice(value);
    out
}

fn u32_at(offsets: &[u8], i: usize) -> usize {
    let mut raw = [0; 4];
    raw.copy_from_slice(&offsets[i * 4..][..4]);
    u32::from_le_bytes(raw) as usize
}
