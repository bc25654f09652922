//! A server session that reads arbitrary bytes from the client.

#![no_main]

#[path = "../../crates/wire/tests/drive/mod.rs"]
mod drive;

use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

/// Twice the decoded size that a query's parameters may have.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

fuzz_target!(|input: &[u8]| {
    if let Ok(names) = drive::requests(input) {
        assert_eq!(names.first(), Some(&"hello"), "{names:?}");
    }
});
