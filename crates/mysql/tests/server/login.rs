//! Logins.

use std::time::{Duration, Instant};

use dray_mysql::{ConnectParams, Error, ErrorKind, LoggedIn, Result, connect};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::mariadb::Server;

/// Who the server says is logged in, and by which cipher.
fn identity(mut login: LoggedIn) -> (String, bool) {
    let sql = "SHOW STATUS LIKE 'Ssl_cipher'";
    let cipher = login.session.ask(sql, &mut || Ok(())).unwrap().remove(0).remove(1).unwrap();
    let user = login.session.ask("SELECT CURRENT_USER()", &mut || Ok(())).unwrap();
    (user[0][0].clone().unwrap(), !cipher.is_empty())
}

fn refused(login: Result<LoggedIn>) -> Error {
    let error = login.map(|_| ()).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    error
}

#[test]
fn by_each_method() {
    let server =
        Server::start(&["--plugin-load-add=auth_ed25519", "--plugin-load-add=unix_socket"]);
    let me = whoami::username().unwrap();
    server.sql(&[
        "CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('sec:ret@/')",
        "CREATE USER edward IDENTIFIED VIA ed25519 USING PASSWORD('secret')",
        "CREATE USER empty",
        "GRANT ALL ON shop.* TO native, edward, empty",
    ]);
    for (user, expected) in [
        ("native:sec%3Aret%40%2F", "native@%"),
        ("edward:secret", "edward@%"),
        ("empty", "empty@%"),
        ("empty:", "empty@%"),
    ] {
        let login = server.log_in(&server.uri(user, "")).unwrap();
        assert_eq!(identity(login), (expected.to_owned(), false));
    }
    for user in ["native:secret1", "edward:secret1", "native", "edward", "empty:secret", "nobody"] {
        let error = refused(server.log_in(&server.uri(user, "")));
        assert_eq!(error.kind(), ErrorKind::Authentication, "{user}: {error}");
        assert_eq!((error.code(), error.sqlstate()), (Some(1045), Some("28000")), "{user}");
        assert!(error.to_string().contains(&server.port.to_string()), "{user}: {error}");
    }
    let error =
        refused(server.log_in(&format!("{}&", server.uri("empty", "")).replace("shop", "no")));
    assert_eq!(error.code(), Some(1044), "{error}");
    // The user of the operating system.
    let mine = match me.as_str() {
        "root" => "ALTER USER root@localhost IDENTIFIED VIA unix_socket".to_owned(),
        _ => format!("CREATE USER '{me}'@localhost IDENTIFIED VIA unix_socket"),
    };
    server.sql(&[&mine]);
    let socket = server.path("socket");
    let login = server.log_in(&format!("mariadb://{me}@/?unix_socket={}", socket.display()));
    assert_eq!(identity(login.unwrap()).0, format!("{me}@localhost"));
    let error = refused(server.log_in(&format!("mariadb://{me}@127.0.0.1:{}", server.port)));
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
}

#[test]
fn nobody_there() {
    let attempt = |uri: &str, timeout: Duration| {
        let params = ConnectParams::parse_with(uri, &|_| None).unwrap();
        refused(connect(&params, timeout, &mut || true))
    };
    let second = Duration::from_secs(1);
    let error = attempt("mysql://tester:secret@127.0.0.1:1/", second);
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().contains("mysql://127.0.0.1:1/"), "{error}");
    for timeout in ["1e19", "1e15"] {
        let uri = format!("mysql://tester:secret@127.0.0.1:1/?connect-timeout={timeout}");
        assert_eq!(attempt(&uri, second).kind(), ErrorKind::Connection);
        attempt(&uri.replace("connect", "read"), second);
    }
    let error = attempt("mysql://tester:secret@no-such-host.invalid/", second * 20);
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let error = attempt("mysql://tester:secret@/?socket=/no/such/socket", second);
    assert!(error.to_string().contains("/no/such/socket"), "{error}");
    // A server that says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    let uri = format!("mysql://tester:secret@{}/", silent.local_addr().unwrap());
    let error = attempt(&uri, second / 5);
    assert!(error.to_string().contains("did not finish the login"), "{error}");
    assert!(began.elapsed() < second * 5);
}

/// Before TLS anybody may speak in the server's place.
#[test]
fn refused_before_tls() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("mysql://tester@{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        // The last error has a wrong number.
        for (number, stream) in [0, 0, 1].into_iter().zip(listener.incoming()) {
            let error = b"\xff\x10\x04Pay here";
            let packet = [&[error.len() as u8, 0, 0, number], &error[..]].concat();
            std::io::Write::write_all(&mut stream.unwrap(), &packet).unwrap();
        }
    });
    for (query, is_shown) in
        [("", true), ("?ssl-mode=REQUIRED", false), ("?ssl-mode=VERIFY_IDENTITY", false)]
    {
        let params = ConnectParams::parse_with(&format!("{uri}{query}"), &|_| None).unwrap();
        let error = refused(connect(&params, Duration::from_secs(20), &mut || true));
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        assert!(error.to_string().contains(if is_shown { "Pay here" } else { "1040" }), "{error}");
        assert_eq!(error.to_string().contains("Pay"), is_shown, "{error}");
    }
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

