//! The parts of a server's certificate that rustls does not give, read from its DER bytes (RFC 5280
//! section 4.1).

use ring::digest::{self, SHA256, SHA384, SHA512};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The tag of a field `[0]`.
const FIELD_0: u8 = 0xa0;

/// 1.2.840.113549.1.1: RSA signatures.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// 1.2.840.10045.4: ECDSA signatures.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
/// 2.16.840.1.101.3.4.2: hashes of the SHA-2 family.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
/// 1.3.14.3.2.26: SHA-1.
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// 2.5.4.3: the common name.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The channel binding tls-server-end-point (RFC 5929 section 4.1): the certificate's hash by the
/// algorithm of its signature, or by SHA-256 if that is MD5 or SHA-1. None if the signature has no
/// known hash (Ed25519).
pub fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Der(Der(certificate).content(SEQUENCE)?);
    fields.content(SEQUENCE)?;
    let mut signature = Der(fields.content(SEQUENCE)?);
    let algorithm = match signature.content(OID)? {
        oid if oid.starts_with(RSA) => match &oid[RSA.len()..] {
            [4 | 5 | 11] => &SHA256,
            [12] => &SHA384,
            [13] => &SHA512,
            [10] => pss_hash(signature)?,
            _ => return None,
        },
        oid if oid.starts_with(ECDSA) => match &oid[ECDSA.len()..] {
            [1] | [3, 2] => &SHA256,
            [3, 3] => &SHA384,
            [3, 4] => &SHA512,
            _ => return None,
        },
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().to_vec())
}

/// The hash of RSASSA-PSS, from its parameters (RFC 4055 section 3.1); SHA-1 without any.
fn pss_hash(mut parameters: Der<'_>) -> Option<&'static digest::Algorithm> {
    let mut fields = Der(parameters.content(SEQUENCE)?);
    let Some(hash) = fields.content(FIELD_0) else { return Some(&SHA256) };
    match Der(Der(hash).content(SEQUENCE)?).content(OID)? {
        SHA1 => Some(&SHA256),
        oid if oid.starts_with(SHA2) => match &oid[SHA2.len()..] {
            [1] => Some(&SHA256),
            [2] => Some(&SHA384),
            [3] => Some(&SHA512),
            _ => None,
        },
        _ => None,
    }
}

/// The certificate's public key and its algorithm: the whole `SubjectPublicKeyInfo`.
pub fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    let mut fields = after_validity(certificate)?;
    fields.content(SEQUENCE)?;
    fields.whole(SEQUENCE)
}

/// The modulus and the exponent of an RSA key, from its `SubjectPublicKeyInfo` (RFC 8017 appendix
/// A.1.1).
pub fn rsa_public_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Der(Der(key).content(SEQUENCE)?);
    let algorithm = Der(fields.content(SEQUENCE)?).content(OID)?;
    // The first byte counts the bits that are not used.
    let (0, key) = fields.content(BIT_STRING)?.split_first()? else { return None };
    let mut numbers = Der(Der(key).content(SEQUENCE)?);
    let is_rsa = algorithm.strip_prefix(RSA) == Some(&[1]);
    is_rsa.then_some((numbers.content(INTEGER)?, numbers.content(INTEGER)?))
}

/// The subject's common name. Old certificates have it instead of alternative names.
pub fn common_name(certificate: &[u8]) -> Option<&str> {
    let mut subject = Der(after_validity(certificate)?.content(SEQUENCE)?);
    while let Some(set) = subject.content(SET) {
        let mut attribute = Der(Der(set).content(SEQUENCE)?);
        if attribute.content(OID)? == COMMON_NAME {
            return std::str::from_utf8(attribute.element()?.content).ok();
        }
    }
    None
}

/// Whether a name in a certificate matches a host; `*.` stands for one label.
pub fn matches_host(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host
            .split_once('.')
            .is_some_and(|(label, tail)| !label.is_empty() && tail.eq_ignore_ascii_case(parent)),
        None => name.eq_ignore_ascii_case(host),
    }
}

