//! Why a store can't be read or written, in words that never have credentials.

use std::error::Error;
use std::fmt;

use object_store::client::HttpError;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The URL or a setting is wrong.
    Usage,
    /// There is no such object.
    NotFound,
    /// There is no such bucket or container.
    NoBucket,
    /// No credentials were found.
    NoCredentials,
    /// The store refuses the credentials, or they don't allow the request.
    Denied,
    /// The object is another version than the one that was found at first.
    Changed,
    /// The store can't be reached, or stopped answering.
    Unreachable,
    /// Any other failure.
    Other,
}

/// Why a store can't be read or written: one sentence, which says nothing of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
    text: String,
}

impl StoreError {
    pub(crate) fn new(kind: StoreErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn changed(text: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Changed, text)
    }

    /// The kind of failure.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The store's error in our words. `variables` names the environment variables that hold its
    /// credentials.
    pub(crate) fn of(cause: &object_store::Error, variables: &str) -> Self {
        use StoreErrorKind as Kind;
        // It may have a server's answer in it, which may repeat a key. So only its code is taken.
        let text = cause.to_string();
        let code = code(&text);
        let said = said(&text, code);
        let of_metadata = is_of_metadata(&text);
        let (kind, what) = match cause {
            _ if of_metadata => (
                Kind::NoCredentials,
                format!(
                    "there are no credentials: {variables}; this host gives none either, as it \
                     would in the cloud"
                ),
            ),
            _ if matches!(code, Some("NoSuchBucket" | "ContainerNotFound")) => {
                (Kind::NoBucket, format!("there is no such bucket{said}"))
            }
            object_store::Error::NotFound { .. } => {
                (Kind::NotFound, "there is no such object".to_owned())
            }
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => (
                Kind::Denied,
                format!("the store denies access{said}; check the credentials: {variables}"),
            ),
            object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. } => {
                (Kind::Changed, "it was replaced".to_owned())
            }
            object_store::Error::NotSupported { .. } if text.to_lowercase().contains("range") => {
                (Kind::Usage, "its server does not send ranges of a file".to_owned())
            }
            object_store::Error::NotImplemented { .. }
            | object_store::Error::NotSupported { .. } => {
                (Kind::Usage, "the store does not support this".to_owned())
            }
            object_store::Error::InvalidPath { .. } => (
                Kind::Usage,
                "a key has an empty part, as in 'a//b', or one of '.' or '..'; rename it"
                    .to_owned(),
            ),
            object_store::Error::JoinError { .. } => {
                (Kind::Other, "reading it was stopped".to_owned())
            }
            _ => generic(cause, &text, &said, variables),
        };
        Self::new(kind, what)
    }
}

fn generic(
    cause: &object_store::Error,
    text: &str,
    said: &str,
    variables: &str,
) -> (StoreErrorKind, String) {
    use StoreErrorKind as Kind;
    if let Some(reason) = transport(cause) {
        return (Kind::Unreachable, format!("the store can't be reached: {reason}"));
    }
    let credentials = ["AccessKey", "Credential", "credential", "token", "account", "Account"];
    if text.contains("Received redirect without LOCATION") {
        return (Kind::Usage, "its bucket is in another region; set AWS_REGION".to_owned());
    }
    if text.contains("non-partial response") {
        return (Kind::Usage, "its server does not send ranges of a file".to_owned());
    }
    if text.contains("status code: 4") || text.contains("error response") {
        return (Kind::Denied, format!("the store refuses the request{said}"));
    }
    if text.contains("status code: 5") {
        return (Kind::Unreachable, format!("the store fails{said}"));
    }
    if credentials.iter().any(|word| text.contains(word)) {
        return (
            Kind::NoCredentials,
            format!("the credentials are missing or can't be used: {variables}"),
        );
    }
    (Kind::Other, format!("the request failed{said}"))
}

/// Why a request had no answer, or only a part of one; None if it had a whole one.
fn transport(cause: &object_store::Error) -> Option<String> {
    let mut next: Option<&(dyn Error + 'static)> = Some(cause);
    let mut is_http = false;
    let mut last = None;
    while let Some(error) = next {
        is_http |= error.downcast_ref::<HttpError>().is_some();
        last = Some(error.to_string());
        next = error.source();
    }
    // The innermost error is the system's or that of HTTP, such as "Connection refused".
    last.filter(|_| is_http)
}

/// Whether a request for the credentials of the host failed.
fn is_of_metadata(text: &str) -> bool {
    let addresses = ["169.254.", "metadata.google.internal", "/latest/api/token"];
    addresses.iter().any(|address| text.contains(address))
        || text.contains("/metadata/identity/")
        || text.contains("/computeMetadata/")
}

/// The code in a server's answer.
fn code(text: &str) -> Option<&str> {
    let behind = text.split_once("<Code>")?.1;
    let code = behind.split_once("</Code>")?.0;
    let is_code = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then_some(code)
}

/// The status and the code of a server's answer, in brackets.
fn said(text: &str, code: Option<&str>) -> String {
    let status = text.split_once("status code: ").and_then(|(_, rest)| rest.get(..3));
    let status = status.filter(|status| status.bytes().all(|byte| byte.is_ascii_digit()));
    match (status, code) {
        (Some(status), Some(code)) => format!(" ({status}, {code})"),
        (Some(one), None) | (None, Some(one)) => format!(" ({one})"),
        (None, None) => String::new(),
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for StoreError {}

impl From<StoreError> for std::io::Error {
    fn from(error: StoreError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &'static str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn answers_are_not_repeated() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>\
                    SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIAHIDDEN</AWSAccessKeyId>";
        let denied =
            object_store::Error::PermissionDenied { path: "x".to_owned(), source: body.into() };
        for cause in [denied, generic(body)] {
            let error = StoreError::of(&cause, "set AWS_ACCESS_KEY_ID");
            assert_eq!(error.kind(), StoreErrorKind::Denied);
            assert!(!error.to_string().contains("HIDDEN"), "{error}");
            assert!(error.to_string().contains("(403, SignatureDoesNotMatch)"), "{error}");
        }
    }

    #[test]
    fn missing_credentials_are_told() {
        let cause = generic("Error performing PUT http://169.254.169.254/latest/api/token in 1s");
        let error = StoreError::of(&cause, "set AWS_ACCESS_KEY_ID");
        assert_eq!(error.kind(), StoreErrorKind::NoCredentials);
        assert!(error.to_string().contains("set AWS_ACCESS_KEY_ID"), "{error}");
    }
}
