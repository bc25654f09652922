//! The column of each type (`spec/types.md` section 5).

use dray_format::{Field, Type, Unit};

use crate::ColumnDefinition;
use crate::error::{Error, ErrorKind, Result};

/// The metadata key for the type's name, if the column's own type does not tell it.
pub const TYPE_KEY: &str = "dray:mysql:type";
const EXTENSION_KEY: &str = "ARROW:extension:name";

const UNSIGNED_FLAG: u16 = 1 << 5;
const ENUM_FLAG: u16 = 1 << 8;
const SET_FLAG: u16 = 1 << 11;

/// The collation of bytes.
const BINARY: u16 = 63;
/// The most digits of a decimal. Columns have up to 65, but sums and products may have more.
const DIGITS_MAX: u32 = 76;
/// The most digits after the point: MariaDB's limit; MySQL has 30.
const SCALE_MAX: u8 = 38;
/// The most digits of a column of 128 bits.
const DECIMAL128_DIGITS_MAX: u8 = 38;
/// The digits after the point of a float that has no declared number of them.
const NOT_FIXED: u8 = 31;

/// What to do about dates that the calendar does not have: `0000-00-00`, `2024-00-00`,
/// `2024-02-31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroDates {
    /// Fail, naming the value.
    #[default]
    Error,
    /// Make them NULL.
    Null,
    /// Make columns of dates and datetimes text.
    Text,
}

/// The user's choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Dates that the calendar does not have.
    pub zero_dates: ZeroDates,
}

/// How to read a value, in either protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decode {
    /// Only NULL.
    Null,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Year,
    Float32,
    Float64,
    Decimal128 {
        precision: u8,
        scale: u8,
    },
    Decimal256 {
        precision: u8,
        scale: u8,
    },
    Bits,
    Date,
    DateTime,
    Time,
    DateText,
    /// With this many digits of a second.
    DateTimeText(u8),
    /// The value's own bytes.
    Bytes,
    Uuid,
    Vector,
}

/// A column of a result.
#[derive(Debug, Clone)]
pub struct Column {
    field: Field,
    needs_binary: bool,
    pub(crate) decode: Decode,
    pub(crate) null_zero_dates: bool,
}

impl Column {
    /// The column of values of this definition.
    ///
    /// # Errors
    /// When its type or its character set is not known here.
    pub fn new(definition: &ColumnDefinition, options: &Options) -> Result<Self> {
        let (data_type, decode, metadata) =
            map(definition, options).map_err(|error| error.of_column(&definition.name))?;
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
        // The flag NOT_NULL holds for the table's column, not for every result that has it.
        let field = Field {
            name: definition.name.clone(),
            data_type,
            nullable: true,
            metadata: metadata.into_iter().collect(),
        };
        let needs_binary = match decode {
            Decode::Float32 => true,
            Decode::Float64 => definition.decimals < NOT_FIXED,
            _ => false,
        };
        let null_zero_dates = options.zero_dates == ZeroDates::Null;
        Ok(Self { field, needs_binary, decode, null_zero_dates })
    }

    /// The column's field in a schema.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Whether the text protocol loses digits of the column's values: it rounds FLOAT to six, and
    /// DOUBLE with a declared number of digits after the point to that number.
    pub fn needs_binary(&self) -> bool {
        self.needs_binary
    }
}

