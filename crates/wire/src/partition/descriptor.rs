//! Descriptors of parts: `spec/partitions.md` sections 1 and 2.

use dray_format::{Cursor, ErrorKind as FormatErrorKind, Schema, put_bytes};

use super::{
    LAYOUT_VERSION, RandomId, SEAL_BYTES, altered, check_place, check_start, invalid, seal,
};
use crate::{ProtocolError, Refusal, Result, Secret};

const MAGIC: [u8; 4] = *b"DRYP";
const HEADER_BYTES: usize = 64;
/// Where the header has the size of the whole.
const SIZE_AT: usize = 8;
/// The most bytes of a descriptor.
pub const DESCRIPTOR_BYTES_MAX: usize = 16 << 20;
const URI_BYTES_MAX: usize = 64 << 10;
const SETTINGS_MAX: u32 = 256;
const FLAG_PASSWORD: u16 = 1;
/// Stands for an unknown number of rows or bytes.
const UNKNOWN: u64 = u64::MAX;
/// Stands for the end of the table.
const END: u32 = u32::MAX;
const SOURCE_POSTGRES: u8 = 1;

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
    /// What `numeric` without a declared precision becomes.
    pub numeric: String,
    /// What becomes of values that Arrow can't hold.
    pub nonfinite: String,
    /// The planner's snapshot.
    pub snapshot: HeldSnapshot,
    /// The blocks of the statement's only table; None for all of the statement.
    pub range: Option<BlockRange>,
}

/// A snapshot that a planner holds, and what tells whether a reader sees the same under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSnapshot {
    /// The run of the server.
    pub server: String,
    /// Settings that decide what the statement means, with their values.
    pub settings: Vec<(String, String)>,
    /// The name of the exported snapshot.
    pub name: String,
    /// SHA-256 of the snapshot's text.
    pub digest: [u8; SEAL_BYTES],
    /// Oids of what the statement reads.
    pub relations: String,
}

/// Some blocks of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange {
    /// The first block.
    pub from: u32,
    /// The block after the last; None for the end of the table.
    pub to: Option<u32>,
    /// Whether tables that inherit from the table are left out.
    pub only: bool,
}

impl PartDescriptor {
    /// The descriptor's bytes.
    ///
    /// # Errors
    /// Limit, if they are too many.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let Self { snapshot, .. } = self;
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
        out.push(SOURCE_POSTGRES);
        put_bytes(&mut out, self.uri.reveal().as_bytes())?;
        put_bytes(&mut out, self.sql.as_bytes())?;
        put_bytes(&mut out, &self.parameters)?;
        let mut schema = Vec::new();
        self.schema.encode(&mut schema)?;
        put_bytes(&mut out, &schema)?;
        for text in [&self.numeric, &self.nonfinite, &snapshot.server] {
            put_bytes(&mut out, text.as_bytes())?;
        }
        let settings = u32::try_from(snapshot.settings.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&settings.to_le_bytes());
        for (name, value) in &snapshot.settings {
            put_bytes(&mut out, name.as_bytes())?;
            put_bytes(&mut out, value.as_bytes())?;
        }
        put_bytes(&mut out, snapshot.name.as_bytes())?;
        out.extend_from_slice(&snapshot.digest);
        put_bytes(&mut out, snapshot.relations.as_bytes())?;
        match &self.range {
            None => out.push(0),
            Some(BlockRange { from, to, only }) => {
                out.push(1);
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&to.unwrap_or(END).to_le_bytes());
                out.push(u8::from(*only));
            }
        }
        let size = out.len().saturating_add(SEAL_BYTES);
        if size > DESCRIPTOR_BYTES_MAX
            || settings > SETTINGS_MAX
            || self.uri.reveal().len() > URI_BYTES_MAX
        {
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
        match cursor.u8("source")? {
            SOURCE_POSTGRES => {}
            other => return Err(invalid(format!("source {other} of a descriptor, expected 1"))),
        }
        let uri = cursor.string("uri")?;
        if uri.len() > URI_BYTES_MAX {
            return Err(too_large(uri.len()));
        }
        let sql = cursor.string("sql")?.to_owned();
        let parameters = cursor.bytes("parameters")?.to_vec();
        let schema = Schema::decode(cursor.bytes("schema")?)?;
        let numeric = cursor.string("numeric")?.to_owned();
        let nonfinite = cursor.string("nonfinite")?.to_owned();
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
            numeric,
            nonfinite,
            snapshot: HeldSnapshot::read(cursor)?,
            range: BlockRange::read(cursor)?,
        })
    }
}

impl HeldSnapshot {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let server = cursor.string("server")?.to_owned();
        let count = cursor.u32("settings")?;
        if count > SETTINGS_MAX {
            let what = format!("{count} settings in a descriptor, expected at most {SETTINGS_MAX}");
            return Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Limit), what));
        }
        let mut settings = Vec::new();
        for _ in 0..count {
            let name = cursor.string("name of a setting")?.to_owned();
            settings.push((name, cursor.string("value of a setting")?.to_owned()));
        }
        let name = cursor.string("snapshot")?.to_owned();
        let mut digest = [0; SEAL_BYTES];
        digest.copy_from_slice(cursor.take(SEAL_BYTES, "snapshot_digest")?);
        let relations = cursor.string("relations")?.to_owned();
        Ok(Self { server, settings, name, digest, relations })
    }
}

impl BlockRange {
    fn read(cursor: &mut Cursor<'_>) -> Result<Option<Self>> {
        match cursor.u8("range")? {
            0 => return Ok(None),
            1 => {}
            other => {
                return Err(invalid(format!("range {other} of a descriptor, expected 0 or 1")));
            }
        }
        let (from, to) = (cursor.u32("from")?, cursor.u32("to")?);
        if from >= to {
            return Err(invalid(format!("blocks {from} to {to}, expected some")));
        }
        let only = match cursor.u8("only")? {
            0 => false,
            1 => true,
            other => return Err(invalid(format!("only {other}, expected 0 or 1"))),
        };
        Ok(Some(Self { from, to: (to != END).then_some(to), only }))
    }
}

fn too_large(size: usize) -> ProtocolError {
    let what = format!(
        "a descriptor of {size} bytes, expected at most {DESCRIPTOR_BYTES_MAX}, a uri of \
         {URI_BYTES_MAX} and {SETTINGS_MAX} settings"
    );
    ProtocolError::new(Refusal::Format(FormatErrorKind::Limit), what)
}
