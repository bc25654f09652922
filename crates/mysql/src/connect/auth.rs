//! Methods of authentication. A password is only sent where nobody can read along: hashed with the
//! server's nonce, encrypted with its key, or as it is over TLS or a Unix socket.
//!
//! With `ssl-mode` PREFERRED and REQUIRED nobody checks who answers TLS: it may be somebody in
//! between, who gets the password if the method sends it as it is. VERIFY_CA and VERIFY_IDENTITY
//! know the server first.

use std::path::Path;

use dray_net::rsa_public_key;
use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::client_ed25519::ClientEd25519;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::auth::plugins::parsec::Parsec;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context, Response};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use super::greeting::NONCE_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::fields::malformed;

/// What the server of caching_sha2_password says: it knows the password's hash, or not.
const KNOWN: u8 = 3;
const UNKNOWN: u8 = 4;
/// How its client and that of sha256_password ask for the server's key.
const CACHING_KEY_REQUEST: u8 = 2;
const SHA256_KEY_REQUEST: u8 = 1;
/// The bits of a server's key. MySQL makes keys of 2048.
const KEY_BITS: std::ops::RangeInclusive<u64> = 1024..=16_384;
/// The longest exponent, 65 537 as a rule.
const EXPONENT_BYTES_MAX: usize = 8;
/// What the padding takes of an encrypted block: two hashes and two bytes.
const PADDING_BYTES: usize = 42;

const SUPPORTED: &str = "mysql_native_password, caching_sha2_password, sha256_password, \
                         client_ed25519, parsec, mysql_clear_password";

/// The user's password, and how it may be sent.
pub(super) struct Secrets<'a> {
    pub(super) password: &'a [u8],
    pub(super) is_tls: bool,
    pub(super) is_unix: bool,
    /// The user allows to send it as it is, over TLS or a Unix socket.
    pub(super) cleartext: bool,
    /// A file with the server's public key.
    pub(super) server_key: Option<&'a Path>,
    /// The user allows to ask the server for its key.
    pub(super) asks_for_key: bool,
}

impl Secrets<'_> {
    /// Whether a key that the server sends is trusted. Nobody is in between on a Unix socket.
    fn may_ask_for_key(&self) -> bool {
        self.asks_for_key || self.is_unix
    }
}

/// How the user proves who they are.
#[derive(Debug)]
pub(super) enum Authentication {
    Native,
    CachingSha2 { awaits_key: bool },
    Sha256,
    Ed25519(ClientEd25519),
    Parsec(Parsec),
    Clear,
}

impl Authentication {
    /// The method with this name, if it is known here.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"mysql_native_password" => Self::Native,
            b"caching_sha2_password" => Self::CachingSha2 { awaits_key: false },
            b"sha256_password" => Self::Sha256,
            b"client_ed25519" => Self::Ed25519(ClientEd25519::default()),
            b"parsec" => Self::Parsec(Parsec::default()),
            b"mysql_clear_password" => Self::Clear,
            _ => return None,
        })
    }

    /// The method that the server asks for.
    pub(super) fn required(name: &[u8], secrets: &Secrets<'_>) -> Result<Self> {
        let name_text = String::from_utf8_lossy(name);
        let refused = |what: &str| {
            let what = format!("the server asks for authentication by {name_text:?}, {what}");
            Error::new(ErrorKind::Authentication, what)
        };
        match Self::named(name) {
            Some(method) if method.is_allowed(secrets) => Ok(method),
            Some(_) if !secrets.is_tls && !secrets.is_unix => {
                Err(refused("which sends the password as it is, and others may read along")
                    .with_hint("ssl-mode=REQUIRED connects by TLS only"))
            }
            Some(_) => Err(refused("which sends the password as it is")
                .with_hint("enable-cleartext-plugin=1 allows it")),
            None => Err(refused("which is not supported")
                .with_hint(format!("supported are {SUPPORTED}, and unix_socket"))),
        }
    }

    /// Whether the method may be used over this connection.
    pub(super) fn is_allowed(&self, secrets: &Secrets<'_>) -> bool {
        match self {
            Self::Clear => secrets.cleartext && (secrets.is_tls || secrets.is_unix),
            _ => true,
        }
    }

    /// The first answer, to a nonce.
    pub(super) fn begin(&mut self, nonce: &[u8], secrets: &Secrets<'_>) -> Result<Vec<u8>> {
        let password = secrets.password;
        Ok(match self {
            Self::Native => {
                let hash = scramble_native(nonce_of(nonce)?, password);
                hash.map(Vec::from).unwrap_or_default()
            }
            Self::CachingSha2 { .. } => {
                let hash = scramble_sha256(nonce_of(nonce)?, password);
                // A password that is empty has no hash.
                hash.map_or_else(|| vec![0], Vec::from)
            }
            Self::Sha256 if password.is_empty() => vec![0],
            Self::Sha256 if secrets.is_tls => zero_ended(password),
            Self::Sha256 => match key_of(secrets, "sha256_password")? {
                Some(key) => encrypt(password, nonce, &key)?,
                None => vec![SHA256_KEY_REQUEST],
            },
            Self::Ed25519(plugin) => run(plugin, nonce, secrets)?,
            Self::Parsec(plugin) => run(plugin, nonce, secrets)?,
            Self::Clear => zero_ended(password),
        })
    }

    /// The answer to what the server sends next; None if it expects none.
    pub(super) fn go_on(
        &mut self,
        data: &[u8],
        nonce: &[u8],
        secrets: &Secrets<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match (self, data) {
            (Self::CachingSha2 { awaits_key: false }, [KNOWN]) => Ok(None),
            (Self::CachingSha2 { awaits_key: false }, [UNKNOWN])
                if secrets.is_tls || secrets.is_unix =>
            {
                Ok(Some(zero_ended(secrets.password)))
            }
            (Self::CachingSha2 { awaits_key: awaits @ false }, [UNKNOWN]) => {
                match key_of(secrets, "caching_sha2_password")? {
                    Some(key) => encrypt(secrets.password, nonce, &key).map(Some),
                    None => {
                        *awaits = true;
                        Ok(Some(vec![CACHING_KEY_REQUEST]))
                    }
                }
            }
            (Self::CachingSha2 { awaits_key: true } | Self::Sha256, key) => {
                if secrets.is_tls || secrets.server_key.is_some() || !secrets.may_ask_for_key() {
                    return Err(malformed("a key that was not asked for"));
                }
                encrypt(secrets.password, nonce, key).map(Some)
            }
            (Self::Parsec(plugin), salt) => run(plugin, salt, secrets).map(Some),
            _ => Err(malformed("an authentication that goes on after its end")),
        }
    }
}

