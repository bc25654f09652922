//! Arrow arrays through a chunk and back, in every compression.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{
    Batch, Bitmap, Checksum, ChunkKind, Column, Compression, Encoder, HEADER_BYTES, Header, Limits,
    Profile, Tables, Values, chunk_bytes_bound, decode, read, write,
};

fn round_trip(batches: &[RecordBatch]) {
    let schema = schema_from_arrow(&batches[0].schema()).unwrap();
    let pieces: Vec<_> = batches.iter().map(|batch| batch_from_arrow(batch).unwrap()).collect();
    let expected = arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap();
    for compression in [
        Compression::None,
        Compression::Compact,
        Compression::Light,
        Compression::Symbols,
        Compression::Zstd(3),
    ] {
        let chunk =
            write(&schema, &pieces, compression, Checksum::Crc32c, ChunkKind::Regular).unwrap();
        let plain = pieces.iter().map(|piece| piece.plain_bytes(0, piece.rows)).sum();
        assert!(chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain), "{compression:?}");
        let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
        let (_, found) = decoder.read(&chunk.to_bytes(5), &Limits::default()).unwrap();
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
        (
            "b",
            Arc::new(Int64Array::from_iter(
                (0..n).map(|i| (i % 3 != 0).then_some(i64::from(i) * 7 - 100)),
            )),
            true,
        ),
        (
            "c",
            Arc::new(StringArray::from_iter(
                (0..n).map(|i| (i % 5 != 0).then(|| format!("é{}", i % 17))),
            )),
            true,
        ),
        ("d", Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("row {i}")))), false),
        (
            "e",
            Arc::new(BooleanArray::from_iter((0..n).map(|i| (i % 7 != 0).then_some(i % 2 == 0)))),
            true,
        ),
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
    round_trip(std::slice::from_ref(&batch));
    round_trip(&[batch.slice(3, 1000), batch.slice(1003, 17), batch.slice(1020, 3)]);
    round_trip(&[batch.slice(1, 1)]);
}

#[test]
fn nested_columns() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..3000).map(|i| (i % 4 != 0).then(|| (0..i % 5).map(move |j| (j != 2).then_some(i + j)))),
    );
    let strings: ArrayRef =
        Arc::new(StringArray::from_iter((0..3000).map(|i| (i % 6 != 0).then(|| i.to_string()))));
    let ints: ArrayRef = Arc::new(Int32Array::from_iter_values(0..3000));
    let fields =
        vec![Field::new("s", DataType::Utf8, true), Field::new("n", DataType::Int32, false)];
    let nulls = arrow_buffer::NullBuffer::from_iter((0..3000).map(|i| i % 10 != 0));
    let plain = StructArray::new(fields.clone().into(), vec![strings.clone(), ints.clone()], None);
    let dictionary: DictionaryArray<Int32Type> =
        (0..3000).map(|i| (i % 11 != 0).then_some(["a", "bb", ""][i % 3])).collect();
    let mut map =
        builder::MapBuilder::new(None, builder::StringBuilder::new(), builder::Int32Builder::new());
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
    let columns: Vec<ArrayRef> = vec![
        Arc::new(list),
        Arc::new(plain),
        Arc::new(dictionary),
        Arc::new(map),
        Arc::new(masked),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    round_trip(std::slice::from_ref(&batch));
    round_trip(&[batch.slice(5, 700), batch.slice(705, 200)]);
}

