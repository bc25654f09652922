//! The classes for pages and files: reading, building and editing.

use super::names::{self, literal};
use super::{Java, Text, value};
use crate::{FieldKind, Source};

/// Base64 digits of a line.
const LINE_DIGITS: usize = 80;

impl Java<'_> {
    pub(super) fn page(&self) -> Source {
        let (root, name) = (self.names.of(0), &self.names.page);
        let mut body = Text::default();
        body.add(
            0,
            &format!(
                "/** The objects of a page. */\n\
                 public final class {name} extends ObjectPage<{root}> {{\n    \
                 /** The layout of the schema that these accessors are for. */\n    \
                 public static final Layout LAYOUT = Layout.ofBase64("
            ),
        );
        let digits = base64(&self.model.schema);
        let lines: Vec<&str> = (0..digits.len())
            .step_by(LINE_DIGITS)
            .filter_map(|from| digits.get(from..(from + LINE_DIGITS).min(digits.len())))
            .collect();
        for (i, line) in lines.iter().enumerate() {
            let end = if i + 1 == lines.len() { ");" } else { "," };
            body.add(3, &format!("\"{line}\"{end}"));
        }
        body.add(
            1,
            &format!(
                "\n/**\n * The objects of a page.\n *\n \
                 * @throws PageException when the page has another schema\n */\n\
                 public {name}(VerifiedPage page) {{\n    \
                 super(page, LAYOUT, {root}::new);\n}}"
            ),
        );
        body.add(0, "}");
        self.source(
            name,
            &[
                "dray.page.Layout",
                "dray.page.ObjectPage",
                "dray.page.PageException",
                "dray.page.VerifiedPage",
            ],
            &body,
        )
    }

    pub(super) fn file(&self) -> Source {
        let (root, page, name) = (self.names.of(0), &self.names.page, &self.names.file);
        let mut body = Text::default();
        body.add(
            0,
            &format!(
                "/** The objects of a page file. Threads may share it. */\n\
                 public final class {name} extends ObjectFile<{root}> {{\n    \
                 /**\n     * The objects of a file that was opened.\n     *\n     \
                 * @throws PageException when it has another schema\n     */\n    \
                 public {name}(PageFile file) {{\n        \
                 super(file, {page}.LAYOUT, {root}::new);\n    }}\n\n    \
                 /**\n     * Opens a file.\n     *\n     \
                 * @throws PageException when it can't be read, is damaged, or has another \
                 schema\n     \
                 */\n    public static {name} open(Path path) {{\n        \
                 return new {name}(PageFile.open(path));\n    }}"
            ),
        );
        if !self.model.key.is_empty() {
            body.add(0, "\n");
            self.find(&mut body);
        }
        body.add(0, "}");
        self.source(
            name,
            &[
                "dray.page.ObjectFile",
                "dray.page.PageException",
                "dray.page.PageFile",
                "java.math.BigInteger",
                "java.nio.file.Path",
            ],
            &body,
        )
    }

    /// The search for a key, with a parameter for each of its fields.
    fn find(&self, body: &mut Text) {
        let types: Vec<&str> =
            self.model.key.iter().map(|path| self.key_type(path).unwrap_or("Object")).collect();
        let names = names::parameters(&self.model.key);
        let parameters: Vec<String> =
            types.iter().zip(&names).map(|(java, name)| format!("{java} {name}")).collect();
        let paths: Vec<String> = self
            .model
            .key
            .iter()
            .map(|path| {
                let names: Vec<String> = path.iter().map(|name| literal(name)).collect();
                format!("java.util.List.of({})", names.join(", "))
            })
            .collect();
        body.add(
            1,
            &format!(
                "/** The objects with a key, in the order of their numbers. */\n\
                 public java.util.List<{}> find({}) {{\n    \
                 return find(java.util.List.of({}), {});\n}}",
                self.names.of(0),
                parameters.join(", "),
                paths.join(", "),
                // A byte[] or an Object alone would be taken for the array of values.
                names.iter().map(|name| format!("(Object) {name}")).collect::<Vec<_>>().join(", ")
            ),
        );
    }

    fn key_type(&self, path: &[String]) -> Option<&'static str> {
        let mut class = self.model.classes.first()?;
        for name in path {
            let field = class.fields.iter().find(|field| field.name == *name)?;
            match &field.kind {
                FieldKind::Struct(within) => class = self.model.classes.get(*within)?,
                FieldKind::Value(data_type) => return Some(value::key_type(data_type)),
                _ => return None,
            }
        }
        None
    }

    /// The class that builds pages.
    pub(super) fn builder(&self) -> Source {
        let (root, page, name) = (self.names.of(0), &self.names.page, &self.names.builder);
        let mut body = Text::default();
        body.add(
            0,
            &format!(
                "/** Builds pages of objects. */\n\
                 public final class {name} extends PageBuilder<{root}.Writer> {{\n    \
                 /** Pages of the usual size. */\n    \
                 public {name}() {{\n        this(PAGE_BYTES);\n    }}\n\n    \
                 /** Pages of a size, a power of two from 4 KiB to 1 GiB. */\n    \
                 public {name}(int pageBytes) {{\n        \
                 super({page}.LAYOUT, pageBytes, new {root}.Writer());\n    }}\n}}"
            ),
        );
        self.source(name, &["dray.page.PageBuilder"], &body)
    }

    /// The class that edits a page.
    pub(super) fn editor(&self) -> Source {
        let (root, page, name) = (self.names.of(0), &self.names.page, &self.names.editor);
        let mut body = Text::default();
        body.add(
            0,
            &format!(
                "/** Edits the objects of a copy of a page. */\n\
                 public final class {name} extends PageEditor<{root}.Writer> {{\n    \
                 /** Edits a page of a file whose pages have the usual size. */\n    \
                 public {name}(VerifiedPage page) {{\n        \
                 this(page, PageBuilder.PAGE_BYTES);\n    }}\n\n    \
                 /** Edits a page of a file whose pages have a size. */\n    \
                 public {name}(VerifiedPage page, int standardBytes) {{\n        \
                 super(page, {page}.LAYOUT, {root}.Writer::new, standardBytes);\n    }}\n}}"
            ),
        );
        let imports = ["dray.page.PageBuilder", "dray.page.PageEditor", "dray.page.VerifiedPage"];
        self.source(name, &imports, &body)
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = (word >> (18 - 6 * digit)) & 63;
            let digit = if digit <= group.len() { DIGITS[value as usize] } else { b'=' };
            text.push(char::from(digit));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
