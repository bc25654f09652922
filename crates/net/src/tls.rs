//! TLS to a server, with the verification that its user asks for.

use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, InvalidMessage, OtherError,
    StreamOwned,
};

use crate::stream::{TimedStream, is_timeout};
use crate::verifier::Verifier;
use crate::wait::Wait;

/// An encrypted stream.
pub type TlsStream = StreamOwned<ClientConnection, TimedStream<TcpStream>>;

/// What a server must show, and what the client shows.
#[derive(Debug, Clone)]
pub struct TlsParams {
    /// What the server's certificate must show.
    pub verification: Verification,
    /// A file of revoked certificates.
    pub crl: Option<PathBuf>,
    /// The client's certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Tells the server which host it is asked for.
    pub sni: bool,
    /// Accepts TLS 1.2.
    pub allow_1_2: bool,
    /// Accepts TLS 1.3.
    pub allow_1_3: bool,
    /// The protocol's name (RFC 7301), if it has one.
    pub alpn: Option<&'static [u8]>,
}

/// What a server's certificate must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Nothing: the connection is encrypted, whoever answers.
    None,
    /// The signature of an authority.
    Authority(Roots),
    /// The signature of an authority, and the host's name.
    AuthorityAndName(Roots),
}

/// The authorities that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Those of the system.
    System,
    /// Those of a file.
    File(PathBuf),
    /// Those of a file in the home directory, if there were one.
    NoHome,
}

/// Why TLS failed: what kind of failure, one sentence, what the user can do, and the cause.
#[derive(Debug)]
pub struct TlsError {
    /// What kind of failure. Options that help have other names with each server.
    pub failure: TlsFailure,
    /// The sentence.
    pub message: String,
    /// What the user can do, unless that depends on the server.
    pub hint: &'static str,
    /// The cause.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure {
    /// The connection broke, or the server was too slow.
    Connection,
    /// The root certificates were not found.
    NoRoots,
    /// The server's certificate is not of a trusted authority.
    Authority,
    /// The server's certificate is another host's.
    Name,
    /// The server has no version or no cipher that this client has, too.
    NothingInCommon,
    /// Anything else that is wrong with a certificate, a file or the protocol.
    Refused,
}

impl TlsError {
    pub(crate) fn new(failure: TlsFailure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into(), hint: "", cause: None }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(TlsFailure::Refused, message)
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub(crate) fn with_cause(
        self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }
}

/// How to encrypt a connection to one host.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// Without the client's key.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the certificates. `host` is the expected name; `address` replaces one that can't be a
    /// server's name.
    ///
    /// # Errors
    /// When a file can't be read, or the host's name can't be verified.
    pub fn prepare(params: &TlsParams, host: &str, address: IpAddr) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::read(params, &provider)?;
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(cause) if matches!(params.verification, Verification::AuthorityAndName(_)) => {
                let what = format!("{host:?} can't be verified, as it is not a host's name");
                return Err(TlsError::refused(what).with_cause(cause));
            }
            Err(_) => ServerName::IpAddress(address.into()),
        };
        let mut versions = Vec::new();
        versions.extend(params.allow_1_3.then_some(&rustls::version::TLS13));
        versions.extend(params.allow_1_2.then_some(&rustls::version::TLS12));
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|cause| TlsError::refused("no TLS").with_cause(cause))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &params.certificate {
            Some((certificate, key)) => {
                let chain = read_certificates(certificate)?;
                let key = read_key(key)?;
                config.with_client_auth_cert(chain, key).map_err(|cause| {
                    let what =
                        format!("client certificate {} is not usable", certificate.display());
                    TlsError::refused(what).with_cause(cause)
                })?
            }
            None => config.with_no_client_auth(),
        };
        config.enable_sni = params.sni;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = params.alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Self { config: Arc::new(config), name })
    }

    /// Performs the handshake.
    ///
    /// # Errors
    /// When the server is not trusted, or does not finish before the wait ends.
    pub fn start(
        &self,
        mut stream: TimedStream<TcpStream>,
        wait: &mut Wait<'_>,
    ) -> Result<TlsStream, TlsError> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut session = session.map_err(|cause| TlsError::refused("no TLS").with_cause(cause))?;
        while session.is_handshaking() {
            match session.complete_io(&mut stream) {
                // A server that sends a byte now and then does not extend the wait.
                Ok(_) => wait.check().map_err(handshake_failed)?,
                Err(cause) if is_timeout(&cause) => wait.check().map_err(handshake_failed)?,
                Err(cause) => return Err(handshake_failed(cause)),
            }
        }
        Ok(StreamOwned::new(session, stream))
    }
}

/// Whether an error is about certificates or TLS, not about the network.
pub fn is_tls_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
}

fn handshake_failed(cause: io::Error) -> TlsError {
    if cause.kind() == io::ErrorKind::TimedOut {
        return TlsError::new(
            TlsFailure::Connection,
            "the server did not finish the TLS handshake in time",
        );
    }
    let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let (failure, hint) = match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            (TlsFailure::Name, "")
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => (TlsFailure::Authority, ""),
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))))
            if matches!(inner.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion)) =>
        {
            (
                TlsFailure::Refused,
                "the server's certificate is of X.509 version 1, which can't be verified: \
                 issue one of version 3, for example with a subjectAltName",
            )
        }
        Some(
            rustls::Error::PeerIncompatible(_)
            // Servers with TLS 1.1 may answer in it.
            | rustls::Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
            | rustls::Error::AlertReceived(
                AlertDescription::HandshakeFailure
                | AlertDescription::ProtocolVersion
                | AlertDescription::InsufficientSecurity,
            ),
        ) => (
            TlsFailure::NothingInCommon,
            "the server must have TLS 1.3, or TLS 1.2 with a cipher of ECDHE, for this client",
        ),
        Some(_) => (TlsFailure::Refused, ""),
        None => (TlsFailure::Connection, ""),
    };
    TlsError::new(failure, "the TLS handshake failed").with_cause(cause).with_hint(hint)
}

pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => {
            Err(TlsError::refused(format!("no certificate in {}", path.display())))
        }
        Ok(found) => Ok(found),
        Err(cause) => {
            Err(TlsError::refused(format!("can't read certificates from {}", path.display()))
                .with_cause(cause))
        }
    }
}

/// Reads a private key. Others must not be able to read the file; a key of root's may be shared
/// with a group.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let failed = || TlsError::refused(format!("can't read private key {}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|cause| failed().with_cause(cause))?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        let what = format!("private key {} can be read by its group or the world", path.display());
        return Err(TlsError::refused(what).with_hint("chmod 0600; or 0640 if it is root's"));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|cause| {
        failed().with_cause(cause).with_hint("keys are PEM; encrypted ones are not supported")
    })
}
