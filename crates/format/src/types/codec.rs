//! The bytes of a schema: `spec/types.md` sections 1 and 2.

use super::{
    DEPTH_MAX, FIELDS_MAX, FIXED_BINARY_MAX, Field, METADATA_PAIRS_MAX, SCHEMA_BYTES_MAX, Schema,
    Type, Unit,
};
use crate::cursor::{Cursor, put_bytes};
use crate::error::{ErrorKind, Result, refuse};
use crate::layout::COUNT_MAX;

impl Schema {
    /// Appends the schema's bytes (types.md section 1).
    ///
    /// # Errors
    /// When it breaks a limit of types.md.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        encode_fields(&self.fields, out)?;
        // Decoding checks the limits.
        Self::decode(&out[start..]).map(drop)
    }

    /// Reads a schema that takes up all of `bytes`.
    ///
    /// # Errors
    /// When the bytes break a rule of types.md.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > SCHEMA_BYTES_MAX {
            refuse!(
                Schema,
                "a schema of {} bytes is over the limit of {SCHEMA_BYTES_MAX}",
                bytes.len()
            );
        }
        let mut reader = SchemaReader {
            cursor: Cursor::new(bytes, ErrorKind::Schema),
            fields_left: FIELDS_MAX,
            pairs_left: METADATA_PAIRS_MAX,
        };
        let fields = reader.fields(1)?;
        if !reader.cursor.is_empty() {
            refuse!(Schema, "{} bytes are left over after the schema", reader.cursor.remaining());
        }
        Ok(Self { fields })
    }
}

impl Type {
    /// The type's number in a schema's bytes.
    fn id(&self) -> u8 {
        use Type::*;
        match self {
            Null => 0,
            Boolean => 1,
            Int8 => 2,
            Int16 => 3,
            Int32 => 4,
            Int64 => 5,
            UInt8 => 6,
            UInt16 => 7,
            UInt32 => 8,
            UInt64 => 9,
            Float16 => 10,
            Float32 => 11,
            Float64 => 12,
            Decimal32 { .. } => 13,
            Decimal64 { .. } => 14,
            Decimal128 { .. } => 15,
            Decimal256 { .. } => 16,
            Date32 => 17,
            Date64 => 18,
            Time32(_) => 19,
            Time64(_) => 20,
            Timestamp { .. } => 21,
            Duration(_) => 22,
            IntervalMonths => 23,
            IntervalDayTime => 24,
            IntervalMonthDayNano => 25,
            Utf8 => 26,
            Binary => 27,
            FixedBinary(_) => 28,
            List(_) => 29,
            FixedList { .. } => 30,
            Struct(_) => 31,
            Map { .. } => 32,
            Dictionary { .. } => 33,
        }
    }
}

fn encode_fields(fields: &[Field], out: &mut Vec<u8>) -> Result<()> {
    let Ok(count) = u32::try_from(fields.len()) else {
        refuse!(Schema, "{} fields are too many", fields.len())
    };
    out.extend_from_slice(&count.to_le_bytes());
    fields.iter().try_for_each(|field| encode_field(field, out))
}

fn encode_field(field: &Field, out: &mut Vec<u8>) -> Result<()> {
    put_bytes(out, field.name.as_bytes())?;
    out.push(u8::from(field.nullable));
    encode_type(&field.data_type, out)?;
    let Ok(pairs) = u16::try_from(field.metadata.len()) else {
        refuse!(
            Schema,
            "column {} has {} metadata entries, over 65,535",
            field.name,
            field.metadata.len()
        )
    };
    out.extend_from_slice(&pairs.to_le_bytes());
    for (key, value) in &field.metadata {
        put_bytes(out, key.as_bytes())?;
        put_bytes(out, value.as_bytes())?;
    }
    Ok(())
}

fn encode_type(data_type: &Type, out: &mut Vec<u8>) -> Result<()> {
    use Type::*;
    out.push(data_type.id());
    match data_type {
        Decimal32 { precision, scale }
        | Decimal64 { precision, scale }
        | Decimal128 { precision, scale }
        | Decimal256 { precision, scale } => {
            out.extend_from_slice(&[*precision, scale.to_le_bytes()[0]])
        }
        Time32(unit) | Time64(unit) | Duration(unit) => out.push(*unit as u8),
        Timestamp { unit, zone } => {
            out.push(*unit as u8);
            put_bytes(out, zone.as_deref().unwrap_or("").as_bytes())?;
        }
        FixedBinary(width) => out.extend_from_slice(&width.to_le_bytes()),
        List(item) => encode_field(item, out)?,
        FixedList { size, item } => {
            out.extend_from_slice(&size.to_le_bytes());
            encode_field(item, out)?;
        }
        Struct(fields) => encode_fields(fields, out)?,
        Map { sorted, key, value } => {
            out.push(u8::from(*sorted));
            encode_field(key, out)?;
            encode_field(value, out)?;
        }
        Dictionary { index, ordered, value } => {
            encode_type(index, out)?;
            out.push(u8::from(*ordered));
            encode_type(value, out)?;
        }
        _ => {}
    }
    Ok(())
}

struct SchemaReader<'a> {
    cursor: Cursor<'a>,
    fields_left: usize,
    pairs_left: usize,
}

