//! Values of a key's column as positions, so that a range of them has a middle.
//!
//! Literals divide a table if the server orders them as they are given. It does so for numbers,
//! dates and bytes. Strings have the order of their collation, which only the server knows: it
//! sorts their literals. Where they lie matters only to how even the parts are.

use dray_format::calendar::{date, days};

/// A day in seconds.
const DAY_SECONDS: i128 = 86_400;
/// The characters of a string after the common prefix that make its position, each of
/// [`CHARACTERS`].
const STRING_CHARACTERS: u32 = 15;
/// From space to tilde.
const CHARACTERS: i128 = 95;
/// The same for bytes.
const BINARY_BYTES: u32 = 15;

/// Values of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeySpace {
    Integer,
    Date,
    /// In seconds.
    DateTime,
    /// What all strings begin with, and how a literal is compared like the column.
    String {
        prefix: Vec<u8>,
        charset: String,
        collation: String,
    },
    /// What all values begin with.
    Binary(Vec<u8>),
}

/// The type of a column, as information_schema names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ColumnType {
    pub(super) name: String,
    /// Of a column of strings.
    pub(super) charset: String,
    pub(super) collation: String,
}

impl KeySpace {
    /// How to ask for the least and the greatest value of a column of this type, as the text that
    /// [`Self::new`] reads; None if the type has no positions.
    pub(super) fn question(data_type: &str, column: &str) -> Option<String> {
        let ends = ["MIN", "MAX"].map(|end| format!("{end}({column})"));
        let ends = match data_type {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "date"
            | "datetime" | "timestamp" => ends,
            "char" | "varchar" => ends.map(|end| format!("HEX(CONVERT({end} USING utf8mb4))")),
            "binary" | "varbinary" => ends.map(|end| format!("HEX({end})")),
            _ => return None,
        };
        Some(ends.join(", "))
    }

    /// The space of a column's values between two, with their positions; None if they can't be
    /// read.
    pub(super) fn new(
        data_type: &ColumnType,
        least: &str,
        greatest: &str,
    ) -> Option<(Self, i128, i128)> {
        let space = match data_type.name.as_str() {
            "date" => Self::Date,
            "datetime" | "timestamp" => Self::DateTime,
            "binary" | "varbinary" => {
                let (least, greatest) = (from_hex(least)?, from_hex(greatest)?);
                let same = least.iter().zip(&greatest).take_while(|(a, b)| a == b).count();
                Self::Binary(least[..same].to_vec())
            }
            "char" | "varchar" => {
                let [least, greatest] = [least, greatest]
                    .map(|text| from_hex(text).and_then(|bytes| String::from_utf8(bytes).ok()));
                let (least, greatest) = (least?, greatest?);
                let both = least.chars().zip(greatest.chars());
                let prefix = both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect::<String>();
                let is_word = |text: &str| {
                    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                };
                let ColumnType { charset, collation, .. } = data_type.clone();
                if !is_word(&charset) || !is_word(&collation) {
                    return None;
                }
                let space = Self::String { prefix: prefix.into_bytes(), charset, collation };
                // Between two strings in the order of a collation others may lie anywhere.
                return Some((space, 0, CHARACTERS.pow(STRING_CHARACTERS) - 1));
            }
            _ => Self::Integer,
        };
        let (from, to) = (space.position(least)?, space.position(greatest)?);
        (from <= to).then_some((space, from, to))
    }

    /// Whether only the server can tell the order of literals.
    pub(super) fn is_collated(&self) -> bool {
        matches!(self, Self::String { .. })
    }

    fn position(&self, text: &str) -> Option<i128> {
        match self {
            Self::Integer => text.split('.').next()?.parse().ok(),
            Self::Date => day(text),
            Self::DateTime => {
                let (date, time) = text.split_once(' ')?;
                let mut parts = time.split(['.', ':']).map(|part| part.parse::<i128>().ok());
                let [hour, minute, second] = [parts.next()??, parts.next()??, parts.next()??];
                Some(day(date)? * DAY_SECONDS + (hour * 60 + minute) * 60 + second)
            }
            // The ends of strings are not looked for.
            Self::String { .. } => None,
            Self::Binary(prefix) => {
                let rest = from_hex(text)?;
                let rest = rest.get(prefix.len()..)?.iter().chain(std::iter::repeat(&0));
                let digits = rest.map(|byte| i128::from(*byte));
                Some(digits.take(BINARY_BYTES as usize).fold(0, |sum, digit| sum << 8 | digit))
            }
        }
    }

