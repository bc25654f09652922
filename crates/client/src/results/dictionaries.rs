//! Unifies the dictionaries of different chunks, so that their rows can be one batch.
//!
//! Arrow's own `concat` appends dictionaries until their keys overflow, and panics if the entries
//! are views.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array, make_array,
};
use arrow::compute::{CastOptions, cast_with_options, interleave};
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

/// The longest prefix of the batches, at least one of them, whose dictionaries can be unified; with
/// one dictionary for each column. Without dictionaries it is all batches.
///
/// # Errors
/// When Arrow can't compare or copy the entries.
pub(crate) fn unify(
    schema: &SchemaRef,
    batches: &[&RecordBatch],
) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut count = batches.len();
    let mut unified = Vec::new();
    for (i, field) in
        schema.fields().iter().enumerate().filter(|(_, field)| has_dictionary(field.data_type()))
    {
        let parts: Vec<_> = batches[..count].iter().map(|batch| batch.column(i)).collect();
        let column = unify_column(field, &parts)?;
        count = column.len();
        unified.push((i, column));
    }
    let with_unified = |(at, batch): (usize, &&RecordBatch)| {
        let mut columns = batch.columns().to_vec();
        unified.iter().for_each(|(i, column)| columns[*i] = column[at].clone());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options)
    };
    batches[..count].iter().enumerate().map(with_unified).collect()
}

fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_dictionary(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        _ => false,
    }
}

/// The longest prefix of the arrays, at least one of them, with one dictionary.
fn unify_column(field: &Field, parts: &[&ArrayRef]) -> Result<Vec<ArrayRef>, ArrowError> {
    let alone = || Ok(vec![parts[0].clone()]);
    let DataType::Dictionary(index, value) = field.data_type() else {
        // Dictionaries inside of nested columns stay as they are.
        return alone();
    };
    let first = parts[0].as_any_dictionary().values();
    let same = parts.iter().take_while(|part| part.as_any_dictionary().values() == first).count();
    // The order of an ordered dictionary has a meaning, and entries of different ones have no
    // common order.
    if same == parts.len() || field.dict_is_ordered() == Some(true) {
        let with_first = |part: &&ArrayRef| part.as_any_dictionary().with_values(first.clone());
        return Ok(parts[..same].iter().map(with_first).collect());
    }
    let sort_field = SortField::new(value.as_ref().clone());
    if !RowConverter::supports_fields(std::slice::from_ref(&sort_field)) {
        return alone();
    }
    let converter = RowConverter::new(vec![sort_field])?;
    let mut union = Union { entries_max: entries_max(index), ..Union::default() };
    for part in parts {
        if !union.add(&converter, part.as_any_dictionary().values())? {
            break;
        }
    }
    if union.places.len() < 2 {
        return alone();
    }
    let values: Vec<_> =
        parts.iter().map(|part| part.as_any_dictionary().values().as_ref()).collect();
    let values = interleave(&values, &union.entries)?;
    parts
        .iter()
        .zip(&union.places)
        .map(|(part, places)| with_entries(part, places, &values))
        .collect()
}

/// The most entries that keys of this type can address.
fn entries_max(index: &DataType) -> usize {
    match index {
        DataType::Int8 => 1 << 7,
        DataType::UInt8 => 1 << 8,
        DataType::Int16 => 1 << 15,
        DataType::UInt16 => 1 << 16,
        _ => i32::MAX as usize,
    }
}

/// The distinct entries of several dictionaries.
#[derive(Default)]
struct Union {
    entries_max: usize,
    /// The index of each entry, by its row encoding.
    known: HashMap<Box<[u8]>, usize>,
    /// For each entry the dictionary that has it, and its index there.
    entries: Vec<(usize, usize)>,
    /// For each dictionary, the indexes of its entries here.
    places: Vec<Vec<usize>>,
}

impl Union {
    /// Adds a dictionary. Returns false if there would be too many entries.
    fn add(&mut self, converter: &RowConverter, values: &ArrayRef) -> Result<bool, ArrowError> {
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let before = self.entries.len();
        let mut places = Vec::with_capacity(values.len());
        for (i, row) in rows.iter().enumerate() {
            let next = self.entries.len();
            let place = *self.known.entry(row.as_ref().into()).or_insert(next);
            if place == next {
                self.entries.push((self.places.len(), i));
            }
            places.push(place);
        }
        let fits = self.entries.len() <= self.entries_max;
        match fits {
            true => self.places.push(places),
            // `known` now has entries too many, but nothing is added any more.
            false => self.entries.truncate(before),
        }
        Ok(fits)
    }
}

