//! Flips each single bit of an exchange, in both directions: the client gets the same table, or
//! none.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{
    Batch, Bitmap, Checksum, ChunkKind, Column, Compression, DictionaryBudget, Encoder, Field,
    Schema, Type, Unit, Values,
};
use dray_page::{Layout, PAGE_BYTES, PackedPage, PageBuilder};
use dray_wire::{
    Checksums, ClientEvent, ClientSession, Encoded, FRAME_HEADER_BYTES, Finished, INSTANCE_BYTES,
    Instance, PlanRequest, PlannedPart, Query, Report, RowLayout, ServerSession, Started,
};

const SERVER: &str = "server";
const INSTANCE: Instance = Instance::new(*b"sixteen of bytes");

fn query() -> Query {
    Query {
        checksums: Checksums::On,
        layout: RowLayout::Either,
        ..drive::query("SELECT at, name FROM t WHERE n < 1000")
    }
}

/// A hello and the query.
fn requests() -> Vec<u8> {
    let mut out = Vec::new();
    let mut session = ClientSession::default();
    session.hello("secret", "test", "", &mut out).unwrap();
    let mut welcome = Vec::new();
    ServerSession::default().welcome(SERVER, INSTANCE, "", &mut welcome).unwrap();
    let (raw, payload) = welcome.split_first_chunk().unwrap();
    session.message(session.frame(raw).unwrap(), payload).unwrap();
    session.query(query(), &mut out).unwrap();
    out
}

fn schema() -> Schema {
    let at = Type::Timestamp { unit: Unit::Microsecond, zone: Some("UTC".into()) };
    Schema {
        fields: vec![
            Field {
                name: "at".into(),
                data_type: at,
                nullable: true,
                metadata: vec![("key".into(), "value".into())],
            },
            Field { name: "name".into(), data_type: Type::Utf8, nullable: false, metadata: vec![] },
        ],
    }
}

fn rows() -> Batch {
    let rows = 80;
    let at = Bytes::from_iter(
        (0..rows as u64)
            .flat_map(|row| if row == 3 { [0; 8] } else { (row * 1_000_001).to_le_bytes() }),
    );
    let bits = Bytes::from_iter((0..rows / 8).map(|byte| if byte == 0 { !(1 << 3) } else { 0xFF }));
    let names = Bytes::from("onetwosix".repeat(rows));
    let offsets = Bytes::from_iter((0..=rows as u32).flat_map(|row| (3 * row).to_le_bytes()));
    let columns = vec![
        Column {
            rows,
            validity: Some(Bitmap { bytes: bits, offset: 0, len: rows }),
            values: Values::Fixed { width: 8, bytes: at },
        },
        Column { rows, validity: None, values: Values::Bytes { offsets, data: names } },
    ];
    Batch { rows, columns }
}

/// The first rows as objects.
fn page(checksum: Checksum) -> PackedPage {
    let layout = Layout::new(schema()).unwrap();
    let mut builder = PageBuilder::new(layout, PAGE_BYTES, Checksum::None).unwrap();
    let rows = rows();
    let columns = rows.columns.iter().map(|column| column.slice(0, 5)).collect();
    builder.append(&Batch { rows: 5, columns }).unwrap();
    PackedPage::new(&builder.finish()[0], checksum)
}

/// The server's answers to these requests; None if they contain no valid query.
fn answers(mut requests: &[u8]) -> Option<Vec<u8>> {
    let mut session = ServerSession::default();
    let mut out = Vec::new();
    let query = loop {
        let (raw, rest) = requests.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let frame = session.frame(raw).ok()?;
        let (payload, rest) = rest.split_at_checked(frame.payload_bytes as usize)?;
        requests = rest;
        match session.message(frame, payload).ok()? {
            ClientEvent::Hello(_) => session.welcome(SERVER, INSTANCE, "", &mut out).unwrap(),
            ClientEvent::Query(query) => break query,
            _ => {}
        }
    };
    let started = Started {
        checksums: query.checksums == Checksums::On,
        ..drive::started(query.statement, schema())
    };
    session.started(&started, &mut out).unwrap();
    session.progress(7, &mut out).unwrap();
    if !query.plan_only {
        let mut encoder = Encoder::new(schema().into(), started.checksums.into());
        encoder = encoder.with_dictionaries(Arc::new(DictionaryBudget::new(&query.limits)));
        for _ in 0..2 {
            let chunk =
                encoder.write(&[rows()], |_| Compression::Light, ChunkKind::Regular).unwrap();
            let parts = session.chunk(chunk, &mut out).unwrap();
            parts.iter().for_each(|part| out.extend_from_slice(part));
        }
        if query.layout == RowLayout::Either {
            let parts = session.page(page(started.checksums.into()), &mut out).unwrap();
            parts.iter().for_each(|part| out.extend_from_slice(part));
        }
    }
    let columns = vec![Encoded::default(); 2];
    session.report(Report { columns, ..Report::default() }, &mut out).unwrap();
    session
        .finished(Finished { planned_only: query.plan_only, ..Finished::default() }, &mut out)
        .unwrap();
    Some(out)
}

