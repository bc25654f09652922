//! Why something failed, and how a client reads it.

use dray_driver::{ErrorKind, ServerError, error, failed, lost_connection};

/// `data_exception`.
const DATA_EXCEPTION: &str = "22000";
/// `program_limit_exceeded`.
const LIMIT_EXCEEDED: &str = "54000";

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// The server refused a statement, or failed to run it.
    Server { sqlstate: String, message: String },
    /// The connection broke, or what came over it can't be right.
    Lost(String),
    /// A value does not fit its column.
    Value { message: String, hint: &'static str },
    /// Something is larger than a limit.
    Limit(String),
    /// Nobody waits any longer.
    Stopped,
}

/// A result of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The server broke the protocol.
    pub(crate) fn protocol(what: impl std::fmt::Display) -> Self {
        Self::Lost(format!("the server's answer is not understood: {what}"))
    }

    /// The error as clients of the source `name` get it.
    pub(crate) fn of_source(self, name: &str) -> ServerError {
        match self {
            Self::Server { sqlstate, message } => failed(&sqlstate, message),
            Self::Lost(cause) => lost_connection(name, &cause),
            Self::Value { message, hint } => {
                error(ErrorKind::Execution, DATA_EXCEPTION, message, hint)
            }
            Self::Limit(message) => {
                let hint = "the option rows= of the source's uri has the server send fewer at once";
                error(ErrorKind::Limit, LIMIT_EXCEEDED, message, hint)
            }
            Self::Stopped => error(ErrorKind::Cancelled, "57014", "cancelled", ""),
        }
    }

    /// The error as a clause.
    pub(crate) fn cause(self) -> String {
        match self {
            Self::Server { message, .. }
            | Self::Lost(message)
            | Self::Value { message, .. }
            | Self::Limit(message) => message,
            Self::Stopped => "cancelled".to_owned(),
        }
    }
}

/// The sentence of a server's message, which has names of Java's classes before it, and the plan,
/// the statement and the stack behind it.
pub(crate) fn sentence(message: &str) -> String {
    let mut text = message.trim();
    for end in ["\n\tat ", "\n== SQL", "\n'", "\n+- ", "\nJVM stacktrace:"] {
        text = text.find(end).map_or(text, |at| &text[..at]);
    }
    let mut class = "";
    loop {
        text = text.trim_start();
        let before = text;
        text = text.strip_prefix("Error running query: ").unwrap_or(text);
        text = text.split_once(' ').map_or(text, |(word, rest)| match word.strip_suffix(':') {
            Some(word) if word.ends_with("Exception") || word.ends_with("Error") => rest,
            _ => text,
        });
        // Spark's class of the error, which its exception's own text repeats.
        if let Some((name, rest)) = text.strip_prefix('[').and_then(|text| text.split_once("] "))
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '.')
        {
            (class, text) = (name, rest);
        }
        if text.len() == before.len() {
            break;
        }
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    let words = words.trim_end_matches(';');
    match class {
        "" => words.to_owned(),
        _ => format!("[{class}] {words}"),
    }
}

/// The SQLSTATE that Spark writes into a message, for answers that have none beside it.
pub(crate) fn sqlstate_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("SQLSTATE: ")?;
    rest.get(..5).filter(|state| state.chars().all(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        for (message, expected) in [
            (
                "org.apache.hive.service.cli.HiveSQLException: Error running query: \
                 [DIVIDE_BY_ZERO] org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] \
                 Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nselect 1/0\n\
                 \u{20}      ^^^\n\n\tat org.apache.spark.X.y(X.scala:43)",
                "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
            ),
            (
                "Error running query: [A.B] org.x.AnalysisException: [A.B] A column `nope` cannot \
                 be resolved.  SQLSTATE: 42703; line 1 pos 7;\n'Project ['nope]\n+- OneRow\n",
                "[A.B] A column `nope` cannot be resolved. SQLSTATE: 42703; line 1 pos 7",
            ),
            (
                "Error while compiling statement: FAILED: SemanticException [Error 10001]: Line \
                 1:14 Table not found 'nosuch'",
                "Error while compiling statement: FAILED: SemanticException [Error 10001]: Line \
                 1:14 Table not found 'nosuch'",
            ),
            ("java.lang.RuntimeException: java.io.IOException: no\n\tat x", "no"),
            ("", ""),
            ("Error: ", "Error:"),
        ] {
            assert_eq!(sentence(message), expected);
        }
        assert_eq!(sqlstate_in("a SQLSTATE: 22012\n=="), Some("22012"));
        assert_eq!(sqlstate_in("a SQLSTATE: 2"), None);
    }
}