/// The fields of the signed part after the validity: subject, public key, …
fn after_validity(certificate: &[u8]) -> Option<Der<'_>> {
    let mut fields = Der(Der(Der(certificate).content(SEQUENCE)?).content(SEQUENCE)?);
    // Skips the version (absent in version 1), the serial number, the signature, the issuer and the
    // validity.
    fields.content(FIELD_0);
    fields.content(INTEGER)?;
    (0..3).try_for_each(|_| fields.content(SEQUENCE).map(drop))?;
    Some(fields)
}

/// A sequence of elements: tag, length, content.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

struct Element<'a> {
    tag: u8,
    whole: &'a [u8],
    content: &'a [u8],
}

impl<'a> Der<'a> {
    fn element(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        // From 0x80 on, the byte is the number of length bytes that follow.
        let length_bytes = usize::from(first.saturating_sub(0x80));
        let (length, rest) = rest.split_at_checked(length_bytes)?;
        let length = match (first, length_bytes) {
            (0x80, _) | (_, 4..) => return None,
            (_, 0) => usize::from(first),
            _ => length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let (whole, _) = self.0.split_at_checked(self.0.len() - rest.len())?;
        self.0 = rest;
        Some(Element { tag, whole, content })
    }

    /// Takes the next element if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.element().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.expect(tag).map(|element| element.content)
    }

    fn whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.expect(tag).map(|element| element.whole)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
        PKCS_ED25519,
    };

    use super::*;

    fn certificate(algorithm: &'static rcgen::SignatureAlgorithm) -> (Vec<u8>, KeyPair) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::new(["x.test".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "dray");
        params.distinguished_name.push(DnType::CommonName, "db.test");
        (params.self_signed(&key).unwrap().der().to_vec(), key)
    }

    #[test]
    fn server_end_points() {
        let (der, _) = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(server_end_point(&der).unwrap(), digest::digest(&SHA256, &der).as_ref());
        let (der, _) = certificate(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(server_end_point(&der).unwrap(), digest::digest(&SHA384, &der).as_ref());
        let (der, _) = certificate(&PKCS_ED25519);
        assert_eq!(server_end_point(&der), None);
    }

    #[test]
    fn parameters_of_pss() {
        // [0] { SEQUENCE { OID sha384 } }
        let sha384 = [
            0xa0, 0x0d, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x02,
        ];
        let sequence = [&[0x30, sha384.len() as u8][..], &sha384].concat();
        assert_eq!(pss_hash(Der(&sequence)), Some(&SHA384));
        assert_eq!(pss_hash(Der(&[0x30, 0])), Some(&SHA256));
        assert_eq!(pss_hash(Der(&[])), None);
    }

    #[test]
    fn fields() {
        let (der, key) = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(common_name(&der), Some("db.test"));
        assert_eq!(public_key(&der).unwrap(), rcgen::PublicKeyData::subject_public_key_info(&key));
    }

    #[test]
    fn rsa_keys() {
        // SEQUENCE { SEQUENCE { OID rsaEncryption, NULL }, BIT STRING { SEQUENCE { 7, 3 } } }
        let key = b"\x30\x1a\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0\
            \x03\x09\0\x30\x06\x02\x01\x07\x02\x01\x03";
        assert_eq!(rsa_public_key(key), Some((&[7][..], &[3][..])));
        for end in 0..key.len() {
            assert_eq!(rsa_public_key(&key[..end]), None, "{end}");
        }
        let (_, key) = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(rsa_public_key(&rcgen::PublicKeyData::subject_public_key_info(&key)), None);
    }

    #[test]
    fn cut_off() {
        let (der, _) = certificate(&PKCS_ECDSA_P256_SHA256);
        for end in 0..der.len() {
            assert!(
                server_end_point(&der[..end]).is_none() && public_key(&der[..end]).is_none(),
                "{end}"
            );
        }
        for length in
            [&[0x80][..], &[0x85, 1, 1, 1, 1, 1], &[0x84, 0xff, 0xff, 0xff, 0xff], &[0x82, 1]]
        {
            assert!(Der(&[&[SEQUENCE], length].concat()).element().is_none(), "{length:?}");
        }
    }

    #[test]
    fn hosts() {
        for (name, host, expected) in [
            ("db", "DB", true),
            ("db", "db.test", false),
            ("*.test", "db.test", true),
            ("*.test", "a.db.test", false),
            ("*.test", ".test", false),
            ("*", "db", false),
        ] {
            assert_eq!(matches_host(name, host), expected, "{name} {host}");
        }
    }
}
