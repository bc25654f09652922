//! Classes that build objects, and that change them in place.

use dray_format::Type;

use super::types::{Classes, mutator_type, write_type};
use super::{ALLOW, Names, Out};
use crate::{Class, ClassKind, Field, FieldKind, Items};

/// The mutators of a class's fields, as they are named in the struct of all mutators.
struct Mutators {
    own: String,
    /// Of a list of values: the mutator of an item.
    item: Option<String>,
}

impl Mutators {
    /// None if the field can't be written: it takes no bytes, or another has its name.
    fn of(classes: &Classes<'_>, number: usize, field: &Field) -> Option<Self> {
        classes.path(number, field)?;
        let own = format!("f{number}_{}", field.identifier);
        let item = |items: &Items| {
            let value = element_value(items)?;
            (*value != Type::Null).then(|| format!("{own}_item"))
        };
        let item = match &field.kind {
            FieldKind::Value(Type::Null) => return None,
            FieldKind::List(items) | FieldKind::FixedList(_, items) => item(items),
            _ => None,
        };
        Some(Self { own, item })
    }
}

fn element_value(items: &Items) -> Option<&Type> {
    match &*items.element {
        FieldKind::Value(data_type) => Some(data_type),
        _ => None,
    }
}

/// The struct with all mutators.
pub(super) fn fields(out: &mut Out<'_>, classes: &Classes<'_>) {
    let (mut declared, mut made) = (Vec::new(), Vec::new());
    let mut add = |name: &str, kind: &str, path: &[String]| {
        let path = path.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (of, make) = match kind {
            "" => ("ListMutator".to_owned(), "list_mutator"),
            kind => (format!("Mutator<{kind}>"), "mutator"),
        };
        declared.push(format!("{name}: ::dray_page::{of},"));
        made.push(format!("{name}: layout.{make}(&[{path}])?,"));
    };
    for (number, class) in classes.model.classes.iter().enumerate() {
        if let Some(path) = classes.nullable_item(number) {
            add(&format!("f{number}"), "()", path);
        }
        for field in &class.fields {
            let (Some(of), Some(path)) =
                (Mutators::of(classes, number, field), classes.path(number, field))
            else {
                continue;
            };
            match &field.kind {
                FieldKind::Value(data_type) => add(&of.own, &mutator_type(data_type), &path),
                FieldKind::Struct(_) => add(&of.own, "()", &path),
                FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
                    add(&of.own, "", &path);
                    if let (Some(item), Some(value)) = (&of.item, element_value(items)) {
                        let path = [path, vec!["[]".to_owned()]].concat();
                        add(item, &mutator_type(value), &path);
                    }
                }
            }
        }
    }
    let fields = &classes.fields;
    out.lines(&format!(
        "
        /// The mutators of all fields, which are looked up once.
        {ALLOW}
        pub struct {fields} {{
            layout: ::std::sync::Arc<::dray_page::Layout>,
            {}
        }}

        {ALLOW}
        impl {fields} {{
            fn new() -> ::dray_page::Result<Self> {{
                let layout = ::dray_page::Layout::decode(SCHEMA)?;
                Ok(Self {{
                    {}
                    layout,
                }})
            }}

            /// All mutators.
            ///
            /// # Errors
            /// Never, unless this code was changed.
            pub fn get() -> ::dray_page::Result<&'static Self> {{
                static FIELDS: ::std::sync::OnceLock<{fields}> = ::std::sync::OnceLock::new();
                match FIELDS.get() {{
                    Some(fields) => Ok(fields),
                    None => {{
                        let fields = Self::new()?;
                        Ok(FIELDS.get_or_init(|| fields))
                    }}
                }}
            }}

            /// The layout of the objects.
            pub fn layout(&self) -> &::std::sync::Arc<::dray_page::Layout> {{
                &self.layout
            }}
        }}",
        declared.join("\n"),
        made.join("\n"),
    ));
}

