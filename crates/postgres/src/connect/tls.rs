//! TLS as libpq does it: `sslmode` decides what is verified.

use std::io;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName,
    SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme, StreamOwned,
};
use webpki::{
    CertRevocationList, EndEntityCert, KeyUsage, OwnedCertRevocationList, RevocationOptionsBuilder,
};

use super::certificate;
use super::params::{Roots, TlsParams, Verification};
use crate::error::{Error, ErrorKind, Result};
use crate::net::{TimedStream, Wait, is_timeout};

pub(crate) type TlsStream = StreamOwned<ClientConnection, TimedStream<TcpStream>>;

/// The protocol's name (RFC 7301), known to PostgreSQL 17. Without SSLRequest the server must agree
/// to it.
const ALPN: &[u8] = b"postgresql";

/// How to encrypt a connection to one host.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    pub(crate) direct: bool,
}

impl Tls {
    /// Reads the certificates. `host` is the expected name; `address` replaces one that can't be a
    /// server's name.
    pub(crate) fn prepare(
        params: &TlsParams,
        host: &str,
        address: std::net::IpAddr,
    ) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::read(params, &provider)?;
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(cause) if matches!(params.verification, Verification::AuthorityAndName(_)) => {
                return Err(refused(format!(
                    "{host:?} can't be verified, as it is not a host's name"
                ))
                .with_cause(cause));
            }
            Err(_) => ServerName::IpAddress(address.into()),
        };
        let mut versions = Vec::new();
        versions.extend(params.allow_1_3.then_some(&rustls::version::TLS13));
        versions.extend(params.allow_1_2.then_some(&rustls::version::TLS12));
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|cause| refused("no TLS").with_cause(cause))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &params.certificate {
            Some((certificate, key)) => {
                let chain = read_certificates(certificate)?;
                let key = read_key(key)?;
                config.with_client_auth_cert(chain, key).map_err(|cause| {
                    refused(format!("client certificate {} is not usable", certificate.display()))
                        .with_cause(cause)
                })?
            }
            None => config.with_no_client_auth(),
        };
        config.enable_sni = params.sni;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { config: Arc::new(config), name, direct: params.direct })
    }

    /// Performs the handshake.
    pub(crate) fn start(
        &self,
        mut stream: TimedStream<TcpStream>,
        wait: &mut Wait<'_>,
    ) -> Result<TlsStream> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut session = session.map_err(|cause| refused("no TLS").with_cause(cause))?;
        while session.is_handshaking() {
            match session.complete_io(&mut stream) {
                // A server that sends a byte now and then does not extend the wait.
                Ok(_) => wait.check().map_err(handshake_failed)?,
                Err(cause) if is_timeout(&cause) => wait.check().map_err(handshake_failed)?,
                Err(cause) => return Err(handshake_failed(cause)),
            }
        }
        if self.direct && session.alpn_protocol() != Some(ALPN) {
            let error = Error::new(
                ErrorKind::Connection,
                "the server at the other end of TLS is not PostgreSQL's",
            );
            return Err(error.with_hint("sslnegotiation=direct needs PostgreSQL 17"));
        }
        Ok(StreamOwned::new(session, stream))
    }
}

/// The channel binding of a stream, if the server's certificate has one.
pub(crate) fn channel_binding(stream: &TlsStream) -> Option<Vec<u8>> {
    certificate::server_end_point(stream.conn.peer_certificates()?.first()?)
}

/// Whether an error is about certificates or TLS, not about the network.
pub(crate) fn is_tls_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
}

fn handshake_failed(cause: io::Error) -> Error {
    if cause.kind() == io::ErrorKind::TimedOut {
        return Error::new(
            ErrorKind::Connection,
            "the server did not finish the TLS handshake in time",
        );
    }
    let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let hint = match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            "sslmode=verify-full expects the host's name in the server's certificate"
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => {
            "sslrootcert names the file with the server's authority; \
             sslrootcert=system takes the system's"
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))))
            if matches!(inner.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion)) =>
        {
            "the server's certificate is of X.509 version 1, which can't be verified: \
             issue one of version 3, for example with a subjectAltName"
        }
        _ => "",
    };
    let kind = if inner.is_some() { ErrorKind::Authentication } else { ErrorKind::Connection };
    Error::new(kind, "the TLS handshake failed").with_cause(cause).with_hint(hint)
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Authentication, what)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => {
            Err(refused(format!("no certificate in {}", path.display())))
        }
        Ok(found) => Ok(found),
        Err(cause) => {
            Err(refused(format!("can't read certificates from {}", path.display()))
                .with_cause(cause))
        }
    }
}

/// Reads a private key. Others must not be able to read the file; a key of root's may be shared
/// with a group.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let failed = || refused(format!("can't read private key {}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|cause| failed().with_cause(cause))?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        let what = format!("private key {} can be read by its group or the world", path.display());
        return Err(refused(what).with_hint("chmod 0600; or 0640 if it is root's"));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|cause| {
        failed().with_cause(cause).with_hint("keys are PEM; encrypted ones are not supported")
    })
}

