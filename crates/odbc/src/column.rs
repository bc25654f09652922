//! How a column's values are fetched, and what they become.

use arrow_schema::{DataType, Field, TimeUnit};
use odbc_sys::{CDataType, SqlDataType};

use crate::odbc::Described;

/// The longest texts, in characters, and byte strings whose values are fetched in blocks of rows.
/// Longer ones would make the room for a block larger than its values.
const BLOCK_LENGTH_MAX: usize = 8192;
/// The bytes that a value without a known limit has at most, before it is fetched piece by piece.
const LONG_BYTES: usize = 8192;
/// The room for a date and a time as text: `2024-02-29 23:59:59.999999999`, and more.
const TIME_BYTES: usize = 32;
/// The room for a type that is fetched as a short text.
const SHORT_TEXT_LENGTH: usize = 64;
/// The digits of Arrow's largest decimals.
const DIGITS_MAX: usize = 76;
/// The digits of decimals of 16 bytes.
const DIGITS_128: u8 = 38;
/// Fractional digits of microseconds.
const MICROSECOND_DIGITS: i16 = 6;

/// SQL Server's types.
const SS_TIME2: SqlDataType = SqlDataType(-154);
const SS_TIMESTAMP_OFFSET: SqlDataType = SqlDataType(-155);
const SS_UDT: SqlDataType = SqlDataType(-151);
/// The types of intervals.
const INTERVALS: std::ops::RangeInclusive<i16> = 101..=113;

/// What is asked of a driver, beside what it says of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As which type of C texts come: `Char` for UTF-8, or `WChar` for UTF-16.
    pub(crate) texts: CDataType,
    /// Whether dates and timestamps come as text: in their structures, MariaDB's and MySQL's
    /// drivers make NULL of dates that the calendar lacks.
    pub(crate) dates_as_text: bool,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) is_uuid: bool,
    /// As which type of C the driver gives values.
    pub(crate) c_type: CDataType,
    /// The room for a value in bytes.
    pub(crate) width: usize,
    /// Whether values may need more room.
    pub(crate) is_long: bool,
}

impl Column {
    /// Of a column as its driver describes it.
    pub(crate) fn of(described: &Described, asked: Asked) -> Self {
        let Described { name, sql_type, size, digits, is_unsigned } = described;
        let (c_type, data_type, width) = match *sql_type {
            SqlDataType::EXT_BIT => (CDataType::Bit, DataType::Boolean, 1),
            SqlDataType::EXT_TINY_INT if *is_unsigned => (CDataType::UTinyInt, DataType::UInt8, 1),
            SqlDataType::EXT_TINY_INT => (CDataType::STinyInt, DataType::Int8, 1),
            SqlDataType::SMALLINT if *is_unsigned => (CDataType::UShort, DataType::UInt16, 2),
            SqlDataType::SMALLINT => (CDataType::SShort, DataType::Int16, 2),
            SqlDataType::INTEGER if *is_unsigned => (CDataType::ULong, DataType::UInt32, 4),
            SqlDataType::INTEGER => (CDataType::SLong, DataType::Int32, 4),
            SqlDataType::EXT_BIG_INT if *is_unsigned => (CDataType::UBigInt, DataType::UInt64, 8),
            SqlDataType::EXT_BIG_INT => (CDataType::SBigInt, DataType::Int64, 8),
            SqlDataType::REAL => (CDataType::Float, DataType::Float32, 4),
            SqlDataType::FLOAT | SqlDataType::DOUBLE => (CDataType::Double, DataType::Float64, 8),
            SqlDataType::NUMERIC | SqlDataType::DECIMAL => match decimal(*size, *digits) {
                Some((data_type, width)) => (CDataType::Char, data_type, width),
                None => return Self::text(name, asked, SHORT_TEXT_LENGTH * 4),
            },
            SqlDataType::DATE if asked.dates_as_text => {
                (CDataType::Char, DataType::Date32, TIME_BYTES)
            }
            SqlDataType::DATE => (CDataType::TypeDate, DataType::Date32, 6),
            SqlDataType::TIMESTAMP if asked.dates_as_text => {
                (CDataType::Char, DataType::Timestamp(unit(*digits), None), TIME_BYTES)
            }
            SqlDataType::TIMESTAMP => {
                (CDataType::TypeTimestamp, DataType::Timestamp(unit(*digits), None), 16)
            }
            // The type of C has no fractions.
            SqlDataType::TIME | SS_TIME2 => {
                (CDataType::Char, DataType::Time64(unit(*digits)), TIME_BYTES)
            }
            SqlDataType::EXT_GUID => (CDataType::Guid, DataType::FixedSizeBinary(16), 16),
            SqlDataType::EXT_BINARY | SqlDataType::EXT_VAR_BINARY => {
                return Self::binary(name, *size);
            }
            SqlDataType::EXT_LONG_VAR_BINARY | SS_UDT => return Self::binary(name, 0),
            SqlDataType::CHAR
            | SqlDataType::VARCHAR
            | SqlDataType::EXT_W_CHAR
            | SqlDataType::EXT_W_VARCHAR => return Self::text(name, asked, *size),
            SS_TIMESTAMP_OFFSET => return Self::text(name, asked, SHORT_TEXT_LENGTH),
            SqlDataType(interval) if INTERVALS.contains(&interval) => {
                return Self::text(name, asked, SHORT_TEXT_LENGTH);
            }
            // Long texts, and types that are not known.
            _ => return Self::text(name, asked, 0),
        };
        let is_uuid = *sql_type == SqlDataType::EXT_GUID;
        Self { name: name.clone(), data_type, is_uuid, c_type, width, is_long: false }
    }

