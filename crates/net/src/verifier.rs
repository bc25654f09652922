//! Verifies a server's certificate: its chain, its name, and the signature of the handshake.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use webpki::{
    CertRevocationList, EndEntityCert, KeyUsage, OwnedCertRevocationList, RevocationOptionsBuilder,
};

use crate::certificate;
use crate::tls::{Roots, TlsError, TlsFailure, TlsParams, Verification, read_certificates};

/// Verifies the server: its signature, its certificate's chain, and its name.
#[derive(Debug)]
pub(crate) struct Verifier {
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
    pub(crate) fn read(params: &TlsParams, provider: &CryptoProvider) -> Result<Self, TlsError> {
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
    fn read(from: &Roots, crl: Option<&Path>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        let mut certificates = Vec::new();
        match from {
            Roots::System => {
                let system = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(system.certs);
                if roots.is_empty() {
                    let error = TlsError::refused("the system has no root certificates")
                        .with_hint("install ca-certificates");
                    return Err(match system.errors.into_iter().next() {
                        Some(cause) => error.with_cause(cause),
                        None => error,
                    });
                }
            }
            Roots::NoHome => {
                return Err(TlsError::new(
                    TlsFailure::NoRoots,
                    "there is no home directory in which a root certificate file could be",
                ));
            }
            Roots::File(path) if !path.exists() => {
                return Err(TlsError::new(
                    TlsFailure::NoRoots,
                    format!("root certificate file {} does not exist", path.display()),
                ));
            }
            Roots::File(path) => {
                certificates = read_certificates(path)?;
                // A certificate that is no authority may still be the server's own.
                roots.add_parsable_certificates(certificates.iter().cloned());
            }
        }
        let mut revoked = Vec::new();
        if let Some(path) = crl {
            let failed = || {
                TlsError::refused(format!(
                    "can't read revoked certificates from {}",
                    path.display()
                ))
            };
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
