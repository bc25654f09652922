//! The positions of a layout's fields, for programs that compile them into code.

use dray_format::{Field, Type};

use crate::layout::{EXTENT_HEADER_BYTES, Items, Kind, Layout, Place};

/// A field of a record, and where it lies (page.md section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLayout {
    /// Its name in the schema.
    pub name: String,
    /// Its offset from the start of its record; 0 if it takes no bytes of its own.
    pub at: usize,
    /// Its own validity bit, if it is nullable.
    pub own_bit: Option<ValidityBit>,
    /// The bit that is set if and only if it is present: its own or, if it has none, that of the
    /// nearest struct around it which has one.
    pub present_bit: Option<ValidityBit>,
    /// What lies there.
    pub shape: Shape,
}

/// The position of a validity bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidityBit {
    /// The byte's offset from the start of the record.
    pub at: usize,
    /// The bit in that byte.
    pub mask: u8,
}

/// What lies at a field's position. A dictionary is what its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A value of this type, none of the following.
    Value(Type),
    /// The fields of a struct, which are fields of the same record.
    Struct(Vec<FieldLayout>),
    /// A list of any number of items.
    List(Box<ItemLayout>),
    /// A list of as many items, or of none if it is missing.
    FixedList(usize, Box<ItemLayout>),
    /// A list of structs of a key and a value.
    Map(Box<ItemLayout>),
}

/// The items of a list (page.md section 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemLayout {
    /// Whether a bitmap lies before them, because they may be missing.
    pub nullable: bool,
    /// The bytes from one item's record to the next.
    pub stride: usize,
    /// What lies at the start of each record.
    pub item: Shape,
}

impl Layout {
    /// The fields of an object, with all that is within them.
    pub fn fields(&self) -> Vec<FieldLayout> {
        let around = Around { bits_at: EXTENT_HEADER_BYTES, present_bit: None };
        around.fields(&self.schema().fields, &self.record.fields)
    }

    /// The bytes of an object's record, from its start to the first tail.
    pub fn record_bytes(&self) -> usize {
        self.record.end
    }
}

/// What is around a field.
#[derive(Clone, Copy)]
struct Around {
    /// Where the validity bits of the record begin.
    bits_at: usize,
    /// The bit of the nearest struct that has one.
    present_bit: Option<ValidityBit>,
}

impl Around {
    fn fields(self, fields: &[Field], places: &[Place]) -> Vec<FieldLayout> {
        debug_assert_eq!(fields.len(), places.len());
        fields
            .iter()
            .zip(places)
            .map(|(field, place)| self.field(&field.name, &field.data_type, place))
            .collect()
    }

    fn field(self, name: &str, data_type: &Type, place: &Place) -> FieldLayout {
        let bit = place.bits.start;
        let own_bit = place
            .nullable
            .then(|| ValidityBit { at: self.bits_at + bit / 8, mask: 1 << (bit % 8) });
        let present_bit = own_bit.or(self.present_bit);
        let inside = Self { present_bit, ..self };
        let shape = inside.shape(data_type, &place.kind);
        let at =
            if matches!(shape, Shape::Struct(_) | Shape::Value(Type::Null)) { 0 } else { place.at };
        FieldLayout { name: name.to_owned(), at, own_bit, present_bit, shape }
    }

    fn shape(self, data_type: &Type, kind: &Kind) -> Shape {
        match (data_type, kind) {
            (Type::Dictionary { value, .. }, _) => self.shape(value, kind),
            (Type::Struct(fields), Kind::Struct(places)) => {
                Shape::Struct(self.fields(fields, places))
            }
            (Type::List(item), Kind::List(items)) => {
                Shape::List(item_layout(&item.data_type, items))
            }
            (Type::FixedList { item, .. }, Kind::FixedList { size, items }) => {
                Shape::FixedList(*size, item_layout(&item.data_type, items))
            }
            (Type::Map { key, value, .. }, Kind::List(items)) => {
                let pair = Type::Struct(vec![key.as_ref().clone(), value.as_ref().clone()]);
                Shape::Map(item_layout(&pair, items))
            }
            _ => Shape::Value(data_type.clone()),
        }
    }
}

fn item_layout(data_type: &Type, items: &Items) -> Box<ItemLayout> {
    let around = Around { bits_at: 0, present_bit: None };
    // The record of an item has a single field.
    let item = around.shape(data_type, &items.record.fields[0].kind);
    Box::new(ItemLayout { nullable: items.nullable, stride: items.record.stride, item })
}
