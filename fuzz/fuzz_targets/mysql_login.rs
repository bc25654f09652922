//! A login at a MySQL server, and statements over the session that it gives, in which what the
//! server sends is the input: its greeting, its methods of authentication, compressed packets.
//!
//! Neither may panic, exceed its memory limit, or loop forever. The first byte of the input chooses
//! what the user asks for.

#![no_main]

use std::io::{Read, Write};

use dray_fuzz::LimitedAllocator;
use dray_mysql::{ConnectParams, Options, log_in_over};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(256 << 20);

const URIS: [&str; 5] = [
    "mysql://me:secret@localhost/shop?protocol=tcp",
    "mysql://me:secret@localhost/shop?protocol=tcp&get-server-public-key=1",
    "mysql://me:secret@localhost/shop?socket=/none&enable-cleartext-plugin=1",
    "mysql://me:secret@localhost/shop?protocol=tcp&compress=zlib",
    "mysql://me:secret@localhost/shop?protocol=tcp&compress=zstd",
];

thread_local! {
    /// Parsed once, since that reads option files.
    static PARAMS: Vec<ConnectParams> = URIS
        .iter()
        .map(|uri| ConnectParams::parse_with(uri, &|_| None).expect("a uri of this target"))
        .collect();
}

/// What the server sends, in bursts with two bytes of their length before them. No read goes beyond
/// a burst: a server has to wait for the end of the login before it compresses. Ignores what the
/// client writes.
struct Script<'a> {
    rest: &'a [u8],
    burst: &'a [u8],
}

impl Read for Script<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.rest;
        if self.burst.is_empty()
            && let [a, b, rest @ ..] = rest
        {
            let length = usize::from(u16::from_le_bytes([*a, *b])).min(rest.len());
            (self.burst, self.rest) = rest.split_at(length);
        }
        self.burst.read(buffer)
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
    let Some((choice, sent)) = input.split_first() else { return };
    let mut cancel_check = || Ok(());
    let script = Script { rest: sent, burst: &[] };
    let logged_in = PARAMS.with(|params| {
        log_in_over(script, &params[usize::from(*choice) % params.len()], &mut cancel_check)
    });
    let Ok(mut session) = logged_in else { return };
    let options = Options {
        row_bytes_max: 1 << 20,
        batch_bytes: 1 << 20,
        batch_rows: 100,
        ..Options::default()
    };
    let _ = session.set_up(&mut cancel_check);
    for _ in 0..4 {
        if !session.is_usable() {
            return;
        }
        if session.start("SELECT 1", &[], &options, &mut cancel_check).is_ok() {
            while let Ok(Some(_)) = session.next_batch(None, &mut cancel_check) {}
        }
        if session.is_running() {
            let _ = session.drain(&mut cancel_check);
        }
    }
});
