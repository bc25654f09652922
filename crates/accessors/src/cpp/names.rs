//! Names that C++ takes.

use std::collections::HashSet;

use crate::model::Model;

/// The keywords of C++20, and the names that are taken in each class.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dray",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "schema",
    "schema_digest",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "std",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// The classes of the runtime that generated code names without their namespace.
const BASES: [&str; 5] = ["ObjectFile", "ObjectView", "RecordEditor", "RecordView", "RecordWriter"];

/// The names of a model's classes and fields. A name that C++ does not take, or that has a meaning
/// there already, gets underscores at its end.
pub(super) struct Names {
    classes: Vec<String>,
    fields: Vec<Vec<String>>,
    keys: Vec<String>,
    writers: Vec<String>,
    editors: Vec<String>,
    pub(super) page: String,
    pub(super) file: String,
    pub(super) builder: String,
    pub(super) page_editor: String,
}

impl Names {
    pub(super) fn of(model: &Model) -> Self {
        let mut taken: HashSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
        taken.extend(BASES.map(str::to_owned));
        let classes: Vec<String> =
            model.classes.iter().map(|class| unique(&mut taken, plain(&class.name))).collect();
        let object = classes.first().cloned().unwrap_or_default();
        let page = unique(&mut taken, format!("{object}Page"));
        let file = unique(&mut taken, format!("{object}File"));
        let builder = unique(&mut taken, format!("{object}Builder"));
        let page_editor = unique(&mut taken, format!("{object}PageEditor"));
        let mut with = |suffix: &str| {
            classes.iter().map(|name| unique(&mut taken, format!("{name}{suffix}"))).collect()
        };
        let (writers, editors) = (with("Writer"), with("Editor"));
        // A getter with the name of a class would hide it.
        let fields = model.classes.iter().map(|class| {
            let mut taken = taken.clone();
            class.fields.iter().map(|field| unique(&mut taken, plain(&field.identifier))).collect()
        });
        let fields = fields.collect();
        let keys = model.key.iter().map(|path| {
            let name = path.join("_");
            let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
            unique(&mut taken, plain(&format!("{}_", letters.collect::<String>())))
        });
        let keys = keys.collect();
        Self { classes, fields, keys, writers, editors, page, file, builder, page_editor }
    }

    pub(super) fn class(&self, number: usize) -> &str {
        self.classes.get(number).map_or("", String::as_str)
    }

    pub(super) fn writer(&self, number: usize) -> &str {
        self.writers.get(number).map_or("", String::as_str)
    }

    pub(super) fn editor(&self, number: usize) -> &str {
        self.editors.get(number).map_or("", String::as_str)
    }

    pub(super) fn field(&self, class: usize, field: usize) -> &str {
        self.fields.get(class).and_then(|fields| fields.get(field)).map_or("", String::as_str)
    }

    /// The parameter for a field of the key.
    pub(super) fn key(&self, part: usize) -> String {
        self.keys.get(part).cloned().unwrap_or_default()
    }
}

/// The name without what C++ reserves anywhere: two underscores, and one before a capital.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        if c != '_' || !plain.ends_with('_') {
            plain.push(c);
        }
    }
    match plain.as_bytes() {
        [first, ..] if first.is_ascii_digit() => format!("n{plain}"),
        [b'_', next, ..] if !next.is_ascii_lowercase() => format!("n{plain}"),
        [] | [b'_'] => "n_".to_owned(),
        _ => plain,
    }
}

fn unique(taken: &mut HashSet<String>, name: String) -> String {
    if taken.insert(name.clone()) {
        return name;
    }
    let base = name.trim_end_matches('_').to_owned();
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let candidates = std::iter::once(format!("{base}_")).chain(numbered);
    let unique = candidates.into_iter().find(|name| taken.insert(name.clone()));
    unique.unwrap_or(name)
}

/// The namespace, with each of its names as C++ takes it.
pub(super) fn namespace(namespace: &str) -> String {
    let name = |name: &str| {
        let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let name = plain(&letters.collect::<String>());
        let taken = RESERVED.contains(&name.as_str());
        if taken { format!("{name}_") } else { name }
    };
    namespace.split("::").map(name).collect::<Vec<_>>().join("::")
}
