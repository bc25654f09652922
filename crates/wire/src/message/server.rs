//! What a server sends: `spec/protocol.md` section 3.

use std::sync::Arc;

use dray_format::{Cursor, Schema, put_bytes};

use super::{CompressionChoice, Message, boolean, invalid};
use crate::frame::{HANDSHAKE_BYTES_MAX, Kind};
use crate::{
    INSTANCE_BYTES, Instance, ProtocolError, Refusal, Result, SOURCES_SINCE, VERSION, VERSION_MIN,
};

/// Texts for people are truncated to this size, so that an error fits in a frame before welcome.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The size of a digest in a message.
pub(crate) const DIGEST_BYTES: usize = 4;
/// The first version whose welcome has an instance (protocol.md section 4).
const INSTANCE_SINCE: u16 = 3;

/// The server's answer to hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The version of the protocol that the connection uses.
    pub version: u16,
    /// The server's name and version.
    pub server: String,
    /// The server's instance; [`Instance::NONE`] before version 3.
    pub instance: Instance,
    /// The source of the hello.
    pub source: String,
    /// Whose SQL the connection takes, such as `postgresql`; empty for the server's own, and
    /// before version 6.
    pub dialect: String,
}

impl Message for Welcome {
    const KIND: Kind = Kind::Welcome;
    const PAYLOAD_BYTES_MAX: u64 = HANDSHAKE_BYTES_MAX;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.version.to_le_bytes());
        put_bytes(out, self.server.as_bytes())?;
        if self.version >= INSTANCE_SINCE {
            out.extend_from_slice(self.instance.bytes());
        }
        if self.version >= SOURCES_SINCE {
            put_bytes(out, self.source.as_bytes())?;
            put_bytes(out, self.dialect.as_bytes())?;
        }
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.u16("version")?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            let what = format!(
                "the server chose version {version} of the protocol, this client speaks \
                 {VERSION_MIN} to {VERSION}"
            );
            return Err(ProtocolError::new(Refusal::Version, what));
        }
        let server = cursor.string("server")?.to_owned();
        let mut instance = [0; INSTANCE_BYTES];
        if version >= INSTANCE_SINCE {
            instance.copy_from_slice(cursor.take(INSTANCE_BYTES, "instance")?);
        }
        let (mut source, mut dialect) = (String::new(), String::new());
        if version >= SOURCES_SINCE {
            source = cursor.string("source")?.to_owned();
            dialect = cursor.string("dialect")?.to_owned();
        }
        Ok(Self { version, server, instance: Instance::new(instance), source, dialect })
    }
}

/// A number, with how certain it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Known {
    /// Unknown.
    #[default]
    Unknown,
    /// The planner's estimate.
    Estimate(u64),
    /// The exact number.
    Exact(u64),
}

impl Known {
    /// The number, exact or not.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Estimate(value) | Self::Exact(value) => Some(value),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        let (code, value) = match self {
            Self::Unknown => (0, 0),
            Self::Estimate(value) => (1, value),
            Self::Exact(value) => (2, value),
        };
        out.push(code);
        out.extend_from_slice(&u64::to_le_bytes(value));
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        match (cursor.u8("known")?, cursor.u64("estimate")?) {
            (0, _) => Ok(Self::Unknown),
            (1, value) => Ok(Self::Estimate(value)),
            (2, value) => Ok(Self::Exact(value)),
            (code, _) => Err(invalid(format!("an estimate of certainty {code}, expected 0 to 2"))),
        }
    }
}

/// The planner's estimate of a result's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// The number of rows.
    pub rows: Known,
    /// The decoded size in bytes.
    pub bytes: Known,
}

/// The start of a result: the statement has been planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The statement's number.
    pub statement: u32,
    /// CRC-32C of the query's payload as received; 0 if the statement came by another protocol.
    pub query: u32,
    /// The result's columns.
    pub schema: Arc<Schema>,
    /// The expected size of the result.
    pub estimate: Estimate,
    /// The compression in use; auto if the server decides for each column and chunk.
    pub compression: CompressionChoice,
    /// Whether chunks carry checksums.
    pub checksums: bool,
    /// The time that planning took, in nanoseconds.
    pub plan_ns: u64,
}

