//! `dray serve`: listening, access, and stopping.

use super::*;

#[test]
fn it_says_where_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dray.sock");
    let unix = socket.to_str().unwrap();
    let listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "127.0.0.1:0", "--unix", unix];
    let server = Server::start(&listen);
    assert!(
        server.uri(0).starts_with("dray://127.0.0.1:") && !server.uri(0).ends_with(":0"),
        "{:?}",
        server.lines
    );
    assert_eq!(server.uri(2), format!("dray+unix://{unix}"));
    for at in 0..3 {
        assert_eq!(stdout(&run(&["query", server.uri(at), "SELECT 1 AS one"])), "one\n1\n");
    }
    // A second server must not take over the socket.
    let (code, error) = failure_of_serve(&["--unix", unix]);
    assert_eq!((code, error.contains("another server")), (2, true), "{error}");
}

#[test]
fn clients_of_this_host_leave_tcp() {
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0"]);
    let explained = |more: &[&str]| {
        stdout(&run(&[&["explain", server.uri(0), "SELECT 1 AS one"], more].concat()))
    };
    let (moved, stayed) = (explained(&[]), explained(&["--no-local-socket"]));
    assert!(moved.contains("chunks from a Dray server over a Unix socket\n"), "{moved}");
    assert!(stayed.contains("chunks from a Dray server over TCP\n"), "{stayed}");
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let file = file.to_str().unwrap();
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", "--token-file", file]);
    let uri = server.uri(0);
    let (code, error) = failure(&run(&["query", uri, "SELECT 1"]));
    assert_eq!(code, 3, "{error}");
    let (code, error) = failure(&run(&["query", uri, "SELECT 1", "--token", "wrong"]));
    assert_eq!(code, 3, "{error}");
    assert_eq!(stdout(&run(&["query", uri, "SELECT 1 AS one", "--token-file", file])), "one\n1\n");
    assert_eq!(stdout(&run(&["query", uri, "SELECT 1 AS one", "--token", "s3cret"])), "one\n1\n");
    let output = program()
        .args(["query", uri, "SELECT 1 AS one"])
        .env("DRAY_TOKEN", "s3cret")
        .output()
        .unwrap();
    assert_eq!(stdout(&output), "one\n1\n");
}

#[test]
fn over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::start(&[
        "--listen",
        "tcp://127.0.0.1:0",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ]);
    let uri = server.uri(0).replace("127.0.0.1", "localhost");
    assert!(uri.starts_with("drays://"), "{uri}");
    assert_eq!(stdout(&run(&["query", &uri, "SELECT 1 AS one", "--ca", &certificate])), "one\n1\n");
    assert_eq!(
        stdout(&run(&["query", &format!("{uri}?ca={certificate}"), "SELECT 1 AS one"])),
        "one\n1\n"
    );
    let (code, error) = failure(&run(&["query", &uri, "SELECT 1"]));
    assert_eq!((code, error.contains("certificate")), (3, true), "{error}");
    let (code, error) = failure(&run(&["query", &uri, "SELECT 1", "--ca", &path("none.pem")]));
    assert_eq!((code, error.contains("none.pem")), (3, true), "{error}");
}

#[test]
fn what_it_can_t_serve() {
    let (code, error) = failure_of_serve(&["/nowhere.parquet"]);
    assert_eq!((code, error.contains("/nowhere.parquet")), (2, true), "{error}");
    let (code, error) = failure_of_serve(&["--listen", "tcp://0.0.0.0:0"]);
    assert_eq!((code, error.contains("--token-file")), (2, true), "{error}");
    let (code, error) = failure_of_serve(&["--token-file", "/dev/null"]);
    assert_eq!((code, error.contains("no token")), (2, true), "{error}");
    for wrong in [
        ["--memory", "lots"],
        ["--listen", "nowhere"],
        ["--threads", "0"],
        ["--tls-cert", "x"],
        ["--tpch", "x"],
    ] {
        assert_eq!(run(&["serve", wrong[0], wrong[1]]).status.code(), Some(2), "{wrong:?}");
    }
}

