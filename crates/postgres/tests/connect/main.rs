//! Connecting to real servers, as libpq would.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../common/server.rs"]
mod server;
mod tls;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dray_net::{Wait, is_timeout};
use dray_postgres::{ConnectParams, Error, ErrorKind, LoggedIn, connect};
use server::{Server, free_port};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects with an empty environment.
fn open(conninfo: &str) -> Result<LoggedIn, Error> {
    connect(&ConnectParams::parse_with(conninfo, &|_| None)?, TIMEOUT, &mut || true)
}

/// Sends a query, and returns the tags and bodies of the answer's messages.
fn query(session: &mut LoggedIn, text: &str) -> Vec<(u8, Vec<u8>)> {
    let mut request = vec![b'Q'];
    request.extend(u32::try_from(text.len() + 5).unwrap().to_be_bytes());
    request.extend(text.as_bytes());
    request.push(0);
    session.socket.write_all(&request).unwrap();
    session.socket.flush().unwrap();
    read_answer(session)
}

fn read_answer(session: &mut LoggedIn) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    loop {
        let header = read_bytes(session, 5);
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        messages.push((header[0], read_bytes(session, length as usize - 4)));
        if header[0] == b'Z' {
            return messages;
        }
    }
}

fn read_bytes(session: &mut LoggedIn, count: usize) -> Vec<u8> {
    let deadline = Instant::now() + TIMEOUT;
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        assert!(Instant::now() < deadline, "no answer");
        match session.socket.read(&mut bytes[filled..]) {
            Ok(0) => panic!("closed"),
            Ok(read) => filled += read,
            Err(error) => assert!(is_timeout(&error), "{error}"),
        }
    }
    bytes
}

/// The first column of the first row.
fn value(session: &mut LoggedIn, text: &str) -> String {
    let answer = query(session, text);
    let row = answer.iter().find(|(tag, _)| *tag == b'D').unwrap_or_else(|| panic!("{answer:?}"));
    String::from_utf8(row.1[6..].to_vec()).unwrap()
}

const HBA: &str = "\
local all postgres trust
local all all password
host all trusted 127.0.0.1/32 trust
host all postgres 127.0.0.1/32 trust
host all plain 127.0.0.1/32 password
host all old 127.0.0.1/32 md5
host all new 127.0.0.1/32 scram-sha-256
";
const ROLES: &str = "
CREATE ROLE trusted LOGIN;
CREATE ROLE plain LOGIN PASSWORD 'se cret''';
SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'secret';
SET password_encryption = 'scram-sha-256'; CREATE ROLE new LOGIN PASSWORD 'secret';
";

