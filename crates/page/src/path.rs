//! Paths of fields, looked up in a layout.

use dray_format::{Field, Type, crc32c};

use crate::error::{Result, refuse};
use crate::layout::{Kind, Layout, Place, Record};

/// The name of the items of a list in a path.
const ITEMS: &str = "[]";

impl Layout {
    /// The field with this path ([`Layout::accessor`]).
    pub(crate) fn find(&self, path: &[&str]) -> Result<Found<'_>> {
        let fields = named(&self.schema().fields, &self.record.fields);
        let mut scope = Scope {
            record: &self.record,
            record_id: self.id,
            bits: Vec::new(),
            fields,
            in_bitmap: None,
        };
        for end in 1..path.len() {
            scope = scope.field(&path[..end])?.inside();
        }
        scope.field(path)
    }
}

/// Fields side by side: those of a schema, a struct or a map's items, or the items of a list.
struct Scope<'l> {
    record: &'l Record,
    record_id: u32,
    /// The validity bits of the structs around the fields, the nearest last.
    bits: Vec<usize>,
    fields: Named<'l>,
    /// Of the items of a list: whether they may be missing.
    in_bitmap: Option<bool>,
}

/// Names, types and places.
type Named<'l> = Vec<(&'l str, &'l Type, &'l Place)>;

fn named<'l>(fields: impl IntoIterator<Item = &'l Field>, places: &'l [Place]) -> Named<'l> {
    fields
        .into_iter()
        .zip(places)
        .map(|(field, place)| (field.name.as_str(), &field.data_type, place))
        .collect()
}

impl<'l> Scope<'l> {
    /// The field that this path ends with.
    fn field(self, path: &[&str]) -> Result<Found<'l>> {
        let Self { record, record_id, mut bits, fields, in_bitmap } = self;
        let found: Named<'l> =
            fields.into_iter().filter(|(name, ..)| path.last() == Some(name)).collect();
        let [(_, mut data_type, place)] = *found else {
            refuse!(
                Unsupported,
                "there are {} fields {:?}, expected one",
                found.len(),
                path.join(".")
            );
        };
        while let Type::Dictionary { value, .. } = data_type {
            data_type = value;
        }
        bits.extend(place.nullable.then_some(place.bits.start));
        Ok(Found { record, record_id, bits, data_type, place, in_bitmap })
    }
}

/// A field that was looked up.
pub(crate) struct Found<'l> {
    pub record: &'l Record,
    pub record_id: u32,
    /// The validity bits of the structs around it and, if it has one, its own.
    pub bits: Vec<usize>,
    pub data_type: &'l Type,
    pub place: &'l Place,
    /// Of the items of a list: whether they may be missing.
    pub in_bitmap: Option<bool>,
}

impl<'l> Found<'l> {
    /// The fields within it.
    fn inside(self) -> Scope<'l> {
        let items_id = self.items_id();
        let of_items = |record, fields, in_bitmap| Scope {
            record,
            record_id: items_id,
            bits: Vec::new(),
            fields,
            in_bitmap,
        };
        match (self.data_type, &self.place.kind) {
            (
                Type::List(item) | Type::FixedList { item, .. },
                Kind::List(items) | Kind::FixedList { items, .. },
            ) => {
                let place = items.record.fields.iter();
                of_items(
                    &items.record,
                    place.map(|place| (ITEMS, &item.data_type, place)).collect(),
                    Some(items.nullable),
                )
            }
            (Type::Map { key, value, .. }, Kind::List(items)) => {
                let pair = match &*items.record.fields {
                    [Place { kind: Kind::Struct(pair), .. }] => pair.as_slice(),
                    _ => &[],
                };
                of_items(&items.record, named([&**key, &**value], pair), None)
            }
            (Type::Struct(fields), Kind::Struct(places)) => {
                let Self { record, record_id, bits, .. } = self;
                Scope { record, record_id, bits, fields: named(fields, places), in_bitmap: None }
            }
            _ => Scope {
                record: self.record,
                record_id: self.record_id,
                bits: Vec::new(),
                fields: Vec::new(),
                in_bitmap: None,
            },
        }
    }

    /// The id that tells the records of its items from others.
    pub fn items_id(&self) -> u32 {
        crc32c(self.record_id, &self.place.at.to_le_bytes())
    }

    pub fn described(&self, path: &[&str]) -> String {
        let data_type = match self.data_type {
            Type::Struct(_) => "struct".into(),
            Type::List(_) | Type::FixedList { .. } => "list".into(),
            Type::Map { .. } => "map".into(),
            other => format!("{other:?}"),
        };
        format!("field {:?} is of type {data_type}", path.join("."))
    }
}
