//! Merges parents with their children, both in the order of the key.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, RecordBatch, StructArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat_batches, take_arrays};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_format::arrow::batch_from_arrow;

use crate::error::{Error, Result};
use crate::keys::{BatchKeys, KeyColumns};
use crate::rows::Rows;
use crate::spec::{Orphans, Relation};

/// A batch leaves once it has so many children, whatever its rows.
const CHILDREN_MAX: usize = 64 << 10;

/// Or once so many bytes of children were read or nested for it.
const CHILDREN_BYTES_MAX: usize = 16 << 20;

/// Parents with a field more, in which their children are.
pub(crate) struct Merge {
    parents: Rows<'static>,
    parent_keys: KeyColumns,
    /// The parents that are being merged, and the next of them.
    batch: Option<(RecordBatch, BatchKeys, usize)>,
    last_key: Option<Vec<u8>>,
    children: Children,
    name: String,
    is_list: bool,
    orphans: Orphans,
    schema: SchemaRef,
    ended: bool,
}

impl Merge {
    /// Merges `parents`, in the order of the columns that `relation.on` names on their side, with
    /// `children`, in the order of the columns on theirs.
    pub(crate) fn new(
        parents: Rows<'static>,
        children: Rows<'static>,
        relation: &Relation,
    ) -> Result<Self> {
        let Relation { name, is_list, on, orphans, .. } = relation;
        let (parent_schema, child_schema) = (parents.schema(), children.schema());
        let (parent_keys, keys) = KeyColumns::pair(&parent_schema, &child_schema, on, name)?;
        if parent_schema.fields().iter().any(|field| field.name() == name) {
            let what = format!("{name}: its parent has a column of this name; rename one of them");
            return Err(Error::Spec(what));
        }
        // The columns that equal the parent's are left out.
        let kept = (0..child_schema.fields().len()).filter(|at| !keys.columns().contains(at));
        let kept = kept.collect::<Vec<_>>();
        if kept.is_empty() {
            let what = "its statement has only the columns of `on`, which are left out";
            return Err(Error::Spec(format!("{name}: {what}; add another one")));
        }
        let object = Arc::new(child_schema.project(&kept)?);
        let item = DataType::Struct(object.fields().clone());
        let field = match is_list {
            true => Field::new_list(name, Field::new("item", item, false), false),
            false => Field::new(name, item, true),
        };
        let fields = parent_schema.fields().iter().cloned().chain([Arc::new(field)]);
        let schema =
            Schema::new_with_metadata(fields.collect::<Fields>(), parent_schema.metadata().clone());
        Ok(Self {
            parents,
            parent_keys,
            batch: None,
            last_key: None,
            children: Children {
                rows: children,
                keys,
                kept,
                object,
                batch: None,
                number: 0,
                row_bytes: 0,
                last_key: None,
                is_unique: !is_list,
                name: name.clone(),
            },
            name: name.clone(),
            is_list: *is_list,
            orphans: *orphans,
            schema: schema.into(),
            ended: false,
        })
    }

    fn next_nested(&mut self) -> Result<Option<RecordBatch>> {
        let (parents, keys, from) = loop {
            match self.batch.take() {
                Some(batch) if batch.2 < batch.0.num_rows() => break batch,
                _ => match self.parents.next().transpose()? {
                    Some(parents) => {
                        let keys = self.parent_keys.encode(&parents)?;
                        self.batch = Some((parents, keys, 0));
                    }
                    None => {
                        // What is left has no parent.
                        while let Some(child) = self.children.peek()? {
                            self.orphan(&child)?;
                            self.children.advance();
                        }
                        return Ok(None);
                    }
                },
            }
        };
        let (mut at, mut found) = (from, Found::default());
        while at < parents.num_rows()
            && found.children < CHILDREN_MAX
            && found.bytes < CHILDREN_BYTES_MAX
        {
            if keys.is_missing(at) {
                found.end_parent();
            } else {
                self.find(&keys, at, &mut found)?;
            }
            at += 1;
        }
        let nested = self.field(&found)?;
        let mut columns = parents.slice(from, at - from).columns().to_vec();
        columns.push(nested);
        self.batch = Some((parents, keys, at));
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }

