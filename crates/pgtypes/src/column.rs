//! The column of each type (`spec/types.md` section 3).

use dray_format::{ColumnBuilder, Field, Type, Unit};

use crate::array_text::{self, Item, unescaped};
use crate::binary::{self, Decode};
use crate::error::Result;
use crate::{Kind, PgType};

/// The metadata key for the PostgreSQL type's name, if the column's own type does not tell it.
pub const TYPE_KEY: &str = "dray:postgresql:type";
const EXTENSION_KEY: &str = "ARROW:extension:name";

/// The most digits of a column of decimals.
const DECIMAL_DIGITS_MAX: u32 = 76;
/// `VARHDRSZ`, which is added to a declared length or precision.
const TYPMOD_OFFSET: i32 = 4;
/// Types that are nested deeper become text.
const DEPTH_MAX: usize = 16;

/// What `numeric` without a declared precision becomes. Sums and averages of `numeric` have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumericAs {
    /// Text with all digits.
    #[default]
    Text,
    /// The nearest float.
    Float64,
    /// A decimal; a value that does not fit exactly is an error.
    Decimal {
        /// All digits, from 1 to 76.
        precision: u8,
        /// Digits after the point, at most the precision.
        scale: u8,
    },
}

impl std::str::FromStr for NumericAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "numeric {text:?}, expected text, float64 or decimal(PRECISION,SCALE) \
                 up to 76 digits"
            )
        };
        match text {
            "text" => return Ok(Self::Text),
            "float64" => return Ok(Self::Float64),
            _ => {}
        }
        let digits = text
            .strip_prefix("decimal(")
            .and_then(|text| text.strip_suffix(')'))
            .ok_or_else(expected)?;
        let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
        match (precision.trim().parse(), scale.trim().parse()) {
            (Ok(precision @ 1..=76), Ok(scale)) if scale <= precision => {
                Ok(Self::Decimal { precision, scale })
            }
            _ => Err(expected()),
        }
    }
}

impl std::fmt::Display for NumericAs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Float64 => f.write_str("float64"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
        }
    }
}

/// What to do about values that the column's type can't represent: infinite dates, NaN among
/// decimals, 24:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NonFinite {
    /// Fail, naming the value.
    #[default]
    Error,
    /// Make them NULL.
    Null,
    /// Make columns of such types text.
    Text,
}

impl std::str::FromStr for NonFinite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "null" => Ok(Self::Null),
            "text" => Ok(Self::Text),
            _ => Err(format!("nonfinite {text:?}, expected error, null or text")),
        }
    }
}

impl std::fmt::Display for NonFinite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Null => "null",
            Self::Text => "text",
        })
    }
}

/// The user's choices, and what depends on the server's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Columns of `numeric` without a declared precision.
    pub numeric: NumericAs,
    /// Values that a column's type can't represent.
    pub nonfinite: NonFinite,
    /// Digits of `money` after the point by `lc_monetary`; None makes it text.
    pub money_scale: Option<u8>,
}

/// The format of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The type's output function.
    Text,
    /// The type's send function.
    Binary,
}

/// A column of a result.
#[derive(Debug, Clone)]
pub struct Column {
    field: Field,
    decode: Decode,
    format: Format,
    null_nonfinite: bool,
}

impl Column {
    /// The column of values of this type.
    pub fn new(name: &str, pg_type: &PgType, options: &Options) -> Self {
        let (data_type, decode) = map(pg_type, options, 0);
        let field = child(name, pg_type, data_type, &decode);
        let format = decode.format();
        Self { field, decode, format, null_nonfinite: options.nonfinite == NonFinite::Null }
    }

    /// The same column with its values in the format that costs a stock server less: text for
    /// strings and integers. A send function allocates 1 KiB for its message, an output function
    /// only what it needs.
    pub fn in_quicker_format(mut self) -> Self {
        self.decode = match (self.decode, &self.field.data_type) {
            (Decode::Fixed2, Type::Int16) => Decode::Digits(2),
            (Decode::Fixed4, Type::Int32) => Decode::Digits(4),
            (Decode::Fixed8, Type::Int64) => Decode::Digits(8),
            (other, _) => other,
        };
        if matches!(
            (&self.decode, &self.field.data_type),
            (Decode::Bytes, Type::Utf8) | (Decode::Digits(_), _)
        ) {
            self.format = Format::Text;
        }
        self
    }

    /// The column's field in a schema.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The format of the values for [`Self::push`].
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the column has the text of the type's output function. Floats in it have as many
    /// digits as the server's settings say.
    pub fn is_output(&self) -> bool {
        matches!(self.decode, Decode::TextOutput | Decode::TextArray { .. })
    }

    /// Whether the column costs a stock server more than its extension, since text or decimals must
    /// be formatted.
    pub fn is_costly(&self) -> bool {
        self.decode.is_costly()
    }

