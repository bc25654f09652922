//! Columns from objects.
//!
//! Objects come in any order, such as that of a sort. A block of them is read column by column, so
//! that each object is fetched into the cache once.

mod bits;
mod budget;
mod column;
mod key;
mod lists;

use std::sync::Arc;

use dray_format::Batch;

use self::budget::Budget;
use self::column::ColumnBuilder;
use crate::error::{Result, refuse};
use crate::layout::Layout;
use crate::object::{Object, RecordRef};

/// The objects, or items of lists, of a block.
const BLOCK: usize = 128;
/// A cache line.
const LINE_BYTES: usize = 64;
/// The most lines of an object that are fetched ahead.
const LINES_MAX: usize = 64;

/// Builds batches from objects.
#[derive(Debug)]
pub struct ColumnsBuilder {
    layout: Arc<Layout>,
    rows: usize,
    columns: Vec<ColumnBuilder>,
    budget: Budget,
}

impl ColumnsBuilder {
    /// A builder of batches of at most `bytes_max`. The limit guards against hostile pages: a
    /// missing fixed-size list has no bytes in a page, and takes as much memory as one that is
    /// present.
    pub fn new(layout: Arc<Layout>, bytes_max: u64) -> Self {
        let mut builder =
            Self { layout, rows: 0, columns: Vec::new(), budget: Budget::new(bytes_max) };
        builder.begin();
        builder
    }

    /// Appends a row for each object, in this order.
    ///
    /// # Errors
    /// When the batch grows over `bytes_max`, a column over 2³¹ values or bytes, or a dictionary
    /// over the range of its indexes; or when an object is of another schema. The batch is then
    /// empty.
    pub fn append<'a>(&mut self, objects: impl IntoIterator<Item = Object<'a>>) -> Result<()> {
        let appended = self.append_all(objects.into_iter());
        if appended.is_err() {
            self.begin();
        }
        appended
    }

    fn append_all<'a>(&mut self, mut objects: impl Iterator<Item = Object<'a>>) -> Result<()> {
        let layout = self.layout.clone();
        let record = &layout.record;
        let mut records = Vec::with_capacity(BLOCK);
        let coming = objects.size_hint().0;
        self.columns.iter_mut().for_each(|column| column.reserve(coming, self.budget.left()));
        loop {
            records.clear();
            for object in objects.by_ref().take(BLOCK) {
                if !std::ptr::eq(object.layout(), &*layout)
                    && object.layout().schema() != layout.schema()
                {
                    refuse!(Unsupported, "an object of another schema");
                }
                if object.bytes().len() < record.end {
                    refuse!(
                        Internal,
                        "an object of {} bytes, expected {} or more",
                        object.bytes().len(),
                        record.end
                    );
                }
                records.push(RecordRef { extent: object.bytes(), at: 0 });
            }
            if records.is_empty() {
                return Ok(());
            }
            fetch(&records);
            self.rows += records.len();
            for (i, (column, place)) in self.columns.iter_mut().zip(&record.fields).enumerate() {
                let name = || layout.schema().fields.get(i).map_or("", |field| &field.name);
                let appended = column.fields(record, place, &records, &mut self.budget);
                appended.map_err(|error| error.in_column(name()))?;
            }
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes that the rows take out of `bytes_max`.
    pub fn bytes(&self) -> u64 {
        self.budget.taken()
    }

    /// Takes the rows out. The next batch begins with the capacity of this one.
    pub fn finish(&mut self) -> Batch {
        if self.rows == 0 {
            return self.empty();
        }
        let next = self.columns.iter().map(ColumnBuilder::next).collect();
        let (rows, columns) = (self.rows, std::mem::replace(&mut self.columns, next));
        self.rows = 0;
        self.budget.reset();
        Batch { rows, columns: columns.into_iter().map(ColumnBuilder::finish).collect() }
    }

    fn begin(&mut self) {
        self.rows = 0;
        self.budget.reset();
        self.columns = self.new_columns();
    }

    fn empty(&self) -> Batch {
        Batch {
            rows: 0,
            columns: self.new_columns().into_iter().map(ColumnBuilder::finish).collect(),
        }
    }

    fn new_columns(&self) -> Vec<ColumnBuilder> {
        self.layout
            .schema()
            .fields
            .iter()
            .map(|field| ColumnBuilder::new(&field.data_type))
            .collect()
    }
}

/// Reads a byte of every cache line that objects begin with. These loads do not wait for each
/// other. A loop over a column would load one value per object, and wait for one cache miss after
/// the other.
fn fetch(objects: &[RecordRef<'_>]) {
    let lines = |object: &RecordRef<'_>| {
        object.extent.iter().step_by(LINE_BYTES).take(LINES_MAX).fold(0, |any, byte| any | byte)
    };
    std::hint::black_box(objects.iter().fold(0, |any, object| any | lines(object)));
}
