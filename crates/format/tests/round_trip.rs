//! Arrow arrays through a chunk and back, in every compression.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use dray_format::arrow::{StringLayout, batch_from_arrow, batch_to_arrow, schema_from_arrow, schema_to_arrow};
use dray_format::{Compression, Limits, chunk_bytes_bound, read, write};

fn round_trip(batches: &[RecordBatch]) {
    let schema = schema_from_arrow(&batches[0].schema()).unwrap();
    let pieces: Vec<_> = batches.iter().map(|batch| batch_from_arrow(batch).unwrap()).collect();
    let expected = arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap();
    for compression in [Compression::None, Compression::Light, Compression::Zstd(3)] {
        let chunk = write(&schema, &pieces, compression, true, false).unwrap();
        let plain = pieces.iter().map(|piece| piece.plain_bytes(0, piece.rows)).sum();
        assert!(chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain), "{compression:?}");
        let (_, batch) = read(&chunk.to_bytes(5), &schema, &Limits::default()).unwrap();
        let arrow_schema = Arc::new(schema_to_arrow(&schema, StringLayout::Offsets));
        let found = batch_to_arrow(batch, &arrow_schema).unwrap();
        for column in found.columns() {
            column.to_data().validate_full().unwrap();
        }
        assert_eq!(found, expected, "{compression:?}");
    }
}

#[test]
fn flat_columns() {
    let n = 5000;
    let batch = RecordBatch::try_from_iter_with_nullable(vec![
        ("a", Arc::new(Int32Array::from_iter_values(0..n)) as ArrayRef, false),
        ("b", Arc::new(Int64Array::from_iter((0..n).map(|i| (i % 3 != 0).then_some(i64::from(i) * 7 - 100)))), true),
        ("c", Arc::new(StringArray::from_iter((0..n).map(|i| (i % 5 != 0).then(|| format!("é{}", i % 17))))), true),
        ("d", Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("row {i}")))), false),
        ("e", Arc::new(BooleanArray::from_iter((0..n).map(|i| (i % 7 != 0).then_some(i % 2 == 0)))), true),
        ("f", Arc::new(Float64Array::from_iter_values((0..n).map(|i| f64::from(i) / 3.0))), false),
        (
            "g",
            Arc::new(
                Decimal128Array::from_iter_values((0..n).map(|i| i128::from(i) - 9))
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
            false,
        ),
        ("h", Arc::new(NullArray::new(n as usize)), true),
        ("i", Arc::new(Int16Array::from_iter_values((0..n).map(|_| 5))), false),
        ("j", Arc::new(Int16Array::new_null(n as usize)), true),
        (
            "k",
            Arc::new(Decimal256Array::from_iter_values(
                (0..n).map(|i| arrow_buffer::i256::from_i128(i128::from(i) * -3)),
            )),
            false,
        ),
    ])
    .unwrap();
    round_trip(&[batch.clone()]);
    round_trip(&[batch.slice(3, 1000), batch.slice(1003, 17), batch.slice(1020, 3)]);
    round_trip(&[batch.slice(1, 1)]);
}

#[test]
fn nested_columns() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..3000).map(|i| (i % 4 != 0).then(|| (0..i % 5).map(move |j| (j != 2).then_some(i + j)))),
    );
    let strings: ArrayRef = Arc::new(StringArray::from_iter((0..3000).map(|i| (i % 6 != 0).then(|| i.to_string()))));
    let ints: ArrayRef = Arc::new(Int32Array::from_iter_values(0..3000));
    let fields = vec![Field::new("s", DataType::Utf8, true), Field::new("n", DataType::Int32, false)];
    let nulls = arrow_buffer::NullBuffer::from_iter((0..3000).map(|i| i % 10 != 0));
    let plain = StructArray::new(fields.clone().into(), vec![strings.clone(), ints.clone()], None);
    let dictionary: DictionaryArray<Int32Type> =
        (0..3000).map(|i| (i % 11 != 0).then_some(["a", "bb", ""][i % 3])).collect();
    let mut map = builder::MapBuilder::new(None, builder::StringBuilder::new(), builder::Int32Builder::new());
    for i in 0..3000 {
        for j in 0..i % 3 {
            map.keys().append_value(format!("k{j}"));
            map.values().append_option((j != 1).then_some(i));
        }
        map.append(i % 9 != 0).unwrap();
    }
    let map = map.finish();
    let masked = StructArray::new(fields.into(), vec![strings, ints], Some(nulls));
    let schema = Schema::new(vec![
        Field::new("list", list.data_type().clone(), true),
        Field::new("struct", plain.data_type().clone(), false),
        Field::new("dictionary", dictionary.data_type().clone(), true),
        Field::new("map", map.data_type().clone(), true),
        Field::new("masked", masked.data_type().clone(), true),
    ]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(list), Arc::new(plain), Arc::new(dictionary), Arc::new(map), Arc::new(masked)];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    round_trip(&[batch.clone()]);
    round_trip(&[batch.slice(5, 700), batch.slice(705, 200)]);
}
