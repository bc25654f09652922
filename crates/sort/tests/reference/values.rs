//! Values, their comparison, and their conversion to columns and back, all without sort keys.

use std::cmp::Ordering;

use dray_format::{Bitmap, Column, Field, Type, Values};

use super::draw::Draw;

/// A value of any type. Floats are their bits, since different bits may be equal.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i128),
    /// The upper and the lower half of 256 bits.
    Wide(i128, u128),
    Half(u16),
    Single(u32),
    Double(u64),
    /// Numbers that are compared one after the other.
    Numbers(Vec<i64>),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(Vec<Value>),
}

/// The order of values.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub descending: bool,
    pub nulls_first: bool,
    /// Whether all zeros are equal, and all NaNs.
    pub is_distinct: bool,
}

impl Rule {
    /// Compares two values. The direction applies at every level, except to the place of nulls.
    pub fn compare(self, a: &Value, b: &Value) -> Ordering {
        let null = if self.nulls_first { Ordering::Less } else { Ordering::Greater };
        let directed = |order: Ordering| if self.descending { order.reverse() } else { order };
        match (a, b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => null,
            (_, Value::Null) => null.reverse(),
            (Value::List(a), Value::List(b)) | (Value::Struct(a), Value::Struct(b)) => {
                let items = a.iter().zip(b).map(|(a, b)| self.compare(a, b));
                items
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| directed(a.len().cmp(&b.len())))
            }
            (a, b) => directed(self.compare_plain(a, b)),
        }
    }

    fn compare_plain(self, a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Wide(a, a_low), Value::Wide(b, b_low)) => (a, a_low).cmp(&(b, b_low)),
            (Value::Half(a), Value::Half(b)) => {
                half(self.one(*a, 0x7C00)).cmp(&half(self.one(*b, 0x7C00)))
            }
            (Value::Single(a), Value::Single(b)) => {
                let one = |bits: u32| match f32::from_bits(bits) {
                    float if self.is_distinct && float.is_nan() => f32::NAN,
                    float if self.is_distinct && float == 0.0 => 0.0,
                    float => float,
                };
                one(*a).total_cmp(&one(*b))
            }
            (Value::Double(a), Value::Double(b)) => {
                let one = |bits: u64| match f64::from_bits(bits) {
                    float if self.is_distinct && float.is_nan() => f64::NAN,
                    float if self.is_distinct && float == 0.0 => 0.0,
                    float => float,
                };
                one(*a).total_cmp(&one(*b))
            }
            (Value::Numbers(a), Value::Numbers(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (a, b) => panic!("{a:?} and {b:?} are not of one type"),
        }
    }

    /// If zeros and NaNs are equal, replaces them by one zero and one NaN.
    fn one(self, bits: u16, infinity: u16) -> u16 {
        match bits & 0x7FFF {
            0 if self.is_distinct => 0,
            magnitude if self.is_distinct && magnitude > infinity => 0x7E00,
            _ => bits,
        }
    }
}

/// An integer with the order of a float of 16 bits: the magnitude, inverted for negative ones.
fn half(bits: u16) -> i32 {
    let magnitude = i32::from(bits & 0x7FFF);
    if bits & 0x8000 == 0 { magnitude } else { -1 - magnitude }
}

/// The widths of the numbers of an interval.
pub fn interval_widths(data_type: &Type) -> &'static [usize] {
    match data_type {
        Type::IntervalDayTime => &[4, 4],
        Type::IntervalMonthDayNano => &[4, 4, 8],
        _ => &[],
    }
}

/// The value of a type of fixed width, from bytes of which the most significant comes first.
pub fn from_bytes(data_type: &Type, bytes: &[u8]) -> Value {
    let unsigned =
        |bytes: &[u8]| bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let signed = |bytes: &[u8]| {
        let shift = 128 - 8 * bytes.len() as u32;
        (unsigned(bytes) << shift) as i128 >> shift
    };
    match data_type {
        Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => {
            Value::Int(unsigned(bytes) as i128)
        }
        Type::Float16 => Value::Half(unsigned(bytes) as u16),
        Type::Float32 => Value::Single(unsigned(bytes) as u32),
        Type::Float64 => Value::Double(unsigned(bytes) as u64),
        Type::Decimal256 { .. } => Value::Wide(signed(&bytes[..16]), unsigned(&bytes[16..])),
        Type::FixedBinary(_) => Value::Bytes(bytes.to_vec()),
        Type::IntervalDayTime | Type::IntervalMonthDayNano => {
            let mut rest = bytes;
            let number = |width: &usize| {
                let (number, others) = rest.split_at(*width);
                rest = others;
                signed(number) as i64
            };
            Value::Numbers(interval_widths(data_type).iter().map(number).collect())
        }
        _ => Value::Int(signed(bytes)),
    }
}

