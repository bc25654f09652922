//! Chunks decoded into the caller's buffers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{
    BufferSlice, BufferSource, Checksum, ChunkKind, Compression, HEADER_BYTES, Limits, Tables,
    decode, read, write,
};
use random::Random;

/// Gives memory full of old bytes.
#[derive(Default)]
struct Source {
    copies_plain: bool,
    source_bytes: usize,
}

struct Slice(Vec<u8>);

impl BufferSource for Source {
    fn buffer(&mut self, bytes: usize) -> Option<Box<dyn BufferSlice>> {
        self.source_bytes += bytes;
        Some(Box::new(Slice(vec![0xA5; bytes])))
    }

    fn copies_plain(&self) -> bool {
        self.copies_plain
    }
}

// SAFETY: both functions give the one vector, which nobody else has.
unsafe impl BufferSlice for Slice {
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn into_bytes(self: Box<Self>) -> Bytes {
        Bytes::from(self.0)
    }
}

#[test]
fn buffers_of_a_source_hold_the_same_columns() {
    let mut source_bytes = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let fields: Vec<Field> =
            (0..1 + random.below(4)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let arrow_schema = Arc::new(Schema::new(fields));
        let pieces = random.pieces(&arrow_schema);
        if pieces.iter().all(|piece| piece.num_rows() == 0) {
            continue;
        }
        let schema = schema_from_arrow(&arrow_schema).unwrap();
        let pieces: Vec<_> = pieces.iter().map(|piece| batch_from_arrow(piece).unwrap()).collect();
        for compression in
            [Compression::None, Compression::Symbols, Compression::Lz4, Compression::Zstd(1)]
        {
            let context = format!("seed {seed}, {compression:?}, schema {arrow_schema}");
            let chunk = write(&schema, &pieces, compression, Checksum::None, ChunkKind::Regular)
                .unwrap()
                .to_bytes(0);
            let (header, expected) = read(&chunk, &schema, &Limits::default()).unwrap();
            let body_at = chunk.len() - header.body_bytes as usize;
            let descriptors = &chunk[HEADER_BYTES..body_at];
            // An allocation of its own, so that it shows who refers to it.
            let body = Bytes::from(chunk[body_at..].to_vec());
            let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
            for copies_plain in [false, true] {
                let mut source = Source { copies_plain, source_bytes: 0 };
                let found = decode(
                    &header,
                    &schema,
                    descriptors,
                    &body,
                    &Tables::default(),
                    Some(&mut source),
                    None,
                )
                .expect(&context);
                assert!(found.columns == expected.columns, "{context}");
                source_bytes += source.source_bytes;
                let found = decoder
                    .decode(
                        &header,
                        descriptors,
                        &body,
                        &Tables::default(),
                        Some(&mut source),
                        None,
                    )
                    .expect(&context);
                found
                    .columns()
                    .iter()
                    .for_each(|column| column.to_data().validate_full().expect(&context));
            }
            let mut source = Source { copies_plain: true, source_bytes: 0 };
            let _kept = decode(
                &header,
                &schema,
                descriptors,
                &body,
                &Tables::default(),
                Some(&mut source),
                None,
            )
            .expect(&context);
            assert!(body.is_empty() || body.is_unique(), "something refers to the body, {context}");
        }
    }
    assert!(source_bytes > 1 << 20, "{source_bytes} bytes came from the source");
}
