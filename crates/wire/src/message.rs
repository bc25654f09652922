//! The messages of `spec/protocol.md` sections 2 and 3.

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Cursor, ErrorKind as FormatErrorKind, Limits, Schema, put_bytes, read};

use crate::frame::{FRAME_HEADER_BYTES, Frame, HANDSHAKE_BYTES_MAX, Kind, MESSAGE_BYTES_MAX};
use crate::{ProtocolError, Refusal, Result, Secret, VERSION};

const MAGIC: [u8; 4] = *b"DRAY";
/// An error's texts are cut to this, so that it fits into a frame even before welcome.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The smallest `chunk_bytes_max` that a client may ask for.
const CHUNK_BYTES_MIN: u64 = 4096;
/// The size of a digest in a message.
pub(crate) const DIGEST_BYTES: usize = 4;

/// A message that knows its fields' order.
pub(crate) trait Message: Sized {
    const KIND: Kind;
    /// The largest payload that the other side accepts.
    const PAYLOAD_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;
    fn read(cursor: &mut Cursor<'_>) -> Result<Self>;

    /// The part of a payload that the statement's digest covers.
    fn covered(payload: &[u8]) -> &[u8] {
        payload
    }

    /// Reads a payload that holds this message and nothing else.
    fn decode(payload: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(payload, FormatErrorKind::Truncated);
        let message = Self::read(&mut cursor).map_err(|error| error.in_message(Self::KIND))?;
        match cursor.remaining() {
            0 => Ok(message),
            left => Err(invalid(format!("{left} bytes are left over")).in_message(Self::KIND)),
        }
    }

    /// Appends the message as a frame. When it can't be one, `out` is left as it was.
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        let frame = self.write(out).and_then(|()| {
            let bytes = out.len() - start - FRAME_HEADER_BYTES;
            match u32::try_from(bytes) {
                Ok(payload_bytes) if u64::from(payload_bytes) <= Self::PAYLOAD_BYTES_MAX => {
                    Ok(Frame { kind: Self::KIND, payload_bytes })
                }
                _ => {
                    let (kind, bytes_max) = (Self::KIND, Self::PAYLOAD_BYTES_MAX);
                    let what = format!(
                        "a {kind:?} message of {bytes} bytes is over the limit of {bytes_max}"
                    );
                    Err(ProtocolError::new(Refusal::Frame, what))
                }
            }
        });
        match frame {
            Ok(frame) => out[start..start + FRAME_HEADER_BYTES].copy_from_slice(&frame.encode()),
            Err(_) => out.truncate(start),
        }
        frame.map(|_| ())
    }
}

/// The error of a field whose value is not defined.
fn invalid(what: impl Into<String>) -> ProtocolError {
    ProtocolError::new(Refusal::Payload, what)
}

/// The client's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The lowest version of the protocol that the client speaks.
    pub version_min: u16,
    /// The highest.
    pub version_max: u16,
    /// The secret that lets it in; empty for none.
    pub token: Secret,
    /// Its name and version, for the server's log.
    pub client: String,
}

impl Message for Hello {
    const KIND: Kind = Kind::Hello;
    const PAYLOAD_BYTES_MAX: u64 = HANDSHAKE_BYTES_MAX;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version_min.to_le_bytes());
        out.extend_from_slice(&self.version_max.to_le_bytes());
        put_bytes(out, self.token.reveal().as_bytes())?;
        put_bytes(out, self.client.as_bytes())?;
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        if cursor.take(4, "magic")? != MAGIC {
            return Err(ProtocolError::new(Refusal::Magic, "the magic is not DRAY"));
        }
        let (version_min, version_max) = (cursor.u16("version_min")?, cursor.u16("version_max")?);
        // Before the other fields, which another version may have changed.
        if !(version_min..=version_max).contains(&VERSION) {
            let what = format!(
                "the client speaks versions {version_min} to {version_max}, this server {VERSION}"
            );
            return Err(ProtocolError::new(Refusal::Version, what));
        }
        Ok(Self {
            version_min,
            version_max,
            token: cursor.string("token")?.into(),
            client: cursor.string("client")?.to_owned(),
        })
    }
}

