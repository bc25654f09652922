//! Whether and how to use TLS: `ssl-mode` and its other spellings.

use std::path::PathBuf;

use dray_net::{Roots, TlsError, TlsFailure, TlsParams, Verification};

use super::params::Values;
use crate::error::{Error, ErrorKind, Result};

/// `ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    Disabled,
    Preferred,
    Required,
    VerifyCa,
    VerifyIdentity,
}

const SSL_MODES: [(&str, SslMode); 5] = [
    ("DISABLED", SslMode::Disabled),
    ("PREFERRED", SslMode::Preferred),
    ("REQUIRED", SslMode::Required),
    ("VERIFY_CA", SslMode::VerifyCa),
    ("VERIFY_IDENTITY", SslMode::VerifyIdentity),
];

/// The mode that the values ask for, if they do.
pub(super) fn mode_of(values: &Values<'_>) -> Result<Option<SslMode>> {
    if let Some(word) = values.value("ssl-mode") {
        let plain = word.to_ascii_uppercase().replace('-', "_");
        let found = SSL_MODES.iter().find(|(name, _)| *name == plain);
        return found.map(|(_, mode)| Some(*mode)).ok_or_else(|| {
            let names: Vec<_> = SSL_MODES.iter().map(|(name, _)| *name).collect();
            values.invalid("ssl-mode", &word, &names.join(", "))
        });
    }
    // MariaDB's keys, and what MySQL's client concludes from the name of a file.
    let has_authority = values.value("ssl-ca").is_some();
    Ok(match (values.flag("ssl")?, values.flag("ssl-verify-server-cert")?) {
        (Some(false), _) => Some(SslMode::Disabled),
        (_, Some(true)) => Some(SslMode::VerifyIdentity),
        (_, None) if has_authority => Some(SslMode::VerifyCa),
        (Some(true), _) => Some(SslMode::Required),
        (None, Some(false)) => Some(SslMode::Preferred),
        (None, None) => None,
    })
}

/// Reads the keys of TLS.
pub(super) fn parse_tls(values: &Values<'_>) -> Result<(SslMode, TlsParams)> {
    let path = |key: &str| values.value(key).map(PathBuf::from);
    let (authority, crl) = (path("ssl-ca"), path("ssl-crl"));
    // No file takes back, by another key, what the uri asks for.
    let mode = match mode_of(&values.of_uri())? {
        Some(mode) => mode,
        None => mode_of(values)?.unwrap_or(SslMode::Preferred),
    };
    if mode == SslMode::VerifyCa && authority.is_none() {
        // Anybody gets a certificate of the system's authorities.
        let what = "ssl-mode=VERIFY_CA without ssl-ca would trust every server with a certificate";
        return Err(Error::usage(what).with_hint(
            "ssl-ca names the file with the server's authority; ssl-mode=VERIFY_IDENTITY takes the \
             system's authorities, and compares the host's name",
        ));
    }
    let roots = authority.map_or(Roots::System, Roots::File);
    let certificate = match (path("ssl-cert"), path("ssl-key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        // Both may be in one file.
        (Some(certificate), None) => Some((certificate.clone(), certificate)),
        (None, Some(_)) => return Err(Error::usage("ssl-key needs ssl-cert")),
        (None, None) => None,
    };
    let versions = values.value("tls-version");
    let allows = |version: &str| match &versions {
        Some(list) => list.split(',').any(|known| known.trim().eq_ignore_ascii_case(version)),
        None => true,
    };
    let (allow_1_2, allow_1_3) = (allows("TLSv1.2"), allows("TLSv1.3"));
    if !allow_1_2 && !allow_1_3 {
        return Err(values.invalid(
            "tls-version",
            &versions.unwrap_or_default(),
            "TLSv1.2,TLSv1.3",
        ));
    }
    let tls = TlsParams {
        verification: match mode {
            SslMode::VerifyIdentity => Verification::AuthorityAndName(roots),
            SslMode::VerifyCa => Verification::Authority(roots),
            SslMode::Disabled | SslMode::Preferred | SslMode::Required => Verification::None,
        },
        crl,
        certificate,
        sni: true,
        allow_1_2,
        allow_1_3,
        alpn: None,
    };
    Ok((mode, tls))
}

/// The error of TLS, with the keys that may help.
pub(super) fn failed(error: TlsError) -> Error {
    let (kind, hint) = match error.failure {
        TlsFailure::Connection => (
            ErrorKind::Connection,
            "ssl-mode=DISABLED connects without TLS, so that others may read along",
        ),
        TlsFailure::NoRoots => (ErrorKind::Authentication, "ssl-ca names the file"),
        TlsFailure::Authority => (
            ErrorKind::Authentication,
            "ssl-ca names the file with the server's authority; \
             without it the system's authorities are trusted",
        ),
        TlsFailure::Name => (
            ErrorKind::Authentication,
            "ssl-mode=VERIFY_IDENTITY expects the host's name in the server's certificate",
        ),
        TlsFailure::NothingInCommon | TlsFailure::Refused => {
            (ErrorKind::Authentication, error.hint)
        }
    };
    let failed = Error::new(kind, error.message).with_hint(hint);
    match error.cause {
        Some(cause) => failed.with_cause(cause),
        None => failed,
    }
}