    /// A text of at most `length` characters; of any length if that is 0 or large.
    fn text(name: &str, asked: Asked, length: usize) -> Self {
        let is_long = !(1..=BLOCK_LENGTH_MAX).contains(&length);
        // A character has at most four bytes in either encoding, and a zero follows.
        let width = if is_long { LONG_BYTES } else { length * 4 + 2 };
        let (c_type, data_type) = (asked.texts, DataType::Utf8);
        Self { name: name.to_owned(), data_type, is_uuid: false, c_type, width, is_long }
    }

    /// A byte string of at most `length` bytes; of any length if that is 0 or large.
    fn binary(name: &str, length: usize) -> Self {
        let is_long = !(1..=BLOCK_LENGTH_MAX).contains(&length);
        let width = if is_long { LONG_BYTES } else { length };
        let (c_type, data_type) = (CDataType::Binary, DataType::Binary);
        Self { name: name.to_owned(), data_type, is_uuid: false, c_type, width, is_long }
    }

    pub(crate) fn field(&self) -> Field {
        let field = Field::new(&self.name, self.data_type.clone(), true);
        match self.is_uuid {
            true => field.with_metadata(
                [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into(),
            ),
            false => field,
        }
    }
}

/// The decimal of a column, and the room for its values as text; None if no decimal has so many
/// digits.
fn decimal(size: usize, digits: i16) -> Option<(DataType, usize)> {
    let scale = usize::from(digits.max(0).unsigned_abs());
    // Zeros before the point or behind the fraction count as digits.
    let precision = match digits {
        ..0 => size.checked_add(usize::from(digits.unsigned_abs()))?,
        _ => size.max(scale),
    };
    if !(1..=DIGITS_MAX).contains(&precision) || size == 0 {
        return None;
    }
    let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    // A driver may give more digits than it announced, which is an error only then.
    let width = 2 * DIGITS_MAX;
    Some(match precision {
        ..=DIGITS_128 => (DataType::Decimal128(precision, scale), width),
        _ => (DataType::Decimal256(precision, scale), width),
    })
}

fn unit(digits: i16) -> TimeUnit {
    match digits {
        ..=MICROSECOND_DIGITS => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked = Asked { texts: CDataType::WChar, dates_as_text: false };

    fn column(sql_type: i16, size: usize, digits: i16) -> Column {
        let (name, sql_type) = ("c".to_owned(), SqlDataType(sql_type));
        Column::of(&Described { name, sql_type, size, digits, is_unsigned: false }, ASKED)
    }

    #[test]
    fn decimals_keep_precision_and_scale() {
        for (size, digits, data_type) in [
            (10, 2, DataType::Decimal128(10, 2)),
            (38, 38, DataType::Decimal128(38, 38)),
            (39, 0, DataType::Decimal256(39, 0)),
            (65, 30, DataType::Decimal256(65, 30)),
            (3, 5, DataType::Decimal128(5, 5)),
            (5, -2, DataType::Decimal128(7, 0)),
            (77, 0, DataType::Utf8),
            (0, 0, DataType::Utf8),
            (usize::MAX, -1, DataType::Utf8),
            (5, i16::MAX, DataType::Utf8),
            (5, i16::MIN, DataType::Utf8),
        ] {
            assert_eq!(column(3, size, digits).data_type, data_type, "{size} {digits}");
        }
    }

    #[test]
    fn sizes_that_are_none_make_long_columns() {
        for size in [0, 8193, 65_535, 1 << 31, (1 << 32) - 4, usize::MAX] {
            for sql_type in [12, -9, -3] {
                let long = column(sql_type, size, 0);
                assert!(long.is_long && long.width == LONG_BYTES, "{sql_type} {size}");
            }
        }
        for sql_type in [-1, -10, -4, 0, -152, 9999] {
            assert!(column(sql_type, 100, 0).is_long, "{sql_type}");
        }
        assert_eq!(column(12, 100, 0).width, 402);
        assert!(!column(12, 8192, 0).is_long);
    }
}
