//! Keys and their index: `spec/page-file.md` section 5.

use dray_format::{Chain, Cursor, Field, Schema, Type, put_bytes};
use dray_page::{Object, Value};

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::header::u64_at;

pub(crate) const KEY_ENTRY_BYTES: usize = 16;
const PATHS_MAX: usize = 16;
const NAMES_MAX: usize = 32;

/// The names of the structs around a field, then its own.
pub type KeyPath = Vec<String>;

/// A value of a key's field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValue {
    /// Of a boolean field.
    Bool(bool),
    /// Of an integer, or of a type that is stored as one: dates, times, decimals without scale.
    Integer(i128),
    /// Of a string or binary field, or the stored bytes of a field of any other type.
    Bytes(Vec<u8>),
}

impl From<bool> for KeyValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i128> for KeyValue {
    fn from(value: i128) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for KeyValue {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}

/// The fields of a key, found in a schema.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    path: KeyPath,
    /// The number of the field in the schema, then in each struct.
    positions: Vec<usize>,
    data_type: Type,
}

impl Key {
    /// Finds the fields.
    ///
    /// # Errors
    /// Keys, when there are too many, a path names none or several, or its type has no order.
    pub(crate) fn new(schema: &Schema, paths: &[KeyPath]) -> Result<Self> {
        if paths.is_empty() || paths.len() > PATHS_MAX {
            refuse!(Keys, "a key of {} fields, expected 1 to {PATHS_MAX}", paths.len());
        }
        let parts = paths.iter().map(|path| Part::find(&schema.fields, path));
        Ok(Self { parts: parts.collect::<Result<_>>()? })
    }

    /// Reads the key paths, with the zeros behind them.
    pub(crate) fn decode(bytes: &[u8], schema: &Schema) -> Result<Self> {
        let failed = |cause: dray_format::Error| {
            Error::new(ErrorKind::Keys, format!("the key paths are damaged: {cause}"))
        };
        let mut cursor = Cursor::new(bytes, dray_format::ErrorKind::Truncated);
        let count =
            |cursor: &mut Cursor<'_>, most: usize| match cursor.u32("count").map_err(failed)?
                as usize
            {
                count if (1..=most).contains(&count) => Ok(count),
                count => refuse!(Keys, "{count} in the key paths, expected 1 to {most}"),
            };
        let mut paths = Vec::new();
        for _ in 0..count(&mut cursor, PATHS_MAX)? {
            let names = count(&mut cursor, NAMES_MAX)?;
            let name = |_| cursor.string("name").map(str::to_owned).map_err(failed);
            paths.push((0..names).map(name).collect::<Result<KeyPath>>()?);
        }
        let rest = cursor.take(cursor.remaining(), "padding").map_err(failed)?;
        if rest.len() >= 8 {
            refuse!(Keys, "{} bytes follow the key paths", rest.len());
        }
        if rest.iter().any(|byte| *byte != 0) {
            refuse!(Padding, "a byte behind the key paths is not 0");
        }
        Self::new(schema, &paths)
    }

    /// The key paths' bytes, with zeros behind them.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Both counts are small.
        bytes.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        for part in &self.parts {
            bytes.extend_from_slice(&(part.path.len() as u32).to_le_bytes());
            for name in &part.path {
                let put = put_bytes(&mut bytes, name.as_bytes());
                put.map_err(|error| Error::new(ErrorKind::Keys, error.to_string()))?;
            }
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        Ok(bytes)
    }

    /// The paths and types of its fields.
    pub(crate) fn fields(&self) -> impl ExactSizeIterator<Item = (&KeyPath, &Type)> {
        self.parts.iter().map(|part| (&part.path, &part.data_type))
    }

    /// The hash of an object's key; none if a field is missing.
    pub(crate) fn hash(&self, object: Object<'_>) -> Option<u64> {
        let mut chain = Chain::default();
        for part in &self.parts {
            let value = part.value(object)?;
            chain = match value.bool() {
                Some(value) => chain.word(value.into()),
                None => match value.fixed() {
                    Some(bytes) => chain.padded(bytes),
                    None => chain.text(value.bytes()?),
                },
            };
        }
        Some(chain.row())
    }

    /// The stored bytes of a key's values.
    ///
    /// # Errors
    /// Usage, when their number or a type is another one. None if a number is out of the range of
    /// its type, so that no object has it.
    pub(crate) fn stored(&self, values: &[KeyValue]) -> Result<Option<StoredKey>> {
        if values.len() != self.parts.len() {
            refuse!(Usage, "{} values for a key of {} fields", values.len(), self.parts.len());
        }
        let parts = self.parts.iter().zip(values).map(|(part, value)| part.stored(value));
        Ok(parts.collect::<Result<Option<_>>>()?.map(StoredKey))
    }

