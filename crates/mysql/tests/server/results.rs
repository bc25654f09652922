//! Statements and their results.

use std::time::{Duration, Instant};

use dray_format::{BuiltBatch, Type, Values};
use dray_mysql::{Error, ErrorKind, LoggedIn, Options, Parameter, Result};
use dray_net::Wait;

use crate::mariadb::Server;

fn run(login: &mut LoggedIn, sql: &str, parameters: &[Parameter]) -> Result<Vec<BuiltBatch>> {
    run_with(login, sql, parameters, &Options::default())
}

fn run_with(
    login: &mut LoggedIn,
    sql: &str,
    parameters: &[Parameter],
    options: &Options,
) -> Result<Vec<BuiltBatch>> {
    login.session.start(sql, parameters, options, &mut || Ok(()))?;
    let mut batches = Vec::new();
    while let Some(batch) = login.session.next_batch(None, &mut || Ok(()))? {
        batches.push(batch);
    }
    Ok(batches)
}

fn rows(batches: &[BuiltBatch]) -> usize {
    batches.iter().map(|batch| batch.batch().rows).sum()
}

/// The values of a column of integers.
fn numbers(batches: &[BuiltBatch], column: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    for batch in batches {
        let Values::Fixed { width, bytes } = &batch.batch().columns[column].values else {
            panic!("no integers: {:?}", batch.schema());
        };
        for value in bytes.chunks_exact(*width).take(batch.batch().rows) {
            let fill = if value[width - 1] < 0x80 { 0 } else { 0xff };
            let mut wide = [fill; 8];
            wide[..*width].copy_from_slice(value);
            numbers.push(i64::from_le_bytes(wide));
        }
    }
    numbers
}

fn one(login: &mut LoggedIn, sql: &str) -> String {
    login.session.ask(sql, &mut || Ok(())).unwrap().remove(0).remove(0).unwrap()
}