    /// Finds the children of a parent.
    fn find(&mut self, keys: &BatchKeys, row: usize, found: &mut Found) -> Result<()> {
        let key = keys.get(row);
        match self.last_key.as_deref().map(|last| last.cmp(key)) {
            Some(Ordering::Greater) => {
                return Err(out_of_order(&format!("the parents of {}", self.name), keys, row));
            }
            Some(Ordering::Equal) if self.is_list => {
                return Err(Error::Rows(format!(
                    "{}: two parents have the key {}, so its rows have no single parent",
                    self.name,
                    keys.describe(row)
                )));
            }
            Some(Ordering::Equal) => {}
            Some(Ordering::Less) | None => self.last_key = Some(key.to_vec()),
        }
        while let Some(child) = self.children.peek()? {
            match child.key().map(|own| own.cmp(key)) {
                // Keys with a missing column are among the others.
                None | Some(Ordering::Less) => {
                    self.orphan(&child)?;
                    found.bytes += child.bytes;
                    self.children.advance();
                }
                Some(Ordering::Equal) => {
                    found.take(&child);
                    if !self.is_list {
                        // Other parents may have the same child.
                        break;
                    }
                    self.children.advance();
                }
                Some(Ordering::Greater) => break,
            }
        }
        found.end_parent();
        Ok(())
    }

    /// Takes note of a child without a parent.
    fn orphan(&self, child: &Child) -> Result<()> {
        if !self.is_list || self.orphans == Orphans::Drop {
            return Ok(());
        }
        Err(Error::Rows(format!(
            "{}: a row with the key {} has no parent; orphans = \"drop\" leaves such rows out",
            self.name,
            child.keys.describe(child.row)
        )))
    }

