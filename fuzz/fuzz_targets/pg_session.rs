//! A PostgreSQL server's side of a session: all that it answers, whatever it is asked.
//!
//! Nothing may panic, take more memory than its limits, or go on for ever; what comes out as a
//! batch must be valid.

#![no_main]

use std::collections::BTreeMap;
use std::io::{Read, Write};

use arrow_array::Array;
use dray_format::arrow::{Decoder, StringLayout};
use dray_fuzz::LimitedAllocator;
use dray_postgres::{CopyStart, Options, Session};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(256 << 20);

/// What the server sends; it listens to nothing.
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
    let mut check = || Ok(());
    let mut session = Session::new(Script(input), 15, &BTreeMap::new());
    let options = Options {
        row_bytes_max: 1 << 20,
        batch_bytes: 1 << 20,
        batch_rows: 100,
        ..Options::default()
    };
    // The same statement twice: its columns are known the second time.
    for _ in 0..8 {
        if !session.is_usable() {
            return;
        }
        let Ok(schema) = session.start("SELECT 1", &[], &options, &mut check) else { continue };
        let decoder = Decoder::new(schema, StringLayout::Offsets);
        while let Ok(Some(built)) = session.next_batch(None, &mut check) {
            if let Ok(batch) = decoder.built(built) {
                batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            }
        }
        if session.is_running() {
            let _ = session.drain(&mut check);
        }
        if let Ok(CopyStart::Started) =
            session.start_copy("SELECT 1", &[], "FORMAT dray", &mut check)
        {
            let mut room = [0; 64];
            while session.read_copy(&mut room, &mut check).is_ok() {}
            let _ = session.finish_copy(0, &mut check);
        }
        let _ = session.ask("SELECT 1", &mut check);
    }
});