#[test]
fn statements() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    assert!(db.session.server().name().starts_with("MariaDB 1"), "{}", db.session.server().name());
    assert_eq!(one(db, "SELECT @@time_zone"), "+00:00");
    assert_eq!(one(db, "SELECT @@net_write_timeout"), "86400");
    assert_eq!(one(db, "SELECT @@character_set_results"), "utf8mb4");
    assert_eq!(one(db, "SELECT '€🦀'"), "€🦀");

    let batches = run(db, "SELECT seq, 'a' AS b FROM seq_1_to_100000", &[]).unwrap();
    assert_eq!((rows(&batches), batches.len()), (100_000, 2));
    assert_eq!(numbers(&batches, 0), (1..=100_000).collect::<Vec<_>>());
    assert_eq!(batches[0].schema().fields[1].name, "b");
    let status = |db: &mut LoggedIn, name: &str| -> u32 {
        let sql = format!("SHOW SESSION STATUS LIKE '{name}'");
        let value = db.session.ask(&sql, &mut || Ok(())).unwrap().remove(0).remove(1);
        value.unwrap().parse().unwrap()
    };
    // Again, by the statement that is prepared.
    let before = status(db, "Com_stmt_prepare");
    assert!(before > 0);
    for _ in 0..3 {
        assert_eq!(
            rows(&run(db, "SELECT seq, 'a' AS b FROM seq_1_to_100000", &[]).unwrap()),
            100_000
        );
    }
    assert_eq!(status(db, "Com_stmt_prepare"), before);

    run(db, "CREATE TABLE t (i BIGINT PRIMARY KEY, s TEXT)", &[]).unwrap();
    assert_eq!(db.session.rows_changed(), None);
    let values = [Parameter::Signed(-5), Parameter::Text("it's ü".into())];
    run(db, "INSERT INTO t VALUES (?, ?)", &values).unwrap();
    assert_eq!(db.session.rows_changed(), Some(1));
    run(db, "INSERT INTO t VALUES (?, ?)", &[Parameter::Unsigned(7), Parameter::Null]).unwrap();
    let error = run(db, "INSERT INTO t VALUES (7, NULL)", &[]).unwrap_err();
    assert_eq!((error.code(), error.sqlstate()), (Some(1062), Some("23000")));
    let found = run(
        db,
        "SELECT i FROM t WHERE s = ? OR i = ?",
        &[Parameter::Text("it's ü".into()), Parameter::Double(7.0)],
    );
    assert_eq!(numbers(&found.unwrap(), 0), [-5, 7]);
    // The table's columns change under the prepared statement.
    assert_eq!(run(db, "SELECT * FROM t", &[]).unwrap()[0].schema().fields.len(), 2);
    run(db, "ALTER TABLE t ADD COLUMN x DOUBLE DEFAULT 1.5", &[]).unwrap();
    let found = run(db, "SELECT * FROM t", &[]).unwrap();
    assert_eq!(found[0].schema().fields[2].data_type, Type::Float64);

    assert!(!db.session.is_in_transaction());
    run(db, "START TRANSACTION", &[]).unwrap();
    assert!(db.session.is_in_transaction());
    run(db, "ROLLBACK", &[]).unwrap();
    assert!(!db.session.is_in_transaction());
    assert_eq!(rows(&run(db, "SELECT 1 FROM t WHERE FALSE", &[]).unwrap()), 0);
    let error = run(db, "SELECT * FROM no_such_table", &[]).unwrap_err();
    assert_eq!((error.code(), error.kind()), (Some(1146), ErrorKind::Server));
    let error = run(db, "SELECT 1; SELECT 2", &[]).unwrap_err();
    assert_eq!(error.code(), Some(1064));
    let described =
        db.session.describe("SELECT i, s FROM t WHERE i > ?", &Options::default(), &mut || Ok(()));
    let described = described.unwrap();
    assert_eq!(described.fields.len(), 2);
    assert_eq!((&*described.fields[1].name, &described.fields[0].data_type), ("s", &Type::Int64));
    let found = run(db, "SELECT i, s FROM t WHERE i > ?", &[Parameter::Signed(0)]).unwrap();
    assert_eq!(rows(&found), 1);
    // More statements than are kept.
    for i in 0..100 {
        assert_eq!(numbers(&run(db, &format!("SELECT CAST({i} AS SIGNED)"), &[]).unwrap(), 0), [i]);
    }
    assert!(status(db, "Com_stmt_close") > 50);
    assert!(db.session.is_usable());
    db.session.close();
}

#[test]
fn procedures() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    for body in [
        "none() BEGIN END",
        "one() BEGIN SELECT CAST(1 AS SIGNED) AS a; END",
        "two() BEGIN SELECT 1 AS a; SELECT 2 AS b; END",
        "fails() BEGIN SELECT 1 AS a; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END",
    ] {
        run(db, &format!("CREATE PROCEDURE {body}"), &[]).unwrap();
    }
    assert_eq!(run(db, "CALL none()", &[]).unwrap().len(), 0);
    assert_eq!(numbers(&run(db, "CALL one()", &[]).unwrap(), 0), [1]);
    let error = run(db, "CALL two()", &[]).unwrap_err();
    assert!(error.to_string().contains("more than once"), "{error}");
    let error = run(db, "CALL fails()", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("45000"));
    assert!(db.session.is_usable());
}

#[test]
fn settings() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    run(db, "SET NAMES latin1", &[]).unwrap();
    let error = run(db, "SELECT 'ü'", &[]).unwrap_err();
    assert!(error.to_string().contains("latin1") && db.session.is_usable(), "{error}");
    let error = run(db, "SELECT CHAR(252 USING latin1)", &[]).unwrap_err();
    assert!(error.to_string().contains("latin1"), "{error}");
    db.session.drain(&mut || Ok(())).unwrap();
    run(db, "SET NAMES utf8mb4", &[]).unwrap();
    assert_eq!(one(db, "SELECT CHAR(252 USING latin1)"), "ü");
    assert_eq!(rows(&run(db, "SELECT 'ü'", &[]).unwrap()), 1);
    run(db, "SET time_zone = '+02:00'", &[]).unwrap();
    let sql = "SELECT FROM_UNIXTIME(0), TIMESTAMP('2020-01-01'), 1";
    let found = run(db, sql, &[]);
    // These are DATETIME, which has no zone.
    assert!(found.is_ok() || !found.unwrap_err().to_string().contains("time_zone"));
    if db.session.is_running() {
        db.session.drain(&mut || Ok(())).unwrap();
    }
    run(db, "CREATE TABLE stamps (at TIMESTAMP)", &[]).unwrap();
    let error = run(db, "SELECT at FROM stamps", &[]).unwrap_err();
    assert!(error.to_string().contains("time_zone was set"), "{error}");
}

