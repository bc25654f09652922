//! The keyword `require_auth`.

use super::super::keywords::Keywords;
use crate::error::Result;

/// The authentication methods that the server may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequiredAuth {
    methods: Vec<String>,
    /// Whether `methods` are those that it may not ask for.
    negated: bool,
}

impl RequiredAuth {
    pub(super) fn parse(keywords: &Keywords<'_>) -> Result<Self> {
        const METHODS: [&str; 6] = ["password", "md5", "gss", "sspi", "scram-sha-256", "none"];
        let words = keywords.list("require_auth");
        let negated = words.first().is_some_and(|word| word.starts_with('!'));
        let mut methods = Vec::new();
        for word in words {
            let method = word.strip_prefix('!').unwrap_or(&word);
            if word.starts_with('!') != negated || !METHODS.contains(&method) {
                let expected = format!(
                    "some of {}; either all of them with a ! in front or none",
                    METHODS.join(",")
                );
                return Err(keywords.invalid("require_auth", &word, &expected));
            }
            methods.push(method.to_owned());
        }
        Ok(Self { methods, negated })
    }

    pub(crate) fn allows(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|known| known == method) != self.negated
    }
}