/// The same array over other entries; `places` are the indexes of its own entries there.
fn with_entries(
    array: &ArrayRef,
    places: &[usize],
    entries: &ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let keys = array.as_any_dictionary().keys();
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let numbers = cast_with_options(keys, &DataType::UInt64, &exact)?;
    let numbers = numbers.as_primitive::<arrow::datatypes::UInt64Type>();
    let place = |key: u64| {
        usize::try_from(key).ok().and_then(|key| places.get(key)).map_or(0, |place| *place as u64)
    };
    let moved = UInt64Array::new(
        numbers.values().iter().map(|key| place(*key)).collect(),
        numbers.nulls().cloned(),
    );
    let keys =
        cast_with_options(&(Arc::new(moved) as ArrayRef), keys.data_type(), &exact)?.to_data();
    let joined = array
        .to_data()
        .into_builder()
        .offset(0)
        .buffers(keys.buffers().to_vec())
        .nulls(keys.nulls().cloned());
    Ok(make_array(joined.child_data(vec![entries.to_data()]).build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{DictionaryArray, Int8Array, StringViewArray, StructArray};
    use arrow::compute::{cast, concat_batches};
    use arrow::datatypes::{Fields, Int8Type, Schema};

    /// Keys with NULLs, and words numbered from `from`, the last one first.
    fn part(from: usize, words: usize) -> ArrayRef {
        let keys =
            Int8Array::from_iter((0..200).map(|row| (row % 7 != 0).then_some((row % words) as i8)));
        let words = StringViewArray::from_iter_values(
            (from..from + words).rev().map(|word| format!("the word {word}")),
        );
        Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(words)))
    }

    fn batches(parts: &[ArrayRef], ordered: bool) -> (SchemaRef, Vec<RecordBatch>) {
        let field =
            Field::new("d", parts[0].data_type().clone(), true).with_dict_is_ordered(ordered);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch =
            |part: &ArrayRef| RecordBatch::try_new(schema.clone(), vec![part.clone()]).unwrap();
        (schema.clone(), parts.iter().map(batch).collect())
    }

    fn strings(batches: &[RecordBatch]) -> Vec<ArrayRef> {
        batches.iter().map(|batch| cast(batch.column(0), &DataType::Utf8).unwrap()).collect()
    }

    /// Unifies, and checks that the strings are the same and can be one batch. Returns the number
    /// of batches and of entries.
    fn unified(parts: &[ArrayRef], ordered: bool) -> (usize, usize) {
        let (schema, before) = batches(parts, ordered);
        let unified = unify(&schema, &before.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(strings(&unified), strings(&before[..unified.len()]));
        let joined = concat_batches(&schema, &unified).unwrap();
        joined.column(0).to_data().validate_full().unwrap();
        let entries = joined
            .column(0)
            .as_any_dictionary_opt()
            .map_or(0, |dictionary| dictionary.values().len());
        (unified.len(), entries)
    }

    #[test]
    fn entries_are_distinct() {
        assert_eq!(
            unified(&[part(0, 50), part(40, 50), part(0, 90), part(100, 1)], false),
            (4, 91)
        );
        assert_eq!(unified(&[part(0, 50), part(0, 50), part(0, 50)], false), (3, 50));
    }

    #[test]
    fn no_more_entries_than_keys_can_address() {
        assert_eq!(
            unified(&[part(0, 100), part(50, 78), part(127, 1), part(128, 1)], false),
            (3, 128)
        );
        assert_eq!(unified(&[part(0, 100), part(100, 100), part(0, 1)], false), (1, 100));
    }

    #[test]
    fn ordered_dictionaries_stay_apart() {
        assert_eq!(unified(&[part(0, 50), part(0, 50), part(1, 50)], true), (2, 50));
    }

    #[test]
    fn nested_dictionaries_stay_apart() {
        let fields = Fields::from(vec![Field::new("d", part(0, 1).data_type().clone(), true)]);
        let within =
            |part| Arc::new(StructArray::new(fields.clone(), vec![part], None)) as ArrayRef;
        let (schema, before) = batches(&[within(part(0, 50)), within(part(50, 50))], false);
        assert_eq!(unify(&schema, &before.iter().collect::<Vec<_>>()).unwrap(), before[..1]);
    }
}