    /// Appends a value; None is NULL.
    ///
    /// # Errors
    /// When the column's type can't represent the value, or the bytes are no value of the type.
    #[inline]
    pub fn push(&self, builder: &mut ColumnBuilder, value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => binary::push(&self.decode, builder, value, self.null_nonfinite),
            None => Ok(builder.push_null()?),
        }
    }
}

fn field(name: &str, pg_type: &PgType, data_type: Type, decode: &Decode) -> Field {
    let metadata = match (decode, pg_type.oid) {
        (Decode::Fixed16, _) => vec![(EXTENSION_KEY.to_owned(), "arrow.uuid".to_owned())],
        (Decode::Bytes, 114) | (Decode::JsonB, _) => {
            vec![(EXTENSION_KEY.to_owned(), "arrow.json".to_owned())]
        }
        _ if decode.is_plain() && !matches!(pg_type.kind, Kind::Enum) => vec![],
        _ => vec![(TYPE_KEY.to_owned(), pg_type.name.clone())],
    };
    Field { name: name.to_owned(), data_type, nullable: true, metadata }
}

fn child(name: &str, pg_type: &PgType, data_type: Type, decode: &Decode) -> Field {
    // The name of a domain's base type tells more than the domain's own.
    field(name, base(pg_type), data_type, decode)
}

fn base(pg_type: &PgType) -> &PgType {
    match &pg_type.kind {
        Kind::Domain(inner) => base(inner),
        _ => pg_type,
    }
}

fn map(pg_type: &PgType, options: &Options, depth: usize) -> (Type, Decode) {
    let text = (Type::Utf8, Decode::TextOutput);
    if depth > DEPTH_MAX {
        return text;
    }
    let inner = |pg_type: &PgType| map(pg_type, options, depth + 1);
    match &pg_type.kind {
        Kind::Base => scalar(pg_type, options).unwrap_or(text),
        Kind::Enum => (Type::Utf8, Decode::Bytes),
        Kind::Domain(of) => {
            // A domain's type modifier belongs to its base type.
            inner(of)
        }
        Kind::Array { item, delimiter } => {
            let (data_type, decode) = inner(item);
            let list = |data_type, decode: &Decode| {
                Type::List(Box::new(child("item", item, data_type, decode)))
            };
            match decode.format() {
                Format::Binary => (
                    list(data_type, &decode),
                    Decode::Array { oid: item.oid, item: Box::new(decode) },
                ),
                Format::Text if matches!(base(item).kind, Kind::Base) && *delimiter != b' ' => {
                    (list(Type::Utf8, &decode), Decode::TextArray { delimiter: *delimiter })
                }
                Format::Text => text,
            }
        }
        Kind::Composite(attributes) => {
            let mapped: Vec<_> = attributes.iter().map(|(_, attribute)| inner(attribute)).collect();
            if attributes.is_empty()
                || mapped.iter().any(|(_, decode)| decode.format() == Format::Text)
            {
                return text;
            }
            let fields = attributes.iter().zip(&mapped);
            let fields = fields.map(|((name, of), (data_type, decode))| {
                child(name, of, data_type.clone(), decode)
            });
            let decodes = attributes
                .iter()
                .zip(&mapped)
                .map(|((_, of), (_, decode))| (of.oid, decode.clone()));
            (Type::Struct(fields.collect()), Decode::Composite(decodes.collect()))
        }
        Kind::Range(of) => match inner(of) {
            (_, decode) if decode.format() == Format::Text => text,
            (data_type, decode) => (range(of, data_type, &decode), Decode::Range(Box::new(decode))),
        },
        Kind::Multirange(of) => match inner(of) {
            (_, decode) if decode.format() == Format::Text => text,
            (data_type, decode) => {
                let item = Field {
                    name: "item".to_owned(),
                    data_type: range(of, data_type, &decode),
                    nullable: false,
                    metadata: vec![],
                };
                (Type::List(Box::new(item)), Decode::Multirange(Box::new(decode)))
            }
        },
    }
}

/// A range. Missing bounds are infinite; an empty range has none.
fn range(of: &PgType, data_type: Type, decode: &Decode) -> Type {
    let flag = |name: &str| Field {
        name: name.to_owned(),
        data_type: Type::Boolean,
        nullable: false,
        metadata: vec![],
    };
    Type::Struct(vec![
        child("lower", of, data_type.clone(), decode),
        child("upper", of, data_type, decode),
        flag("lower_inclusive"),
        flag("upper_inclusive"),
        flag("empty"),
    ])
}

