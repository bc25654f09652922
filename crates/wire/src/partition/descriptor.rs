//! Descriptors of parts: `spec/partitions.md` sections 1 and 2.

use dray_format::{Cursor, ErrorKind as FormatErrorKind, Schema, put_bytes};

use super::postgres::{PostgresPart, SETTINGS_MAX};
use super::{
    LAYOUT_VERSION, RandomId, SEAL_BYTES, altered, check_place, check_start, invalid, seal,
};
use crate::message::{check_pass, check_ticket};
use crate::{ProtocolError, Refusal, Result, Secret};

const MAGIC: [u8; 4] = *b"DRYP";
const HEADER_BYTES: usize = 64;
/// Where the header has the size of the whole.
const SIZE_AT: usize = 8;
/// The most bytes of a descriptor.
pub const DESCRIPTOR_BYTES_MAX: usize = 16 << 20;
const URI_BYTES_MAX: usize = 64 << 10;
const FLAG_PASSWORD: u16 = 1;
/// Stands for an unknown number of rows or bytes.
const UNKNOWN: u64 = u64::MAX;
const SOURCE_POSTGRES: u8 = 1;
const SOURCE_DRAY: u8 = 2;

/// One part of a plan: what to read, and where and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDescriptor {
    /// The plan's name.
    pub plan: RandomId,
    /// The part's number, from 0.
    pub index: u32,
    /// The number of parts of the plan.
    pub count: u32,
    /// When the lease ends: microseconds since 1970-01-01 UTC by the server's clock.
    pub deadline_us: u64,
    /// Rows that the server's planner expects.
    pub rows: Option<u64>,
    /// Bytes of Arrow data that it expects.
    pub bytes: Option<u64>,
    /// Whether `uri` has a password.
    pub has_password: bool,
    /// The server's connection string.
    pub uri: Secret,
    /// The user's statement.
    pub sql: String,
    /// The values of `$1, $2 …` as in a query; may be empty.
    pub parameters: Vec<u8>,
    /// The columns of the result.
    pub schema: Schema,
    /// What only servers of its kind need.
    pub source: PartSource,
}

/// The kind of server that a part is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartSource {
    /// PostgreSQL.
    Postgres(PostgresPart),
    /// A Dray server.
    Dray(DrayPart),
}

/// A part of a Dray server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrayPart {
    /// The token of connections that may read the plan's parts and nothing else.
    pub pass: Secret,
    /// What the server gave for the part.
    pub ticket: Vec<u8>,
}

impl PartDescriptor {
    /// The descriptor's bytes.
    ///
    /// # Errors
    /// Limit, if they are too many.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&LAYOUT_VERSION.to_le_bytes());
        let flags = if self.has_password { FLAG_PASSWORD } else { 0 };
        out.extend_from_slice(&flags.to_le_bytes());
        for number in [0, self.index, self.count, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.plan.0);
        let [rows, bytes] = [self.rows, self.bytes].map(|number| number.unwrap_or(UNKNOWN));
        for number in [self.deadline_us, rows, bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(out.len(), HEADER_BYTES);
        out.push(match &self.source {
            PartSource::Postgres(_) => SOURCE_POSTGRES,
            PartSource::Dray(_) => SOURCE_DRAY,
        });
        put_bytes(&mut out, self.uri.reveal().as_bytes())?;
        put_bytes(&mut out, self.sql.as_bytes())?;
        put_bytes(&mut out, &self.parameters)?;
        let mut schema = Vec::new();
        self.schema.encode(&mut schema)?;
        put_bytes(&mut out, &schema)?;
        match &self.source {
            PartSource::Postgres(part) => part.write(&mut out)?,
            PartSource::Dray(DrayPart { pass, ticket }) => {
                check_pass(pass.reveal())?;
                put_bytes(&mut out, pass.reveal().as_bytes())?;
                check_ticket(ticket)?;
                put_bytes(&mut out, ticket)?;
            }
        }
        let size = out.len().saturating_add(SEAL_BYTES);
        if size > DESCRIPTOR_BYTES_MAX || self.uri.reveal().len() > URI_BYTES_MAX {
            return Err(too_large(size));
        }
        let size = u32::try_from(size).map_err(|_| too_large(size))?;
        out[SIZE_AT..SIZE_AT + 4].copy_from_slice(&size.to_le_bytes());
        let seal = seal(&out);
        out.extend_from_slice(&seal);
        Ok(out)
    }

