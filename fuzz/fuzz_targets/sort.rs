//! Compares a sort of random rows with a reference sort that compares values:
//! `crates/sort/tests/reference`.
//!
//! The input selects types, distributions of values and settings, and is the seed of the values.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sort/tests/reference/mod.rs"]
mod reference;

use reference::{Case, Draw, Limits};

/// Room for the rows, the reference, and the memory budget of the sort.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

const LIMITS: Limits = Limits { rows: 600, threads: 3, memory_bytes: 4 << 20 };
/// Bytes of the input that are choices. Further choices are random.
const CHOICES_MAX: usize = 96;

/// The spill folder. Spill files are unnamed, so nothing remains there.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(std::env::temp_dir);

fuzz_target!(|input: &[u8]| {
    // FNV-1a.
    let seed = input.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    let choices = &input[..input.len().min(CHOICES_MAX)];
    Case::draw(&mut Draw::new(choices, seed), LIMITS).check(&FOLDER, "this input");
});
