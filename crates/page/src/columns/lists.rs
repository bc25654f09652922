//! The items of lists, collected across lists.

use super::BLOCK;
use super::budget::Budget;
use super::column::{ColumnBuilder, Present};
use crate::error::Result;
use crate::layout::Items;
use crate::object::Spot;

/// Collects the items of lists in blocks for the child column.
pub(super) struct Lists<'l, 'a> {
    items: &'l Items,
    child: &'l mut ColumnBuilder,
    spots: Vec<Spot<'a>>,
    present: Vec<bool>,
}

impl<'l, 'a> Lists<'l, 'a> {
    pub(super) fn new(items: &'l Items, child: &'l mut ColumnBuilder) -> Self {
        Self { items, child, spots: Vec::new(), present: Vec::new() }
    }

    /// The rows of the child, including those that are collected.
    pub(super) fn child_rows(&self) -> usize {
        self.child.rows + self.spots.len()
    }

    pub(super) fn append(
        &mut self,
        list: Spot<'a>,
        from: usize,
        count: usize,
        budget: &mut Budget,
    ) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        for i in 0..count {
            let (spot, present) = list.item(self.items, from, count, i);
            self.push(spot, present, budget)?;
        }
        Ok(())
    }

    /// Appends the items under a missing fixed-size list: missing ones, or zeros if they are not
    /// nullable.
    pub(super) fn append_missing(
        &mut self,
        zeros: Spot<'a>,
        count: usize,
        budget: &mut Budget,
    ) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        (0..count).try_for_each(|_| self.push(zeros, !self.items.nullable, budget))
    }

    #[inline]
    fn push(&mut self, spot: Spot<'a>, present: bool, budget: &mut Budget) -> Result<()> {
        self.spots.push(spot);
        self.present.push(present);
        if self.spots.len() < BLOCK { Ok(()) } else { self.flush(budget) }
    }

    pub(super) fn flush(&mut self, budget: &mut Budget) -> Result<()> {
        if let Some(place) = self.items.record.fields.first() {
            let present =
                if self.items.nullable { Present::Listed(&self.present) } else { Present::All };
            self.child.values(&self.items.record, place, &self.spots, present, budget)?;
        }
        self.spots.clear();
        self.present.clear();
        Ok(())
    }
}
