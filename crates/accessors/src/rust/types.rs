//! How names and types of a schema are written in Rust.

use crate::model::unique;
use std::collections::HashSet;

use dray_format::Type;

use crate::{Class, ClassKind, Field, FieldKind, Items, Model};

/// The keywords that can't be raw identifiers.
const NEVER: [&str; 5] = ["self", "Self", "super", "crate", "_"];
const KEYWORDS: &str = "as async await break const continue dyn else enum extern false fn for gen \
                        if impl in let loop match mod move mut pub ref return static struct trait \
                        true type unsafe use where while abstract become box do final macro \
                        override priv try typeof unsized virtual yield";

/// A name as an identifier of Rust.
pub(super) fn ident(name: &str) -> String {
    match name {
        name if NEVER.contains(&name) => format!("{name}_"),
        name if KEYWORDS.split_whitespace().any(|keyword| keyword == name) => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// The classes of a model, with what Rust needs to know of them.
pub(super) struct Classes<'m> {
    pub model: &'m Model,
    pub page: String,
    pub file: String,
    pub fields: String,
    of: Vec<Known>,
}

/// What is known of a class.
#[derive(Clone, Default)]
struct Known {
    /// The bytes of the record that it is, or is part of.
    record_bytes: usize,
    /// The path of its fields, or none if there are several of that path.
    path: Option<Vec<String>>,
    /// Whether it is the item of a list whose items may be missing; then the path of the item.
    nullable_item: Option<Vec<String>>,
}

/// A part of a key.
pub(super) struct KeyPart {
    pub identifier: String,
    /// The type of the argument.
    pub taken: String,
    /// The variant of `KeyValue`, with `$` for the argument.
    pub value: &'static str,
}

impl<'m> Classes<'m> {
    pub fn of(model: &'m Model) -> Self {
        let mut names: HashSet<String> =
            model.classes.iter().map(|class| class.name.clone()).collect();
        for class in &model.classes {
            names.extend([format!("{}Builder", class.name), format!("{}Mut", class.name)]);
        }
        let root = model.classes.first().map_or("", |class| class.name.as_str());
        let mut take = |suffix: &str| unique(&mut names, format!("{root}{suffix}"));
        let (page, file, fields) = (take("Page"), take("File"), take("Fields"));
        let of = vec![Known::default(); model.classes.len()];
        let mut classes = Self { model, page, file, fields, of };
        if let Some(root) = classes.of.first_mut() {
            *root = Known {
                record_bytes: model.record_bytes,
                path: Some(Vec::new()),
                nullable_item: None,
            };
        }
        // Each class is before those that it mentions.
        for number in 0..model.classes.len() {
            classes.note_fields(number);
        }
        classes
    }

    /// Notes what is known of the classes that a class mentions.
    fn note_fields(&mut self, number: usize) {
        let class = &self.model.classes[number];
        for field in &class.fields {
            let path = self.path(number, field);
            match &field.kind {
                FieldKind::Struct(inner) => {
                    let record_bytes = self.of[number].record_bytes;
                    self.of[*inner] = Known { record_bytes, path, nullable_item: None };
                }
                FieldKind::List(items) | FieldKind::FixedList(_, items) => {
                    self.note_items(path, items, false)
                }
                FieldKind::Map(items) => self.note_items(path, items, true),
                FieldKind::Value(_) => {}
            }
        }
    }

    fn note_items(&mut self, path: Option<Vec<String>>, items: &Items, is_map: bool) {
        let item_path = path.clone().map(|path| [path, vec!["[]".to_owned()]].concat());
        match &*items.element {
            FieldKind::Struct(inner) => {
                self.of[*inner] = Known {
                    record_bytes: items.stride,
                    path: if is_map { path } else { item_path.clone() },
                    nullable_item: item_path.filter(|_| items.nullable),
                };
            }
            FieldKind::List(items) | FieldKind::FixedList(_, items) => {
                self.note_items(item_path, items, false)
            }
            FieldKind::Map(items) => self.note_items(item_path, items, true),
            FieldKind::Value(_) => {}
        }
    }

    /// The path of a field, if no other field has it.
    pub fn path(&self, number: usize, field: &Field) -> Option<Vec<String>> {
        let class = &self.model.classes[number];
        let named = class.fields.iter().filter(|other| other.name == field.name).count();
        let path = self.of[number].path.clone().filter(|_| named == 1)?;
        Some([path, vec![field.name.clone()]].concat())
    }

    /// The path of a class's items, if they may be missing.
    pub fn nullable_item(&self, number: usize) -> Option<&[String]> {
        self.of[number].nullable_item.as_deref()
    }

    /// The bytes of the record that a class is, or is part of.
    pub fn record_bytes(&self, number: usize) -> usize {
        self.of[number].record_bytes
    }

    pub fn class(&self, number: usize) -> &'m Class {
        &self.model.classes[number]
    }

    /// A class's name. `Self` is the only one that is a keyword.
    pub fn name(&self, number: usize) -> String {
        ident(&self.class(number).name)
    }

    /// The type of a value.
    pub fn value_type(&self, kind: &FieldKind) -> String {
        match kind {
            FieldKind::Value(data_type) => read_type(data_type),
            FieldKind::Struct(number) => format!("{}<'a>", self.name(*number)),
            FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
                self.list_type(items)
            }
        }
    }

    fn list_type(&self, items: &Items) -> String {
        let Items { nullable, stride, element } = items;
        if *stride == 0 {
            return format!("g::Marks<'a, {nullable}>");
        }
        let list = if *nullable { "NullableList" } else { "List" };
        format!("g::{list}<'a, {}, {stride}>", self.value_type(element))
    }

    /// The part of a key with this path.
    pub fn key_part(&self, path: &[String]) -> Option<KeyPart> {
        let (mut class, mut found) = (self.class(0), None);
        for name in path {
            let field = class.fields.iter().find(|field| field.name == *name)?;
            if let FieldKind::Struct(inner) = &field.kind {
                class = self.class(*inner);
            }
            found = Some(field);
        }
        let field = found?;
        let FieldKind::Value(data_type) = &field.kind else { return None };
        let value = match data_type {
            Type::Boolean => "Bool($)",
            Type::Utf8 => "Bytes($.as_bytes().to_vec())",
            Type::Binary => "Bytes($.to_vec())",
            other => match number(other) {
                Some("f32" | "f64") => "Bytes($.to_le_bytes().to_vec())",
                Some(_) => "Integer($.into())",
                None => "Bytes($.to_vec())",
            },
        };
        let taken = write_type(data_type).replace("[u8;", "&[u8;");
        Some(KeyPart { identifier: field.identifier.clone(), taken, value })
    }
}

