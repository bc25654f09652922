//! Tokens and passwords never appear in errors or debug output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;

use dray_client::{ConnectOptions, Connection, PlanOptions, QueryOptions, Uri, Verdict};
use dray_mysql::ConnectParams as MysqlParams;
use dray_postgres::ConnectParams;
use postgres_server::Server;

/// Neither a uri nor an error about it shows the token or password.
#[test]
fn nothing_shows_a_secret() {
    // Words of letters alone could be keys.
    const WORDS: [[&str; 3]; 2] = [["Zq7x", "Kw9v", "Jp3m"], ["zqvx", "kwyv", "jpzm"]];
    const BETWEEN: [&str; 24] = [
        "",
        "@",
        "/",
        ":",
        "?",
        "#",
        "%",
        "%4",
        "%40",
        "&",
        "=",
        " ",
        "'",
        "\\",
        "[",
        "]",
        "//",
        "ü",
        "?ssl=",
        "&ssl=",
        "?sslmode=",
        "&sslmode=",
        "?some=",
        "&some=",
    ];
    const PLACES: [&str; 27] = [
        "dray://SECRET@h",
        "drays://SECRET@h:port",
        "dray://u:SECRET@h:1/",
        "dray://SECRET@",
        "dray://SECRET@:7",
        "dray://SECRET@h/x",
        "dray://h:SECRET",
        "dray://h?token=SECRET",
        "dray://h?token=SECRET&x",
        "dray://h?tokn=SECRET",
        "dray+unix://SECRET@/tmp/x",
        "drya://SECRET@h",
        "Dray://SECRET@h",
        "mysqlx://u:SECRET@h",
        "://SECRET@h",
        "SECRET@h",
        "postgresql://u:SECRET@h:1/d",
        "postgresql://u:SECRET",
        "postgresql://u:SECRET@h:port/d?x=y",
        "host=h password=SECRET port=x",
        "host=h password='SECRET' x=1",
        "postgres://h/d?password=SECRET&port=x",
        "mysql://u:SECRET@h:1/d",
        "mysql://u:SECRET",
        "mysql://u:SECRET@h:port/d?x=y",
        "mysql://h/d?password=SECRET&port=x",
        "mariadb://h/d?passwd=SECRET&x=y",
    ];
    let mut refused = 0;
    for place in PLACES {
        for ((one, two), words) in BETWEEN
            .iter()
            .flat_map(|one| BETWEEN.iter().map(move |two| (one, two)))
            .flat_map(|between| WORDS.iter().map(move |words| (between, words)))
        {
            // The text before the last @ is the secret, wherever it was meant to be.
            if !place.contains('@')
                && place.contains("://")
                && !place.contains('?')
                && format!("{one}{two}").contains('@')
            {
                continue;
            }
            let [first, second, third] = words;
            let uri = place.replace("SECRET", &format!("{first}{one}{second}{two}{third}"));
            let said = match place.starts_with("postgres") || place.starts_with("host=") {
                true => match ConnectParams::parse_with(&uri, &|_| None) {
                    Ok(params) => format!("{params:?}"),
                    Err(error) => format!("{error} {error:?}"),
                },
                false if place.starts_with("mysql:") || place.starts_with("mariadb:") => {
                    match MysqlParams::parse_with(&uri, &|_| None) {
                        Ok(params) => format!("{params:?}"),
                        Err(error) => format!("{error} {error:?}"),
                    }
                }
                false => match uri.parse::<Uri>() {
                    Ok(parsed) => format!("{parsed} {parsed:?}"),
                    Err(error) => format!("{error} {error:?}"),
                },
            };
            refused += usize::from(said.contains("Usage"));
            assert!(!words.iter().any(|word| said.contains(word)), "{uri}: {said}");
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn options_do_not_show_their_token() {
    let options = ConnectOptions { token: Some("s3cret".into()), ..ConnectOptions::default() };
    assert!(!format!("{options:?}").contains("s3cret"), "{options:?}");
}

#[test]
fn connections_and_plans_do_not_show_their_password() {
    let server = Server::start(&[], None);
    let uri = server.uri().replace('@', ":s3cret@");
    let mut connection = Connection::connect(&uri, &ConnectOptions::default()).unwrap();
    let options = PlanOptions { include_password: true, ..PlanOptions::default() };
    let plan = connection
        .partitions("SELECT 1 AS one", &QueryOptions::default(), &options, &mut || {
            Verdict::Continue
        })
        .unwrap();
    assert!(plan.partitions()[0].windows(6).any(|bytes| bytes == b"s3cret"));
    let as_bytes = "115, 51, 99, 114, 101, 116";
    for said in [format!("{connection:?}"), format!("{plan:?}")] {
        assert!(!said.contains("s3cret") && !said.contains(as_bytes), "{said}");
    }
}
