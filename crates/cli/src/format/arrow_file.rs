//! Arrow IPC files. A file has one dictionary for a column, so the batches' dictionaries are
//! unified.
//!
//! ```text
//!   batch: [b a | 1 0 0]  [a c | 0 1]   ─▶   file: [b a] delta [c]   1 0 0   1 2
//! ```

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{
    Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, UInt64Array,
    downcast_dictionary_array,
};
use arrow::compute::{concat, take};
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, DataType, Schema};
use arrow::ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::{Sink, WriteError, nested};

pub(super) struct ArrowFileSink<W: Write> {
    writer: FileWriter<BufWriter<W>>,
    /// The dictionaries of the file, in depth-first order; None if the schema has none.
    dictionaries: Option<Vec<UnifiedDictionary>>,
}

impl<W: Write> ArrowFileSink<W> {
    pub(super) fn start(
        out: BufWriter<W>,
        schema: &Schema,
        options: IpcWriteOptions,
    ) -> Result<Self, WriteError> {
        let options = options.with_dictionary_handling(DictionaryHandling::Delta);
        let has_any = schema.fields().iter().any(|field| has_dictionary(field.data_type()));
        Ok(Self {
            writer: FileWriter::try_new_with_options(out, schema, options)?,
            dictionaries: has_any.then(Vec::new),
        })
    }
}

impl<W: Write> Sink for ArrowFileSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let Some(dictionaries) = &mut self.dictionaries else {
            return Ok(self.writer.write(batch)?);
        };
        let mut visited = 0;
        let columns =
            batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, column)| {
                unify(column, dictionaries, &mut visited)
                    .map_err(|what| WriteError::from(format!("column {:?}: {what}", field.name())))
            });
        let columns = columns.collect::<Result<Vec<_>, WriteError>>()?;
        Ok(self.writer.write(&RecordBatch::try_new(batch.schema(), columns)?)?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.writer.finish()?;
        Ok(self.writer.get_mut().flush()?)
    }
}

fn has_dictionary(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Dictionary(..) => true,
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _)
        | Map(item, _) => has_dictionary(item.data_type()),
        Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        _ => false,
    }
}

/// The array with the file's dictionaries. `visited` counts the dictionaries so far.
fn unify(
    array: &ArrayRef,
    dictionaries: &mut Vec<UnifiedDictionary>,
    visited: &mut usize,
) -> Result<ArrayRef, WriteError> {
    if !matches!(array.data_type(), DataType::Dictionary(..)) {
        return match has_dictionary(array.data_type()) {
            true => {
                nested::change_children(array, &mut |child| unify(child, dictionaries, visited))
            }
            false => Ok(array.clone()),
        };
    }
    if dictionaries.len() == *visited {
        dictionaries.push(UnifiedDictionary::new(array.as_any_dictionary().values())?);
    }
    let dictionary = dictionaries.get_mut(*visited).ok_or(
        "the batch has more dictionaries than \
         the ones before",
    )?;
    *visited += 1;
    let array: &dyn Array = array.as_ref();
    downcast_dictionary_array!(
        array => dictionary.remap(array),
        other => Err(format!("{other} is not a dictionary").into()),
    )
}

/// The dictionary of a column: the first batch's values, followed by new values of later batches.
struct UnifiedDictionary {
    values: ArrayRef,
    /// The index of each value, once a batch has had a different dictionary.
    indexes: Option<HashMap<OwnedRow, usize>>,
    rows: RowConverter,
}

impl UnifiedDictionary {
    fn new(values: &ArrayRef) -> Result<Self, WriteError> {
        let rows = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        Ok(Self { values: values.clone(), indexes: None, rows })
    }

    /// The same values, with keys into this dictionary. Adds new values to it.
    fn remap<K: ArrowDictionaryKeyType>(
        &mut self,
        array: &DictionaryArray<K>,
    ) -> Result<ArrayRef, WriteError> {
        let is_same = Arc::ptr_eq(array.values(), &self.values) || array.values() == &self.values;
        if is_same {
            return Ok(Arc::new(DictionaryArray::try_new(
                array.keys().clone(),
                self.values.clone(),
            )?));
        }
        let indexes = self.indexes_of(array)?;
        let too_many = || {
            let key = K::DATA_TYPE;
            format!(
                "more distinct values than {key} keys can number (cast it to text, or write \
                 .arrows)"
            )
        };
        let keys = array.keys().iter().map(|key| -> Result<Option<K::Native>, WriteError> {
            match key {
                Some(key) => {
                    let index = indexes
                        .get(key.as_usize())
                        .copied()
                        .flatten()
                        .ok_or("a dictionary key is out of range")?;
                    K::Native::from_usize(index).map(Some).ok_or_else(|| too_many().into())
                }
                None => Ok(None),
            }
        });
        let keys = keys.collect::<Result<PrimitiveArray<K>, WriteError>>()?;
        Ok(Arc::new(DictionaryArray::try_new(keys, self.values.clone())?))
    }

