//! Columns of any origin as record batches of any Arrow schema with their types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Int32Array, LargeBinaryArray, LargeListArray, ListArray,
    RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use dray_format::arrow::{
    RetainedMemory, StringLayout, batch_from_arrow, batch_to_arrow, column_from_arrow,
    schema_from_arrow, schema_to_arrow,
};
use dray_format::{Batch, Bitmap, Column, ErrorKind, Values};
use random::Random;

#[test]
fn batches_come_back() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let fields: Vec<Field> =
            (0..1 + random.below(4)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let schema = Arc::new(Schema::new(fields));
        for piece in random.pieces(&schema) {
            let back = batch_to_arrow(batch_from_arrow(&piece).unwrap(), &schema).unwrap();
            assert_eq!(back, piece, "seed {seed}, schema {schema}");
        }
    }
}

fn one(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap()
}

#[test]
fn other_layouts_of_strings_and_lists_come_back() {
    let strings: ArrayRef = Arc::new(StringArray::from(vec![
        Some("short"),
        None,
        Some(""),
        Some("longer than a view"),
    ]));
    let integers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(1), None, Some(2)]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(7)]),
    ]));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let ends = || Arc::new(Field::new("run_ends", DataType::Int32, false));
    let of = |data_type| Arc::new(Field::new("values", data_type, true));
    let dictionary = |value| DataType::Dictionary(Box::new(DataType::Int8), Box::new(value));
    for (array, data_type) in [
        (&strings, DataType::LargeUtf8),
        (&strings, DataType::Utf8View),
        (&strings, dictionary(DataType::Utf8)),
        (&strings, dictionary(DataType::LargeUtf8)),
        (&strings, DataType::RunEndEncoded(ends(), of(DataType::Utf8))),
        (&integers, DataType::RunEndEncoded(ends(), of(DataType::Int32))),
        (&lists, DataType::LargeList(item.clone())),
        (&lists, DataType::ListView(item.clone())),
    ] {
        let batch = one(cast(array, &data_type).unwrap());
        let back = batch_to_arrow(batch_from_arrow(&batch).unwrap(), &batch.schema()).unwrap();
        back.column(0).to_data().validate_full().unwrap();
        assert_eq!(back.schema(), batch.schema());
        let plain = |batch: &RecordBatch| cast(batch.column(0), array.data_type()).unwrap();
        assert_eq!(&plain(&back), &plain(&batch), "{data_type}");
    }
}

fn refused(values: Values, rows: usize, validity: Option<Bitmap>, data_type: DataType) {
    let schema = Arc::new(Schema::new(vec![Field::new("c", data_type.clone(), true)]));
    let batch = Batch { rows, columns: vec![Column { rows, validity, values }] };
    assert!(batch_to_arrow(batch, &schema).is_err(), "{data_type}");
}

#[test]
fn columns_that_arrow_could_not_trust_are_refused() {
    let bytes = |values: &'static [u8]| Bytes::from_static(values);
    let offsets = |ends: &[u32]| {
        Bytes::from(ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<_>>())
    };
    let strings = |ends: &[u32], data| Values::Bytes { offsets: offsets(ends), data: bytes(data) };
    refused(strings(&[0, 1, 2], b"\xC3\xA9"), 2, None, DataType::Utf8);
    refused(strings(&[0, 1, 2], b"\xC3\xA9"), 2, None, DataType::Utf8View);
    refused(strings(&[0, 9, 2], b"ab"), 2, None, DataType::Binary);
    refused(strings(&[0, 1, 3], b"ab"), 2, None, DataType::Utf8);
    refused(strings(&[0, 1], b"ab"), 2, None, DataType::Utf8);
    refused(Values::Fixed { width: 4, bytes: bytes(&[0; 7]) }, 2, None, DataType::Int32);
    refused(Values::Fixed { width: 4, bytes: bytes(&[0; 8]) }, 2, None, DataType::Utf8);
    let bits = |len| Bitmap { bytes: bytes(&[0x7F]), offset: 4, len };
    refused(Values::Boolean(bits(5)), 5, None, DataType::Boolean);
    refused(Values::Fixed { width: 1, bytes: bytes(&[0; 5]) }, 5, Some(bits(5)), DataType::Int8);
    refused(Values::Fixed { width: 1, bytes: bytes(&[0; 5]) }, 5, Some(bits(4)), DataType::Int8);
    let entries = || Box::new(Column { rows: 1, validity: None, values: strings(&[0, 1], b"a") });
    let dictionary = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    refused(
        Values::Dictionary { width: 1, indexes: bytes(&[0, 1]), entries: entries() },
        2,
        None,
        dictionary,
    );
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    refused(
        Values::List { offsets: offsets(&[0, 1, 2]), child: entries() },
        2,
        None,
        DataType::List(item),
    );
    let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Null, true)]));
    assert!(batch_to_arrow(Batch { rows: 2, columns: vec![] }, &schema).is_err());
}

