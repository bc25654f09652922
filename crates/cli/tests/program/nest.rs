//! `dray nest`: what it refuses, and interrupts. `crates/nest` and Python test what it makes.

use crate::{ENDLESS, Fixture, Running, Server, failure, run};

#[test]
fn an_interrupt_leaves_nothing() {
    let fixture = Fixture::start();
    let paths = ["spec.toml", "out.parquet", "spill"].map(|name| fixture.path(name));
    let [spec, out, spill] = paths.each_ref().map(|path| path.to_str().unwrap());
    std::fs::create_dir(spill).unwrap();
    let many = "SELECT value, 0 - value AS less FROM generate_series(1, 3000000)";
    // While a statement runs, and while the rows of all statements are sorted and merged.
    for (sql, metric, value) in
        [(ENDLESS, "dray_chunks_sent_total", 5), (many, "dray_statements_total", 3)]
    {
        let text = format!(
            "sql = \"{sql}\"\norder = [\"value:desc\"]\n[many.others]\nsql = \"{many}\"\n\
             on = {{ less = \"value\" }}\norphans = \"drop\""
        );
        std::fs::write(spec, text).unwrap();
        let arguments = ["nest", &fixture.uri, spec, "-o", out, "--memory", "8MiB"];
        let running = Running::start(&[&arguments[..], &["--spill", spill]].concat());
        fixture.wait_for_metric(metric, value);
        running.interrupt();
        assert_eq!(running.wait(), (Some(130), "dray: interrupted\n".to_owned()), "{sql}");
        assert_eq!(fixture.leftovers(), Vec::<String>::new(), "{sql}");
        assert_eq!(std::fs::read_dir(spill).unwrap().count(), 0, "{sql}");
        assert!(!paths[1].exists());
    }
}

/// Each statement would see a snapshot of its own.
#[test]
fn a_database_behind_a_server_has_no_snapshot_for_several_levels() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["empty.db", "dray.sock", "one.toml", "two.toml", "out.json"];
    let paths = paths.map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let [database, socket, one, two, out] = paths.each_ref().map(String::as_str);
    // An empty file is an empty database of SQLite.
    std::fs::write(database, "").unwrap();
    let source = format!("shop=sqlite:{database}");
    let server = Server::start(&["--unix", socket, "--source", &source]);
    let uri = format!("{}?source=shop", server.uri(0));
    let customers = "sql = \"SELECT 1 AS id\"\norder = [\"id\"]\n";
    let orders =
        "[many.orders]\nsql = \"SELECT 1 AS customer, 2 AS number\"\non = { customer = \"id\" }\n";
    std::fs::write(one, customers).unwrap();
    std::fs::write(two, format!("{customers}{orders}")).unwrap();
    let (code, error) = failure(&run(&["nest", &uri, two, "-o", out]));
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("connect to the database itself"), "{error}");
    let nested = run(&["nest", &uri, one, "-o", out, "--quiet"]);
    assert!(nested.status.success(), "{}", crate::stderr(&nested));
    assert_eq!(std::fs::read_to_string(out).unwrap(), "{\"id\":1}\n");
}

#[test]
fn a_statement_that_fails_has_the_exit_code_of_a_query() {
    let fixture = Fixture::start();
    let paths = ["spec.toml", "out.json"].map(|name| fixture.path(name));
    let [spec, out] = paths.each_ref().map(|path| path.to_str().unwrap());
    let write = |sql: &str| {
        let outer = "sql = \"SELECT 1 AS id\"\norder = [\"id\"]\n";
        let inner = format!("[many.others]\nsql = \"{sql}\"\non = {{ value = \"id\" }}\n");
        std::fs::write(spec, format!("{outer}{inner}")).unwrap();
    };
    write("SELECT missing FROM goods");
    let (code, error) = failure(&run(&["nest", &fixture.uri, spec, "-o", out]));
    assert_eq!(code, 1, "{error}");
    assert!(error.starts_with("dray: the statement of others failed: "), "{error}");
    write(ENDLESS);
    let running = Running::start(&["nest", &fixture.uri, spec, "-o", out]);
    fixture.wait_for_metric("dray_chunks_sent_total", 5);
    fixture.server.signal("KILL");
    let (code, error) = running.wait();
    assert_eq!((code, error.lines().count()), (Some(3), 1), "{error}");
    assert!(!paths[1].exists());
}