/// The bytes of a value of fixed width in a column.
fn column_bytes(data_type: &Type, value: &Value, width: usize) -> Vec<u8> {
    match value {
        Value::Int(number) => number.to_le_bytes()[..width].to_vec(),
        Value::Wide(high, low) => [low.to_le_bytes(), high.to_le_bytes()].concat(),
        Value::Half(bits) => bits.to_le_bytes().to_vec(),
        Value::Single(bits) => bits.to_le_bytes().to_vec(),
        Value::Double(bits) => bits.to_le_bytes().to_vec(),
        Value::Numbers(numbers) => {
            let with_widths = numbers.iter().zip(interval_widths(data_type));
            with_widths
                .flat_map(|(number, width)| number.to_le_bytes()[..*width].to_vec())
                .collect()
        }
        Value::Bytes(bytes) => bytes.clone(),
        other => panic!("{other:?} has no width"),
    }
}

/// A column of values. Nulls have arbitrary bytes.
pub fn column(draw: &mut Draw<'_>, field: &Field, values: &[&Value]) -> Column {
    let rows = values.len();
    let is_null = |value: &&Value| **value == Value::Null;
    let data_type = &field.data_type;
    let any_null = values.iter().any(is_null);
    let has_bits = *data_type != Type::Null && (any_null || field.nullable && draw.below(4) == 0);
    let validity = has_bits.then(|| {
        let offset = draw.below(10);
        let bits = values.iter().map(|value| !is_null(value));
        bitmap(offset, bits)
    });
    let offsets = |lengths: &[usize]| {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += *length as u32;
            end
        });
        std::iter::once(0).chain(ends).flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into()
    };
    let values = match data_type {
        Type::Null => Values::Null,
        Type::Boolean => {
            let bits = values.iter().map(|value| matches!(value, Value::Bool(true)));
            Values::Boolean(bitmap(draw.below(10), bits))
        }
        Type::Utf8 | Type::Binary => {
            let bytes: Vec<&[u8]> = values
                .iter()
                .map(|value| if let Value::Bytes(bytes) = value { &bytes[..] } else { b"" })
                .collect();
            let lengths: Vec<usize> = bytes.iter().map(|bytes| bytes.len()).collect();
            Values::Bytes { offsets: offsets(&lengths), data: bytes.concat().into() }
        }
        Type::List(_) | Type::Map { .. } => {
            let lists: Vec<&[Value]> = values
                .iter()
                .map(|value| if let Value::List(items) = value { &items[..] } else { &[] })
                .collect();
            let lengths: Vec<usize> = lists.iter().map(|items| items.len()).collect();
            let items: Vec<&Value> = lists.into_iter().flatten().collect();
            let child = match data_type {
                Type::List(item) => column(draw, item, &items),
                _ => structs(draw, &fields(data_type), &items),
            };
            Values::List { offsets: offsets(&lengths), child: Box::new(child) }
        }
        Type::FixedList { size, item } => {
            let filler = filler(item);
            let mut items: Vec<&Value> = Vec::new();
            for value in values {
                match value {
                    Value::List(found) => items.extend(found),
                    _ => items.extend(std::iter::repeat_n(&filler, *size as usize)),
                }
            }
            Values::FixedList { size: *size as usize, child: Box::new(column(draw, item, &items)) }
        }
        Type::Struct(fields) => structs(draw, fields, values).values,
        Type::Dictionary { index, value, .. } => {
            let width = index.width().unwrap();
            let mut entries: Vec<&Value> =
                vec![values.iter().copied().find(|value| !is_null(value)).unwrap_or(&Value::Null)];
            let mut indexes = Vec::new();
            for value in values {
                let known = if is_null(value) {
                    Some(0)
                } else {
                    entries.iter().position(|entry| entry == value)
                };
                let index = known.unwrap_or_else(|| {
                    entries.push(value);
                    entries.len() - 1
                });
                indexes.extend_from_slice(&index.to_le_bytes()[..width]);
            }
            let field = Field { data_type: (**value).clone(), ..field.clone() };
            Values::Dictionary {
                width,
                indexes: indexes.into(),
                entries: Box::new(column(draw, &field, &entries)),
            }
        }
        fixed => {
            let width = fixed.width().unwrap();
            let fits = |value: &&Value| match value {
                Value::Int(number) => i64::try_from(*number).is_ok(),
                _ => true,
            };
            let narrow = matches!(fixed, Type::Decimal128 { .. })
                && draw.below(2) == 0
                && values.iter().all(fits);
            let taken = if narrow { 8 } else { width };
            let garbage = [0xA5; super::draw::WIDE];
            let bytes = values.iter().flat_map(|value| match value {
                Value::Null => garbage[..taken].to_vec(),
                value => column_bytes(fixed, value, taken),
            });
            let bytes = bytes.collect::<Vec<u8>>().into();
            if narrow {
                Values::Narrow { width: taken, bytes }
            } else {
                Values::Fixed { width, bytes }
            }
        }
    };
    Column { rows, validity, values }
}

