//! Rust: one module for a schema.
//!
//! ```text
//! CustomerFile ──▶ CustomerPage ──▶ Customer ──▶ fields, lists of items: positions compiled in
//! PageBuilder, PageFileWriter ──▶ CustomerBuilder ─┐
//! PageEditor ──▶ CustomerMut ──────────────────────┴▶ Fields: mutators, looked up once
//! ```
//!
//! The code depends on `dray-page` and `dray-pagefile`, and has no unsafe code.

mod read;
mod types;
mod write;

use std::collections::HashSet;
use std::fmt::Write;

use crate::model::unique;
use crate::{Model, Source};
use types::{Classes, ident};

/// The source files of a module. `namespace` is the module's name.
pub(crate) fn sources(model: &Model, namespace: &str) -> Vec<Source> {
    let mut text = String::new();
    let classes = Classes::of(model);
    let mut out = Out { text: &mut text, indent: 0 };
    module(&mut out, model, &classes);
    vec![Source { path: format!("{}.rs", ident(namespace)), text }]
}

/// Text that is written line by line.
struct Out<'t> {
    text: &'t mut String,
    indent: usize,
}

impl Out<'_> {
    /// Writes lines. One that ends with an opening bracket indents what follows, and one that
    /// begins with a closing bracket ends that.
    fn lines(&mut self, lines: &str) {
        for line in lines.lines() {
            let line = line.trim();
            if line.starts_with(['}', ')', ']']) {
                self.indent = self.indent.saturating_sub(1);
            }
            if !line.is_empty() {
                self.text.extend(std::iter::repeat_n("    ", self.indent));
            }
            self.text.push_str(line);
            self.text.push('\n');
            if line.ends_with(['{', '(', '[']) {
                self.indent += 1;
            }
        }
    }
}

/// Names that no two functions of a type may have.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn of(reserved: &[&str]) -> Self {
        Self(reserved.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The name, or the name with a number, as an identifier.
    fn take(&mut self, name: &str) -> String {
        ident(&unique(&mut self.0, name.to_owned()))
    }
}

/// Attributes of what a program may not use, or may find badly named.
const ALLOW: &str = "#[allow(dead_code, non_snake_case, clippy::all)]";

fn module(out: &mut Out<'_>, model: &Model, classes: &Classes<'_>) {
    out.lines(
        "// Written by `dray accessors` for one schema. Write it anew rather than change it.

        #[allow(unused_imports)]
        use ::dray_page::generated as g;

        /// The schema, as Dray encodes it.",
    );
    constant(out, "SCHEMA: &[u8] = &", &model.schema);
    out.lines("\n/// The SHA-256 of the schema, by which a file is known.");
    constant(out, "SCHEMA_DIGEST: [u8; 32] = ", &model.schema_digest);
    for (number, class) in model.classes.iter().enumerate() {
        read::class(out, classes, number, class);
    }
    if !model.classes.is_empty() {
        page(out, classes);
        file(out, model, classes);
        write::fields(out, classes);
        for (number, class) in model.classes.iter().enumerate() {
            write::builder(out, classes, number, class);
            write::changes(out, classes, number, class);
        }
    }
}

fn constant(out: &mut Out<'_>, declared: &str, bytes: &[u8]) {
    out.lines(&format!("#[allow(dead_code)]\npub const {declared}["));
    for line in bytes.chunks(16) {
        let mut text = String::new();
        line.iter().for_each(|byte| _ = write!(text, "{byte}, "));
        out.lines(text.trim_end());
    }
    out.lines("];");
}

/// The objects of a verified page.
fn page(out: &mut Out<'_>, classes: &Classes<'_>) {
    let (name, page) = (&classes.name(0), &classes.page);
    out.lines(&format!(
        "
        /// The objects of a page.
        #[allow(dead_code)]
        #[derive(Clone, Copy)]
        pub struct {page}<'a> {{
            page: &'a ::dray_page::VerifiedPage,
        }}

        {ALLOW}
        impl<'a> {page}<'a> {{
            /// The objects of a page that was verified.
            ///
            /// # Errors
            /// When they are of another schema.
            pub fn of(page: &'a ::dray_page::VerifiedPage) -> ::dray_page::Result<Self> {{
                page.layout().check_schema(SCHEMA)?;
                Ok(Self {{ page }})
            }}

            /// The number of objects.
            pub fn len(&self) -> usize {{
                self.page.len()
            }}

            /// Object `i`, if there is one.
            #[inline]
            pub fn get(&self, i: usize) -> Option<{name}<'a>> {{
                self.page.object(i).map(|object| {name}::in_extent(object.bytes()))
            }}

            /// All objects, in order.
            #[inline]
            pub fn iter(&self) -> impl ExactSizeIterator<Item = {name}<'a>> + Clone + use<'a> {{
                self.page.objects().map(|object| {name}::in_extent(object.bytes()))
            }}
        }}
        "
    ));
}

