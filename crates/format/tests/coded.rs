//! Strings coded with symbols, decimal floats, and columns relative to others: all kinds of data
//! come back bit for bit, chunk after chunk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{
    Batch, Bitmap, Checksum, ChunkKind, Column, Compression, Encoder, Field, Limits, Profile,
    Schema, Tables, Type, Values, chunk_bytes_bound, decode, read,
};
use random::Random;

fn schema(data_type: Type) -> Arc<Schema> {
    Arc::new(Schema {
        fields: vec![Field { name: "c".into(), data_type, nullable: false, metadata: vec![] }],
    })
}

fn batch(rows: usize, values: Values) -> Batch {
    Batch { rows, columns: vec![Column { rows, validity: None, values }] }
}

fn strings(values: &[Vec<u8>]) -> Batch {
    let mut ends = vec![0u32];
    values.iter().for_each(|value| ends.push(ends[ends.len() - 1] + value.len() as u32));
    let offsets = Bytes::from(ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<_>>());
    batch(values.len(), Values::Bytes { offsets, data: Bytes::from(values.concat()) })
}

/// Writes a batch, reads it back, and returns the names of the last column's encodings and the
/// chunk's size.
fn through(encoder: &mut Encoder, schema: &Schema, batch: &Batch) -> (Vec<&'static str>, u64) {
    through_with(Compression::Symbols, encoder, schema, batch)
}

fn through_with(
    compression: Compression,
    encoder: &mut Encoder,
    schema: &Schema,
    batch: &Batch,
) -> (Vec<&'static str>, u64) {
    let pieces =
        [batch.slice(0, batch.rows / 3), batch.slice(batch.rows / 3, batch.rows - batch.rows / 3)];
    let chunk = encoder.write(&pieces, |_| compression, ChunkKind::Regular).unwrap();
    let plain: u64 = pieces.iter().map(|piece| piece.plain_bytes(0, piece.rows)).sum();
    assert!(chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain));
    let bytes = chunk.to_bytes(0);
    let (header, found) = read(&bytes, schema, &Limits::default()).unwrap();
    assert!(found.columns == batch.columns, "other values came back");
    let mut profile = Profile::default();
    let descriptors = &bytes[64..bytes.len() - header.body_bytes as usize];
    let body = bytes.slice(bytes.len() - header.body_bytes as usize..);
    decode(&header, schema, descriptors, &body, &Tables::default(), None, Some(&mut profile))
        .unwrap();
    (profile.columns[schema.fields.len() - 1].encodings.clone(), chunk.chunk_bytes())
}

fn integers(data_type: &Type, values: &[i64]) -> Column {
    let width = data_type.width().unwrap();
    let bytes: Vec<u8> =
        values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
    let rows = values.len();
    Column { rows, validity: None, values: Values::Fixed { width, bytes: Bytes::from(bytes) } }
}

/// Two columns of a type: arbitrary values, and values that `follow` makes of them.
fn pair(
    random: &mut Random,
    data_type: &Type,
    rows: usize,
    mut follow: impl FnMut(&mut Random, i64) -> i64,
) -> Batch {
    let first: Vec<i64> = (0..rows).map(|_| random.next() as i64).collect();
    let second: Vec<i64> = first.iter().map(|value| follow(random, *value)).collect();
    Batch { rows, columns: vec![integers(data_type, &first), integers(data_type, &second)] }
}

fn schema_of_pair(data_type: &Type) -> Arc<Schema> {
    let field = |name: &str| Field {
        name: name.into(),
        data_type: data_type.clone(),
        nullable: true,
        metadata: vec![],
    };
    Arc::new(Schema { fields: vec![field("a"), field("b")] })
}

