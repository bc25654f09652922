//! Refusals that no recorded connection covers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use dray_format::Schema;

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
