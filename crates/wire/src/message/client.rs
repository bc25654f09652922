//! What a client sends: `spec/protocol.md` section 2.

use bytes::Bytes;
use dray_format::{Cursor, ErrorKind as FormatErrorKind, Limits, Schema, put_bytes, read};

use super::{Message, invalid};
use crate::frame::{HANDSHAKE_BYTES_MAX, Kind, MESSAGE_BYTES_MAX};
use crate::source::is_source_name;
use crate::{ProtocolError, Refusal, Result, SOURCES_SINCE, Secret, VERSION, VERSION_MIN};

const MAGIC: [u8; 4] = *b"DRAY";
/// The lowest `chunk_bytes_max` that a client may set.
const CHUNK_BYTES_MIN: u64 = 4096;
/// Where the flags of a query have its layout.
const LAYOUT_SHIFT: u32 = 1;
const LAYOUT_MASK: u8 = 0b11;
/// Where they say that somebody watches.
const ESTIMATE_SHIFT: u32 = 3;
/// Where they say what becomes of unfit values.
const UNFIT_SHIFT: u32 = 4;

/// The client's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The lowest version of the protocol that the client speaks.
    pub version_min: u16,
    /// The highest version of the protocol that the client speaks.
    pub version_max: u16,
    /// The server's token; may be empty.
    pub token: Secret,
    /// The client's name and version, for the server's log.
    pub client: String,
    /// The source that gets the statements; empty for the server's own tables. Sent only if
    /// `version_min` is at least [`SOURCES_SINCE`]: older servers would not look at it.
    pub source: String,
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
        match self.version_min >= SOURCES_SINCE {
            true => {
                check_source(&self.source)?;
                Ok(put_bytes(out, self.source.as_bytes())?)
            }
            false if self.source.is_empty() => Ok(()),
            false => Err(invalid("a source in a hello of a version without sources")),
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        if cursor.take(4, "magic")? != MAGIC {
            return Err(ProtocolError::new(Refusal::Magic, "the magic is not DRAY"));
        }
        let (version_min, version_max) = (cursor.u16("version_min")?, cursor.u16("version_max")?);
        // Check this first: other versions may have other fields.
        if version_min.max(VERSION_MIN) > version_max.min(VERSION) {
            let what = format!(
                "the client speaks versions {version_min} to {version_max}, this server \
                 {VERSION_MIN} to {VERSION}"
            );
            return Err(ProtocolError::new(Refusal::Version, what));
        }
        let token = cursor.string("token")?.into();
        let client = cursor.string("client")?.to_owned();
        let mut source = String::new();
        if version_min >= SOURCES_SINCE {
            source = cursor.string("source")?.to_owned();
            check_source(&source)?;
        }
        Ok(Self { version_min, version_max, token, client, source })
    }
}

/// Checks the name of a source, which may be empty.
fn check_source(name: &str) -> Result<()> {
    match name.is_empty() || is_source_name(name) {
        true => Ok(()),
        false => Err(invalid("a source whose name has not the form of one")),
    }
}

/// The compression that a client requests (protocol.md section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionChoice {
    /// The server decides, for each column and chunk.
    #[default]
    Auto,
    /// No compression.
    None,
    /// Light encodings.
    Light,
    /// Light encodings, then LZ4.
    Lz4,
    /// Light encodings, then zstd at this level.
    Zstd(i8),
}

impl CompressionChoice {
    pub(super) fn codes(self) -> [u8; 2] {
        match self {
            Self::Auto => [0, 0],
            Self::None => [1, 0],
            Self::Light => [2, 0],
            Self::Lz4 => [3, 0],
            Self::Zstd(level) => [4, level.to_le_bytes()[0]],
        }
    }

    pub(super) fn from_codes(code: u8, level: i8) -> Result<Self> {
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
                    "compression {text:?}, expected auto, none, light, lz4, zstd or zstd:LEVEL (-7 \
                     to 22)"
                )),
            },
        }
    }
}

/// When chunks carry checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// Over TCP without TLS between hosts.
    #[default]
    Auto = 0,
    /// Always.
    On = 1,
    /// Never.
    Off = 2,
}

/// How the rows of a result travel (protocol.md section 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowLayout {
    /// Column by column, in chunks.
    #[default]
    Chunks = 0,
    /// Object by object, in pages.
    Pages = 1,
    /// Either, as the server chooses.
    Either = 2,
}

impl RowLayout {
    pub(crate) fn allows_chunks(self) -> bool {
        self != Self::Pages
    }

    pub(crate) fn allows_pages(self) -> bool {
        self != Self::Chunks
    }
}