fn single(field: Field, array: ArrayRef) -> RecordBatch {
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

/// A struct of one field. Every other struct is missing.
fn half_missing(field: Field, child: ArrayRef) -> ArrayRef {
    let nulls = arrow_buffer::NullBuffer::from_iter((0..child.len()).map(|i| i % 2 == 0));
    Arc::new(StructArray::new(vec![field].into(), vec![child], Some(nulls)))
}

#[test]
fn a_mask_that_a_struct_hands_down_is_within_the_bound() {
    let children: Vec<ArrayRef> = (0..2)
        .map(|_| Arc::new(Int8Array::from_iter_values((0..20_000).map(|i| i as i8))) as _)
        .collect();
    let fields: Vec<Field> =
        (0..2).map(|i| Field::new(format!("f{i}"), DataType::Int8, true)).collect();
    let nulls = arrow_buffer::NullBuffer::from_iter((0..20_000).map(|i| i % 2 == 0));
    let array: ArrayRef = Arc::new(StructArray::new(fields.into(), children, Some(nulls)));
    round_trip(&[single(Field::new("s", array.data_type().clone(), true), array)]);
}

#[test]
fn nested_fields_that_are_not_null_may_stand_in_a_missing_struct() {
    let list: ArrayRef = Arc::new(ListArray::new(
        Arc::new(Field::new("item", DataType::Int32, false)),
        arrow_buffer::OffsetBuffer::from_lengths(vec![2; 100]),
        Arc::new(Int32Array::from_iter_values(0..200)),
        None,
    ));
    let dictionary: ArrayRef =
        Arc::new((0..100).map(|i| ["a", "b"][i % 2]).collect::<DictionaryArray<Int32Type>>());
    for child in [list, dictionary] {
        let field = Field::new("child", child.data_type().clone(), false);
        let inner: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![child], None));
        let array = half_missing(Field::new("inner", inner.data_type().clone(), false), inner);
        round_trip(&[single(Field::new("outer", array.data_type().clone(), true), array)]);
    }
}

#[test]
fn lists_without_any_floats_can_be_encoded() {
    let lists = [Some(vec![]), None, Some(vec![])] as [Option<Vec<Option<f64>>>; 3];
    let array: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<types::Float64Type, _, _>(lists));
    round_trip(&[single(Field::new("l", array.data_type().clone(), true), array)]);
}

#[test]
fn hidden_indexes_of_a_dictionary_without_entries_are_valid_in_arrow() {
    let value = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let fixed = DataType::FixedSizeList(Arc::new(Field::new("item", value, false)), 2);
    round_trip(&[single(Field::new("d", fixed.clone(), true), new_null_array(&fixed, 5))]);
}

#[test]
fn narrow_decimals_are_read_as_wide_ones() {
    let decimals = Decimal128Array::new_null(0).with_precision_and_scale(9, 2).unwrap();
    let schema = Schema::new(vec![Field::new("d", decimals.data_type().clone(), true)]);
    let schema = schema_from_arrow(&schema).unwrap();
    let values =
        |i: i64| [0, -1, 1, i64::from(i32::MIN), i64::from(i32::MAX), i * 7 - 3000][i as usize % 6];
    // No, some or most values are missing, in the tail and in blocks of 1024.
    for (rows, share) in [(5, 1), (2500, 1), (2500, 3), (2500, 97), (1024, 1024)] {
        let present = |i: i64| share == 1 || (i % share == 1) != (share == 3);
        let bits = (0..rows).map(present).collect::<arrow_buffer::BooleanBuffer>();
        let bitmap = Bitmap { bytes: bits.inner().to_vec().into(), offset: 0, len: rows as usize };
        let validity = Some(bitmap).filter(|_| share > 1);
        let column =
            |values: Values| Column { rows: rows as usize, validity: validity.clone(), values };
        let shown = |i: &i64| if present(*i) { i128::from(values(*i)) } else { 0 };
        let wide: Vec<u8> = (0..rows).flat_map(|i| shown(&i).to_le_bytes()).collect();
        let expected = column(Values::Fixed { width: 16, bytes: wide.into() });
        for width in [4, 8] {
            // The values under missing ones are not sent.
            let narrow: Vec<u8> =
                (0..rows).flat_map(|i| values(i).to_le_bytes()[..width].to_vec()).collect();
            let narrow = column(Values::Narrow { width, bytes: narrow.into() });
            let batch = Batch { rows: rows as usize, columns: vec![narrow] };
            let pieces = [batch.slice(0, 3), batch.slice(3, rows as usize - 3)];
            for compression in [Compression::None, Compression::Compact, Compression::Light] {
                let chunk =
                    write(&schema, &pieces, compression, Checksum::Crc32c, ChunkKind::Regular)
                        .unwrap();
                let plain = pieces.iter().map(|piece| piece.plain_bytes(0, piece.rows)).sum();
                assert!(
                    chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain),
                    "{compression:?}"
                );
                assert!(chunk.decoded_bytes() <= plain, "{compression:?}");
                let (_, found) = read(&chunk.to_bytes(0), &schema, &Limits::default()).unwrap();
                assert_eq!(
                    found.columns,
                    std::slice::from_ref(&expected),
                    "{rows} rows, one in {share}, {width}, {compression:?}"
                );
            }
        }
    }
}

