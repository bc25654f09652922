//! A session never sends more than the other side accepts.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use dray_format::{Field, Schema, Type};
use dray_wire::{ClientSession, ErrorKind, Refusal, ServerError, ServerSession};

#[test]
fn a_token_that_no_server_would_read_is_not_sent() {
    let mut session = ClientSession::default();
    let mut out = Vec::new();
    let error = session.hello(&"x".repeat(64 << 10), "test", "", &mut out).unwrap_err();
    assert_eq!((error.refusal(), out.len()), (Refusal::Frame, 0));
    session.hello(&"x".repeat(60 << 10), "test", "", &mut out).unwrap();
    assert_eq!(drive::requests(&out).unwrap(), ["hello"]);
}

#[test]
fn a_long_error_arrives_cut() {
    let text = "é".repeat(20 << 20);
    let error = ServerError {
        statement: 0,
        kind: ErrorKind::Query,
        sqlstate: "42601".into(),
        message: text.clone(),
        hint: text,
    };
    let mut out = Vec::new();
    ServerSession::default().closed(error, &mut out).unwrap();
    assert_eq!(drive::answers(&out).unwrap(), ["error"]);
}

#[test]
fn a_schema_too_large_for_a_message_leaves_the_statement_to_an_error() {
    let field = Field {
        name: "n".repeat(1 << 20),
        data_type: Type::Int8,
        nullable: false,
        metadata: vec![],
    };
    let schema = Schema { fields: vec![field; 17] };
    let mut session = ServerSession::default();
    let mut out = b"before".to_vec();
    assert!(session.started(&drive::started(1, schema), &mut out).is_err());
    assert_eq!(out, b"before");
}