/// A column of structs. Fields of nulls have arbitrary values.
fn structs(draw: &mut Draw<'_>, fields: &[Field], values: &[&Value]) -> Column {
    let fillers: Vec<Value> = fields.iter().map(filler).collect();
    let child = |(i, field): (usize, &Field)| {
        let values: Vec<&Value> = values
            .iter()
            .map(|value| if let Value::Struct(values) = value { &values[i] } else { &fillers[i] })
            .collect();
        column(draw, field, &values)
    };
    let children = fields.iter().enumerate().map(child).collect();
    Column { rows: values.len(), validity: None, values: Values::Struct(children) }
}

/// The value of a field of a null struct.
fn filler(field: &Field) -> Value {
    match &field.data_type {
        _ if field.nullable => Value::Null,
        Type::Boolean => Value::Bool(true),
        Type::Utf8 | Type::Binary => Value::Bytes(Vec::new()),
        Type::List(_) | Type::Map { .. } => Value::List(Vec::new()),
        Type::FixedList { size, item } => Value::List(vec![filler(item); *size as usize]),
        Type::Struct(fields) => Value::Struct(fields.iter().map(filler).collect()),
        Type::Dictionary { value, .. } => {
            filler(&Field { data_type: (**value).clone(), ..field.clone() })
        }
        Type::Null => Value::Null,
        fixed => from_bytes(fixed, &vec![0x5A; fixed.width().unwrap()]),
    }
}

/// The key and the value field of a map.
fn fields(map: &Type) -> Vec<Field> {
    match map {
        Type::Map { key, value, .. } => vec![(**key).clone(), (**value).clone()],
        other => panic!("{other:?} is no map"),
    }
}

fn bitmap(offset: usize, bits: impl Iterator<Item = bool>) -> Bitmap {
    let mut bytes = vec![0x5A; offset.div_ceil(8)];
    let mut len = 0;
    for bit in bits {
        let at = offset + len;
        if at / 8 == bytes.len() {
            bytes.push(0);
        }
        bytes[at / 8] = bytes[at / 8] & !(1 << (at % 8)) | u8::from(bit) << (at % 8);
        len += 1;
    }
    Bitmap { bytes: bytes.into(), offset, len }
}

/// The value of a row.
pub fn value_at(data_type: &Type, column: &Column, row: usize) -> Value {
    if !column.is_valid(row) {
        return Value::Null;
    }
    let offset = |offsets: &[u8], i: usize| {
        u32::from_le_bytes(offsets[4 * i..][..4].try_into().unwrap()) as usize
    };
    match (data_type, &column.values) {
        (Type::Boolean, Values::Boolean(bits)) => Value::Bool(bits.bit(row)),
        (Type::Utf8 | Type::Binary, Values::Bytes { offsets, data }) => {
            Value::Bytes(data[offset(offsets, row)..offset(offsets, row + 1)].to_vec())
        }
        (Type::List(item), Values::List { offsets, child }) => {
            let items = offset(offsets, row)..offset(offsets, row + 1);
            Value::List(items.map(|i| value_at(&item.data_type, child, i)).collect())
        }
        (map @ Type::Map { .. }, Values::List { offsets, child }) => {
            let pair = Type::Struct(fields(map));
            let items = offset(offsets, row)..offset(offsets, row + 1);
            Value::List(items.map(|i| value_at(&pair, child, i)).collect())
        }
        (Type::FixedList { item, .. }, Values::FixedList { size, child }) => Value::List(
            (row * size..(row + 1) * size).map(|i| value_at(&item.data_type, child, i)).collect(),
        ),
        (Type::Struct(fields), Values::Struct(children)) => {
            let with_types = fields.iter().zip(children);
            Value::Struct(
                with_types.map(|(field, child)| value_at(&field.data_type, child, row)).collect(),
            )
        }
        (Type::Dictionary { value, .. }, Values::Dictionary { width, indexes, entries }) => {
            let mut index = [0; 8];
            index[..*width].copy_from_slice(&indexes[row * width..][..*width]);
            value_at(value, entries, u64::from_le_bytes(index) as usize)
        }
        (fixed, Values::Fixed { width, bytes } | Values::Narrow { width, bytes }) => {
            let bytes = &bytes[row * width..][..*width];
            let widths = match interval_widths(fixed) {
                [] => &[*width][..],
                widths => widths,
            };
            let mut rest = bytes;
            let mut reversed = Vec::new();
            for width in widths {
                let (number, others) = rest.split_at(*width);
                reversed.extend(number.iter().rev());
                rest = others;
            }
            match fixed {
                Type::FixedBinary(_) => Value::Bytes(bytes.to_vec()),
                fixed => from_bytes(fixed, &reversed),
            }
        }
        (expected, found) => panic!("expected {expected:?}, found {found:?}"),
    }
}