/// Warnings may precede the message.
fn failure_of_serve(arguments: &[&str]) -> (i32, String) {
    let output = run(&[&["serve", "--log", "error"], arguments].concat());
    failure(&output)
}

#[test]
fn a_signal_lets_a_transfer_finish() {
    let fixture = Fixture::start();
    // Too large for the sockets' buffers, so it runs until it is read.
    let sql = "SELECT value, repeat('x', 100) AS text FROM generate_series(1, 300000)";
    let mut running = Running::start(&["query", &fixture.uri, sql, "--format", "csv"]);
    let mut reader = BufReader::new(running.0.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    fixture.server.signal("TERM");
    wait_until("the server takes no more", || {
        !run(&["query", &fixture.uri, "SELECT 1"]).status.success()
    });
    assert_eq!(reader.lines().map(Result::unwrap).count(), 300_000);
    assert_eq!(running.wait(), (Some(0), String::new()));
    let Fixture { mut server, folder, .. } = fixture;
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!folder.path().join("dray.sock").exists());
}

#[test]
fn a_second_signal_ends_at_once() {
    let fixture = Fixture::start();
    let mut running = Running::start(&["query", &fixture.uri, ENDLESS, "--format", "csv"]);
    fixture.wait_for_metric("dray_chunks_sent_total", 1);
    fixture.server.signal("INT");
    wait_until("the server takes no more", || {
        !run(&["query", &fixture.uri, "SELECT 1"]).status.success()
    });
    fixture.server.signal("INT");
    let Fixture { mut server, folder: _folder, .. } = fixture;
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
    // The client reads what has arrived, and then reports that the result is incomplete.
    std::io::copy(&mut running.0.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    let (code, error) = running.wait();
    assert_eq!((code, error.lines().count()), (Some(3), 1), "{error}");
}

#[test]
fn logs_are_lines_of_json() {
    let mut command = program();
    command.args(["serve", "--listen", "tcp://127.0.0.1:0", "--log-format", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let uri = line.trim().strip_prefix("listening on ").unwrap();
    assert_eq!(stdout(&run(&["query", uri, "SELECT 1 AS one"])), "one\n1\n");
    send_signal("TERM", &child.id().to_string());
    let output = child.wait_with_output().unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stderr)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().any(|line| line["fields"]["sql"] == "SELECT 1 AS one"), "{lines:?}");
}

#[test]
fn what_would_let_in_anybody_or_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "x".repeat(100_000)).unwrap();
    let (code, error) =
        failure_of_serve(&["--token-file", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert_eq!((code, error.contains("the token has 100000 bytes")), (2, true), "{error}");
    let (code, error) = failure_of_serve(&["--metrics", "0.0.0.0:0", "--listen", "127.0.0.1:0"]);
    assert_eq!((code, error.contains("pass --metrics-public")), (2, true), "{error}");
    Server::start(&["--metrics", "0.0.0.0:0", "--metrics-public", "--listen", "127.0.0.1:0"]);
}

/// The server's log until it listens.
fn log_of(arguments: &[&str]) -> String {
    let mut child = program()
        .arg("serve")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn it_warns_of_what_is_doubtful() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 2, 3);
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(path("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    let listen = ["--listen", "tcp://127.0.0.1:0"];
    let tls = ["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem")];
    let log = log_of(&[listen, [tls[0], tls[1]], [tls[2], tls[3]]].concat());
    assert!(log.contains("expired on 2021-02-03 00:00:00 UTC"), "{log}");
    let log = log_of(&["--listen", "tcp://127.0.0.1:0", "--behind-proxy"]);
    assert!(log.contains("every client that the proxy admits"), "{log}");
    assert!(!log_of(&listen).contains("proxy"));
}

#[test]
fn it_warns_of_what_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("t")).unwrap();
    for (name, text) in [("t/a.csv", "n\n1\n"), ("t/b.cvs", "n\n2\n"), ("t/c.CSV~", "n\n3\n")] {
        std::fs::write(path(name), text).unwrap();
    }
    std::fs::write(path("t/empty.txt"), "").unwrap();
    std::os::unix::fs::symlink(path(""), path("t/up")).unwrap();
    let table = format!("t={}", path("t"));
    for named in [path("t"), path(""), table] {
        let log = log_of(&["--listen", "tcp://127.0.0.1:0", &named]);
        assert!(log.contains("such as") && log.contains("t/b.cvs'"), "{log}");
        assert!(log.contains("files=2"), "{log}");
        assert!(log.contains("t/up' leads to a folder above it"), "{log}");
    }
}

