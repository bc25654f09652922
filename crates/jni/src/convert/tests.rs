use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int16Array, LargeListArray,
    RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Decimal128Type, Field, Int32Type, Schema};

use super::*;
use crate::spark_types::spark_schema;

fn of(field: Field, array: ArrayRef) -> Result<ArrayRef, String> {
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
    let schema = Arc::new(spark_schema(&batch.schema()).unwrap());
    let converted = convert_batch(&batch, &schema).map_err(|error| format!("{error:?}"))?;
    assert_eq!(converted.num_rows(), batch.num_rows());
    Ok(converted.column(0).clone())
}

fn plain(array: impl Array + 'static) -> Result<ArrayRef, String> {
    of(Field::new("c", array.data_type().clone(), true), Arc::new(array))
}

#[test]
fn integers_without_sign_are_widened() {
    let widened = plain(UInt8Array::from(vec![Some(255), None])).unwrap();
    assert_eq!(widened.as_ref(), &Int16Array::from(vec![Some(255), None]) as &dyn Array);
    let widened = plain(UInt64Array::from(vec![u64::MAX])).unwrap();
    let values: &PrimitiveArray<Decimal128Type> = widened.as_primitive();
    assert_eq!(values.value(0), i128::from(u64::MAX));
}

#[test]
fn uuids_are_text() {
    let bytes = (0..16_u8).map(|i| i * 17).collect::<Vec<_>>();
    let values = [Some(bytes.as_slice()), None].into_iter();
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 16).unwrap();
    let field = Field::new("c", array.data_type().clone(), true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into());
    let expected = StringArray::from(vec![Some("00112233-4455-6677-8899-aabbccddeeff"), None]);
    assert_eq!(of(field, Arc::new(array)).unwrap().as_ref(), &expected as &dyn Array);
}

#[test]
fn bits_begin_at_their_buffers_begin() {
    let bits =
        BooleanArray::from((0..20).map(|i| (i % 3 > 0).then_some(i % 2 == 0)).collect::<Vec<_>>());
    let sliced = bits.slice(5, 9);
    assert_eq!(sliced.offset(), 5);
    let moved = plain(sliced.clone()).unwrap();
    assert_eq!((moved.offset(), moved.as_ref()), (0, &sliced as &dyn Array));
}

#[test]
fn nested_values_are_converted() {
    let items = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    let item = Arc::new(Field::new("item", items.data_type().clone(), true));
    let offsets = OffsetBuffer::new(vec![0_i64, 2, 3].into());
    let lists = plain(LargeListArray::new(item, offsets, items, None)).unwrap();
    assert_eq!(
        lists.as_list::<i32>().value(0).as_ref(),
        &Int16Array::from(vec![1, 2]) as &dyn Array
    );
    let words: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    let expected = StringArray::from(vec![Some("a"), None, Some("a")]);
    assert_eq!(plain(words).unwrap().as_ref(), &expected as &dyn Array);
}

#[test]
fn nothing_is_cut_off() {
    assert!(plain(TimestampNanosecondArray::from(vec![Some(1_000), None])).is_ok());
    let said = plain(TimestampNanosecondArray::from(vec![1_001])).unwrap_err();
    assert!(said.contains("column c has a value of 1001 ns"), "{said}");
}
