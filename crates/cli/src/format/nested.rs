//! Conversion of nested types and arrays.

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, StructArray,
};
use arrow::datatypes::{DataType, FieldRef, Fields};

use super::WriteError;

/// Applies `change` to the types of a type's children. Returns None if nothing changes.
/// Dictionaries and run-end encoded types have no children here.
pub(super) fn change_type(
    data_type: &DataType,
    change: &impl Fn(&DataType) -> Result<Option<DataType>, WriteError>,
) -> Result<Option<DataType>, WriteError> {
    use DataType::*;
    let field = |field: &FieldRef| -> Result<Option<FieldRef>, WriteError> {
        let changed = change(field.data_type())?;
        Ok(changed.map(|data_type| Arc::new(field.as_ref().clone().with_data_type(data_type))))
    };
    Ok(match data_type {
        List(item) => field(item)?.map(List),
        LargeList(item) => field(item)?.map(LargeList),
        ListView(item) => field(item)?.map(ListView),
        LargeListView(item) => field(item)?.map(LargeListView),
        FixedSizeList(item, size) => field(item)?.map(|item| FixedSizeList(item, *size)),
        Map(entries, sorted) => field(entries)?.map(|entries| Map(entries, *sorted)),
        Struct(fields) => {
            let changed = fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
            changed.iter().any(Option::is_some).then(|| {
                let fields =
                    fields.iter().zip(changed).map(|(old, new)| new.unwrap_or_else(|| old.clone()));
                Struct(Fields::from_iter(fields))
            })
        }
        _ => None,
    })
}

/// Applies `change` to an array's children, and adjusts the array's type to theirs.
pub(super) fn change_children(
    array: &ArrayRef,
    change: &mut impl FnMut(&ArrayRef) -> Result<ArrayRef, WriteError>,
) -> Result<ArrayRef, WriteError> {
    let typed = |field: &FieldRef, child: &ArrayRef| {
        Arc::new(field.as_ref().clone().with_data_type(child.data_type().clone()))
    };
    Ok(match array.data_type() {
        DataType::List(item) => Arc::new(list(array.as_list::<i32>(), item, change)?),
        DataType::LargeList(item) => Arc::new(list(array.as_list::<i64>(), item, change)?),
        DataType::ListView(item) => Arc::new(list_view(array.as_list_view::<i32>(), item, change)?),
        DataType::LargeListView(item) => {
            Arc::new(list_view(array.as_list_view::<i64>(), item, change)?)
        }
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let values = change(lists.values())?;
            let (item, nulls) = (typed(item, &values), lists.nulls().cloned());
            // Lists of size 0 need an explicit length.
            Arc::new(FixedSizeListArray::try_new_with_length(
                item,
                *size,
                values,
                nulls,
                lists.len(),
            )?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns =
                structs.columns().iter().map(&mut *change).collect::<Result<Vec<_>, _>>()?;
            let fields =
                fields.iter().zip(&columns).map(|(field, column)| typed(field, column)).collect();
            Arc::new(StructArray::try_new_with_length(
                fields,
                columns,
                structs.nulls().cloned(),
                structs.len(),
            )?)
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map();
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = change_children(&inner, change)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(
                typed(entries, &inner),
                offsets,
                inner.as_struct().clone(),
                nulls,
                *sorted,
            )?)
        }
        _ => array.clone(),
    })
}

fn list<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    item: &FieldRef,
    change: &mut impl FnMut(&ArrayRef) -> Result<ArrayRef, WriteError>,
) -> Result<GenericListArray<O>, WriteError> {
    let values = change(lists.values())?;
    let item = Arc::new(item.as_ref().clone().with_data_type(values.data_type().clone()));
    Ok(GenericListArray::try_new(item, lists.offsets().clone(), values, lists.nulls().cloned())?)
}

fn list_view<O: OffsetSizeTrait>(
    lists: &GenericListViewArray<O>,
    item: &FieldRef,
    change: &mut impl FnMut(&ArrayRef) -> Result<ArrayRef, WriteError>,
) -> Result<GenericListViewArray<O>, WriteError> {
    let values = change(lists.values())?;
    let item = Arc::new(item.as_ref().clone().with_data_type(values.data_type().clone()));
    let (offsets, sizes) = (lists.offsets().clone(), lists.sizes().clone());
    Ok(GenericListViewArray::try_new(item, offsets, sizes, values, lists.nulls().cloned())?)
}
