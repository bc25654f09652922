//! Chunks decoded into memory that the caller lends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{Compression, HEADER_BYTES, Limits, Memory, Piece, Tables, decode, read, write};
use random::Random;

/// Lends memory full of old bytes.
#[derive(Default)]
struct Lender {
    takes_plain: bool,
    lent_bytes: usize,
}

struct Lent(Vec<u8>);

impl Memory for Lender {
    fn piece(&mut self, bytes: usize) -> Option<Box<dyn Piece>> {
        self.lent_bytes += bytes;
        Some(Box::new(Lent(vec![0xA5; bytes])))
    }

    fn takes_plain(&self) -> bool {
        self.takes_plain
    }
}

// SAFETY: both functions speak of the one vector.
unsafe impl Piece for Lent {
    fn room(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn into_bytes(self: Box<Self>) -> Bytes {
        Bytes::from(self.0)
    }
}

#[test]
fn lent_memory_holds_the_same_columns() {
    let mut lent_bytes = 0;
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
            let chunk = write(&schema, &pieces, compression, false, false).unwrap().to_bytes(0);
            let (header, expected) = read(&chunk, &schema, &Limits::default()).unwrap();
            let body_at = chunk.len() - header.body_bytes as usize;
            let descriptors = &chunk[HEADER_BYTES..body_at];
            // An allocation of its own, so that it shows who refers to it.
            let body = Bytes::from(chunk[body_at..].to_vec());
            let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
            for takes_plain in [false, true] {
                let mut lender = Lender { takes_plain, lent_bytes: 0 };
                let found = decode(
                    &header,
                    &schema,
                    descriptors,
                    &body,
                    &Tables::default(),
                    Some(&mut lender),
                    None,
                )
                .expect(&context);
                assert!(found.columns == expected.columns, "{context}");
                lent_bytes += lender.lent_bytes;
                let found = decoder
                    .decode(
                        &header,
                        descriptors,
                        &body,
                        &Tables::default(),
                        Some(&mut lender),
                        None,
                    )
                    .expect(&context);
                found
                    .columns()
                    .iter()
                    .for_each(|column| column.to_data().validate_full().expect(&context));
            }
            let mut lender = Lender { takes_plain: true, lent_bytes: 0 };
            let _kept = decode(
                &header,
                &schema,
                descriptors,
                &body,
                &Tables::default(),
                Some(&mut lender),
                None,
            )
            .expect(&context);
            assert!(body.is_empty() || body.is_unique(), "something refers to the body, {context}");
        }
    }
    assert!(lent_bytes > 1 << 20, "{lent_bytes} bytes were lent");
}