impl Message for Started {
    const KIND: Kind = Kind::Started;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.query.to_le_bytes());
        let mut schema = Vec::new();
        self.schema.encode(&mut schema)?;
        put_bytes(out, &schema)?;
        self.estimate.rows.write(out);
        self.estimate.bytes.write(out);
        out.extend_from_slice(&self.compression.codes());
        out.push(u8::from(self.checksums));
        out.extend_from_slice(&self.plan_ns.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            statement: cursor.u32("statement")?,
            query: cursor.u32("query")?,
            schema: Arc::new(Schema::decode(cursor.bytes("schema")?)?),
            estimate: Estimate { rows: Known::read(cursor)?, bytes: Known::read(cursor)? },
            compression: CompressionChoice::from_codes(
                cursor.u8("compression")?,
                cursor.i8("level")?,
            )?,
            checksums: boolean(cursor, "checksums")?,
            plan_ns: cursor.u64("plan_ns")?,
        })
    }
}

/// The progress of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The statement's number.
    pub statement: u32,
    /// Rows read by the plan's scans.
    pub rows_read: u64,
    /// Rows sent to the client.
    pub rows_sent: u64,
}

impl Message for Progress {
    const KIND: Kind = Kind::Progress;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.rows_read.to_le_bytes());
        out.extend_from_slice(&self.rows_sent.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            statement: cursor.u32("statement")?,
            rows_read: cursor.u64("rows_read")?,
            rows_sent: cursor.u64("rows_sent")?,
        })
    }
}

/// The server's statistics of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The statement's number.
    pub statement: u32,
    /// The columns, in the order of the schema.
    pub columns: Vec<Encoded>,
    /// The values of λ during the transfer.
    pub prices: Vec<PriceSet>,
}

/// What encoding a column cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Encoded {
    /// The decoded size of what was encoded, in bytes.
    pub decoded_bytes: u64,
    /// The time that encoding took, in nanoseconds, summed over threads.
    pub encode_ns: u64,
}

/// A change of λ, the price of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceSet {
    /// Milliseconds since the start of the transfer.
    pub at_ms: u32,
    /// The new price, in picoseconds a byte.
    pub price_ps: u32,
}

impl Message for Report {
    const KIND: Kind = Kind::Report;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        put_count(out, self.columns.len())?;
        for column in &self.columns {
            out.extend_from_slice(&column.decoded_bytes.to_le_bytes());
            out.extend_from_slice(&column.encode_ns.to_le_bytes());
        }
        put_count(out, self.prices.len())?;
        for price in &self.prices {
            out.extend_from_slice(&price.at_ms.to_le_bytes());
            out.extend_from_slice(&price.price_ps.to_le_bytes());
        }
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let statement = cursor.u32("statement")?;
        // Don't allocate by the count, which the payload may not have.
        let mut columns = Vec::new();
        for _ in 0..cursor.u32("columns")? {
            let decoded_bytes = cursor.u64("decoded_bytes")?;
            columns.push(Encoded { decoded_bytes, encode_ns: cursor.u64("encode_ns")? });
        }
        let mut prices = Vec::new();
        for _ in 0..cursor.u32("prices")? {
            let at_ms = cursor.u32("at_ms")?;
            prices.push(PriceSet { at_ms, price_ps: cursor.u32("price_ps")? });
        }
        Ok(Self { statement, columns, prices })
    }
}

/// How a source is read (protocol.md section 14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePath {
    /// The statement's number.
    pub statement: u32,
    /// Half a sentence for people.
    pub path: String,
}

impl Message for SourcePath {
    const KIND: Kind = Kind::Path;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        put_text(out, &self.path)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let statement = cursor.u32("statement")?;
        Ok(Self { statement, path: cursor.string("path")?.to_owned() })
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Result<()> {
    Ok(put_bytes(out, &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES_MAX)])?)
}

