//! The uri of a source: `adbc:DRIVER?OPTION=VALUE&…`.

use dray_bridge::{Failure, FailureKind, Secrets, percent_decoded};

/// A database that an ADBC driver reaches.
#[derive(Clone)]
pub(crate) struct Source {
    /// The path of a library, or a name that the driver manager finds.
    pub(crate) driver: String,
    /// The name of the library's function, if it is not the usual one.
    pub(crate) entrypoint: Option<String>,
    /// The options of the database, such as `uri` and `username`.
    pub(crate) options: Vec<(String, String)>,
    secrets: Secrets,
}

impl Source {
    /// Reads a uri, whose parts may have percent signs for what separates them.
    pub(crate) fn parse(uri: &str) -> Result<Self, Failure> {
        let rest = uri.strip_prefix("adbc:").unwrap_or(uri);
        let (driver, query) = rest.split_once('?').unwrap_or((rest, ""));
        let driver =
            percent_decoded(driver).filter(|driver| !driver.is_empty()).ok_or_else(wrong)?;
        let secrets = Secrets::of_uri(&format!("adbc:{rest}"));
        let mut source = Self { driver, entrypoint: None, options: Vec::new(), secrets };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let (name, value) =
                percent_decoded(name).zip(percent_decoded(value)).ok_or_else(wrong)?;
            match name.as_str() {
                "entrypoint" => source.entrypoint = Some(value),
                _ => source.options.push((name, value)),
            }
        }
        Ok(source)
    }

    /// A message without passwords.
    pub(crate) fn hide(&self, message: &str) -> String {
        self.secrets.hide(message)
    }
}

fn wrong() -> Failure {
    Failure::new(
        FailureKind::Connection,
        "08001",
        "the uri is not of the form adbc:DRIVER?OPTION=VALUE&OPTION=VALUE, with percent signs for \
         characters that separate them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let uri =
            "adbc:/lib/a b.so?uri=postgresql://u@h/d%3Fx=1%26y=2&username=%C3%BC&entrypoint=f";
        let source = Source::parse(uri).unwrap();
        assert_eq!(source.driver, "/lib/a b.so");
        assert_eq!(source.entrypoint.as_deref(), Some("f"));
        let options: Vec<_> =
            source.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(options, [("uri", "postgresql://u@h/d?x=1&y=2"), ("username", "ü")]);
        assert_eq!(Source::parse("adbc:sqlite").unwrap().options, []);
        for wrong in
            ["adbc:", "adbc:?uri=x", "adbc:x?uri", "adbc:x?a=%", "adbc:x?a=%+1", "adbc:x?a=%ff"]
        {
            assert!(Source::parse(wrong).is_err(), "{wrong}");
        }
    }
}
