//! What a descriptor says of a part of a PostgreSQL server: `spec/partitions.md` section 2.

use dray_format::{Cursor, ErrorKind as FormatErrorKind, put_bytes};

use super::{SEAL_BYTES, invalid};
use crate::{ProtocolError, Refusal, Result};

/// The most settings of a descriptor.
pub(super) const SETTINGS_MAX: u32 = 256;
/// Stands for the end of the table.
const END: u32 = u32::MAX;
/// All of the statement.
const RANGE_NONE: u8 = 0;
/// Some blocks of the table, whose rows are rows of the statement.
const RANGE_BLOCKS: u8 = 1;
/// Some blocks of the table, over which the statement is computed.
const RANGE_PARTIAL: u8 = 2;

/// A part that is read under a planner's snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPart {
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
    /// Whether the statement aggregates the rows of these blocks alone (section 3.1).
    pub partial: bool,
}

impl PostgresPart {
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let Self { numeric, nonfinite, snapshot, range } = self;
        for text in [numeric, nonfinite, &snapshot.server] {
            put_bytes(out, text.as_bytes())?;
        }
        let settings = u32::try_from(snapshot.settings.len()).unwrap_or(u32::MAX);
        check_settings(settings)?;
        out.extend_from_slice(&settings.to_le_bytes());
        for (name, value) in &snapshot.settings {
            put_bytes(out, name.as_bytes())?;
            put_bytes(out, value.as_bytes())?;
        }
        put_bytes(out, snapshot.name.as_bytes())?;
        out.extend_from_slice(&snapshot.digest);
        put_bytes(out, snapshot.relations.as_bytes())?;
        match range {
            None => out.push(RANGE_NONE),
            Some(BlockRange { from, to, only, partial }) => {
                out.push(if *partial { RANGE_PARTIAL } else { RANGE_BLOCKS });
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&to.unwrap_or(END).to_le_bytes());
                out.push(u8::from(*only));
            }
        }
        Ok(())
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            numeric: cursor.string("numeric")?.to_owned(),
            nonfinite: cursor.string("nonfinite")?.to_owned(),
            snapshot: HeldSnapshot::read(cursor)?,
            range: BlockRange::read(cursor)?,
        })
    }
}

impl HeldSnapshot {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let server = cursor.string("server")?.to_owned();
        let count = cursor.u32("settings")?;
        check_settings(count)?;
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
        let partial = match cursor.u8("range")? {
            RANGE_NONE => return Ok(None),
            RANGE_BLOCKS => false,
            RANGE_PARTIAL => true,
            other => {
                return Err(invalid(format!("range {other} of a descriptor, expected 0 to 2")));
            }
        };
        let (from, to) = (cursor.u32("from")?, cursor.u32("to")?);
        if from >= to {
            return Err(invalid(format!("blocks {from} to {to}, expected some")));
        }
        let only = match cursor.u8("only")? {
            0 => false,
            1 => true,
            other => return Err(invalid(format!("only {other}, expected 0 or 1"))),
        };
        Ok(Some(Self { from, to: (to != END).then_some(to), only, partial }))
    }
}

fn check_settings(count: u32) -> Result<()> {
    if count <= SETTINGS_MAX {
        return Ok(());
    }
    let what = format!("{count} settings in a descriptor, expected at most {SETTINGS_MAX}");
    Err(ProtocolError::new(Refusal::Format(FormatErrorKind::Limit), what))
}
