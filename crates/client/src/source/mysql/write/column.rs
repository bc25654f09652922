//! The columns of a table, as `SHOW FULL COLUMNS` describes them.

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type as the server writes it: `decimal(10,2) unsigned`.
    pub(super) declared: String,
    pub(super) kind: Kind,
    /// The character set of its text, if it has text.
    character_set: Option<String>,
    pub(super) nullable: bool,
    /// It has a value of its own if it gets none.
    pub(super) has_default: bool,
    /// Its value is computed.
    pub(super) generated: bool,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Integer {
        min: i128,
        max: i128,
    },
    Year,
    /// This many.
    Bit(u32),
    /// Of 4 or 8 bytes. `rounds` says whether it has a declared number of digits.
    Float {
        bytes: u8,
        rounds: bool,
    },
    Decimal {
        precision: u32,
        scale: u32,
        unsigned: bool,
    },
    Date,
    /// With this many digits of a second, like the next two.
    DateTime(u32),
    Timestamp(u32),
    Time(u32),
    /// `char(n)`, whose blanks at the end are dropped.
    Char(usize),
    Varchar(usize),
    /// `tinytext` and so on, with this many bytes.
    Text(u64),
    /// `binary(n)`, which is filled up with zeros.
    Binary(usize),
    /// With this many bytes.
    Bytes(u64),
    Enum(Vec<String>),
    Set(Vec<String>),
    Json,
    Uuid,
    Geometry,
    /// A type that is not known here. It reads text, or its own bytes.
    Other,
}

impl Column {
    /// Reads a row of `SHOW FULL COLUMNS`; None if it can't be understood.
    pub(super) fn parse(row: Vec<Option<String>>) -> Option<Self> {
        let mut row = row.into_iter();
        let (name, declared) = (row.next()??, row.next()??);
        let (collation, nullable) = (row.next()?, row.next()?? == "YES");
        let (_key, default, extra) = (row.next()?, row.next()?, row.next()??.to_lowercase());
        let kind = Kind::parse(&declared)?;
        let character_set = collation
            .map(|name| name.split('_').next().unwrap_or_default().to_owned())
            .filter(|name| name != "binary");
        let has_default = nullable || default.is_some() || extra.contains("auto_increment");
        // MySQL says `DEFAULT_GENERATED` of a default that is an expression.
        let generated =
            ["virtual", "stored", "persistent"].iter().any(|how| extra.starts_with(how));
        let has_default = has_default || generated || extra.contains("default_generated");
        Some(Self { name, declared, kind, character_set, nullable, has_default, generated })
    }

    /// Whether the bytes of UTF-8 are the column's own text.
    pub(super) fn is_utf8(&self) -> bool {
        matches!(self.character_set.as_deref(), Some("utf8mb4" | "utf8mb3" | "utf8"))
    }
}