#[test]
fn by_tls() {
    let (ours, other) = (Authority::new(), Authority::new());
    let (certificate, key) = ours.issue("localhost");
    let server = Server::start_with(
        &["--ssl-cert=../server.crt", "--ssl-key=../server.key", "--ssl-ca=../ca.crt"],
        &[
            ("server.crt", &certificate),
            ("server.key", &key),
            ("ca.crt", &ours.0.pem()),
            ("other.crt", &other.0.pem()),
        ],
    );
    let (ca, wrong) = (server.path("ca.crt"), server.path("other.crt"));
    let (ca, wrong) = (ca.display(), wrong.display());
    let by_name = |query: &str| {
        server.log_in(&server.uri("tester:secret", query).replace("127.0.0.1", "localhost"))
    };
    let by_address = |query: &str| server.log_in(&server.uri("tester:secret", query));
    for query in ["", "ssl-mode=REQUIRED", "tls-version=TLSv1.2", "ssl=1"] {
        assert!(identity(by_address(query).unwrap()).1, "{query}");
    }
    assert!(!identity(by_address("ssl-mode=DISABLED").unwrap()).1);
    for mode in ["VERIFY_CA", "VERIFY_IDENTITY"] {
        assert!(identity(by_name(&format!("ssl-mode={mode}&ssl-ca={ca}")).unwrap()).1, "{mode}");
        for error in [
            by_name(&format!("ssl-mode={mode}&ssl-ca={wrong}")),
            by_name(&format!("ssl-mode={mode}&ssl-ca=/no/such/file")),
        ] {
            let error = refused(error);
            assert_eq!(error.kind(), ErrorKind::Authentication, "{mode}: {error}");
            assert!(error.hint().unwrap().contains("ssl-ca"), "{mode}: {error}");
        }
    }
    for (mode, kind) in
        [("VERIFY_CA", ErrorKind::Usage), ("VERIFY_IDENTITY", ErrorKind::Authentication)]
    {
        let error = refused(by_name(&format!("ssl-mode={mode}")));
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.hint().unwrap().contains("ssl-ca"), "{mode}: {error}");
    }
    assert!(identity(by_address(&format!("ssl-mode=VERIFY_CA&ssl-ca={ca}")).unwrap()).1);
    let error = refused(by_address(&format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}")));
    assert!(error.hint().unwrap().contains("VERIFY_IDENTITY"), "{error}");
    // A user who has to show a certificate.
    server.sql(&["CREATE USER shown REQUIRE X509", "GRANT ALL ON shop.* TO shown"]);
    let (certificate, key) = ours.issue("shown");
    for (name, text) in [("shown.crt", certificate), ("shown.key", key)] {
        std::fs::write(server.path(name), text).unwrap();
    }
    let (certificate, key) = (server.path("shown.crt"), server.path("shown.key"));
    let query = format!("ssl-cert={}&ssl-key={}", certificate.display(), key.display());
    // Its key can be read by others.
    let error = refused(server.log_in(&server.uri("shown", &query)));
    assert!(error.hint().unwrap().contains("0600"), "{error}");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, mode).unwrap();
    assert!(identity(server.log_in(&server.uri("shown", &query)).unwrap()).1);
    refused(server.log_in(&server.uri("shown", "")));
    let (certificate, key) = other.issue("shown");
    for (name, text) in [("shown.crt", certificate), ("shown.key", key)] {
        std::fs::write(server.path(name), text).unwrap();
    }
    for version in ["TLSv1.2", "TLSv1.3"] {
        let query = format!("{query}&tls-version={version}");
        refused(server.log_in(&server.uri("shown", &query)));
    }
}

#[test]
fn without_tls() {
    let server = Server::start(&["--skip-ssl"]);
    assert!(!identity(server.session()).1);
    for query in ["ssl-mode=REQUIRED", "ssl-mode=VERIFY_IDENTITY", "ssl-verify-server-cert=1"] {
        let error = refused(server.log_in(&server.uri("tester:secret", query)));
        assert!(error.to_string().contains("does not have TLS"), "{query}: {error}");
    }
}

#[test]
fn compressed() {
    let server = Server::start(&[]);
    let mut login = server.log_in(&server.uri("tester:secret", "compress=1")).unwrap();
    let mut ask = |sql: &str| login.session.ask(sql, &mut || Ok(())).unwrap();
    assert_eq!(ask("SHOW STATUS LIKE 'Compression'")[0][1].as_deref(), Some("ON"));
    assert_eq!(ask("SELECT REPEAT('x', 5000000)")[0][0].as_ref().unwrap().len(), 5_000_000);
    let long = "y".repeat(17 << 20);
    let length = ask(&format!("SELECT LENGTH('{long}')"));
    assert_eq!(length[0][0].as_deref(), Some((17 << 20).to_string().as_str()));
    assert_eq!(ask("SELECT seq FROM seq_1_to_100000").len(), 100_000);
    ask("CREATE PROCEDURE two() BEGIN SELECT 1 AS a; SELECT seq FROM seq_1_to_3; END");
    for _ in 0..2 {
        assert_eq!(ask("CALL two()").len(), 4);
    }
}
