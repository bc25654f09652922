//! The types of a table that is created for Arrow data (`spec/types.md` section 6).

use arrow::datatypes::{DataType, Field, TimeUnit};
use dray_mysql::Server;
use dray_mysqltypes::TYPE_KEY;
use dray_pgcopy::{Error, is_json, is_uuid, json};

/// The most digits of a decimal.
const DIGITS_MAX: i32 = 65;
/// The most bytes of `binary(n)`.
const BINARY_MAX: i32 = 255;

/// The type of a new column for this data.
///
/// # Errors
/// When there is none.
pub(super) fn create_type(field: &Field, server: &Server) -> Result<String, Error> {
    named(field, server).or_else(|| plain(field.data_type(), field, server)).ok_or_else(|| {
        Error::Type {
            column: field.name().clone(),
            what: format!("MySQL has no type for Arrow's {}", field.data_type()),
            hint: "cast it, or name a type for it in types=".to_owned(),
        }
    })
}

/// The type that the data came from, if its field names it. The labels of an enum or a set are not
/// in its name. The metadata of a file or of another server may be anything, and this becomes a
/// part of a statement: only names that reading gives, letter for letter, are types.
fn named(field: &Field, server: &Server) -> Option<String> {
    let name = field.metadata().get(TYPE_KEY)?.as_str();
    match name {
        "year" | "date" | "datetime" | "geometry" | "point" | "linestring" | "polygon"
        | "multipoint" | "multilinestring" | "multipolygon" | "geometrycollection" => {
            return Some(name.to_owned());
        }
        // Without the word it would have a default.
        "timestamp" => return Some(format!("{name} NULL")),
        "inet4" | "inet6" if server.is_mariadb() => return Some(name.to_owned()),
        _ => {}
    }
    let (name, number) = name.strip_suffix(')')?.split_once('(')?;
    let number = number.bytes().all(|digit| digit.is_ascii_digit()).then_some(number)?;
    match (name, number.parse::<u8>().ok()?) {
        ("bit", bits @ 1..=64) => Some(format!("bit({bits})")),
        ("datetime", digits @ 0..=6) => Some(format!("datetime({digits})")),
        ("timestamp", digits @ 0..=6) => Some(format!("timestamp({digits}) NULL")),
        _ => None,
    }
}

fn plain(data_type: &DataType, field: &Field, server: &Server) -> Option<String> {
    use DataType::*;
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    };
    let name = match data_type {
        Boolean => "boolean",
        Int8 => "tinyint",
        Int16 => "smallint",
        Int32 => "int",
        Int64 => "bigint",
        UInt8 => "tinyint unsigned",
        UInt16 => "smallint unsigned",
        UInt32 => "int unsigned",
        UInt64 => "bigint unsigned",
        Float16 | Float32 => "float",
        Float64 => "double",
        Utf8 | LargeUtf8 | Utf8View if is_json(field) => json_type(server, false),
        Null | Utf8 | LargeUtf8 | Utf8View => "longtext",
        FixedSizeBinary(16) if is_uuid(field) && has_uuid(server) => "uuid",
        FixedSizeBinary(bytes @ 1..=BINARY_MAX) => return Some(format!("binary({bytes})")),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => "longblob",
        Date32 | Date64 => "date",
        Time32(unit) | Time64(unit) | Duration(unit) => {
            return Some(format!("time({})", digits(unit)));
        }
        Timestamp(unit, None) => return Some(format!("datetime({})", digits(unit))),
        // Without the word it would have a default.
        Timestamp(unit, Some(_)) => return Some(format!("timestamp({}) NULL", digits(unit))),
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => {
            let (precision, scale) = (i32::from(*precision), i32::from(*scale));
            let scale_max = if server.is_mariadb() { 38 } else { 30 };
            let precision = if scale < 0 { precision - scale } else { precision.max(scale) };
            let fits = precision <= DIGITS_MAX && scale <= scale_max;
            return fits.then(|| format!("decimal({precision},{})", scale.max(0)));
        }
        Dictionary(_, values) => return plain(values, field, server),
        RunEndEncoded(_, values) => return plain(values.data_type(), field, server),
        nested if nested.is_nested() && json::no_json(nested).is_none() => {
            json_type(server, is_exact_json(nested, field))
        }
        _ => return None,
    };
    Some(name.to_owned())
}

/// The type for JSON. MySQL's own keeps numbers as doubles, so it is for JSON without others than
/// integers (`is_exact`); MariaDB's keeps the text.
fn json_type(server: &Server, is_exact: bool) -> &'static str {
    let has_json = server.is_mariadb() || server.number() >= (5, 7, 8);
    if has_json && (is_exact || server.is_mariadb()) { "json" } else { "longtext" }
}

/// Whether the JSON of data has no numbers but integers of at most 64 bits.
fn is_exact_json(data_type: &DataType, field: &Field) -> bool {
    use DataType::*;
    match data_type {
        Struct(fields) => fields.iter().all(|field| is_exact_json(field.data_type(), field)),
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _)
        | RunEndEncoded(_, item) => is_exact_json(item.data_type(), item),
        // Its keys are strings in JSON.
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => {
                fields.iter().skip(1).all(|field| is_exact_json(field.data_type(), field))
            }
            _ => false,
        },
        Dictionary(_, values) => is_exact_json(values, field),
        Utf8 | LargeUtf8 | Utf8View => !is_json(field),
        other => !other.is_floating() && !other.is_decimal(),
    }
}

