//! What a connection speaks below statements and results: Dray's own protocol, or PostgreSQL's.

mod dray;
mod parallel;
mod parameters;
mod parts;
mod postgres;
mod stability;
mod times;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use bytes::Bytes;
use dray_format::{BuiltBatch, HEADER_BYTES, Header, Profile, Tables};
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, Finished, Kind, ServerEvent};

pub(crate) use self::dray::DrayLink;
pub(crate) use self::postgres::PostgresLink;
use crate::connection::{QueryOptions, Wish};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// How long a server has to stop a statement, before the connection is given up.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Asked now and then, while a server is silent, what is wanted of the statement.
pub(crate) type Wanted<'a> = &'a mut dyn FnMut() -> Wish;

/// What came next.
#[derive(Debug)]
pub(crate) enum Received {
    Event(ServerEvent),
    Chunk {
        header: Header,
        descriptors: Vec<u8>,
        body: Bytes,
        /// Those that stand where the chunk came.
        tables: Arc<Tables>,
    },
    /// Rows that were received one by one.
    Built {
        built: Box<BuiltBatch>,
        /// What they came in.
        bytes: u64,
        /// How much of the time was reading and waiting; the rest was parsing.
        waited: Duration,
    },
    /// Rows that another thread received and decoded.
    Batch {
        batch: RecordBatch,
        wire_bytes: u64,
        decoded_bytes: u64,
        decode: Duration,
    },
    /// The end of a result in rows or in parts.
    Done {
        finished: Option<Finished>,
        profile: Profile,
    },
    /// The end, of which the server says no more.
    End,
}

/// Which way a result came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteKind {
    /// In chunks from a Dray server.
    #[default]
    Server,
    /// In chunks from PostgreSQL's extension.
    Extension,
    /// In rows from PostgreSQL: each value in binary or as text, as it takes the server less time.
    Rows,
}

impl std::fmt::Display for RouteKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Extension => "extension",
            Self::Rows => "rows",
        })
    }
}

/// Which way a result came, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// Which way.
    pub kind: RouteKind,
    /// Why; empty where there is no other.
    pub reason: String,
}

/// A connection to a server. After a query the next thing received is its beginning.
pub(crate) trait Link: Debug + Send {
    /// The server's name and version.
    fn server(&self) -> &str;
    /// Where it is, without secrets.
    fn place(&self) -> &str;
    /// Whether a query can be sent.
    fn is_usable(&self) -> bool;
    /// Whether a statement runs.
    fn is_running(&self) -> bool;
    /// Gives the connection up.
    fn break_off(&mut self);
    /// Which way the running statement's result comes.
    fn route(&self) -> Route;
    fn send_query(&mut self, sql: &str, options: &QueryOptions, wanted: Wanted<'_>) -> Result<()>;
    /// Waits for what the server sends next.
    fn receive(&mut self, arena: &mut Arena, wanted: Wanted<'_>) -> Result<Received>;
    /// Stops the running statement and waits for the server to confirm; gives the connection up if
    /// it doesn't in time, or if even that is not wanted.
    fn stop(&mut self, arena: &mut Arena, wanted: Wanted<'_>);
}

/// Reads a frame of spec/protocol.md; a chunk's body goes straight into its memory.
fn receive_frame(
    session: &mut ClientSession,
    arena: &mut Arena,
    read_exact: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<Received> {
    let mut raw = [0; FRAME_HEADER_BYTES];
    read_exact(&mut raw)?;
    let frame = session.frame(&raw)?;
    if frame.kind != Kind::Chunk {
        // The session has bounded the payload.
        let mut payload = vec![0; frame.payload_bytes as usize];
        read_exact(&mut payload)?;
        return Ok(Received::Event(session.message(frame, &payload)?));
    }
    let mut raw = [0; HEADER_BYTES];
    read_exact(&mut raw)?;
    let header = session.chunk(frame, &raw)?;
    // Both sizes are within the query's limits: the session has held the header against them.
    let mut descriptors =
        vec![0; usize::try_from(header.descriptor_bytes_padded()).unwrap_or(usize::MAX)];
    read_exact(&mut descriptors)?;
    let body = arena.receive_chunk(&header, read_exact)?;
    Ok(Received::Chunk { header, descriptors, body, tables: session.tables() })
}

/// When a server must have stopped a statement.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Default for Deadline {
    fn default() -> Self {
        Self(Instant::now() + STOP_TIMEOUT)
    }
}

impl Deadline {
    fn check(&self, wish: Wish) -> Result<()> {
        match wish {
            Wish::Leave => Err(Error::new(ErrorKind::Connection, "the server was not waited for")),
            _ if Instant::now() < self.0 => Ok(()),
            _ => Err(Error::new(ErrorKind::Connection, "the server did not stop in time")),
        }
    }
}