    /// The field with the children that were found.
    fn field(&self, found: &Found) -> Result<ArrayRef> {
        let object = &self.children.object;
        let pieces = found.pieces.iter().map(|piece| {
            Ok(piece.batch.project(&self.children.kept)?.slice(piece.from, piece.count))
        });
        let rows = concat_batches(object, &pieces.collect::<Result<Vec<_>>>()?)?;
        if self.is_list {
            let item = Field::new("item", DataType::Struct(object.fields().clone()), false);
            let items = StructArray::try_new_with_length(
                object.fields().clone(),
                rows.columns().to_vec(),
                None,
                rows.num_rows(),
            )?;
            let offsets = OffsetBuffer::from_lengths(found.lengths.iter().copied());
            return Ok(Arc::new(ListArray::try_new(item.into(), offsets, Arc::new(items), None)?));
        }
        let indices = UInt32Array::from(found.indices.clone());
        // No record batch: where a parent has no child, even columns without NULLs get one.
        let columns = take_arrays(rows.columns(), &indices, None)?;
        Ok(Arc::new(StructArray::try_new_with_length(
            object.fields().clone(),
            columns,
            indices.nulls().cloned(),
            indices.len(),
        )?))
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_nested().map_err(ArrowError::from).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl RecordBatchReader for Merge {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The error of rows that a merge can't use.
fn out_of_order(whose: &str, keys: &BatchKeys, row: usize) -> Error {
    Error::Rows(format!(
        "{whose}: the row with the key {} comes after one with a greater key; this is a defect of \
         the sort, please report it",
        keys.describe(row)
    ))
}

/// The children of a batch of parents.
#[derive(Default)]
struct Found {
    pieces: Vec<Piece>,
    children: usize,
    /// The bytes that were read or will be written for the batch: of all `pieces`, of the copy of a
    /// single child that each of its parents gets, and of children that were dropped.
    bytes: usize,
    /// The children of each parent.
    lengths: Vec<usize>,
    /// For single children: the place of each parent's among the pieces' rows.
    indices: Vec<Option<u32>>,
    /// The children that the present parent has so far, and the last child that was taken.
    own: usize,
    last: Option<(u64, usize)>,
}

/// Children that follow each other in a batch.
struct Piece {
    batch: RecordBatch,
    number: u64,
    from: usize,
    count: usize,
}

impl Found {
    fn take(&mut self, child: &Child) {
        self.own += 1;
        self.bytes += child.bytes;
        if self.last == Some((child.number, child.row)) {
            return;
        }
        self.last = Some((child.number, child.row));
        self.children += 1;
        match self.pieces.last_mut() {
            Some(piece)
                if piece.number == child.number && piece.from + piece.count == child.row =>
            {
                piece.count += 1;
            }
            _ => self.pieces.push(Piece {
                batch: child.batch.clone(),
                number: child.number,
                from: child.row,
                count: 1,
            }),
        }
    }

    fn end_parent(&mut self) {
        let own = std::mem::take(&mut self.own);
        self.lengths.push(own);
        // Batches leave long before their children are 2^32.
        self.indices.push(self.children.checked_sub(1).filter(|_| own > 0).map(|at| at as u32));
    }
}

/// Children in the order of their key.
struct Children {
    rows: Rows<'static>,
    keys: KeyColumns,
    /// The columns of an object, and its schema.
    kept: Vec<usize>,
    object: SchemaRef,
    /// The batch with the next child, and its row.
    batch: Option<(RecordBatch, Arc<BatchKeys>, usize)>,
    /// The number of this batch, and the average bytes of its rows.
    number: u64,
    row_bytes: usize,
    /// The last key before the next child's of which no column is missing.
    last_key: Option<Vec<u8>>,
    /// Whether no two may have the same key.
    is_unique: bool,
    name: String,
}

/// The next child.
struct Child {
    batch: RecordBatch,
    number: u64,
    keys: Arc<BatchKeys>,
    row: usize,
    bytes: usize,
}

impl Child {
    /// None if a column of the key is missing.
    fn key(&self) -> Option<&[u8]> {
        (!self.keys.is_missing(self.row)).then(|| self.keys.get(self.row))
    }
}

impl Children {
    /// The next child, which stays the next one.
    fn peek(&mut self) -> Result<Option<Child>> {
        loop {
            match &self.batch {
                Some((batch, keys, row)) if *row < batch.num_rows() => {
                    let child = Child {
                        batch: batch.clone(),
                        number: self.number,
                        keys: keys.clone(),
                        row: *row,
                        bytes: self.row_bytes,
                    };
                    self.check_order(&child)?;
                    return Ok(Some(child));
                }
                _ => {}
            }
            let Some(batch) = self.rows.next().transpose()? else { return Ok(None) };
            let keys = Arc::new(self.keys.encode(&batch)?);
            let bytes = batch_from_arrow(&batch)?.plain_bytes(0, batch.num_rows()) as usize;
            self.row_bytes = bytes / batch.num_rows().max(1);
            self.batch = Some((batch, keys, 0));
            self.number += 1;
        }
    }

    fn check_order(&self, child: &Child) -> Result<()> {
        let (Some(last), Some(key)) = (self.last_key.as_deref(), child.key()) else {
            return Ok(());
        };
        if last > key {
            return Err(out_of_order(&self.name, &child.keys, child.row));
        }
        if self.is_unique && last == key {
            return Err(Error::Rows(format!(
                "{}: two rows have the key {}, where a parent has at most one",
                self.name,
                child.keys.describe(child.row)
            )));
        }
        Ok(())
    }

    fn advance(&mut self) {
        if let Some((_, keys, row)) = &mut self.batch {
            if !keys.is_missing(*row) {
                self.last_key = Some(keys.get(*row).to_vec());
            }
            *row += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

    use arrow::array::{Int32Array, RecordBatchIterator};

    use super::*;
    use crate::spec::Level;

    fn rows(keys: &[i32]) -> Rows<'static> {
        let keys: ArrayRef = Arc::new(Int32Array::from(keys.to_vec()));
        let batch = RecordBatch::try_from_iter([("k", keys.clone()), ("v", keys)]).unwrap();
        let schema = batch.schema();
        Box::new(RecordBatchIterator::new([Ok(batch)], schema))
    }

    #[test]
    fn rows_in_another_order_are_an_error() {
        let level = Level { sql: String::new(), order: Vec::new(), children: Vec::new() };
        for is_list in [true, false] {
            let relation = Relation {
                name: "items".to_owned(),
                is_list,
                on: vec![("k".to_owned(), "k".to_owned())],
                orphans: Orphans::Drop,
                level: level.clone(),
            };
            let merged = |parents: &[i32], children: &[i32]| {
                let merge = Merge::new(rows(parents), rows(children), &relation).unwrap();
                merge.collect::<Result<Vec<_>, _>>().map(drop).map_err(|error| error.to_string())
            };
            assert_eq!(merged(&[1, 2, 4], &[1, 2, 4]), Ok(()));
            let refused = merged(&[1, 2, 4], &[2, 1]).unwrap_err();
            assert!(refused.contains("items: the row with the key 1 comes after"), "{refused}");
            let refused = merged(&[1, 4, 2], &[1, 2, 4]).unwrap_err();
            assert!(refused.contains("the parents of items: the row with the key 2"), "{refused}");
        }
    }
}
