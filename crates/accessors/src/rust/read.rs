//! Classes that read objects in place.

use dray_format::Type;

use super::types::{Classes, item_bytes, number};
use super::{ALLOW, Names, Out};
use crate::{Class, ClassKind, Field, FieldKind, Items};

/// The struct of a class, and its getters.
pub(super) fn class(out: &mut Out<'_>, classes: &Classes<'_>, number: usize, class: &Class) {
    let (name, bytes) = (classes.name(number), classes.record_bytes(number));
    let what = match class.kind {
        ClassKind::Object => "An object.".to_owned(),
        ClassKind::Struct => format!("The struct `{}`.", class.path),
        ClassKind::Item(_) => format!("An item, `{}`.", class.path),
    };
    out.lines(&format!(
        "
        /// {what}
        #[allow(dead_code)]
        #[derive(Clone, Copy)]
        pub struct {name}<'a> {{
            extent: &'a [u8],
            record: &'a [u8; {bytes}],
        }}

        {ALLOW}
        impl<'a> {name}<'a> {{"
    ));
    let mut names = Names::of(&["of", "in_extent"]);
    if class.kind == ClassKind::Object {
        out.lines(
            "/// An object of a verified page.
            ///
            /// # Errors
            /// When it is of another schema.
            pub fn of(object: ::dray_page::Object<'a>) -> ::dray_page::Result<Self> {
                object.layout().check_schema(SCHEMA)?;
                Ok(Self::in_extent(object.bytes()))
            }

            #[inline(always)]
            fn in_extent(extent: &'a [u8]) -> Self {
                Self { extent, record: g::record(extent) }
            }
            ",
        );
    }
    let mut read = Vec::new();
    // A field's own name goes before what is added to others.
    let own: Vec<String> = class.fields.iter().map(|field| names.take(&field.identifier)).collect();
    for (field, name) in class.fields.iter().zip(own) {
        read.extend(getters(out, classes, field, name, &mut names));
    }
    out.lines("}");
    if let Some(bytes) = item_bytes(class).filter(|bytes| *bytes > 0) {
        out.lines(&format!(
            "
            impl<'a> g::Element<'a, {bytes}> for {name}<'a> {{
                #[inline(always)]
                fn of(extent: &'a [u8], record: &'a [u8; {bytes}]) -> Self {{
                    Self {{ extent, record }}
                }}
            }}"
        ));
    }
    debug(out, class, &name, &read);
}

/// What it prints is what its getters give.
fn debug(out: &mut Out<'_>, class: &Class, name: &str, getters: &[(String, String)]) {
    out.lines(&format!(
        "
        impl ::core::fmt::Debug for {name}<'_> {{
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{
                let mut shown = f.debug_struct({:?});",
        class.name
    ));
    for (shown, getter) in getters {
        out.lines(&format!("shown.field({shown:?}, &self.{getter}());"));
    }
    out.lines("shown.finish()\n}\n}");
}

/// The getters of a field. Returns the field's name and the main one.
fn getters(
    out: &mut Out<'_>,
    classes: &Classes<'_>,
    field: &Field,
    name: String,
    names: &mut Names,
) -> Option<(String, String)> {
    if matches!(field.kind, FieldKind::Value(Type::Null)) {
        return None;
    }
    getter(out, field, &name, &classes.value_type(&field.kind), &read(classes, field));
    if let FieldKind::Value(Type::Utf8) = field.kind {
        let name = names.take(&format!("{}_bytes", field.identifier));
        let read = format!("g::bytes(self.extent, self.record, {})", field.at);
        getter(out, field, &name, "&'a [u8]", &read);
    }
    Some((field.name.clone(), name))
}

fn getter(out: &mut Out<'_>, field: &Field, name: &str, value: &str, read: &str) {
    let mut what = format!("The field {:?}", field.name);
    if name.ends_with("_bytes") && value == "&'a [u8]" {
        what += ", without a check for UTF-8";
    }
    out.lines(&format!("/// {what}.\n#[inline(always)]"));
    match field.own_bit {
        None => {
            out.lines(&format!("pub fn {name}(&self) -> {value} {{\n{read}\n}}\n "));
        }
        Some(bit) => out.lines(&format!(
            "pub fn {name}(&self) -> Option<{value}> {{
                let is_present = g::is_set(self.record, {}, {});
                is_present.then(|| {read})
            }}
            ",
            bit.at, bit.mask
        )),
    }
}

/// The expression that reads a field which is present.
fn read(classes: &Classes<'_>, field: &Field) -> String {
    let at = field.at;
    match &field.kind {
        FieldKind::Value(Type::Boolean) => format!("g::word(self.record, {at}) == [1]"),
        FieldKind::Value(Type::Utf8) => format!("g::text(self.extent, self.record, {at})"),
        FieldKind::Value(Type::Binary) => format!("g::bytes(self.extent, self.record, {at})"),
        FieldKind::Value(other) => match number(other) {
            Some(number) => format!("{number}::from_le_bytes(g::word(self.record, {at}))"),
            None => format!("g::bytes_at(self.record, {at})"),
        },
        FieldKind::Struct(number) => {
            format!("{} {{ extent: self.extent, record: self.record }}", classes.name(*number))
        }
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            format!("g::{}(self.extent, self.record, {at})", list(items))
        }
    }
}

/// The function that reads a list.
fn list(items: &Items) -> &'static str {
    match items {
        Items { stride: 0, .. } => "marks",
        Items { nullable: true, .. } => "nullable_list",
        Items { nullable: false, .. } => "list",
    }
}