/// Verifies the server: its signature, its certificate's chain, and its name.
#[derive(Debug)]
struct Verifier {
    /// None if any certificate will do.
    trusted: Option<Trusted>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Trusted {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
    revoked: Vec<CertRevocationList<'static>>,
}

impl Verifier {
    fn read(params: &TlsParams, provider: &CryptoProvider) -> Result<Self> {
        let (trusted, check_name) = match &params.verification {
            Verification::None => (None, false),
            Verification::Authority(roots) => {
                (Some(Trusted::read(roots, params.crl.as_deref())?), false)
            }
            Verification::AuthorityAndName(roots) => {
                (Some(Trusted::read(roots, params.crl.as_deref())?), true)
            }
        };
        Ok(Self { trusted, check_name, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(trusted) = &self.trusted {
            let parsed = EndEntityCert::try_from(certificate).map_err(untrusted)?;
            trusted.verify_chain(certificate, &parsed, intermediates, self.algorithms, now)?;
            if self.check_name {
                verify_name(certificate, &parsed, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    /// Uses the key alone. The rest of the certificate does not matter here, and one that is not
    /// verified may be of a version that rustls can't read.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = certificate::public_key(certificate)
            .ok_or(rustls::Error::InvalidCertificate(CertificateError::BadEncoding))?;
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(key),
            signature,
            &self.algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl Trusted {
    /// Reads the authorities and the list of revoked certificates.
    fn read(from: &Roots, crl: Option<&Path>) -> Result<Self> {
        const HINT: &str = "name it by sslrootcert; sslrootcert=system takes the system's roots";
        let mut roots = RootCertStore::empty();
        let mut certificates = Vec::new();
        match from {
            Roots::System => {
                let system = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(system.certs);
                if roots.is_empty() {
                    let error = refused("the system has no root certificates")
                        .with_hint("install ca-certificates");
                    return Err(match system.errors.into_iter().next() {
                        Some(cause) => error.with_cause(cause),
                        None => error,
                    });
                }
            }
            Roots::NoHome => {
                return Err(refused(
                    "there is no home directory in which a root certificate file could be",
                )
                .with_hint(HINT));
            }
            Roots::File(path) if !path.exists() => {
                return Err(refused(format!(
                    "root certificate file {} does not exist",
                    path.display()
                ))
                .with_hint(HINT));
            }
            Roots::File(path) => {
                certificates = read_certificates(path)?;
                // A certificate that is no authority may still be the server's own.
                roots.add_parsable_certificates(certificates.iter().cloned());
            }
        }
        let mut revoked = Vec::new();
        if let Some(path) = crl {
            let failed =
                || refused(format!("can't read revoked certificates from {}", path.display()));
            for list in CertificateRevocationListDer::pem_file_iter(path)
                .map_err(|cause| failed().with_cause(cause))?
            {
                let list = list.map_err(|cause| failed().with_cause(cause))?;
                let list = OwnedCertRevocationList::from_der(&list)
                    .map_err(|cause| failed().with_cause(cause))?;
                revoked.push(CertRevocationList::Owned(list));
            }
        }
        Ok(Self { roots, certificates, revoked })
    }

    fn verify_chain(
        &self,
        certificate: &CertificateDer<'_>,
        parsed: &EndEntityCert<'_>,
        intermediates: &[CertificateDer<'_>],
        algorithms: WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let revoked: Vec<_> = self.revoked.iter().collect();
        let revocation =
            RevocationOptionsBuilder::new(&revoked).ok().map(RevocationOptionsBuilder::build);
        let usage = KeyUsage::server_auth();
        match parsed.verify_for_usage(
            algorithms.all,
            &self.roots.roots,
            intermediates,
            now,
            usage,
            revocation,
            None,
        ) {
            Ok(_) => Ok(()),
            // A self-signed server certificate, as in PostgreSQL's manual. webpki refuses an
            // authority as a server, but only after it has checked the dates.
            Err(webpki::Error::CaUsedAsEndEntity) if self.certificates.contains(certificate) => {
                Ok(())
            }
            Err(error) => Err(untrusted(error)),
        }
    }
}

/// Verifies the name. As in libpq, the common name counts only without alternative names.
fn verify_name(
    certificate: &CertificateDer<'_>,
    parsed: &EndEntityCert<'_>,
    name: &ServerName<'_>,
) -> Result<(), rustls::Error> {
    match parsed.verify_is_valid_for_subject_name(name) {
        Ok(()) => Ok(()),
        Err(webpki::Error::CertNotValidForName(context)) if context.presented.is_empty() => {
            match certificate::common_name(certificate) {
                Some(common) if certificate::matches_host(common, &name.to_str()) => Ok(()),
                _ => Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)),
            }
        }
        Err(error) => Err(untrusted(error)),
    }
}

fn untrusted(error: webpki::Error) -> rustls::Error {
    rustls::Error::InvalidCertificate(match error {
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        // Another authority of the same name.
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::CertRevoked => CertificateError::Revoked,
        webpki::Error::CertNotValidForName(_) => CertificateError::NotValidForName,
        error => CertificateError::Other(OtherError(Arc::new(error))),
    })
}
