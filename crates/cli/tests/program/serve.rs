//! `dray serve`: where it listens, whom it lets in, how it stops.

use super::*;

#[test]
fn it_says_where_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dray.sock");
    let unix = socket.to_str().unwrap();
    let listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "127.0.0.1:0", "--unix", unix];
    let server = Server::start(&listen);
    assert!(server.uri(0).starts_with("dray://127.0.0.1:") && !server.uri(0).ends_with(":0"), "{:?}", server.lines);
    assert_eq!(server.uri(2), format!("dray+unix://{unix}"));
    for at in 0..3 {
        assert_eq!(stdout(&run(&["query", server.uri(at), "SELECT 1 AS one"])), "one\n1\n");
    }
    // A second server may not take the socket away.
    let (code, error) = failure_of_serve(&["--unix", unix]);
    assert_eq!((code, error.contains("another server")), (1, true), "{error}");
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
    let output = program().args(["query", uri, "SELECT 1 AS one"]).env("DRAY_TOKEN", "s3cret").output().unwrap();
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
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key]);
    let uri = server.uri(0).replace("127.0.0.1", "localhost");
    assert!(uri.starts_with("drays://"), "{uri}");
    assert_eq!(stdout(&run(&["query", &uri, "SELECT 1 AS one", "--ca", &certificate])), "one\n1\n");
    assert_eq!(stdout(&run(&["query", &format!("{uri}?ca={certificate}"), "SELECT 1 AS one"])), "one\n1\n");
    let (code, error) = failure(&run(&["query", &uri, "SELECT 1"]));
    assert_eq!((code, error.contains("certificate")), (3, true), "{error}");
    let (code, error) = failure(&run(&["query", &uri, "SELECT 1", "--ca", &path("none.pem")]));
    assert_eq!((code, error.contains("none.pem")), (3, true), "{error}");
}

#[test]
fn what_it_can_t_serve() {
    let (code, error) = failure_of_serve(&["/nowhere.parquet"]);
    assert_eq!((code, error.contains("/nowhere.parquet")), (1, true), "{error}");
    let (code, error) = failure_of_serve(&["--listen", "tcp://0.0.0.0:0"]);
    assert_eq!((code, error.contains("--token-file")), (1, true), "{error}");
    let (code, error) = failure_of_serve(&["--token-file", "/dev/null"]);
    assert_eq!((code, error.contains("no token")), (1, true), "{error}");
    for wrong in
        [["--memory", "lots"], ["--listen", "nowhere"], ["--threads", "0"], ["--tls-cert", "x"], ["--tpch", "x"]]
    {
        assert_eq!(run(&["serve", wrong[0], wrong[1]]).status.code(), Some(2), "{wrong:?}");
    }
}

/// Warnings may stand before the sentence.
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
    wait_until("the server takes no more", || !run(&["query", &fixture.uri, "SELECT 1"]).status.success());
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
    wait_until("the server takes no more", || !run(&["query", &fixture.uri, "SELECT 1"]).status.success());
    fixture.server.signal("INT");
    let Fixture { mut server, folder: _folder, .. } = fixture;
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
    // The client reads what had arrived, and then says that there should be more.
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
    let lines: Vec<serde_json::Value> =
        String::from_utf8(output.stderr).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["fields"]["sql"] == "SELECT 1 AS one"), "{lines:?}");
}
