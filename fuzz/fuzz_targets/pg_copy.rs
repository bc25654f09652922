//! Encodes batches for a COPY into PostgreSQL, and checks what comes out:
//! `crates/pgcopy/tests/copies`.

#![no_main]

use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pgcopy/tests/copies/mod.rs"]
mod copies;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

fuzz_target!(|input: &[u8]| {
    copies::check(input);
});
