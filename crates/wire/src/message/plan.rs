//! Plans of parts: `spec/protocol.md` section 12.

use std::sync::Arc;

use dray_format::{Cursor, ErrorKind as FormatErrorKind, Schema, crc32c, put_bytes};

use super::{DIGEST_BYTES, Message, Query, invalid, put_count};
use crate::frame::Kind;
use crate::{ProtocolError, Refusal, Result, Secret};

/// The most parts of a plan.
pub const PARTS_MAX: u32 = 65_536;
/// The most bytes of a ticket, and of a pass.
pub const TICKET_BYTES_MAX: usize = 4096;
/// What a pass begins with.
pub const PASS_PREFIX: &str = "pass-";
/// Stands for an unknown number of rows or bytes.
const UNKNOWN: u64 = u64::MAX;

/// A statement to be divided into parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The statement's number.
    pub statement: u32,
    /// The statement's text.
    pub sql: String,
    /// The values of `$1, $2 …`, as in a query.
    pub parameters: Vec<u8>,
    /// The most parts; None leaves the number to the server.
    pub parts_max: Option<u32>,
    /// How long parts can be read, in milliseconds.
    pub lease_ms: u64,
}

impl Message for PlanRequest {
    const KIND: Kind = Kind::Plan;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        put_bytes(out, self.sql.as_bytes())?;
        put_bytes(out, &self.parameters)?;
        out.extend_from_slice(&self.parts_max.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.lease_ms.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let statement = cursor.u32("statement")?;
        let sql = cursor.string("sql")?.to_owned();
        let parameters = cursor.bytes("parameters")?.to_owned();
        let (parts_max, lease_ms) = (cursor.u32("parts_max")?, cursor.u64("lease_ms")?);
        if parts_max > PARTS_MAX {
            return Err(invalid(format!("{parts_max} parts, expected at most {PARTS_MAX}")));
        }
        let parts_max = (parts_max > 0).then_some(parts_max);
        Ok(Self { statement, sql, parameters, parts_max, lease_ms })
    }
}

/// The earlier plan whose snapshot the connection's next plan is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRequest {
    /// That of the earlier plan.
    pub pass: Secret,
}

impl Message for ShareRequest {
    const KIND: Kind = Kind::Share;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        check_pass(self.pass.reveal())?;
        Ok(put_bytes(out, self.pass.reveal().as_bytes())?)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let pass = cursor.string("pass")?;
        check_pass(pass)?;
        Ok(Self { pass: pass.into() })
    }
}

/// A part to be read: a query, and the ticket for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRequest {
    /// The statement as it was planned, and how its result is to be sent.
    pub query: Query,
    /// What the server gave for the part.
    pub ticket: Vec<u8>,
}

impl Message for PartRequest {
    const KIND: Kind = Kind::Part;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        self.query.write(out)?;
        check_ticket(&self.ticket)?;
        Ok(put_bytes(out, &self.ticket)?)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let query = Query::read(cursor)?;
        if query.flags() != 0 {
            return Err(invalid("a part with flags"));
        }
        let ticket = cursor.bytes("ticket")?;
        check_ticket(ticket)?;
        Ok(Self { query, ticket: ticket.to_owned() })
    }
}

/// A statement as parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The statement's number.
    pub statement: u32,
    /// CRC-32C of the request's payload as received. The session fills it in.
    pub query: u32,
    /// The columns of each part.
    pub schema: Arc<Schema>,
    /// Why there is one part; empty if there are several.
    pub reason: String,
    /// The plan's name: random bytes.
    pub plan: [u8; 16],
    /// When the lease ends: microseconds since 1970-01-01 UTC by the server's clock.
    pub deadline_us: u64,
    /// The token of connections that may read the plan's parts and nothing else.
    pub pass: Secret,
    /// The parts.
    pub parts: Vec<PlannedPart>,
}