/// Which compression a client asks for (protocol.md section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionChoice {
    /// The server decides, for each column and as the transfer goes.
    #[default]
    Auto,
    /// None.
    None,
    /// Light encodings.
    Light,
    /// Light encodings, then LZ4.
    Lz4,
    /// Light encodings, then zstd at this level.
    Zstd(i8),
}

impl CompressionChoice {
    fn codes(self) -> [u8; 2] {
        match self {
            Self::Auto => [0, 0],
            Self::None => [1, 0],
            Self::Light => [2, 0],
            Self::Lz4 => [3, 0],
            Self::Zstd(level) => [4, level.to_le_bytes()[0]],
        }
    }

    fn from_codes(code: u8, level: i8) -> Result<Self> {
        if !(-7..=22).contains(&level) {
            return Err(invalid(format!("compression level {level}, expected -7 to 22")));
        }
        match code {
            0 => Ok(Self::Auto),
            1 => Ok(Self::None),
            2 => Ok(Self::Light),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd(level)),
            _ => Err(invalid(format!("unknown compression {code}"))),
        }
    }
}

impl std::fmt::Display for CompressionChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Light => f.write_str("light"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl std::str::FromStr for CompressionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "light" => Ok(Self::Light),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd(3)),
            _ => match text.strip_prefix("zstd:").map(str::parse) {
                Some(Ok(level @ -7..=22)) => Ok(Self::Zstd(level)),
                _ => Err(format!(
                    "compression {text:?}, expected auto, none, light, lz4, zstd or zstd:LEVEL (-7 to 22)"
                )),
            },
        }
    }
}

/// Whether chunks carry checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// Over plain TCP between hosts.
    #[default]
    Auto = 0,
    /// Always.
    On = 1,
    /// Never.
    Off = 2,
}

/// A statement to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The client's number of it, at least 1 and rising.
    pub statement: u32,
    /// Its text.
    pub sql: String,
    /// The values of `$1, $2 …`: a schema and a chunk of one row, or nothing
    /// ([`Query::parameters_of`]).
    pub parameters: Vec<u8>,
    /// The largest chunks that the client accepts.
    pub limits: Limits,
    /// How many rows end a chunk; 0 leaves it to the server.
    pub chunk_rows: u32,
    /// How chunks are compressed.
    pub compression: CompressionChoice,
    /// Whether they carry checksums.
    pub checksums: Checksums,
    /// Plan, but don't run.
    pub plan_only: bool,
}

impl Query {
    /// What the chunk of the parameters may be; the message that carries it is bounded too.
    pub const PARAMETER_LIMITS: Limits = Limits {
        chunk_bytes_max: MESSAGE_BYTES_MAX,
        decoded_bytes_max: 64 << 20,
        row_bytes_max: 64 << 20,
    };

    /// The parameters' bytes: their schema, then a chunk with their one row.
    ///
    /// # Errors
    /// When the schema is too large.
    pub fn parameters_of(schema: &Schema, chunk: &[u8]) -> Result<Vec<u8>> {
        let mut raw = Vec::new();
        schema.encode(&mut raw)?;
        let mut out = Vec::new();
        put_bytes(&mut out, &raw)?;
        out.extend_from_slice(chunk);
        Ok(out)
    }

    /// The parameters' types and the chunk with their one row, if there are any. Both have been
    /// checked.
    ///
    /// # Errors
    /// When they are anything else.
    pub fn parameters(&self) -> Result<Option<(Schema, Bytes)>> {
        if self.parameters.is_empty() {
            return Ok(None);
        }
        let mut cursor = Cursor::new(&self.parameters, FormatErrorKind::Truncated);
        let schema = cursor
            .bytes("parameters")
            .map_err(|error| ProtocolError::from(error).in_message(Self::KIND))?;
        let schema = Schema::decode(schema)?;
        let chunk = Bytes::copy_from_slice(cursor.take(cursor.remaining(), "parameters")?);
        let (header, _) = read(&chunk, &schema, &Self::PARAMETER_LIMITS)?;
        if header.rows != 1 {
            return Err(invalid(format!("{} rows of parameters, expected 1", header.rows)));
        }
        Ok(Some((schema, chunk)))
    }
}

