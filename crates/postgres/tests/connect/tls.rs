//! TLS, with certificates of all kinds.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

/// The serial number of all certificates here.
const SERIAL: u64 = 7;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key.
    fn issue(&self, common_name: &str, names: &[&str]) -> (String, String) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.serial_number = Some(SERIAL.into());
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// A list of one revoked certificate.
    fn revoke(&self, serial: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2200, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

const HBA_TLS: &str = "\
local all all trust
hostssl all postgres 127.0.0.1/32 trust
hostnossl all unencrypted 127.0.0.1/32 trust
hostssl all bound 127.0.0.1/32 scram-sha-256
hostssl all certified 127.0.0.1/32 cert
";

fn start_tls(files: &[(&str, &str)]) -> Server {
    let settings = [
        ("ssl", "on"),
        ("ssl_cert_file", "server.crt"),
        ("ssl_key_file", "server.key"),
        ("ssl_ca_file", "ca.crt"),
    ];
    let server = Server::start_with(&settings, Some(HBA_TLS), files);
    server.sql(
        "CREATE ROLE unencrypted LOGIN; CREATE ROLE certified LOGIN; \
         CREATE ROLE bound LOGIN PASSWORD 'secret'",
    );
    server
}

fn save(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn tls() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.issue("db.test", &["localhost", "127.0.0.1"]);
    let authority_pem = authority.0.pem();
    let server = start_tls(&[
        ("server.crt", &certificate),
        ("server.key", &key),
        ("ca.crt", &authority_pem),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let root = save(folder.path(), "root.crt", &authority_pem);
    let wrong = save(folder.path(), "wrong.crt", &other.0.pem());
    let port = server.port;
    let attempt = |text: &str| {
        let session =
            open(&format!("host=localhost hostaddr=127.0.0.1 port={port} dbname=postgres {text}"));
        session.map(|mut session| {
            let encrypted =
                value(&mut session, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
                    == "t";
            assert_eq!(encrypted, session.socket.is_tls(), "{text}");
            encrypted
        })
    };

    // The modes: as a user who must be encrypted, and as one who must not.
    for (mode, encrypted, unencrypted) in [
        ("disable", None, Some(false)),
        ("allow", Some(true), Some(false)),
        ("prefer", Some(true), Some(false)),
        ("require", Some(true), None),
    ] {
        assert_eq!(attempt(&format!("user=postgres sslmode={mode}")).ok(), encrypted, "{mode}");
        assert_eq!(
            attempt(&format!("user=unencrypted sslmode={mode}")).ok(),
            unencrypted,
            "{mode}"
        );
    }
    let error = attempt("user=nobody").unwrap_err();
    assert!(
        error.message().contains("SSL encryption") && error.message().contains("no encryption"),
        "{error}"
    );

    // Roots and names.
    for (text, works) in [
        (format!("sslmode=require sslrootcert={root}"), true),
        (format!("sslmode=require sslrootcert={wrong}"), false),
        (format!("sslmode=require sslrootcert={}/none", folder.path().display()), true),
        (format!("sslmode=verify-ca sslrootcert={root}"), true),
        (format!("sslmode=verify-ca sslrootcert={wrong}"), false),
        (format!("sslmode=verify-ca sslrootcert={root} host=db.elsewhere"), true),
        (format!("sslmode=verify-full sslrootcert={root}"), true),
        (format!("sslmode=verify-full sslrootcert={root} host=127.0.0.1"), true),
        (format!("sslmode=verify-full sslrootcert={root} host=db.elsewhere"), false),
        // The common name would count only without alternative names.
        (format!("sslmode=verify-full sslrootcert={root} host=db.test"), false),
        (format!("sslmode=verify-full sslrootcert={wrong}"), false),
        ("sslrootcert=system".into(), false),
        (format!("sslmode=verify-full sslrootcert={root} ssl_max_protocol_version=TLSv1.2"), true),
        ("sslmode=require ssl_max_protocol_version=TLSv1.2".into(), true),
        ("sslmode=require ssl_min_protocol_version=TLSv1.3 sslsni=0".into(), true),
    ] {
        match attempt(&format!("user=postgres {text}")) {
            Ok(encrypted) => assert!(works && encrypted, "{text}"),
            Err(error) => {
                assert!(!works, "{text}: {error}");
                assert_eq!(error.kind(), ErrorKind::Authentication, "{text}: {error}");
                assert!(error.hint().is_some(), "{text}: {error}");
            }
        }
    }
    for (serial, works) in [(SERIAL, false), (SERIAL + 1, true)] {
        let list = save(folder.path(), "list.crl", &authority.revoke(serial));
        let session =
            attempt(&format!("user=postgres sslmode=verify-ca sslrootcert={root} sslcrl={list}"));
        assert_eq!(session.is_ok(), works, "{session:?}");
    }
    let missing =
        format!("user=postgres sslmode=verify-ca sslrootcert={}/none", folder.path().display());
    assert!(attempt(&missing).unwrap_err().message().contains("does not exist"));
    // No variable is set. Without a home directory there are no roots, and nobody is trusted.
    for mode in ["verify-ca", "verify-full"] {
        let error = attempt(&format!("user=postgres sslmode={mode}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{mode}: {error}");
        assert!(error.message().contains("no home directory"), "{mode}: {error}");
    }
    // `prefer` continues without TLS if it does not trust the server.
    assert_eq!(attempt(&format!("user=unencrypted sslrootcert={wrong}")).ok(), Some(false));

    // SCRAM bound to the channel.
    for binding in ["disable", "prefer", "require"] {
        let text = format!("user=bound password=secret sslmode=require channel_binding={binding}");
        assert_eq!(attempt(&text).ok(), Some(true), "{binding}");
    }
    let error =
        attempt("user=bound password=wrong channel_binding=require sslmode=require").unwrap_err();
    assert_eq!(error.sqlstate(), Some("28P01"), "{error}");

    // The client's certificate.
    let (certificate, key) = authority.issue("certified", &[]);
    let certificate = save(folder.path(), "client.crt", &certificate);
    let key = save(folder.path(), "client.key", &key);
    let text = format!("user=certified sslmode=require sslcert={certificate} sslkey={key}");
    assert_eq!(attempt(&text).ok(), Some(true));
    let (stranger, stranger_key) = other.issue("certified", &[]);
    let stranger = save(folder.path(), "stranger.crt", &stranger);
    let stranger_key = save(folder.path(), "stranger.key", &stranger_key);
    let refused = [
        "user=certified sslmode=require".to_owned(),
        format!("{text} sslcertmode=disable"),
        format!("user=certified sslmode=require sslcert={stranger} sslkey={stranger_key}"),
    ];
    for refused in &refused {
        let error = attempt(refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{refused}: {error}");
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(attempt(&text).unwrap_err().to_string().contains("0600"));

    // Cancelling, over TLS as well.
    let mut session =
        open(&format!("host=127.0.0.1 port={port} user=postgres sslmode=require")).unwrap();
    let canceller = session.canceller.clone();
    let helper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        canceller.cancel(&mut Wait::new(Instant::now() + TIMEOUT, &mut || true)).unwrap();
    });
    let answer = query(&mut session, "SELECT pg_sleep(9)");
    assert!(answer.iter().any(|(tag, _)| *tag == b'E'), "{answer:?}");
    helper.join().unwrap();
    // More than one TLS record, and reads that end in between.
    assert_eq!(value(&mut session, "SELECT repeat('x', 300000)").len(), 300_000);
}

/// Certificates as in PostgreSQL's manual: self-signed, with the name in the common name.
#[test]
fn tls_with_plain_certificates() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "db.test");
    let certificate = params.self_signed(&key).unwrap().pem();
    let key = key.serialize_pem();
    let server =
        start_tls(&[("server.crt", &certificate), ("server.key", &key), ("ca.crt", &certificate)]);
    let folder = tempfile::tempdir().unwrap();
    let root = save(folder.path(), "root.crt", &certificate);
    let attempt = |text: &str| {
        open(&format!(
            "hostaddr=127.0.0.1 port={} user=postgres sslrootcert={root} {text}",
            server.port
        ))
        .is_ok()
    };
    assert!(attempt("host=db.test sslmode=verify-full"));
    assert!(attempt("host=other.test sslmode=verify-ca"));
    assert!(!attempt("host=other.test sslmode=verify-full"));
    let bound =
        format!("host=127.0.0.1 port={} dbname=postgres user=bound password=secret", server.port);
    assert!(open(&format!("{bound} sslmode=require channel_binding=require")).is_ok());
}

/// The manual's recipe makes a certificate of version 1 (with OpenSSL 3.0), which rustls can't
/// read.
#[test]
fn tls_with_version_1() {
    let folder = tempfile::tempdir().unwrap();
    let openssl = |arguments: &str| {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    openssl("req -new -x509 -nodes -newkey rsa:2048 -keyout ca.key -out ca.crt -subj /CN=root");
    openssl(
        "req -new -nodes -newkey rsa:2048 -keyout server.key -out server.csr -subj /CN=localhost",
    );
    openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let server = start_tls(&[
        ("server.crt", &read("server.crt")),
        ("server.key", &read("server.key")),
        ("ca.crt", &read("ca.crt")),
    ]);
    let place = format!("host=127.0.0.1 port={} dbname=postgres sslmode=require", server.port);
    assert!(open(&format!("{place} user=postgres")).unwrap().socket.is_tls());
    let root = folder.path().join("ca.crt");
    // Newer versions of OpenSSL make one of version 3.
    if let Err(error) = open(&format!("{place} user=postgres sslrootcert={}", root.display())) {
        assert!(error.hint().unwrap().contains("version 3"), "{error}");
    }
    assert!(
        open(&format!("{place} user=bound password=secret channel_binding=require"))
            .unwrap()
            .socket
            .is_tls()
    );
}

/// TLS from the first byte, which needs both ends to agree on the protocol.
#[test]
fn direct_tls() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue("db.test", &["db.test"]);
    let folder = tempfile::tempdir().unwrap();
    let root = save(folder.path(), "root.crt", &authority.0.pem());
    let start = |protocols: &[&str]| {
        let provider = rustls::crypto::ring::default_provider();
        let mut config = rustls::ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let session = rustls::ServerConnection::new(config.into()).unwrap();
            answer_startup(
                rustls::StreamOwned::new(session, stream),
                b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I",
            );
        });
        open(&format!(
            "host=db.test hostaddr=127.0.0.1 port={port} user=u sslmode=verify-full \
                 sslrootcert={root} \
             sslnegotiation=direct"
        ))
    };
    assert!(start(&["postgresql"]).unwrap().socket.is_tls());
    assert!(start(&[]).unwrap_err().hint().unwrap().contains("PostgreSQL 17"));
}
