//! The values of `$1, $2 …` on the command line.
//!
//! `TYPE:VALUE` has an explicit type. Without a type the value is what the same text is in SQL:
//! `42` is a 64-bit integer, `4.2` and `1e5` are 64-bit floats, `true`, `false` and `NULL` are
//! themselves, and everything else is text. To keep all digits, an integer beyond 64 bits is a
//! decimal, and digits with a leading zero (a postal code) are text. A word before a colon must be
//! a type, unless the value looks like a URI.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, NullArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, Schema, TimeUnit,
};

/// The description of parameters in `--help`.
pub(crate) const HELP: &str = "\
Parameters are the values of $1, $2 … in order (of ? for MySQL): 42 is a 64-bit integer, 4.2 a \
64-bit float, true, false and NULL are themselves, everything else is text. TYPE:VALUE sets the \
type; text:VALUE is always text:
  text:42  int:7  int32:7  uint64:7  float:1  decimal:12.50  bool:true  bytes:00ff
  date:2024-01-31  time:12:30:00  timestamp:2024-01-31T12:30:00
  timestamptz:2024-01-31T12:30:00+01:00";

/// The values as a batch of one row; None without values.
pub(crate) fn row(values: &[String]) -> Result<Option<RecordBatch>, String> {
    if values.is_empty() {
        return Ok(None);
    }
    let arrays = values
        .iter()
        .enumerate()
        .map(|(i, text)| value(text).map_err(|what| format!("--param ${}: {what}", i + 1)));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let fields = arrays.iter().enumerate();
    let fields: Vec<_> = fields
        .map(|(i, array)| Field::new(format!("${}", i + 1), array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map(Some)
        .map_err(|cause| cause.to_string())
}

fn value(text: &str) -> Result<ArrayRef, String> {
    let Some((name, value)) =
        text.split_once(':').filter(|(name, rest)| is_word(name) && !rest.starts_with("//"))
    else {
        return bare(text);
    };
    match typed(name) {
        Some(Typed::Plain(data_type)) => parse(value, &data_type),
        Some(Typed::Decimal) => decimal(value),
        Some(Typed::Bytes) => bytes(value),
        Some(Typed::Timestamp { zone }) => timestamp(value, zone),
        None => Err(format!(
            "{name:?} is no type, expected one of {TYPES} (write text:{text} for text with a colon)"
        )),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The names that [`typed`] knows.
const TYPES: &str = "text, bool, int, int8, int16, int32, int64, uint8, uint16, uint32, uint64, \
    float, float32, float64, decimal, date, time, timestamp, timestamptz, bytes";

enum Typed {
    Plain(DataType),
    Decimal,
    Bytes,
    Timestamp { zone: Zone },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Utc,
    None,
}

/// The type with this name.
fn typed(name: &str) -> Option<Typed> {
    Some(Typed::Plain(match name {
        "text" => DataType::Utf8,
        "bool" => DataType::Boolean,
        "int" | "int64" => DataType::Int64,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float" | "float64" => DataType::Float64,
        "float32" => DataType::Float32,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => return Some(Typed::Timestamp { zone: Zone::None }),
        "timestamptz" => return Some(Typed::Timestamp { zone: Zone::Utc }),
        "decimal" => return Some(Typed::Decimal),
        "bytes" => return Some(Typed::Bytes),
        _ => return None,
    }))
}

fn bare(text: &str) -> Result<ArrayRef, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    match text {
        "NULL" | "null" => Ok(Arc::new(NullArray::new(1))),
        "true" | "false" => parse(text, &DataType::Boolean),
        _ if leading_zero => parse(text, &DataType::Utf8),
        _ if text.parse::<i64>().is_ok() && is_integer => parse(text, &DataType::Int64),
        _ if is_integer => decimal(text),
        _ if is_numeric && text.parse::<f64>().is_ok() => parse(text, &DataType::Float64),
        _ => parse(text, &DataType::Utf8),
    }
}

fn parse(text: &str, data_type: &DataType) -> Result<ArrayRef, String> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let given: ArrayRef = Arc::new(StringArray::from(vec![text]));
    match cast_with_options(&given, data_type, &strict) {
        Ok(array) if array.is_valid(0) => Ok(array),
        _ => Err(format!("{text:?} is not a value of type {data_type} (write text:… for text)")),
    }
}

/// A decimal with the scale of the text: `12.50` has scale 2.
fn decimal(text: &str) -> Result<ArrayRef, String> {
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(format!("{text:?} is not a decimal number; write -12.50"));
    }
    let count = whole.len() + fraction.len();
    let too_long =
        || format!("{count} digits, and a decimal holds at most {DECIMAL256_MAX_PRECISION}");
    let precision = u8::try_from(count).map_err(|_| too_long())?;
    let scale = i8::try_from(fraction.len()).map_err(|_| too_long())?;
    if precision > DECIMAL256_MAX_PRECISION {
        return Err(too_long());
    }
    match precision <= DECIMAL128_MAX_PRECISION {
        true => parse(text, &DataType::Decimal128(precision, scale)),
        false => parse(text, &DataType::Decimal256(precision, scale)),
    }
}

fn bytes(text: &str) -> Result<ArrayRef, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    match pairs.collect::<Option<Vec<u8>>>() {
        Some(bytes) => Ok(Arc::new(BinaryArray::from_vec(vec![&bytes]))),
        None => Err(format!("{text:?} is not hexadecimal; write two digits for each byte")),
    }
}

