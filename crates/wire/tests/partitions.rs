//! The descriptors and receipts of `spec/vectors`: accepted ones have the place listed in their
//! JSON, and become the same bytes again; others are refused with the refusal in their name.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use dray_wire::partition::{PartDescriptor, PartSource, Receipt};
use dray_wire::{ProtocolError, Refusal};
use serde_json::{Value, json};

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        path.extension().is_some_and(|kind| ["part", "receipt"].iter().any(|known| kind == *known))
    };
    let mut files: Vec<_> = files.filter(is_ours).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

/// What the JSON of an accepted vector says, and the bytes made of what was read.
fn read(path: &Path) -> Result<(Value, Vec<u8>), ProtocolError> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|kind| kind == "receipt") {
        let receipt = Receipt::decode(&bytes)?;
        let Receipt { plan, index, count, rows, digest, .. } = receipt;
        let json = json!({
            "plan": format!("{plan:?}"), "index": index, "count": count, "rows": rows,
            "digest": format!("{digest:016x}"),
        });
        return Ok((json, receipt.encode().to_vec()));
    }
    let part = PartDescriptor::decode(&bytes)?;
    let mut json = json!({
        "plan": format!("{:?}", part.plan), "index": part.index, "count": part.count,
    });
    match &part.source {
        PartSource::Postgres(of_table) => {
            if let Some(range) = of_table.range {
                json["from"] = range.from.into();
                json["to"] = range.to.into();
                if range.partial {
                    json["partial"] = true.into();
                }
            }
        }
        PartSource::Dray(of_server) => {
            json["pass"] = of_server.pass.reveal().into();
            json["ticket"] = of_server
                .ticket
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
                .into();
        }
    }
    Ok((json, part.encode()?))
}

#[test]
fn accepted() {
    for path in vectors("accept") {
        let name = path.file_name().unwrap().display().to_string();
        let expected = fs::read(format!("{}.json", path.display())).unwrap();
        let (found, bytes) = read(&path).unwrap();
        assert_eq!(found, serde_json::from_slice::<Value>(&expected).unwrap(), "{name}");
        assert_eq!(bytes, fs::read(&path).unwrap(), "{name}");
    }
}

#[test]
fn refused() {
    for path in vectors("reject") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.name(), name.split('-').next().unwrap(), "{name}: {error}");
    }
}

/// No change of a single bit goes unnoticed.
#[test]
fn flipped_bits() {
    for path in vectors("accept") {
        let whole = fs::read(&path).unwrap();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let is_refused = match path.extension().is_some_and(|kind| kind == "receipt") {
                true => Receipt::decode(&bytes).is_err(),
                false => PartDescriptor::decode(&bytes).is_err(),
            };
            assert!(is_refused, "bit {bit} of {}", path.display());
        }
    }
}

/// A descriptor that is too large is refused when it is made, and when it is read.
#[test]
fn limits() {
    let bytes = fs::read("../../spec/vectors/accept/statement.part").unwrap();
    let part = PartDescriptor::decode(&bytes).unwrap();
    let large = [
        PartDescriptor { sql: "x".repeat(16 << 20), ..part.clone() },
        PartDescriptor { uri: "x".repeat((64 << 10) + 1).into(), ..part.clone() },
    ];
    for part in large {
        assert_eq!(part.encode().unwrap_err().name(), "limit");
    }
    let mut bytes = bytes;
    bytes.resize((16 << 20) + 1, 0);
    let refusal = PartDescriptor::decode(&bytes).unwrap_err().refusal();
    assert!(matches!(refusal, Refusal::Format(dray_format::ErrorKind::Limit)), "{refusal:?}");
}
