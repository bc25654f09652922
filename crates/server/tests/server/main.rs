//! The server and its tables. One program for all of this, since each takes a minute to link with
//! the engine; what measures its own process is another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod catalog;
mod changed;
#[path = "../common/mod.rs"]
mod common;
mod hostile_files;
mod messages;
mod sessions;
mod sort;
