//! Numbers in JSON, as what they are.
//!
//! The parser of JSON in the tree reads some doubles of 17 digits as their neighbours, unless a
//! feature is on that would compile much again. And integers that are too large it reads as
//! doubles.

/// The text, in which each number with a point or an exponent is a string for an exact parser:
/// `{"$numberDouble":"1.5"}`. The text has to be JSON.
///
/// # Errors
/// A sentence, if an integer has more than 64 bits.
pub(crate) fn exact(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(start);
        out.push_str(before);
        let is_string = token.starts_with('"');
        let end = if is_string { string_end(token) } else { number_end(token) };
        let (token, after) = token.split_at(end);
        if is_string || token.parse::<i64>().is_ok() {
            out.push_str(token);
        } else if token.contains(['.', 'e', 'E']) {
            out.push_str(r#"{"$numberDouble":""#);
            out.push_str(token);
            out.push_str(r#""}"#);
        } else {
            return Err(format!(
                "{token} is no 64-bit integer; write {{\"$numberDecimal\": \"{token}\"}}"
            ));
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Where a string ends that begins the text: behind its second quote that no backslash escapes.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

fn number_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_doubles_change() {
        for text in [
            "",
            "[1, -2, 9223372036854775807, true, null]",
            r#"{"a1.5": "1.5", "b\"2.5": "\\", "c": [], "é3.5": {}}"#,
        ] {
            assert_eq!(exact(text).unwrap(), text);
        }
        assert_eq!(
            exact(r#"{"a":[1.5,-2E+3]}"#).unwrap(),
            r#"{"a":[{"$numberDouble":"1.5"},{"$numberDouble":"-2E+3"}]}"#
        );
        assert!(exact("[9223372036854775808]").unwrap_err().contains("no 64-bit integer"));
        assert!(exact("-123456789012345678901").is_err());
    }

    /// Texts that are no JSON end, too.
    #[test]
    fn broken_texts() {
        for text in ["\"", "\"\\", "\"é", "1e", "--", "1.5\"\\\"é"] {
            let _ = exact(text);
        }
    }
}
