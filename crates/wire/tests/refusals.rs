//! Refusals that no recorded connection covers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use dray_format::Schema;
use dray_wire::{ClientSession, PartRequest, PlanRequest, Query, Unfit};

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

/// Otherwise the client would wait for a chunk header that never arrives.
#[test]
fn a_chunk_shorter_than_its_header_is_refused_before_it_is_read() {
    let mut bytes = drive::begun(Schema::default());
    bytes.extend(63u32.to_le_bytes());
    bytes.extend([0x83, 0, 0, 0]);
    assert_eq!(drive::answers(&bytes).unwrap_err().name, "size");
}

#[test]
fn another_version_is_named_before_fields_that_it_may_have_changed() {
    assert_eq!(
        drive::requests(&frame(1, b"DRAY\x01\0\x01\0new fields")).unwrap_err().name,
        "version"
    );
    assert_eq!(drive::answers(&frame(0x81, b"\x01\0new fields")).unwrap_err().name, "version");
}

#[test]
fn no_statement_has_the_number_0() {
    let mut bytes = frame(1, b"DRAY\x02\0\x02\0\0\0\0\0\0\0\0\0");
    assert_eq!(drive::requests(&bytes).unwrap(), ["hello"]);
    bytes.extend(frame(3, &[0; 4]));
    assert_eq!(drive::requests(&bytes).unwrap_err().name, "order");
}

/// A server of an older version would end the connection.
#[test]
fn plans_are_not_sent_to_older_servers() {
    let plan = PlanRequest {
        statement: 0,
        sql: "SELECT 1".into(),
        parameters: Vec::new(),
        parts_max: None,
        lease_ms: 1000,
    };
    let part = PartRequest { query: drive::query("SELECT 1"), ticket: vec![1] };
    let welcomes = [&b"\x02\0\0\0\0\0"[..], &[&b"\x03\0\0\0\0\0"[..], &[0; 16]].concat()];
    for welcome in welcomes {
        let mut session = ClientSession::default();
        session.hello("", "test", "", &mut Vec::new()).unwrap();
        let bytes = frame(0x81, welcome);
        let (raw, payload) = bytes.split_first_chunk().unwrap();
        session.message(session.frame(raw).unwrap(), payload).unwrap();
        let mut out = Vec::new();
        let refused = [session.plan(plan.clone(), &mut out), session.part(part.clone(), &mut out)];
        for error in refused.map(Result::unwrap_err) {
            assert_eq!(error.name(), "version");
            assert!(error.to_string().contains("update the server"), "{error}");
        }
        assert!(out.is_empty() && session.is_ready());
        session.query(drive::query("SELECT 1"), &mut out).unwrap();
    }
}

/// A server of an older version would end the connection.
#[test]
fn newer_flags_are_not_sent_to_older_servers() {
    let flags = |version: u8, query: &Query| {
        let mut session = ClientSession::default();
        session.hello("", "test", "", &mut Vec::new()).unwrap();
        // Without names, a source and a dialect.
        let bytes = frame(0x81, &[&[version, 0][..], &[0; 4], &[0; 16], &[0; 8]].concat());
        let (raw, payload) = bytes.split_first_chunk().unwrap();
        session.message(session.frame(raw).unwrap(), payload).unwrap();
        let mut out = Vec::new();
        session.query(query.clone(), &mut out).map(|()| out.last().copied())
    };
    let watched = Query { estimate: true, ..drive::query("SELECT 1") };
    assert_eq!(flags(6, &watched).unwrap(), Some(0));
    assert_eq!(flags(7, &watched).unwrap(), Some(8));
    let unfit = Query { unfit: Unfit::Null, ..drive::query("SELECT 1") };
    let refused = flags(6, &unfit).unwrap_err();
    assert!(refused.to_string().contains("update the server"), "{refused}");
    assert_eq!(flags(7, &unfit).unwrap(), Some(16));
}
