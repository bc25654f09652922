//! The dictionaries of sorted rows.
//!
//! A sort makes new dictionaries, of the values of each batch that it returns. This changes the
//! type of a column whose indexes are narrow, or whose dictionary is ordered. Such a column keeps
//! its type and its dictionary if all batches of the source have the same one.

use std::collections::HashMap;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, RecordBatch, RecordBatchOptions, make_array,
    new_empty_array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use dray_format::arrow::with_new_dictionaries;

/// The dictionaries of a source's columns, as far as all batches have the same.
pub(crate) struct SourceDictionaries {
    source: SchemaRef,
    new: SchemaRef,
    /// Columns, each with its dictionary.
    same: Vec<(usize, ArrayRef)>,
}

impl SourceDictionaries {
    pub(crate) fn new(source: SchemaRef) -> Self {
        let new = with_new_dictionaries(&source);
        let columns = source.fields().iter().zip(new.fields()).enumerate();
        let same = columns.filter_map(|(column, (own, new))| match own.data_type() {
            DataType::Dictionary(_, value)
                if own != new || own.dict_is_ordered() != new.dict_is_ordered() =>
            {
                Some((column, new_empty_array(value)))
            }
            _ => None,
        });
        Self { same: same.collect(), source, new: new.into() }
    }

    /// The schema of rows with new dictionaries.
    pub(crate) fn new_schema(&self) -> &SchemaRef {
        &self.new
    }

    /// Takes note of the dictionaries of a batch.
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.same.retain_mut(|(column, known)| {
            let entries = batch.column(*column).as_any_dictionary().values();
            if known.is_empty() {
                *known = entries.clone();
            }
            entries.is_empty() || known.as_ref() == entries.as_ref()
        });
    }

    /// What gives the columns their dictionaries back.
    pub(crate) fn restore(self) -> Result<Restore, ArrowError> {
        let (source, mut fields) = (self.source, self.new.fields().to_vec());
        let mut columns = Vec::new();
        for (column, entries) in self.same {
            let sorted = [SortField::new(entries.data_type().clone())];
            // Arrow has no rows of some types.
            if RowConverter::supports_fields(&sorted) {
                fields[column] = source.fields()[column].clone();
                columns.push((column, Dictionary::new(entries, sorted)?));
            }
        }
        let fields = Fields::from(fields);
        let schema = Schema::new_with_metadata(fields, source.metadata().clone()).into();
        Ok(Restore { new: self.new, schema, columns })
    }
}

/// Gives columns the dictionaries of their source.
pub(crate) struct Restore {
    /// The schema of the rows with new dictionaries, and with those of the source.
    pub(crate) new: SchemaRef,
    pub(crate) schema: SchemaRef,
    columns: Vec<(usize, Dictionary)>,
}

impl Restore {
    pub(crate) fn batch(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = batch.columns().to_vec();
        for (column, dictionary) in &self.columns {
            let data_type = self.schema.field(*column).data_type();
            columns[*column] = dictionary.of(&columns[*column], data_type)?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

/// A dictionary that finds its entries.
struct Dictionary {
    entries: ArrayRef,
    converter: RowConverter,
    indexes: HashMap<OwnedRow, i32>,
}

impl Dictionary {
    fn new(entries: ArrayRef, sorted: [SortField; 1]) -> Result<Self, ArrowError> {
        let converter = RowConverter::new(sorted.to_vec())?;
        let rows = converter.convert_columns(std::slice::from_ref(&entries))?;
        let mut indexes = HashMap::with_capacity(entries.len());
        for (row, index) in rows.iter().zip(0..) {
            // Of equal entries the first: narrow indexes may not reach the others.
            indexes.entry(row.owned()).or_insert(index);
        }
        Ok(Self { entries, converter, indexes })
    }

    /// The values of an array of other entries, as an array with this dictionary.
    fn of(&self, array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let array = array.as_any_dictionary();
        let rows = self.converter.convert_columns(&[array.values().clone()])?;
        let indexes =
            rows.iter().enumerate().map(|(entry, row)| match self.indexes.get(&row.owned()) {
                _ if array.values().is_null(entry) => Ok(None),
                None => {
                    let what = "a sorted value is not in the dictionary of its column; this is a \
                                defect of the sort, please report it";
                    Err(ArrowError::ComputeError(what.to_owned()))
                }
                known => Ok(known.copied()),
            });
        let indexes: Int32Array = indexes.collect::<Result<_, _>>()?;
        let mut keys = take(&indexes, array.keys(), None)?;
        if let DataType::Dictionary(index, _) = data_type {
            keys = cast(&keys, index)?;
        }
        let data = keys.to_data().into_builder().data_type(data_type.clone());
        Ok(make_array(data.add_child_data(self.entries.to_data()).build()?))
    }
}
