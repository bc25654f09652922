//! The columns of a result, from its first documents.
//!
//! A field becomes a column that holds all values of the sample, or JSON. What a sample can't tell
//! gets the wider type: integers have 64 bits and decimals 38 digits, since MongoDB's clients
//! choose the width by each value.

use std::collections::HashMap;

use mongodb::bson::raw::{RawArray, RawBsonRef, RawDocument};
use mongodb::bson::spec::BinarySubtype;

use crate::columns::{
    COLUMNS_MAX, Column, DEPTH_MAX, Kind, NAME_BYTES_MAX, REST, STRUCT_FIELDS_MAX,
};
use crate::decimal::PRECISION_MAX;
use crate::error::Malformed;
use crate::fit::{exact_double, number};

/// The most names that a sample may have, those of nested documents counted. Each takes memory.
const NAMES_MAX: usize = 10_000;
const UUID_BYTES: usize = 16;

/// The columns of a sample's documents, in the order in which their names first appear.
#[derive(Debug)]
pub(crate) struct Inference {
    fields: Fields,
    has_rest: bool,
    names_left: usize,
}

impl Inference {
    /// Without a column [`REST`], that is a name like others.
    pub(crate) fn new(has_rest: bool) -> Self {
        Self { fields: Fields::default(), has_rest, names_left: NAMES_MAX }
    }

    /// Looks at a document of the sample.
    ///
    /// # Errors
    /// If it is malformed.
    pub(crate) fn observe(&mut self, document: &RawDocument) -> Result<(), Malformed> {
        for element in document {
            let (name, value) = element?;
            let name = name.as_str();
            if name.len() > NAME_BYTES_MAX || (self.has_rest && name == REST) {
                continue;
            }
            if let Some(seen) = self.fields.entry(name, COLUMNS_MAX, &mut self.names_left) {
                seen.observe(value, &mut self.names_left, 0)?;
            }
        }
        Ok(())
    }

    /// The columns so far.
    pub(crate) fn columns(self) -> Vec<Column> {
        let column = |(name, seen): (String, Seen)| Column { name, kind: seen.kind() };
        self.fields.seen.into_iter().map(column).collect()
    }
}

/// Names with what was seen of their values, in the order of their appearance.
#[derive(Debug, Default)]
struct Fields {
    seen: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
}

impl Fields {
    /// What was seen of a field; None if there are too many of them.
    fn entry(&mut self, name: &str, fields_max: usize, left: &mut usize) -> Option<&mut Seen> {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if self.seen.len() >= fields_max => return None,
            None => {
                *left = left.checked_sub(1)?;
                let place = self.seen.len();
                self.places.insert(name.to_owned(), place);
                self.seen.push((name.to_owned(), Seen::default()));
                place
            }
        };
        self.seen.get_mut(place).map(|(_, seen)| seen)
    }
}

/// What was seen of a field's values. NULLs say nothing.
#[derive(Debug, Default)]
struct Seen {
    booleans: bool,
    integers: bool,
    doubles: bool,
    decimals: bool,
    strings: bool,
    object_ids: bool,
    dates: bool,
    uuids: bool,
    /// Binary of another subtype.
    binary: Option<u8>,
    /// Values that only JSON holds, or that differ too much.
    others: bool,
    /// Whether some integer is no double.
    inexact: bool,
    /// Whether some decimal is finite.
    finite: bool,
    /// Of decimals and integers.
    whole_digits: i32,
    scale: u32,
    documents: Option<Box<Fields>>,
    items: Option<Box<Seen>>,
}

