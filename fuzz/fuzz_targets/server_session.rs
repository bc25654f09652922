//! All that a client sends on one connection, as a server hears it.

#![no_main]

#[path = "../../crates/wire/tests/drive/mod.rs"]
mod drive;

use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

/// The parameters of a query may decode to 64 MiB.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

fuzz_target!(|input: &[u8]| {
    if let Ok(names) = drive::requests(input) {
        assert_eq!(names.first(), Some(&"hello"), "{names:?}");
    }
});