impl Kind {
    /// Reads `decimal(10,2) unsigned`; None for a malformed type.
    fn parse(declared: &str) -> Option<Self> {
        let end = declared.find(['(', ' ']).unwrap_or(declared.len());
        let (name, rest) = declared.split_at(end);
        let arguments = rest.strip_prefix('(').map(|rest| arguments(rest.trim_end()));
        let arguments = match arguments {
            Some(arguments) => Some(arguments?),
            None => None,
        };
        let number = |i: usize| {
            let argument = arguments.as_ref().and_then(|arguments| arguments.get(i));
            argument.map(|argument| argument.parse::<u32>().ok())
        };
        let or = |i, default| number(i).unwrap_or(Some(default));
        let unsigned = declared.contains(" unsigned");
        let integer = |bits: u32| {
            let (half, whole) = (1i128 << (bits - 1), 1i128 << bits);
            Some(match unsigned {
                true => Self::Integer { min: 0, max: whole - 1 },
                false => Self::Integer { min: -half, max: half - 1 },
            })
        };
        let float = |bytes| Some(Self::Float { bytes, rounds: arguments.is_some() });
        match name {
            "tinyint" => integer(8),
            "smallint" => integer(16),
            "mediumint" => integer(24),
            "int" => integer(32),
            "bigint" => integer(64),
            "year" => Some(Self::Year),
            "bit" => Some(Self::Bit(or(0, 1)?)),
            "float" => float(4),
            "double" => float(8),
            "decimal" => Some(Self::Decimal { precision: or(0, 10)?, scale: or(1, 0)?, unsigned }),
            "date" => Some(Self::Date),
            "datetime" => Some(Self::DateTime(or(0, 0)?)),
            "timestamp" => Some(Self::Timestamp(or(0, 0)?)),
            "time" => Some(Self::Time(or(0, 0)?)),
            "char" => Some(Self::Char(or(0, 1)? as usize)),
            "varchar" => Some(Self::Varchar(or(0, 1)? as usize)),
            "tinytext" => Some(Self::Text(0xff)),
            "text" => Some(Self::Text(0xffff)),
            "mediumtext" => Some(Self::Text(0xff_ffff)),
            "longtext" => Some(Self::Text(0xffff_ffff)),
            "binary" => Some(Self::Binary(or(0, 1)? as usize)),
            "varbinary" => Some(Self::Bytes(or(0, 1)?.into())),
            "tinyblob" => Some(Self::Bytes(0xff)),
            "blob" => Some(Self::Bytes(0xffff)),
            "mediumblob" => Some(Self::Bytes(0xff_ffff)),
            "longblob" => Some(Self::Bytes(0xffff_ffff)),
            "enum" => arguments.map(Self::Enum),
            "set" => arguments.map(Self::Set),
            "json" => Some(Self::Json),
            "uuid" => Some(Self::Uuid),
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Some(Self::Geometry),
            _ => Some(Self::Other),
        }
    }
}

/// The arguments up to the closing parenthesis: numbers, or strings as the server quotes them.
fn arguments(text: &str) -> Option<Vec<String>> {
    let mut arguments = vec![String::new()];
    let mut characters = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = characters.next() {
        match (c, quoted) {
            (')', false) => return Some(arguments),
            (',', false) => arguments.push(String::new()),
            ('\'', true) if characters.next_if_eq(&'\'').is_some() => {
                arguments.last_mut()?.push('\'');
            }
            ('\'', _) => quoted = !quoted,
            ('\\', true) => arguments.last_mut()?.push(match characters.next()? {
                '0' => '\0',
                'n' => '\n',
                'r' => '\r',
                'Z' => '\x1a',
                other => other,
            }),
            (c, _) => arguments.last_mut()?.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
        for (declared, kind) in [
            ("tinyint(1)", Kind::Integer { min: -128, max: 127 }),
            ("int(10) unsigned zerofill", Kind::Integer { min: 0, max: 0xffff_ffff }),
            ("mediumint", Kind::Integer { min: -(1 << 23), max: (1 << 23) - 1 }),
            ("bigint unsigned", Kind::Integer { min: 0, max: u64::MAX.into() }),
            ("decimal(10,2) unsigned", Kind::Decimal { precision: 10, scale: 2, unsigned: true }),
            ("float(7,2) unsigned", Kind::Float { bytes: 4, rounds: true }),
            ("double", Kind::Float { bytes: 8, rounds: false }),
            ("datetime(3)", Kind::DateTime(3)),
            ("timestamp", Kind::Timestamp(0)),
            ("varchar(20)", Kind::Varchar(20)),
            ("bit(12)", Kind::Bit(12)),
            ("inet6", Kind::Other),
            ("vector(3)", Kind::Other),
            // As MariaDB 10.11 writes labels.
            (
                r"enum('a''b','c\\d','e\nf','g,h','i\0j','(k)')",
                Kind::Enum(labels(&["a'b", "c\\d", "e\nf", "g,h", "i\0j", "(k)"])),
            ),
            ("set('1','ü')", Kind::Set(labels(&["1", "ü"]))),
        ] {
            assert_eq!(Kind::parse(declared), Some(kind), "{declared}");
        }
        for malformed in ["decimal(10", "varchar(x)", "enum('a", "enum", "bit(99999999999)"] {
            assert_eq!(Kind::parse(malformed), None, "{malformed}");
        }
    }
}
