//! The definition of a result's column, as a server sends it before the rows.

use crate::error::{Error, Result};
use crate::reader::Reader;

/// The bytes of the fields that follow the names.
const FIXED_BYTES: u64 = 12;
/// The kinds of MariaDB's extended metadata.
const DATA_TYPE: u8 = 0;
const FORMAT: u8 = 1;

/// A column of a result, as `Protocol::ColumnDefinition41` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name or alias.
    pub name: String,
    /// The code of its type (`enum_field_types`).
    pub type_code: u8,
    /// `UNSIGNED_FLAG` and others.
    pub flags: u16,
    /// The number of a collation, which tells the character set; 63 for bytes.
    pub character_set: u16,
    /// The most bytes or characters of a value as text.
    pub length: u32,
    /// Digits after the point.
    pub decimals: u8,
    /// The type or format that only MariaDB's extended metadata tells: `uuid`, `inet4`, `json`, …
    pub extended_type: Option<String>,
}

impl ColumnDefinition {
    /// Reads a packet's payload. `extended` says whether client and server have agreed on MariaDB's
    /// extended metadata.
    ///
    /// # Errors
    /// When the payload is no definition.
    pub fn parse(payload: &[u8], extended: bool) -> Result<Self> {
        let mut reader = Reader(payload);
        // Catalog, schema, the table's alias, the table.
        for _ in 0..4 {
            reader.bytes()?;
        }
        let name = text(reader.bytes()?)?;
        let of_column = |error: Error| error.of_column(&name);
        // The name in the table.
        reader.bytes().map_err(of_column)?;
        let extended_type = match extended {
            true => extended_type(reader.bytes().map_err(of_column)?).map_err(of_column)?,
            false => None,
        };
        let (character_set, length, type_code, flags, decimals) =
            fixed(&mut reader).map_err(of_column)?;
        Ok(Self { name, type_code, flags, character_set, length, decimals, extended_type })
    }
}

fn fixed(reader: &mut Reader<'_>) -> Result<(u16, u32, u8, u16, u8)> {
    let bytes = reader.integer()?;
    if bytes != FIXED_BYTES {
        let what = format!("{bytes} bytes of a column's fields, expected {FIXED_BYTES}");
        return Err(Error::malformed(what));
    }
    let fields = (
        u16::from_le_bytes(reader.array()?),
        u32::from_le_bytes(reader.array()?),
        reader.byte()?,
        u16::from_le_bytes(reader.array()?),
        reader.byte()?,
    );
    // Reserved.
    reader.take(2)?;
    reader.end("a column's definition")?;
    Ok(fields)
}

/// The name of the data type, or else of the format. Other kinds of metadata are ignored.
fn extended_type(metadata: &[u8]) -> Result<Option<String>> {
    let mut reader = Reader(metadata);
    let (mut data_type, mut format) = (None, None);
    while !reader.0.is_empty() {
        let (kind, value) = (reader.byte()?, reader.bytes()?);
        match kind {
            DATA_TYPE => data_type = Some(text(value)?),
            FORMAT => format = Some(text(value)?),
            _ => {}
        }
    }
    Ok(data_type.or(format))
}

fn text(bytes: &[u8]) -> Result<String> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| Error::malformed("a name that is not UTF-8"))
}
