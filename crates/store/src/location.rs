//! URLs of objects and folders.

use object_store::ObjectStoreScheme;
use object_store::path::Path;
use url::Url;

use crate::{StoreError, StoreErrorKind};

/// Whether a text is a URL and not the path of a local file: letters before `://`.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
}

/// Schemes whose URLs may have a container in the place of a user, as in
/// `abfss://container@account.dfs.core.windows.net/`.
const WITH_CONTAINER: [&str; 5] = ["abfs", "abfss", "az", "azure", "adl"];

fn has_container(scheme: &str) -> bool {
    WITH_CONTAINER.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// A URL as it may be shown: without a user, a password, a query or a fragment.
pub fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        // A user's name can be a secret, too: some stores take tokens there.
        Some((user, host)) if user.contains(':') || !has_container(scheme) => {
            format!("{scheme}://{host}{path}")
        }
        _ => url.to_owned(),
    }
}

/// The place of an object or a folder.
#[derive(Debug, Clone)]
pub struct Location {
    pub(crate) url: Url,
    pub(crate) scheme: ObjectStoreScheme,
    pub(crate) path: Path,
}

impl Location {
    /// Parses `s3://bucket/key`, and the like of the other stores.
    ///
    /// # Errors
    /// If the scheme is unknown, the bucket is missing, or the URL has a password, a query or a
    /// fragment. The error does not repeat these.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let usage = |what: String| StoreError::new(StoreErrorKind::Usage, what);
        let url = Url::parse(text).map_err(|cause| usage(format!("it is no URL: {cause}")))?;
        let has_user = !url.username().is_empty() && !has_container(url.scheme());
        if url.password().is_some() || has_user {
            return Err(usage(
                "it has a user or a password; credentials are read from the environment".into(),
            ));
        }
        if url.query().is_some() {
            return Err(usage(
                "it has a '?'; credentials are read from the environment, and a '?' in a name is \
                 %3F"
                .into(),
            ));
        }
        if url.fragment().is_some() {
            return Err(usage("it has a '#'; in a name it is %23".into()));
        }
        let unknown = "its store is unknown; expected s3://, gs://, az://, abfss://, http:// or \
                       https://, and the bucket behind it";
        match ObjectStoreScheme::parse(&url) {
            Ok((ObjectStoreScheme::Local | ObjectStoreScheme::Memory, _)) => {
                Err(usage(unknown.to_owned()))
            }
            Ok((scheme, path)) => Ok(Self { url, scheme, path }),
            Err(cause) if cause.to_string().contains("recognise") => Err(usage(unknown.to_owned())),
            Err(cause) => Err(usage(format!("its path can't be a key: {cause}"))),
        }
    }

    /// The last part of the path, or of a bucket's root the bucket's name.
    pub fn name(&self) -> String {
        let host = || self.url.host_str().unwrap_or_default();
        let container = || Some(self.url.username()).filter(|name| !name.is_empty());
        match self.path.parts().next_back() {
            Some(part) => part.as_ref().to_owned(),
            None => container().unwrap_or_else(host).to_owned(),
        }
    }

    /// Whether it must be a folder: it is a bucket's root, or ends with `/`.
    pub fn is_folder(&self) -> bool {
        self.path.as_ref().is_empty() || self.url.path().ends_with('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://b", "abfss://c@a.dfs.core.windows.net/x", "http://h/x", "foo://x"] {
            assert!(is_url(url), "{url}");
        }
        for path in ["data/a.csv", "/x://y", "://x", "year=1://x", "s3:/b", "", "1x://b"] {
            assert!(!is_url(path), "{path}");
        }
    }

    #[test]
    fn locations_have_a_path_and_a_name() {
        let cases = [
            ("s3://b/a/x.parquet", "a/x.parquet", "x.parquet", false),
            ("s3://b/a/", "a", "a", true),
            ("s3://b", "", "b", true),
            ("gs://b/k%20l.csv", "k l.csv", "k l.csv", false),
            ("az://c/x", "x", "x", false),
            ("abfss://c@a.dfs.core.windows.net", "", "c", true),
            ("http://h:81/a/b.csv", "a/b.csv", "b.csv", false),
            ("https://s3.eu-west-1.amazonaws.com/b/k.csv", "k.csv", "k.csv", false),
        ];
        for (text, path, name, is_folder) in cases {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.path.as_ref(), path, "{text}");
            assert_eq!(location.name(), name, "{text}");
            assert_eq!(location.is_folder(), is_folder, "{text}");
        }
    }

    #[test]
    fn secrets_in_urls_are_refused_and_not_repeated() {
        let urls = [
            "s3://me:hidden@b/x",
            "https://h/x?sig=hidden",
            "s3://b/x#hidden",
            "https://me:hidden@h/x",
            "https://hidden@h/x",
            "s3://hidden@b/x",
            "S3://hidden@b/x",
            "abfss://c:hidden@a.net/x",
        ];
        for url in urls {
            let error = Location::parse(url).unwrap_err();
            assert!(!error.to_string().contains("hidden"), "{error}");
            assert!(!shown(url).contains("hidden"), "{}", shown(url));
        }
        assert_eq!(shown("s3://me:hidden@b/x@y?z#t"), "s3://b/x@y");
        assert_eq!(shown("https://me@b@h:81/x@y"), "https://h:81/x@y");
        for container in ["abfs", "abfss", "az", "azure", "adl", "ABFSS"] {
            let url = format!("{container}://c@a.net/x");
            assert_eq!(shown(&url), url);
        }
        for url in ["file:///x", "memory:///x", "ftp://h/x", "s3:///x"] {
            assert!(Location::parse(url).unwrap_err().to_string().contains("expected s3://"));
        }
    }
}