pub(super) fn put_count(out: &mut Vec<u8>, count: usize) -> Result<()> {
    let count = u32::try_from(count)
        .map_err(|_| invalid(format!("a count of {count} is too large for a message")))?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

/// The trailer: the result is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finished {
    /// The statement's number.
    pub statement: u32,
    /// Whether the statement was planned and not run.
    pub planned_only: bool,
    /// The number of rows in all chunks.
    pub rows: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// Time spent executing the plan, in nanoseconds, summed over threads.
    pub execute_ns: u64,
    /// Time spent encoding, in nanoseconds, summed over threads.
    pub encode_ns: u64,
    /// Time that producers waited for space in the queue, in nanoseconds, summed over threads.
    pub queue_ns: u64,
    /// Time that the writer spent writing to the socket, in nanoseconds.
    pub socket_ns: u64,
    /// Wall-clock time from the query's arrival to the trailer, in nanoseconds.
    pub total_ns: u64,
    /// CRC-32C over the statement's messages: the headers of chunks and state frames, the payloads
    /// of all others, without this field.
    pub digest: u32,
}

impl Message for Finished {
    const KIND: Kind = Kind::Finished;

    /// All but the digest, which is the last field.
    fn digested(payload: &[u8]) -> &[u8] {
        &payload[..payload.len().saturating_sub(DIGEST_BYTES)]
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.push(u8::from(self.planned_only));
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.chunks.to_le_bytes());
        for ns in [self.execute_ns, self.encode_ns, self.queue_ns, self.socket_ns, self.total_ns] {
            out.extend_from_slice(&ns.to_le_bytes());
        }
        out.extend_from_slice(&self.digest.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            statement: cursor.u32("statement")?,
            planned_only: boolean(cursor, "planned_only")?,
            rows: cursor.u64("rows")?,
            chunks: cursor.u64("chunks")?,
            execute_ns: cursor.u64("execute_ns")?,
            encode_ns: cursor.u64("encode_ns")?,
            queue_ns: cursor.u64("queue_ns")?,
            socket_ns: cursor.u64("socket_ns")?,
            total_ns: cursor.u64("total_ns")?,
            digest: cursor.u32("digest")?,
        })
    }
}

/// The kind of an error (protocol.md section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "protocol.md section 3 describes each")]
pub enum ErrorKind {
    Protocol = 1,
    Authentication = 2,
    Query = 3,
    Execution = 4,
    Resources = 5,
    Limit = 6,
    Cancelled = 7,
    Shutdown = 8,
    Internal = 9,
    Source = 10,
}

impl ErrorKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Protocol,
        Self::Authentication,
        Self::Query,
        Self::Execution,
        Self::Resources,
        Self::Limit,
        Self::Cancelled,
        Self::Shutdown,
        Self::Internal,
        Self::Source,
    ];
}

/// An error that ends a statement or the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The statement's number; 0 for the connection.
    pub statement: u32,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The SQLSTATE; may be empty.
    pub sqlstate: String,
    /// What happened, in one sentence.
    pub message: String,
    /// What the user can do; may be empty.
    pub hint: String,
}

impl Message for Error {
    const KIND: Kind = Kind::Error;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.push(self.kind as u8);
        put_bytes(out, self.sqlstate.as_bytes())?;
        put_text(out, &self.message)?;
        put_text(out, &self.hint)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let statement = cursor.u32("statement")?;
        let code = cursor.u8("kind")?;
        let Some(kind) = ErrorKind::ALL.into_iter().find(|kind| *kind as u8 == code) else {
            return Err(invalid(format!("error kind {code}, expected 1 to 10")));
        };
        let sqlstate = cursor.string("sqlstate")?.to_owned();
        if !sqlstate.is_empty() && sqlstate.chars().count() != 5 {
            return Err(invalid(format!("sqlstate {sqlstate:?}, expected 5 characters or none")));
        }
        Ok(Self {
            statement,
            kind,
            sqlstate,
            message: cursor.string("message")?.to_owned(),
            hint: cursor.string("hint")?.to_owned(),
        })
    }
}