/// Whether the server has the type `uuid`: MariaDB since 10.7.
fn has_uuid(server: &Server) -> bool {
    let version = server.version.trim_start_matches("5.5.5-");
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    server.is_mariadb() && version >= (10, 7)
}

/// Whether a type that the user has given can be nothing but a type, with what may follow it: it
/// ends neither the column nor the statement.
pub(super) fn is_one_type(text: &str) -> bool {
    let (mut depth, mut quoted) = (0i32, false);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            '\\' => return false,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth > 0 => {}
            _ if c.is_alphanumeric() || matches!(c, ' ' | '_') => {}
            _ => return false,
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0 && !quoted && !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Fields;

    use super::*;

    fn server(version: &str) -> Server {
        Server::new(version, 1, 0, 0)
    }

    fn created(data_type: DataType, metadata: &[(&str, &str)], version: &str) -> String {
        let metadata = metadata.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        let field = Field::new("c", data_type, true).with_metadata(metadata.collect());
        create_type(&field, &server(version)).unwrap()
    }

    #[test]
    fn types_that_metadata_names() {
        let named =
            |name: &str, version: &str| created(DataType::UInt64, &[(TYPE_KEY, name)], version);
        for (name, expected) in [
            ("bit(1)", "bit(1)"),
            ("bit(64)", "bit(64)"),
            ("year", "year"),
            ("date", "date"),
            ("datetime", "datetime"),
            ("datetime(6)", "datetime(6)"),
            ("timestamp", "timestamp NULL"),
            ("timestamp(3)", "timestamp(3) NULL"),
            ("multipolygon", "multipolygon"),
        ] {
            assert_eq!(named(name, "8.0.36"), expected);
        }
        assert_eq!(named("inet6", "10.11.6-MariaDB"), "inet6");
        let sql = "bit(1)) AS SELECT b'1' AS v, User, authentication_string FROM mysql.user -- ";
        for name in [
            sql,
            "bit",
            "bit(0)",
            "bit(65)",
            "bit(+1)",
            "bit( 1)",
            "bit(1) ",
            "bit(1))",
            "bit(999999999999)",
            "bit()",
            "bit(1,2)",
            "year(4)",
            "year)",
            "date, x int",
            "datetime(7)",
            "datetime DEFAULT (SLEEP(9))",
            "timestamp(6) NULL",
            "point; DROP TABLE t",
            "inet6",
            "DATE",
            "",
        ] {
            assert_eq!(named(name, "8.0.36"), "bigint unsigned", "{name}");
        }
    }

    #[test]
    fn types_of_json() {
        let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
        let both = |key: DataType, value: DataType| {
            Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)])
        };
        let map = |key, value| {
            let entries = Field::new("entries", DataType::Struct(both(key, value)), false);
            DataType::Map(Arc::new(entries), false)
        };
        let (int, text, float) = (DataType::Int64, DataType::Utf8, DataType::Float64);
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(float.clone()));
        for (data_type, expected) in [
            (list(int.clone()), "json"),
            (list(list(text.clone())), "json"),
            (list(DataType::UInt64), "json"),
            (DataType::Struct(both(text.clone(), DataType::Date32)), "json"),
            (map(float.clone(), int.clone()), "json"),
            (list(float.clone()), "longtext"),
            (list(list(DataType::Float16)), "longtext"),
            (list(dictionary), "longtext"),
            (list(DataType::Decimal128(5, 0)), "longtext"),
            (DataType::Struct(both(int, list(DataType::Decimal256(5, 2)))), "longtext"),
            (map(text, float), "longtext"),
        ] {
            assert_eq!(created(data_type.clone(), &[], "8.0.36"), expected, "{data_type}");
            assert_eq!(created(data_type.clone(), &[], "5.6.51"), "longtext", "{data_type}");
            assert_eq!(created(data_type, &[], "10.11.6-MariaDB"), "json");
        }
        let json = [("ARROW:extension:name", "arrow.json")];
        assert_eq!(created(DataType::Utf8, &json, "8.0.36"), "longtext");
        assert_eq!(created(DataType::Utf8, &json, "10.11.6-MariaDB"), "json");
    }

    #[test]
    fn types_that_users_give() {
        for text in ["int", "decimal(10, 2) unsigned", "enum('a','b)')", "varchar(5) NOT NULL"] {
            assert!(is_one_type(text), "{text}");
        }
        for text in
            ["", " ", "int, x int", "int) ENGINE=MyISAM", "int; DROP TABLE t", "int -- x", "enum('"]
        {
            assert!(!is_one_type(text), "{text}");
        }
    }

    #[test]
    fn versions() {
        for (version, has) in [
            ("5.5.5-10.11.6-MariaDB", true),
            ("11.4.2-MariaDB-log", true),
            ("10.6.1-MariaDB", false),
            ("8.0.36", false),
        ] {
            assert_eq!(has_uuid(&server(version)), has, "{version}");
        }
    }
}