/// A file of objects.
fn file(out: &mut Out<'_>, model: &Model, classes: &Classes<'_>) {
    let (name, page, file) = (&classes.name(0), &classes.page, &classes.file);
    out.lines(&format!(
        "
        /// A file of objects.
        #[allow(dead_code)]
        #[derive(Debug)]
        pub struct {file} {{
            file: ::dray_pagefile::PageFile,
        }}

        {ALLOW}
        impl {file} {{
            /// Maps a file.
            ///
            /// # Errors
            /// When it can't be read, or has another schema than this code was made for.
            pub fn open(path: impl AsRef<::std::path::Path>) -> ::dray_pagefile::Result<Self> {{
                let file = ::dray_pagefile::PageFile::open_for(path, &SCHEMA_DIGEST)?;
                Ok(Self {{ file }})
            }}

            /// The file itself.
            pub fn file(&self) -> &::dray_pagefile::PageFile {{
                &self.file
            }}

            /// The number of objects.
            pub fn len(&self) -> u64 {{
                self.file.len()
            }}

            /// The object with this number.
            ///
            /// # Errors
            /// When there is none, or its page is damaged.
            #[inline]
            pub fn get(&self, ordinal: u64) -> ::dray_pagefile::Result<{name}<'_>> {{
                Ok({name}::in_extent(self.file.object(ordinal)?.bytes()))
            }}

            /// All pages, in order. Each is checked when it comes for the first time.
            pub fn pages(
                &self,
            ) -> impl ExactSizeIterator<Item = ::dray_pagefile::Result<{page}<'_>>> {{
                self.file.pages().map(|page| page.map(|page| {page} {{ page }}))
            }}

            /// All objects, in order. A page that is damaged is an error in place of its objects.
            pub fn iter(&self) -> impl Iterator<Item = ::dray_pagefile::Result<{name}<'_>>> {{
                self.pages().flat_map(|page| {{
                    let (page, error) = match page {{
                        Ok(page) => (Some(page), None),
                        Err(error) => (None, Some(Err(error))),
                    }};
                    page.into_iter().flat_map(|page| page.iter().map(Ok)).chain(error)
                }})
            }}
        "
    ));
    find(out, model, classes);
    out.lines("}");
}

/// The search by the key that the file's index finds.
fn find(out: &mut Out<'_>, model: &Model, classes: &Classes<'_>) {
    let parts: Option<Vec<_>> = model.key.iter().map(|path| classes.key_part(path)).collect();
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else { return };
    let mut names = Names::of(&["self", "KEY"]);
    let (mut arguments, mut values, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    for (part, path) in parts.iter().zip(&model.key) {
        let name = names.take(&part.identifier);
        arguments.push(format!("{name}: {},", part.taken));
        values.push(format!("::dray_pagefile::KeyValue::{},", part.value.replace('$', &name)));
        let path = path.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        paths.push(format!("&[{path}],"));
    }
    out.lines(&format!(
        "
            /// The objects with this key, in the order of their numbers.
            ///
            /// # Errors
            /// When the file has no index of this key, or a page is damaged.
            pub fn find(
                &self,
                {}
            ) -> ::dray_pagefile::Result<Vec<{}<'_>>> {{
                const KEY: &[&[&str]] = &[
                    {}
                ];
                let values = [
                    {}
                ];
                let found = self.file.find_by(KEY, &values)?;
                found.into_iter().map(|ordinal| self.get(ordinal)).collect()
            }}
        ",
        arguments.join("\n"),
        classes.name(0),
        paths.join("\n"),
        values.join("\n"),
    ));
}
