//! Random streams in pieces of any size, and with a few bytes changed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Int32Array, NullArray, RecordBatch,
    RunArray, StringArray, StringViewArray, Time32SecondArray, make_array,
};
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use dray_bridge::stream::{Decoder, Part, StreamError, StreamLimits};
use random::{Random, for_seeds};

const LIMITS: StreamLimits = StreamLimits { batch_rows: 1500, body_bytes: 8 << 20 };

/// Random times are not within a day, and random decimals have more digits than their types.
fn random_schema(random: &mut Random) -> SchemaRef {
    loop {
        let fields = (0..1 + random.below(4)).map(|i| random.field(&format!("c{i}"), 3));
        let fields: Vec<Field> = fields.collect();
        let types = format!("{fields:?}");
        if !types.contains("Time32") && !types.contains("Time64") && !types.contains("Decimal") {
            return Arc::new(Schema::new(fields));
        }
    }
}

fn encode(schema: &Schema, batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// What a stream holds, and whether it ended.
fn decode(
    random: &mut Random,
    mut bytes: &[u8],
) -> Result<(Option<SchemaRef>, Vec<RecordBatch>, bool), StreamError> {
    let mut decoder = Decoder::new(LIMITS);
    let (mut schema, mut batches) = (None, Vec::new());
    let piece = random.pick(&[1, 7, 4096, 1 << 20]);
    while !bytes.is_empty() {
        let (mut next, rest) = bytes.split_at(piece.min(bytes.len()));
        bytes = rest;
        while let Some(part) = decoder.next(&mut next)? {
            match part {
                Part::Schema(found) => assert!(schema.replace(found).is_none()),
                Part::Batch(batch) => batches.push(batch),
                Part::End => assert!(decoder.has_ended()),
            }
        }
    }
    Ok((schema, batches, decoder.has_ended()))
}

#[test]
fn streams_come_back() {
    for_seeds(200, |seed| {
        let mut random = Random::new(seed);
        let schema = random_schema(&mut random);
        let batches = random.pieces(&schema);
        let bytes = encode(&schema, &batches);
        let (found, decoded, has_ended) =
            decode(&mut random, &bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(has_ended && found == Some(schema), "seed {seed}");
        assert_eq!(decoded, batches, "seed {seed}");
        let cut = random.below(bytes.len());
        let ended = decode(&mut random, &bytes[..cut]).is_ok_and(|(_, _, ended)| ended);
        assert!(!ended, "seed {seed}");
    });
}

#[test]
fn changed_streams_are_refused_or_valid() {
    // Arrow's decoder panics on some, which is caught.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or("", |location| location.file());
        if !place.contains("arrow-") {
            report(panic);
        }
    }));
    for_seeds(500, |seed| {
        let mut random = Random::new(seed);
        let schema = random_schema(&mut random);
        let batches = random.pieces(&schema);
        let mut bytes = encode(&schema, &batches);
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.pick(&[0, 1, 0x7F, 0x80, 0xFF, random_byte(seed)]);
        }
        if let Ok((_, batches, _)) = decode(&mut random, &bytes) {
            let columns = batches.iter().flat_map(|batch| batch.columns());
            columns.for_each(|column| column.to_data().validate_full().unwrap());
        }
    });
}

fn random_byte(seed: u64) -> u8 {
    Random::new(seed).next() as u8
}

fn refused(column: ArrayRef) -> String {
    let schema = Schema::new(vec![Field::new("c", column.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap();
    let bytes = encode(&batch.schema(), &[batch]);
    decode(&mut Random::new(1), &bytes).unwrap_err().to_string()
}

#[test]
fn values_that_types_do_not_hold() {
    let decimals = Decimal128Array::from(vec![12345]).with_precision_and_scale(5, 2).unwrap();
    let data = decimals.into_data().into_builder().data_type(DataType::Decimal128(4, 2));
    assert!(refused(make_array(data.build().unwrap())).contains("123.45"));
    let times = Time32SecondArray::from(vec![0, 86_400]);
    assert!(refused(Arc::new(times)).contains("within a day"));
    // Many views to the same bytes.
    let one = StringViewArray::from(vec!["x".repeat(50_000).as_str()]);
    let views = vec![one.views()[0]; 1000];
    let many = StringViewArray::new(views.into(), one.data_buffers().to_vec(), None);
    assert!(refused(Arc::new(many)).contains("a column of 50000000 bytes"));
}

#[test]
fn limits_come_before_memory() {
    let schema = Schema::new(vec![Field::new("c", DataType::Null, true)]);
    let nulls = |rows| -> ArrayRef { Arc::new(NullArray::new(rows)) };
    let batch = |rows| RecordBatch::try_new(Arc::new(schema.clone()), vec![nulls(rows)]).unwrap();
    let mut random = Random::new(1);
    assert!(decode(&mut random, &encode(&schema, &[batch(1500)])).is_ok());
    let many = decode(&mut random, &encode(&schema, &[batch(1501)])).unwrap_err();
    assert!(many.to_string().contains("1501 rows"));
    let text = StringArray::from(vec!["x".repeat(9 << 20)]);
    assert!(refused(Arc::new(text)).contains("not 8388608 at most"));
}

#[test]
fn what_a_stream_must_not_have() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![7; 1000]));
    let schema = Schema::new(vec![Field::new("c", DataType::Int32, false)]);
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![numbers]).unwrap();
    let mut random = Random::new(1);
    let bytes = encode(&schema, std::slice::from_ref(&batch));
    let twice = [&bytes[..bytes.len() - 8], &bytes].concat();
    assert!(decode(&mut random, &twice).unwrap_err().to_string().contains("a second schema"));
    let after = [&bytes[..], b"\0"].concat();
    assert!(decode(&mut random, &after).unwrap_err().to_string().contains("after the end"));

    let runs = RunArray::try_new(&Int32Array::from(vec![1000]), &StringArray::from(vec!["x"]));
    assert!(refused(Arc::new(runs.unwrap())).contains("of type RunEndEncoded"));

    let delta = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, false)]));
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, delta).unwrap();
    for entries in [vec!["a"], vec!["a", "b"]] {
        let keys = Int32Array::from(vec![0]);
        let entries = Arc::new(StringArray::from(entries));
        let column = DictionaryArray::new(keys, entries);
        writer
            .write(&RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).unwrap())
            .unwrap();
    }
    let bytes = writer.into_inner().unwrap();
    assert!(decode(&mut random, &bytes).unwrap_err().to_string().contains("extends another"));
}