impl Message for Query {
    const KIND: Kind = Kind::Query;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        put_bytes(out, self.sql.as_bytes())?;
        put_bytes(out, &self.parameters)?;
        for limit in
            [self.limits.chunk_bytes_max, self.limits.decoded_bytes_max, self.limits.row_bytes_max]
        {
            out.extend_from_slice(&limit.to_le_bytes());
        }
        out.extend_from_slice(&self.chunk_rows.to_le_bytes());
        out.extend_from_slice(&self.compression.codes());
        out.extend_from_slice(&[self.checksums as u8, u8::from(self.plan_only)]);
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let query = Self {
            statement: cursor.u32("statement")?,
            sql: cursor.string("sql")?.to_owned(),
            parameters: cursor.bytes("parameters")?.to_owned(),
            limits: Limits {
                chunk_bytes_max: cursor.u64("chunk_bytes_max")?,
                decoded_bytes_max: cursor.u64("decoded_bytes_max")?,
                row_bytes_max: cursor.u64("row_bytes_max")?,
            },
            chunk_rows: cursor.u32("chunk_rows")?,
            compression: CompressionChoice::from_codes(
                cursor.u8("compression")?,
                cursor.i8("level")?,
            )?,
            checksums: match cursor.u8("checksums")? {
                0 => Checksums::Auto,
                1 => Checksums::On,
                2 => Checksums::Off,
                other => return Err(invalid(format!("checksums {other}, expected 0 to 2"))),
            },
            plan_only: boolean(cursor, "flags")?,
        };
        check_limits(&query.limits)?;
        Ok(query)
    }
}

/// Checks the limits of a query (protocol.md section 2).
pub(crate) fn check_limits(limits: &Limits) -> Result<()> {
    let Limits { chunk_bytes_max, row_bytes_max, .. } = *limits;
    if chunk_bytes_max < CHUNK_BYTES_MIN
        || row_bytes_max < chunk_bytes_max
        || row_bytes_max > u64::from(u32::MAX)
    {
        return Err(invalid(format!(
            "chunk_bytes_max is {chunk_bytes_max} and row_bytes_max {row_bytes_max}: expected at least {CHUNK_BYTES_MIN}, \
             the second not below the first, and both below 4 GiB"
        )));
    }
    Ok(())
}

/// Stop a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancel {
    /// Which.
    pub statement: u32,
}

impl Message for Cancel {
    const KIND: Kind = Kind::Cancel;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self { statement: cursor.u32("statement")? })
    }
}

/// The server's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The version of the protocol that both will speak.
    pub version: u16,
    /// The server's name and version.
    pub server: String,
}

impl Message for Welcome {
    const KIND: Kind = Kind::Welcome;
    const PAYLOAD_BYTES_MAX: u64 = HANDSHAKE_BYTES_MAX;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.version.to_le_bytes());
        put_bytes(out, self.server.as_bytes())?;
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.u16("version")?;
        if version != VERSION {
            let what = format!(
                "the server chose version {version} of the protocol, this client speaks {VERSION}"
            );
            return Err(ProtocolError::new(Refusal::Version, what));
        }
        Ok(Self { version, server: cursor.string("server")?.to_owned() })
    }
}

/// How sure an estimate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Known {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The planner's guess.
    Estimate(u64),
    /// The number itself.
    Exact(u64),
}

impl Known {
    /// The number, however sure.
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

/// What the planner expects of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Rows.
    pub rows: Known,
    /// Bytes, decoded.
    pub bytes: Known,
}

