//! A MySQL session in which the server's answers are the input.
//!
//! The session must not panic, exceed its memory limit, or loop forever, and its batches must be
//! valid. The first byte of the input says what was agreed at login.

#![no_main]

use std::io::{Read, Write};

use arrow_array::Array;
use dray_format::arrow::{Decoder, StringLayout};
use dray_fuzz::LimitedAllocator;
use dray_mysql::{Options, Server, Session};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(256 << 20);

/// Capability flags: OK reports changed settings, OK ends rows.
const SESSION_TRACK: u32 = 1 << 23;
const DEPRECATE_EOF: u32 = 1 << 24;
/// Of MariaDB: definitions name types that MySQL lacks.
const EXTENDED_METADATA: u32 = 1 << 3;

/// The server's answers. Ignores what the client writes.
struct Script<'a>(&'a [u8]);

impl Read for Script<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Script<'_> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((agreed, answers)) = input.split_first() else { return };
    let flag = |bit: u8, flag: u32| if agreed & bit == 0 { 0 } else { flag };
    let server = Server::new(
        "10.11.6-MariaDB",
        1,
        flag(1, SESSION_TRACK) | flag(2, DEPRECATE_EOF),
        flag(4, EXTENDED_METADATA),
    );
    let mut cancel_check = || Ok(());
    let mut session = Session::new(Script(answers), server);
    let options = Options {
        row_bytes_max: 1 << 20,
        batch_bytes: 1 << 20,
        batch_rows: 100,
        ..Options::default()
    };
    // Repeat the statement, since it is prepared after the first time.
    for _ in 0..8 {
        if !session.is_usable() {
            return;
        }
        if let Ok(schema) = session.start("SELECT 1", &[], &options, &mut cancel_check) {
            let decoder = Decoder::new(schema, StringLayout::Offsets);
            while let Ok(Some(built)) = session.next_batch(None, &mut cancel_check) {
                if let Ok(batch) = decoder.built(built) {
                    let columns = batch.columns().iter();
                    columns.for_each(|column| column.to_data().validate_full().unwrap());
                }
            }
        }
        if session.is_running() {
            let _ = session.drain(&mut cancel_check);
        }
        let _ = session.ask("SELECT 1", &mut cancel_check);
        if let Ok(true) = session.start_load("LOAD DATA", &mut cancel_check) {
            let _ = session.send_load(b"1\n", &mut cancel_check);
            let _ = session.end_load(&mut cancel_check);
        }
    }
});
