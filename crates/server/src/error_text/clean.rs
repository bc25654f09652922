//! Removes from the engine's error texts what is meant for its developers.

/// Prefixes that the engine's layers add.
const PREFIXES: &[&str] = &[
    "Arrow error: ",
    "Cast error: ",
    "Compute error: ",
    "Csv error: ",
    "Divide by zero error: ",
    "Error during planning: ",
    "Execution error: ",
    "Execution: ",
    "External error: ",
    "External: ",
    "Generic LocalFileSystem error: ",
    "IO error: ",
    "Internal error: ",
    "Invalid argument error: ",
    "Invalid or Unsupported Configuration: ",
    "Io error: ",
    "Ipc error: ",
    "Json error: ",
    "Not yet implemented: ",
    "Object Store error: ",
    "Object at location ",
    "Optimizer error: ",
    "Parquet argument error: ",
    "Parquet error: ",
    "Parser error: ",
    "Resources exhausted: ",
    "SQL error: ",
    "Schema error: ",
    "This feature is not implemented: ",
    "sql parser error: ",
];

/// The engine's terms, and their replacements.
const WORDS: &[(&str, &str)] = &[
    ("datafusion.public.", ""),
    ("'datafusion' dialect", "SQL here"),
    ("DataFusion", "the engine"),
    ("datafusion", "the engine"),
    ("Physical plan does not support", "the engine can't run"),
];

/// The engine's names of numeric types, and the names in SQL.
const TYPES: &[(&str, &str)] = &[
    ("Int8", "tinyint"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("UInt8", "tinyint unsigned"),
    ("UInt16", "smallint unsigned"),
    ("UInt32", "integer unsigned"),
    ("UInt64", "bigint unsigned"),
    ("Decimal128", "decimal"),
    ("Decimal256", "decimal"),
];

/// The first sentence of a text, without prefixes, dumps of structures and the engine's names.
pub(crate) fn cleaned(text: &str) -> String {
    // "While … \ncaused by\n …": the last cause is the specific one.
    let text = text.rsplit("caused by\n").next().unwrap_or(text);
    let text = text.split("\n\n").next().unwrap_or(text);
    // Drop the list of candidate functions with the reason against each.
    let text = text.split(", errors: ").next().unwrap_or(text);
    let text = text.split("This issue was likely caused").next().unwrap_or(text);
    let mut text = text.trim();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest.trim_start();
    }
    let mut text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (word, ours) in WORDS {
        text = text.replace(word, ours);
    }
    // Prefixes may also be in the middle: "can't read: Parquet error: EOF".
    for prefix in PREFIXES {
        text = text.replace(prefix, "");
    }
    let text = with_types(without_dump(&text));
    text.trim_end_matches(['.', ' ', ':', ',', ';']).to_owned()
}

/// Replaces the engine's names of numeric types by those of SQL.
fn with_types(text: &str) -> String {
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let named = words.map(|word| {
        let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        match TYPES.iter().find(|(theirs, _)| *theirs == name) {
            Some((_, ours)) => format!("{ours}{}", &word[name.len()..]),
            None => word.to_owned(),
        }
    });
    named.collect()
}

/// Truncates a text before the dump of a structure, as in `Column(Field { name: "a" … `.
fn without_dump(text: &str) -> &str {
    let Some(brace) = text
        .match_indices(" { ")
        .map(|(at, _)| at)
        .find(|&at| is_type_name(last_word(&text[..at])))
    else {
        return text;
    };
    let before = &text[..brace];
    before[..before.len() - last_word(before).len()].trim_end()
}

fn last_word(text: &str) -> &str {
    &text[text.rfind(' ').map_or(0, |space| space + 1)..]
}

/// Whether a word ends in a structure's name: `Field`, `Column(Field`, `[Ident`.
fn is_type_name(word: &str) -> bool {
    let name = word.rsplit(['(', '[', '{']).next().unwrap_or(word);
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// Shortens each absolute path to its last component.
pub(crate) fn without_paths(text: &str) -> String {
    let text = text.replace("file://", "");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = next_path(rest) {
        let path = &rest[at..];
        let end = path
            .find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ',' | ')' | ';'))
            .unwrap_or(path.len());
        let path = path[..end].trim_end_matches([':', '.']);
        out.push_str(&rest[..at]);
        out.push_str(path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default());
        rest = &rest[at + path.len()..];
    }
    out.push_str(rest);
    out
}

/// The start of an absolute path: a slash at the start of a word, followed by a letter.
fn next_path(text: &str) -> Option<usize> {
    text.match_indices('/').map(|(at, _)| at).find(|&at| {
        let begins = text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || matches!(c, '\'' | '"' | '(' | ':'));
        begins && text[at + 1..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
    })
}

/// Lowercases the first letter, unless the first word has other capitals or digits.
pub(crate) fn lowercase_first(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let mut letters = first.chars();
    match letters.next() {
        Some(capital)
            if letters.all(|c| {
                !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '(' && c != '.'
            }) =>
        {
            capital.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cleaned, lowercase_first, without_paths};

    #[test]
    fn texts_are_cleaned() {
        let cases = [
            (
                "Parquet error: Parquet error: EOF: eof decoding byte array",
                "EOF: eof decoding byte array",
            ),
            (
                "Physical plan does not support logical expression OuterReferenceColumn(Field { \
                 name: \"a\" })",
                "the engine can't run logical expression",
            ),
            ("table 'datafusion.public.t' not found", "table 't' not found"),
            (
                "type_coercion\ncaused by\nError during planning: Cannot coerce\n\nnotes",
                "Cannot coerce",
            ),
            ("Unsupported ast node Foo { a: 1 } here", "Unsupported ast node"),
            ("a set { of braces } stays", "a set { of braces } stays"),
            ("Can't cast value 300 to type Int8", "Can't cast value 300 to type tinyint"),
            (
                "an Int64Array of List(UInt16), Int32",
                "an Int64Array of List(smallint unsigned), integer",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(cleaned(text), expected);
        }
        assert_eq!(
            without_paths("Object at location /var/data/a.csv not found: No such file"),
            "Object at location a.csv not found: No such file"
        );
        assert_eq!(
            without_paths("in file:///srv/x/b.parquet: 1/2 or a/b"),
            "in b.parquet: 1/2 or a/b"
        );
        assert_eq!(lowercase_first("Cannot cast"), "cannot cast");
        assert_eq!(lowercase_first("LIKE is"), "LIKE is");
        assert_eq!(lowercase_first("Utf8View is"), "Utf8View is");
    }
}
