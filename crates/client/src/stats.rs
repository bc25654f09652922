//! How far a statement is, and where its time and bytes went.

use std::fmt;
use std::time::Duration;

use dray_format::Profile;
use dray_wire::{CompressionChoice, Estimate, Finished, Report};

/// How far a statement is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// The size of the result that the planner expects.
    pub estimate: Estimate,
    /// Rows that the server's scans have read.
    pub rows_read: u64,
    /// Rows received.
    pub rows: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// Where the time and the bytes of a statement went.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Rows received.
    pub rows: u64,
    /// Chunks and pages received.
    pub chunks: u64,
    /// Those of them that are pages.
    pub pages: u64,
    /// Bytes of chunks and pages received.
    pub wire_bytes: u64,
    /// Bytes of the Arrow data that the chunks decoded to, and of pages.
    pub decoded_bytes: u64,
    /// Connecting, once for all statements of the connection.
    pub connect: Duration,
    /// Planning at the server.
    pub plan: Duration,
    /// From sending the query to the first chunk, or to the end if there is none.
    pub first_chunk: Duration,
    /// From sending the query to the end.
    pub total: Duration,
    /// Waiting for the server and reading from the socket.
    pub receive: Duration,
    /// Decoding chunks, joining batches, checking and building pages. Threads that decode at the
    /// same time add up.
    pub decode: Duration,
    /// The server's account of its own time; None before the end.
    pub server: Option<Finished>,
    /// The server's account of its encoding; empty for small results, and from PostgreSQL.
    pub report: Report,
    /// The compression that was used; auto if each column of each chunk has its own.
    pub compression: CompressionChoice,
    /// Whether chunks carried checksums.
    pub checksums: bool,
    /// How each column was encoded.
    pub profile: Profile,
    /// The path that the result took.
    pub path: TransferPath,
}

/// The path that a result takes, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferPath {
    /// Which path.
    pub kind: PathKind,
    /// Why; of a Dray server, over what, and how it has read its source.
    pub reason: String,
}

/// The paths that a result can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathKind {
    /// Chunks from a Dray server.
    #[default]
    Server,
    /// Chunks from PostgreSQL's extension.
    Extension,
    /// Rows in the database's own protocol. From PostgreSQL each column comes in binary or as text,
    /// whichever costs the server less.
    Rows,
}

impl fmt::Display for PathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Extension => "extension",
            Self::Rows => "rows",
        })
    }
}
