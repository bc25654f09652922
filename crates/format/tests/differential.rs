//! The reader against the decoder in Python, which was written from the specification alone: both
//! accept the same damaged chunks, with the same values.
//!
//! The seed is printed; `DRAY_SEED` sets it, and `DRAY_ROUNDS` sets how often each vector is
//! damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;
mod words;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use bytes::Bytes;
use dray_format::{Limits, Schema, Tables, read_with};
use random::Random;
use serde_json::Value;
use words::values;

const ROUNDS: usize = 12;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// The interpreter with the decoder's dependencies; see scripts/setup.
fn python() -> PathBuf {
    let home =
        |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache =
        home("XDG_CACHE_HOME").or_else(|| home("HOME").map(|home| home.join(".cache"))).unwrap();
    home("DRAY_PYTHON").unwrap_or_else(|| cache.join("dray/venv/bin/python"))
}

fn spec() -> PathBuf {
    PathBuf::from("../../spec")
}

fn vectors() -> Vec<Vec<u8>> {
    let folder = |name: &str| fs::read_dir(spec().join("vectors").join(name)).unwrap();
    let paths = folder("accept").chain(folder("reject")).map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "chunk")).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The container with some bytes changed, mostly in short fields that matter much. Checksums are
/// removed, so that a reader meets the damage itself.
fn damaged(container: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = container.to_vec();
    let schema_bytes = out.first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw) as usize);
    let header = 4 + schema_bytes.min(out.len());
    if out.len() >= header + 64 {
        out[header + 6] &= !1;
        out[header + 28..header + 32].fill(0);
    }
    for _ in 0..1 + random.below(3) {
        if out.is_empty() {
            break;
        }
        let at = match random.below(4) {
            0 => random.below(header.min(out.len())),
            1 => random.below(out.len()),
            _ => (header + random.below(64 + 96)).min(out.len() - 1),
        };
        match random.below(6) {
            0 => out[at] = 0,
            1 => out[at] = random.below(256) as u8,
            2 => out[at] = out[at].wrapping_add(1),
            3 => out[at] = out[at].wrapping_sub(1),
            4 => out.truncate(out.len() - 1),
            _ => out[at] ^= 1 << random.below(8),
        }
    }
    out
}

/// The columns' values, or the name of the refusal.
fn judged(container: &[u8]) -> Result<Value, &'static str> {
    let Some((schema_bytes, rest)) = container.split_first_chunk::<4>() else {
        return Err("schema");
    };
    let Some((schema, chunk)) = rest.split_at_checked(u32::from_le_bytes(*schema_bytes) as usize)
    else {
        return Err("schema");
    };
    let read = || {
        let schema = Schema::decode(schema)?;
        let (mut chunk, mut tables, limits) =
            (Bytes::copy_from_slice(chunk), Tables::default(), Limits::default());
        tables.take(&mut chunk, &limits)?;
        let (_, batch) = read_with(&chunk, &schema, &limits, &tables)?;
        let columns = batch.columns.iter().zip(&schema.fields);
        Ok(columns.map(|(column, field)| values(column, &field.data_type)).collect())
    };
    read().map_err(|error: dray_format::Error| error.name())
}

#[test]
fn both_decoders_accept_the_same_chunks() {
    let seed = number("DRAY_SEED").unwrap_or(1);
    println!("DRAY_SEED={seed}");
    let mut random = Random::new(seed);
    let rounds = number("DRAY_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let vectors = vectors();
    let mut containers = vectors.clone();
    for vector in vectors.iter().filter(|vector| vector.len() <= 4096) {
        containers.extend((0..rounds).map(|_| damaged(vector, &mut random)));
    }
    // Python is too slow for very wide values.
    let few_values = |container: &Vec<u8>| judged(container).is_err() || container.len() <= 4096;
    containers.retain(few_values);
    let path = std::env::temp_dir().join(format!("dray-differential-{}", std::process::id()));
    let input = containers.iter().flat_map(|container| {
        let bytes = u32::try_from(container.len()).unwrap().to_le_bytes();
        bytes.into_iter().chain(container.iter().copied())
    });
    fs::write(&path, input.collect::<Vec<u8>>()).unwrap();
    let judge = spec().join("decoder/judge.py");
    let output =
        Command::new(python()).arg(judge).stdin(File::open(&path).unwrap()).output().unwrap();
    fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verdicts: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(verdicts.len(), containers.len());
    let mut failures = Vec::new();
    let mut accepted = 0;
    for (container, verdict) in containers.iter().zip(verdicts) {
        let ours = judged(container);
        let theirs = serde_json::from_str::<Value>(verdict).map_err(|_| verdict);
        accepted += usize::from(ours.is_ok());
        if ours.as_ref().ok() != theirs.as_ref().ok() {
            failures.push(format!("here {ours:?}, in Python {theirs:?}: {container:02x?}"));
        }
    }
    println!("{} chunks, {accepted} accepted", containers.len());
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(10)].join("\n"));
}
