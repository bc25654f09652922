//! Opens a page file (`spec/page-file.md`), reads all of it, and looks each object up by its key.
//!
//! Checksums and digests are repaired first, so that the fuzzer reaches the code behind them.
//! Whatever was accepted can be written again, and has the same objects.

#![no_main]

use bytes::Bytes;
use dray_format::crc32c;
use dray_fuzz::LimitedAllocator;
use dray_pagefile::{PageFile, PageFileOptions, PageFileWriter, Salvage};
use dray_wire::partition::seal;
use libfuzzer_sys::fuzz_target;

/// Room for the file, its pages again, and the file written from them.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

const HEADER: usize = 64;
const FOOTER: usize = 128;
const UNIT: usize = 4096;

fn u32_at(file: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?) as usize)
}

fn u64_at(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*file.get(at..)?.first_chunk()?)).ok()
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    file.get_mut(at..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// Makes checksums and digests right, as far as the parts that they cover are where they must be.
fn repair(file: &mut [u8]) -> Option<()> {
    let schema_bytes = u32_at(file, 12)?;
    let schema = seal(file.get(HEADER..)?.get(..schema_bytes)?);
    put(file, 32, &schema)?;
    let pages_at = HEADER.checked_add(schema_bytes)?.checked_next_multiple_of(UNIT)?;
    let foot = file.len().checked_sub(FOOTER)?;
    put(file, foot, &(file.len() as u64).to_le_bytes())?;
    put(file, foot + 120, b"DRYFEND\0")?;
    let (index_at, pages) = (u64_at(file, foot + 8)?, u64_at(file, foot + 16)?);
    let paths_at = index_at.checked_add(pages.checked_mul(16)?)?;
    let keys_at = paths_at.checked_add(u32_at(file, foot + 48)?)?;
    if keys_at > paths_at {
        let checksum = crc32c(0, file.get(keys_at..foot)?);
        put(file, foot + 52, &checksum.to_le_bytes())?;
    }
    let mut start = pages_at;
    for entry in (index_at..paths_at.min(foot)).step_by(16) {
        let end = pages_at.checked_add(u32_at(file, entry + 8)?.checked_mul(UNIT)?)?;
        if start < end && end <= index_at {
            put(file, start + 28, &[0; 4])?;
            let page = file.get(start..end)?;
            let checksum = crc32c(crc32c(0, &page[HEADER..]), &page[..HEADER]).to_le_bytes();
            put(file, start + 28, &checksum)?;
            put(file, entry + 12, &checksum)?;
        }
        start = end;
    }
    let digested =
        [file.get(..pages_at)?, file.get(index_at..keys_at)?, file.get(foot..foot + 80)?];
    let digest = seal(&digested.concat());
    put(file, foot + 80, &digest)
}

fuzz_target!(|input: &[u8]| {
    let mut file = input.to_vec();
    // What can't be repaired is tried as it is.
    let _ = repair(&mut file);
    let file = Bytes::from(file);
    if let Ok(salvage) = Salvage::from_bytes(file.clone()) {
        salvage.pages().iter().for_each(|page| assert!(page.objects().len() > 0));
    }
    let Ok(file) = PageFile::from_bytes(file) else { return };
    let _ = file.object(file.len() / 2).map(|object| object.bytes().len());
    if file.check().is_err() {
        return;
    }
    let key = file.key().into_iter().map(|(path, _)| path.clone()).collect();
    let options = PageFileOptions { page_bytes: UNIT, key };
    let mut again = Vec::new();
    let mut writer = PageFileWriter::new(&mut again, file.schema().clone(), &options).unwrap();
    for ordinal in 0..file.len() {
        writer.copy(file.object(ordinal).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let again = PageFile::from_bytes(Bytes::from(again)).unwrap();
    again.check().unwrap();
    assert_eq!(again.len(), file.len());
    for ordinal in 0..file.len() {
        let (one, other) = (file.object(ordinal).unwrap(), again.object(ordinal).unwrap());
        assert_eq!(one.bytes(), other.bytes());
    }
});