    /// The index in this dictionary of each value of another one; None for unused values. Adds new
    /// values.
    fn indexes_of<K: ArrowDictionaryKeyType>(
        &mut self,
        array: &DictionaryArray<K>,
    ) -> Result<Vec<Option<usize>>, WriteError> {
        let mut known = match self.indexes.take() {
            Some(known) => known,
            None => {
                let rows = self.rows.convert_columns(std::slice::from_ref(&self.values))?;
                // Of equal values, keep the first.
                rows.iter().enumerate().rev().map(|(index, row)| (row.owned(), index)).collect()
            }
        };
        let rows = self.rows.convert_columns(&[array.values().clone()])?;
        let mut indexes = vec![None; array.values().len()];
        let mut new: Vec<u64> = Vec::new();
        for key in array.keys().iter().flatten().map(ArrowNativeType::as_usize) {
            let index = indexes.get_mut(key).ok_or("a dictionary key is out of range")?;
            if index.is_none() {
                let end = self.values.len() + new.len();
                let at = *known.entry(rows.row(key).owned()).or_insert(end);
                if at == end {
                    new.push(key.try_into()?);
                }
                *index = Some(at);
            }
        }
        if !new.is_empty() {
            let new = take(array.values(), &UInt64Array::from(new), None)?;
            self.values = concat(&[&self.values, &new])?;
        }
        self.indexes = Some(known);
        Ok(indexes)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int8Array, ListArray, StringArray, StructArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::compute::cast;
    use arrow::datatypes::{Field, Int8Type};
    use arrow::ipc::reader::FileReader;

    use super::super::Format;
    use super::super::tests::encode;
    use super::*;

    fn words(keys: &[Option<i8>], values: &[Option<&str>]) -> ArrayRef {
        let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(keys.to_vec()), values))
    }

    /// Writes and reads batches, checks that they are the same, and returns the first.
    fn read(columns: &[ArrayRef]) -> Result<RecordBatch, WriteError> {
        let batch = |array: &ArrayRef| {
            RecordBatch::try_from_iter_with_nullable([("w", array.clone(), true)])
        };
        let batches = columns.iter().map(batch).collect::<Result<Vec<_>, _>>()?;
        let bytes = encode(Format::ArrowFile, &batches)?;
        let reader = FileReader::try_new(std::io::Cursor::new(bytes), None)?;
        let schema = reader.schema();
        let read = reader.collect::<Result<Vec<_>, _>>()?;
        assert_eq!(schema, batches[0].schema());
        let plain = |batch: &RecordBatch| match batch.column(0).data_type() {
            DataType::Dictionary(_, values) => cast(batch.column(0), values).unwrap(),
            _ => batch.column(0).clone(),
        };
        assert_eq!(
            read.iter().map(plain).collect::<Vec<_>>(),
            batches.iter().map(plain).collect::<Vec<_>>()
        );
        Ok(read[0].clone())
    }

    #[test]
    fn different_dictionaries_are_unified() {
        let first = words(&[Some(1), Some(0), None], &[Some("a"), Some("b")]);
        let same = words(&[Some(1), Some(1)], &[Some("a"), Some("b")]);
        // An unused value, a NULL, and a duplicate.
        let other = words(
            &[Some(1), Some(2), Some(3), Some(4)],
            &[Some("x"), Some("b"), None, Some("c"), Some("c")],
        );
        let none = words(&[None], &[]);
        let all = read(&[first.clone(), same, other, none, first]).unwrap();
        let dictionary = all.column(0).as_dictionary::<Int8Type>();
        assert_eq!(dictionary.values().len(), 4);
    }

    #[test]
    fn nested_dictionaries_are_unified() {
        let nested = |keys: &[Option<i8>], values: &[Option<&str>]| -> ArrayRef {
            let words = words(keys, values);
            let item = Arc::new(Field::new("item", words.data_type().clone(), true));
            let lists: ArrayRef = Arc::new(ListArray::new(
                item,
                OffsetBuffer::from_lengths([keys.len()]),
                words.slice(0, keys.len()),
                None,
            ));
            let number: ArrayRef = super::tests::words(&[Some(0)], &values[..1]);
            let fields = [("l", &lists), ("n", &number)].map(|(name, array)| {
                (Arc::new(Field::new(name, array.data_type().clone(), true)), array.clone())
            });
            Arc::new(StructArray::from(fields.to_vec()))
        };
        read(&[
            nested(&[Some(0), None], &[Some("a")]),
            nested(&[Some(1), Some(0)], &[Some("b"), Some("a")]),
        ])
        .unwrap();
    }

    #[test]
    fn more_values_than_keys_are_refused() {
        let texts: Vec<String> = (0..200).map(|number| format!("word {number}")).collect();
        let part = |texts: &[String]| {
            let keys: Vec<Option<i8>> =
                (0..texts.len()).map(|key| Some(i8::try_from(key).unwrap())).collect();
            words(&keys, &texts.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>())
        };
        assert!(read(&[part(&texts[..100]), part(&texts[50..128])]).is_ok());
        let error = read(&[part(&texts[..100]), part(&texts[50..150])]).unwrap_err().to_string();
        assert!(
            error.contains("column \"w\": more distinct values than Int8 keys can number")
                && error.contains(".arrows"),
            "{error}"
        );
    }
}