#[test]
fn what_follows_another_column_is_relative_to_it() {
    for data_type in [Type::Int16, Type::UInt32, Type::Date32, Type::Int64, Type::UInt64] {
        let schema = schema_of_pair(&data_type);
        let mut random = Random::new(3);
        let mut encoder = Encoder::new(schema.clone(), Checksum::None);
        // Within 30 of the base, wrapping around; or at one of 40 distances; or anywhere.
        let near = pair(&mut random, &data_type, 10_000, |random, value| {
            value.wrapping_add(random.below(30) as i64 - 9)
        });
        let distances: Vec<i64> = (0..40).map(|_| random.next() as i64).collect();
        let few = pair(&mut random, &data_type, 10_000, |random, value| {
            value.wrapping_sub(random.pick(&distances))
        });
        let far = pair(&mut random, &data_type, 10_000, |random, _| random.next() as i64);
        for (batch, expected) in
            [(&near, true), (&few, true), (&far, false), (&near, false), (&near, true)]
        {
            let (encodings, bytes) = through(&mut encoder, &schema, batch);
            assert_eq!(encodings.contains(&"relative"), expected, "{data_type:?}: {encodings:?}");
            let one = (batch.plain_bytes(0, batch.rows) / 2) as f64;
            assert!(
                !expected || (bytes as f64) < one + 10_500.0,
                "{data_type:?}: {bytes} bytes of {one} a column"
            );
        }
        // A missing value in the base, or in the other column.
        for of in [0, 1] {
            let mut batch = near.clone();
            let mut bits = vec![0xFF; batch.rows.div_ceil(8)];
            bits[100] = 0xFE;
            let zeroed = match &batch.columns[of].values {
                Values::Fixed { width, bytes } => {
                    let mut bytes = bytes.to_vec();
                    bytes[800 * width..801 * width].fill(0);
                    Values::Fixed { width: *width, bytes: Bytes::from(bytes) }
                }
                other => panic!("{other:?}"),
            };
            let validity = Some(Bitmap { bytes: Bytes::from(bits), offset: 0, len: batch.rows });
            batch.columns[of] = Column { rows: batch.rows, validity, values: zeroed };
            let mut encoder = Encoder::new(schema.clone(), Checksum::None);
            assert!(!through(&mut encoder, &schema, &batch).0.contains(&"relative"));
        }
        for rows in [1, 2, 63, 64, 100, 1025] {
            let few_rows = pair(&mut random, &data_type, rows, |_, value| value.wrapping_add(1));
            through(&mut Encoder::new(schema.clone(), Checksum::None), &schema, &few_rows);
        }
    }
}

fn words(random: &mut Random, n: usize, words: &[&str]) -> Vec<Vec<u8>> {
    let mut line = || {
        (0..random.below(9)).map(|_| random.pick(words)).collect::<Vec<_>>().join(" ").into_bytes()
    };
    (0..n).map(|_| line()).collect()
}

const ENGLISH: &[&str] = &[
    "carefully",
    "furiously",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "the",
    "ironic",
    "accounts",
    "x",
    "é",
    "語",
];
const OTHERS: &[&str] =
    &["https://", "example.org", "/index", ".html", "?id=", "%20", "🐎🐎🐎", "0123456789"];

#[test]
fn symbols_follow_a_stream() {
    let schema = schema(Type::Utf8);
    let mut encoder = Encoder::new(schema.clone(), Checksum::None);
    let mut random = Random::new(1);
    for (round, vocabulary) in [ENGLISH, ENGLISH, OTHERS, OTHERS, ENGLISH].into_iter().enumerate() {
        let rows = strings(&words(&mut random, 20_000, vocabulary));
        let (encodings, bytes) = through(&mut encoder, &schema, &rows);
        assert!(encodings.contains(&"symbols"), "round {round}: {encodings:?}");
        let plain = rows.plain_bytes(0, rows.rows);
        assert!(bytes < plain / 3, "round {round}: {bytes} bytes of {plain}");
    }
    // Too little data for a table, none at all, incompressible data, and words again.
    assert!(
        !through(&mut encoder, &schema, &strings(&words(&mut random, 50, ENGLISH)))
            .0
            .contains(&"symbols")
    );
    through(&mut encoder, &schema, &strings(&[vec![], vec![], b"a".to_vec()]));
    let noise = (0..3000)
        .map(|_| (0..40).map(|_| (random.next() & 0x7F) as u8).collect())
        .collect::<Vec<_>>();
    assert!(!through(&mut encoder, &schema, &strings(&noise)).0.contains(&"symbols"));
    let mut coded = false;
    for _ in 0..5 {
        let rows = strings(&words(&mut random, 20_000, ENGLISH));
        coded |= through(&mut encoder, &schema, &rows).0.contains(&"symbols");
    }
    assert!(coded, "no table after data that none could help");
}

