//! Names of Java: in camel case, no keywords, each once.

use std::collections::HashSet;

use dray_pagefile::KeyPath;

use crate::{Class, Model};

/// Words that no method or parameter is called, and methods of every object.
const RESERVED: &[&str] = &[
    "abstract",
    "assert",
    "boolean",
    "break",
    "byte",
    "case",
    "catch",
    "char",
    "class",
    "clone",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extends",
    "false",
    "final",
    "finalize",
    "finally",
    "float",
    "for",
    "getClass",
    "goto",
    "hashCode",
    "if",
    "implements",
    "import",
    "instanceof",
    "int",
    "interface",
    "long",
    "moveTo",
    "native",
    "need",
    "new",
    "notify",
    "notifyAll",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "record",
    "return",
    "set",
    "short",
    "static",
    "strictfp",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "throws",
    "toString",
    "transient",
    "true",
    "try",
    "var",
    "void",
    "volatile",
    "wait",
    "while",
    "yield",
    "_",
];

/// Classes that generated code mentions, so that no class of a schema may be called so.
const TAKEN_CLASSES: &[&str] = &[
    "BigDecimal",
    "BigInteger",
    "BooleanList",
    "BooleanListWriter",
    "ByteBuffer",
    "Bytes",
    "BytesList",
    "BytesListWriter",
    "DecimalList",
    "DecimalListWriter",
    "Duration",
    "Float32List",
    "Float32ListWriter",
    "Float64List",
    "Float64ListWriter",
    "Instant",
    "Int16List",
    "Int16ListWriter",
    "Int32List",
    "Int32ListWriter",
    "Int64List",
    "Int64ListWriter",
    "Int8List",
    "Int8ListWriter",
    "Layout",
    "List",
    "ListList",
    "ListListWriter",
    "ListWriter",
    "LocalDate",
    "LocalDateTime",
    "LocalTime",
    "Math",
    "Memory",
    "NullList",
    "NullListWriter",
    "Numbers",
    "Object",
    "ObjectFile",
    "ObjectPage",
    "Override",
    "PageBuilder",
    "PageEditor",
    "PageException",
    "PageFile",
    "Path",
    "Period",
    "String",
    "StructList",
    "StructListWriter",
    "Times",
    "Utf8",
    "Utf8List",
    "Utf8ListWriter",
    "VerifiedPage",
    "View",
    "ViewWriter",
    "Writer",
];

/// The names of all classes.
pub(super) struct ClassNames {
    classes: Vec<String>,
    pub(super) page: String,
    pub(super) file: String,
    pub(super) builder: String,
    pub(super) editor: String,
}

impl ClassNames {
    pub(super) fn new(model: &Model) -> Self {
        // Files whose names differ only in case are one file on some systems.
        let mut taken: HashSet<String> =
            TAKEN_CLASSES.iter().map(|name| name.to_lowercase()).collect();
        let mut name_class = |name: &str| unique(name, |name| taken.insert(name.to_lowercase()));
        let root = model.classes.first().map_or("Unnamed", |class| class.name.as_str());
        let first = name_class(root);
        let [page, file, builder, editor] = ["Page", "File", "Builder", "Editor"]
            .map(|suffix| name_class(&format!("{root}{suffix}")));
        let rest = model.classes.iter().skip(1).map(|class| name_class(&class.name));
        let classes = std::iter::once(first).chain(rest).collect();
        Self { classes, page, file, builder, editor }
    }

    /// The name of a class of the model.
    pub(super) fn of(&self, class: usize) -> &str {
        self.classes.get(class).map_or("", String::as_str)
    }
}

/// The names of a field's methods.
pub(super) struct FieldNames {
    pub(super) base: String,
    pub(super) has: String,
    pub(super) or: String,
}

impl FieldNames {
    fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            has: format!("has{}", upper_first(base)),
            or: format!("{base}Or"),
        }
    }

    /// The name of a method with a suffix.
    pub(super) fn with(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.base)
    }
}

/// The names of a class's fields. `suffixes` are those of each field's methods.
pub(super) fn field_names(class: &Class, suffixes: &[Vec<&str>]) -> Vec<FieldNames> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::new();
    for (field, suffixes) in class.fields.iter().zip(suffixes) {
        let wanted = escaped(&camel(&field.identifier));
        let mut methods = Vec::new();
        let base = unique(&wanted, |base| {
            let candidate = FieldNames::new(base);
            methods = suffixes.iter().map(|suffix| candidate.with(suffix)).collect();
            methods.extend([candidate.base, candidate.has, candidate.or]);
            !methods.iter().any(|method| taken.contains(method))
        });
        taken.extend(methods);
        names.push(FieldNames::new(&base));
    }
    names
}

/// The names of parameters for a key.
pub(super) fn parameters(key: &[KeyPath]) -> Vec<String> {
    let mut taken = HashSet::new();
    let of = |path: &KeyPath| {
        let name = path.last().map_or("key", String::as_str);
        let ascii = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name = camel(&name.chars().map(ascii).collect::<String>());
        let name = if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            name
        } else {
            format!("key{name}")
        };
        unique(&escaped(&name), |name| taken.insert(name.to_owned()))
    };
    key.iter().map(of).collect()
}

/// The first of a name and the name with numbers that is taken.
fn unique(name: &str, mut take: impl FnMut(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_u64;
    while !take(&candidate) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

/// `order_key` as `orderKey`.
fn camel(identifier: &str) -> String {
    let mut words = identifier.split('_').filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return "unnamed".to_owned() };
    let mut name = match first.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) {
        true => first.to_ascii_lowercase(),
        false => first[..1].to_ascii_lowercase() + &first[1..],
    };
    words.for_each(|word| name += &upper_first(word));
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

fn upper_first(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

/// A name inside a comment: nothing in it ends the comment, or is an escape or markup.
pub(super) fn comment(name: &str) -> String {
    let kept = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c,
        ' ' | '_' | '-' | '.' | '[' | ']' | ':' => c,
        _ => '?',
    };
    name.chars().map(kept).collect()
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte == b'"' || byte == b'\\' => {
                literal.push('\\');
                literal.push(char::from(byte));
            }
            Ok(byte @ b' '..=b'~') => literal.push(char::from(byte)),
            // An octal escape, since \u000A would end the line.
            Ok(byte) => literal += &format!("\\{byte:03o}"),
            Err(_) => literal += &format!("\\u{unit:04x}"),
        }
    }
    literal.push('"');
    literal
}