#[test]
fn a_fixed_size_list_of_too_many_items_is_an_error() {
    let item = Field::new("item", DataType::Null, true);
    let array = FixedSizeListArray::new(
        Arc::new(item),
        i32::MAX,
        Arc::new(NullArray::new(i32::MAX as usize)),
        None,
    );
    let batch = single(Field::new("l", array.data_type().clone(), true), Arc::new(array));
    let schema = schema_from_arrow(&batch.schema()).unwrap();
    let piece = batch_from_arrow(&batch).unwrap();
    let error = write(
        &schema,
        &[piece.clone(), piece],
        Compression::None,
        Checksum::None,
        ChunkKind::Regular,
    )
    .unwrap_err();
    assert_eq!(error.name(), "limit", "{error}");
}

#[test]
fn a_missing_value_in_a_field_that_is_not_null_is_an_error() {
    let batch = single(
        Field::new("n", DataType::Int32, true),
        Arc::new(Int32Array::from(vec![Some(1), None])),
    );
    let mut schema = schema_from_arrow(&batch.schema()).unwrap();
    schema.fields[0].nullable = false;
    let error = write(
        &schema,
        &[batch_from_arrow(&batch).unwrap()],
        Compression::None,
        Checksum::None,
        ChunkKind::Regular,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"n\" is declared NOT NULL, and 1 of its values are NULL"
    );
}

#[test]
fn a_schema_that_no_reader_takes_is_not_sent() {
    let nested = |levels| {
        (1..levels).fold(DataType::Int8, |item, _| {
            DataType::List(Arc::new(Field::new("item", item, true)))
        })
    };
    for (levels, accepted) in [(32, true), (33, false)] {
        let schema =
            schema_from_arrow(&Schema::new(vec![Field::new("l", nested(levels), true)])).unwrap();
        assert_eq!(schema.encode(&mut Vec::new()).is_ok(), accepted, "{levels} levels");
    }
}

#[test]
fn what_a_column_is_like_decides_its_encoding() {
    let n = 5000i64;
    let random = |i: i64| (i.wrapping_mul(0x5851_F42D_4C95_7F2D) >> 33) & 0xFFFF;
    let columns: Vec<(&str, ArrayRef, &[&str])> = vec![
        (
            "sorted",
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 100 + random(i) % 50))),
            &["delta", "frame"],
        ),
        (
            "falling",
            Arc::new(Int32Array::from_iter_values((0..n as i32).map(|i| -7 * i))),
            &["delta", "constant"],
        ),
        (
            "wrapping",
            Arc::new(UInt16Array::from_iter_values((0..n).map(|i| (i * 40) as u16))),
            &["delta", "constant"],
        ),
        (
            "runs",
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| random(i / 50)))),
            &["runs", "frame"],
        ),
        (
            "floats in runs",
            Arc::new(Float64Array::from_iter_values((0..n).map(|i| random(i / 40) as f64 / 7.0))),
            &["runs"],
        ),
        (
            "decimals in runs",
            Arc::new(Decimal128Array::from_iter_values(
                (0..n).map(|i| i128::from(random(i / 60)) << 70),
            )),
            &["runs"],
        ),
        (
            "far above",
            Arc::new(Int64Array::from_iter_values(
                (0..n).map(|i| if i % 99 == 5 { i64::MAX - i } else { random(i) % 1000 }),
            )),
            &["patched"],
        ),
        (
            "far below",
            Arc::new(Int32Array::from_iter_values(
                (0..n).map(|i| if i % 60 == 7 { -1 } else { 90_000_000 + random(i) as i32 }),
            )),
            &["patched"],
        ),
        (
            "sorted, with leaps",
            Arc::new(UInt32Array::from_iter_values(
                (0..n).map(|i| (i * 3 + random(i) % 3 + i / 700 * 4_000_000) as u32),
            )),
            &["delta", "patched"],
        ),
        (
            "few values",
            Arc::new(Int64Array::from_iter_values(
                (0..n).map(|i| [7, i64::MIN, 1 << 40][i as usize * 7 % 3]),
            )),
            &["dictionary"],
        ),
        (
            "random",
            Arc::new(Int32Array::from_iter_values((0..n).map(|i| random(i) as i32))),
            &["frame"],
        ),
    ];
    for (name, array, encodings) in columns {
        let batch = RecordBatch::try_from_iter([(name, array)]).unwrap();
        round_trip(&[batch.slice(0, 3000), batch.slice(3000, 2000)]);
        let schema = schema_from_arrow(&batch.schema()).unwrap();
        let chunk = write(
            &schema,
            &[batch_from_arrow(&batch).unwrap()],
            Compression::Light,
            Checksum::Crc32c,
            ChunkKind::Regular,
        )
        .unwrap()
        .to_bytes(0);
        let mut profile = Profile::default();
        let (raw, rest) = chunk.split_first_chunk::<HEADER_BYTES>().unwrap();
        let header = Header::decode(raw, &Limits::default()).unwrap();
        let (descriptors, _) = rest.split_at(rest.len() - header.body_bytes as usize);
        let body = chunk.slice(chunk.len() - header.body_bytes as usize..);
        decode(&header, &schema, descriptors, &body, &Tables::default(), None, Some(&mut profile))
            .unwrap();
        let found = &profile.columns[0].encodings;
        assert!(encodings.iter().all(|encoding| found.contains(encoding)), "{name}: {found:?}");
        assert!(
            chunk.len() < batch.column(0).get_array_memory_size() * 2 / 3,
            "{name}: {} bytes",
            chunk.len()
        );
    }
}