    /// The literal of a position.
    pub(super) fn literal(&self, position: i128) -> String {
        match self {
            Self::Integer => position.to_string(),
            Self::Date => format!("'{}'", date_text(position)),
            Self::DateTime => {
                let (day, second) =
                    (position.div_euclid(DAY_SECONDS), position.rem_euclid(DAY_SECONDS));
                let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
                format!("'{} {hour:02}:{minute:02}:{second:02}'", date_text(day))
            }
            Self::String { prefix, charset, collation } => {
                let digits = (0..STRING_CHARACTERS).rev().map(|i| {
                    let digit = position / CHARACTERS.pow(i) % CHARACTERS;
                    b' ' + digit as u8
                });
                let text = prefix.iter().copied().chain(digits).collect::<Vec<_>>();
                // Spaces at the end do not count.
                let text = hex(text.trim_ascii_end());
                format!("CONVERT(_utf8mb4 x'{text}' USING {charset}) COLLATE {collation}")
            }
            Self::Binary(prefix) => {
                let digits = (0..BINARY_BYTES).rev().map(|i| (position >> (8 * i)) as u8);
                let bytes = prefix.iter().copied().chain(digits).collect::<Vec<_>>();
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                format!("x'{}'", hex(&bytes[..end]))
            }
        }
    }
}

/// The day of a date; of `0000-00-00` and other dates that do not exist, the first of a month near
/// it.
fn day(text: &str) -> Option<i128> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i32>().ok());
    let [year, month, day] = [parts.next()??, parts.next()??, parts.next()??];
    let month = u8::try_from(month.clamp(1, 12)).ok()?;
    let found = u8::try_from(day).ok().and_then(|day| days(year, month, day));
    found.or_else(|| days(year, month, 1)).map(i128::from)
}

fn date_text(position: i128) -> String {
    let (year, month, day) = date(position as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> ColumnType {
        let [charset, collation] = ["latin1", "latin1_bin"].map(str::to_owned);
        ColumnType { name: name.to_owned(), charset, collation }
    }

    /// The literals of both ends and of the middle.
    fn literals(data_type: &str, least: &str, greatest: &str) -> Option<[String; 3]> {
        let (space, from, to) = KeySpace::new(&column(data_type), least, greatest)?;
        assert!(from <= to);
        Some([from, from + (to - from) / 2, to].map(|position| space.literal(position)))
    }

    #[test]
    fn the_middle_of_values() {
        let both = |data_type: &str, least: &str, greatest: &str| {
            literals(data_type, least, greatest).unwrap()
        };
        assert_eq!(both("int", "-5", "10"), ["-5", "2", "10"]);
        assert_eq!(both("bigint", "0", "18446744073709551615")[1], "9223372036854775807");
        assert_eq!(both("decimal", "-1.5", "9.99"), ["-1", "4", "9"]);
        assert_eq!(
            both("date", "2024-01-01", "2024-12-31"),
            ["'2024-01-01'", "'2024-07-01'", "'2024-12-31'"]
        );
        assert_eq!(both("date", "0000-00-00", "9999-12-31")[0], "'0000-01-01'");
        assert_eq!(
            both("datetime", "1969-12-31 23:59:58.5", "1970-01-01 00:00:02"),
            ["'1969-12-31 23:59:58'", "'1970-01-01 00:00:00'", "'1970-01-01 00:00:02'"]
        );
        assert_eq!(both("binary", "00FF", "00FF04"), ["x'00FF'", "x'00FF02'", "x'00FF04'"]);
        // ä and ö begin with the same byte, which is not a prefix: only x is.
        let [first, _, last] = both("char", &hex("xä".as_bytes()), &hex("xöz".as_bytes()));
        assert_eq!(first, "CONVERT(_utf8mb4 x'78' USING latin1) COLLATE latin1_bin");
        assert!(last.starts_with("CONVERT(_utf8mb4 x'787E7E7E"));
    }

    #[test]
    fn values_that_can_not_be_read() {
        for (data_type, text) in [
            ("int", "x"),
            ("date", "2024-01"),
            ("datetime", "2024-01-01"),
            ("char", "4"),
            ("char", "zz"),
            ("char", "FF"),
        ] {
            assert_eq!(literals(data_type, text, text), None, "{data_type} {text}");
        }
        assert_eq!(literals("int", "2", "1"), None);
        let hostile = ColumnType { collation: "x; DROP".to_owned(), ..column("char") };
        assert_eq!(KeySpace::new(&hostile, "61", "62"), None);
        assert_eq!(KeySpace::question("json", "k"), None);
    }
}
