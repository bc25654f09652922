//! A sort of random rows against a reference that compares their values:
//! `crates/sort/tests/reference`.
//!
//! The input's bytes choose types, how values lie, and settings; what the values are follows from
//! them.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sort/tests/reference/mod.rs"]
mod reference;

use reference::{Case, Draw, Limits};

/// The rows and their reference, and the budget of the largest sort.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

const LIMITS: Limits = Limits { rows: 600, threads: 3, memory_bytes: 4 << 20 };
/// Choices: the others are random.
const CHOICES_MAX: usize = 96;

/// What is spilled has no name, so that nothing stays there.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(std::env::temp_dir);

fuzz_target!(|input: &[u8]| {
    // FNV-1a.
    let seed = input.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    let choices = &input[..input.len().min(CHOICES_MAX)];
    Case::draw(&mut Draw::new(choices, seed), LIMITS).check(&FOLDER, "this input");
});
