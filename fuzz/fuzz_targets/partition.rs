//! Decodes the descriptor of a part, and a receipt.
//!
//! What is accepted becomes the same bytes again.

#![no_main]

use dray_fuzz::LimitedAllocator;
use dray_wire::partition::{PartDescriptor, RECEIPT_BYTES, Receipt, SEAL_BYTES, seal};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

fuzz_target!(|input: &[u8]| {
    // The fuzzer could not guess size and seal.
    let mut part = input.to_vec();
    if part.len() >= 12 + SEAL_BYTES {
        let size = u32::try_from(part.len()).unwrap().to_le_bytes();
        part[8..12].copy_from_slice(&size);
        let end = part.len() - SEAL_BYTES;
        let sealed = seal(&part[..end]);
        part[end..].copy_from_slice(&sealed);
    }
    if let Ok(decoded) = PartDescriptor::decode(&part) {
        assert_eq!(decoded.encode().unwrap(), part);
    }
    if let Some(receipt) = input.first_chunk::<RECEIPT_BYTES>() {
        let mut receipt = *receipt;
        let sealed = seal(&receipt[..64]);
        receipt[64..].copy_from_slice(&sealed[..16]);
        if let Ok(decoded) = Receipt::decode(&receipt) {
            assert_eq!(decoded.encode(), receipt);
        }
    }
});