    /// The hash of a key.
    pub(crate) fn hash_of(&self, key: &StoredKey) -> u64 {
        let chain =
            self.parts.iter().zip(&key.0).fold(Chain::default(), |chain, (part, bytes)| match part
                .data_type
            {
                Type::Utf8 | Type::Binary => chain.text(bytes),
                _ => chain.padded(bytes),
            });
        chain.row()
    }

    /// Whether an object has this key.
    pub(crate) fn is_of(&self, key: &StoredKey, object: Object<'_>) -> bool {
        self.parts.iter().zip(&key.0).all(|(part, expected)| {
            let Some(value) = part.value(object) else { return false };
            match value.bool() {
                Some(value) => **expected == [u8::from(value)],
                None => value.fixed().or_else(|| value.bytes()) == Some(expected),
            }
        })
    }
}

/// The values of a key, as objects have them.
#[derive(Debug)]
pub(crate) struct StoredKey(Vec<Vec<u8>>);

impl Part {
    fn find(mut fields: &[Field], path: &KeyPath) -> Result<Self> {
        let shown = || path.join(".");
        if path.len() > NAMES_MAX {
            refuse!(Keys, "the key path {:?} has more than {NAMES_MAX} names", shown());
        }
        let mut positions = Vec::new();
        let mut found: Option<&Type> = None;
        for name in path {
            fields = match found {
                None => fields,
                Some(Type::Struct(within)) => within.as_slice(),
                Some(_) => refuse!(Keys, "the key {:?} is not within structs alone", shown()),
            };
            let mut named = fields.iter().enumerate().filter(|(_, field)| field.name == *name);
            let (Some((position, field)), None) = (named.next(), named.next()) else {
                let names = fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>();
                refuse!(
                    Keys,
                    "the key {:?} is not one field; there are {}",
                    shown(),
                    names.join(", ")
                );
            };
            positions.push(position);
            found = Some(&field.data_type);
        }
        let mut data_type = match found {
            Some(data_type) => data_type,
            None => refuse!(Keys, "a key path without names"),
        };
        while let Type::Dictionary { value, .. } = data_type {
            data_type = value;
        }
        let is_key = matches!(data_type, Type::Boolean | Type::Utf8 | Type::Binary)
            || data_type.width().is_some();
        if !is_key {
            refuse!(
                Keys,
                "the field {:?} can't be a key: it is nested, or always missing",
                shown()
            );
        }
        Ok(Self { path: path.clone(), positions, data_type: data_type.clone() })
    }

    /// The field's value in an object; none if it is missing.
    fn value<'a>(&self, object: Object<'a>) -> Option<Value<'a>> {
        let (last, around) = self.positions.split_last()?;
        let mut fields = object.fields();
        for position in around {
            fields = fields.field(*position)?.fields()?;
        }
        fields.field(*last).filter(|value| !value.is_missing())
    }

    /// The stored bytes of a value; none if no field of this type has it.
    fn stored(&self, value: &KeyValue) -> Result<Option<Vec<u8>>> {
        let refused = |expected: &str| {
            Err(Error::new(
                ErrorKind::Usage,
                format!("the key field {:?} takes {expected}", self.path.join(".")),
            ))
        };
        match (&self.data_type, value) {
            (Type::Boolean, KeyValue::Bool(value)) => Ok(Some(vec![u8::from(*value)])),
            (Type::Boolean, _) => refused("true or false"),
            (Type::Utf8 | Type::Binary, KeyValue::Bytes(bytes)) => Ok(Some(bytes.clone())),
            (Type::Utf8, _) => refused("a string"),
            (Type::Binary, _) => refused("bytes"),
            (other, KeyValue::Integer(number)) => match is_signed(other) {
                Some(signed) => Ok(integer(*number, other.width().unwrap_or(0), signed)),
                None => refused("its stored bytes"),
            },
            (other, KeyValue::Bytes(bytes)) if Some(bytes.len()) == other.width() => {
                Ok(Some(bytes.clone()))
            }
            (other, _) => match is_signed(other) {
                Some(_) => refused("an integer"),
                None => refused(&format!("its {} stored bytes", other.width().unwrap_or(0))),
            },
        }
    }
}

/// Whether a type is stored as an integer with a sign; none if it is not stored as an integer.
fn is_signed(data_type: &Type) -> Option<bool> {
    use Type::*;
    match data_type {
        UInt8 | UInt16 | UInt32 | UInt64 => Some(false),
        Int8
        | Int16
        | Int32
        | Int64
        | Date32
        | Date64
        | Time32(_)
        | Time64(_)
        | Duration(_)
        | Timestamp { .. }
        | IntervalMonths
        | Decimal32 { .. }
        | Decimal64 { .. }
        | Decimal128 { .. } => Some(true),
        _ => None,
    }
}

