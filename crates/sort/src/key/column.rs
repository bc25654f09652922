//! The values of one column in a key, or of a column nested in it (`spec/sort-key.md` sections 2 to
//! 5).

use dray_format::{Bitmap, Column, Field, Type, Values};

use super::encoder::{KeyPurpose, SortColumn};

/// The marker before a value that is not null, and before each item of a list (section 2).
const PRESENT: u8 = 1;
/// The markers of nulls that come first, and of nulls that come last (section 2).
const NULL_FIRST: u8 = 0;
const NULL_LAST: u8 = 2;
/// The byte after the last item of a list, and after the last byte of a string (sections 3 and 4).
const END: u8 = 0;
/// The byte before the escaped bytes of a string, 00 and 01 (section 4).
const ESCAPE: u8 = 1;

/// Encodes the values of a column.
#[derive(Debug, Clone)]
pub(super) struct ColumnEncoder {
    /// The marker of a null; `None` if the column is not nullable.
    null_marker: Option<u8>,
    /// Whether the bytes of a value are inverted, those of nested values with it. Nested encoders
    /// don't invert by themselves.
    inverted: bool,
    kind: Kind,
    /// The bytes of a value without its marker; `None` if they vary.
    value_width: Option<usize>,
}

#[derive(Debug, Clone)]
enum Kind {
    Null,
    Boolean,
    Number {
        width: usize,
        number: Number,
    },
    /// Signed integers of these widths, one after the other.
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

/// How the bits of a little-endian number become an unsigned integer of the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Unsigned,
    Signed,
    Float,
    /// All zeros are equal, and all NaNs are.
    DistinctFloat,
}

impl ColumnEncoder {
    /// An encoder of a column that rows are sorted by.
    pub(super) fn new(field: &Field, by: &SortColumn, purpose: KeyPurpose) -> Self {
        let null_marker = |first: bool| if first { NULL_FIRST } else { NULL_LAST };
        // In a descending column nested markers are inverted, which would reverse their place.
        let nested_marker = null_marker(by.nulls_first != by.descending);
        let column = Self::nested(field, nested_marker, purpose);
        let null_marker = column.null_marker.map(|_| null_marker(by.nulls_first));
        Self { null_marker, inverted: by.descending, ..column }
    }

    fn nested(field: &Field, null_marker: u8, purpose: KeyPurpose) -> Self {
        let (kind, value_width) = kind(&field.data_type, null_marker, purpose);
        let is_marked = field.nullable && !matches!(kind, Kind::Null);
        Self { null_marker: is_marked.then_some(null_marker), inverted: false, kind, value_width }
    }

    /// The bytes of each value, nulls included; `None` if they vary.
    pub(super) fn width(&self) -> Option<usize> {
        Some(self.value_width? + usize::from(self.null_marker.is_some()))
    }

    /// Encodes all rows of a column of fixed width, the value of row `i` at `at + i * stride` of
    /// `out`, which has zeros there.
    pub(super) fn encode_column(&self, column: &Column, out: &mut [u8], at: usize, stride: usize) {
        let Some(width) = self.width().filter(|width| *width > 0) else { return };
        // Without rows, `out` is empty and `at` may be beyond it.
        let places = out.get_mut(at..).unwrap_or_default().chunks_mut(stride);
        if let (Kind::Number { width, number }, Values::Fixed { bytes, .. }) =
            (&self.kind, &column.values)
        {
            match width {
                1 => return self.encode_numbers::<1>(*number, column, bytes, places),
                2 => return self.encode_numbers::<2>(*number, column, bytes, places),
                4 => return self.encode_numbers::<4>(*number, column, bytes, places),
                8 => return self.encode_numbers::<8>(*number, column, bytes, places),
                16 => return self.encode_numbers::<16>(*number, column, bytes, places),
                32 => return self.encode_numbers::<32>(*number, column, bytes, places),
                // As all other values, below.
                _ => {}
            }
        }
        let mut value = Vec::with_capacity(width);
        for (row, place) in places.enumerate() {
            value.clear();
            self.encode_row(column, row, &mut value);
            place[..width].copy_from_slice(&value);
        }
    }