/// The class that builds an object, a struct or an item.
pub(super) fn builder(out: &mut Out<'_>, classes: &Classes<'_>, number: usize, class: &Class) {
    let name = format!("{}Builder", class.name);
    let fields = &classes.fields;
    out.lines(&format!(
        "
        /// Builds {}.
        {ALLOW}
        pub struct {name}<'b, 'r> {{
            object: &'b mut ::dray_page::ObjectBuilder<'r>,
            fields: &'static {fields},
        }}

        {ALLOW}
        impl<'r> {name}<'_, 'r> {{",
        described(class)
    ));
    let mut names = Names::of(&["build", "write"]);
    if class.kind == ClassKind::Object {
        out.lines(&format!(
            "/// Appends an object to a page. `build` writes its fields: strings and lists in the
            /// order of the schema, numbers in any order. What it does not write is missing if it
            /// may be, and otherwise 0 or empty.
            ///
            /// # Errors
            /// Those of `build`, and when there is no memory. Nothing is appended then.
            pub fn build(
                pages: &mut ::dray_page::PageBuilder,
                build: impl FnOnce(&mut {name}<'_, '_>) -> ::dray_page::Result<()>,
            ) -> ::dray_page::Result<()> {{
                let fields = {fields}::get()?;
                pages.build(|object| build(&mut {name} {{ object, fields }}))
            }}

            /// Appends an object to a page file, as `build` does to a page.
            ///
            /// # Errors
            /// Those of `build`, and when the file can't be written.
            pub fn write<W: ::std::io::Write>(
                file: &mut ::dray_pagefile::PageFileWriter<W>,
                build: impl FnOnce(&mut {name}<'_, '_>) -> ::dray_page::Result<()>,
            ) -> ::dray_pagefile::Result<()> {{
                let fields = {fields}::get()?;
                file.build(|object| build(&mut {name} {{ object, fields }}))
            }}
            "
        ));
    }
    if classes.nullable_item(number).is_some() {
        let name = names.take("set_present");
        method(
            out,
            "The item is not missing.",
            &format!("pub fn {name}(&mut self)"),
            &format!("self.object.set(&self.fields.f{number}, ())"),
        );
    }
    for field in &class.fields {
        if let Some(of) = Mutators::of(classes, number, field) {
            build_field(out, classes, field, &of, &mut names);
        }
    }
    out.lines("}");
}

fn described(class: &Class) -> String {
    match class.kind {
        ClassKind::Object => "an object".into(),
        ClassKind::Struct => format!("the struct `{}`", class.path),
        ClassKind::Item(_) => format!("an item, `{}`", class.path),
    }
}

/// A function that returns nothing or an error.
fn method(out: &mut Out<'_>, what: &str, head: &str, body: &str) {
    const LENGTH_MAX: usize = 65;
    let head = match head.split_once("(&mut self, ") {
        Some((name, arguments)) if head.len() > LENGTH_MAX => {
            let (arguments, end) = (arguments.replace(", ", ",\n"), ",\n)");
            format!("{name}(\n&mut self,\n{}{end}", arguments.trim_end_matches(')'))
        }
        _ => head.to_owned(),
    };
    out.lines(&format!(
        "/// {what}
        #[inline]
        {head} -> ::dray_page::Result<()> {{
            {body}
        }}
        "
    ));
}

fn build_field(
    out: &mut Out<'_>,
    classes: &Classes<'_>,
    field: &Field,
    of: &Mutators,
    names: &mut Names,
) {
    let (own, shown) = (&of.own, format!("the field {:?}", field.name));
    match &field.kind {
        FieldKind::Value(data_type) => {
            let name = names.take(&format!("set_{}", field.identifier));
            method(
                out,
                &format!("Sets {shown}."),
                &format!("pub fn {name}(&mut self, value: {})", write_type(data_type)),
                &format!("self.object.set(&self.fields.{own}, value)"),
            );
        }
        FieldKind::Struct(inner) => {
            let name = names.take(&field.identifier);
            let class = format!("{}Builder", classes.class(*inner).name);
            out.lines(&format!(
                "/// Builds {shown}.
                #[inline]
                pub fn {name}(&mut self) -> {class}<'_, 'r> {{
                    {class} {{ object: self.object, fields: self.fields }}
                }}
                "
            ));
            present(out, field, own, names, "self.object");
        }
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            build_list(out, classes, field, (own, of.item.as_deref()), items, names);
        }
    }
}

