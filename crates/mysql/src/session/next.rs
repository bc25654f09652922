//! What the server sends next.

use mysql_common::constants::StatusFlags;

use super::cache::Prepared;
use super::load::FILE_NAME;
use crate::answer::{Done, END, OK, is_end, server_error};
use crate::error::{Error, Result};
use crate::fields::{Fields, malformed};
use crate::packets::ERROR;
use crate::server::Server;

/// The most columns of a result, in MySQL's manual.
const COLUMNS_MAX: u64 = 4096;
/// Asks for a file of the client's.
const LOCAL_INFILE: u8 = 0xfb;

/// What the server sends next.
///
/// ```text
///   prepare ─▶ Prepared ─▶ Described ─▶ Nothing
///   execute ─▶ Result ─▶ Defined ─▶ Rows ─▶ Nothing, or the next Result of a procedure
///                 ▲  └─▶ File ─┐
///                 └─ its end ◀─┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// Whether a statement could be prepared.
    Prepared,
    /// This many packets that describe a prepared statement.
    Described(u32),
    /// The number of columns of a result, or OK.
    Result,
    /// This many definitions of columns.
    Defined(u32),
    /// The end of the definitions.
    DefinedEnd,
    /// Rows and their end.
    Rows,
    /// Nothing, until it has a file of the client's to its end.
    File,
}

/// What a packet says.
#[derive(Debug)]
pub(super) enum Event {
    /// The statement ended with an error.
    Failed(Error),
    Prepared(Prepared),
    /// The number of columns of a result.
    Columns(u32),
    /// A column's definition, or the end of several.
    Definition,
    Row,
    /// The server asks for a file, whose name is the one of [`super::load`] or another.
    File {
        is_ours: bool,
    },
    /// A result has ended.
    Done(Done),
}

impl Next {
    /// Reads the next packet, and moves on.
    ///
    /// # Errors
    /// When the packet is malformed, or another one was due. Nobody knows then what comes next.
    pub(super) fn advance(&mut self, payload: &[u8], server: &Server) -> Result<Event> {
        let first = *payload.first().ok_or_else(|| malformed("an empty packet"))?;
        if first == ERROR && *self != Self::Nothing {
            *self = Self::Nothing;
            return server_error(payload).map(Event::Failed);
        }
        let ends = u32::from(!server.deprecates_eof());
        match *self {
            Self::Nothing => Err(malformed("more after the statement's end")),
            Self::File => Err(malformed("an answer before the end of the file it asked for")),
            Self::Prepared => {
                let prepared = Prepared::parse(payload)?;
                if u64::from(prepared.columns) > COLUMNS_MAX {
                    let columns = prepared.columns;
                    return Err(malformed(format!("a statement of {columns} columns")));
                }
                let described = [u32::from(prepared.parameters), prepared.columns.into()];
                let packets: u32 =
                    described.iter().filter(|count| **count > 0).map(|count| count + ends).sum();
                *self = if packets == 0 { Self::Nothing } else { Self::Described(packets) };
                Ok(Event::Prepared(prepared))
            }
            Self::Described(packets) => {
                *self = if packets <= 1 { Self::Nothing } else { Self::Described(packets - 1) };
                Ok(Event::Definition)
            }
            Self::Result if first == OK => self.done(Done::parse(payload, server.tracks())?),
            Self::Result if first == LOCAL_INFILE => {
                *self = Self::File;
                Ok(Event::File { is_ours: payload[1..] == *FILE_NAME.as_bytes() })
            }
            Self::Result => {
                let mut fields = Fields::new(payload);
                let columns = fields.integer("number of columns")?;
                if columns == 0 || columns > COLUMNS_MAX || !fields.is_empty() {
                    return Err(malformed(format!("a result of {columns} columns")));
                }
                *self = Self::Defined(columns as u32);
                Ok(Event::Columns(columns as u32))
            }
            Self::Defined(left) => {
                *self = match left {
                    2.. => Self::Defined(left - 1),
                    _ if server.deprecates_eof() => Self::Rows,
                    _ => Self::DefinedEnd,
                };
                Ok(Event::Definition)
            }
            Self::DefinedEnd => {
                if first != END || payload.len() >= 9 {
                    return Err(malformed("more definitions than columns"));
                }
                *self = Self::Rows;
                Ok(Event::Definition)
            }
            Self::Rows if is_end(payload, server.deprecates_eof()) => {
                self.done(match server.deprecates_eof() {
                    true => Done::parse(payload, server.tracks())?,
                    false => Done::parse_old_end(payload)?,
                })
            }
            Self::Rows => Ok(Event::Row),
        }
    }

    fn done(&mut self, done: Done) -> Result<Event> {
        *self = match done.has(StatusFlags::SERVER_MORE_RESULTS_EXISTS) {
            true => Self::Result,
            false => Self::Nothing,
        };
        Ok(Event::Done(done))
    }
}