#[test]
fn large_values() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    for bytes in [0xff_ffff - 20, 0xff_ffff, 40 << 20] {
        // With and without preparation the row has several packets.
        let found = run(db, &format!("SELECT REPEAT('x', {bytes}), 1"), &[]).unwrap();
        let Values::Bytes { data, .. } = &found[0].batch().columns[0].values else { panic!() };
        assert_eq!(data.len(), bytes);
    }
    let value = Parameter::Bytes(vec![b'y'; 20 << 20]);
    let found = run(db, "SELECT CAST(LENGTH(?) AS SIGNED)", &[value]).unwrap();
    assert_eq!(numbers(&found, 0), [20 << 20]);
    let options = Options { row_bytes_max: 1 << 20, ..Options::default() };
    for bytes in [2 << 20, 40 << 20] {
        let sql = format!("SELECT REPEAT('x', {bytes})");
        let error = run_with(db, &sql, &[], &options).unwrap_err();
        assert!(error.hint().unwrap().contains("row_bytes_max"), "{error}");
        db.session.drain(&mut || Ok(())).unwrap();
    }
    assert_eq!(one(db, "SELECT 5"), "5");
}

/// Cancels, while rows arrive or the server computes.
#[test]
fn cancelled() {
    let server = Server::start(&[]);
    let mut login = server.session();
    for sql in ["SELECT seq FROM seq_1_to_1000000000", "SELECT SLEEP(100)"] {
        let canceller = login.canceller.clone();
        let began = Instant::now();
        let mut cancelled = false;
        let mut cancel_once = || {
            if began.elapsed() > Duration::from_millis(300) && !cancelled {
                cancelled = true;
                return Err(Error::wait_ended("cancelled"));
            }
            Ok(())
        };
        let session = &mut login.session;
        let mut read = || -> Result<()> {
            session.start(sql, &[], &Options::default(), &mut cancel_once)?;
            while session.next_batch(None, &mut cancel_once)?.is_some() {
                cancel_once()?;
            }
            Ok(())
        };
        let outcome = read();
        // MariaDB's SLEEP returns 1 when it is interrupted; nothing has done so yet.
        assert!(outcome.is_err() && login.session.is_running(), "{sql}: {outcome:?}");
        let mut keep_waiting = || true;
        let mut wait = Wait::new(Instant::now() + Duration::from_secs(10), &mut keep_waiting);
        canceller.cancel(&mut wait).unwrap();
        login.session.drain(&mut || Ok(())).unwrap();
        // One more, which comes too late, does no harm.
        canceller.cancel(&mut wait).unwrap();
        login.session.settle(&mut || Ok(())).unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "{sql}");
        assert_eq!(one(&mut login, "SELECT 5"), "5");
        canceller.cancel(&mut wait).unwrap();
        login.session.settle(&mut || Ok(())).unwrap();
        assert_eq!(one(&mut login, "SELECT 6"), "6");
    }
    assert!(!format!("{:?}", login.canceller).contains("secret"));
}