/// The frames behind the first one. A flipped bit of a hello may choose a lower version.
fn behind_welcome(answers: &[u8]) -> &[u8] {
    let payload_bytes = u32::from_le_bytes(*answers.first_chunk().unwrap());
    &answers[FRAME_HEADER_BYTES + payload_bytes as usize..]
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

#[test]
fn no_bit_of_an_exchange_can_be_another_one() {
    let said = requests();
    let whole = answers(&said).unwrap();
    let heard = |answers: &[u8]| drive::heard(answers, [query()]);
    let expected = heard(&whole).unwrap();
    assert_eq!(
        expected.names,
        ["welcome", "started", "progress", "state", "chunk", "chunk", "page", "report", "finished"]
    );
    assert_eq!(expected.tables.len(), 1);
    let mut unharmed = 0;
    for bit in 0..8 * whole.len() {
        if let Ok(found) = heard(&flipped(&whole, bit)) {
            assert_eq!(found, expected, "bit {bit} of the answers");
            unharmed += 1;
        }
    }
    assert!(
        unharmed <= 8 * (SERVER.len() + INSTANCE_BYTES),
        "{unharmed} bits beside the server's name and instance are read by nobody"
    );
    for bit in 0..8 * said.len() {
        let Some(answers) = answers(&flipped(&said, bit)) else { continue };
        if let Ok(found) = heard(&answers) {
            assert_eq!(found, expected, "bit {bit} of the requests");
            let (answers, whole) = (behind_welcome(&answers), behind_welcome(&whole));
            assert_eq!(answers, whole, "bit {bit} of the requests");
        }
    }
}

/// A plan decides which rows a reader gets, so no bit of it may change either.
#[test]
fn no_bit_of_a_plan_can_be_another_one() {
    let request = PlanRequest {
        statement: 0,
        sql: "SELECT at FROM t".into(),
        parameters: Vec::new(),
        parts_max: Some(2),
        lease_ms: 1000,
    };
    let (mut client, mut server) = (ClientSession::default(), ServerSession::default());
    let (mut said, mut welcome) = (Vec::new(), Vec::new());
    client.hello("", "test", "", &mut said).unwrap();
    let (raw, payload) = said.split_first_chunk().unwrap();
    server.message(server.frame(raw).unwrap(), payload).unwrap();
    server.welcome(SERVER, INSTANCE, "", &mut welcome).unwrap();
    let (raw, payload) = welcome.split_first_chunk().unwrap();
    client.message(client.frame(raw).unwrap(), payload).unwrap();
    said.clear();
    client.plan(request.clone(), &mut said).unwrap();
    let (raw, payload) = said.split_first_chunk().unwrap();
    server.message(server.frame(raw).unwrap(), payload).unwrap();
    let parts = [1, 2].map(|n| PlannedPart { rows: Some(n), bytes: None, ticket: vec![9; 120] });
    let mut planned = Vec::new();
    server.planned(drive::planned(schema(), parts.to_vec()), &mut planned).unwrap();
    let answers = |planned: &[u8]| [&welcome, planned].concat();
    let heard =
        |planned: &[u8]| drive::heard(&answers(planned), [drive::Asked::Plan(request.clone())]);
    assert_eq!(heard(&planned).unwrap().names, ["welcome", "planned"]);
    for bit in 0..8 * planned.len() {
        assert!(heard(&flipped(&planned, bit)).is_err(), "bit {bit}");
    }
}
