//! Dictionaries and symbols that last for a stream: its chunks come back unchanged and take less
//! than without them, and a reader that has lost a state frame notices.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dray_format::{
    Batch, Checksum, Chunk, ChunkKind, Column, Compression, DictionaryBudget, Encoder, Field,
    Limits, Schema, Tables, Type, Values, read_with,
};
use random::Random;

const ROWS: usize = 1500;

/// A reader of a stream, and the bytes it received.
#[derive(Default)]
struct Reader {
    tables: Tables,
    limits: Limits,
    chunks: u64,
    bytes: usize,
    state_bytes: usize,
}

impl Reader {
    /// The bytes of a chunk's state frame, if any, and of the chunk, numbered for this reader.
    fn sent(&self, mut chunk: Chunk) -> (Bytes, Bytes) {
        let mut state = BytesMut::new();
        let mut states = self.tables.frames();
        if let Some(frame) = chunk.take_state() {
            let (header, parts) = frame.numbered(states.into());
            state.extend_from_slice(&header);
            parts.iter().for_each(|part| state.extend_from_slice(part));
            states += 1;
        }
        let (header, parts) = chunk.numbered(self.chunks, states);
        let mut bytes = BytesMut::from(&header[..]);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        (state.freeze(), bytes.freeze())
    }

    /// Receives a chunk after its state frame.
    fn take(&mut self, schema: &Schema, chunk: Chunk) -> Batch {
        let (mut state, bytes) = self.sent(chunk);
        self.state_bytes += state.len();
        self.bytes += state.len() + bytes.len();
        self.tables.take(&mut state, &self.limits).unwrap();
        self.chunks += 1;
        read_with(&bytes, schema, &self.limits, &self.tables).unwrap().1
    }
}

fn fixed<const W: usize>(values: impl Iterator<Item = [u8; W]>) -> Column {
    let bytes: Vec<u8> = values.flatten().collect();
    Column {
        rows: bytes.len() / W,
        validity: None,
        values: Values::Fixed { width: W, bytes: bytes.into() },
    }
}

fn strings(values: impl Iterator<Item = String>) -> Column {
    let mut ends = vec![0u32];
    let mut data = Vec::new();
    values.for_each(|value| {
        data.extend_from_slice(value.as_bytes());
        ends.push(data.len() as u32);
    });
    let offsets: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
    let values = Values::Bytes { offsets: offsets.into(), data: data.into() };
    Column { rows: ends.len() - 1, validity: None, values }
}

fn schema() -> Arc<Schema> {
    let types = [
        ("city", Type::Utf8),
        ("code", Type::Binary),
        ("price", Type::Int64),
        ("wide", Type::Decimal128 { precision: 38, scale: 0 }),
        ("text", Type::Utf8),
        ("drifts", Type::Int32),
    ];
    let field = |(name, data_type): (&str, Type)| Field {
        name: name.into(),
        data_type,
        nullable: false,
        metadata: vec![],
    };
    Arc::new(Schema { fields: types.map(field).into() })
}

/// The rows of a chunk: a few values that repeat in another mixture each time, strings of words,
/// and values that never repeat.
fn batch(random: &mut Random, number: usize) -> Batch {
    let [cities, codes, prices, wides] = [250, 40, 100, 60]
        .map(|n| (0..ROWS).map(|_| random.below(n) + number % 3).collect::<Vec<_>>());
    let words = [
        "carefully",
        "furiously",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "the",
        "ironic",
        "accounts",
    ];
    let mut text = || (0..6).map(|_| random.pick(&words)).collect::<Vec<_>>().join(" ");
    let scattered = |i: usize| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let columns = vec![
        strings(cities.iter().map(|i| format!("{:x} é", scattered(*i)))),
        strings(codes.iter().map(|i| format!("{i:03}-{i:05}"))),
        fixed(prices.iter().map(|i| scattered(*i).to_le_bytes())),
        fixed(wides.iter().map(|i| (u128::from(scattered(*i)) << 50).to_le_bytes())),
        strings((0..ROWS).map(|_| text())),
        fixed(
            (0..ROWS)
                .map(|i| ((i / 100 + 20 * number) as u32).wrapping_mul(0x9E37_79B9).to_le_bytes()),
        ),
    ];
    Batch { rows: ROWS, columns }
}

fn budget() -> Arc<DictionaryBudget> {
    Arc::new(DictionaryBudget::new(&Limits::default()))
}

#[test]
fn streams_come_back_and_take_less() {
    for compression in
        [Compression::Light, Compression::Symbols, Compression::Lz4, Compression::Zstd(1)]
    {
        for checksum in [false, true] {
            let schema = schema();
            let mut random = Random::new(7);
            let mut keeping =
                Encoder::new(schema.clone(), checksum.into()).with_dictionaries(budget());
            let mut alone = Encoder::new(schema.clone(), checksum.into());
            let (mut reader, mut other) = (Reader::default(), Reader::default());
            for number in 0..12 {
                let batch = batch(&mut random, number);
                let chunk = keeping
                    .write(std::slice::from_ref(&batch), |_| compression, ChunkKind::Regular)
                    .unwrap();
                assert!(
                    reader.take(&schema, chunk).columns == batch.columns,
                    "{compression:?}, chunk {number}"
                );
                other.take(
                    &schema,
                    alone.write(&[batch], |_| compression, ChunkKind::Regular).unwrap(),
                );
            }
            assert_eq!(other.state_bytes, 0);
            assert!(reader.state_bytes > 0);
            println!(
                "{compression:?}: {} of {} bytes, {} of them tables",
                reader.bytes, other.bytes, reader.state_bytes
            );
            assert!(
                reader.bytes < other.bytes / 20 * 19,
                "{compression:?}: {} and {}",
                reader.bytes,
                other.bytes
            );
        }
    }
}