/// A pair of metadata.
type Named = Option<(&'static str, String)>;

fn named(name: impl Into<String>) -> Named {
    Some((TYPE_KEY, name.into()))
}

fn extension(name: &str) -> Named {
    Some((EXTENSION_KEY, name.to_owned()))
}

fn map(definition: &ColumnDefinition, options: &Options) -> Result<(Type, Decode, Named)> {
    let is_unsigned = definition.flags & UNSIGNED_FLAG != 0;
    let integer = |signed: (Type, Decode), unsigned: (Type, Decode)| {
        let (data_type, decode) = if is_unsigned { unsigned } else { signed };
        Ok((data_type, decode, None))
    };
    let decimals = definition.decimals.min(6);
    let datetime = |zone: Option<&str>, name: &str| match options.zero_dates {
        ZeroDates::Text => {
            let name = if decimals == 0 { name.to_owned() } else { format!("{name}({decimals})") };
            Ok((Type::Utf8, Decode::DateTimeText(decimals), named(name)))
        }
        _ => {
            let data_type =
                Type::Timestamp { unit: Unit::Microsecond, zone: zone.map(str::to_owned) };
            Ok((data_type, Decode::DateTime, None))
        }
    };
    match definition.type_code {
        0 | 246 => decimal(definition, is_unsigned),
        1 => integer((Type::Int8, Decode::Int8), (Type::UInt8, Decode::UInt8)),
        2 => integer((Type::Int16, Decode::Int16), (Type::UInt16, Decode::UInt16)),
        3 | 9 => integer((Type::Int32, Decode::Int32), (Type::UInt32, Decode::UInt32)),
        8 => integer((Type::Int64, Decode::Int64), (Type::UInt64, Decode::UInt64)),
        4 => Ok((Type::Float32, Decode::Float32, None)),
        5 => Ok((Type::Float64, Decode::Float64, None)),
        6 => Ok((Type::Null, Decode::Null, None)),
        7 => datetime(Some("UTC"), "timestamp"),
        12 => datetime(None, "datetime"),
        10 | 14 => match options.zero_dates {
            ZeroDates::Text => Ok((Type::Utf8, Decode::DateText, named("date"))),
            _ => Ok((Type::Date32, Decode::Date, None)),
        },
        11 => Ok((Type::Duration(Unit::Microsecond), Decode::Time, None)),
        13 => Ok((Type::Int16, Decode::Year, named("year"))),
        16 => Ok((Type::UInt64, Decode::Bits, named(format!("bit({})", definition.length)))),
        242 => {
            let item = Field {
                name: "item".to_owned(),
                data_type: Type::Float32,
                nullable: false,
                metadata: vec![],
            };
            Ok((Type::List(Box::new(item)), Decode::Vector, named("vector")))
        }
        245 => Ok((Type::Utf8, Decode::Bytes, extension("arrow.json"))),
        255 => {
            let name = definition.extended_type.as_deref().unwrap_or("geometry");
            Ok((Type::Binary, Decode::Bytes, named(name)))
        }
        15 | 247..=254 => string(definition),
        code => {
            let what = format!("the type with code {code} is not known here; cast it to CHAR");
            Err(Error::new(ErrorKind::Unsupported, what))
        }
    }
}

fn decimal(definition: &ColumnDefinition, is_unsigned: bool) -> Result<(Type, Decode, Named)> {
    let scale = definition.decimals;
    if scale > SCALE_MAX {
        let what = format!("a decimal has {scale} digits after the point, over {SCALE_MAX}");
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    // The length counts a point and a sign too (`my_decimal_precision_to_length_no_truncation`).
    let digits = definition.length.saturating_sub(u32::from(scale > 0) + u32::from(!is_unsigned));
    // At most 76.
    let precision = (digits.clamp(1, DIGITS_MAX) as u8).max(scale);
    let signed_scale = scale.cast_signed();
    Ok(match precision {
        ..=DECIMAL128_DIGITS_MAX => (
            Type::Decimal128 { precision, scale: signed_scale },
            Decode::Decimal128 { precision, scale },
            None,
        ),
        _ => (
            Type::Decimal256 { precision, scale: signed_scale },
            Decode::Decimal256 { precision, scale },
            None,
        ),
    })
}

fn string(definition: &ColumnDefinition) -> Result<(Type, Decode, Named)> {
    let is_binary = definition.character_set == BINARY;
    if definition.extended_type.as_deref() == Some("uuid") {
        return Ok((Type::FixedBinary(16), Decode::Uuid, extension("arrow.uuid")));
    }
    if !is_binary && !is_utf8(definition.character_set) {
        let what = format!(
            "the text is in collation {}, expected one of utf8mb4, utf8mb3 or ascii; \
             set character_set_results to utf8mb4",
            definition.character_set
        );
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    let dictionary = || Type::Dictionary {
        index: Box::new(Type::Int32),
        ordered: false,
        value: Box::new(Type::Utf8),
    };
    let flags = definition.flags;
    let (data_type, metadata) = match definition.extended_type.as_deref() {
        Some("json") if !is_binary => (Type::Utf8, extension("arrow.json")),
        Some(name) if !is_binary => (Type::Utf8, named(name)),
        Some(name) => (Type::Binary, named(name)),
        None if is_binary => (Type::Binary, None),
        None if flags & ENUM_FLAG != 0 => (dictionary(), named("enum")),
        None if flags & SET_FLAG != 0 => (dictionary(), named("set")),
        None => (Type::Utf8, None),
    };
    Ok((data_type, Decode::Bytes, metadata))
}

/// Whether text of this collation is UTF-8: the collations of utf8mb4, utf8mb3 and ascii.
fn is_utf8(collation: u16) -> bool {
    // MariaDB numbers the collations without padding 1024 above the padded ones.
    let padded = if (1024..2048).contains(&collation) { collation - 1024 } else { collation };
    matches!(padded,
        // ascii
        11 | 65
        // utf8mb3
        | 33 | 76 | 83 | 192..=215 | 223 | 576..=578
        // utf8mb4
        | 45 | 46 | 224..=247 | 255..=323 | 608..=610
        // MariaDB's uca1400 of utf8mb3 and utf8mb4
        | 2048..=2559)
}