fn scalar(pg_type: &PgType, options: &Options) -> Option<(Type, Decode)> {
    let timestamp = |zone: Option<&str>| Type::Timestamp {
        unit: Unit::Microsecond,
        zone: zone.map(str::to_owned),
    };
    let finite =
        |data_type, decode| (options.nonfinite != NonFinite::Text).then_some((data_type, decode));
    match pg_type.extension.as_str() {
        "citext" => return Some((Type::Utf8, Decode::Bytes)),
        "hstore" => {
            let field = |name: &str, nullable| {
                Box::new(Field {
                    name: name.to_owned(),
                    data_type: Type::Utf8,
                    nullable,
                    metadata: vec![],
                })
            };
            let map =
                Type::Map { sorted: false, key: field("key", false), value: field("value", true) };
            return Some((map, Decode::Hstore));
        }
        _ => {}
    }
    match pg_type.oid {
        16 => Some((Type::Boolean, Decode::Boolean)),
        17 => Some((Type::Binary, Decode::Bytes)),
        18 => Some((Type::Utf8, Decode::Char)),
        19 | 25 | 114 | 705 | 1042 | 1043 | 1790 | 2275 => Some((Type::Utf8, Decode::Bytes)),
        142 => Some((Type::Utf8, Decode::Xml)),
        20 => Some((Type::Int64, Decode::Fixed8)),
        21 => Some((Type::Int16, Decode::Fixed2)),
        23 => Some((Type::Int32, Decode::Fixed4)),
        26 | 28 | 29 => Some((Type::UInt32, Decode::Oid)),
        700 => Some((Type::Float32, Decode::Fixed4)),
        701 => Some((Type::Float64, Decode::Fixed8)),
        790 => {
            let scale = options.money_scale.filter(|scale| *scale <= 18)?;
            Some((Type::Decimal128 { precision: 19, scale: scale.cast_signed() }, Decode::Money))
        }
        1082 => finite(Type::Date32, Decode::Date),
        1083 => finite(Type::Time64(Unit::Microsecond), Decode::Time),
        1114 => finite(timestamp(None), Decode::Timestamp),
        1184 => finite(timestamp(Some("UTC")), Decode::Timestamp),
        1186 => finite(Type::IntervalMonthDayNano, Decode::Interval),
        1266 => Some((Type::Utf8, Decode::TimeTz)),
        1560 | 1562 => Some((Type::Utf8, Decode::Bits)),
        1700 => numeric(pg_type.typmod, options),
        2950 => Some((Type::FixedBinary(16), Decode::Fixed16)),
        3802 => Some((Type::Utf8, Decode::JsonB)),
        5069 => Some((Type::UInt64, Decode::Xid8)),
        _ => None,
    }
}

fn numeric(typmod: i32, options: &Options) -> Option<(Type, Decode)> {
    if typmod < TYPMOD_OFFSET {
        return Some(match options.numeric {
            NumericAs::Text => (Type::Utf8, Decode::NumericText),
            NumericAs::Float64 => (Type::Float64, Decode::NumericFloat),
            // NaN must be text.
            NumericAs::Decimal { .. } if options.nonfinite == NonFinite::Text => {
                (Type::Utf8, Decode::NumericText)
            }
            NumericAs::Decimal { precision, scale } => decimal(precision, scale.cast_signed()),
        });
    }
    if options.nonfinite == NonFinite::Text {
        return None;
    }
    // `numeric_typmod_precision` and `numeric_typmod_scale` of numeric.c: 16 bits, and 11 with a
    // sign.
    let declared = (typmod - TYPMOD_OFFSET).cast_unsigned();
    let precision = (declared >> 16) & 0xFFFF;
    let scale = ((declared & 0x7FF) ^ 1024).cast_signed() - 1024;
    // Arrow's scale lies between 0 and the precision, so zeros before and after the point count as
    // digits.
    let (digits, scale) = match scale {
        ..0 => (precision + scale.unsigned_abs(), 0),
        _ => (precision.max(scale.cast_unsigned()), scale),
    };
    let (Ok(digits), Ok(scale)) = (u8::try_from(digits.max(1)), i8::try_from(scale)) else {
        return Some((Type::Utf8, Decode::NumericText));
    };
    match u32::from(digits) <= DECIMAL_DIGITS_MAX {
        true => Some(decimal(digits, scale)),
        false => Some((Type::Utf8, Decode::NumericText)),
    }
}

fn decimal(precision: u8, scale: i8) -> (Type, Decode) {
    match precision {
        ..=38 => (Type::Decimal128 { precision, scale }, Decode::Decimal128 { precision, scale }),
        _ => (Type::Decimal256 { precision, scale }, Decode::Decimal256 { precision, scale }),
    }
}

/// Appends the items of an array in text.
pub(crate) fn push_text_array(
    builder: &mut ColumnBuilder,
    text: &[u8],
    delimiter: u8,
) -> Result<()> {
    let mut part = 0;
    array_text::items(text, delimiter, |item| {
        binary::check_interrupts(builder, part)?;
        part += 1;
        let items = builder.item()?;
        match item {
            None => items.push_null()?,
            Some(Item::Plain(bytes)) => items.push_bytes(bytes)?,
            Some(Item::Escaped(bytes)) => {
                items.push_written(bytes.len(), |out| out.extend(unescaped(bytes)))?
            }
        }
        Ok(())
    })?;
    Ok(builder.close_list()?)
}