/// A statement was planned, and its result begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Which.
    pub statement: u32,
    /// CRC-32C of the query's payload as it was received; 0 for a statement that came another way.
    pub query: u32,
    /// The result's columns.
    pub schema: Arc<Schema>,
    /// Its expected size.
    pub estimate: Estimate,
    /// The compression that was chosen; auto if it is chosen for each column, chunk by chunk.
    pub compression: CompressionChoice,
    /// Whether chunks carry checksums.
    pub checksums: bool,
    /// How long planning took, in nanoseconds.
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

/// How far a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Which.
    pub statement: u32,
    /// Rows read by the scans of its plan.
    pub rows_read: u64,
    /// Rows sent.
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

/// How a transfer went, as its server saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Which statement's.
    pub statement: u32,
    /// A column each, in the order of the schema.
    pub columns: Vec<Encoded>,
    /// λ as it was set in the course of the transfer.
    pub prices: Vec<PriceSet>,
}

/// What encoding a column took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Encoded {
    /// What was encoded, in bytes decoded.
    pub decoded_bytes: u64,
    /// How long that took, in nanoseconds, all threads together.
    pub encode_ns: u64,
}

/// The price of a byte was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceSet {
    /// When: milliseconds since the transfer began.
    pub at_ms: u32,
    /// To how much: picoseconds a byte.
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
        // Room is made for what is there, not for what a count says.
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

fn put_count(out: &mut Vec<u8>, count: usize) -> Result<()> {
    let count =
        u32::try_from(count).map_err(|_| invalid(format!("{count} are too many for a message")))?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

/// The trailer: a statement's result is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finished {
    /// Which.
    pub statement: u32,
    /// The statement was planned and not run.
    pub planned_only: bool,
    /// Rows in all chunks.
    pub rows: u64,
    /// How many chunks there were.
    pub chunks: u64,
    /// Time spent executing the plan, summed over threads, in nanoseconds.
    pub execute_ns: u64,
    /// Time spent encoding.
    pub encode_ns: u64,
    /// Time that producers waited for room in the queue.
    pub queue_ns: u64,
    /// Time that the writer waited for the socket.
    pub socket_ns: u64,
    /// From the query's arrival to here, by the clock on the wall.
    pub total_ns: u64,
    /// CRC-32C over the statement's messages: all but this field itself, and of chunks and state
    /// frames their headers.
    pub digest: u32,
}

impl Message for Finished {
    const KIND: Kind = Kind::Finished;

    /// The digest is the last field, and covers what is before it.
    fn covered(payload: &[u8]) -> &[u8] {
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

/// What kind of thing went wrong (protocol.md section 3).
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
}

impl ErrorKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Protocol,
        Self::Authentication,
        Self::Query,
        Self::Execution,
        Self::Resources,
        Self::Limit,
        Self::Cancelled,
        Self::Shutdown,
        Self::Internal,
    ];
}

/// A statement, or the connection, ends here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Which statement; 0 for the connection.
    pub statement: u32,
    /// What kind of thing went wrong.
    pub kind: ErrorKind,
    /// The SQLSTATE, or empty.
    pub sqlstate: String,
    /// One clear sentence.
    pub message: String,
    /// What the user can do, or empty.
    pub hint: String,
}

impl Message for Error {
    const KIND: Kind = Kind::Error;

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.push(self.kind as u8);
        put_bytes(out, self.sqlstate.as_bytes())?;
        for text in [&self.message, &self.hint] {
            put_bytes(out, &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES_MAX)])?;
        }
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let statement = cursor.u32("statement")?;
        let code = cursor.u8("kind")?;
        let Some(kind) = ErrorKind::ALL.into_iter().find(|kind| *kind as u8 == code) else {
            return Err(invalid(format!("error kind {code}, expected 1 to 9")));
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

fn boolean(cursor: &mut Cursor<'_>, field: &'static str) -> Result<bool> {
    match cursor.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(format!("field {field} is {other}, expected 0 or 1"))),
    }
}