#[test]
fn passwords_and_files() {
    let server = Server::start(&[], Some(HBA));
    server.sql(ROLES);
    let port = server.port;
    let folder = tempfile::tempdir().unwrap();

    let mut session =
        open(&format!("postgresql://trusted@127.0.0.1:{port}/postgres?application_name=me"))
            .unwrap();
    assert_eq!(value(&mut session, "SELECT current_user"), "trusted");
    assert_eq!(value(&mut session, "SHOW client_encoding"), "UTF8");
    assert_eq!(value(&mut session, "SHOW application_name"), "me");
    assert_eq!(session.place, format!("postgresql://127.0.0.1:{port}/postgres"));
    assert_eq!((session.user.as_str(), session.dbname.as_str()), ("trusted", "postgres"));
    assert!(!session.socket.is_tls());
    for (name, expected) in
        [("client_encoding", "UTF8"), ("integer_datetimes", "on"), ("in_hot_standby", "off")]
    {
        assert_eq!(session.parameters.get(name).map(String::as_str), Some(expected), "{name}");
    }
    assert!(
        session.parameters.contains_key("server_version")
            && session.parameters.contains_key("TimeZone")
    );

    // Cleartext, MD5, SCRAM: right, wrong, none.
    for (user, password) in [("plain", "se%20cret'"), ("old", "secret"), ("new", "secret")] {
        let place = format!("127.0.0.1:{port}/postgres");
        let mut session = open(&format!("postgresql://{user}:{password}@{place}")).unwrap();
        assert_eq!(value(&mut session, "SELECT current_user"), user);
        let error = open(&format!("postgresql://{user}:wrong@{place}")).unwrap_err();
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Authentication, Some("28P01")),
            "{error}"
        );
        assert!(
            error.message().contains(&place) && !error.to_string().contains("wrong"),
            "{error}"
        );
        let error = open(&format!("postgresql://{user}@{place}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
        assert!(error.hint().unwrap().contains("PGPASSWORD"), "{error}");
    }

    // Methods that the user does not allow.
    let text = |user: &str, auth: &str| {
        format!("postgresql://{user}:secret@127.0.0.1:{port}/postgres?require_auth={auth}")
    };
    assert!(open(&text("new", "scram-sha-256")).is_ok());
    assert!(open(&text("trusted", "none")).is_ok());
    for (user, auth) in
        [("plain", "scram-sha-256"), ("trusted", "scram-sha-256"), ("old", "!md5"), ("new", "none")]
    {
        let error = open(&text(user, auth)).unwrap_err();
        assert!(error.message().contains("require_auth"), "{error}");
    }
    let error =
        open(&format!("postgresql://new:secret@127.0.0.1:{port}/postgres?channel_binding=require"));
    assert!(error.unwrap_err().message().contains("channel binding"));

    // Unix socket.
    let socket_dir = server.socket_dir.display();
    let conninfo = format!(
        "host={socket_dir} port={port} user=new password=secret dbname=postgres sslmode=verify-full"
    );
    let mut session = open(&conninfo).unwrap();
    assert_eq!(value(&mut session, "SELECT inet_client_addr() IS NULL"), "t");
    let error = open(&format!("host=/nowhere port={port} user=new")).unwrap_err();
    assert!(error.hint().unwrap().contains("is the server running"), "{error}");

    // Password file.
    let passfile = folder.path().join("pgpass");
    fs::write(&passfile, format!("127.0.0.1:{port}:*:new:secret\n")).unwrap();
    fs::set_permissions(&passfile, fs::Permissions::from_mode(0o600)).unwrap();
    let passfile = passfile.display();
    let conninfo =
        format!("host=127.0.0.1 port={port} user=new dbname=postgres passfile={passfile}");
    assert!(open(&conninfo).is_ok());
    fs::set_permissions(passfile.to_string(), fs::Permissions::from_mode(0o644)).unwrap();
    let error = open(&conninfo).unwrap_err();
    assert!(error.hint().unwrap().contains("chmod 0600"), "{error}");

    // Service file, and startup options.
    let service = folder.path().join("service.conf");
    let text = format!(
        "[mine]\nhost=127.0.0.1\nport={port}\nuser=trusted\ndbname=postgres\noptions=-c \
             work_mem=3MB\n"
    );
    fs::write(&service, text).unwrap();
    let mut session = open(&format!("service=mine servicefile={}", service.display())).unwrap();
    assert_eq!(value(&mut session, "SHOW work_mem"), "3MB");

    // The server refuses for other reasons than the login.
    let error = open(&format!("postgresql://trusted@127.0.0.1:{port}/nowhere")).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Connection, Some("3D000")), "{error}");
    let error = open(&format!("postgresql://nobody@127.0.0.1:{port}/postgres")).unwrap_err();
    assert_eq!(
        (error.kind(), error.sqlstate()),
        (ErrorKind::Authentication, Some("28000")),
        "{error}"
    );

    // Without TLS at the server.
    for (mode, works) in [("disable", true), ("allow", true), ("prefer", true), ("require", false)]
    {
        let session =
            open(&format!("postgresql://trusted@127.0.0.1:{port}/postgres?sslmode={mode}"));
        assert_eq!(session.is_ok(), works, "{mode}");
    }
}

#[test]
fn cancelling() {
    let server = Server::start(&[], None);
    fn is_send<T: Send>(_: &T) {}
    let mut session = open(&server.uri()).unwrap();
    is_send(&session);
    let canceller = session.canceller.clone();
    let helper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        canceller.cancel(&mut Wait::new(Instant::now() + TIMEOUT, &mut || true)).unwrap();
    });
    let began = Instant::now();
    let answer = query(&mut session, "SELECT pg_sleep(9)");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(
        answer
            .iter()
            .any(|(tag, body)| *tag == b'E' && body.windows(5).any(|code| code == b"57014")),
        "{answer:?}"
    );
    helper.join().unwrap();
    assert_eq!(value(&mut session, "SELECT 1"), "1");
}

#[test]
fn several_hosts() {
    let writable = Server::start(&[], None);
    let read_only = Server::start(&[("default_transaction_read_only", "on")], None);
    let (w, r) = (writable.port, read_only.port);
    let dead = free_port();
    let port = |conninfo: &str| {
        open(&format!("user=postgres dbname=postgres {conninfo}"))
            .map(|mut session| value(&mut session, "SHOW port"))
    };
    let local = "host=127.0.0.1,127.0.0.1";
    assert_eq!(port(&format!("{local} port={dead},{w}")).unwrap(), w.to_string());
    assert_eq!(
        port(&format!("host=nowhere.invalid,127.0.0.1 port={dead},{w}")).unwrap(),
        w.to_string()
    );
    assert_eq!(
        port(&format!("host=x.invalid hostaddr=127.0.0.1 port={w}")).unwrap(),
        w.to_string()
    );
    // A standby without a primary has only its own pg_wal.
    let standby = Server::start_with(&[], None, &[("standby.signal", "")]);
    let s = standby.port;
    for (attributes, expected) in
        [("standby", s), ("prefer-standby", s), ("primary", w), ("read-write", w), ("read-only", s)]
    {
        for ports in [format!("{w},{s}"), format!("{s},{w}")] {
            let found = port(&format!("{local} port={ports} target_session_attrs={attributes}"));
            assert_eq!(found.unwrap(), expected.to_string(), "{attributes}");
        }
    }
    for (attributes, expected) in [
        ("any", Some(r)),
        ("read-write", Some(w)),
        ("read-only", Some(r)),
        ("primary", Some(r)),
        ("standby", None),
        ("prefer-standby", Some(r)),
    ] {
        let found = port(&format!("{local} port={r},{w} target_session_attrs={attributes}"));
        match expected {
            Some(expected) => assert_eq!(found.unwrap(), expected.to_string(), "{attributes}"),
            None => {
                assert!(found.unwrap_err().message().contains("is not a standby"), "{attributes}")
            }
        }
    }
    let mut found: Vec<_> = (0..30)
        .map(|_| port(&format!("{local} port={r},{w} load_balance_hosts=random")).unwrap())
        .collect();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 2);
    let error =
        port(&format!("{local} port={dead},{r} target_session_attrs=read-write")).unwrap_err();
    let message = error.message();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(
        message.contains(&format!(":{dead}/"))
            && message.contains(&format!(":{r}/postgres is read-only")),
        "{error}"
    );
    let error = port(&format!("host=127.0.0.1 port={dead}")).unwrap_err();
    assert!(error.hint().unwrap().contains("is the server running there?"), "{error}");
}

