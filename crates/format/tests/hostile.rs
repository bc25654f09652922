//! Damaged chunks and schemas give an error or other values, never a panic, and never take more
//! memory than was declared.
//!
//! With debug assertions, an arithmetic overflow is a panic too.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use arrow_array::Array;
use arrow_schema::{Field, Schema as ArrowSchema};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{
    Batch, Bitmap, Checksum, ChunkKind, Column, Compression, FIELDS_MAX, HEADER_BYTES, Header,
    Limits, Schema, Type, Values, WEIGHTLESS_MAX, read, write,
};
use random::Random;

struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged. `alloc_zeroed` and `realloc`
// are the trait's own, which call these two.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller gives a layout whose size is not 0, which is all that `alloc` asks.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller gives a block of this allocator, which is one of `System`, and the
        // layout that it was allocated with.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const LIMITS: Limits =
    Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20, row_bytes_max: 1 << 20 };

/// The most memory that decoding may take at a time: the size that the chunk declares, and one
/// column's dictionary and indexes, at worst four bytes of index for a value of one byte. The
/// columns themselves and messages take little.
const PEAK_MAX: usize = 6 * LIMITS.decoded_bytes_max as usize;

/// The most memory that `run` allocates at a time.
fn peak(run: impl FnOnce()) -> usize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    run();
    PEAK.load(Relaxed) - before
}

/// Valid chunks without checksum, each with its schema.
fn chunks() -> Vec<(String, Schema, Vec<u8>)> {
    let mut out = Vec::new();
    let folder = Path::new("../../spec/vectors/accept");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "chunk") {
            continue;
        }
        let file = fs::read(&path).unwrap();
        let (schema_bytes, rest) = file.split_first_chunk::<4>().unwrap();
        let (schema, chunk) = rest.split_at(u32::from_le_bytes(*schema_bytes) as usize);
        let mut chunk = chunk.to_vec();
        chunk[6] &= !1;
        chunk[28..32].fill(0);
        out.push((
            path.file_stem().unwrap().display().to_string(),
            Schema::decode(schema).unwrap(),
            chunk,
        ));
    }
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let fields: Vec<Field> = (0..3).map(|i| random.field(&format!("c{i}"), 3)).collect();
        let schema = Arc::new(ArrowSchema::new(fields));
        let pieces = random.pieces(&schema);
        if pieces.iter().all(|piece| piece.num_rows() == 0) {
            continue;
        }
        let pieces: Vec<_> = pieces.iter().map(|piece| batch_from_arrow(piece).unwrap()).collect();
        let schema = schema_from_arrow(&schema).unwrap();
        let compression = random.pick(&[
            Compression::None,
            Compression::Compact,
            Compression::Light,
            Compression::Symbols,
            Compression::Zstd(1),
        ]);
        let chunk =
            write(&schema, &pieces, compression, Checksum::None, ChunkKind::Regular).unwrap();
        out.push((format!("seed {seed}"), schema, chunk.to_bytes(0).to_vec()));
    }
    out
}

