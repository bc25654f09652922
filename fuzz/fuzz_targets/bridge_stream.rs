//! Decodes the Arrow stream of a bridge, in pieces.
//!
//! The decoder must not allocate more than its limits allow, and what it accepts must be valid. The
//! first byte of the input says how long the pieces are. Arrow's own decoder may panic: that is
//! caught, and the stream refused.

#![no_main]

use std::sync::Once;

use arrow_array::Array;
use dray_bridge::stream::{Decoder, Part, StreamLimits};
use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

/// Panics of Arrow's crates do not end the process.
fn allow_panics_of_arrow() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or("", |location| location.file());
            if !place.contains("/arrow-") {
                hook(panic);
            }
        }));
    });
}

fuzz_target!(|input: &[u8]| {
    allow_panics_of_arrow();
    let Some((piece, mut bytes)) = input.split_first() else { return };
    let mut decoder = Decoder::new(StreamLimits { batch_rows: 1000, body_bytes: 1 << 20 });
    while !bytes.is_empty() {
        let (mut next, rest) = bytes.split_at(bytes.len().min(usize::from(*piece) + 1));
        bytes = rest;
        loop {
            match decoder.next(&mut next) {
                Ok(Some(Part::Batch(batch))) => {
                    assert!(batch.num_rows() <= 1000);
                    for column in batch.columns() {
                        column.to_data().validate_full().unwrap();
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
