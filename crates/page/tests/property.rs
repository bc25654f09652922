//! Random schemas and batches through pages and back, with Arrow's equality as the oracle; and
//! pages with a few bytes changed.
//!
//! Each round prints nothing unless it fails; then the seed is in the message, and `DRAY_SEED=n`
//! runs it alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Checksum, ChunkKind, Compression, Limits, write};
use dray_page::{
    ColumnsBuilder, Error, ErrorKind, Fields as Values, Layout, Object, PageBuilder, PagePool,
    Value, VerifiedPage,
};
use random::{Random, for_seeds};

const BYTES_MAX: u64 = 64 << 20;

fn random_schema(random: &mut Random) -> SchemaRef {
    loop {
        let fields: Vec<Field> =
            (0..1 + random.below(5)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        // Dictionaries are cast to compare them, and Arrow's casts lose the count of lists of size
        // 0.
        let types = format!("{fields:?}");
        if !types.contains("Dictionary(") || !types.contains(", 0)") {
            return Arc::new(Schema::new(fields));
        }
    }
}

/// The rows of a batch in Arrow, with dictionaries as their values.
fn to_arrow(schema: &dray_format::Schema, batch: &Batch) -> Vec<ArrayRef> {
    if batch.rows == 0 {
        return Vec::new();
    }
    let chunk = write(
        schema,
        std::slice::from_ref(batch),
        Compression::None,
        Checksum::None,
        ChunkKind::Regular,
    )
    .unwrap()
    .to_bytes(0);
    let limits =
        Limits { decoded_bytes_max: 1 << 30, chunk_bytes_max: 1 << 30, ..Limits::default() };
    let (_, rows) =
        Decoder::new(schema.clone(), StringLayout::Offsets).read(&chunk, &limits).unwrap();
    rows.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    rows.columns().iter().map(plain).collect()
}

fn plain(column: &ArrayRef) -> ArrayRef {
    if plain_type(column.data_type()) == *column.data_type() {
        return column.clone();
    }
    // Arrow refuses to cast a missing struct with an empty dictionary in it. These are compared
    // uncast.
    cast(column, &plain_type(column.data_type())).unwrap_or_else(|_| column.clone())
}

fn plain_type(data_type: &DataType) -> DataType {
    use DataType::*;
    let plain = |field: &Arc<Field>| {
        Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())))
    };
    match data_type {
        Dictionary(_, value) => plain_type(value),
        List(item) => List(plain(item)),
        FixedSizeList(item, size) => FixedSizeList(plain(item), *size),
        Struct(fields) => Struct(fields.iter().map(plain).collect::<Fields>()),
        Map(entries, sorted) => Map(plain(entries), *sorted),
        other => other.clone(),
    }
}

fn back<'a>(
    layout: &Arc<Layout>,
    objects: impl IntoIterator<Item = Object<'a>>,
) -> Result<Batch, Error> {
    let mut columns = ColumnsBuilder::new(layout.clone(), BYTES_MAX);
    columns.append(objects)?;
    Ok(columns.finish())
}

fn pages_of(
    layout: &Arc<Layout>,
    batches: &[Batch],
    page_bytes: usize,
    checksums: bool,
) -> Vec<VerifiedPage> {
    let mut builder = PageBuilder::new(layout.clone(), page_bytes, checksums.into()).unwrap();
    batches.iter().for_each(|batch| builder.append(batch).unwrap());
    builder.finish()
}

#[test]
fn batches_come_back() {
    for_seeds(300, |seed| {
        let mut random = Random::new(seed);
        let arrow_schema = random_schema(&mut random);
        let pieces = random.pieces(&arrow_schema);
        let context = format!("seed {seed}, schema {arrow_schema}");
        let schema = schema_from_arrow(&arrow_schema).unwrap();
        let layout = Layout::new(schema.clone()).unwrap();
        let batches: Vec<Batch> =
            pieces.iter().map(|piece| batch_from_arrow(piece).unwrap()).collect();
        let page_bytes = random.pick(&[4 << 10, 16 << 10, 256 << 10]);
        let pages = pages_of(&layout, &batches, page_bytes, random.below(2) == 1);

        let rows: usize = pieces.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(pages.iter().map(VerifiedPage::len).sum::<usize>(), rows, "{context}");
        for (i, page) in pages.iter().enumerate() {
            assert_eq!(page.header().sequence, i as u64, "{context}");
            assert_eq!(page.bytes().as_ptr().align_offset(64), 0, "{context}");
            let verified = VerifiedPage::verify(&layout, page.bytes().clone())
                .unwrap_or_else(|e| panic!("{e}, {context}"));
            assert_eq!(verified.header(), page.header(), "{context}");
        }

        // One batch after the other, from the pages in order.
        let mut objects = pages.iter().flat_map(VerifiedPage::objects);
        for batch in &batches {
            let found = back(&layout, objects.by_ref().take(batch.rows)).unwrap();
            assert_eq!(found.rows, batch.rows, "{context}");
            assert_eq!(to_arrow(&schema, &found), to_arrow(&schema, batch), "{context}");
        }

        // Copied in another order and built again from columns: the bytes are the same.
        let mut order: Vec<Object<'_>> = pages.iter().flat_map(VerifiedPage::objects).collect();
        (1..order.len()).for_each(|i| order.swap(i, random.below(i + 1)));
        let mut builder = PageBuilder::new(layout.clone(), page_bytes, Checksum::None).unwrap();
        order.iter().for_each(|object| builder.copy(*object).unwrap());
        let copies = builder.finish();
        let shuffled = back(&layout, order.iter().copied()).unwrap();
        let again = pages_of(&layout, &[shuffled], page_bytes, false);
        assert_eq!(copies.len(), again.len(), "{context}");
        for (copy, again) in copies.iter().zip(&again) {
            assert_eq!(copy.bytes(), again.bytes(), "{context}");
            VerifiedPage::verify(&layout, copy.bytes().clone())
                .unwrap_or_else(|error| panic!("{error}, {context}"));
        }

        // Some copied and others from columns, in memory that was used before: the bytes are the
        // same.
        let pool = PagePool::new(page_bytes, 4 * page_bytes);
        let soil = |room: &mut [u8]| {
            room.fill(0xAA);
            Ok::<(), Error>(())
        };
        let soiled: Vec<Bytes> = copies.iter().map(|_| pool.fill(soil).unwrap()).collect();
        drop(soiled);
        let mut builder = PageBuilder::with_pool(layout.clone(), &pool, Checksum::None).unwrap();
        let (copied, others) = order.split_at(random.below(order.len() + 1));
        copied.iter().for_each(|object| builder.copy(*object).unwrap());
        builder.append(&back(&layout, others.iter().copied()).unwrap()).unwrap();
        let mixed = builder.finish();
        assert_eq!(copies.len(), mixed.len(), "{context}");
        assert!(
            copies.iter().zip(&mixed).all(|(copy, mixed)| copy.bytes() == mixed.bytes()),
            "{context}"
        );
    });
}