/// The function that makes a struct present.
fn present(out: &mut Out<'_>, field: &Field, own: &str, names: &mut Names, target: &str) {
    if field.own_bit.is_some() {
        let name = names.take(&format!("set_{}", field.identifier));
        method(
            out,
            &format!("The field {:?} is not missing.", field.name),
            &format!("pub fn {name}(&mut self)"),
            &format!("{target}.set(&self.fields.{own}, ())"),
        );
    }
}

fn build_list(
    out: &mut Out<'_>,
    classes: &Classes<'_>,
    field: &Field,
    (own, item): (&str, Option<&str>),
    items: &Items,
    names: &mut Names,
) {
    let shown = format!("the list {:?}", field.name);
    if let (Some(item), Some(data_type)) = (item, element_value(items)) {
        let name = names.take(&format!("set_{}", field.identifier));
        let value = write_type(data_type).replace('&', "&'v ");
        let lifetime = if value.contains('\'') { "<'v>" } else { "" };
        let (value, values) = match items.nullable {
            true => (format!("Option<{value}>"), "optional_values"),
            false => (value, "values"),
        };
        return out.lines(&format!(
            "/// Writes {shown}.
            #[inline]
            pub fn {name}{lifetime}(
                &mut self,
                values: impl IntoIterator<Item = {value}, IntoIter: ExactSizeIterator>,
            ) -> ::dray_page::Result<()> {{
                let fields = self.fields;
                self.object.{values}(&fields.{own}, &fields.{item}, values)
            }}
            "
        ));
    }
    let name = names.take(&field.identifier);
    let (class, made) = match &*items.element {
        FieldKind::Struct(inner) => {
            let class = format!("{}Builder", classes.class(*inner).name);
            (format!("{class}<'_, '_>"), format!("&mut {class} {{ object, fields }}"))
        }
        _ => ("::dray_page::ObjectBuilder<'_>".to_owned(), "object".to_owned()),
    };
    out.lines(&format!(
        "/// Writes {shown} of `count` items. `each` writes one, given its number.
        #[inline]
        pub fn {name}(
            &mut self,
            count: usize,
            mut each: impl FnMut(&mut {class}, usize) -> ::dray_page::Result<()>,
        ) -> ::dray_page::Result<()> {{
            let fields = self.fields;
            self.object.list(&fields.{own}, count, |object, i| {{
                each({made}, i)
            }})
        }}
        "
    ));
}

/// The class that changes an object, a struct or an item in place.
pub(super) fn changes(out: &mut Out<'_>, classes: &Classes<'_>, number: usize, class: &Class) {
    let (name, read) = (format!("{}Mut", class.name), classes.name(number));
    let (fields, bytes) = (&classes.fields, classes.record_bytes(number));
    out.lines(&format!(
        "
        /// Changes {} in place.
        {ALLOW}
        pub struct {name}<'e> {{
            item: ::dray_page::ItemMut<'e>,
            fields: &'static {fields},
        }}

        {ALLOW}
        impl<'e> {name}<'e> {{",
        described(class)
    ));
    let mut names = Names::of(&["of", "as_ref"]);
    if class.kind == ClassKind::Object {
        out.lines(&format!(
            "/// Object `i` of a page, if there is one.
            ///
            /// # Errors
            /// When the page's objects are of another schema.
            pub fn of(
                editor: &'e mut ::dray_page::PageEditor,
                i: usize,
            ) -> ::dray_page::Result<Option<Self>> {{
                editor.layout().check_schema(SCHEMA)?;
                let fields = {fields}::get()?;
                Ok(editor.object_mut(i).map(|item| Self {{ item, fields }}))
            }}
            "
        ));
    }
    out.lines(&format!(
        "/// What it is now. An item that is missing is read as 0 and empty.
        #[inline]
        pub fn as_ref(&self) -> {read}<'_> {{
            let (extent, record) = g::of_item(&self.item);
            {read} {{ extent, record: g::record::<{bytes}>(record) }}
        }}
        "
    ));
    if classes.nullable_item(number).is_some() {
        for (name, call) in
            [("set_present", "set(&self.fields.$, ())"), ("clear", "clear(&self.fields.$)")]
        {
            let name = names.take(name);
            let call = call.replace('$', &format!("f{number}"));
            let what =
                if name == "clear" { "The item is missing." } else { "The item is not missing." };
            method(out, what, &format!("pub fn {name}(&mut self)"), &format!("self.item.{call}"));
        }
    }
    for field in &class.fields {
        if let Some(of) = Mutators::of(classes, number, field) {
            change_field(out, classes, field, &of, &mut names);
        }
    }
    out.lines("}");
}