/// A server that accepts connections and stays silent.
#[test]
fn silence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for mode in ["disable", "prefer"] {
        let began = Instant::now();
        let error =
            open(&format!("host=127.0.0.1 port={port} user=u sslmode={mode} connect_timeout=1"))
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(
            began.elapsed() < Duration::from_secs(4) && error.message().contains("time"),
            "{error}"
        );
    }
}

/// A scripted server that answers the startup message with these bytes.
fn scripted(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || answer_startup(listener.accept().unwrap().0, answer));
    port
}

fn answer_startup(mut stream: impl Read + Write, answer: &[u8]) {
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup).unwrap();
    stream.write_all(answer).unwrap();
    stream.flush().unwrap();
    // Waits until the client is gone.
    let _ = stream.read(&mut [0; 100]);
}

/// Messages in the same packet as ReadyForQuery are not lost in tokio-postgres.
#[test]
fn notice_after_ready() {
    let port = scripted(
        b"R\0\0\0\x08\0\0\0\0S\0\0\0\x09a\0bc\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02\
          Z\0\0\0\x05IA\0\0\0\x0c\0\0\0\x01x\0y\0\
          Z\0\0\0\x05T",
    );
    let mut session = open(&format!("postgresql://u@127.0.0.1:{port}?sslmode=disable")).unwrap();
    assert_eq!(session.parameters.get("a").map(String::as_str), Some("bc"));
    let expected = [(b'A', b"\0\0\0\x01x\0y\0".to_vec()), (b'Z', b"T".to_vec())];
    assert_eq!(read_answer(&mut session)[..1], expected[..1]);
}

#[test]
fn what_is_not_supported_or_no_server() {
    for (answer, kind, expected) in [
        (&b"R\0\0\0\x08\0\0\0\x07"[..], ErrorKind::Authentication, "GSSAPI"),
        (b"R\0\0\0\x08\0\0\0\x09", ErrorKind::Authentication, "GSSAPI"),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            ErrorKind::Protocol,
            "expected a message of PostgreSQL's protocol",
        ),
        (b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x03I", ErrorKind::Protocol, "length 3"),
    ] {
        let port = scripted(answer);
        let error = open(&format!("postgresql://u@127.0.0.1:{port}?sslmode=disable")).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
    let port = scripted(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let error = open(&format!("postgresql://u@127.0.0.1:{port}?sslmode=require")).unwrap_err();
    assert!(error.message().contains("0x48"), "{error}");
}

/// Poolers take few startup parameters, and report few in turn.
#[test]
fn through_pgbouncer() {
    let server = Server::start(&[], Some(HBA));
    server.sql(ROLES);
    let port = free_port();
    let config = server.socket_dir.join("pgbouncer.ini");
    let users = server.socket_dir.join("users.txt");
    fs::write(&users, "\"old\" \"secret\"\n\"postgres\" \"\"\n").unwrap();
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = \
             127.0.0.1\nlisten_port = {port}\n\
         auth_type = md5\nauth_file = {}\nunix_socket_dir =\npool_mode = transaction\n",
        server.port,
        users.display()
    );
    fs::write(&config, text).unwrap();
    let mut command = server::as_server_user(Path::new("pgbouncer"));
    let command = command
        .arg("-q")
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut pooler = Pooler(command.spawn().unwrap());
    let deadline = Instant::now() + TIMEOUT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            Instant::now() < deadline && pooler.0.try_wait().unwrap().is_none(),
            "no pgbouncer"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let uri = format!(
        "postgresql://old:secret@127.0.0.1:{port}/postgres?target_session_attrs=read-write"
    );
    let mut session = open(&uri).unwrap();
    assert_eq!(value(&mut session, "SELECT current_user"), "old");
    let canceller = session.canceller.clone();
    let helper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        canceller.cancel(&mut Wait::new(Instant::now() + TIMEOUT, &mut || true)).unwrap();
    });
    let answer = query(&mut session, "SELECT pg_sleep(9)");
    assert!(answer.iter().any(|(tag, _)| *tag == b'E'), "{answer:?}");
    helper.join().unwrap();
    let error = open(&uri.replace("secret", "wrong")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
}

struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
