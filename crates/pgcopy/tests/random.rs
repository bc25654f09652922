//! Random batches through the encoder. `DRAY_SEED` runs one seed again, `DRAY_ROUNDS` sets the
//! number of batches.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod copies;

use dray_pgcopy::Format;

/// Bytes of an input.
const INPUT_BYTES: usize = 400;
const ROUNDS: u64 = 20_000;

/// SplitMix64.
fn input(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as u8
    };
    (0..INPUT_BYTES).map(|_| next()).collect()
}

#[test]
fn random_batches() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("DRAY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DRAY_ROUNDS").unwrap_or(ROUNDS),
    };
    let (mut binary, mut text) = (0, 0);
    for seed in seeds.clone() {
        match std::panic::catch_unwind(|| copies::check(&input(seed))) {
            Ok(Some(Format::Binary)) => binary += 1,
            Ok(Some(Format::Text)) => text += 1,
            Ok(None) => {}
            Err(panic) => {
                eprintln!("failed with DRAY_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    let count = seeds.end - seeds.start;
    assert!(count < ROUNDS || binary > count / 20 && text > count / 1000, "{binary}, {text}");
}
