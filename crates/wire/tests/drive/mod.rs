//! Drivers for the two sessions, which decode one side of a connection as a client or a server
//! would.

#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Batch, HEADER_BYTES, Limits, Schema, decode};
use dray_page::{ColumnsBuilder, Layout, PAGE_BYTES, PagePool, VerifiedPage};
use dray_wire::{
    Checksums, ClientEvent, ClientSession, CompressionChoice, Estimate, FRAME_HEADER_BYTES,
    Finished, Instance, Kind, PASS_PREFIX, PartRequest, PlanRequest, Planned, PlannedPart,
    ProtocolError, Query, RowLayout, ServerEvent, ServerSession, Started, Unfit,
};

/// The most bytes of columns that are made of a page.
const DECODED_BYTES_MAX: u64 = 1 << 24;

/// Why bytes were refused.
#[derive(Debug)]
pub struct Refused {
    pub name: &'static str,
    /// The error's text.
    pub why: String,
}

impl From<ProtocolError> for Refused {
    fn from(error: ProtocolError) -> Self {
        Self { name: error.name(), why: error.to_string() }
    }
}

impl From<dray_page::Error> for Refused {
    fn from(error: dray_page::Error) -> Self {
        Self { name: error.name(), why: error.to_string() }
    }
}

impl From<dray_format::Error> for Refused {
    fn from(error: dray_format::Error) -> Self {
        Self { name: error.name(), why: error.to_string() }
    }
}

/// A statement of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Query(Query),
    Plan(PlanRequest),
    Part(PartRequest),
}

impl From<Query> for Asked {
    fn from(query: Query) -> Self {
        Self::Query(query)
    }
}

impl Asked {
    fn send(self, session: &mut ClientSession, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match self {
            Self::Query(query) => session.query(query, out),
            Self::Plan(plan) => session.plan(plan, out),
            Self::Part(part) => session.part(part, out),
        }
    }
}

/// A plan of these parts.
pub fn planned(schema: Schema, parts: Vec<PlannedPart>) -> Planned {
    Planned {
        statement: 0,
        query: 0,
        schema: schema.into(),
        reason: String::new(),
        plan: [7; 16],
        deadline_us: 1,
        pass: PASS_PREFIX.into(),
        parts,
    }
}

pub fn query(sql: &str) -> Query {
    Query {
        statement: 0,
        sql: sql.to_owned(),
        parameters: Vec::new(),
        limits: Limits::default(),
        chunk_rows: 0,
        compression: CompressionChoice::Auto,
        checksums: Checksums::Auto,
        plan_only: false,
        layout: RowLayout::Chunks,
        estimate: false,
        unfit: Unfit::Error,
    }
}

pub fn started(statement: u32, schema: Schema) -> Started {
    Started {
        statement,
        query: 0,
        schema: schema.into(),
        estimate: Estimate::default(),
        compression: CompressionChoice::None,
        checksums: false,
        plan_ns: 0,
    }
}

/// A server's welcome, and the start of its answer to the first query of [`answers`].
pub fn begun(schema: Schema) -> Vec<u8> {
    let (mut client, mut server) = (ClientSession::default(), ServerSession::default());
    let (mut said, mut out) = (Vec::new(), Vec::new());
    client.hello("", "test", "", &mut said).unwrap();
    server.welcome("test", Instance::NONE, "", &mut out).unwrap();
    let (raw, payload) = out.split_first_chunk().unwrap();
    client.message(client.frame(raw).unwrap(), payload).unwrap();
    said.clear();
    client.query(query("SELECT 1"), &mut said).unwrap();
    let (raw, payload) = said.split_first_chunk().unwrap();
    server.message(server.frame(raw).unwrap(), payload).unwrap();
    server.started(&started(1, schema), &mut out).unwrap();
    out
}

/// Reads a server's bytes as a client that always has another query. Returns the names of the
/// messages.
pub fn answers(bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    answers_within(Limits::default(), bytes)
}

/// Like [`answers`], for queries with these limits.
pub fn answers_within(limits: Limits, bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    Ok(heard(bytes, std::iter::repeat(Query { limits, ..query("SELECT 1") }))?.names)
}

/// A client's view of a server's answers.
#[derive(Debug, Default)]
pub struct Heard {
    pub names: Vec<&'static str>,
    /// The complete results, each with its schema.
    pub tables: Vec<(Arc<Schema>, Vec<Batch>)>,
}

impl PartialEq for Heard {
    fn eq(&self, other: &Self) -> bool {
        let batches = |batches: &[Batch]| {
            batches.iter().map(|batch| (batch.rows, batch.columns.clone())).collect::<Vec<_>>()
        };
        let tables = |heard: &Self| {
            heard
                .tables
                .iter()
                .map(|(schema, found)| (schema.clone(), batches(found)))
                .collect::<Vec<_>>()
        };
        self.names == other.names && tables(self) == tables(other)
    }
}

/// Reads both sides of a connection: `u32 requests_bytes`, the requests, the answers.
pub fn exchange(bytes: &[u8]) -> Result<Heard, Refused> {
    let (count, rest) = bytes.split_first_chunk().unwrap();
    let (requests, answers) = rest.split_at(u32::from_le_bytes(*count) as usize);
    heard_from(&source(requests), answers, asked(requests)?.1)
}

/// The source of a client's hello; empty without one.
fn source(requests: &[u8]) -> String {
    let mut session = ServerSession::default();
    let hello = requests.split_first_chunk().and_then(|(raw, rest)| {
        let frame = session.frame(raw).ok()?;
        session.message(frame, rest.get(..frame.payload_bytes as usize)?).ok()
    });
    match hello {
        Some(ClientEvent::Hello(hello)) => hello.source,
        _ => String::new(),
    }
}

