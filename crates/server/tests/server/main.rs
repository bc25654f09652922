//! Tests of the server and its tables. They are one program, since linking one with the engine
//! takes a minute. Tests that measure their own process are separate programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod catalog;
mod changed;
#[path = "../common/mod.rs"]
mod common;
mod hostile_files;
mod local_socket;
mod messages;
mod objects;
mod plans;
mod sessions;
mod sort;
mod source_limits;
mod sources;
