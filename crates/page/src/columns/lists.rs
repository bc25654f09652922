//! The items of lists, collected across lists.

use super::BLOCK;
use super::budget::Budget;
use super::column::{ColumnBuilder, Present};
use crate::error::Result;
use crate::layout::Items;
use crate::object::RecordRef;

/// Collects the items of lists in blocks for the child column.
pub(super) struct Lists<'l, 'a> {
    items: &'l Items,
    child: &'l mut ColumnBuilder,
    records: Vec<RecordRef<'a>>,
    present: Vec<bool>,
}

impl<'l, 'a> Lists<'l, 'a> {
    pub(super) fn new(items: &'l Items, child: &'l mut ColumnBuilder) -> Self {
        Self { items, child, records: Vec::new(), present: Vec::new() }
    }

    /// The rows of the child, including those that are collected.
    pub(super) fn child_rows(&self) -> usize {
        self.child.rows + self.records.len()
    }

    pub(super) fn append(
        &mut self,
        list: RecordRef<'a>,
        from: usize,
        count: usize,
        budget: &mut Budget,
    ) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        for i in 0..count {
            let (record_ref, present) = list.item(self.items, from, count, i);
            self.push(record_ref, present, budget)?;
        }
        Ok(())
    }

    /// Appends the items under a missing fixed-size list: missing ones, or zeros if they are not
    /// nullable.
    pub(super) fn append_missing(
        &mut self,
        zeros: RecordRef<'a>,
        count: usize,
        budget: &mut Budget,
    ) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        (0..count).try_for_each(|_| self.push(zeros, !self.items.nullable, budget))
    }

    #[inline]
    fn push(
        &mut self,
        record_ref: RecordRef<'a>,
        present: bool,
        budget: &mut Budget,
    ) -> Result<()> {
        self.records.push(record_ref);
        self.present.push(present);
        if self.records.len() < BLOCK { Ok(()) } else { self.flush(budget) }
    }

    pub(super) fn flush(&mut self, budget: &mut Budget) -> Result<()> {
        if let Some(place) = self.items.record.fields.first() {
            let present =
                if self.items.nullable { Present::Listed(&self.present) } else { Present::All };
            self.child.values(&self.items.record, place, &self.records, present, budget)?;
        }
        self.records.clear();
        self.present.clear();
        Ok(())
    }
}