#[test]
fn a_column_that_changes_its_nature_comes_back_chunk_after_chunk() {
    let n = 3000i64;
    let random = |i: i64| (i.wrapping_mul(0x5851_F42D_4C95_7F2D) >> 33) & 0xFFFF_FFFF;
    let numbers: [&dyn Fn(i64) -> i64; 5] =
        [&|i| i, &|i| random(i / 50), &|i| (random(i) % 9) << 40, &random, &|i| {
            if i % 50 == 3 { i << 45 } else { i % 7 }
        }];
    let texts: [&dyn Fn(i64) -> String; 5] = [
        &|i| format!("{}", (b'a' + (i % 3) as u8) as char),
        &|i| "x".repeat((random(i) % 30) as usize),
        &|i| format!("{:040}", i % 11),
        &|i| random(i).to_string(),
        &|_| String::new(),
    ];
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, false),
        Field::new("d", DataType::Decimal128(38, 0), false),
        Field::new("t", DataType::Utf8, false),
    ]);
    let schema = Arc::new(schema);
    let sent = Arc::new(schema_from_arrow(&schema).unwrap());
    let decoder = Decoder::new(sent.clone(), StringLayout::Offsets);
    let mut encoder = Encoder::new(sent, Checksum::Crc32c);
    for chunk in 0..60usize {
        let (number, text) = (numbers[chunk / 3 % 5], texts[chunk / 4 % 5]);
        // Every other time the decimals need all their bits, or are near each other and far from
        // zero.
        let wide =
            |i| i128::from(number(i)) * [1, -1, 1 << 64, 3][chunk % 4] + [0, 1 << 100][chunk % 2];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..n).map(number))),
            Arc::new(
                Decimal128Array::from_iter_values((0..n).map(wide))
                    .with_precision_and_scale(38, 0)
                    .unwrap(),
            ),
            Arc::new(StringArray::from_iter_values((0..n).map(text))),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        let written = encoder
            .write(&[batch_from_arrow(&batch).unwrap()], |_| Compression::Light, ChunkKind::Regular)
            .unwrap();
        let (_, back) = decoder.read(&written.to_bytes(0), &Limits::default()).unwrap();
        assert_eq!(back.columns(), batch.columns(), "chunk {chunk}");
    }
}

#[test]
fn lists_are_sent_with_their_lengths() {
    let lists = (0..4000).map(|i| Some((0..i % 4).map(Some).collect::<Vec<_>>()));
    let array: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let batch = RecordBatch::try_from_iter([("l", array)]).unwrap();
    round_trip(&[batch.slice(0, 1000), batch.slice(1000, 3000)]);
    let schema = schema_from_arrow(&batch.schema()).unwrap();
    let chunk = write(
        &schema,
        &[batch_from_arrow(&batch).unwrap()],
        Compression::Light,
        Checksum::None,
        ChunkKind::Regular,
    )
    .unwrap();
    // Two bits per length and two per item.
    assert!(chunk.chunk_bytes() < 2 * 4000 * 2 / 8 * 3 / 2, "{} bytes", chunk.chunk_bytes());
}
