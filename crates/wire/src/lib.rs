//! The protocol of `spec/protocol.md` without I/O: bytes in, events out.
//!
//! ```text
//!   the driver reads 8 bytes ─▶ Session::frame ─▶ the number of bytes that follow, within limits
//!   the driver reads those   ─▶ Session::message ─▶ an event
//!     or, for a chunk or a page at the client, its header ─▶ ClientSession::chunk, page ─▶ the
//!     checked header;
//!     the driver then reads the body from the socket into its final buffer
//! ```
//!
//! A session enforces the order of messages: no query while another runs, no gap in the chunks, a
//! trailer that matches the result. The driver only moves bytes. Clients use [`ClientSession`],
//! servers [`ServerSession`].

#![forbid(unsafe_code)]

mod client_session;
mod error;
mod frame;
mod instance;
mod message;
#[cfg(feature = "partition")]
pub mod partition;
mod secret;
mod server_session;
mod source;

pub use client_session::{ClientSession, ServerEvent};
pub use error::{ProtocolError, Refusal, Result};
pub use frame::{FRAME_HEADER_BYTES, Frame, Kind};
pub use instance::{INSTANCE_BYTES, Instance};
pub use message::{
    Cancel, Checksums, CompressionChoice, Encoded, Error as ServerError, ErrorKind, Estimate,
    Finished, Hello, Known, PARTS_MAX, PASS_PREFIX, PartRequest, PlanRequest, Planned, PlannedPart,
    PriceSet, Progress, Query, Report, RowLayout, ShareRequest, SourcePath, Started,
    TICKET_BYTES_MAX, Unfit, Welcome,
};
pub use secret::Secret;
pub use server_session::{ClientEvent, ServerSession};
pub use source::{SOURCE_NAME_BYTES_MAX, is_source_name};

/// The highest version of the protocol that this crate implements.
pub const VERSION: u16 = 7;
/// The lowest one.
pub const VERSION_MIN: u16 = 2;
/// The first version with plans of parts.
pub const PLANS_SINCE: u16 = 4;
/// The first version with pages.
pub const PAGES_SINCE: u16 = 5;
/// The first version with named sources.
pub const SOURCES_SINCE: u16 = 6;
/// The first version whose queries say whether an estimate is worth a question to the source.
pub const ESTIMATES_SINCE: u16 = 7;
/// The first version whose queries say what becomes of unfit values.
pub const UNFIT_SINCE: u16 = 7;
/// The first version that tells how a source is read.
pub const PATHS_SINCE: u16 = 7;
/// The default TCP port of a server.
pub const DEFAULT_PORT: u16 = 7117;