/// An integer's bytes; none if it needs more.
fn integer(number: i128, width: usize, signed: bool) -> Option<Vec<u8>> {
    let bytes = number.to_le_bytes();
    let (kept, rest) = bytes.split_at_checked(width)?;
    let negative = signed && kept.last().is_some_and(|byte| byte & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    // A number that only fits without its sign's bit is another one with it.
    let fits = rest.iter().all(|byte| *byte == sign) && (!signed || negative == (number < 0));
    fits.then(|| kept.to_vec())
}

/// The key index as it lies in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyIndex<'a>(pub(crate) &'a [[u8; KEY_ENTRY_BYTES]]);

impl KeyIndex<'_> {
    fn entry(&self, i: usize) -> Option<(u64, u64)> {
        self.0.get(i).map(|entry| (u64_at(entry, 0), u64_at(entry, 8)))
    }

    /// Checks that it is in order, and that its ordinals are below `objects`.
    pub(crate) fn check(&self, objects: u64) -> Result<()> {
        let mut last = None;
        for entry in self.0 {
            let entry = (u64_at(entry, 0), u64_at(entry, 8));
            if last.is_some_and(|last| last >= entry) || entry.1 >= objects {
                refuse!(Keys, "the key index is not in order");
            }
            last = Some(entry);
        }
        Ok(())
    }

    /// The ordinals of the objects whose key has this hash, in ascending order.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = u64> {
        let first = self.lower_bound((hash, 0));
        (first..)
            .map_while(move |i| self.entry(i))
            .take_while(move |entry| entry.0 == hash)
            .map(|(_, ordinal)| ordinal)
    }

    /// Whether it has this hash for this object.
    pub(crate) fn has(&self, hash: u64, ordinal: u64) -> bool {
        self.entry(self.lower_bound((hash, ordinal))) == Some((hash, ordinal))
    }

    /// The number of entries before this one. Hashes are evenly spread, so the first guess is
    /// close; doubling steps find a range around it, which is then halved.
    fn lower_bound(&self, sought: (u64, u64)) -> usize {
        let count = self.0.len();
        let is_below = |i: usize| self.entry(i).is_some_and(|entry| entry < sought);
        let guess = ((u128::from(sought.0) * count as u128) >> 64) as usize;
        let (mut from, mut to, mut step) = (guess, guess, 16);
        while from > 0 && !is_below(from - 1) {
            (from, to) = (from.saturating_sub(step), from - 1);
            step *= 2;
        }
        step = 16;
        while to < count && is_below(to) {
            (from, to) = (to + 1, (to + step).min(count));
            step *= 2;
        }
        while from < to {
            let middle = from + (to - from) / 2;
            match is_below(middle) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_bytes_of_their_type() {
        assert_eq!(integer(-1, 2, true), Some(vec![0xff, 0xff]));
        assert_eq!(integer(255, 1, false), Some(vec![0xff]));
        assert_eq!(integer(255, 1, true), None);
        assert_eq!(integer(-129, 1, true), None);
        assert_eq!(integer(-1, 1, false), None);
        assert_eq!(integer(i128::MIN, 16, true), Some(i128::MIN.to_le_bytes().to_vec()));
    }

    #[test]
    fn finds_hashes_however_they_are_spread() {
        let spread = (0..1000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for mut hashes in [
            vec![],
            vec![0],
            vec![u64::MAX; 40],
            vec![5; 1000],
            (0..1000).collect(),
            (0..1000).map(|i| u64::MAX - i).collect(),
            spread.collect::<Vec<_>>(),
        ] {
            hashes.sort_unstable();
            let entries = hashes.iter().enumerate().map(|(i, hash)| {
                let mut entry = [0; KEY_ENTRY_BYTES];
                entry[..8].copy_from_slice(&hash.to_le_bytes());
                entry[8..].copy_from_slice(&(i as u64).to_le_bytes());
                entry
            });
            let entries = entries.collect::<Vec<_>>();
            let index = KeyIndex(&entries);
            index.check(hashes.len() as u64).unwrap();
            let around = |hash: &u64| [hash.wrapping_sub(1), *hash, hash.wrapping_add(1)];
            let probes = hashes.iter().flat_map(around).chain([0, 1, u64::MAX / 2, u64::MAX]);
            for probe in probes.collect::<Vec<_>>() {
                let expected = hashes.partition_point(|hash| *hash < probe)
                    ..hashes.partition_point(|hash| *hash <= probe);
                let found = index.find(probe).map(|ordinal| ordinal as usize);
                assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
        }
    }
}
