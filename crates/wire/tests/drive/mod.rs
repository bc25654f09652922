//! Drivers of the two sessions: they take the bytes of one side of a connection apart, as a client or a server would.

#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{HEADER_BYTES, Limits, Schema, decode};
use dray_wire::{
    Checksums, ClientEvent, ClientSession, CompressionChoice, Estimate, FRAME_HEADER_BYTES, Finished, Kind,
    ProtocolError, Query, ServerEvent, ServerSession, Started,
};

/// Why bytes were refused.
#[derive(Debug)]
pub struct Refused {
    pub name: &'static str,
    /// The sentence.
    pub why: String,
}

impl From<ProtocolError> for Refused {
    fn from(error: ProtocolError) -> Self {
        Self { name: error.name(), why: error.to_string() }
    }
}

impl From<dray_format::Error> for Refused {
    fn from(error: dray_format::Error) -> Self {
        Self { name: error.name(), why: error.to_string() }
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
    }
}

pub fn started(statement: u32, schema: Schema) -> Started {
    Started {
        statement,
        schema: schema.into(),
        estimate: Estimate::default(),
        compression: CompressionChoice::None,
        checksums: false,
        plan_ns: 0,
    }
}

/// Reads what a server sent as a client that always has one more query. The names of the messages.
pub fn answers(bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    answers_within(Limits::default(), bytes)
}

/// As [`answers`], for queries with these limits.
pub fn answers_within(limits: Limits, mut bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    let mut session = ClientSession::default();
    session.hello("", "test", &mut Vec::new())?;
    let mut schema = Arc::<Schema>::default();
    let mut names = Vec::new();
    while let Some((raw, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        if session.is_ready() {
            session.query(Query { limits, ..query("SELECT 1") }, &mut Vec::new())?;
        }
        let frame = session.frame(raw)?;
        let Some((payload, rest)) = rest.split_at_checked(frame.payload_bytes as usize) else { break };
        bytes = rest;
        if frame.kind == Kind::Chunk {
            let (raw, parts) = payload.split_first_chunk::<HEADER_BYTES>().unwrap();
            let header = session.chunk(frame, raw)?;
            let (descriptors, body) = parts.split_at(header.descriptor_bytes_padded() as usize);
            header.verify(&[descriptors, body])?;
            decode(&header, &schema, descriptors, &Bytes::copy_from_slice(body), &session.tables(), None, None)?;
            names.push("chunk");
            continue;
        }
        names.push(match session.message(frame, payload)? {
            ServerEvent::Welcome(_) => "welcome",
            ServerEvent::Started(started) => {
                schema = started.schema;
                "started"
            }
            ServerEvent::Progress(_) => "progress",
            ServerEvent::Report(_) => "report",
            ServerEvent::State(_) => "state",
            ServerEvent::Finished(_) => "finished",
            ServerEvent::Error(_) => "error",
        });
    }
    session.check_end(bytes.len())?;
    Ok(names)
}

/// Reads what a client sent as a server that ends a statement when the next one is due. The names of the messages.
pub fn requests(mut bytes: &[u8]) -> Result<Vec<&'static str>, Refused> {
    let mut session = ServerSession::default();
    let mut out = Vec::new();
    let mut running = false;
    let mut names = Vec::new();
    while let Some((raw, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        if running && raw[4] == Kind::Query as u8 {
            session.started(&started(session.statement(), Schema::default()), &mut out)?;
            session.finished(Finished::default(), &mut out)?;
            running = false;
        }
        let frame = session.frame(raw)?;
        let Some((payload, rest)) = rest.split_at_checked(frame.payload_bytes as usize) else { break };
        bytes = rest;
        names.push(match session.message(frame, payload)? {
            ClientEvent::Hello(_) => {
                session.welcome("test", &mut out)?;
                "hello"
            }
            ClientEvent::Query(query) => {
                query.parameters()?;
                running = true;
                "query"
            }
            ClientEvent::Cancel | ClientEvent::Ignored => "cancel",
            ClientEvent::Goodbye => "goodbye",
        });
    }
    session.check_end(bytes.len())?;
    Ok(names)
}
