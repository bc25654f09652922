//! All that a server sends on one connection, as a client hears it.

#![no_main]

#[path = "../../crates/wire/tests/drive/mod.rs"]
mod drive;

use dray_format::Limits;
use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

/// A few times the limits below.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

const LIMITS: Limits = Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20, row_bytes_max: 1 << 20 };

fuzz_target!(|input: &[u8]| {
    if let Ok(names) = drive::answers_within(LIMITS, input) {
        assert!(matches!(names.first(), Some(&"welcome" | &"error")), "{names:?}");
    }
});
