//! Columns of `key=value` folders: their names, and types that all values have.

use std::path::Path;
use std::str::FromStr;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::CatalogError;
use super::dates::date;

/// The value of a folder for rows without one, as Hive writes it.
const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The type of a column of `key=value` folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    Date,
    Text,
}

/// Types of such columns that the user has named: `KEY=int`, `KEY=date`, `KEY=text`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionTypes(Vec<(String, Type)>);

impl FromStr for PartitionTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |item: &str| {
            let (key, name) = item.split_once('=').filter(|(key, _)| !key.is_empty())?;
            let named = match name {
                "int" => Type::Integer,
                "date" => Type::Date,
                "text" => Type::Text,
                _ => return None,
            };
            Some((key.to_owned(), named))
        };
        let types = text.split(',').map(one).collect::<Option<Vec<_>>>();
        let expected = || format!("'{text}', expected KEY=int, KEY=date or KEY=text");
        types.map(Self).ok_or_else(expected)
    }
}

impl PartitionTypes {
    /// All types of several options.
    pub fn merge(all: Vec<Self>) -> Self {
        Self(all.into_iter().flat_map(|types| types.0).collect())
    }

    fn of(&self, key: &str) -> Option<Type> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, named)| *named)
    }
}

/// The columns of the `key=value` folders above files.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// Names and types, outermost first.
    pub(super) columns: Vec<(String, DataType)>,
    /// The values of each file.
    pub(super) values: Vec<Vec<ScalarValue>>,
}

impl Partitions {
    /// Reads the folders above files. All files must have the same keys, and no other folders above
    /// them.
    pub(super) fn of(
        files: &[(&Path, &[String])],
        types: &PartitionTypes,
    ) -> Result<Self, CatalogError> {
        let Some((first, folders)) = files.first() else { return Ok(Self::default()) };
        let keys_of = |folders: &[String]| {
            let keys = folders.iter().filter_map(|name| key_value(name)).map(|(key, _)| key);
            keys.map(str::to_owned).collect::<Vec<_>>()
        };
        let keys = keys_of(folders);
        // None is a missing value.
        let mut values: Vec<Vec<Option<String>>> = Vec::with_capacity(files.len());
        for (path, folders) in files {
            let has_other = !keys.is_empty() && folders.len() != keys.len();
            if has_other || keys_of(folders) != keys {
                return Err(CatalogError::MixedPartitions {
                    first: (*first).to_owned(),
                    second: (*path).to_owned(),
                });
            }
            let of_file = folders.iter().filter_map(|name| key_value(name));
            let value = |value| Some(decoded(value)).filter(|value| value != NULL_VALUE);
            values.push(of_file.map(|(_, text)| value(text)).collect());
        }
        let mut typed = vec![Vec::with_capacity(keys.len()); files.len()];
        let mut columns = Vec::with_capacity(keys.len());
        for (i, key) in keys.into_iter().enumerate() {
            let of_key = || values.iter().map(|values| values.get(i).and_then(Option::as_deref));
            let named = types.of(&key);
            let chosen = named.unwrap_or_else(|| Type::of_all(of_key().flatten()));
            for ((typed, value), (path, _)) in typed.iter_mut().zip(of_key()).zip(files) {
                typed.push(chosen.value(value).ok_or_else(|| CatalogError::PartitionValue {
                    path: (*path).to_owned(),
                    value: format!("{key}={}", value.unwrap_or_default()),
                    expected: chosen.name(),
                })?);
            }
            columns.push((key, chosen.data_type()));
        }
        Ok(Self { columns, values: typed })
    }
}

impl Type {
    /// The type of a column with these values. `07` is text, because it would become the number 7.
    fn of_all<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Self {
        let is_integer =
            |value: &str| value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
        // A column without values is text.
        match values.clone().next() {
            Some(_) if values.clone().all(is_integer) => Self::Integer,
            Some(_) if values.clone().all(|value| date(value).is_some()) => Self::Date,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Date => DataType::Date32,
            Self::Text => DataType::Utf8,
        }
    }

