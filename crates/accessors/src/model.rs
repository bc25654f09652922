//! A schema as classes, whatever the language.

use std::collections::HashSet;

use dray_format::Type;
use dray_page::{FieldLayout, ItemLayout, Layout, Shape, ValidityBit};
use dray_pagefile::{KeyPath, PageFile};

/// The classes of a schema.
#[derive(Debug, Clone)]
pub struct Model {
    /// The schema, encoded as types.md says.
    pub schema: Vec<u8>,
    /// Its SHA-256, by which a file is known.
    pub schema_digest: [u8; 32],
    /// The fields of the key that the file's index finds; empty without an index.
    pub key: Vec<KeyPath>,
    /// The bytes of an object without its tails.
    pub record_bytes: usize,
    /// The class of the objects comes first, and each class before those that it mentions.
    pub classes: Vec<Class>,
}

/// A class: an object, a struct, or the struct that an item of a list is.
#[derive(Debug, Clone)]
pub struct Class {
    /// A name that no other class has, in the form `OrdersItem`.
    pub name: String,
    /// Where its values are, such as `orders.[].supplier`; empty for the objects.
    pub path: String,
    /// What it is.
    pub kind: ClassKind,
    /// Its fields, in the order of the schema.
    pub fields: Vec<Field>,
}

/// What a class is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassKind {
    /// The objects. Positions are counted from the start of the object.
    Object,
    /// A struct. Positions are counted from the start of the record that it is part of.
    Struct,
    /// The item of a list or map, of as many bytes. Positions are counted from its start.
    Item(usize),
}

/// A field of a class.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name in the schema.
    pub name: String,
    /// A name that no other field of the class has: ASCII letters, digits and underscores, not
    /// beginning with a digit. It may be a keyword of a language.
    pub identifier: String,
    /// Its offset from the start of the record.
    pub at: usize,
    /// Its own validity bit, if it may be missing by itself.
    pub own_bit: Option<ValidityBit>,
    /// The bit that is set if and only if it is present: its own, or that of a struct around it.
    pub present_bit: Option<ValidityBit>,
    /// What it is.
    pub kind: FieldKind,
}

/// What a field or an item is.
#[derive(Debug, Clone)]
pub enum FieldKind {
    /// A value that is neither a struct nor a list; dictionaries are what their values are.
    Value(Type),
    /// A struct: the number of its class in [`Model::classes`].
    Struct(usize),
    /// A list with any number of items, at offset and count (page.md section 5).
    List(Items),
    /// A list with this number of items if it is present.
    FixedList(usize, Items),
    /// A list whose items are a class with two fields, key and value.
    Map(Items),
}

/// The items of a list.
#[derive(Debug, Clone)]
pub struct Items {
    /// Whether a bitmap lies before them, because they may be missing.
    pub nullable: bool,
    /// The bytes from one item to the next.
    pub stride: usize,
    /// What each is.
    pub element: Box<FieldKind>,
}

impl Model {
    /// The classes of a file's objects, which are called `name`.
    pub fn of_file(file: &PageFile, name: &str) -> Self {
        let key = file.key().into_iter().map(|(path, _)| path.clone()).collect();
        Self { key, ..Self::new(file.layout(), file.schema_bytes(), *file.schema_digest(), name) }
    }

    /// The classes of a layout whose schema has these bytes and this digest.
    fn new(layout: &Layout, schema: &[u8], schema_digest: [u8; 32], name: &str) -> Self {
        let mut classes = Classes::default();
        classes.add(&class_name(name), String::new(), ClassKind::Object, &layout.fields());
        Self {
            schema: schema.to_vec(),
            schema_digest,
            key: Vec::new(),
            record_bytes: layout.record_bytes(),
            classes: classes.classes,
        }
    }
}

/// The classes that were found so far.
#[derive(Default)]
struct Classes {
    classes: Vec<Class>,
    names: HashSet<String>,
}

impl Classes {
    /// Adds a class and all that it mentions, and returns its number.
    fn add(&mut self, name: &str, path: String, kind: ClassKind, fields: &[FieldLayout]) -> usize {
        let number = self.classes.len();
        let name = unique(&mut self.names, name.to_owned());
        self.classes.push(Class { name, path: path.clone(), kind, fields: Vec::new() });
        let mut identifiers = HashSet::new();
        let fields = fields
            .iter()
            .map(|field| Field {
                name: field.name.clone(),
                identifier: unique(&mut identifiers, identifier(&field.name)),
                at: field.at,
                own_bit: field.own_bit,
                present_bit: field.present_bit,
                kind: self.kind(&field.shape, &field.name, &joined(&path, &field.name)),
            })
            .collect();
        self.classes[number].fields = fields;
        number
    }

    fn kind(&mut self, shape: &Shape, name: &str, path: &str) -> FieldKind {
        match shape {
            Shape::Value(data_type) => FieldKind::Value(data_type.clone()),
            Shape::Struct(fields) => FieldKind::Struct(self.add(
                &class_name(name),
                path.to_owned(),
                ClassKind::Struct,
                fields,
            )),
            Shape::List(items) => FieldKind::List(self.items(items, name, path)),
            Shape::FixedList(size, items) => {
                FieldKind::FixedList(*size, self.items(items, name, path))
            }
            Shape::Map(items) => FieldKind::Map(self.items(items, name, path)),
        }
    }

    fn items(&mut self, items: &ItemLayout, name: &str, path: &str) -> Items {
        let (name, path) = (format!("{name}_item"), joined(path, "[]"));
        let element = match &items.item {
            Shape::Struct(fields) => FieldKind::Struct(self.add(
                &class_name(&name),
                path,
                ClassKind::Item(items.stride),
                fields,
            )),
            other => self.kind(other, &name, &path),
        };
        Items { nullable: items.nullable, stride: items.stride, element: Box::new(element) }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The name, or the name with a number that nothing else has.
pub(crate) fn unique(taken: &mut HashSet<String>, name: String) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let unique = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let unique = unique.unwrap_or(name);
    taken.insert(unique.clone());
    unique
}

/// The name as an identifier: letters, digits and underscores of ASCII.
pub(crate) fn identifier(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(kept).collect();
    match name.chars().next() {
        None => "unnamed".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
    }
}

/// The name in the form `OrdersItem`.
fn class_name(name: &str) -> String {
    let words = identifier(name);
    let words = words.split('_').filter(|word| !word.is_empty());
    let name: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    match name.chars().next() {
        None => "Unnamed".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("N{name}"),
        Some(_) => name,
    }
}

#[cfg(test)]
mod tests;