/// Decodes a chunk, and returns whether it was accepted. If so, its arrays must be valid.
fn decode(name: &str, schema: &Schema, chunk: Vec<u8>) -> bool {
    let chunk = Bytes::from(chunk);
    let mut decoded = None;
    let peak = peak(|| decoded = read(&chunk, schema, &LIMITS).ok());
    assert!(peak <= PEAK_MAX, "{name}: {peak} bytes were allocated");
    if decoded.is_none() {
        return false;
    }
    let (_, arrow) =
        Decoder::new(schema.clone(), StringLayout::Offsets).read(&chunk, &LIMITS).unwrap();
    for column in arrow.columns() {
        column.to_data().validate_full().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    true
}

/// A single test, because the counters are of the whole process.
#[test]
fn damage_is_an_error() {
    let chunks = chunks();
    for (name, schema, chunk) in &chunks {
        for length in (0..chunk.len().min(400)).chain((400..chunk.len()).step_by(97)) {
            assert!(
                !decode(name, schema, chunk[..length].to_vec()),
                "{name} cut to {length} bytes"
            );
        }
        assert!(!decode(name, schema, [&chunk[..], &[0]].concat()), "{name} with a byte more");
    }
    let mut random = Random::new(1);
    for (name, schema, chunk) in &chunks {
        for _ in 0..300 {
            let mut damaged = chunk.clone();
            for _ in 0..1 + random.below(3) {
                // Most damage goes to the descriptors, after the header.
                let end = if random.below(3) > 0 {
                    chunk.len().min(HEADER_BYTES + 128)
                } else {
                    chunk.len()
                };
                let at = random.below(end);
                match random.below(4) {
                    0 => damaged[at] ^= 1 << random.below(8),
                    1 => damaged[at] = random.next() as u8,
                    2 => damaged[at] = random.pick(&[0, 1, 2, 3, 0x7F, 0x80, 0xFF]),
                    _ => {
                        let number =
                            random.pick(&[0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX, 1 << 20]);
                        let end = damaged.len().min(at + 4);
                        damaged[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
                    }
                }
            }
            decode(name, schema, damaged);
        }
        // A random body after valid descriptors, and random bytes after a valid header.
        for from in [HEADER_BYTES, chunk.len().min(HEADER_BYTES + 64)] {
            let mut noise = chunk.clone();
            noise[from..].iter_mut().for_each(|byte| *byte = random.next() as u8);
            decode(name, schema, noise);
        }
    }
    schemas(&chunks, &mut random);
    billions_of_nothing();
    huffman_codes_that_nothing_needs();
    columns_that_nobody_can_hold();
}

/// A missing list of millions of NULLs takes no bytes in a chunk, and few to write again. A writer
/// refuses more of them than a reader accepts.
fn billions_of_nothing() {
    lists_of_nothing(WEIGHTLESS_MAX as u32, true);
    lists_of_nothing(WEIGHTLESS_MAX as u32 + 1, false);
    lists_of_nothing((1 << 31) - 1, false);
}

fn lists_of_nothing(size: u32, fits: bool) {
    let item = dray_format::Field {
        name: "item".into(),
        data_type: Type::Null,
        nullable: true,
        metadata: vec![],
    };
    let data_type = Type::FixedList { size, item: Box::new(item) };
    let list =
        dray_format::Field { name: "list".into(), data_type, nullable: true, metadata: vec![] };
    let schema = Schema { fields: vec![list] };
    let child = Box::new(Column { rows: size as usize, validity: None, values: Values::Null });
    let missing = Bitmap { bytes: Bytes::from_static(&[0]), offset: 0, len: 1 };
    let values = Values::FixedList { size: size as usize, child };
    let batch =
        Batch { rows: 1, columns: vec![Column { rows: 1, validity: Some(missing), values }] };
    let present = Batch {
        columns: vec![Column { validity: None, ..batch.columns[0].clone() }],
        ..batch.clone()
    };
    for (batches, fits) in
        [(vec![batch.clone()], fits), (vec![present.clone()], fits), (vec![batch, present], false)]
    {
        let peak = peak(|| {
            assert_eq!(
                write(&schema, &batches, Compression::Light, Checksum::None, ChunkKind::Regular)
                    .is_ok(),
                fits
            )
        });
        assert!(peak < 10_000, "{peak} bytes");
    }
}

/// 256 MiB of Huffman codes for six values, which a compressor packs into some KB.
fn huffman_codes_that_nothing_needs() {
    let field = dray_format::Field {
        name: "x".into(),
        data_type: Type::UInt16,
        nullable: false,
        metadata: vec![],
    };
    let schema = Schema { fields: vec![field] };
    let quarter = 64u32 << 20;
    let packed = zstd::bulk::compress(&vec![0; 4 * quarter as usize], 19).unwrap();
    let numbers = |numbers: &[u32]| {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
    };
    // No value is missing; Huffman codes over 0, of 4 values, with lengths of 4 bytes; the
    // quarters, and a zstd frame.
    let mut descriptors = vec![0, 10, 0, 0];
    descriptors.extend(numbers(&[4]));
    descriptors.extend([0, 0]);
    descriptors.extend(numbers(&[4, quarter, quarter, quarter, quarter]));
    descriptors.push(2);
    descriptors.extend(numbers(&[packed.len() as u32, 4 * quarter]));
    let padding = if packed.len() < 4096 { 4 } else { 60 };
    let body = [&[1, 2, 3, 3][..], &vec![0; padding], &packed].concat();
    let header = Header {
        sequence: 0,
        rows: 6,
        descriptor_bytes: descriptors.len() as u32,
        body_bytes: body.len() as u32,
        checksum: None,
        jumbo: false,
        decoded_bytes: 12,
        states: 0,
    };
    let chunk =
        [&header.encode()[..], &descriptors, &vec![0; 64 - descriptors.len() % 64], &body].concat();
    let chunk = Bytes::from(chunk);
    let mut refused = None;
    let peak = peak(|| refused = read(&chunk, &schema, &LIMITS).err());
    assert_eq!(refused.unwrap().name(), "length");
    assert!(peak < 100_000, "{peak} bytes");
}

/// Columns of eight bytes each, which take a multiple of that in a reader.
fn columns_that_nobody_can_hold() {
    for (count, fits) in [(FIELDS_MAX, true), (FIELDS_MAX + 1, false), (1_000_000, false)] {
        let field = [0, 0, 0, 0, 0, 2, 0, 0];
        let bytes = [&(count as u32).to_le_bytes()[..], &field.repeat(count)].concat();
        let peak = peak(|| assert_eq!(Schema::decode(&bytes).is_ok(), fits, "{count}"));
        assert!(
            peak < if fits { 300 * FIELDS_MAX } else { 10_000 },
            "{count} columns: {peak} bytes"
        );
    }
}

fn schemas(chunks: &[(String, Schema, Vec<u8>)], random: &mut Random) {
    let decode = |name: &str, bytes: &[u8]| {
        let mut accepted = false;
        let peak = peak(|| accepted = Schema::decode(bytes).is_ok());
        // The smallest field has eight bytes on the wire and some hundred in memory.
        assert!(
            peak <= 40 * bytes.len() + 4096,
            "{name}: {peak} bytes for a schema of {}",
            bytes.len()
        );
        accepted
    };
    for (name, schema, _) in chunks {
        let mut bytes = Vec::new();
        schema.encode(&mut bytes).unwrap();
        assert!(decode(name, &bytes), "{name}");
        for length in (0..bytes.len()).step_by(bytes.len().div_ceil(500)) {
            assert!(!decode(name, &bytes[..length]), "{name} cut to {length} bytes");
        }
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = random.pick(&[0, 1, 29, 31, 33, 0x7F, 0x80, 0xFF]);
            }
            decode(name, &damaged);
        }
    }
    for _ in 0..2000 {
        let noise: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        decode("noise", &noise);
    }
}