    /// The value; None if the text is none of this type.
    fn value(self, text: Option<&str>) -> Option<ScalarValue> {
        Some(match (self, text) {
            (Self::Integer, None) => ScalarValue::Int64(None),
            (Self::Integer, Some(text)) => ScalarValue::Int64(Some(text.parse().ok()?)),
            (Self::Date, None) => ScalarValue::Date32(None),
            (Self::Date, Some(text)) => ScalarValue::Date32(Some(date(text)?)),
            (Self::Text, text) => ScalarValue::Utf8(text.map(str::to_owned)),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integer => "a 64-bit integer",
            Self::Date => "a date, YYYY-MM-DD",
            Self::Text => "text",
        }
    }
}

/// A folder's name as key and value.
pub(super) fn key_value(folder: &str) -> Option<(&str, &str)> {
    folder.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// The value with the characters for which Hive writes `%2F` and the like. If these are no UTF-8,
/// the text stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, behind @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let escaped = match behind {
            [high, low, ..] if *first == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    fn of(folders: &[&str], types: &str) -> Result<Partitions, CatalogError> {
        let types =
            if types.is_empty() { PartitionTypes::default() } else { types.parse().unwrap() };
        let folders = folders.iter().map(|path| {
            let parts = path.split('/').filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        });
        let folders = folders.collect::<Vec<_>>();
        let files = folders.iter().map(|parts| (Path::new("f"), parts.as_slice()));
        Partitions::of(&files.collect::<Vec<_>>(), &types)
    }

    #[test]
    fn types_are_those_of_all_values() {
        let null = "k=__HIVE_DEFAULT_PARTITION__";
        for (folders, data_type) in [
            (["k=1", "k=-7"], DataType::Int64),
            (["k=1", null], DataType::Int64),
            (["k=1", "k=07"], DataType::Utf8),
            (["k=2024-01-31", null], DataType::Date32),
            (["k=2024-01-31", "k=2024-02-30"], DataType::Utf8),
            (["k=2024-01-31", "k=1"], DataType::Utf8),
            (["k=2024-01-31", "k=2024-01-3x"], DataType::Utf8),
            (["k=2024-01-31", "k=2024-1-12B"], DataType::Utf8),
            ([null, null], DataType::Utf8),
        ] {
            let partitions = of(&folders, "").unwrap();
            assert_eq!(partitions.columns, [("k".to_owned(), data_type)], "{folders:?}");
            let nulls = partitions.values.iter().map(|values| values[0].is_null());
            assert!(nulls.eq(folders.iter().map(|folder| *folder == null)), "{folders:?}");
        }
    }

    #[test]
    fn types_can_be_named() {
        let partitions = of(&["m=01/c=a%2Fb%", "m=12/c=%FF"], "m=int,c=text").unwrap();
        let values =
            |i: usize| partitions.values.iter().map(|v| v[i].to_string()).collect::<Vec<_>>();
        assert_eq!(
            (values(0), values(1)),
            (vec!["1".into(), "12".into()], vec!["a/b%".into(), "%FF".into()])
        );
        let error = of(&["m=x"], "m=date").unwrap_err().to_string();
        assert!(error.contains("'m=x'") && error.contains("a date"), "{error}");
        for wrong in ["m", "m=float", "=int", ""] {
            assert!(wrong.parse::<PartitionTypes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_files_have_the_same_keys() {
        for folders in
            [["a=1/b=2", "a=1"], ["a=1", "b=1"], ["a=1", "a=1/x"], ["", "a=1"], ["a=1", ""]]
        {
            assert!(of(&folders, "").is_err(), "{folders:?}");
        }
        assert!(of(&["x", "y/z"], "").unwrap().columns.is_empty());
    }
}