    /// Encodes numbers of `N` bytes. A function of its own for each size: the loop over the bytes
    /// becomes a few instructions.
    fn encode_numbers<'p, const N: usize>(
        &self,
        number: Number,
        column: &Column,
        values: &[u8],
        places: impl Iterator<Item = &'p mut [u8]>,
    ) {
        if self.null_marker.is_none() {
            for (place, value) in places.zip(values.as_chunks::<N>().0) {
                number.encode(value, &mut place[..N]);
                self.apply_direction(&mut place[..N]);
            }
            return;
        }
        for (row, (place, value)) in places.zip(values.as_chunks::<N>().0).enumerate() {
            if let Some(place) = self.write_marker(column.is_valid(row), place) {
                number.encode(value, &mut place[..N]);
                self.apply_direction(&mut place[..N]);
            }
        }
    }

    /// Whether values can be decoded from keys: those of numbers, of which each bit is in the key.
    pub(super) fn can_decode(&self) -> bool {
        matches!(self.kind, Kind::Number { number, .. } if number != Number::DistinctFloat)
    }

    /// Decodes the values from keys of `stride` bytes each, the value of each key from its byte
    /// `at` on. Nulls have zeros as values. `None` if values can't be decoded.
    pub(super) fn decode_column(&self, keys: &[u8], at: usize, stride: usize) -> Option<Column> {
        let Kind::Number { width, number } = self.kind else { return None };
        let places = keys.chunks_exact(stride).map(|key| key.get(at..).unwrap_or_default());
        match width {
            1 => self.decode_numbers::<1>(number, places),
            2 => self.decode_numbers::<2>(number, places),
            4 => self.decode_numbers::<4>(number, places),
            8 => self.decode_numbers::<8>(number, places),
            16 => self.decode_numbers::<16>(number, places),
            32 => self.decode_numbers::<32>(number, places),
            _ => None,
        }
    }

    fn decode_numbers<'k, const N: usize>(
        &self,
        number: Number,
        places: impl ExactSizeIterator<Item = &'k [u8]>,
    ) -> Option<Column> {
        let rows = places.len();
        let mut values = Vec::with_capacity(rows);
        let mut validity = None;
        for (row, place) in places.enumerate() {
            let (is_valid, place) = match self.null_marker {
                None => (true, place),
                Some(_) => place.split_first().map(|(marker, rest)| (*marker == PRESENT, rest))?,
            };
            let mut value = [0; N];
            if is_valid {
                number.decode(place.first_chunk::<N>()?, self.inverted, &mut value);
            } else {
                let bits = validity.get_or_insert_with(|| vec![u8::MAX; rows.div_ceil(8)]);
                bits[row / 8] &= !(1 << (row % 8));
            }
            values.push(value);
        }
        Some(Column {
            rows,
            validity: validity.map(|bits| Bitmap { bytes: bits.into(), offset: 0, len: rows }),
            values: Values::Fixed { width: N, bytes: values.into_flattened().into() },
        })
    }

    /// Writes the marker of a value, and returns the bytes after it unless the value is null.
    fn write_marker<'a>(&self, is_valid: bool, place: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let Some(null_marker) = self.null_marker else { return Some(place) };
        let (marker, value) = place.split_first_mut()?;
        *marker = if is_valid { PRESENT } else { null_marker };
        is_valid.then_some(value)
    }

    fn apply_direction(&self, value: &mut [u8]) {
        if self.inverted {
            value.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Appends the encoded value of a row.
    pub(super) fn encode_row(&self, column: &Column, row: usize, out: &mut Vec<u8>) {
        let (column, row) = match value(column, row) {
            Some(found) => found,
            None => {
                let zeros = self.value_width.unwrap_or(0);
                out.extend(self.null_marker);
                out.resize(out.len() + zeros, 0);
                return;
            }
        };
        out.extend(self.null_marker.map(|_| PRESENT));
        let start = out.len();
        self.encode_value(column, row, out);
        debug_assert!(
            self.value_width.is_none_or(|width| out.len() - start == width),
            "a value has its column's width"
        );
        self.apply_direction(&mut out[start..]);
    }

    fn encode_value(&self, column: &Column, row: usize, out: &mut Vec<u8>) {
        match (&self.kind, &column.values) {
            (Kind::Boolean, Values::Boolean(bits)) => out.push(bits.bit(row).into()),
            (Kind::Number { width, number }, values) => {
                let start = out.len();
                out.resize(start + width, 0);
                match values {
                    Values::Fixed { bytes, .. } => {
                        number.encode(&bytes[row * width..][..*width], &mut out[start..])
                    }
                    Values::Narrow { width: narrow, bytes } => {
                        let value = sign_extended(&bytes[row * narrow..][..*narrow]);
                        number.encode(&value[..*width], &mut out[start..]);
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
                    Number::Signed.encode(value, &mut out[start..]);
                    rest = others;
                }
            }
            (Kind::Bytes { width }, Values::Fixed { bytes, .. }) => {
                out.extend_from_slice(&bytes[row * width..][..*width]);
            }
            (Kind::String, Values::Bytes { offsets, data }) => {
                encode_string(&data[u32_at(offsets, row)..u32_at(offsets, row + 1)], out);
            }
            (Kind::List(item), Values::List { offsets, child }) => {
                for i in u32_at(offsets, row)..u32_at(offsets, row + 1) {
                    out.push(PRESENT);
                    item.encode_row(child, i, out);
                }
                out.push(END);
            }
            (Kind::FixedList { size, item }, Values::FixedList { child, .. }) => {
                (row * size..(row + 1) * size).for_each(|i| item.encode_row(child, i, out));
            }
            (Kind::Struct(fields), Values::Struct(children)) => {
                fields
                    .iter()
                    .zip(children)
                    .for_each(|(field, child)| field.encode_row(child, row, out));
            }
            // Batches are checked against their schema, and values of type null are null.
            _ => {}
        }
    }
}

/// How values of a type are encoded, and to how many bytes; `None` if that varies.
fn kind(data_type: &Type, null_marker: u8, purpose: KeyPurpose) -> (Kind, Option<usize>) {
    let column = |field: &Field| ColumnEncoder::nested(field, null_marker, purpose);
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
            let (kind, value_width) = structure(vec![column(key), column(value)]);
            let entry = ColumnEncoder { null_marker: None, inverted: false, kind, value_width };
            (Kind::List(Box::new(entry)), None)
        }
        Type::FixedList { size, item } => {
            let (size, item) = (*size as usize, column(item));
            let width = item.width().map(|width| width * size);
            (Kind::FixedList { size, item: Box::new(item) }, width)
        }
        Type::Struct(fields) => structure(fields.iter().map(column).collect()),
        Type::Dictionary { value, .. } => kind(value, null_marker, purpose),
        signed => number(signed.width().unwrap_or(0), Number::Signed),
    }
}

