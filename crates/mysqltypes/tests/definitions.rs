//! Definitions of columns, and bytes that are none.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::lenenc;
use dray_mysqltypes::ColumnDefinition;

fn payload(extended: Option<&[u8]>) -> Vec<u8> {
    let names = ["def", "schema", "alias", "table", "n", "name"];
    let mut payload: Vec<u8> = names.iter().flat_map(|name| lenenc(name.as_bytes())).collect();
    payload.extend(extended.map(lenenc).unwrap_or_default());
    payload.extend_from_slice(b"\x0c\x2d\0\xFC\x03\0\0\xFD\x01\x10\x1f\0\0");
    payload
}

#[test]
fn all_fields() {
    let expected = ColumnDefinition {
        name: "n".to_owned(),
        type_code: 253,
        flags: 0x1001,
        character_set: 45,
        length: 1020,
        decimals: 31,
        extended_type: None,
    };
    assert_eq!(ColumnDefinition::parse(&payload(None), false).unwrap(), expected);
    for (metadata, extended_type) in [
        (&b""[..], None),
        (b"\0\x04uuid", Some("uuid")),
        (b"\x01\x04json", Some("json")),
        (b"\x01\x04json\0\x05inet6", Some("inet6")),
        (b"\x07\x01x\x01\x04json", Some("json")),
        (b"\x07\x01x", None),
    ] {
        let expected = ColumnDefinition {
            extended_type: extended_type.map(str::to_owned),
            ..expected.clone()
        };
        assert_eq!(ColumnDefinition::parse(&payload(Some(metadata)), true).unwrap(), expected);
    }
}

#[test]
fn what_is_none() {
    for (payload, extended) in [(payload(None), false), (payload(Some(b"\0\x04uuid")), true)] {
        for bytes in 0..payload.len() {
            ColumnDefinition::parse(&payload[..bytes], extended).unwrap_err();
        }
        let more = [&payload[..], &[0]].concat();
        let error = ColumnDefinition::parse(&more, extended).unwrap_err();
        assert_eq!(
            error.to_string(),
            "column \"n\": the server sent 1 bytes after the end of a column's definition"
        );
    }
    for metadata in [&b"\0"[..], b"\0\x05uuid", b"\0\x02\xFF\xFF"] {
        ColumnDefinition::parse(&payload(Some(metadata)), true).unwrap_err();
    }
    let mut other_length = payload(None);
    let at = other_length.len() - 13;
    other_length[at] = 0x0B;
    ColumnDefinition::parse(&other_length, false).unwrap_err();
    let not_utf8 = [b"\0\0\0\0\x01\xFF\0".as_slice(), &payload(None)[at..]].concat();
    ColumnDefinition::parse(&not_utf8, false).unwrap_err();
}
