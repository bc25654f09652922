//! User-defined types, on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "common/server.rs"]
mod server;

use std::time::Duration;

use dray_format::Type;
use dray_postgres::{ConnectParams, Options, Session, Socket, connect};
use server::Server;

fn open(server: &Server) -> Session<Socket> {
    let params = ConnectParams::parse_with(&server.uri(), &|_| None).unwrap();
    let logged_in = connect(&params, Duration::from_secs(10), &mut || true).unwrap();
    Session::new(logged_in.socket, 15, &logged_in.parameters)
}

/// The type of the only column of a statement's result, and the type name in its metadata.
fn column(session: &mut Session<Socket>, statement: &str) -> (Type, String) {
    let mut check = || Ok(());
    let schema = session.start(statement, &[], &Options::default(), &mut check).unwrap();
    while session.next_batch(None, &mut check).unwrap().is_some() {}
    let field = &schema.fields[0];
    let name = field.metadata.first().map(|(_, name)| name.clone()).unwrap_or_default();
    (field.data_type.clone(), name)
}

fn attributes(data_type: &Type) -> Vec<&str> {
    match data_type {
        Type::Struct(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_have_their_schemas() {
    let server = Server::start(&[], None);
    server.sql("CREATE TYPE mood AS ENUM ('ok')");
    server.sql(
        "CREATE SCHEMA \"a b\"; CREATE TYPE \"a b\".mood AS ENUM ('ok'); \
         CREATE TYPE hosts AS (host inet)",
    );
    server.sql("CREATE DOMAIN host AS inet");
    let mut session = open(&server);
    for (statement, name) in [
        ("SELECT 'ok'::mood", "public.mood"),
        ("SELECT 'ok'::\"a b\".mood", "\"a b\".mood"),
        ("SELECT NULL::hosts[]", "public.hosts[]"),
        ("SELECT '::1'::inet", "inet"),
        ("SELECT '::1'::host", "inet"),
        ("SELECT 1.5", "numeric"),
    ] {
        assert_eq!(column(&mut session, statement), (Type::Utf8, name.to_owned()), "{statement}");
    }
}

#[test]
fn money_within_others_has_digits() {
    let server = Server::start(&[], None);
    server.sql("CREATE TYPE priced AS (what text, price money)");
    let mut session = open(&server);
    for statement in [
        "SELECT ARRAY['5'::money]",
        "SELECT ROW('x', '5')::priced",
        "SELECT ARRAY[ROW('x', '5')::priced]",
    ] {
        let (data_type, _) = column(&mut session, statement);
        assert!(
            format!("{data_type:?}").contains("Decimal128 { precision: 19, scale: 2 }"),
            "{data_type:?}"
        );
    }
}

#[test]
fn attributes_change_between_statements() {
    let server = Server::start(&[], None);
    server.sql("CREATE TYPE growing AS (a integer)");
    let mut session = open(&server);
    let statement = "SELECT NULL::growing";
    assert_eq!(attributes(&column(&mut session, statement).0), ["a"]);
    server.sql("ALTER TYPE growing ADD ATTRIBUTE b text");
    assert_eq!(attributes(&column(&mut session, statement).0), ["a", "b"]);
    server.sql("ALTER TYPE growing RENAME ATTRIBUTE b TO c");
    assert_eq!(attributes(&column(&mut session, statement).0), ["a", "c"]);
}

#[test]
fn errors_point_into_the_statement() {
    let server = Server::start(&[], None);
    let mut session = open(&server);
    let mut check = || Ok(());
    for statement in ["SELECT nothing", "SELECT 1,\n  nothing"] {
        let error = session.start(statement, &[], &Options::default(), &mut check).unwrap_err();
        let place = if statement.contains('\n') { "line 2, column 3" } else { "column 8" };
        assert!(error.message().ends_with(place), "{error}");
    }
    let error = session.start("SELECT '\0'", &[], &Options::default(), &mut check).unwrap_err();
    assert!(error.message().contains("NUL"), "{error}");
    assert_eq!(column(&mut session, "SELECT 1").0, Type::Int32);
}
