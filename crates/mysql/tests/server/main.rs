//! Sessions with real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod login;
mod mariadb;
mod results;