impl Seen {
    fn observe(
        &mut self,
        value: RawBsonRef<'_>,
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Malformed> {
        match value {
            RawBsonRef::Null => {}
            RawBsonRef::Boolean(_) => self.booleans = true,
            RawBsonRef::Int32(_) => self.integers = true,
            RawBsonRef::Int64(value) => {
                self.integers = true;
                self.inexact |= exact_double(value).is_none();
            }
            RawBsonRef::Double(_) => self.doubles = true,
            RawBsonRef::Decimal128(_) => self.decimals = true,
            RawBsonRef::String(_) => self.strings = true,
            RawBsonRef::ObjectId(_) => self.object_ids = true,
            RawBsonRef::DateTime(_) => self.dates = true,
            RawBsonRef::Binary(binary) => {
                let is_uuid = binary.subtype == BinarySubtype::Uuid;
                let subtype = u8::from(binary.subtype);
                if is_uuid && binary.bytes.len() == UUID_BYTES {
                    self.uuids = true;
                } else if self.binary.replace(subtype).is_some_and(|other| other != subtype) {
                    self.others = true;
                }
            }
            RawBsonRef::Document(document) if depth < DEPTH_MAX => {
                self.observe_document(document, left, depth)?;
            }
            RawBsonRef::Array(array) if depth < DEPTH_MAX => {
                self.observe_array(array, left, depth)?;
            }
            _ => self.others = true,
        }
        if let Some(number) = number(value) {
            self.finite = true;
            self.whole_digits = self.whole_digits.max(number.whole_digits());
            self.scale = self.scale.max(number.scale());
        }
        Ok(())
    }

    /// Documents are a struct only if all have the same names: else some names may be data, and
    /// others have not come yet.
    fn observe_document(
        &mut self,
        document: &RawDocument,
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Malformed> {
        if self.others {
            return Ok(());
        }
        let is_first = self.documents.is_none();
        let fields = self.documents.get_or_insert_default();
        let mut count = 0;
        for element in document {
            let (name, value) = element?;
            let name = name.as_str();
            count += 1;
            let names_max = if is_first { STRUCT_FIELDS_MAX } else { 0 };
            let is_short = name.len() <= NAME_BYTES_MAX;
            match fields.entry(name, names_max, left).filter(|_| is_short) {
                Some(seen) => seen.observe(value, left, depth + 1)?,
                None => {
                    self.others = true;
                    break;
                }
            }
        }
        // A name that occurs twice counts twice. A struct without fields would hold nothing.
        if count != fields.seen.len() || count == 0 {
            self.others = true;
        }
        if self.others {
            self.documents = None;
        }
        Ok(())
    }

    fn observe_array(
        &mut self,
        array: &RawArray,
        left: &mut usize,
        depth: usize,
    ) -> Result<(), Malformed> {
        if self.others {
            return Ok(());
        }
        let items = self.items.get_or_insert_default();
        for item in array {
            items.observe(item?, left, depth + 1)?;
        }
        Ok(())
    }

    /// The kind of column that holds all of these.
    fn kind(self) -> Kind {
        let classes = [
            self.booleans,
            self.integers || self.doubles || self.decimals,
            self.strings,
            self.object_ids,
            self.dates,
            self.uuids,
            self.binary.is_some(),
            self.documents.is_some(),
            self.items.is_some(),
        ];
        if self.others || classes.into_iter().filter(|seen| *seen).count() != 1 {
            return Kind::Json;
        }
        if let Some(fields) = self.documents {
            let fields = fields.seen.into_iter();
            return Kind::Struct(fields.map(|(name, seen)| (name, seen.kind())).collect());
        }
        if let Some(items) = self.items {
            return match items.kind() {
                Kind::Json => Kind::Json,
                kind => Kind::List(Box::new(kind)),
            };
        }
        match self.binary {
            Some(subtype) => Kind::Binary(Some(subtype)),
            None if self.booleans => Kind::Boolean,
            None if self.strings => Kind::String,
            None if self.object_ids => Kind::ObjectId,
            None if self.dates => Kind::Timestamp,
            None if self.uuids => Kind::Uuid,
            None => self.number(),
        }
    }

    /// The kind of column for numbers, which holds all of them exactly. A NaN among decimals is no
    /// reason to give up the type.
    fn number(&self) -> Kind {
        let digits = self.whole_digits.unsigned_abs().saturating_add(self.scale);
        match (self.integers, self.doubles, self.decimals) {
            (true, false, false) => Kind::Int64,
            (_, true, false) if !self.inexact => Kind::Float64,
            (_, false, true) if self.finite && digits <= u32::from(PRECISION_MAX) => {
                match u8::try_from(self.scale) {
                    Ok(scale) => Kind::Decimal { precision: PRECISION_MAX, scale },
                    Err(_) => Kind::Json,
                }
            }
            _ => Kind::Json,
        }
    }
}

#[cfg(test)]
mod tests;