#[test]
fn it_lists_what_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("goods.csv");
    std::fs::write(&data, "id,name\n1,a\n2,b\n").unwrap();
    let data = data.to_str().unwrap();
    let log = log_of(&["--listen", "tcp://127.0.0.1:0", data]);
    assert!(
        log.contains("table goods") && log.contains("columns=2 rows=2 files=1 bytes=16"),
        "{log}"
    );
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", data]);
    let uri = server.uri(0);
    let listed = "table,rows,bytes,files,columns\ngoods,2,16,1,\"id Int64, name Utf8\"\n";
    assert_eq!(stdout(&run(&["tables", uri])), listed);
    let json = "{\"table\":\"goods\",\"rows\":2,\"bytes\":16,\"files\":1,\"columns\":\"id Int64, \
         name Utf8\"}\n";
    assert_eq!(stdout(&run(&["tables", uri, "--format", "json"])), json);
    assert!(stdout(&run(&["tables", uri, "--format", "table"])).contains("goods"));
    let (code, error) = failure(&run(&["query", uri, "SELECT * FROM good"]));
    assert_eq!((code, error.contains("the tables are goods")), (1, true), "{error}");
}

#[test]
fn files_without_a_header_are_served_and_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("t.csv"), "2,b\n1,a\n").unwrap();
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", "--no-header", &path("t.csv")]);
    let sql = "SELECT * FROM t ORDER BY column_1";
    assert_eq!(stdout(&run(&["query", server.uri(0), sql])), "column_1,column_2\n1,a\n2,b\n");
    run(&["sort", &path("t.csv"), "--no-header", "--by", "column_1", "-o", &path("sorted.csv")]);
    assert_eq!(
        std::fs::read_to_string(path("sorted.csv")).unwrap(),
        "column_1,column_2\n1,a\n2,b\n"
    );
}

#[test]
fn a_file_that_changes_is_an_error_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "a\n1\n").unwrap();
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", path.to_str().unwrap()]);
    assert_eq!(stdout(&run(&["query", server.uri(0), "SELECT count(*) AS n FROM t"])), "n\n1\n");
    std::fs::remove_file(&path).unwrap();
    for sql in ["SELECT * FROM t", "SELECT count(*) FROM t"] {
        let (code, error) = failure(&run(&["query", server.uri(0), sql]));
        let expected = "file 't/t.csv' was removed or renamed after its table was opened";
        assert_eq!(
            (code, error.contains(expected) && error.contains("restart dray")),
            (1, true),
            "{error}"
        );
        assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
    }
}

#[test]
fn what_a_killed_server_has_spilled_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().to_str().unwrap();
    let folders = || {
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let files = || {
        let within =
            |path: &PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        folders().iter().flat_map(within).flat_map(|path| within(&path)).count()
    };
    let serve =
        || Server::start(&["--listen", "127.0.0.1:0", "--spill", spill, "--memory", "64MiB"]);
    let killed = serve();
    let first = folders();
    // Unsorted, so that no row can be skipped early.
    let sql = "SELECT count(*) FROM (SELECT DISTINCT value * 7919 % 30000001 FROM \
         generate_series(1, 30000000))";
    let querying = Running::start(&["query", killed.uri(0), sql]);
    wait_until("something is spilled", || files() > 0);
    // A second process leaves folders alone that are in use.
    let second = serve();
    assert!(folders().len() == 2 && folders().is_superset(&first) && files() > 0);
    // Kill with a signal that can't be handled.
    drop((killed, querying));
    assert!(folders().len() == 2 && files() > 0);
    let third = serve();
    assert!(folders().len() == 2 && folders().is_disjoint(&first));
    for mut server in [second, third] {
        server.signal("TERM");
        assert!(server.child.wait().unwrap().success());
    }
    assert_eq!(folders().len(), 0);
}
