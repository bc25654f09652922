//! `SIMILAR TO` matches the whole text against a pattern with the wildcards of `LIKE` (`%` and `_`)
//! and the operators of regular expressions.
//!
//! The engine would treat the pattern as a regular expression that may match any part of the text.

use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Like, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Rewrites `SIMILAR TO` to a match of a regular expression. The caller leaves patterns with ESCAPE
/// to the engine, which refuses them.
pub(super) fn as_regular_expression(like: Like) -> Expr {
    let op = if like.negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
    let signature = Signature::uniform(
        1,
        vec![DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View],
        Volatility::Immutable,
    );
    let pattern = ScalarUDF::new_from_impl(Pattern { signature }).call(vec![*like.pattern]);
    Expr::BinaryExpr(BinaryExpr::new(like.expr, op, Box::new(pattern)))
}

/// A function that converts a pattern to a regular expression.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Pattern {
    signature: Signature,
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        "similar_to_pattern"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [patterns] = &args.args[..] else {
            return internal_err!("{} arguments of a pattern", args.args.len());
        };
        match patterns {
            ColumnarValue::Scalar(pattern) => {
                let Some(text) = pattern.try_as_str() else {
                    return internal_err!("{pattern:?} is no pattern");
                };
                Ok(ColumnarValue::Scalar(ScalarValue::Utf8(
                    text.map(regular_expression).transpose()?,
                )))
            }
            ColumnarValue::Array(patterns) => {
                let patterns = arrow::compute::cast(patterns, &DataType::LargeUtf8)?;
                let patterns = patterns
                    .as_string::<i64>()
                    .iter()
                    .map(|text| text.map(regular_expression).transpose());
                Ok(ColumnarValue::Array(Arc::new(patterns.collect::<Result<StringArray>>()?)))
            }
        }
    }
}

fn regular_expression(pattern: &str) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    out.push_str("^(?s:");
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            // Groups don't capture.
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => out.extend(['\\', letter]),
            '\\' => match letters.next() {
                Some(escaped) if !escaped.is_alphanumeric() => {
                    if escaped.is_ascii() {
                        out.push('\\');
                    }
                    out.push(escaped);
                }
                Some(escaped) => {
                    return exec_err!("a SIMILAR TO pattern gives \\{escaped} no meaning");
                }
                None => {
                    return exec_err!(
                        "a SIMILAR TO pattern must not end with its escape character"
                    );
                }
            },
            '[' => {
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
                while let Some(letter) = letters.next() {
                    match letter {
                        ']' => {
                            out.push(']');
                            break;
                        }
                        // A character class: `[:alpha:]`.
                        '[' if letters.peek() == Some(&':') => {
                            out.push('[');
                            for letter in letters.by_ref() {
                                out.push(letter);
                                if letter == ']' {
                                    break;
                                }
                            }
                        }
                        // These would combine classes.
                        '[' | '&' | '~' | '\\' => out.extend(['\\', letter]),
                        other => out.push(other),
                    }
                }
            }
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::regular_expression;

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, expected) in [
            ("", "^(?s:)$"),
            ("a%_", "^(?s:a.*.)$"),
            ("(a|b)+", "^(?s:(?:a|b)+)$"),
            ("1.5^$", r"^(?s:1\.5\^\$)$"),
            (r"100\%\\", r"^(?s:100\%\\)$"),
            ("[^]%_.-]{2}", r"^(?s:[^\]%_.-]{2})$"),
            ("[[:alpha:]&[]x", r"^(?s:[[:alpha:]\&\[]x)$"),
        ] {
            assert_eq!(regular_expression(pattern).unwrap(), expected);
        }
        assert!(regular_expression(r"a\").is_err());
        assert!(regular_expression(r"\d").is_err());
    }
}
