//! The header and the schema: `spec/page-file.md` section 2.

use dray_format::{SCHEMA_BYTES_MAX, Schema};
use dray_page::{PAGE_BYTES_MAX, PAGE_BYTES_MIN};
use ring::digest::{Context, SHA256};

use crate::error::{Error, ErrorKind, Result, refuse};

const MAGIC: [u8; 4] = *b"DRYF";
const VERSION: u16 = 0;
pub(crate) const HEADER_BYTES: usize = 64;
/// Pages begin at multiples of this, and their sizes are multiples of it.
pub(crate) const UNIT_BYTES: usize = PAGE_BYTES_MIN;
pub(crate) const DIGEST_BYTES: usize = 32;

/// What a file begins with.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) page_bytes: usize,
    pub(crate) schema_digest: [u8; DIGEST_BYTES],
    pub(crate) schema: Schema,
    pub(crate) schema_bytes: usize,
    /// Where the first page begins.
    pub(crate) pages_at: usize,
}

/// The SHA-256 of a schema's bytes, by which programs that were made for one schema know it.
///
/// # Errors
/// When the schema breaks a rule of types.md.
pub fn schema_digest(schema: &Schema) -> Result<[u8; 32]> {
    Ok(sha256([encoded(schema)?.as_slice()]))
}

fn encoded(schema: &Schema) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoded = schema.encode(&mut bytes);
    encoded.map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))?;
    Ok(bytes)
}

/// The SHA-256 of these bytes, one after the other.
pub(crate) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; DIGEST_BYTES] {
    let mut context = Context::new(&SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

impl Header {
    /// Reads what a file begins with.
    pub(crate) fn decode(file: &[u8]) -> Result<Self> {
        let Some((header, rest)) = file.split_first_chunk::<HEADER_BYTES>() else {
            match file.starts_with(&MAGIC) {
                true => refuse!(Cut, "it ends within its header, after {} bytes", file.len()),
                false => refuse!(Magic, "it is not a page file"),
            }
        };
        let [m0, m1, m2, m3, v0, v1, f0, f1, ..] = *header;
        if [m0, m1, m2, m3] != MAGIC {
            refuse!(Magic, "it is not a page file");
        }
        let version = u16::from_le_bytes([v0, v1]);
        if version != VERSION {
            refuse!(Version, "it has layout version {version}, this reader knows {VERSION}");
        }
        let flags = u16::from_le_bytes([f0, f1]);
        if flags != 0 {
            refuse!(Flags, "unknown flags {flags:#06x}");
        }
        let page_bytes = u32_at(header, 8) as usize;
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes)
        {
            refuse!(Size, "no page has {page_bytes} bytes");
        }
        let schema_bytes = u32_at(header, 12) as usize;
        if schema_bytes > SCHEMA_BYTES_MAX {
            refuse!(Size, "a schema of {schema_bytes} bytes, the most are {SCHEMA_BYTES_MAX}");
        }
        if header[16..32].iter().any(|byte| *byte != 0) {
            refuse!(Reserved, "a reserved byte of the header is not 0");
        }
        let pages_at = (HEADER_BYTES + schema_bytes).next_multiple_of(UNIT_BYTES);
        let (Some(schema), true) = (rest.get(..schema_bytes), file.len() >= pages_at) else {
            refuse!(Cut, "it ends within its schema, after {} bytes", file.len());
        };
        let mut schema_digest = [0; DIGEST_BYTES];
        schema_digest.copy_from_slice(&header[32..]);
        if sha256([schema]) != schema_digest {
            refuse!(Digest, "its schema was damaged");
        }
        let padding = file.get(HEADER_BYTES + schema_bytes..pages_at).unwrap_or_default();
        if padding.iter().any(|byte| *byte != 0) {
            refuse!(Padding, "a byte between the schema and the pages is not 0");
        }
        let schema = Schema::decode(schema)
            .map_err(|error| Error::new(ErrorKind::Schema, format!("its schema: {error}")))?;
        Ok(Self { page_bytes, schema_digest, schema, schema_bytes, pages_at })
    }

    /// The bytes up to the first page.
    pub(crate) fn encode(schema: &Schema, page_bytes: usize) -> Result<Vec<u8>> {
        let schema = encoded(schema)?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + schema.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        // Page and schema are below 2^31 bytes.
        bytes.extend_from_slice(&(page_bytes as u32).to_le_bytes());
        bytes.extend_from_slice(&(schema.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 16]);
        bytes.extend_from_slice(&sha256([schema.as_slice()]));
        debug_assert_eq!(bytes.len(), HEADER_BYTES);
        bytes.extend_from_slice(&schema);
        bytes.resize(bytes.len().next_multiple_of(UNIT_BYTES), 0);
        Ok(bytes)
    }
}

/// The u32 at `at`, which is within `bytes`; zeros otherwise only rule out a panic.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    debug_assert!(found.is_some());
    u32::from_le_bytes(found.copied().unwrap_or_default())
}

/// The u64 at `at`, as [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    debug_assert!(found.is_some());
    u64::from_le_bytes(found.copied().unwrap_or_default())
}