/// Words, the first ones most often.
fn skewed_words(random: &mut Random, n: usize) -> Vec<Vec<u8>> {
    let rank = |random: &mut Random| (0..4).map(|_| random.below(3000)).min().unwrap_or(0);
    (0..n)
        .map(|_| {
            (0..4)
                .map(|_| format!("{:x}", rank(random) * 7919))
                .collect::<Vec<_>>()
                .join("-")
                .into()
        })
        .collect()
}

#[test]
fn frequent_symbols_have_short_codes() {
    let schema = schema(Type::Utf8);
    let mut encoder = Encoder::new(schema.clone(), Checksum::None);
    let mut random = Random::new(5);
    for n in [20_000, 20_001, 20_002, 20_003, 3000] {
        let (encodings, _) =
            through(&mut encoder, &schema, &strings(&skewed_words(&mut random, n)));
        assert!(encodings.contains(&"huffman"), "{n} strings: {encodings:?}");
    }
}

#[test]
fn few_values_have_huffman_codes_where_zstd_may() {
    let decimals = Type::Decimal128 { precision: 38, scale: 2 };
    for data_type in [Type::Int8, Type::UInt16, Type::Date32, Type::Float64, Type::UInt64, decimals]
    {
        let schema = schema(data_type.clone());
        let width = data_type.width().unwrap();
        let mut random = Random::new(11);
        for (kinds, skew) in [(3, 2), (11, 1), (200, 3), (2526, 1), (4096, 2), (4097, 4)] {
            let kinds = if width == 1 { kinds.min(200) } else { kinds };
            let mut kind = |_| (0..skew).map(|_| random.below(kinds)).min().unwrap_or(0) as i64;
            let near_the_end = if width == 1 { -100 } else { -1000 };
            let values: Vec<u8> = (0..20_001)
                .map(|_| (kind(()) + near_the_end) as i128)
                .flat_map(|value| value.to_le_bytes()[..width].to_vec())
                .collect();
            let batch = batch(20_001, Values::Fixed { width, bytes: Bytes::from(values) });
            let encoder = || Encoder::new(schema.clone(), Checksum::Crc32c);
            let (encodings, bytes) =
                through_with(Compression::Zstd(1), &mut encoder(), &schema, &batch);
            let (before, bytes_before) =
                through_with(Compression::Light, &mut encoder(), &schema, &batch);
            assert!(bytes <= bytes_before && !before.contains(&"huffman"));
            // Differences that wrap, and those of a float's bits, are far apart unless they repeat.
            let ordered = !matches!(data_type, Type::Float64 | Type::UInt16 | Type::UInt64);
            // Values of whole bytes are left to the compressor.
            let expected = ordered && kinds < 4000 && (width > 1 || kinds < 100);
            assert!(
                !expected || encodings.contains(&"huffman"),
                "{data_type:?}, {kinds}: {encodings:?}"
            );
        }
    }
}

#[test]
fn any_bytes_come_back_from_symbols() {
    let schema = schema(Type::Binary);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut encoder = Encoder::new(schema.clone(), Checksum::None);
        // A few to all bytes, in strings that repeat, and in strings longer than any symbol.
        let alphabet = random.pick(&[1, 2, 3, 17, 256]);
        let period = random.pick(&[1, 2, 3, 7, 16, 17, 1000]);
        let parts: Vec<Vec<u8>> = (0..random.pick(&[1, 5, 300, 5000]))
            .map(|_| (0..random.below(24)).map(|_| random.below(alphabet) as u8).collect())
            .collect();
        for _ in 0..3 {
            let values: Vec<Vec<u8>> = (0..random.pick(&[1, 2, 500, 4000]))
                .map(|i| match random.below(3) {
                    0 => random.pick(&parts),
                    1 => (0..random.below(100)).map(|j| ((i + j) % period) as u8).collect(),
                    _ => [random.pick(&parts), random.pick(&parts)].concat(),
                })
                .collect();
            through(&mut encoder, &schema, &strings(&values));
        }
    }
}

fn float64s(values: &[f64]) -> Batch {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    batch(values.len(), Values::Fixed { width: 8, bytes: Bytes::from(bytes) })
}

fn float32s(values: &[f32]) -> Batch {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    batch(values.len(), Values::Fixed { width: 4, bytes: Bytes::from(bytes) })
}