fn zero_ended(password: &[u8]) -> Vec<u8> {
    [password, &[0]].concat()
}

fn nonce_of(nonce: &[u8]) -> Result<&[u8; NONCE_BYTES]> {
    nonce.try_into().map_err(|_| malformed(format!("a nonce of {} bytes", nonce.len())))
}

/// The server's key from the user's file; None if the server may be asked for it.
fn key_of(secrets: &Secrets<'_>, method: &str) -> Result<Option<Vec<u8>>> {
    match secrets.server_key {
        Some(path) => std::fs::read(path).map(Some).map_err(|cause| {
            let what = format!("can't read the server's public key from {}", path.display());
            Error::new(ErrorKind::Authentication, what).with_cause(cause)
        }),
        None if secrets.may_ask_for_key() => Ok(None),
        None => {
            let what = format!(
                "{method} needs TLS, a Unix socket, or the server's public key to send a password"
            );
            Err(Error::new(ErrorKind::Authentication, what).with_hint(
                "server-public-key-path names the file of the key; get-server-public-key=1 asks \
                 the server, or whoever answers in its place",
            ))
        }
    }
}

/// Encrypts the password, combined with the nonce, by the server's RSA key (RFC 8017, OAEP).
fn encrypt(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>> {
    let refused = |what: &str| Error::new(ErrorKind::Authentication, what.to_owned());
    let key = SubjectPublicKeyInfoDer::from_pem_slice(pem)
        .map_err(|cause| refused("the server's public key can't be read").with_cause(cause))?;
    let (modulus, exponent) =
        rsa_public_key(&key).ok_or_else(|| refused("the server's public key is not one of RSA"))?;
    let number = BigUint::from_bytes_be(modulus);
    if !KEY_BITS.contains(&number.bits()) || exponent.len() > EXPONENT_BYTES_MAX {
        return Err(refused("the server's public key has an odd size"));
    }
    let key = PublicKey::new(number, BigUint::from_bytes_be(exponent));
    if password.len() + 1 > key.num_octets().saturating_sub(PADDING_BYTES) {
        return Err(refused("the password is longer than the server's public key allows"));
    }
    let nonce = nonce_of(nonce)?;
    let block = zero_ended(password);
    let block: Vec<u8> = block.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
    key.encrypt_block(block, Pkcs1OaepPadding::new(GetRandom))
        .map_err(|cause| refused("the password can't be encrypted").with_cause(cause))
}

fn run(
    plugin: &mut impl ChallengeResponsePlugin,
    challenge: &[u8],
    secrets: &Secrets<'_>,
) -> Result<Vec<u8>> {
    let response: Response = plugin
        .run(secrets, challenge)
        .map_err(|cause| malformed("the authentication's data").with_cause(cause))?;
    Ok(response.data().unwrap_or_default().to_vec())
}

impl Context for &Secrets<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        self.is_unix
    }

    fn is_tls_transport(&self) -> bool {
        self.is_tls
    }

    fn scramble(&self) -> &[u8] {
        &[]
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8] = b"abcdefghijklmnopqrst";

    fn secrets(password: &str) -> Secrets<'_> {
        Secrets {
            password: password.as_bytes(),
            is_tls: false,
            is_unix: false,
            cleartext: false,
            server_key: None,
            asks_for_key: false,
        }
    }

    /// A method that would send the password as it is does not do so where others may read along.
    #[test]
    fn nothing_in_the_clear() {
        let plain = secrets("secret");
        let error = Authentication::required(b"mysql_clear_password", &plain).unwrap_err();
        assert!(error.hint().unwrap().contains("ssl-mode"), "{error}");
        let cleartext = Secrets { cleartext: true, ..secrets("secret") };
        Authentication::required(b"mysql_clear_password", &cleartext).unwrap_err();
        let tls = Secrets { is_tls: true, ..secrets("secret") };
        let error = Authentication::required(b"mysql_clear_password", &tls).unwrap_err();
        assert!(error.hint().unwrap().contains("enable-cleartext-plugin"), "{error}");
        let both = Secrets { is_tls: true, cleartext: true, ..secrets("secret") };
        let mut clear = Authentication::required(b"mysql_clear_password", &both).unwrap();
        assert_eq!(clear.begin(NONCE, &both).unwrap(), b"secret\0");

        let mut caching = Authentication::named(b"caching_sha2_password").unwrap();
        assert_eq!(caching.begin(NONCE, &plain).unwrap().len(), 32);
        let error = caching.go_on(&[UNKNOWN], NONCE, &plain).unwrap_err();
        assert!(error.hint().unwrap().contains("get-server-public-key"), "{error}");
        let mut sha256 = Authentication::named(b"sha256_password").unwrap();
        sha256.begin(NONCE, &plain).unwrap_err();
        for name in ["mysql_old_password", "dialog", ""] {
            let error = Authentication::required(name.as_bytes(), &both).unwrap_err();
            assert!(error.to_string().contains("not supported"), "{error}");
        }
    }

    #[test]
    fn keys() {
        let asking = Secrets { asks_for_key: true, ..secrets("secret") };
        let mut caching = Authentication::named(b"caching_sha2_password").unwrap();
        caching.begin(NONCE, &asking).unwrap();
        let request = caching.go_on(&[UNKNOWN], NONCE, &asking).unwrap();
        assert_eq!(request, Some(vec![CACHING_KEY_REQUEST]));
        for key in ["", "-----BEGIN PUBLIC KEY-----\nMA==\n-----END PUBLIC KEY-----\n"] {
            let error = caching.go_on(key.as_bytes(), NONCE, &asking).unwrap_err();
            assert!(error.to_string().contains("public key"), "{error}");
        }
        // An RSA key with the modulus 7.
        let small = "-----BEGIN PUBLIC KEY-----\nMBowDQYJKoZIhvcNAQEBBQADCQAwBgIBBwIBAw==\n\
                     -----END PUBLIC KEY-----\n";
        let error = caching.go_on(small.as_bytes(), NONCE, &asking).unwrap_err();
        assert!(error.to_string().contains("odd size"), "{error}");
    }

    /// What OpenSSL decrypts is the password, combined with the nonce.
    #[test]
    fn encrypted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let openssl = |arguments: &[&str]| {
            let done = std::process::Command::new("openssl").args(arguments).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            done.stdout
        };
        let (private, public, block) = (path("private"), path("public"), path("block"));
        openssl(&["genrsa", "-out", &private, "2048"]);
        openssl(&["rsa", "-in", &private, "-pubout", "-out", &public]);
        let given = Secrets { server_key: Some(Path::new(&public)), ..secrets("secret") };
        let mut caching = Authentication::named(b"caching_sha2_password").unwrap();
        let answer = caching.go_on(&[UNKNOWN], NONCE, &given).unwrap().unwrap();
        std::fs::write(&block, answer).unwrap();
        let oaep = ["-pkeyopt", "rsa_padding_mode:oaep"];
        let decrypt = ["pkeyutl", "-decrypt", "-inkey", &private, "-in", &block, oaep[0], oaep[1]];
        let plain: Vec<u8> = openssl(&decrypt).iter().zip(NONCE).map(|(a, b)| a ^ b).collect();
        assert_eq!(plain, b"secret\0");
        // A key that the server sends does not count beside the user's.
        let asking = Secrets { asks_for_key: true, ..given };
        let key = std::fs::read(&public).unwrap();
        let mut sha256 = Authentication::named(b"sha256_password").unwrap();
        assert_eq!(sha256.begin(NONCE, &asking).unwrap().len(), 256);
        let error = sha256.go_on(&key, NONCE, &asking).unwrap_err();
        assert!(error.to_string().contains("not asked for"), "{error}");
        let long = "x".repeat(215);
        let error = encrypt(long.as_bytes(), NONCE, &std::fs::read(&public).unwrap()).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        encrypt(&long.as_bytes()[..213], NONCE, &std::fs::read(&public).unwrap()).unwrap();
    }

    #[test]
    fn nonces() {
        for name in ["mysql_native_password", "caching_sha2_password", "client_ed25519", "parsec"] {
            for length in [0, 8, 19, 21, 33] {
                let mut method = Authentication::named(name.as_bytes()).unwrap();
                let begun = method.begin(&vec![7; length], &secrets("secret"));
                assert!(begun.is_err(), "{name} {length}");
            }
        }
    }
}
