//! Batches in sizes that the server takes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, OffsetSizeTrait, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};

use crate::message::{Failure, FailureKind, Query};

/// `program_limit_exceeded`.
const TOO_LONG: &str = "54000";

/// Passes on a batch in parts as large as the server takes.
///
/// # Errors
/// If a row is too large, or `pass` fails.
pub fn cut(
    batch: &RecordBatch,
    query: &Query,
    pass: &mut dyn FnMut(&RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rows = batch.num_rows();
    let bytes = bytes(batch)?;
    if rows > 1 && (rows > query.batch_rows || bytes > query.batch_bytes) {
        let half = rows / 2;
        cut(&batch.slice(0, half), query, pass)?;
        return cut(&batch.slice(half, rows - half), query, pass);
    }
    if rows == 1 && bytes > query.row_bytes {
        let what = format!(
            "a row needs {bytes} bytes, over the limit of {}; raise row_bytes_max to that",
            query.row_bytes
        );
        return Err(Failure::new(FailureKind::Limit, TOO_LONG, what));
    }
    if rows == 0 { Ok(()) } else { pass(batch) }
}

/// What the rows of a batch take, without what is shared with other rows.
fn bytes(batch: &RecordBatch) -> Result<u64, Failure> {
    let sizes = batch.columns().iter().map(|column| bytes_of(column));
    let bytes = sizes.sum::<Result<usize, _>>().map_err(|cause| internal(&cause.to_string()))?;
    Ok(bytes as u64)
}

/// What the rows of an array take: their own items of what a list has, and of a dictionary none of
/// the values, which are sent once.
fn bytes_of(array: &dyn Array) -> Result<usize, ArrowError> {
    let nested = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            bytes_of_items(list.offsets(), list.values())?
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            bytes_of_items(list.offsets(), list.values())?
        }
        DataType::Map(..) => {
            let map = array.as_map();
            bytes_of_items(map.offsets(), map.entries())?
        }
        DataType::FixedSizeList(..) => bytes_of(array.as_fixed_size_list().values())?,
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| bytes_of(column)).sum::<Result<usize, _>>()?
        }
        DataType::Dictionary(..) => return bytes_of(array.as_any_dictionary().keys()),
        _ => return array.to_data().get_slice_memory_size(),
    };
    let nulls = array.nulls().map_or(0, |_| array.len().div_ceil(8));
    Ok(nulls.saturating_add(nested))
}

fn bytes_of_items<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    items: &dyn Array,
) -> Result<usize, ArrowError> {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    let (start, end) = (at(offsets.first()), at(offsets.last()));
    let items = items.slice(start, end.saturating_sub(start));
    Ok(size_of_val::<[O]>(offsets).saturating_add(bytes_of(&items)?))
}

fn internal(what: &str) -> Failure {
    Failure { usable: false, ..Failure::new(FailureKind::Internal, "", what) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_array::{
        ArrayRef, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, LargeListArray,
        ListArray, StringArray, StructArray,
    };

    use super::*;

    fn query(batch_rows: usize, batch_bytes: u64, row_bytes: u64) -> Query {
        Query {
            sql: String::new(),
            parameters: false,
            plan_only: false,
            batch_rows,
            batch_bytes,
            row_bytes,
        }
    }

    #[test]
    fn parts() {
        let texts = StringArray::from_iter_values((0..100).map(|i| "x".repeat(i)));
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        for (limits, least) in [
            (query(1000, 1 << 20, 1 << 20), 1),
            (query(7, 1 << 20, 1 << 20), 15),
            (query(1000, 500, 500), 11),
        ] {
            let mut parts = Vec::new();
            cut(&batch, &limits, &mut |part| {
                assert!(part.num_rows() <= limits.batch_rows);
                parts.push(part.clone());
                Ok(())
            })
            .unwrap();
            assert!(parts.len() >= least, "{}", parts.len());
            let mut from = 0;
            for part in parts {
                assert_eq!(part, batch.slice(from, part.num_rows()));
                from += part.num_rows();
            }
            assert_eq!(from, batch.num_rows());
        }
        let error = cut(&batch, &query(1000, 50, 50), &mut |_| Ok(())).unwrap_err();
        assert_eq!((error.kind, error.sqlstate.as_str()), (FailureKind::Limit, "54000"));
    }

    /// 1000 rows of 100 integers each take 800 KB, in whatever they are nested.
    #[test]
    fn nested_values_count_for_their_own_rows() {
        let items = || (0..1000).map(|_| Some((0..100).map(Some)));
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(items()));
        let large = LargeListArray::from_iter_primitive::<Int64Type, _, _>(items());
        let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(items(), 100);
        let structs = StructArray::try_from(vec![("list", list.clone())]).unwrap();
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for _ in 0..1000 {
            for key in 0..60 {
                map.keys().append_value(key.to_string());
                map.values().append_value(key);
            }
            map.append(true).unwrap();
        }
        let columns: [ArrayRef; 5] =
            [list, Arc::new(large), Arc::new(fixed), Arc::new(structs), Arc::new(map.finish())];
        for column in columns {
            let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
            let mut parts = Vec::new();
            cut(&batch, &query(65_536, 64 << 10, 4 << 10), &mut |part| {
                parts.push(part.num_rows());
                Ok(())
            })
            .unwrap();
            assert_eq!(parts.iter().sum::<usize>(), 1000);
            assert!((13..=16).contains(&parts.len()), "{parts:?} of {:?}", batch.schema());
        }
    }

    #[test]
    fn a_dictionary_counts_for_no_row() {
        let values = Int64Array::from_iter_values(0..100_000);
        let keys = Int32Array::from_iter_values(0..1000);
        let column: ArrayRef =
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).unwrap());
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let mut parts = 0;
        cut(&batch, &query(65_536, 64 << 10, 4 << 10), &mut |_| {
            parts += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(parts, 1);
    }
}
