//! Bridges: programs that reach a database by a driver which the server does not load into its own
//! process. `spec/bridge.md` is the specification.
//!
//! ```text
//!   server                                                   bridge, one for each session
//!   Bridge::open ── O ──▶ stdin                              program::serve ─▶ Opener::open
//!   Session::run ── Q ──▶ stdin                                     Database::run ─▶ the driver
//!           Sink ◀── stream::Decoder ◀── stdout ◀── B D … F ── Output ◀──┘
//!            log ◀── stderr
//! ```
//!
//! [`Bridge`] is the server's end, and [`program`] the other end for bridges that are written in
//! Rust. What a bridge sends is checked like any bytes from outside: a driver in it may have
//! written over its memory.

#![deny(unsafe_code)]

mod frame;
mod message;
pub mod program;
mod secrets;
mod server;
pub mod stream;

pub use self::frame::{BYTES_FRAME_MAX, Frame, JSON_FRAME_MAX, Kind, read_frame, write_frame};
pub use self::message::{Begun, Failure, FailureKind, Finished, Open, Query, Ready, VERSION};
pub use self::secrets::{Secrets, percent_decoded};
pub use self::server::{Bridge, Command};
