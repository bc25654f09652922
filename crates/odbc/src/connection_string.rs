//! Connection strings, whose passwords must not get into errors.

use dray_bridge::Secrets;

/// A connection string, and what is secret in it.
pub(crate) struct ConnectionString {
    text: String,
    secrets: Secrets,
}

impl ConnectionString {
    /// Of a source's uri, `odbc:` and the keywords with their values.
    pub(crate) fn of_uri(uri: &str) -> Self {
        let text = uri.strip_prefix("odbc:").unwrap_or(uri).to_owned();
        Self { secrets: Secrets::of_uri(&format!("odbc:{text}")), text }
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }

    /// A text without what is secret.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.secrets.hide(text)
    }
}