impl std::fmt::Display for RowLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Chunks => "columns",
            Self::Pages => "pages",
            Self::Either => "auto",
        })
    }
}

impl std::str::FromStr for RowLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "columns" => Ok(Self::Chunks),
            "pages" => Ok(Self::Pages),
            "auto" => Ok(Self::Either),
            _ => Err(format!("layout {text:?}, expected auto, pages or columns")),
        }
    }
}

/// What becomes of values that a column's type can't hold: the option nonfinite (protocol.md
/// section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unfit {
    /// An error.
    #[default]
    Error = 0,
    /// NULL.
    Null = 1,
    /// Text, as all columns of such types.
    Text = 2,
}

/// A statement to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The statement's number. The client numbers its statements from 1 in ascending order.
    pub statement: u32,
    /// The statement's text.
    pub sql: String,
    /// The values of `$1, $2 …`: a schema and a chunk of one row ([`Query::parameters_of`]), or
    /// empty.
    pub parameters: Vec<u8>,
    /// Limits on the chunks that the client accepts.
    pub limits: Limits,
    /// Rows of a chunk; 0 leaves the number to the server.
    pub chunk_rows: u32,
    /// The requested compression.
    pub compression: CompressionChoice,
    /// When chunks carry checksums.
    pub checksums: Checksums,
    /// Whether to plan the statement without running it.
    pub plan_only: bool,
    /// How the rows travel.
    pub layout: RowLayout,
    /// Whether an estimate is worth a question to the source, since somebody watches the progress.
    pub estimate: bool,
    /// What becomes of the source's values that Arrow can't hold.
    pub unfit: Unfit,
}

impl Query {
    /// Limits on the chunk of parameters, in addition to the limit on the message.
    pub const PARAMETER_LIMITS: Limits = Limits {
        chunk_bytes_max: MESSAGE_BYTES_MAX,
        decoded_bytes_max: 64 << 20,
        row_bytes_max: 64 << 20,
    };

    pub(super) fn flags(&self) -> u8 {
        u8::from(self.plan_only)
            | (self.layout as u8) << LAYOUT_SHIFT
            | u8::from(self.estimate) << ESTIMATE_SHIFT
            | (self.unfit as u8) << UNFIT_SHIFT
    }

    /// Encodes parameters: their schema, then a chunk with one row.
    ///
    /// # Errors
    /// If the schema is too large.
    pub fn parameters_of(schema: &Schema, chunk: &[u8]) -> Result<Vec<u8>> {
        let mut raw = Vec::new();
        schema.encode(&mut raw)?;
        let mut out = Vec::new();
        put_bytes(&mut out, &raw)?;
        out.extend_from_slice(chunk);
        Ok(out)
    }

    /// The parameters' schema and the chunk with their row, both checked; None without parameters.
    ///
    /// # Errors
    /// If the bytes are not a valid schema and a valid chunk of one row.
    pub fn parameters(&self) -> Result<Option<(Schema, Bytes)>> {
        Self::read_parameters(&self.parameters)
    }

    /// Like [`Query::parameters`], of the field's bytes alone.
    ///
    /// # Errors
    /// Those of [`Query::parameters`].
    pub fn read_parameters(bytes: &[u8]) -> Result<Option<(Schema, Bytes)>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut cursor = Cursor::new(bytes, FormatErrorKind::Truncated);
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
        out.extend_from_slice(&[self.checksums as u8, self.flags()]);
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut query = Self {
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
            plan_only: false,
            layout: RowLayout::Chunks,
            estimate: false,
            unfit: Unfit::Error,
        };
        let flags = cursor.u8("flags")?;
        query.plan_only = flags & 1 == 1;
        query.layout = match (flags >> LAYOUT_SHIFT) & LAYOUT_MASK {
            0 => RowLayout::Chunks,
            1 => RowLayout::Pages,
            2 => RowLayout::Either,
            _ => return Err(invalid(format!("flags {flags}, whose layout is 3"))),
        };
        query.estimate = (flags >> ESTIMATE_SHIFT) & 1 == 1;
        query.unfit = match flags >> UNFIT_SHIFT {
            0 => Unfit::Error,
            1 => Unfit::Null,
            2 => Unfit::Text,
            _ => return Err(invalid(format!("flags {flags}, expected less than 48"))),
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
            "chunk_bytes_max is {chunk_bytes_max} and row_bytes_max {row_bytes_max}: expected at \
             least {CHUNK_BYTES_MIN}, the second not below the first, and both below 4 GiB"
        )));
    }
    Ok(())
}

/// A request to stop a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancel {
    /// The statement's number.
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