/// The number of Rust that a type is stored as.
pub(super) fn number(data_type: &Type) -> Option<&'static str> {
    use Type::*;
    Some(match data_type {
        Int8 => "i8",
        Int16 => "i16",
        Int32 | Date32 | Time32(_) | IntervalMonths | Decimal32 { .. } => "i32",
        Int64 | Date64 | Time64(_) | Timestamp { .. } | Duration(_) | Decimal64 { .. } => "i64",
        Decimal128 { .. } => "i128",
        UInt8 => "u8",
        UInt16 => "u16",
        UInt32 => "u32",
        UInt64 => "u64",
        Float32 => "f32",
        Float64 => "f64",
        _ => return None,
    })
}

/// The type that a value is read as.
fn read_type(data_type: &Type) -> String {
    match data_type {
        Type::Boolean => "bool".into(),
        Type::Utf8 => "&'a str".into(),
        Type::Binary => "&'a [u8]".into(),
        other => match number(other) {
            Some(number) => number.into(),
            None => format!("&'a [u8; {}]", other.width().unwrap_or(0)),
        },
    }
}

/// The type that a value is written as.
pub(super) fn write_type(data_type: &Type) -> String {
    match data_type {
        Type::Utf8 => "&str".into(),
        Type::Binary => "&[u8]".into(),
        other => mutator_type(other),
    }
}

/// The type of its mutator.
pub(super) fn mutator_type(data_type: &Type) -> String {
    match data_type {
        Type::Boolean => "bool".into(),
        Type::Utf8 => "str".into(),
        Type::Binary => "[u8]".into(),
        other => match number(other) {
            Some(number) => number.into(),
            None => format!("[u8; {}]", other.width().unwrap_or(0)),
        },
    }
}

/// Whether a class is an item of a list.
pub(super) fn item_bytes(class: &Class) -> Option<usize> {
    match class.kind {
        ClassKind::Item(bytes) => Some(bytes),
        _ => None,
    }
}
