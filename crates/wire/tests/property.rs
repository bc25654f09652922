//! Random connections between the two sessions: each receives what the other sent. Damaged ones are
//! refused or decoded differently, without a panic.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use bytes::Bytes;
use dray_format::{
    Batch, ChunkKind, Column, Compression, Field, HEADER_BYTES, Limits, Schema, Type, Unit, Values,
    read, write,
};
use dray_wire::{
    Checksums, ClientEvent, ClientSession, CompressionChoice, Encoded, ErrorKind, Estimate,
    FRAME_HEADER_BYTES, Finished, Frame, INSTANCE_BYTES, Instance, Kind, Known, PartRequest,
    PlanRequest, Planned, PlannedPart, PriceSet, Query, Report, ServerError, ServerEvent,
    ServerSession, Started, Unfit,
};

/// A stream of random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A random number; small ones are more frequent.
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D);
        (number >> 6) >> (number & 63)
    }

    fn below(&mut self, end: usize) -> usize {
        self.number();
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }

    fn text(&mut self) -> String {
        (0..self.below(12)).map(|_| ['a', '\0', '"', 'é', '語', '🐎'][self.below(6)]).collect()
    }

    /// A valid name of a field or zone, without byte 0.
    fn name(&mut self) -> String {
        self.text().replace('\0', "_")
    }

    fn compression(&mut self) -> CompressionChoice {
        match self.below(4) {
            0 => CompressionChoice::None,
            1 => CompressionChoice::Light,
            2 => CompressionChoice::Lz4,
            _ => CompressionChoice::Zstd(i8::try_from(self.below(30)).unwrap() - 7),
        }
    }

    fn known(&mut self) -> Known {
        [Known::Unknown, Known::Estimate(self.number()), Known::Exact(self.number())][self.below(3)]
    }

    fn schema(&mut self) -> Schema {
        let fields = (0..self.below(4)).map(|_| {
            let item = Field {
                name: self.name(),
                data_type: Type::Utf8,
                nullable: true,
                metadata: vec![],
            };
            let zone = Some(self.name()).filter(|zone| !zone.is_empty());
            let types = [
                Type::Int64,
                Type::Decimal128 { precision: 38, scale: -3 },
                Type::Timestamp { unit: Unit::Nanosecond, zone },
                Type::Struct(vec![item.clone(), item.clone()]),
                Type::List(Box::new(item)),
            ];
            let data_type = types[self.below(types.len())].clone();
            Field {
                name: self.name(),
                data_type,
                nullable: self.below(2) == 0,
                metadata: vec![(self.text(), self.text())],
            }
        });
        Schema { fields: fields.collect() }
    }

    fn query(&mut self) -> Query {
        let limits = if self.below(2) == 0 {
            Limits::default()
        } else {
            let chunk_bytes_max = 4096 + self.number() % (1 << 31);
            let row_bytes_max = chunk_bytes_max + self.number() % (1 << 31);
            Limits {
                chunk_bytes_max,
                decoded_bytes_max: self.number(),
                row_bytes_max: row_bytes_max.max(1 << 20),
            }
        };
        Query {
            parameters: if self.below(2) == 0 { Vec::new() } else { self.parameters() },
            limits,
            chunk_rows: self.number() as u32,
            compression: if self.below(4) == 0 {
                CompressionChoice::Auto
            } else {
                self.compression()
            },
            checksums: [Checksums::Auto, Checksums::On, Checksums::Off][self.below(3)],
            plan_only: self.below(2) == 0,
            estimate: self.below(2) == 0,
            unfit: [Unfit::Error, Unfit::Null, Unfit::Text][self.below(3)],
            ..drive::query(&self.text())
        }
    }

    fn ticket(&mut self) -> Vec<u8> {
        (0..1 + self.below(200)).map(|_| self.number() as u8).collect()
    }

    fn parameters(&mut self) -> Vec<u8> {
        let (schema, batch) = self.numbers(1);
        let chunk = write(
            &schema,
            &[batch],
            Compression::None,
            (self.below(2) == 0).into(),
            ChunkKind::Regular,
        )
        .unwrap()
        .to_bytes(0);
        Query::parameters_of(&schema, &chunk).unwrap()
    }

    fn numbers(&mut self, rows: usize) -> (Schema, Batch) {
        let field =
            Field { name: self.name(), data_type: Type::UInt64, nullable: false, metadata: vec![] };
        let bytes = Bytes::from_iter((0..rows).flat_map(|_| self.number().to_le_bytes()));
        let column = Column { rows, validity: None, values: Values::Fixed { width: 8, bytes } };
        (Schema { fields: vec![field] }, Batch { rows, columns: vec![column] })
    }

    fn error(&mut self) -> ServerError {
        ServerError {
            statement: 0,
            kind: ErrorKind::ALL[self.below(ErrorKind::ALL.len())],
            sqlstate: ["", "42P01"][self.below(2)].into(),
            message: self.text(),
            hint: self.text(),
        }
    }

    fn finished(&mut self) -> Finished {
        Finished {
            execute_ns: self.number(),
            encode_ns: self.number(),
            queue_ns: self.number(),
            socket_ns: self.number(),
            total_ns: self.number(),
            ..Finished::default()
        }
    }

    fn report(&mut self, columns: usize) -> Report {
        let mut encoded = || Encoded { decoded_bytes: self.number(), encode_ns: self.number() };
        let columns = (0..columns).map(|_| encoded()).collect();
        let price = |i| PriceSet { at_ms: i, price_ps: self.number() as u32 };
        Report { columns, prices: (0..3).map(price).collect(), ..Report::default() }
    }
}