/// One part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPart {
    /// Rows that the server expects.
    pub rows: Option<u64>,
    /// Bytes of Arrow data that it expects.
    pub bytes: Option<u64>,
    /// What lets the part be read.
    pub ticket: Vec<u8>,
}

impl Message for Planned {
    const KIND: Kind = Kind::Planned;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.query.to_le_bytes());
        let mut schema = Vec::new();
        self.schema.encode(&mut schema)?;
        put_bytes(out, &schema)?;
        put_bytes(out, self.reason.as_bytes())?;
        out.extend_from_slice(&self.plan);
        out.extend_from_slice(&self.deadline_us.to_le_bytes());
        check_pass(self.pass.reveal())?;
        put_bytes(out, self.pass.reveal().as_bytes())?;
        check_count(self.parts.len())?;
        put_count(out, self.parts.len())?;
        for part in &self.parts {
            for number in [part.rows, part.bytes] {
                out.extend_from_slice(&number.unwrap_or(UNKNOWN).to_le_bytes());
            }
            check_ticket(&part.ticket)?;
            put_bytes(out, &part.ticket)?;
        }
        let digest = crc32c(0, &out[start..]);
        out.extend_from_slice(&digest.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let known = |number: u64| (number != UNKNOWN).then_some(number);
        let (statement, query) = (cursor.u32("statement")?, cursor.u32("query")?);
        let schema = Arc::new(Schema::decode(cursor.bytes("schema")?)?);
        let reason = cursor.string("reason")?.to_owned();
        let mut plan = [0; 16];
        plan.copy_from_slice(cursor.take(16, "plan")?);
        let deadline_us = cursor.u64("deadline")?;
        let pass = cursor.string("pass")?;
        check_pass(pass)?;
        let count = cursor.u32("parts")?;
        check_count(count as usize)?;
        // Don't allocate by the count, which the payload may not have.
        let mut parts = Vec::new();
        for _ in 0..count {
            let (rows, bytes) = (known(cursor.u64("rows")?), known(cursor.u64("bytes")?));
            let ticket = cursor.bytes("ticket")?;
            check_ticket(ticket)?;
            parts.push(PlannedPart { rows, bytes, ticket: ticket.to_owned() });
        }
        cursor.u32("digest")?;
        Ok(Self { statement, query, schema, reason, plan, deadline_us, pass: pass.into(), parts })
    }

    /// All but the digest, which is the last field.
    fn digested(payload: &[u8]) -> &[u8] {
        &payload[..payload.len().saturating_sub(DIGEST_BYTES)]
    }
}

impl Planned {
    /// Checks the digest of a payload that was decoded.
    pub(crate) fn check_digest(payload: &[u8]) -> Result<()> {
        let found = payload.last_chunk().map_or(0, |digest| u32::from_le_bytes(*digest));
        match crc32c(0, Self::digested(payload)) == found {
            true => Ok(()),
            false => Err(ProtocolError::new(
                Refusal::Finished,
                "the plan was damaged on its way: its digest differs; plan again",
            )),
        }
    }
}

fn check_count(count: usize) -> Result<()> {
    match (1..=PARTS_MAX as usize).contains(&count) {
        true => Ok(()),
        false => Err(invalid(format!("a plan of {count} parts, expected 1 to {PARTS_MAX}"))),
    }
}

/// Checks the size of a ticket.
pub(crate) fn check_ticket(ticket: &[u8]) -> Result<()> {
    match ticket.len() {
        1..=TICKET_BYTES_MAX => Ok(()),
        bytes => {
            let what = format!("a ticket of {bytes} bytes, expected 1 to {TICKET_BYTES_MAX}");
            Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Limit), what))
        }
    }
}

/// Checks that a pass has the form of one.
pub(crate) fn check_pass(pass: &str) -> Result<()> {
    let rest = pass.strip_prefix(PASS_PREFIX).filter(|_| pass.len() <= TICKET_BYTES_MAX);
    match rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        true => Ok(()),
        // It is a secret, so the message does not show it.
        false => Err(invalid("a pass that is none")),
    }
}