fn change_field(
    out: &mut Out<'_>,
    classes: &Classes<'_>,
    field: &Field,
    of: &Mutators,
    names: &mut Names,
) {
    let (own, id, shown) = (&of.own, &field.identifier, format!("the field {:?}", field.name));
    let mut clear = "clear";
    match &field.kind {
        FieldKind::Value(data_type) => {
            let name = names.take(&format!("set_{id}"));
            method(
                out,
                &format!("Changes {shown}."),
                &format!("pub fn {name}(&mut self, value: {})", write_type(data_type)),
                &format!("self.item.set(&self.fields.{own}, value)"),
            );
        }
        FieldKind::Struct(inner) => {
            let name = names.take(id);
            let class = format!("{}Mut", classes.class(*inner).name);
            out.lines(&format!(
                "/// Changes what is in {shown}, which becomes present.
                #[inline]
                pub fn {name}(&mut self) -> {class}<'_> {{
                    {class} {{ item: self.item.reborrow(), fields: self.fields }}
                }}
                "
            ));
            present(out, field, own, names, "self.item");
        }
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            clear = "clear_list";
            let sized = matches!(field.kind, FieldKind::FixedList(..));
            change_list(out, classes, field, (own, of.item.as_deref(), sized), items, names);
        }
    }
    if field.own_bit.is_some() {
        let name = names.take(&format!("clear_{id}"));
        method(
            out,
            &format!("Makes {shown} missing."),
            &format!("pub fn {name}(&mut self)"),
            &format!("self.item.{clear}(&self.fields.{own})"),
        );
    }
}

fn change_list(
    out: &mut Out<'_>,
    classes: &Classes<'_>,
    field: &Field,
    (own, item, sized): (&str, Option<&str>, bool),
    items: &Items,
    names: &mut Names,
) {
    let (id, shown) = (&field.identifier, format!("the list {:?}", field.name));
    if !sized {
        let name = names.take(&format!("splice_{id}"));
        method(
            out,
            &format!("Replaces items of {shown} by `count` new ones, missing, 0 or empty."),
            &format!("pub fn {name}(&mut self, items: ::core::ops::Range<usize>, count: usize)"),
            &format!("self.item.splice(&self.fields.{own}, items, count)"),
        );
    }
    if let (Some(item), Some(data_type)) = (item, element_value(items)) {
        let name = names.take(&format!("set_{id}_item"));
        method(
            out,
            &format!("Changes item `i` of {shown}."),
            &format!("pub fn {name}(&mut self, i: usize, value: {})", write_type(data_type)),
            &format!("self.item.set_item(&self.fields.{own}, i, &self.fields.{item}, value)"),
        );
        if items.nullable {
            let name = names.take(&format!("clear_{id}_item"));
            method(
                out,
                &format!("Makes item `i` of {shown} missing."),
                &format!("pub fn {name}(&mut self, i: usize)"),
                &format!("self.item.clear_item(&self.fields.{own}, i, &self.fields.{item})"),
            );
        }
        return;
    }
    let name = names.take(&format!("{id}_item"));
    let (class, made) = match &*items.element {
        FieldKind::Struct(inner) => {
            let class = format!("{}Mut", classes.class(*inner).name);
            (format!("{class}<'_>"), format!(".map(|item| {class} {{ item, fields }})"))
        }
        _ => ("::dray_page::ItemMut<'_>".to_owned(), String::new()),
    };
    let fields = if made.is_empty() { "" } else { "let fields = self.fields;\n" };
    out.lines(&format!(
        "/// Item `i` of {shown}, if there is one.
        #[inline]
        pub fn {name}(&mut self, i: usize) -> Option<{class}> {{
            {fields}self.item.item(&self.fields.{own}, i){made}
        }}
        "
    ));
}