/// The server reads a prepared statement in the database and by the rules of its preparation.
#[test]
fn statements_mean_what_they_say() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    let text = |db: &mut LoggedIn, sql: &str| {
        let batches = run(db, sql, &[]).unwrap();
        let Values::Bytes { data, .. } = &batches[0].batch().columns[0].values else { panic!() };
        String::from_utf8(data.to_vec()).unwrap()
    };
    server.sql(&["CREATE DATABASE shop2"]);
    let same = "SELECT DATABASE()";
    assert_eq!(text(db, same), "shop");
    for name in ["shop2", "shop", "shop2"] {
        run(db, &format!("USE {name}"), &[]).unwrap();
        assert_eq!(text(db, same), name);
    }
    let same = "SELECT CAST('1' || '0' AS CHAR)";
    assert_eq!(text(db, same), "1");
    run(db, "SET sql_mode = 'PIPES_AS_CONCAT'", &[]).unwrap();
    assert_eq!(text(db, same), "10");
    let same = "SELECT COLLATION('a')";
    run(db, "SET NAMES utf8mb4 COLLATE utf8mb4_bin", &[]).unwrap();
    assert_eq!(text(db, same), "utf8mb4_bin");
    run(db, "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", &[]).unwrap();
    assert_eq!(text(db, same), "utf8mb4_general_ci");
}

/// Nothing of the session's own comes between a statement and one that reads what it has left.
#[test]
fn what_is_left() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let db = &mut login;
    run(db, "CREATE TABLE left_over (a INT PRIMARY KEY)", &[]).unwrap();
    run(db, "INSERT INTO left_over VALUES (1), (2), (3)", &[]).unwrap();
    assert_eq!(numbers(&run(db, "SELECT ROW_COUNT()", &[]).unwrap(), 0), [3]);
    run(db, "SELECT SQL_CALC_FOUND_ROWS a FROM left_over LIMIT 1", &[]).unwrap();
    assert_eq!(numbers(&run(db, "SELECT FOUND_ROWS()", &[]).unwrap(), 0), [3]);
    for sql in ["SHOW WARNINGS", "SHOW ERRORS"] {
        run(db, "INSERT INTO left_over VALUES (1)", &[]).unwrap_err();
        assert_eq!(numbers(&run(db, sql, &[]).unwrap(), 1), [1062]);
    }
    run(db, "INSERT INTO left_over VALUES (1)", &[]).unwrap_err();
    run(db, "GET DIAGNOSTICS CONDITION 1 @number = MYSQL_ERRNO", &[]).unwrap();
    assert_eq!(one(db, "SELECT @number"), "1062");
}

/// A statement that another session ends is an error, and so is a connection that it ends.
#[test]
fn killed() {
    let server = Server::start(&[]);
    let sql = "SELECT seq FROM seq_1_to_1000000000";
    let killer = |what: &str, login: &LoggedIn| {
        let id = login.session.server().connection_id;
        server.sql(&[&format!("KILL {what} {id}")]);
    };
    let mut login = server.session();
    login.session.start(sql, &[], &Options::default(), &mut || Ok(())).unwrap();
    killer("QUERY", &login);
    let error = loop {
        match login.session.next_batch(None, &mut || Ok(())) {
            Ok(batch) => assert!(batch.is_some()),
            Err(error) => break error,
        }
    };
    assert!(error.is_interrupted() && login.session.is_usable(), "{error}");
    login.session.start(sql, &[], &Options::default(), &mut || Ok(())).unwrap();
    killer("CONNECTION", &login);
    let error = loop {
        match login.session.next_batch(None, &mut || Ok(())) {
            Ok(batch) => assert!(batch.is_some()),
            Err(error) => break error,
        }
    };
    assert!(!login.session.is_usable() || error.code() == Some(1927), "{error}");
    // While nothing runs.
    let mut login = server.session();
    killer("CONNECTION", &login);
    let error = run(&mut login, "SELECT 1", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(login.session.is_broken());
}

/// What the session reads for itself is kept as a whole.
#[test]
fn too_much_asked() {
    let server = Server::start(&[]);
    let mut login = server.session();
    let mut ask = |sql: &str| login.session.ask(sql, &mut || Ok(())).map(|rows| rows.len());
    assert_eq!(ask("SELECT REPEAT('x', 1000000) FROM seq_1_to_200").unwrap(), 200);
    let error = ask("SELECT REPEAT('x', 1000000) FROM seq_1_to_300").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(ask("SELECT 1").unwrap_err().to_string().contains("broken"));
}