fn number(width: usize, number: Number) -> (Kind, Option<usize>) {
    (Kind::Number { width, number }, Some(width))
}

fn structure(fields: Vec<ColumnEncoder>) -> (Kind, Option<usize>) {
    let width = fields.iter().map(ColumnEncoder::width).sum();
    (Kind::Struct(fields), width)
}

/// The column and row of the value of a row, inside any dictionaries; `None` if it is null.
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
    /// Encodes a little-endian number, the most significant byte first (section 3).
    #[inline(always)]
    fn encode(self, value: &[u8], out: &mut [u8]) {
        out.iter_mut().zip(value.iter().rev()).for_each(|(out, byte)| *out = *byte);
        if self == Self::DistinctFloat {
            unify(out);
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

    /// Undoes [`encode`](Self::encode). `inverted` if the encoded bytes are inverted.
    #[inline(always)]
    fn decode(self, encoded: &[u8], inverted: bool, value: &mut [u8]) {
        let inversion = if inverted { u8::MAX } else { 0 };
        value
            .iter_mut()
            .zip(encoded.iter().rev())
            .for_each(|(value, byte)| *value = byte ^ inversion);
        let [rest @ .., highest] = value else { return };
        match self {
            Self::Unsigned => {}
            Self::Float | Self::DistinctFloat if *highest < 0x80 => {
                *highest = !*highest;
                rest.iter_mut().for_each(|byte| *byte = !*byte);
            }
            _ => *highest ^= 0x80,
        }
    }
}

/// Replaces -0 by +0, and any NaN by the one of section 5. The float is big-endian.
fn unify(float: &mut [u8]) {
    let width = float.len();
    let mut bytes = [0; 8];
    bytes[8 - width..].copy_from_slice(float);
    let (infinity, nan): (u64, u64) = match width {
        2 => (0x7C00, 0x7E00),
        4 => (0x7F80_0000, 0x7FC0_0000),
        _ => (0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000),
    };
    let bits = u64::from_be_bytes(bytes);
    let unified = match bits & !(1 << (8 * width - 1)) {
        0 => 0,
        magnitude if magnitude > infinity => nan,
        _ => bits,
    };
    float.copy_from_slice(&unified.to_be_bytes()[8 - width..]);
}

/// Appends a string, escaped, and its end (section 4).
fn encode_string(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    // Text has no bytes to escape, and is copied whole.
    while let Some(at) = rest.iter().position(|byte| *byte <= ESCAPE) {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain);
        out.extend_from_slice(&[ESCAPE, escaped[0] + 1]);
        rest = &escaped[1..];
    }
    out.extend_from_slice(rest);
    out.push(END);
}

/// A signed little-endian integer, extended to 16 bytes.
fn sign_extended(value: &[u8]) -> [u8; 16] {
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