/// Reads a server's answers as a client that sends these queries one after the other.
pub fn heard(
    bytes: &[u8],
    queries: impl IntoIterator<Item = impl Into<Asked>>,
) -> Result<Heard, Refused> {
    heard_from("", bytes, queries)
}

/// Like [`heard`], as a client of this source.
fn heard_from(
    source: &str,
    mut bytes: &[u8],
    queries: impl IntoIterator<Item = impl Into<Asked>>,
) -> Result<Heard, Refused> {
    let mut queries = queries.into_iter();
    let mut session = ClientSession::default();
    session.hello("", "test", source, &mut Vec::new())?;
    let mut schema = Arc::<Schema>::default();
    let (mut names, mut tables, mut batches, mut limits) =
        (Vec::new(), Vec::new(), Vec::new(), Limits::default());
    while let Some((raw, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        if session.is_ready()
            && let Some(query) = queries.next()
        {
            let asked = query.into();
            limits = match &asked {
                Asked::Query(query) | Asked::Part(PartRequest { query, .. }) => query.limits,
                Asked::Plan(_) => Limits::default(),
            };
            asked.send(&mut session, &mut Vec::new())?;
        }
        let frame = session.frame(raw)?;
        let Some((payload, rest)) = rest.split_at_checked(frame.payload_bytes as usize) else {
            break;
        };
        bytes = rest;
        if frame.kind == Kind::Chunk {
            let (raw, parts) = payload.split_first_chunk::<HEADER_BYTES>().unwrap();
            let header = session.chunk(frame, raw)?;
            let (descriptors, body) = parts.split_at(header.descriptor_bytes_padded() as usize);
            header.verify(&[descriptors, body])?;
            assert!(header.chunk_bytes() <= limits.row_bytes_max);
            let (body, tables) = (Bytes::copy_from_slice(body), session.tables());
            batches.push(decode(&header, &schema, descriptors, &body, &tables, None, None)?);
            names.push("chunk");
            continue;
        }
        if frame.kind == Kind::Page {
            let (raw, mut rest) = payload.split_first_chunk().unwrap();
            let header = session.page(frame, raw)?;
            assert!(header.packed_bytes() <= limits.row_bytes_max.max(PAGE_BYTES as u64));
            let pool = PagePool::new(PAGE_BYTES, PAGE_BYTES);
            let page = pool.receive(&header, |to| {
                let part;
                (part, rest) = rest.split_at(to.len());
                to.copy_from_slice(part);
                Ok::<_, dray_page::Error>(())
            })?;
            let layout = Layout::new((*schema).clone())?;
            let page = VerifiedPage::verify(&layout, page)?;
            let mut columns = ColumnsBuilder::new(layout, DECODED_BYTES_MAX);
            columns.append(page.objects())?;
            batches.push(columns.finish());
            names.push("page");
            continue;
        }
        names.push(match session.message(frame, payload)? {
            ServerEvent::Welcome(_) => "welcome",
            ServerEvent::Started(started) => {
                schema = started.schema;
                batches.clear();
                "started"
            }
            ServerEvent::Progress(_) => "progress",
            ServerEvent::Report(_) => "report",
            ServerEvent::Path(_) => "path",
            ServerEvent::State(_) => "state",
            ServerEvent::Planned(_) => "planned",
            ServerEvent::Finished(_) => {
                tables.push((schema.clone(), std::mem::take(&mut batches)));
                "finished"
            }
            ServerEvent::Error(_) => "error",
        });
    }
    session.check_end(bytes.len())?;
    Ok(Heard { names, tables })
}

/// Reads a client's bytes as a server that ends each statement before the next. Returns the names
/// of the messages.
pub fn requests(bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    Ok(asked(bytes)?.0)
}

/// Like [`requests`], and also returns the statements.
pub fn asked(mut bytes: &[u8]) -> Result<(Vec<&'static str>, Vec<Asked>), Refused> {
    let mut queries: Vec<Asked> = Vec::new();
    let mut session = ServerSession::default();
    let mut out = Vec::new();
    let mut running = false;
    let mut names = Vec::new();
    while let Some((raw, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let begins = [Kind::Query, Kind::Plan, Kind::Part].map(|kind| kind as u8);
        if running && begins.contains(&raw[4]) {
            if let Some(Asked::Plan(_)) = queries.last() {
                let part = PlannedPart { rows: None, bytes: None, ticket: vec![1] };
                session.planned(planned(Schema::default(), vec![part]), &mut out)?;
            } else {
                session.started(&started(session.statement(), Schema::default()), &mut out)?;
                session.finished(Finished::default(), &mut out)?;
            }
            running = false;
        }
        let frame = session.frame(raw)?;
        let Some((payload, rest)) = rest.split_at_checked(frame.payload_bytes as usize) else {
            break;
        };
        bytes = rest;
        names.push(match session.message(frame, payload)? {
            ClientEvent::Hello(_) => {
                session.welcome("test", Instance::NONE, "", &mut out)?;
                "hello"
            }
            ClientEvent::Query(query) => {
                query.parameters()?;
                queries.push(query.into());
                running = true;
                "query"
            }
            ClientEvent::Plan(plan) => {
                Query::read_parameters(&plan.parameters)?;
                queries.push(Asked::Plan(plan));
                running = true;
                "plan"
            }
            ClientEvent::Part(part) => {
                part.query.parameters()?;
                queries.push(Asked::Part(part));
                running = true;
                "part"
            }
            ClientEvent::Cancel | ClientEvent::Ignored => "cancel",
            ClientEvent::Goodbye => "goodbye",
            ClientEvent::Release => "release",
            ClientEvent::Share(_) => "share",
        });
    }
    session.check_end(bytes.len())?;
    Ok((names, queries))
}