#[test]
fn lists_of_a_slice_take_memory_for_its_items_alone() {
    let views = (0..30_000).map(|item| Some(format!("a longer string {item}")));
    let views: ArrayRef = Arc::new(StringViewArray::from_iter(views));
    let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    let large = LargeListArray::new(
        item.clone(),
        OffsetBuffer::from_repeated_length(3, 10_000),
        views.clone(),
        None,
    );
    let fixed = FixedSizeListArray::new(item.clone(), 3, views.clone(), None);
    let list = ListArray::new(item, OffsetBuffer::from_repeated_length(3, 10_000), views, None);
    let columns: [ArrayRef; 3] = [Arc::new(large), Arc::new(fixed), Arc::new(list)];
    for array in columns {
        let table = RecordBatch::try_from_iter([("l", array)]).unwrap();
        let mut retained = RetainedMemory::new(1 << 20);
        // The offsets of the whole batch are retained once.
        let mut bytes = Vec::new();
        for from in (0..10_000).step_by(1000) {
            let slice = table.slice(from, 1000);
            let mut batch = batch_from_arrow(&slice).unwrap();
            bytes.push(retained.add(&slice, &mut batch).unwrap());
            let items = match &batch.columns[0].values {
                Values::List { child, .. } | Values::FixedList { child, .. } => child,
                other => panic!("{other:?}"),
            };
            assert_eq!(items.rows, 3000);
            let Values::Bytes { data, .. } = &items.values else { panic!("{items:?}") };
            assert!(data.len() <= 3000 * 21, "{}", data.len());
            let schema = schema_from_arrow(&slice.schema()).unwrap();
            let arrow_schema = Arc::new(schema_to_arrow(&schema, StringLayout::default()));
            let back = batch_to_arrow(batch, &arrow_schema).unwrap();
            let plain = cast(slice.column(0), back.column(0).data_type()).unwrap();
            assert_eq!(back.column(0), &plain);
        }
        assert!(bytes[1..].iter().all(|bytes| (60_000..80_000).contains(bytes)), "{bytes:?}");
    }
}

#[test]
fn a_slice_of_a_large_array_is_not_too_large() {
    // More bytes than offsets of 32 bits can count, of which the slice has five. They are never
    // written, and so take no memory.
    let end = 3usize << 30;
    let offsets = OffsetBuffer::new(vec![0, end as i64 - 5, end as i64].into());
    let array = LargeBinaryArray::new(offsets, Buffer::from_vec(vec![0u8; end]), None);
    let last: ArrayRef = Arc::new(array.slice(1, 1));
    let column = column_from_arrow(&last).unwrap();
    let Values::Bytes { offsets, data } = column.values else { panic!("{column:?}") };
    assert_eq!((&offsets[..], data.len()), (&[0, 0, 0, 0, 5, 0, 0, 0][..], 5));
    let refused = column_from_arrow(&(Arc::new(array) as ArrayRef)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
}
