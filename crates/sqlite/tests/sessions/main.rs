//! Sessions with files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod changed;
mod declared;
mod deep;
mod file;
mod long;
mod pragmas;
mod writes;