impl SchemaReader<'_> {
    fn fields(&mut self, depth: usize) -> Result<Vec<Field>> {
        let count = self.cursor.u32("fields")? as usize;
        // The smallest field has eight bytes. So a count can't make the reader reserve much more
        // memory than was sent.
        if count > self.fields_left {
            refuse!(
                Schema,
                "the schema has more than {FIELDS_MAX} fields, those within others counted"
            );
        }
        if count > self.cursor.remaining() / 8 {
            refuse!(Schema, "the schema announces {count} fields, more than it can hold");
        }
        (0..count).map(|_| self.field(depth)).collect()
    }

    fn field(&mut self, depth: usize) -> Result<Field> {
        let Some(left) = self.fields_left.checked_sub(1) else {
            refuse!(
                Schema,
                "the schema has more than {FIELDS_MAX} fields, those within others counted"
            )
        };
        self.fields_left = left;
        let name = self.c_string("name")?;
        let nullable = self.boolean("flags")?;
        let data_type = self.data_type(depth)?;
        let pairs = self.cursor.u16("metadata")?;
        let Some(left) = self.pairs_left.checked_sub(pairs.into()) else {
            refuse!(Schema, "the schema has more than {METADATA_PAIRS_MAX} pairs of metadata")
        };
        self.pairs_left = left;
        let mut metadata = Vec::new();
        for _ in 0..pairs {
            let key = self.cursor.string("metadata key")?.to_owned();
            metadata.push((key, self.cursor.string("metadata value")?.to_owned()));
        }
        Ok(Field { name, data_type, nullable, metadata })
    }

    /// A string without a zero byte, so that it can become a C string.
    fn c_string(&mut self, field: &'static str) -> Result<String> {
        match self.cursor.string(field)? {
            text if text.contains('\0') => refuse!(Schema, "the {field} {text:?} has a byte 0"),
            text => Ok(text.to_owned()),
        }
    }

    fn boolean(&mut self, field: &'static str) -> Result<bool> {
        match self.cursor.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => refuse!(Schema, "field {field} is {other}, expected 0 or 1"),
        }
    }

    fn unit(&mut self, allowed: &[Unit]) -> Result<Unit> {
        let found = self.cursor.u8("unit")?;
        match allowed.iter().find(|unit| **unit as u8 == found) {
            Some(unit) => Ok(*unit),
            None => refuse!(Schema, "unit {found} is not one of the type's"),
        }
    }

    fn decimal(&mut self, precision_max: u8) -> Result<(u8, i8)> {
        let precision = self.cursor.u8("precision")?;
        if precision == 0 || precision > precision_max {
            refuse!(Schema, "a decimal's precision is {precision}, expected 1 to {precision_max}");
        }
        Ok((precision, self.cursor.i8("scale")?))
    }

    fn data_type(&mut self, depth: usize) -> Result<Type> {
        use Unit::*;
        const ANY: &[Unit] = &[Second, Millisecond, Microsecond, Nanosecond];
        if depth > DEPTH_MAX {
            refuse!(Schema, "types are nested deeper than {DEPTH_MAX} levels");
        }
        Ok(match self.cursor.u8("type")? {
            0 => Type::Null,
            1 => Type::Boolean,
            2 => Type::Int8,
            3 => Type::Int16,
            4 => Type::Int32,
            5 => Type::Int64,
            6 => Type::UInt8,
            7 => Type::UInt16,
            8 => Type::UInt32,
            9 => Type::UInt64,
            10 => Type::Float16,
            11 => Type::Float32,
            12 => Type::Float64,
            13 => self.decimal(9).map(|(precision, scale)| Type::Decimal32 { precision, scale })?,
            14 => {
                self.decimal(18).map(|(precision, scale)| Type::Decimal64 { precision, scale })?
            }
            15 => {
                self.decimal(38).map(|(precision, scale)| Type::Decimal128 { precision, scale })?
            }
            16 => {
                self.decimal(76).map(|(precision, scale)| Type::Decimal256 { precision, scale })?
            }
            17 => Type::Date32,
            18 => Type::Date64,
            19 => Type::Time32(self.unit(&[Second, Millisecond])?),
            20 => Type::Time64(self.unit(&[Microsecond, Nanosecond])?),
            21 => {
                let unit = self.unit(ANY)?;
                let zone = self.c_string("zone")?;
                Type::Timestamp { unit, zone: (!zone.is_empty()).then_some(zone) }
            }
            22 => Type::Duration(self.unit(ANY)?),
            23 => Type::IntervalMonths,
            24 => Type::IntervalDayTime,
            25 => Type::IntervalMonthDayNano,
            26 => Type::Utf8,
            27 => Type::Binary,
            28 => match self.cursor.u32("width")? {
                width @ 1..=FIXED_BINARY_MAX => Type::FixedBinary(width),
                width => refuse!(
                    Schema,
                    "a fixed-size binary has width {width}, expected 1 to {FIXED_BINARY_MAX}"
                ),
            },
            29 => Type::List(Box::new(self.field(depth + 1)?)),
            30 => {
                let size = self.cursor.u32("size")?;
                if size as usize > COUNT_MAX {
                    refuse!(Schema, "a fixed-size list of {size} items is too large");
                }
                Type::FixedList { size, item: Box::new(self.field(depth + 1)?) }
            }
            31 => Type::Struct(self.fields(depth + 1)?),
            32 => {
                let sorted = self.boolean("sorted")?;
                let key = Box::new(self.field(depth + 1)?);
                if key.nullable {
                    refuse!(Schema, "a map's key is nullable");
                }
                Type::Map { sorted, key, value: Box::new(self.field(depth + 1)?) }
            }
            33 => {
                let index = Box::new(self.data_type(depth + 1)?);
                if !(2..=9).contains(&index.id()) {
                    refuse!(
                        Schema,
                        "a dictionary's index is of type {}, expected an integer",
                        index.id()
                    );
                }
                let ordered = self.boolean("ordered")?;
                let value = Box::new(self.data_type(depth + 1)?);
                if matches!(*value, Type::Dictionary { .. }) {
                    refuse!(Schema, "a dictionary of a dictionary");
                }
                Type::Dictionary { index, ordered, value }
            }
            other => refuse!(Schema, "unknown type {other}"),
        })
    }
}