fn timestamp(text: &str, zone: Zone) -> Result<ArrayRef, String> {
    // Only after the date, whose hyphens are not an offset's sign.
    let has_zone = text.get(11..).is_some_and(|clock| clock.contains(['Z', 'z', '+', '-']));
    match (zone, has_zone) {
        (Zone::Utc, false) => {
            Err(format!("{text:?} has no offset from UTC; write 2024-01-31T12:30:00Z or …+01:00"))
        }
        (Zone::None, true) => Err(format!(
            "{text:?} has an offset from UTC; write \
             timestamptz:{text}"
        )),
        _ => parse(
            text,
            &DataType::Timestamp(TimeUnit::Microsecond, (zone == Zone::Utc).then(|| "UTC".into())),
        ),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;
    use arrow::util::display::array_value_to_string;

    fn shown(text: &str) -> String {
        let array = value(text).unwrap();
        format!("{} {}", array.data_type(), array_value_to_string(&array, 0).unwrap())
    }

    #[test]
    fn bare_values() {
        for (text, expected) in [
            ("42", "Int64 42"),
            ("-9223372036854775808", "Int64 -9223372036854775808"),
            ("9223372036854775808", "Decimal128(19, 0) 9223372036854775808"),
            ("4.2", "Float64 4.2"),
            ("0.5", "Float64 0.5"),
            ("-1e5", "Float64 -100000.0"),
            ("true", "Boolean true"),
            ("NULL", "Null "),
            ("0", "Int64 0"),
            ("01234", "Utf8 01234"),
            ("nan", "Utf8 nan"),
            ("-", "Utf8 -"),
            ("", "Utf8 "),
            ("http://x", "Utf8 http://x"),
            ("a b: c", "Utf8 a b: c"),
            ("größe:x", "Utf8 größe:x"),
            ("12:30", "Utf8 12:30"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn typed_values() {
        for (text, expected) in [
            ("text:42", "Utf8 42"),
            ("text:int:7", "Utf8 int:7"),
            ("int32:7", "Int32 7"),
            ("float:1", "Float64 1.0"),
            ("decimal:12.50", "Decimal128(4, 2) 12.50"),
            ("decimal:-0.001", "Decimal128(4, 3) -0.001"),
            (
                "decimal:1234567890123456789012345678901234567890",
                "Decimal256(40, 0) 1234567890123456789012345678901234567890",
            ),
            ("date:2024-01-31", "Date32 2024-01-31"),
            ("time:12:30:00", "Time64(µs) 12:30:00"),
            ("timestamp:2024-01-31T12:30:00", "Timestamp(µs) 2024-01-31T12:30:00"),
            (
                "timestamptz:2024-01-31T12:30:00+01:00",
                "Timestamp(µs, \"UTC\") 2024-01-31T11:30:00Z",
            ),
            ("bytes:00fF", "Binary 00ff"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_values() {
        for text in [
            "int:4.2",
            "int8:300",
            "date:soon",
            "date:2024-02-30",
            "decimal:1e5",
            "decimal:",
            "bytes:0",
            "bytes:zz",
            "timestamp:2024-01-31T12:30:00Z",
            "timestamptz:2024-01-31T12:30:00",
            "bool:maybe",
            "dat:2024-01-31",
            "DATE:2024-01-31",
            "integer:1",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
        for name in TYPES.split(", ") {
            assert!(typed(name).is_some(), "{name}");
        }
        let error = value("dat:2024-01-31").unwrap_err();
        assert!(
            error.starts_with("\"dat\" is no type") && error.contains("text:dat:2024-01-31"),
            "{error}"
        );
        let row = row(&["1".to_owned(), "int:x".to_owned()]);
        assert_eq!(
            row.unwrap_err(),
            "--param $2: \"x\" is not a value of type Int64 (write text:… for text)"
        );
    }
}
