//! Decodes a schema, in the container of `spec/vectors/README.md`: u32 schema_bytes, the schema,
//! and any bytes after it.
//!
//! Accepted schemas must encode to the same bytes, and convert to Arrow and back.

#![no_main]

use dray_format::Schema;
use dray_format::arrow::{StringLayout, schema_from_arrow, schema_to_arrow};
use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

fuzz_target!(|input: &[u8]| {
    let Some((schema_bytes, rest)) = input.split_first_chunk::<4>() else { return };
    let Some(input) = rest.get(..u32::from_le_bytes(*schema_bytes) as usize) else { return };
    let Ok(schema) = Schema::decode(input) else { return };
    let mut encoded = Vec::new();
    schema.encode(&mut encoded).unwrap();
    assert_eq!(encoded, input);
    // Arrow stores metadata as a map, and doesn't compare whether a dictionary is ordered. So
    // compare Arrow schemas.
    let arrow = schema_to_arrow(&schema, StringLayout::Offsets);
    let again = schema_to_arrow(&schema_from_arrow(&arrow).unwrap(), StringLayout::Offsets);
    assert_eq!(arrow, again);
});