const ODD: [f64; 16] = [
    -0.0,
    f64::NAN,
    f64::from_bits(0xFFF4_0000_0000_0123),
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    0.1 + 0.2,
    std::f64::consts::PI,
    9_007_199_254_740_993.0,
    1_125_899_906_842_624.0,
    -1_125_899_906_842_624.5,
    1e22,
    1e-22,
];

#[test]
fn damaged_chunks_are_refused_or_decode() {
    let mut random = Random::new(9);
    let of_strings = schema(Type::Utf8);
    let of_floats = schema(Type::Float64);
    let prices: Vec<f64> = (0..2000)
        .map(|i| if i % 90 == 0 { ODD[i / 90 % 16] } else { random.below(99_999) as f64 / 100.0 })
        .collect();
    let dates = pair(&mut random, &Type::Date32, 2000, |random, value| {
        value.wrapping_add(random.below(30) as i64)
    });
    let chunks = [
        (schema_of_pair(&Type::Date32), dates, "relative"),
        (of_strings, strings(&words(&mut random, 2000, ENGLISH)), "symbols"),
        (of_floats, float64s(&prices), "decimals"),
        (schema(Type::Utf8), strings(&skewed_words(&mut random, 5000)), "huffman"),
    ];
    for (schema, batch, encoding) in chunks {
        let mut encoder = Encoder::new(schema.clone(), Checksum::None);
        assert!(through(&mut encoder, &schema, &batch).0.contains(&encoding));
        let chunk = encoder
            .write(&[batch], |_| Compression::Symbols, ChunkKind::Regular)
            .unwrap()
            .to_bytes(0);
        for _ in 0..5000 {
            let mut damaged = chunk.to_vec();
            for _ in 0..1 + random.below(3) {
                // The first bytes matter most.
                let at = 64
                    + random
                        .below(damaged.len() - 64)
                        .min(random.below(damaged.len() - 64))
                        .min(random.below(256));
                damaged[at] ^= 1 << random.below(8);
            }
            if let Ok((header, found)) = read(&Bytes::from(damaged), &schema, &Limits::default()) {
                assert_eq!(header.rows as usize, found.rows);
            }
        }
    }
}

#[test]
fn decimals_come_back_bit_for_bit() {
    let (of_64, of_32) = (schema(Type::Float64), schema(Type::Float32));
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let power = 10f64.powi(random.below(20) as i32);
        let magnitude = random.below(50) as u32;
        let odd_share = random.pick(&[0, 0, 1, 3, 40]);
        let values: Vec<f64> = (0..random.pick(&[1, 3, 1000, 5000]))
            .map(|_| {
                let integer = (random.next() as i64 >> (63 - magnitude)) as f64;
                if random.below(100) < odd_share { random.pick(&ODD) } else { integer / power }
            })
            .collect();
        through(&mut Encoder::new(of_64.clone(), Checksum::None), &of_64, &float64s(&values));
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        through(&mut Encoder::new(of_32.clone(), Checksum::None), &of_32, &float32s(&values));
    }
}

#[test]
fn prices_are_decimals() {
    let mut random = Random::new(5);
    let mut prices: Vec<f64> =
        (0..10_000).map(|_| random.below(1_000_000) as f64 / 100.0).collect();
    let of_64 = schema(Type::Float64);
    for (odd, per_value) in [(0, 2.6), (30, 2.7)] {
        (0..odd).for_each(|i| prices[i * 300 + 7] = ODD[i % ODD.len()]);
        let (encodings, bytes) =
            through(&mut Encoder::new(of_64.clone(), Checksum::None), &of_64, &float64s(&prices));
        assert!(encodings.contains(&"decimals"), "{encodings:?}");
        assert!((bytes as f64) < per_value * 10_000.0, "{bytes} bytes");
    }
    let small: Vec<f32> = prices.iter().map(|price| *price as f32).collect();
    let of_32 = schema(Type::Float32);
    let (encodings, _) =
        through(&mut Encoder::new(of_32.clone(), Checksum::None), &of_32, &float32s(&small));
    assert!(encodings.contains(&"decimals"), "{encodings:?}");
    // Real numbers stay as they are.
    let reals: Vec<f64> = (0..10_000).map(|i| f64::from(i).sqrt()).collect();
    let (encodings, _) =
        through(&mut Encoder::new(of_64.clone(), Checksum::None), &of_64, &float64s(&reals));
    assert!(!encodings.contains(&"decimals"), "{encodings:?}");
}