#[test]
fn encoders_share_a_stream() {
    let schema = schema();
    let budget = budget();
    let mut random = Random::new(8);
    let mut encoders: Vec<_> = (0..3)
        .map(|_| Encoder::new(schema.clone(), Checksum::Crc32c).with_dictionaries(budget.clone()))
        .collect();
    let mut reader = Reader::default();
    for number in 0..12 {
        // Not in the order in which the encoders began.
        let encoder = &mut encoders[[2, 0, 1, 1][number % 4]];
        let batch = batch(&mut random, number);
        let chunk = encoder
            .write(std::slice::from_ref(&batch), |_| Compression::Symbols, ChunkKind::Regular)
            .unwrap();
        assert!(reader.take(&schema, chunk).columns == batch.columns);
    }
}

#[test]
fn tables_keep_within_what_the_reader_holds() {
    let schema = schema();
    let limits = Limits { decoded_bytes_max: 200_000, ..Limits::default() };
    let budget = Arc::new(DictionaryBudget::new(&Limits {
        decoded_bytes_max: 9000,
        chunk_bytes_max: 5000,
        ..limits
    }));
    let mut random = Random::new(9);
    let mut reader =
        Reader { limits: Limits { decoded_bytes_max: 9000, ..limits }, ..Reader::default() };
    let mut encoders: Vec<_> = (0..4)
        .map(|_| Encoder::new(schema.clone(), Checksum::None).with_dictionaries(budget.clone()))
        .collect();
    for number in 0..16 {
        let batch = batch(&mut random, number);
        let mut chunk = encoders[number % 4]
            .write(&[batch], |_| Compression::Symbols, ChunkKind::Regular)
            .unwrap();
        assert!(chunk.state_bytes() <= 5000);
        if let Some(frame) = chunk.take_state() {
            let (header, parts) = frame.numbered(reader.tables.frames().into());
            let mut bytes = Bytes::from([&header[..], &parts.concat()].concat());
            reader.tables.take(&mut bytes, &reader.limits).unwrap();
        }
    }
    assert!(reader.tables.frames() > 0);
}

#[test]
fn one_row_needs_no_tables() {
    let schema = schema();
    let mut encoder = Encoder::new(schema.clone(), Checksum::None).with_dictionaries(budget());
    let mut reader = Reader::default();
    let mut random = Random::new(10);
    for number in 0..6 {
        let batch = batch(&mut random, number);
        let jumbo = number % 2 == 1;
        let kind = if jumbo { ChunkKind::Jumbo } else { ChunkKind::Regular };
        let batch = if jumbo { batch.slice(0, 1) } else { batch };
        let chunk = encoder.write(&[batch], |_| Compression::Symbols, kind).unwrap();
        assert!(!jumbo || chunk.state_bytes() == 0);
        assert_eq!(reader.take(&schema, chunk).rows, if jumbo { 1 } else { ROWS });
    }
}

#[test]
fn what_is_lost_is_noticed() {
    let schema = schema();
    let mut encoder = Encoder::new(schema.clone(), Checksum::Crc32c).with_dictionaries(budget());
    let mut random = Random::new(11);
    let reader = Reader::default();
    let chunk = encoder
        .write(&[batch(&mut random, 0)], |_| Compression::Symbols, ChunkKind::Regular)
        .unwrap();
    let (state, bytes) = reader.sent(chunk);
    let refused = |bytes: &Bytes, tables: &Tables| match read_with(
        bytes,
        &schema,
        &Limits::default(),
        tables,
    ) {
        Err(error) => error.name(),
        Ok(_) => "accepted",
    };
    assert_eq!(refused(&bytes, &Tables::default()), "state");
    let mut tables = Tables::default();
    tables.take(&mut state.clone(), &Limits::default()).unwrap();
    assert_eq!(refused(&bytes, &tables), "accepted");
    // A clone, for a chunk that is decoded later.
    let before = tables.clone();
    tables.take(&mut state.clone(), &Limits::default()).unwrap();
    assert_eq!((refused(&bytes, &tables), refused(&bytes, &before)), ("state", "accepted"));
    let mut damaged = state.to_vec();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    assert_eq!(
        Tables::default().take(&mut damaged.into(), &Limits::default()).unwrap_err().name(),
        "checksum"
    );
}

#[test]
fn damaged_tables_are_refused_or_harmless() {
    let schema = schema();
    let set = std::env::var("DRAY_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seed = set.unwrap_or_else(|| std::process::id().into());
    println!("DRAY_SEED={seed}");
    let mut random = Random::new(seed);
    let mut encoder = Encoder::new(schema.clone(), Checksum::None).with_dictionaries(budget());
    let mut reader = Reader::default();
    let limits = Limits::default();
    for number in 0..4 {
        let chunk = encoder
            .write(&[batch(&mut random, number)], |_| Compression::Symbols, ChunkKind::Regular)
            .unwrap();
        let (state, bytes) = reader.sent(chunk);
        for _ in 0..300 {
            let (mut state, mut bytes) = (state.to_vec(), bytes.to_vec());
            let damaged =
                if random.below(2) == 0 && !state.is_empty() { &mut state } else { &mut bytes };
            for _ in 0..=random.below(3) {
                // The first bytes matter most.
                let at = random.below(damaged.len()).min(random.below(damaged.len()));
                damaged[at] ^= 1 << random.below(8);
            }
            let mut tables = reader.tables.clone();
            if tables.take(&mut Bytes::from(state), &limits).is_ok() {
                let _ = read_with(&Bytes::from(bytes), &schema, &limits, &tables);
            }
        }
        reader.tables.take(&mut state.clone(), &limits).unwrap();
        reader.chunks += 1;
    }
}
