//! A client session that reads arbitrary bytes from the server.

#![no_main]

#[path = "../../crates/wire/tests/drive/mod.rs"]
mod drive;

use dray_format::{Limits, crc32c};
use dray_fuzz::LimitedAllocator;
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, PlanRequest, Query, RowLayout};
use libfuzzer_sys::fuzz_target;

/// Several times the limits below.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

const LIMITS: Limits =
    Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20, row_bytes_max: 1 << 20 };
const STARTED: u8 = 0x82;
const PLANNED: u8 = 0x89;

fuzz_target!(|input: &[u8]| {
    for layout in [RowLayout::Chunks, RowLayout::Either] {
        let input = with_query_checksums(input, layout);
        if let Ok(heard) = drive::heard(&input, std::iter::repeat(query(layout))) {
            let names = heard.names;
            assert!(matches!(names.first(), Some(&"welcome" | &"error")), "{names:?}");
        }
    }
    let plans = std::iter::repeat_with(|| drive::Asked::Plan(plan()));
    if let Ok(heard) = drive::heard(&with_plan_checksums(input), plans) {
        assert!(heard.names.iter().all(|name| *name != "started"), "{:?}", heard.names);
    }
});

fn query(layout: RowLayout) -> Query {
    Query { limits: LIMITS, layout, ..drive::query("SELECT 1") }
}

fn plan() -> PlanRequest {
    PlanRequest {
        statement: 0,
        sql: "SELECT 1".into(),
        parameters: Vec::new(),
        parts_max: None,
        lease_ms: 1,
    }
}

/// Sets the checksum of the request in each plan, and its digest.
fn with_plan_checksums(input: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    let mut at = 0;
    while let Some(raw) = out.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        let [a, b, c, d, kind, _, _, _, s, t, u, v, ..] = *raw;
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        let end = at.saturating_add(FRAME_HEADER_BYTES).saturating_add(bytes);
        if kind == PLANNED && bytes >= 12 && end <= out.len() {
            let mut payload = u32::from_le_bytes([s, t, u, v]).to_le_bytes().to_vec();
            payload.extend(8_u32.to_le_bytes());
            payload.extend(b"SELECT 1\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
            out[at + 12..at + 16].copy_from_slice(&crc32c(0, &payload).to_le_bytes());
            let digest = crc32c(0, &out[at + FRAME_HEADER_BYTES..end - 4]);
            out[end - 4..end].copy_from_slice(&digest.to_le_bytes());
        }
        at = end;
    }
    out
}

/// Sets the checksum in each started message to that of the client's query, since the fuzzer could
/// not guess it.
fn with_query_checksums(input: &[u8], layout: RowLayout) -> Vec<u8> {
    let mut out = input.to_vec();
    let mut at = 0;
    while let Some(raw) = out.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        let [a, b, c, d, kind, _, _, _, s, t, u, v, ..] = *raw;
        if kind == STARTED {
            let checksum = query_checksum(u32::from_le_bytes([s, t, u, v]), layout);
            out[at + 12..at + 16].copy_from_slice(&checksum.to_le_bytes());
        }
        at = at.saturating_add(FRAME_HEADER_BYTES + u32::from_le_bytes([a, b, c, d]) as usize);
    }
    out
}

/// The checksum of the client's query with this number, if it is one of the first.
fn query_checksum(statement: u32, layout: RowLayout) -> u32 {
    let mut session = ClientSession::default();
    session.hello("", "test", "", &mut Vec::new()).unwrap();
    // Version 5, without a name, and its instance.
    receive(&mut session, 0x81, &[&b"\x05\0\0\0\0\0"[..], &[0; 16]].concat());
    let mut out = Vec::new();
    for number in 1..=statement.min(8) {
        out.clear();
        session.query(query(layout), &mut out).unwrap();
        receive(&mut session, 0x86, &[&number.to_le_bytes()[..], b"\x01", &[0; 12]].concat());
    }
    out.get(FRAME_HEADER_BYTES..).map_or(0, |payload| crc32c(0, payload))
}

fn receive(session: &mut ClientSession, kind: u8, payload: &[u8]) {
    let frame = session.frame(&[payload.len() as u8, 0, 0, 0, kind, 0, 0, 0]).unwrap();
    session.message(frame, payload).unwrap();
}
