//! The keywords of TLS.

use std::path::PathBuf;

use dray_net::{Roots, Verification};

use super::super::keywords::Keywords;
use super::super::tls::ALPN;
use crate::error::Result;

/// Whether and how to use TLS.
#[derive(Debug, Clone)]
pub(crate) struct TlsParams {
    pub(crate) mode: SslMode,
    pub(crate) direct: bool,
    /// What the server must show.
    pub(crate) certificates: dray_net::TlsParams,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const SSL_MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

impl TlsParams {
    pub(super) fn parse(keywords: &Keywords<'_>) -> Result<Self> {
        let roots = match keywords.value("sslrootcert") {
            Some(word) if word == "system" => Roots::System,
            Some(file) => Roots::File(file.into()),
            None => keywords.home_file("root.crt").map_or(Roots::NoHome, Roots::File),
        };
        let default = if roots == Roots::System { SslMode::VerifyFull } else { SslMode::Prefer };
        let mode = keywords.choice("sslmode", &SSL_MODES)?.unwrap_or(default);
        let name = SSL_MODES.iter().find(|(_, known)| *known == mode).map_or("", |(name, _)| *name);
        if roots == Roots::System && mode != SslMode::VerifyFull {
            return Err(keywords.invalid("sslmode", name, "verify-full with sslrootcert=system"));
        }
        let verification = match (mode, roots) {
            (SslMode::VerifyFull, roots) => Verification::AuthorityAndName(roots),
            (SslMode::VerifyCa, roots) => Verification::Authority(roots),
            // Weaker modes verify if they can, so require with roots is as good as verify-ca.
            (_, Roots::File(file)) if file.exists() => Verification::Authority(Roots::File(file)),
            (_, Roots::File(_) | Roots::System | Roots::NoHome) => Verification::None,
        };
        let direct = keywords
            .choice("sslnegotiation", &[("postgres", false), ("direct", true)])?
            .unwrap_or(false);
        if direct && mode < SslMode::Require {
            return Err(keywords.invalid(
                "sslmode",
                name,
                "require, verify-ca or verify-full with sslnegotiation=direct",
            ));
        }
        let crl =
            keywords.value("sslcrl").map(PathBuf::from).or_else(|| keywords.home_file("root.crl"));
        let sends_certificate =
            keywords.choice("sslcertmode", &[("disable", false), ("allow", true)])?.unwrap_or(true);
        let path = |keyword: &str, name: &str| {
            keywords.value(keyword).map(PathBuf::from).or_else(|| keywords.home_file(name))
        };
        // As in libpq, a missing certificate is not sent. The server refuses if it needs one.
        let certificate =
            path("sslcert", "postgresql.crt").filter(|file| sends_certificate && file.exists());
        let versions = [("TLSv1", 0), ("TLSv1.1", 1), ("TLSv1.2", 2), ("TLSv1.3", 3)];
        let lowest = keywords.choice("ssl_min_protocol_version", &versions)?.unwrap_or(2);
        let highest = keywords.choice("ssl_max_protocol_version", &versions)?.unwrap_or(3);
        if highest < lowest.max(2) {
            let value = keywords.value("ssl_max_protocol_version").unwrap_or_default();
            let expected = "TLSv1.2 or TLSv1.3, and no less than ssl_min_protocol_version";
            return Err(keywords.invalid("ssl_max_protocol_version", &value, expected));
        }
        Ok(Self {
            mode,
            direct,
            certificates: dray_net::TlsParams {
                verification,
                crl: crl.filter(|file| file.exists()),
                certificate: certificate.zip(path("sslkey", "postgresql.key")),
                sni: keywords.number("sslsni")? != Some(0),
                allow_1_2: lowest <= 2,
                allow_1_3: highest >= 3,
                alpn: Some(ALPN),
            },
        })
    }
}