/// Reads and counts all values.
fn walk(fields: Values<'_>) -> usize {
    fields.iter().map(walk_value).sum()
}

fn walk_value(value: Value<'_>) -> usize {
    let numbers =
        [value.i8().is_some(), value.u16().is_some(), value.f32().is_some(), value.i64().is_some()];
    let scalars = [
        value.bool().is_some(),
        value.i128().is_some(),
        value.fixed().is_some(),
        value.bytes().is_some(),
    ];
    assert!(value.str().is_none() || value.bytes().is_some());
    let list = value.list().map_or(0, |list| list.iter().take(1 << 16).map(walk_value).sum());
    let fields = value.fields().map_or(0, walk);
    numbers.iter().chain(&scalars).filter(|there| **there).count() + list + fields
}

#[test]
fn damaged_pages_are_refused_or_read() {
    for_seeds(100, |seed| {
        let mut random = Random::new(seed);
        let arrow_schema = random_schema(&mut random);
        let schema = schema_from_arrow(&arrow_schema).unwrap();
        let layout = Layout::new(schema).unwrap();
        let batches: Vec<Batch> = random
            .pieces(&arrow_schema)
            .iter()
            .map(|piece| batch_from_arrow(piece).unwrap())
            .collect();
        let pages = pages_of(&layout, &batches, 4 << 10, false);
        let context = format!("seed {seed}, schema {arrow_schema}");
        for page in pages.iter().take(4) {
            for _ in 0..40 {
                let mut bytes = page.bytes().to_vec();
                for _ in 0..random.pick(&[1, 1, 1, 2, 4]) {
                    let end = random.pick(&[page.header().objects_end as usize, bytes.len()]);
                    let at = random.below(end);
                    match random.below(3) {
                        0 => bytes[at] ^= 1 << random.below(8),
                        1 => bytes[at] = random.next() as u8,
                        _ => bytes[at] = bytes[at].wrapping_add(random.pick(&[1, 8, 255])),
                    }
                }
                let bytes = Bytes::from(bytes);
                let Ok(verified) = VerifiedPage::verify(&layout, bytes.clone()) else { continue };
                verified.objects().for_each(|object| _ = walk(object.fields()));
                match back(&layout, verified.objects()) {
                    // A page that the verifier accepts is the one that a writer makes of the same
                    // values, apart from its number and edition. A moved page has the same objects.
                    Ok(batch) => {
                        let again = pages_of(&layout, &[batch], 4 << 10, false);
                        assert_eq!(again.len(), 1, "{context}");
                        if verified.header().moved {
                            let same = again[0].objects().zip(verified.objects());
                            assert!(same.clone().all(|(a, b)| a.bytes() == b.bytes()), "{context}");
                            assert_eq!(same.len(), verified.len(), "{context}");
                            continue;
                        }
                        assert_eq!(again[0].bytes()[16..32], bytes[16..32], "{context}");
                        assert_eq!(again[0].bytes()[64..], bytes[64..], "{context}");
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Limit, "{context}"),
                }
            }
        }
    });
}

#[test]
fn equal_objects_are_equal_bytes() {
    for_seeds(50, |seed| {
        let mut random = Random::new(seed);
        let arrow_schema = random_schema(&mut random);
        let layout = Layout::new(schema_from_arrow(&arrow_schema).unwrap()).unwrap();
        let columns = arrow_schema
            .fields()
            .iter()
            .map(|field| random.array(field.data_type(), 60, field.is_nullable()));
        let columns: Vec<ArrayRef> = columns.collect();
        let batch = RecordBatch::try_new(arrow_schema.clone(), columns).unwrap();
        let plain: Vec<ArrayRef> = batch.columns().iter().map(plain).collect();
        let pages = pages_of(&layout, &[batch_from_arrow(&batch).unwrap()], 256 << 10, false);
        let objects: Vec<Object<'_>> = pages.iter().flat_map(VerifiedPage::objects).collect();
        for (i, j) in (0..60).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let equal = plain.iter().all(|column| column.slice(i, 1) == column.slice(j, 1));
            assert_eq!(
                objects[i].bytes() == objects[j].bytes(),
                equal,
                "rows {i} and {j}, seed {seed}, {arrow_schema}"
            );
        }
    });
}