/// One connection, and all that each side sent.
#[derive(Default)]
struct Pair {
    client: ClientSession,
    server: ServerSession,
    requests: Vec<u8>,
    answers: Vec<u8>,
}

impl Pair {
    /// The server reads what the client has just written.
    fn heard(&mut self, out: Vec<u8>) -> ClientEvent {
        let (raw, payload) = out.split_first_chunk::<FRAME_HEADER_BYTES>().unwrap();
        let frame = self.server.frame(raw).unwrap();
        assert_eq!(frame.payload_bytes as usize, payload.len());
        let event = self.server.message(frame, payload).unwrap();
        self.requests.extend(out);
        event
    }

    /// The client reads what the server has just written.
    fn told(&mut self, out: Vec<u8>) -> ServerEvent {
        let (frame, payload) = self.frame(&out);
        let event = self.client.message(frame, payload).unwrap();
        self.answers.extend(out);
        event
    }

    fn frame<'a>(&mut self, out: &'a [u8]) -> (Frame, &'a [u8]) {
        let (raw, payload) = out.split_first_chunk::<FRAME_HEADER_BYTES>().unwrap();
        let frame = self.client.frame(raw).unwrap();
        assert_eq!(frame.payload_bytes as usize, payload.len());
        (frame, payload)
    }

    fn greet(&mut self, random: &mut Random) {
        let (token, name) = (random.text(), random.text());
        let mut out = Vec::new();
        let source = ["", "shop", "A-1_z"][random.below(3)];
        self.client.hello(&token, &name, source, &mut out).unwrap();
        let ClientEvent::Hello(hello) = self.heard(out) else { panic!("not a hello") };
        assert_eq!((hello.token.reveal(), &hello.client), (token.as_str(), &name));
        assert_eq!(hello.source, source);
        let mut out = Vec::new();
        let instance = Instance::new([random.number() as u8; INSTANCE_BYTES]);
        let dialect = random.text();
        self.server.welcome(&name, instance, &dialect, &mut out).unwrap();
        let ServerEvent::Welcome(welcome) = self.told(out) else { panic!("not a welcome") };
        assert_eq!((welcome.server, welcome.instance), (name, instance));
        assert_eq!((welcome.source.as_str(), welcome.dialect), (source, dialect));
    }

    fn statement(&mut self, random: &mut Random) {
        let mut query = random.query();
        let limits = query.limits;
        let mut out = Vec::new();
        let heard = if query.plan_only || random.below(2) == 0 {
            self.client.query(query.clone(), &mut out).unwrap();
            let ClientEvent::Query(heard) = self.heard(out) else { panic!("not a query") };
            heard
        } else {
            let ticket = random.ticket();
            // A part has no flags.
            query = Query { estimate: false, unfit: Unfit::Error, ..query };
            let part = PartRequest { query: query.clone(), ticket: ticket.clone() };
            self.client.part(part, &mut out).unwrap();
            let ClientEvent::Part(heard) = self.heard(out) else { panic!("not a part") };
            assert_eq!(heard.ticket, ticket);
            heard.query
        };
        let number = self.client.statement();
        assert_eq!(heard, Query { statement: number, ..query.clone() });
        assert_eq!(heard.parameters().unwrap().is_some(), !heard.parameters.is_empty());
        if random.below(8) == 0 {
            return self.fail(random);
        }
        let started = Started {
            estimate: Estimate { rows: random.known(), bytes: random.known() },
            compression: random.compression(),
            checksums: query.checksums == Checksums::On || random.below(2) == 0,
            plan_ns: random.number(),
            ..drive::started(number, random.schema())
        };
        let mut out = Vec::new();
        self.server.started(&started, &mut out).unwrap();
        let ServerEvent::Started(told) = self.told(out) else { panic!("not the beginning") };
        assert_eq!(told, Started { query: told.query, ..started.clone() });
        let (mut rows, mut chunks) = (0, 0);
        for _ in 0..random.below(6) {
            match random.below(5) {
                0 => self.progress(random, rows),
                1 => {
                    let mut out = Vec::new();
                    self.client.cancel(&mut out).unwrap();
                    assert_eq!(self.heard(out), ClientEvent::Cancel);
                }
                2 => {
                    let (path, mut out) = (random.text(), Vec::new());
                    self.server.path(&path, &mut out).unwrap();
                    let ServerEvent::Path(told) = self.told(out) else { panic!("not a path") };
                    assert_eq!((told.statement, told.path), (number, path));
                }
                _ if heard.plan_only => {}
                _ => {
                    rows += self.chunk(random, chunks, &limits, started.checksums);
                    chunks += 1;
                }
            }
        }
        if random.below(4) == 0 {
            return self.fail(random);
        }
        let finished = Finished { planned_only: heard.plan_only, ..random.finished() };
        let mut out = Vec::new();
        if random.below(2) == 0 {
            let report = random.report(started.schema.fields.len());
            self.server.report(report.clone(), &mut out).unwrap();
            assert_eq!(
                self.told(std::mem::take(&mut out)),
                ServerEvent::Report(Report { statement: number, ..report })
            );
        }
        self.server.finished(finished, &mut out).unwrap();
        let ServerEvent::Finished(told) = self.told(out) else { panic!("not the end") };
        assert_eq!((told.rows, told.chunks), (rows, chunks));
        assert_eq!(
            told,
            Finished { statement: number, rows, chunks, digest: told.digest, ..finished }
        );
        // A cancel after the end of its statement.
        let mut out = Vec::new();
        self.client.cancel(&mut out).unwrap();
        assert!(out.is_empty());
    }

    fn plan(&mut self, random: &mut Random) {
        let request = PlanRequest {
            statement: 0,
            sql: random.text(),
            parameters: if random.below(2) == 0 { Vec::new() } else { random.parameters() },
            parts_max: Some(random.below(65_537) as u32).filter(|count| *count > 0),
            lease_ms: random.number(),
        };
        let mut out = Vec::new();
        self.client.plan(request.clone(), &mut out).unwrap();
        let statement = self.client.statement();
        let ClientEvent::Plan(heard) = self.heard(out) else { panic!("not a plan") };
        assert_eq!(heard, PlanRequest { statement, ..request });
        if random.below(4) == 0 {
            return self.fail(random);
        }
        let parts = (0..1 + random.below(5)).map(|_| PlannedPart {
            rows: Some(random.number()),
            bytes: None,
            ticket: random.ticket(),
        });
        let parts = parts.collect();
        let planned = Planned { reason: random.text(), ..drive::planned(random.schema(), parts) };
        let mut out = Vec::new();
        self.server.planned(planned.clone(), &mut out).unwrap();
        let ServerEvent::Planned(told) = self.told(out) else { panic!("not a plan") };
        assert_eq!(told, Planned { statement, query: told.query, ..planned });
    }

    fn progress(&mut self, random: &mut Random, rows_sent: u64) {
        let rows_read = random.number();
        let mut out = Vec::new();
        self.server.progress(rows_read, &mut out).unwrap();
        let ServerEvent::Progress(progress) = self.told(out) else { panic!("not progress") };
        assert_eq!((progress.rows_read, progress.rows_sent), (rows_read, rows_sent));
    }

    fn chunk(
        &mut self,
        random: &mut Random,
        sequence: u64,
        limits: &Limits,
        checksums: bool,
    ) -> u64 {
        // A chunk of one row may be as large as `row_bytes_max`, whatever the other limits.
        let rows = if *limits == Limits::default() { 1 + random.below(20) } else { 1 };
        let (schema, batch) = random.numbers(rows);
        let checksum = checksums || random.below(2) == 0;
        let chunk = write(
            &schema,
            std::slice::from_ref(&batch),
            Compression::None,
            checksum.into(),
            if rows == 1 { ChunkKind::Jumbo } else { ChunkKind::Regular },
        );
        let mut out = Vec::new();
        let parts = self.server.chunk(chunk.unwrap(), &mut out).unwrap();
        parts.iter().for_each(|part| out.extend_from_slice(part));
        let (frame, payload) = self.frame(&out);
        assert_eq!(frame.kind, Kind::Chunk);
        let header =
            self.client.chunk(frame, payload.first_chunk::<HEADER_BYTES>().unwrap()).unwrap();
        assert_eq!((header.sequence, header.rows as usize), (sequence, rows));
        let (_, found) = read(&Bytes::copy_from_slice(payload), &schema, limits).unwrap();
        assert_eq!(found.columns, batch.columns);
        self.answers.extend(out);
        rows as u64
    }

    fn fail(&mut self, random: &mut Random) {
        let error = random.error();
        let mut out = Vec::new();
        self.server.failed(error.clone(), &mut out).unwrap();
        assert_eq!(
            self.told(out),
            ServerEvent::Error(ServerError { statement: self.client.statement(), ..error })
        );
    }

    fn part(&mut self, random: &mut Random) {
        let mut out = Vec::new();
        if random.below(2) == 0 {
            self.client.goodbye(&mut out);
            assert_eq!(self.heard(out), ClientEvent::Goodbye);
        } else {
            let error = random.error();
            self.server.closed(error.clone(), &mut out).unwrap();
            assert_eq!(self.told(out), ServerEvent::Error(error));
        }
        self.client.check_end(0).unwrap();
        self.server.check_end(0).unwrap();
    }
}

fn connection(seed: u64) -> Pair {
    let mut random = Random::new(seed);
    let mut pair = Pair::default();
    pair.greet(&mut random);
    for _ in 0..random.below(5) {
        match random.below(4) {
            0 => pair.plan(&mut random),
            _ => pair.statement(&mut random),
        }
    }
    pair.part(&mut random);
    pair
}

#[test]
fn each_side_hears_what_the_other_said() {
    for seed in 0..2000 {
        println!("seed {seed}");
        connection(seed);
    }
}

#[test]
fn damage_is_refused_or_read_without_a_panic() {
    let mut random = Random::new(0);
    for seed in 0..400 {
        println!("seed {seed}");
        let pair = connection(seed);
        for _ in 0..20 {
            let _ = drive::requests(&damaged(&pair.requests, &mut random));
            let _ = drive::answers(&damaged(&pair.answers, &mut random));
        }
    }
}

/// Flips, truncates, removes, repeats or replaces some bytes.
fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + random.below(16)).min(bytes.len()))),
            2 => bytes.extend_from_within(at..),
            3 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = random.number() as u8),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
        if bytes.is_empty() {
            bytes.extend((0..random.below(64)).map(|_| random.number() as u8));
            bytes.push(0);
        }
    }
    bytes
}