    /// Reads a descriptor.
    ///
    /// # Errors
    /// When the bytes are not a descriptor, of another version, over a limit, or changed.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        check_start(bytes, MAGIC, "descriptor of a part")?;
        if bytes.len() > DESCRIPTOR_BYTES_MAX {
            return Err(too_large(bytes.len()));
        }
        let size = bytes.get(SIZE_AT..).and_then(<[u8]>::first_chunk::<4>);
        let size = size.map_or(0, |size| u32::from_le_bytes(*size) as usize);
        if size != bytes.len() || size < HEADER_BYTES + SEAL_BYTES {
            let what = format!(
                "a descriptor of {} bytes, whose header says {size}: it is cut off or has more \
                 behind it",
                bytes.len()
            );
            return Err(ProtocolError::new(Refusal::Size, what));
        }
        let (body, found) = bytes.split_at(size - SEAL_BYTES);
        if seal(body) != *found {
            return Err(altered("descriptor"));
        }
        let mut cursor = Cursor::new(&body[MAGIC.len() + 2..], FormatErrorKind::Truncated);
        let descriptor = Self::read(&mut cursor).map_err(|error| match error.refusal() {
            Refusal::Format(FormatErrorKind::Truncated) => {
                invalid(format!("a descriptor: {error}"))
            }
            _ => error,
        })?;
        match cursor.remaining() {
            0 => Ok(descriptor),
            left => Err(invalid(format!("a descriptor: {left} bytes are left over"))),
        }
    }

    /// Reads everything between version and seal.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let flags = cursor.u16("flags")?;
        if flags & !FLAG_PASSWORD != 0 {
            return Err(invalid(format!("flags {flags:#06x} of a descriptor, expected 0 or 1")));
        }
        cursor.u32("size")?;
        let (index, count) = (cursor.u32("index")?, cursor.u32("count")?);
        check_place(index, count)?;
        if cursor.u32("reserved")? != 0 {
            return Err(invalid("a reserved field of a descriptor is not 0"));
        }
        let known = |number: u64| (number != UNKNOWN).then_some(number);
        let plan = RandomId::read(cursor, "plan")?;
        let deadline_us = cursor.u64("deadline")?;
        let (rows, bytes) = (known(cursor.u64("rows")?), known(cursor.u64("bytes")?));
        let source = cursor.u8("source")?;
        if !matches!(source, SOURCE_POSTGRES | SOURCE_DRAY) {
            return Err(invalid(format!("source {source} of a descriptor, expected 1 or 2")));
        }
        let uri = cursor.string("uri")?;
        if uri.len() > URI_BYTES_MAX {
            return Err(too_large(uri.len()));
        }
        let sql = cursor.string("sql")?.to_owned();
        let parameters = cursor.bytes("parameters")?.to_vec();
        let schema = Schema::decode(cursor.bytes("schema")?)?;
        let source = match source {
            SOURCE_POSTGRES => PartSource::Postgres(PostgresPart::read(cursor)?),
            _ => PartSource::Dray(DrayPart::read(cursor)?),
        };
        Ok(Self {
            plan,
            index,
            count,
            deadline_us,
            rows,
            bytes,
            has_password: flags & FLAG_PASSWORD != 0,
            uri: uri.into(),
            sql,
            parameters,
            schema,
            source,
        })
    }
}

impl DrayPart {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let pass = cursor.string("pass")?;
        check_pass(pass)?;
        let ticket = cursor.bytes("ticket")?;
        check_ticket(ticket)?;
        Ok(Self { pass: pass.into(), ticket: ticket.to_vec() })
    }
}

fn too_large(size: usize) -> ProtocolError {
    let what = format!(
        "a descriptor of {size} bytes, expected at most {DESCRIPTOR_BYTES_MAX}, a uri of \
         {URI_BYTES_MAX} and {SETTINGS_MAX} settings"
    );
    ProtocolError::new(Refusal::Format(FormatErrorKind::Limit), what)
}
